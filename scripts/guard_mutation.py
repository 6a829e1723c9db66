"""Every way in which the guard and the disposition table are broken on purpose, one place at a time.

The changes of `scripts.mutation`, and more: arithmetic, results, removed statements and branches, words on which
something hangs. Sentences for people are left alone; so are annotations, decorators and what a module exports.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scripts.evidence_parts import ROOT
from scripts.mutation import changes

__all__ = ["FILES", "Mutant", "mutants"]

FILES = (
    *sorted(p for p in (ROOT / "deskcert" / "guard").glob("*.py") if p.stem != "__init__"),
    ROOT / "schema" / "deskcert_schema" / "disposition.py",
)

_OTHER_WAY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_OTHER_CALL = {"min": "max", "max": "min", "any": "all", "all": "any"}

type Change = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class Mutant:
    file: Path
    tree: ast.Module
    """Of the file as it is. `make` changes it in place, so do it in a process of its own."""
    node: ast.AST
    change: Change
    what: str
    function: str
    """Qualified name of the outermost function; empty where a statement of the module or a class is changed."""
    statement: ast.stmt
    """Of the module or a class: the whole of what is carried out again."""
    lines: range
    """One of these is carried out before the changed place is."""
    number: int = 0
    """In its file, from 0."""

    @property
    def name(self) -> str:
        """The same as long as the place is written so, whatever stands above it."""
        return f"{self.file.stem}.{self.function or 'module'}: {self.what}"

    def make(self) -> None:
        self.change(self.node)
        ast.fix_missing_locations(self.tree)


def mutants(file: Path) -> list[Mutant]:
    """In the order of the file."""
    tree = ast.parse(file.read_text("utf-8"))
    return [replace(mutant, number=n) for n, mutant in enumerate(_of_body(file, tree, tree.body, ""))]


def _of_body(file: Path, tree: ast.Module, body: list[ast.stmt], inside: str) -> Iterator[Mutant]:
    for statement in body:
        match statement:
            case ast.ClassDef():
                yield from _of_body(file, tree, statement.body, f"{inside}{statement.name}.")
            case ast.FunctionDef():
                for inner in statement.body:
                    for node, change, what, lines in _places(inner, inner):
                        yield Mutant(file, tree, node, change, what, inside + statement.name, statement, lines)
                for default in [*statement.args.defaults, *statement.args.kw_defaults]:
                    if default is not None:
                        for node, change, what, lines in _places(default, statement):
                            yield Mutant(file, tree, node, change, what, "", statement, lines)
            case ast.Assign() | ast.AnnAssign(value=ast.expr()) if not _is_export(statement):
                for node, change, what, lines in _places(statement.value, statement):
                    owner = ast.unparse(statement).partition("=")[0].partition(":")[0].strip()
                    yield Mutant(file, tree, node, change, f"{inside}{owner}: {what}", "", statement, lines)


def _is_export(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"


def _places(node: ast.AST, statement: ast.AST) -> Iterator[tuple[ast.AST, Change, str, range]]:
    if isinstance(node, ast.stmt):
        statement = node
    last = getattr(node, "end_lineno", None) or getattr(statement, "lineno", 0)
    header = isinstance(node, ast.stmt) and hasattr(node, "body")
    first: int = getattr(statement, "lineno", 0)
    lines = range(first, (first if header else last) + 1)
    for change, what in _all_changes(node):
        yield node, change, what, lines
    if isinstance(node, ast.JoinedStr) or _is_text(node):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, ast.AST):
                yield from _places(inner, statement)


def _is_text(node: ast.AST) -> bool:
    """A docstring, or any other text that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _all_changes(node: ast.AST) -> Iterator[tuple[Change, str]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) > 1_000_000:
        return
    yield from changes(node)  # type: ignore[misc]
    match node:
        case ast.If(test=test) | ast.IfExp(test=test):
            yield _set("test", ast.Constant(True)), f"if {ast.unparse(test)}: always"
            yield _set("test", ast.Constant(False)), f"if {ast.unparse(test)}: never"
        case ast.BinOp(op=op) if type(op) in _OTHER_WAY:
            yield _set("op", _OTHER_WAY[type(op)]()), f"{_short(node)}: the other way"
        case ast.Call(func=ast.Name(id=name)) if name in _OTHER_CALL:
            yield _set("func", ast.Name(_OTHER_CALL[name], ast.Load())), f"{_short(node)}: {_OTHER_CALL[name]}"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield _set("value", ast.Constant(None)), f"{_short(node)}: nothing"
        case ast.Expr(value=ast.YieldFrom() | ast.Yield()):
            yield _set("value", ast.Constant(None)), f"{_short(node)}: left out"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield _become(ast.Pass()), f"{_short(node)}: left out"
        case ast.AugAssign() | ast.Raise():
            yield _become(ast.Pass()), f"{_short(node)}: left out"
        case ast.Continue():
            yield _become(ast.Break()), "continue: break"
        case ast.Break():
            yield _become(ast.Pass()), "break: left out"
        case ast.Match(cases=cases) if len(cases) > 1:
            for i, case in enumerate(cases):
                yield _without(i), f"case {ast.unparse(case.pattern)}: left out"
        case ast.comprehension(ifs=[_, *_] as ifs):
            for i, test in enumerate(ifs):
                yield _unfiltered(i), f"for … if {ast.unparse(test)}: not asked"
        case ast.Constant(value=str() as text) if text and not any(c.isspace() for c in text):
            yield _set("value", f"{text}x"), f"{text!r}: another word"


def _short(node: ast.AST) -> str:
    return " ".join(ast.unparse(node).split())[:160]


def _set(name: str, value: object) -> Change:
    return lambda node: setattr(node, name, value)


def _become(other: ast.stmt) -> Change:
    """A statement turns into another one where it stands."""

    def change(node: ast.stmt) -> None:
        place = {name: getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
        node.__class__ = other.__class__
        node.__dict__.clear()
        node.__dict__.update(place)

    return change


def _without(index: int) -> Change:
    return lambda node: node.cases.__delitem__(index)


def _unfiltered(index: int) -> Change:
    return lambda node: node.ifs.__delitem__(index)
