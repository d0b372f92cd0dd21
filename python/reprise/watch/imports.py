"""Calls a function right after a module was imported, before the importer sees it."""

from __future__ import annotations

import sys
from typing import Callable

Patch = Callable[[object], None]


class AfterImport:
    """A finder that lets the others find a module, and has its patch run when its code has run."""

    def __init__(self) -> None:
        self._patches: dict[str, Patch] = {}

    def call(self, name: str, patch: Patch) -> None:
        """Has patch(module) called after the import of `name`, or now if it was imported before. A patch
        must not raise."""
        if name in sys.modules:
            patch(sys.modules[name])
        else:
            self._patches[name] = patch
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        patch = self._patches.get(name)
        if patch is None:
            return None
        spec = None
        for finder in list(sys.meta_path):
            if finder is not self and spec is None and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module) -> None:
            self._patches.pop(name, None)
            run(module)
            patch(module)

        # On the loader that was found, not on one around it: what asks a module for its source finds it.
        spec.loader.exec_module = exec_module
        return spec
