"""Finds the objects of a script by the names under which it has them: from the variables of the functions
that run, over attributes and containers. Nothing of the script is called, and nothing is changed."""

from __future__ import annotations

import inspect
import sys
import types
import weakref
from collections import deque
from typing import Any, Iterator

from .values import Opaque, attributes

DEEP = 5  # steps from a variable
ENTRIES = 256  # a longer container is data, not structure
OBJECTS = 20_000  # looked at in one search
STANDARD = getattr(sys, "stdlib_module_names", frozenset()) | {
    *("abc", "argparse", "asyncio", "builtins", "concurrent", "ctypes", "enum", "functools", "importlib", "inspect"),
    *("io", "logging", "multiprocessing", "pathlib", "random", "re", "runpy", "socket", "subprocess", "threading"),
    *("types", "typing", "weakref"),
}
CLOSED = STANDARD | {"numpy", "torch", "reprise", "triton", "tqdm"}  # packages whose objects are not entered
READ_LOCALS = {"locals", "vars", "eval", "exec", "dir"}  # functions that use one of these are not looked into
OPEN = ("torch.utils.data",)  # except these


# What is looked at by its type alone: isinstance would run code of an object that stands for another.
PASSED_OVER = (type, types.ModuleType, types.FunctionType, str, int, float, *weakref.ProxyTypes)


class Search:
    """Attributes:
    whole: whether all was looked at; if not, more than OBJECTS could be reached.
    """

    def __init__(self) -> None:
        self.whole = True

    def objects(self, frame: types.FrameType) -> Iterator[tuple[str, Any]]:
        """Yields each object once, with the shortest path of names to it, beginning with the functions that
        called `frame`, the innermost first; then what the modules of these functions hold."""
        seen: set[int] = set()
        waiting: deque = deque()
        for name, value in variables(frame):
            waiting.append((name, value, 0))
        while waiting:
            name, value, depth = waiting.popleft()
            if id(value) in seen or issubclass(type(value), PASSED_OVER):
                continue
            if len(seen) >= OBJECTS:
                self.whole = False
                return
            seen.add(id(value))
            yield name, value
            if depth < DEEP:
                waiting.extend((joined(name, key), part, depth + 1) for key, part in inside(value))


def joined(name: str, key: Any) -> str:
    return f"{name}.{key}" if name and key != "" else name or str(key)


def variables(frame) -> Iterator[tuple[str, Any]]:
    """Name and value of the variables of this function and its callers, then of their modules."""
    modules: dict[int, dict] = {}
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).split(".")[0]
        if package not in CLOSED:
            found = local_variables(frame)
            modules.setdefault(id(frame.f_globals), frame.f_globals)
            # `self.ema` is told as `ema`, as it would be in a script without classes.
            yield from (("" if name == "self" else name, value) for name, value in found if not name.startswith("__"))
        frame = frame.f_back
    for names in modules.values():
        if str(names.get("__name__", "")).split(".")[0] not in CLOSED:
            yield from [(name, value) for name, value in list(names.items()) if not name.startswith("__")]


def local_variables(frame) -> list[tuple[str, Any]]:
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        return []  # a module, whose variables come with those of its functions
    if sys.version_info >= (3, 13):
        return list(frame.f_locals.items())
    # Before, f_locals is one dict of the frame's, which locals() gives to the script, too.
    if READ_LOCALS & set(frame.f_code.co_names):
        return []
    shared = frame.f_locals
    found = list(shared.items())
    shared.clear()  # it would keep the values alive
    return found


def inside(value: Any) -> list[tuple[Any, Any]]:
    """Name and value of what an object holds, if it is structure."""
    kind = type(value)
    if issubclass(kind, dict):
        return list(dict.items(value)) if len(value) <= ENTRIES else []
    if issubclass(kind, (list, tuple, deque)):
        return list(enumerate(value)) if len(value) <= ENTRIES else []
    if issubclass(kind, types.MethodType):
        return [("", value.__self__)]
    module = str(kind.__module__)
    torch = sys.modules.get("torch")
    if module.split(".")[0] in CLOSED and not module.startswith(OPEN):
        return []
    if torch is not None and issubclass(kind, torch.Tensor):
        return []
    if torch is not None and issubclass(kind, torch.nn.Module):
        return module_attributes(value)  # which may be objects of the script, as Lightning's has its trainer
    try:
        return [(key, part) for key, part in attributes(value).items() if not str(key).startswith("__")]
    except (Opaque, RuntimeError):
        return []


def module_attributes(module) -> list[tuple[Any, Any]]:
    own = ("_parameters", "_buffers", "_modules")
    return [(key, part) for key, part in attributes(module).items() if key not in own and not key.endswith("_hooks")]
