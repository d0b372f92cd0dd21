"""The engine's job of this process, and calls of the engine that Ctrl-C can end."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import threading
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional, Sequence, TypeVar

import torch.distributed as dist

from reprise import _c
from reprise.errors import Error

from .fabric import TorchFabric


T = TypeVar("T")


@dataclass(frozen=True)
class _Settings:
    threads: int = 1
    deadline_seconds: float = 1800.0


_settings = _Settings()


def configure(*, threads: Optional[int] = None, deadline_seconds: Optional[float] = None) -> None:
    """Changes settings for the calls that follow, the same on all ranks.

    Args:
        threads: number of threads that write.
        deadline_seconds: longest time that a rank waits for the others in one call, then DEADLINE.
    """
    global _settings
    _settings = _Settings(
        threads=_settings.threads if threads is None else threads,
        deadline_seconds=(
            _settings.deadline_seconds if deadline_seconds is None else deadline_seconds
        ),
    )


class _Stop:
    """Whether Ctrl-C came during a call of the engine."""

    asked = False


_stop = _Stop()


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within, SIGINT ends the engine's calls on all ranks. Handlers of signals, that for SIGINT too, are called
    afterwards: within a callback of the engine, what they throw would be lost."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = {
        number: handler
        for number in signal.valid_signals()
        if callable(handler := signal.getsignal(number))
    }
    came: list = []
    before = _stop.asked

    def note(number: int, frame: Any) -> None:
        came.append((number, frame))
        _stop.asked = _stop.asked or number == signal.SIGINT

    for number in usual:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in usual.items():
            signal.signal(number, handler)
        _stop.asked = before
        for number, frame in came:
            usual[number](number, frame)


class Job:
    """A job over some ranks of the world, or of this process alone. It lives as long as the process,
    so that a save reuses the plan of the one before. One thread at a time uses it and its saves, which
    ``lock`` sees to."""

    def __init__(self, ranks: Optional[Sequence[int]], settings: _Settings, name: str) -> None:
        self.handle = ctypes.c_void_p()
        self.lock = threading.RLock()
        self._lib = _c.library()
        self.fabric: Optional[TorchFabric] = None
        if ranks is not None:
            self.fabric = TorchFabric(ranks, settings.deadline_seconds, lambda: _stop.asked, name)
        self.options = _c.JobOptions(
            root=b"/",
            deadline_ns=int(settings.deadline_seconds * 1e9),
            threads=settings.threads,
            interrupted=_c.Interrupted(lambda _context: _stop.asked),
        )
        if self.fabric is not None:
            self.options.fabric = _c.CALLBACKS
            self.options.rank, self.options.size = self.fabric.rank, self.fabric.size
            self.options.all_gather = _c.AllGather(self._all_gather)
        _c.check(self._lib.rp_job_open(ctypes.byref(self.options), ctypes.byref(self.handle)))

    def on_all(self, describe: Callable[[], T]) -> T:
        """Returns what ``describe`` returns. Collective: if it throws on one rank, all throw."""
        failure: Optional[Exception] = None
        try:
            described = describe()
        except Exception as error:
            failure = error
        if self.fabric is not None:
            self.fabric.agree(failure)
        elif failure is not None:
            raise failure
        return described

    def _all_gather(self, _context, members, count, mine, size, gathered) -> int:
        try:
            assert self.fabric is not None
            parts = self.fabric.gather(members[:count], ctypes.string_at(mine, size) if size else b"")
            for place, part in enumerate(parts):
                _c.check(self._lib.rp_gathered_put(gathered, place, part, len(part)))
            return 0
        except BaseException as error:  # a callback must not throw
            code, message = 0, f"{type(error).__name__}: {error}"
            if isinstance(error, Error):
                code, message = _c.numbers().get(error.code, 0), error.message
            self._lib.rp_gathered_fail(gathered, code, message.encode())
            return 1


_jobs: dict[tuple, tuple[Job, Any]] = {}
_creating = threading.Lock()


def job_of(group: Optional[dist.ProcessGroup]) -> Job:
    """Returns the job over the ranks of a group, by default of all. Collective at the first call."""
    if dist.is_available() and dist.is_initialized():
        return job_over(dist.get_process_group_ranks(group or dist.group.WORLD))
    return job_over(None)


def job_over(ranks: Optional[Sequence[int]], purpose: str = "job") -> Job:
    """Returns the job over these ranks of the world, or of this process alone. Collective at the first call.
    Calls that may run in another thread at the same time have another purpose: on each rank another one of
    them could be first."""
    world = None if ranks is None else dist.group.WORLD
    name = (os.getpid(), id(world), None if ranks is None else tuple(ranks), _settings, purpose)
    with _creating:
        known = _jobs.get(name)
        if known is None:
            # Keeps the world, too, so that no other one gets its id.
            known = _jobs[name] = (Job(ranks, _settings, purpose), world)
        return known[0]


@atexit.register
def _close_all() -> None:
    for job, _ in _jobs.values():
        if job.fabric is not None:
            job.fabric.close()


def _renew_locks() -> None:
    global _creating
    _creating = threading.Lock()
    for job, _ in _jobs.values():
        job.lock = threading.RLock()


# A forked child gets an error from its parent's jobs, and doesn't wait for a thread that it doesn't have.
os.register_at_fork(after_in_child=_renew_locks)
