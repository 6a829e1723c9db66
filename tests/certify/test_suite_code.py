"""An oracle that was rewritten after the fact is another suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskcert.certify.suite import load_suites

FILES = {
    "suite.yaml": 'version: 1\nname: own\napp:\n  command: [x, "{port}"]\n'
    '  url: "http://127.0.0.1:{port}/"\n  setup: {command: ["{suite}/make.sh", "{suite}/rows.txt"]}\n'
    '  sql: [python3, "{suite}/tools/ask.py", "{query}"]\n',
    "policy.yaml": "version: 1\ndefault: deny\n",
    "a.yaml": """id: a
version: 1
title: A
area: notes
start: {page: /}
instruction: "Do it."
budget: {actions: 10, seconds: 60}
oracle:
  - {python: "checks:held", what: "it is done"}
  - python: >-
      spelt:held
  - {"python": "\\x65scaped:held"}
expected: complete
attribution: wrong_target
""",
    "checks.py": "import helper\n\n\ndef held(app):\n    return helper.ask(app)\n",
    "helper.py": "def ask(app):\n    return False\n",
    "spelt.py": "def held(app):\n    return False\n",
    "escaped.py": "def held(app):\n    return False\n",
    "make.sh": "#!/bin/sh\n",
    "rows.txt": "1\n",
    "tools/ask.py": "import rows\n",
    "tools/rows.py": "NONE = False\n",
    "my_agent.py": "print()\n",
}


OF_THE_ORACLE = ("checks.py", "helper.py", "spelt.py", "escaped.py", "make.sh", "tools/ask.py", "tools/rows.py")


@pytest.mark.parametrize(
    ("name", "another"),
    [*((name, True) for name in OF_THE_ORACLE), ("my_agent.py", False), ("rows.txt", False)],
)
def test_code_that_the_oracle_is_made_of_is_part_of_the_suites_digest(
    tmp_path: Path, name: str, *, another: bool
) -> None:
    folder = tmp_path / "own"
    (folder / "tools").mkdir(parents=True)
    for file, text in FILES.items():
        (folder / file).write_text(text)
    before = load_suites([str(folder)], base=tmp_path, policy=None).digest
    assert load_suites([str(folder)], base=tmp_path, policy=None).digest == before
    (folder / name).write_text(FILES[name].replace("False", "True") + "# more\n")
    assert (load_suites([str(folder)], base=tmp_path, policy=None).digest != before) is another
