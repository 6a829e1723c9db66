"""What the browser does unasked, recorded: tabs that come and go, files that it receives.

A download is judged the moment it begins, by its address and by the name that it is given; what may stay is copied to
the run's own folder under a number of ours. A name from the page is never a path.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert.adapters.base import DownloadAdapter, DownloadSeen, Happened, TabAdapter, WindowState
from deskcert.guard import policy
from deskcert.session.args import clean
from deskcert.session.records import Records
from deskcert_schema.vocabulary import RecordKind

if TYPE_CHECKING:
    from deskcert.adapters.base import Adapter

__all__ = ["Happenings"]

_CHUNK: Final = 1 << 20
NOWHERE: Final = "this session keeps no downloads"


@dataclass(slots=True)
class Happenings:
    """Of one session; a `DownloadKeeper`."""

    adapter: Adapter
    records: Records
    policy: policy.Policy
    folder: Path | None
    """Where downloads are kept; None: nowhere, so none is."""
    downloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By id, in order: `name url state(under_way|kept|failed|denied)`, and of a kept one `bytes sha256 stored`."""
    told: dict[str, str] = field(default_factory=dict)
    """Id → the state of which the agent has been told."""
    ended_before: frozenset[str] = frozenset()
    """Downloads that had ended when the newest acting command began: no wait is for them."""
    opened: list[dict[str, Any]] = field(default_factory=list)
    """Tabs of which it has not."""

    def __post_init__(self) -> None:
        if isinstance(self.adapter, DownloadAdapter):
            self.adapter.keep_downloads(self)

    # Tabs and downloads, as an acting answer tells them

    async def note(self) -> None:
        """Records what came and went since the last call."""
        if not isinstance(self.adapter, TabAdapter):
            return
        for happened in await self.adapter.news():
            await self.records.write(RecordKind.SURFACE, _recorded(happened), durable=False)
            if happened.event == "tab_opened":
                self.opened.append({"type": "tab", "id": happened.id, "title": happened.title, "url": happened.url})

    def take(self) -> list[dict[str, Any]]:
        """What the agent has not been told of yet."""
        surfaces, self.opened = self.opened, []
        return surfaces + self.take_downloads()

    def action_begins(self) -> None:
        self.ended_before = frozenset(n for n, found in self.downloads.items() if found["state"] != "under_way")

    def ended_since(self) -> list[dict[str, Any]]:
        """Those that have come to their end since the newest action began."""
        news = [(n, found) for n, found in self.downloads.items() if n not in self.ended_before]
        self.told |= {number: found["state"] for number, found in news}
        return [{"type": "download", "id": n, **found} for n, found in news if found["state"] != "under_way"]

    def take_downloads(self) -> list[dict[str, Any]]:
        """Those whose state is another one than when the agent was last told."""
        news = [(number, found) for number, found in self.downloads.items() if self.told.get(number) != found["state"]]
        self.told |= {number: found["state"] for number, found in news}
        return [{"type": "download", "id": number, **found} for number, found in news]

    @property
    def under_way(self) -> int:
        return sum(found["state"] == "under_way" for found in self.downloads.values())

    # The keeper

    async def begun(self, seen: DownloadSeen) -> bool:
        name = clean(seen.name)
        window = WindowState("", "", seen.page, "")  # what is known without asking a page that may be gone
        verdict = policy.decide(self.policy, policy.download_subject(seen.url, name, window))
        payload: dict[str, Any] = {
            "event": "begun",
            "id": seen.id,
            "target": {"url": clean(seen.url), "file": name},
            "evidence": {"window": _window_json(window)},
        } | ({"by": seen.by} if seen.by is not None else {})
        state = "under_way"
        if isinstance(verdict, policy.Deny):
            state = "denied"
            denied = {"rule": verdict.rule, "detail_kind": verdict.kind.value, "reason": verdict.reason}
            payload |= denied | {"source": verdict.source.as_json(), "policy": {"digest": self.policy.digest}}
        else:
            payload["policy"] = verdict.as_json(self.policy.digest)
            if self.folder is None:
                state = "denied"
                payload |= {"reason": NOWHERE}
        await self.records.write(RecordKind.DOWNLOAD, payload | {"kept": state == "under_way"})
        self.downloads[seen.id] = {"name": name, "url": clean(seen.url), "state": state}
        if isinstance(verdict, policy.Deny):
            self.downloads[seen.id]["rule"] = verdict.rule
        return state == "under_way"

    async def ended(self, seen: DownloadSeen, path: Path | None, why: str) -> None:
        found = self.downloads[seen.id]
        payload: dict[str, Any] = {"event": "ended", "id": seen.id}
        if path is None or self.folder is None:
            found["state"] = "failed"
            payload |= {"failed": clean(why)[:300] or "it did not come to its end"}
        else:
            size, digest = await asyncio.to_thread(_keep, path, self.folder / seen.id)
            found |= {"bytes": size, "sha256": digest, "stored": f"{self.folder.name}/{seen.id}"}
            payload |= {"bytes": size, "sha256": digest, "stored": found["stored"]}
        await self.records.write(RecordKind.DOWNLOAD, payload)
        found["state"] = "kept" if "sha256" in found else "failed"


def _recorded(happened: Happened) -> dict[str, Any]:
    told: dict[str, Any] = {
        "event": happened.event,
        "id": happened.id,
        "url": clean(happened.url),
        "title": clean(happened.title),
    }
    told |= {"by": happened.by} if happened.by is not None else {}
    return told | ({"why": clean(happened.why)} if happened.why else {})


def _window_json(window: WindowState) -> Mapping[str, str]:
    return {"id": window.id, "title": window.title, "url": window.url, "document": window.document}


def _keep(path: Path, to: Path) -> tuple[int, str]:
    """A copy, private, under a new name; its size and digest."""
    to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    with path.open("rb") as source, os.fdopen(os.open(to, flags, 0o600), "wb") as kept:
        shutil.copyfileobj(source, kept, _CHUNK)
    with to.open("rb") as kept_again:
        while block := kept_again.read(_CHUNK):
            digest.update(block)
            size += len(block)
    return size, digest.hexdigest()
