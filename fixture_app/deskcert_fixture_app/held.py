"""The office's own scripts, styles and pictures, read once and served from memory.

A page asks for four or five of them, and asking the file system each time, in a thread, is most of what a page costs
the server.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

__all__ = ["held_files"]

_METHODS: Final = ("GET", "HEAD")


class _Held(StaticFiles):
    """Answers as `StaticFiles` does, but always with the whole file: nobody here asks for parts."""

    def __init__(self) -> None:
        super().__init__(packages=[("deskcert_fixture_app", "static")])
        self.config_checked = True
        self._held = {file.name: _answer(file) for folder in self.all_directories for file in Path(folder).iterdir()}

    async def get_response(self, path: str, scope: Scope) -> Response:
        if scope["method"] not in _METHODS:
            raise HTTPException(status_code=405, headers={"Allow": ", ".join(_METHODS)})
        if path not in self._held:
            raise HTTPException(status_code=404)
        content, headers = self._held[path]
        answer = Response(content, headers=headers)
        unchanged = self.is_not_modified(answer.headers, Headers(scope=scope))
        return NotModifiedResponse(answer.headers) if unchanged else answer


def _answer(file: Path) -> tuple[bytes, dict[str, str]]:
    headers = FileResponse(file, stat_result=file.stat()).headers
    del headers["accept-ranges"]
    return file.read_bytes(), dict(headers)


@cache
def held_files() -> StaticFiles:
    """The same for every office of this process, and of those forked from it."""
    return _Held()
