"""Puts a mutant in the place of what is already imported, in a process that is thrown away afterwards."""

from __future__ import annotations

import ast
import copy
import subprocess
import sys
import types
from collections.abc import Iterator
from enum import EnumMeta
from pathlib import Path
from typing import Any

from scripts.evidence_parts import ROOT
from scripts.guard_mutation import Mutant

__all__ = ["Unswappable", "fresh", "module_of", "swap"]


class Unswappable(Exception):
    """It needs a process that imports it from the beginning: `fresh`."""


def swap(mutant: Mutant) -> None:
    """From here on the process runs the mutant. Raises `Unswappable`, or whatever carrying it out raises."""
    module = sys.modules[module_of(mutant.file)]
    mutant.make()
    if mutant.function:
        _function(mutant, module)
        return
    match mutant.statement:
        case ast.FunctionDef() as function:
            _defaults(function, module, mutant)
        case ast.Assign() | ast.AnnAssign() as statement if statement in mutant.tree.body:
            _constant(statement, mutant.tree, module)
        case statement:
            _field(statement, mutant.tree, module)


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "schema" else parts)


def _function(mutant: Mutant, module: types.ModuleType) -> None:
    line = min([mutant.statement.lineno, *(d.lineno for d in getattr(mutant.statement, "decorator_list", ()))])
    code = next(
        c
        for c in _codes(compile(mutant.tree, str(mutant.file), "exec"))
        if c.co_qualname == mutant.function and c.co_firstlineno == line
    )
    found = _of_path(module, mutant.function)
    try:
        found.__code__ = code
    except ValueError as error:  # it takes other variables from around it than it did
        raise Unswappable(str(error)) from error


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield inner
            yield from _codes(inner)


def _of_path(module: types.ModuleType, path: str) -> types.FunctionType:
    """The function itself, without what is wrapped around it."""
    found: Any = module
    for name in path.split("."):
        found = found.__dict__[name]
    for step in ("fget", "__func__", "__wrapped__"):
        found = getattr(found, step, None) or found
    if hasattr(found, "__wrapped__") or not isinstance(found, types.FunctionType):
        raise Unswappable(path)
    return found


def _evaluated(node: ast.expr, module: types.ModuleType) -> Any:
    return eval(compile(ast.fix_missing_locations(ast.Expression(node)), "mutant", "eval"), module.__dict__)


def _defaults(function: ast.FunctionDef, module: types.ModuleType, mutant: Mutant) -> None:
    path = next(p for p, s in _paths(mutant.tree.body, "") if s is function)
    found = _of_path(module, path)
    found.__defaults__ = tuple(_evaluated(d, module) for d in function.args.defaults) or None
    named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    found.__kwdefaults__ = {a.arg: _evaluated(d, module) for a, d in named if d is not None} or None


def _paths(body: list[ast.stmt], inside: str) -> Iterator[tuple[str, ast.stmt]]:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            yield from _paths(statement.body, f"{inside}{statement.name}.")
        yield f"{inside}{getattr(statement, 'name', '')}", statement


def _constant(statement: ast.stmt, tree: ast.Module, module: types.ModuleType) -> None:
    """It, and everything below it in the module that is made of it; then wherever they were imported to."""
    stale = set(_names(statement))
    old = {name: module.__dict__[name] for name in stale}
    _carry_out(statement, module)
    for later in tree.body[tree.body.index(statement) + 1 :]:
        uses = {n.id for n in ast.walk(later) if isinstance(n, ast.Name)}
        if not uses & stale:
            continue
        if isinstance(later, ast.Assign | ast.AnnAssign):
            names = set(_names(later))
            old |= {name: module.__dict__[name] for name in names if name in module.__dict__}
            stale |= names
            _carry_out(later, module)
        elif _at_definition(later) & stale:
            raise Unswappable("a class or a function is made of it")
    for other in list(sys.modules.values()):
        space = getattr(other, "__dict__", {})
        for name, value in old.items():
            if other is not module and space.get(name) is value and value is not None:
                space[name] = module.__dict__[name]


def _at_definition(statement: ast.stmt) -> set[str]:
    """Names that are read when the statement is carried out, not when what it defines is called."""
    if isinstance(statement, ast.FunctionDef):
        parts: list[ast.AST] = [*statement.args.defaults, *(d for d in statement.args.kw_defaults if d is not None)]
        parts += statement.decorator_list
    elif isinstance(statement, ast.ClassDef):
        inner = (_at_definition(s) for s in statement.body)
        decorators = (n for d in statement.decorator_list for n in ast.walk(d))
        return set().union(*inner) | {n.id for n in decorators if isinstance(n, ast.Name)}
    elif isinstance(statement, ast.AnnAssign):
        parts = [statement.value] if statement.value is not None else []
    elif isinstance(statement, ast.Assign):
        parts = [statement.value]
    else:
        parts = []
    return {n.id for part in parts for n in ast.walk(part) if isinstance(n, ast.Name)}


def _names(statement: ast.stmt) -> Iterator[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]  # type: ignore[attr-defined]
    for target in targets:
        yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name))


def _carry_out(statement: ast.stmt, module: types.ModuleType) -> None:
    body = ast.fix_missing_locations(ast.Module([copy.deepcopy(statement)], []))
    exec(compile(body, "mutant", "exec"), module.__dict__)


def _field(statement: ast.stmt, tree: ast.Module, module: types.ModuleType) -> None:
    """A default of a dataclass: the class is made once more, and the old one takes the new one's defaults."""
    name = next(c.name for c in tree.body if isinstance(c, ast.ClassDef) and statement in c.body)
    old = module.__dict__[name]
    if isinstance(old, EnumMeta) or not hasattr(old, "__dataclass_fields__"):
        raise Unswappable(name)
    definition = next(c for c in tree.body if isinstance(c, ast.ClassDef) and c.name == name)
    _carry_out(definition, module)
    new = module.__dict__[name]
    module.__dict__[name] = old
    for method in ("__init__", "__repr__", "__eq__", "__hash__"):  # they close over defaults and factories
        if method in new.__dict__:
            setattr(old, method, new.__dict__[method])


_HOOK = """
import importlib, importlib.abc, importlib.util, sys
class Finder(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            return importlib.util.spec_from_loader(name, self, origin={file!r})
    def get_filename(self, name): return {file!r}
    def get_data(self, path): return {source!r}.encode()
    def path_stats(self, path): raise OSError
sys.meta_path.insert(0, Finder())
importlib.import_module({name!r})  # before pytest, whose own finder comes first and reads the file
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-m", "not web and not evidence", *{tests!r}]))
"""
_FRESH_TESTS = (
    *(
        f"tests/guard/test_guard_{name}.py"
        for name in ("pipeline", "decides_as_before", "decisions", "policy", "policy_files", "names")
    ),
    *("tests/contract", "tests/schema/test_dispositions_page.py", "tests/schema/test_schemas_and_vocabulary.py"),
)


def fresh(mutant: Mutant) -> str | None:
    """The few that cannot be put in place: a new process that imports it. What ended badly, or None."""
    program = _HOOK.format(
        name=module_of(mutant.file), file=str(mutant.file), source=ast.unparse(mutant.tree), tests=list(_FRESH_TESTS)
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"a new process: {done.returncode}"
