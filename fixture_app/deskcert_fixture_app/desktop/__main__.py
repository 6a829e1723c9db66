"""`python -m deskcert_fixture_app.desktop --db FILE --effects FILE [--exit-with-stdin]`."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m deskcert_fixture_app.desktop", description="Larkfield, a back office on the desktop"
    )
    parser.add_argument("--db", type=Path, required=True, help="SQLite file; made when it is not there")
    parser.add_argument("--effects", type=Path, required=True, help="JSON lines, one an effect; emptied at each start")
    parser.add_argument("--exit-with-stdin", action="store_true", help="end when standard input closes")
    given = parser.parse_args()
    if find_spec("PySide6") is None:
        sys.stderr.write("PySide6 is missing: install deskcert[desktop-fixture]\n")
        return 2
    from deskcert_fixture_app.desktop.supervisor import serve

    try:
        serve(db=given.db, effects=given.effects, exit_with_stdin=given.exit_with_stdin)
    except OSError as error:
        sys.stderr.write(f"cannot start: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
