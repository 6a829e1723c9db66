"""Breaks one function of the proxy when its process starts: `DESKCERT_TEST_BREAK=module:Name.attribute`."""

import importlib
import os
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import find_spec

_WHERE, _, _WHAT = os.environ.get("DESKCERT_TEST_BREAK", "").partition(":")


def _raise(*_args, **_more):
    raise RuntimeError("broken on purpose")


def _break(module):
    *owners, name = _WHAT.split(".")
    owner = module
    for part in owners:
        owner = getattr(owner, part)
    whole = getattr(owner, name)
    inner = getattr(whole, "__wrapped__", None)
    if inner is None:
        setattr(owner, name, _raise)
    else:
        # A hook: its body is broken, what is wrapped around it is not.
        cell = next(c for c in whole.__closure__ if c.cell_contents is inner)

        async def broken(*_args):
            raise RuntimeError("broken on purpose")

        broken.__name__ = inner.__name__
        cell.cell_contents = broken


class _Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != _WHERE:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        original = spec.loader

        class _Loader(Loader):
            def create_module(self, spec):
                return original.create_module(spec)

            def exec_module(self, module):
                original.exec_module(module)
                _break(module)

        spec.loader = _Loader()
        return spec


if _WHERE:
    sys.meta_path.insert(0, _Finder())
    importlib.invalidate_caches()
