"""The database: SQLite in one file, which the oracle opens too, from its own process.

Writes are in `writes`; this module opens, resets and reads. No journal is kept after a commit and nothing waits for the
disk: a reset takes milliseconds, and a killed server loses nothing that another process could have read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

from deskcert_fixture_app.seed import Seed, rows

__all__ = ["Row", "Store", "day", "money"]

type Row = dict[str, Any]

# fmt: off
TABLES = (
    "customers", "orders", "order_lines", "payouts", "messages", "replies", "notes", "settings", "exports", "files",
    "account", "activity", "stock", "held_prices", "vans", "collections",
)
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)
# fmt: on


def money(cents: int) -> str:
    """`123456` is `€1,234.56`."""
    return f"€{cents // 100:,}.{cents % 100:02d}"


def day(iso: str, *, short: bool = False) -> str:
    """`2026-03-08` is `8 March`, short `8 Mar`. English whatever the locale: pages must not depend on it."""
    found = date.fromisoformat(iso)
    name = MONTHS[found.month - 1]
    return f"{found.day} {name[:3] if short else name}"


class Store:
    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.row_factory = sqlite3.Row
        self._db.execute("pragma synchronous = off")
        self._db.execute("pragma journal_mode = memory")
        if not self.all("select 1 from sqlite_master where name = 'orders'"):
            self._db.executescript(files("deskcert_fixture_app").joinpath("schema.sql").read_text())
        self.epoch = 0
        """Counts resets: a request that began before one must not write after it."""

    def reset(self, seed: Seed, random_seed: int) -> None:
        self.epoch += 1
        with self.transaction():
            for table in reversed(TABLES):
                self._db.execute(f"delete from {table}")  # noqa: S608 - names from the list above
            for table, found in rows(seed, random_seed).items():
                if found:
                    marks = ",".join("?" * len(found[0]))
                    self._db.executemany(f"insert into {table} values ({marks})", found)  # noqa: S608

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self._db.execute("begin immediate")
        try:
            yield
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    def all(self, sql: str, *args: object) -> list[Row]:
        return [dict(row) for row in self._db.execute(sql, args)]

    def one(self, sql: str, *args: object) -> Row | None:
        row = self._db.execute(sql, args).fetchone()
        return None if row is None else dict(row)

    def run(self, sql: str, *args: object) -> int:
        """The id of the row that was inserted, if one was."""
        return self._db.execute(sql, args).lastrowid or 0

    def close(self) -> None:
        self._db.close()

    # What the pages read

    def orders(self, status: str | None = None) -> list[Row]:
        return self.all(
            "select o.*, c.name customer"
            " from orders o join customers c on c.id = o.customer_id where ?1 is null or o.status = ?1 order by o.id",
            status,
        )

    def order(self, number: int) -> Row | None:
        return self.one(
            "select o.*, c.name customer, c.city, c.country, c.email from orders o"
            " join customers c on c.id = o.customer_id where o.id = ?",
            number,
        )

    def lines(self, number: int) -> list[Row]:
        return self.all("select * from order_lines where order_id = ?", number)

    def notes(self, order: int | None) -> list[Row]:
        return self.all("select * from notes where order_id is ? order by id desc", order)

    def activity(self, limit: int = 6) -> list[Row]:
        return self.all("select * from activity order by id desc limit ?", limit)

    def settings(self) -> dict[str, str]:
        return {row["key"]: row["value"] for row in self.all("select * from settings")}

    def account_state(self) -> str:
        row = self.one("select state from account")
        return "open" if row is None else str(row["state"])
