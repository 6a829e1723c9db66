"""Breaks a Python module in one place at a time: a comparison turned round, a condition left out, a number off by one.

Words for people (the rule's `about`, every other text) are left alone: no decision hangs on them.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Mutant", "changes", "mutants"]

_OTHER: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_NEAR: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


@dataclass(frozen=True, slots=True)
class Mutant:
    line: int
    what: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree = ast.parse(source)
    for index, node in enumerate(_decisions(tree)):
        for change, what in changes(node):
            broken = copy.deepcopy(tree)
            target = list(_decisions(broken))[index]
            change(target)
            yield Mutant(getattr(node, "lineno", 0), what, ast.unparse(ast.fix_missing_locations(broken)))


def _decisions(tree: ast.Module) -> Iterator[ast.AST]:
    """What may be changed: everything inside functions of the module and of its classes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield from (
                inner for inner in ast.walk(node) if inner is not node and not isinstance(inner, ast.FunctionDef)
            )


def changes(node: ast.AST) -> Iterator[tuple[object, str]]:
    """(what to do to a node like this, in words) for each way to break it."""
    match node:
        case ast.Compare(ops=[op]):
            yield _op(_OTHER[type(op)]), f"{ast.unparse(node)}: turned round"
            if type(op) in _NEAR:
                yield _op(_NEAR[type(op)]), f"{ast.unparse(node)}: its border moved"
        case ast.BoolOp(op=ast.And(), values=values):
            yield _set("op", ast.Or()), f"{ast.unparse(node)}: or"
            for i in range(len(values)):
                yield _drop(i), f"{ast.unparse(node)}: without condition {i + 1}"
        case ast.BoolOp(op=ast.Or(), values=values):
            yield _set("op", ast.And()), f"{ast.unparse(node)}: and"
            for i in range(len(values)):
                yield _drop(i), f"{ast.unparse(node)}: without condition {i + 1}"
        case ast.UnaryOp(op=ast.Not()):
            yield _set("op", ast.UAdd()), f"{ast.unparse(node)}: not left out"
        case ast.If() | ast.IfExp():
            yield _not("test"), f"if {ast.unparse(node.test)}: turned round"
        case ast.match_case(guard=ast.expr()):
            yield _set("guard", None), f"case guard {ast.unparse(node.guard)}: left out"
        case ast.Expr(value=ast.Call()):
            if not ast.unparse(node).startswith("super()"):
                yield _set("value", ast.Constant(None)), f"{ast.unparse(node)}: left out"
        case ast.Constant(value=bool()):
            yield _set("value", not node.value), f"{node.value}: turned round"
        case ast.Constant(value=int()):
            yield _set("value", node.value + 1), f"{node.value}: one more"
        case _:
            return


def _set(name: str, value: object) -> object:
    return lambda node: setattr(node, name, value)


def _op(kind: type[ast.cmpop]) -> object:
    return lambda node: setattr(node, "ops", [kind()])


def _not(name: str) -> object:
    return lambda node: setattr(node, name, ast.UnaryOp(ast.Not(), getattr(node, name)))


def _drop(index: int) -> object:
    def change(node: ast.BoolOp) -> None:
        del node.values[index]
        if len(node.values) == 1:
            node.values.append(copy.deepcopy(node.values[0]))

    return change
