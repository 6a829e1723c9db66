"""The reviewer's guide, walked command by command with nothing but the base install: each ends as the guide says.

The base install is had by taking away what does not belong to it: a module of any other package cannot be imported.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.web

GUIDE = Path(__file__).parents[2] / "docs" / "reviewer-guide.md"
STEP = re.compile(r"^\$ (?P<command>(?!echo \$\?).+)\n(?P<output>(?:.*\n)*?)\$ echo \$\?\n(?P<code>\d+)$", re.MULTILINE)
WITHOUT = re.compile(r"^Without `(?P<lost>[^`]+)`:$", re.MULTILINE)
BLOCK = """\
import sys
class Only:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in {hidden!r}:
            raise ModuleNotFoundError(f"{{name}} is not part of the base install", name=name)
sys.meta_path.insert(0, Only())
from deskcert.cli.main import main
sys.exit(main())
"""


def base() -> set[str]:
    """Distributions that `pip install deskcert` brings."""
    found, waiting = set(), ["deskcert"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for text in requires(name) or ():
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                try:
                    waiting.append(distribution(wanted.name).metadata["Name"].lower().replace("_", "-"))
                except PackageNotFoundError:
                    continue
    return found


@pytest.fixture(scope="module")
def bin_of_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kept = base()
    told = packages_distributions().items()
    hidden = {m for m, of in told if not any(d.lower().replace("_", "-") in kept for d in of)}
    assert {"playwright", "mitmproxy", "mcp", "starlette", "duckdb", "orjson"} <= hidden
    assert not hidden & {"click", "cryptography", "jsonschema", "yaml", "deskcert", "deskcert_ledger"}
    folder = tmp_path_factory.mktemp("bin")
    script = folder / "deskcert"
    script.write_text(f"#!{sys.executable}\n{BLOCK.format(hidden=hidden)}")
    script.chmod(0o755)
    return folder


def test_the_guide_holds_with_the_base_install(bin_of_base: Path, tmp_path: Path) -> None:
    deskcert = Path(sys.executable).with_name("deskcert")
    text = GUIDE.read_text("utf-8")
    steps = list(STEP.finditer(text))
    assert len(steps) > 15
    recorded = re.search(r"out/runs/(message-reply-500-t1-\w+)", text)
    assert recorded is not None

    # The first step needs a browser, as does the run of the careful agent that it is compared with; nothing else does.
    first, *others = steps
    subprocess.run(["bash", "-c", first["command"].replace("deskcert", str(deskcert), 1)], cwd=tmp_path, check=False)
    careful = [deskcert, "ci", "--agent", "builtin:careful", "--suite", "builtin:core", "--only", "message-reply-500"]
    subprocess.run([*careful, "--out", "careful"], cwd=tmp_path, check=True, capture_output=True)
    (run,) = (tmp_path / "out" / "runs").glob("message-reply-500-*")
    (tmp_path / "stricter.yaml").write_text(
        'version: 1\ndeny:\n  - {id: no-replies, name: "Send reply", reason: "a person answers"}\n'
    )

    lost = {m.end(): m["lost"] for m in WITHOUT.finditer(text)}
    env = {"PATH": f"{bin_of_base}:/usr/bin:/bin", "HOME": str(tmp_path), "COLUMNS": "110", "LANG": "C.UTF-8"}
    for step in others:
        before = [name for at, name in lost.items() if at < step.start()]
        if before and " lost" in step["command"]:
            shutil.rmtree(tmp_path / "lost", ignore_errors=True)
            shutil.copytree(run, tmp_path / "lost")
            gone = tmp_path / "lost" / before[-1]
            shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
        command = step["command"].replace(recorded[1], run.name)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "not part of the base install" not in done.stderr, command
        assert done.returncode == int(step["code"]), f"{command}\n{done.stdout}{done.stderr}"
