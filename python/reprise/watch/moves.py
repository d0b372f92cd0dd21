"""What goes through saves and loads, of whatever kind: the bookkeeping that all kinds share."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import types
import weakref
from concurrent.futures import Future
from typing import Any, Callable, Optional

from .kill import Killer
from .records import Records, told
from .steps import Steps
from .values import Values

# A call from one of these modules belongs to a save or load that is told already, or to no checkpoint.
WITHIN = (
    *("torch.distributed.checkpoint", "torch.distributed.distributed_c10d", "torch.storage"),
    *("torch.multiprocessing.reductions", "torch.multiprocessing.queue", "torch.multiprocessing.pool"),
    *("megatron.core.dist_checkpointing", "safetensors", "reprise.torch", "reprise.megatron"),
)


MEMORY = "(in memory)"


class Move:
    """One save or load on its way through a call.

    Attributes:
        late: whether something within the call tells what is handed over or loaded.
    """

    def __init__(self, moves: Moves, what: str, by: str, path: Any, asynchronous: bool, late: bool) -> None:
        self._moves, self._what, self._by = moves, what, by
        self.path, self.asynchronous, self.late, self._told = path, asynchronous, late, False
        self.keys: Optional[Callable] = None  # of what is handed over, those under which it is to be stored
        self._wanted: set[str] = set()
        self._began = time.time()

    def fail(self, error: BaseException) -> None:
        """Says that a load failed."""
        if self._what == "load" and not self._told:
            self._told = True
            self._moves.tell(self._what, self._by, self.path, {}, False, error=told(error))

    def tell(self, state: Any) -> None:
        """Says what is handed over, or what was loaded. Only the first call counts."""
        if not self._told:
            self._told = True
            self._wanted = self.keys(state) if self.keys is not None else set()
            self.keys = None  # it holds what the call was given
            self._moves.tell(self._what, self._by, self.path, state, self.asynchronous)

    def complete(self) -> None:
        """The save is on disk."""
        self._moves.complete(self.path, missing(self._wanted, self.path, self._began))

    def follow(self, save: Any) -> None:
        """Says when an asynchronous save is complete: a future of torch's, a request of Megatron-Core's, or an
        object whose finish() completes it."""
        future = getattr(save, "upload_completion", save)
        by_thread = isinstance(future, Future)
        if not by_thread:
            future = Future()
            if hasattr(save, "add_finalize_fn"):
                save.add_finalize_fn(functools.partial(future.set_result, None))
            else:
                self._moves.unfinished[save] = future
        told: Future = Future()  # a kill waits for the record of the save, which follows the save

        def tell(save: Future) -> None:
            self._moves.guarded(self._done)(save)
            told.set_result(None)

        future.add_done_callback(tell)
        self._moves.began(told, by_thread)

    def _done(self, future: Future) -> None:
        self._moves.done(self.path)
        if not future.cancelled() and future.exception() is None:
            self.complete()


class Moves:
    """Attributes:
    off: why nothing is told in this process, if so.
    loaded: whether a load was told.
    """

    def __init__(
        self, records: Records, values: Values, steps: Steps, killer: Killer, work: str, begin: Callable[[], None]
    ) -> None:
        """A save outside of the directory `work` is refused. `begin` is called if that is to be recorded."""
        self._work, self._begin = work and os.path.realpath(work), begin
        self._records, self._values, self._steps, self._killer = records, values, steps, killer
        self._thread = threading.local()
        self._on_the_way: set[str] = set()  # paths of asynchronous saves
        self.unfinished: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # saves that finish() completes
        self.guarded = records.guarded
        self.off = ""
        self.loaded = False

    # ------------------------------------------------------------------------ around a call

    def enter(self, what: str, by: str, path: Any, asynchronous: bool, late: bool) -> Optional[Move]:
        """A call begins that saves or loads; None if it is a part of another one."""
        if self.current() is not None or within(sys._getframe(2)):
            return None
        where = text_of(path)
        if where in self._on_the_way and not asynchronous:
            return None  # the call, in a thread of torch's, that makes an asynchronous save
        if what == "save" and self._work and is_outside(where, self._work):
            self._refuse(where)
        if asynchronous:
            self._on_the_way.add(where)
        move = Move(self, what, by, path, asynchronous, late)
        self._thread.move = move
        return move

    def _refuse(self, where: str) -> None:
        """Ends the process before it writes what all lives would share."""
        self._begin()
        self._records.say("outside", path=where)
        print(f"reprise watch: a save to {where} was refused: it is outside of the life's directory", file=sys.stderr)
        os._exit(1)

    def leave(self) -> None:
        self._thread.move = None

    def current(self) -> Optional[Move]:
        return getattr(self._thread, "move", None)

    def saving(self, by: str, path_of: Callable, state_of: Callable, *, late=False, asynchronous: Any = False, keys=None):
        """Wraps a function that saves.

        Args:
            path_of, state_of: functions of its arguments.
            late: whether something within the call tells what is handed over.
            asynchronous: whether it returns before the save is complete, or a function of its arguments.
            keys: function of what is handed over and of its arguments: the keys under which a directory with
                .metadata must have it.
        """

        def around(real: Callable) -> Callable:
            def before(args, kwargs) -> Optional[Move]:
                later = asynchronous(*args, **kwargs) if callable(asynchronous) else asynchronous
                move = self.enter("save", by, path_of(*args, **kwargs), later, late)
                if move is not None:
                    move.keys = keys and (lambda state: keys(state, *args, **kwargs))
                if move is not None and not late:
                    move.tell(state_of(*args, **kwargs))
                return move

            def after(move: Move, result: Any, args, kwargs) -> None:
                move.tell(state_of(*args, **kwargs))
                if move.asynchronous:
                    move.follow(result)
                else:
                    move.complete()

            return self._around(real, before, after)

        return around

    def loading(self, by: str, path_of: Callable, state_of: Callable, *, late: bool = False):
        """Wraps a function that loads; `state_of` takes its result and its arguments."""

        def around(real: Callable) -> Callable:
            def before(args, kwargs) -> Optional[Move]:
                return self.enter("load", by, path_of(*args, **kwargs), False, late)

            def after(move: Move, result: Any, args, kwargs) -> None:
                move.tell(state_of(result, *args, **kwargs))

            return self._around(real, before, after)

        return around

    def _around(self, real: Callable, before: Callable, after: Callable) -> Callable:
        before, after = self._records.guarded(before), self._records.guarded(after)
        failed = self._records.guarded(Move.fail)

        @functools.wraps(real)
        def call(*args, **kwargs):
            if self.off:
                self._not_told(real)
                return real(*args, **kwargs)
            move = before(args, kwargs)
            try:
                result = real(*args, **kwargs)
            except BaseException as error:
                if move is not None:
                    self.leave()
                    failed(move, error)
                raise
            if move is not None:
                self.leave()
                after(move, result, args, kwargs)
            return result

        return call

    # ------------------------------------------------------------------------ what is said

    def tell(self, what: str, by: str, path: Any, state: Any, asynchronous: bool, **more: Any) -> None:
        steps, where = self._steps, self._values.path(text_of(path))
        fields: dict[str, Any] = {"step": steps.count, "by": by, "path": where, "part": os.path.basename(where)}
        if steps.thread not in (None, threading.get_ident()):
            fields["thread"] = "other"
        if what == "save":
            fields["asynchronous"] = asynchronous
        self.loaded = self.loaded or what == "load"
        self._records.say(what, **fields, **more, leaves=self._values.leaves(state))
        steps.moved = steps.moved if steps.moved == "first" else what
        if what == "save":
            self._killer.at("save.begin", steps.count, where)

    def complete(self, path: Any, not_stored: list[str]) -> None:
        where = self._values.path(text_of(path))
        if not_stored:
            self._records.say("not_stored", step=self._steps.count, path=where, names=not_stored)
        self._records.say("saved", step=self._steps.count, path=where)
        self._killer.at("save.written", self._steps.count, where)

    def done(self, path: Any) -> None:
        self._on_the_way.discard(text_of(path))

    def began(self, save: Future, by_thread: bool) -> None:
        self._killer.began(save, self._steps.count, by_thread)

    def finishing(self, real: Callable) -> Callable:
        """Wraps the method that completes an asynchronous save."""

        @functools.wraps(real)
        def finish(save, *args, **kwargs):
            result = real(save, *args, **kwargs)
            future = self.unfinished.pop(save, None)
            if future is not None:
                future.set_result(None)
            return result

        return finish

    def renaming(self, real: Callable) -> Callable:
        """Wraps os.rename and os.replace: a file of the life's must not become one that all lives share."""
        refuse = self._records.guarded(self._refuse_renaming)

        @functools.wraps(real)
        def rename(src, dst, *args, **kwargs):
            refuse(src, dst)
            return real(src, dst, *args, **kwargs)

        return rename

    def _refuse_renaming(self, src: Any, dst: Any) -> None:
        inside, where = text_of(src), text_of(dst)
        if self._work and is_outside(where, self._work) and not is_outside(inside, self._work):
            self._refuse(where)

    def _not_told(self, real: Callable) -> None:
        if within(sys._getframe(2)):
            return
        name = f"{real.__module__}.{real.__qualname__}"
        self._records.guarded(self._records.say)("not_judged", name=name, why=self.off)


