"""Calls a function of the user's, from a Python file beside the suite, in a process of its own.

`python -m deskcert.certify.call`: standard input is `{"file", "function", "app", "args"}`, standard output one line of
JSON: `{"value": …}` or `{"error": "…"}`. What the function prints goes to standard error. It is called as
`function(app, **args)`; `app` has the attributes `url`, `folder`, `suite` and `database` (texts, or None).

Never in the guard's process: a user's code may hang, exit, or change anything that it can reach.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

__all__ = ["CallFailed", "call", "check_callable", "file_of"]

_LONGEST_ANSWER = 256 * 1024
_LONGEST_FILE = 256 * 1024


class CallFailed(Exception):
    """The function gave no value; the text says why."""


def file_of(callable_: str, suite: Path) -> tuple[Path, str]:
    """`checks:paid` and `checks.py:paid` are the function `paid` in `checks.py` beside the suite."""
    module, _, function = callable_.partition(":")
    return suite / f"{module.removesuffix('.py').replace('.', '/')}.py", function


def check_callable(callable_: str, suite: Path) -> str | None:
    """Why there is no such function, or None. The file is read, not run."""
    path, function = file_of(callable_, suite)
    if not path.resolve().is_relative_to(suite.resolve()):
        return f"{path.name} lies outside the suite's folder; copy it into it"
    try:
        if not path.is_file():
            return f"there is no file {path.name} in the suite's folder; write it, with a function {function}(app)"
        if path.stat().st_size > _LONGEST_FILE:
            return f"{path.name} is larger than {_LONGEST_FILE // 1024} KiB; keep the functions in a file of their own"
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        return f"{path.name} cannot be read as Python: {exc}"
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if function not in found:
        there = f"; there is: {', '.join(sorted(found))}" if found else ""
        return f"{path.name} has no function {function}{there}"
    return None


def call(
    callable_: str, *, app: Mapping[str, Any], args: Mapping[str, Any], seconds: float, environment: Mapping[str, str]
) -> Any:
    """Blocks for at most `seconds`, then kills it. Raises `CallFailed`."""
    path, function = file_of(callable_, Path(str(app["suite"])))
    question = json.dumps({"file": str(path), "function": function, "app": dict(app), "args": dict(args)})
    command = [sys.executable, "-m", "deskcert.certify.call"]
    # A group of its own, which ends with it: the function may have started something.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(environment),
        cwd=str(app["folder"]),
        start_new_session=True,
    )
    try:
        out, err = process.communicate(question.encode(), timeout=seconds)
    except subprocess.TimeoutExpired:
        raise CallFailed(f"{callable_} did not return within {seconds:.0f} s") from None
    finally:
        _end(process)
    last = err.decode(errors="replace").strip().splitlines()[-1:]
    if len(out) > _LONGEST_ANSWER:
        raise CallFailed(f"{callable_} returned more than {_LONGEST_ANSWER // 1024} KiB")
    try:
        told = json.loads(out)
    except ValueError:
        raise CallFailed(f"{callable_} ended the process: {''.join(last) or process.returncode}") from None
    if "error" in told:
        raise CallFailed(f"{callable_}: {told['error']}")
    return told["value"]


def _end(process: subprocess.Popen[bytes]) -> None:
    import signal

    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _main() -> None:
    question = json.load(sys.stdin)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    path = Path(question["file"])
    sys.path.insert(0, str(path.parent))
    try:
        function = runpy.run_path(str(path), run_name="deskcert_checks")[question["function"]]
        told = json.dumps({"value": function(SimpleNamespace(**question["app"]), **question["args"])})
    except Exception as exc:  # a user's own function may raise anything
        told = json.dumps({"error": f"{type(exc).__name__}: {exc}"[:1000]})
    answer.write(told)
    answer.flush()
    os._exit(0)  # what it left running in threads is not waited for


if __name__ == "__main__":
    _main()
