"""Which browser to start: `python -m deskcert.adapters.web.find_browser` prints its path, or exits 2 with one sentence.

Order: `DESKCERT_BROWSER`; the build that the installed Playwright was made for; the headless shell, Chromium or Chrome
of the system. Nothing is imported from Playwright: looking must be cheap.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from deskcert_schema.errors import HarnessError

__all__ = ["HOW_TO_GET_ONE", "find_browser", "is_headless_shell"]

HOW_TO_GET_ONE = (
    "install one with `playwright install chromium --only-shell` (downloads Playwright's own build) "
    "or with `apt-get install chromium-headless-shell` (Debian's; also `chromium`), or set DESKCERT_BROWSER to its path"
)

_NAMES = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
_USUAL = (
    "/usr/bin/chromium-headless-shell",
    "/usr/lib/chromium/headless_shell",
    "/usr/bin/chromium",
    "/usr/bin/google-chrome",
    "/opt/google/chrome/chrome",
    "/snap/bin/chromium",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
_BUILDS = {
    "chromium-headless-shell": (
        "chromium_headless_shell",
        ("chrome-headless-shell-*/chrome-headless-shell*", "chrome-*/headless_shell*"),
    ),
    "chromium": (
        "chromium",
        ("chrome-*/chrome", "chrome-*/chrome.exe", "chrome-*/Chromium.app/Contents/MacOS/Chromium"),
    ),
}


def find_browser(env: Mapping[str, str] | None = None, *, headed: bool = False) -> Path:
    """`headed`: one that can be seen. Raises `HarnessError` that names the two ways to get a browser."""
    env = os.environ if env is None else env
    if headed and not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        raise HarnessError("a browser that can be seen wants a screen: neither DISPLAY nor WAYLAND_DISPLAY is set")
    asked = env.get("DESKCERT_BROWSER")
    if asked:
        path = Path(asked).expanduser()
        if not _runs(path):
            raise HarnessError(
                f"DESKCERT_BROWSER is {asked}, which is not a program that can be started; set it to a Chromium's path,"
                " or unset it and one is looked for"
            )
        return path
    for candidate in (*_playwright_builds(env), *_system(env)):
        if _runs(candidate) and not (headed and is_headless_shell(candidate)):
            return candidate
    if headed:
        raise HarnessError("no Chromium that can be seen was found; get one with `apt-get install chromium`")
    raise HarnessError(f"no Chromium was found: {HOW_TO_GET_ONE}")


def is_headless_shell(path: Path) -> bool:
    """The old headless mode as its own program: it starts three times faster and asks no server anything."""
    return "headless" in path.name


def _runs(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _system(env: Mapping[str, str]) -> Iterator[Path]:
    for name in _NAMES:
        found = shutil.which(name, path=env.get("PATH", os.defpath))
        if found is not None:
            yield Path(found)
    yield from map(Path, _USUAL)


def _playwright_builds(env: Mapping[str, str]) -> Iterator[Path]:
    """Only the revision that this Playwright was made for: another one may speak another protocol."""
    revisions = _revisions()
    for folder in _build_folders(env):
        for name, (prefix, patterns) in _BUILDS.items():
            if name in revisions:
                for pattern in patterns:
                    yield from sorted((folder / f"{prefix}-{revisions[name]}").glob(pattern))


def _revisions() -> dict[str, str]:
    spec = importlib.util.find_spec("playwright")
    for place in (spec.submodule_search_locations or []) if spec is not None else []:
        listing = Path(place) / "driver" / "package" / "browsers.json"
        try:
            browsers = json.loads(listing.read_text("utf-8"))["browsers"]
            return {entry["name"]: str(entry["revision"]) for entry in browsers}
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return {}


def _build_folders(env: Mapping[str, str]) -> Iterator[Path]:
    asked = env.get("PLAYWRIGHT_BROWSERS_PATH")
    if asked and asked != "0":
        yield Path(asked)
        return
    home = Path(env.get("HOME") or Path.home())
    yield home / ".cache" / "ms-playwright"
    yield home / "Library" / "Caches" / "ms-playwright"
    if "LOCALAPPDATA" in env:
        yield Path(env["LOCALAPPDATA"]) / "ms-playwright"


def main() -> int:
    try:
        sys.stdout.write(f"{find_browser()}\n")
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