def missing(wanted: set[str], path: Any, began: float) -> list[str]:
    """Those of the keys that a directory with .metadata of torch's has not, if it is of a save that began then."""
    try:
        if not wanted or os.stat(os.path.join(path, ".metadata")).st_mtime < began - 1:
            return []
    except (OSError, TypeError):
        return []  # another rank writes it later, or it is stored elsewhere
    from torch.distributed.checkpoint import FileSystemReader

    stored = set(FileSystemReader(path).read_metadata().state_dict_metadata)
    whole = {key.split("/shard_")[0] for key in stored}
    return sorted(wanted - stored - whole)


def within(frame: Optional[types.FrameType]) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(WITHIN):
            return True
        frame = frame.f_back
    return False


def text_of(path: Any) -> str:
    """A path as text: of a file that is open its name, of one in memory "(in memory)"."""
    name = path if isinstance(path, os.PathLike) else getattr(path, "name", path)
    if not isinstance(name, (str, os.PathLike)):
        return MEMORY
    text = os.fspath(name)
    return text if "://" in text else os.path.abspath(text)


def is_outside(where: str, work: str) -> bool:
    """Whether a save goes to a file or an address outside of the directory."""
    if where == MEMORY or (where.startswith("/dev/") and not where.startswith("/dev/shm/")):
        return False
    return "://" in where or not os.path.realpath(where).startswith(work.rstrip(os.sep) + os.sep)
