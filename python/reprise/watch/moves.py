"""What goes through saves and loads, of whatever kind: the bookkeeping that all kinds share."""

from __future__ import annotations

import functools
import os
import sys
import threading
import types
from concurrent.futures import Future
from typing import Any, Callable, Optional

from .kill import Killer
from .records import Records
from .steps import Steps
from .values import Values

# A call from one of these modules belongs to a save or load that is told already, or to no checkpoint.
WITHIN = (
    *("torch.distributed.checkpoint", "torch.distributed.distributed_c10d", "torch.storage", "torch.multiprocessing"),
    *("megatron.core.dist_checkpointing", "safetensors", "reprise.torch", "reprise.megatron"),
)


class Move:
    """One save or load on its way through a call."""

    def __init__(self, moves: Moves, what: str, by: str, path: Any, asynchronous: bool) -> None:
        self._moves, self._what, self._by, self._asynchronous = moves, what, by, asynchronous
        self._path, self.told = path, False

    def tell(self, state: Any) -> None:
        """Says what is handed over, or what was loaded. Only the first call counts."""
        if not self.told:
            self.told = True
            self._moves.tell(self._what, self._by, self._path, state, self._asynchronous)

    def complete(self) -> None:
        self._moves.complete(self._path)

    def follow(self, save: Any) -> None:
        """Says when an asynchronous save is complete."""
        future = getattr(save, "upload_completion", save)
        if isinstance(future, Future):
            future.add_done_callback(self._moves.guarded(self._done))
            self._moves.began(future)

    def _done(self, future: Future) -> None:
        self._moves.done(self._path)
        if not future.cancelled() and future.exception() is None:
            self.complete()


class Moves:
    def __init__(self, records: Records, values: Values, steps: Steps, killer: Killer) -> None:
        self._records, self._values, self._steps, self._killer = records, values, steps, killer
        self._thread = threading.local()
        self._on_the_way: set[str] = set()  # paths of asynchronous saves
        self.guarded = records.guarded
        self.off = ""  # why nothing is told in this process, if so

    # ------------------------------------------------------------------------ around a call

    def enter(self, what: str, by: str, path: Any, asynchronous: bool = False) -> Optional[Move]:
        """A call begins that saves or loads; None if it is a part of another one."""
        if self.current() is not None or within(sys._getframe(2)):
            return None
        where = text_of(path)
        if where in self._on_the_way and not asynchronous:
            return None  # the call, in a thread of torch's, that makes an asynchronous save
        if asynchronous:
            self._on_the_way.add(where)
        move = Move(self, what, by, path, asynchronous)
        self._thread.move = move
        return move

    def leave(self) -> None:
        self._thread.move = None

    def current(self) -> Optional[Move]:
        return getattr(self._thread, "move", None)

    def saving(self, by: str, path_of: Callable, state_of: Callable, *, late: bool = False, asynchronous: Any = False):
        """Wraps a function that saves.

        Args:
            path_of, state_of: functions of its arguments.
            late: whether something within the call tells what is handed over.
            asynchronous: whether it returns before the save is complete, or a function of its arguments.
        """

        def around(real: Callable) -> Callable:
            def before(args, kwargs) -> Optional[Move]:
                later = asynchronous(*args, **kwargs) if callable(asynchronous) else asynchronous
                move = self.enter("save", by, path_of(*args, **kwargs), later)
                if move is not None and not late:
                    move.tell(state_of(*args, **kwargs))
                return move

            def after(move: Move, result: Any, args, kwargs) -> None:
                move.tell(state_of(*args, **kwargs))
                if move._asynchronous:
                    move.follow(result)
                else:
                    move.complete()

            return self._around(real, before, after)

        return around

    def loading(self, by: str, path_of: Callable, state_of: Callable):
        """Wraps a function that loads; `state_of` takes its result and its arguments."""

        def around(real: Callable) -> Callable:
            def before(args, kwargs) -> Optional[Move]:
                return self.enter("load", by, path_of(*args, **kwargs))

            def after(move: Move, result: Any, args, kwargs) -> None:
                move.tell(state_of(result, *args, **kwargs))

            return self._around(real, before, after)

        return around

    def _around(self, real: Callable, before: Callable, after: Callable) -> Callable:
        before, after = self._records.guarded(before), self._records.guarded(after)

        @functools.wraps(real)
        def call(*args, **kwargs):
            if self.off:
                self._not_told(real)
                return real(*args, **kwargs)
            move = before(args, kwargs)
            try:
                result = real(*args, **kwargs)
            finally:
                if move is not None:
                    self.leave()
            if move is not None:
                after(move, result, args, kwargs)
            return result

        return call

    # ------------------------------------------------------------------------ what is said

    def tell(self, what: str, by: str, path: Any, state: Any, asynchronous: bool) -> None:
        steps, where = self._steps, self._values.path(text_of(path))
        fields: dict[str, Any] = {"step": steps.count, "by": by, "path": where, "part": os.path.basename(where)}
        if steps.thread not in (None, threading.get_ident()):
            fields["thread"] = "other"
        if what == "save":
            fields["asynchronous"] = asynchronous
        self._records.say(what, **fields, leaves=self._values.leaves(state))
        steps.moved = steps.moved if steps.moved == "first" else what
        if what == "save":
            self._killer.at("save.begin", steps.count, where)

    def complete(self, path: Any) -> None:
        where = self._values.path(text_of(path))
        self._records.say("saved", step=self._steps.count, path=where)
        self._killer.at("save.written", self._steps.count, where)

    def done(self, path: Any) -> None:
        self._on_the_way.discard(text_of(path))

    def began(self, save: Future) -> None:
        self._killer.began(save, self._steps.count)

    def _not_told(self, real: Callable) -> None:
        name = f"{real.__module__}.{real.__qualname__}"
        self._records.guarded(self._records.say)("not_judged", name=name, why=self.off)


def within(frame: Optional[types.FrameType]) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(WITHIN):
            return True
        frame = frame.f_back
    return False


def text_of(path: Any) -> str:
    """A path as text: of a file that is open its name, of one in memory "(in memory)"."""
    name = path if isinstance(path, os.PathLike) else getattr(path, "name", path)
    if isinstance(name, (str, os.PathLike)):
        return os.path.abspath(os.fspath(name))
    return "(in memory)"
