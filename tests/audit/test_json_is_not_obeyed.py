"""What a page said stands in the JSON that commands print as escapes: no terminal acts on it, readers get it whole."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from deskcert.cli.main import main

CLI = Path(__file__).parents[2] / "deskcert" / "cli"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
EVIL = "\u202eevil"
POLICY = '{"version": 1, "deny": [{"id": "none-of-these", "name": {"glob": "*evil*"}}]}'


def printed(capfd: pytest.CaptureFixture[str], *words: object) -> str:
    capfd.readouterr()
    with pytest.raises(SystemExit):
        main([str(word) for word in words])
    out = capfd.readouterr().out
    assert out, words
    return out


@pytest.mark.parametrize(
    "words",
    [
        ("ledger", "timeline", "RUN", "--json"),
        ("ledger", "show", "RUN", "INTENT", "--json"),
        ("ledger", "query", "RUN", "select target from steps", "--json"),
        ("replay", "RUN", "--policy", "POLICY", "--json"),
        ("ledger", "diff", "RUN", "RUN", "--all", "--json"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_name_that_turns_the_line_around_is_printed_as_an_escape(
    run: Path, words: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in (run / "ledger.jsonl").read_text().splitlines()]
    intent = next(r["seq"] for r in lines if r["kind"] == "action.intent" and EVIL in json.dumps(r, ensure_ascii=False))
    policy = tmp_path / "policy.json"
    policy.write_text(POLICY)
    places = {"RUN": run, "INTENT": intent, "POLICY": policy}
    out = printed(capfd, *(places.get(word, word) for word in words))
    assert not OBEYED.search(out), repr(out)
    told = [json.loads(line) for line in out.splitlines()]
    assert EVIL in json.dumps(told, ensure_ascii=False)


def test_no_command_prints_json_in_another_way() -> None:
    """A new command cannot forget it."""
    for path in sorted(CLI.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("echo", "stdout.write", "print")):
                assert "json.dumps(" not in ast.unparse(node), f"{path.name}:{node.lineno}: print it by shown_json"
