"""The engine's job of this process, and calls of the engine that Ctrl-C can end."""

from __future__ import annotations

import atexit
import contextlib
import copy
import ctypes
import functools
import os
import signal
import threading
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional, Sequence, TypeVar

import torch.distributed as dist

from reprise import _c
from reprise.errors import Error

from .fabric import Channel, TorchFabric, Used

T = TypeVar("T")


@dataclass(frozen=True)
class _Settings:
    threads: Optional[int] = None
    deadline_seconds: float = 1800.0


_settings = _Settings()


def configure(*, threads: Optional[int] = None, deadline_seconds: Optional[float] = None) -> None:
    """Changes settings for the calls that follow, the same on all ranks.

    Args:
        threads: number of threads that write and read memory of the CPU; a call that waits for large files gives
            each thread a file of its own. By default as many as there are cores for each rank of this host, at
            most 8.
        deadline_seconds: longest time that a rank waits for the others in one call, then DEADLINE.
    """
    global _settings
    _settings = _Settings(
        threads=_settings.threads if threads is None else threads,
        deadline_seconds=(
            _settings.deadline_seconds if deadline_seconds is None else deadline_seconds
        ),
    )


def _cores() -> int:
    """Returns how many cores of this host are there for each of its ranks, from 1 to 8."""
    ranks = os.environ.get("LOCAL_WORLD_SIZE") or (dist.get_world_size() if _world() is not None else 1)
    return min(max(len(os.sched_getaffinity(0)) // int(ranks), 1), 8)


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
        with contextlib.ExitStack() as handlers:  # which calls all, even if one throws
            for number, frame in reversed(came):
                handlers.callback(usual[number], number, frame)


class Job:
    """A job over some ranks of the world, or of this process alone. It lives until a call of its ranks fails, so
    that a save reuses the plan of the one before. One thread at a time uses it and its saves, which ``lock`` sees
    to.

    Attributes:
        saves: those in flight, each with ``end(failure)``.
    """

    def __init__(self, settings: _Settings, fabric: Optional[TorchFabric]) -> None:
        self._process, self._closed = os.getpid(), False
        self.handle = ctypes.c_void_p()
        self.lock = threading.RLock()
        self.fabric = fabric
        self.saves: list[Any] = []
        self._device: Optional[int] = None
        _all.add(self)
        self.options = _c.JobOptions(
            root=b"/",
            deadline_ns=int(settings.deadline_seconds * 1e9),
            threads=settings.threads or _cores(),
            interrupted=_c.Interrupted(_is_stopped),
            cuda_library=os.fsencode(os.environ.get("REPRISE_CUDA_LIBRARY", "")) or None,
        )
        if fabric is not None:
            self.options.fabric = _c.CALLBACKS
            self.options.rank, self.options.size = fabric.rank, fabric.size
            self.options.all_gather = _c.AllGather(functools.partial(_all_gather, fabric))
        _c.check(_c.library().rp_job_open(ctypes.byref(self.options), ctypes.byref(self.handle)))

    def leave(self, failure: BaseException) -> None:
        """Tells the other ranks, which may wait for this one, that it takes no part any more."""
        if self.fabric is not None:
            self.fabric.leave(failure)

    def use_device(self, index: Optional[int]) -> None:
        """Makes a CUDA device the one of the job's tensors; None changes nothing. Not collective: each rank has
        its own, or none."""
        if index is not None and index != self._device:
            _c.check(_c.library().rp_job_use_device(self.handle, index + 1))
            self._device = index

    def on_all(self, describe: Callable[[], T]) -> T:
        """Returns what ``describe`` returns. Collective: if it throws on one rank, all throw."""
        failure: Optional[Exception] = None
        try:
            described = describe()
        except Exception as error:
            failure = error
        except BaseException as error:  # which is to come out at once
            self.leave(error)
            raise
        if self.fabric is not None:
            self.fabric.agree(failure)
        elif failure is not None:
            raise failure
        return described

    def check(self, status: int) -> None:
        """Throws the error that a call of the engine returned, or what the fabric knows of it, which is more."""
        if status != 0 and self.fabric is not None and self.fabric.failure is not None:
            raise copy.copy(self.fabric.failure)
        _c.check(status)

    def close(self) -> None:
        """Ends the groups and frees the engine's job; saves in flight keep what they need of it."""
        if self._closed or self._process != os.getpid():  # a forked child has a part in neither
            return
        self._closed = True
        if self.fabric is not None:
            self.fabric.close()
        handle, self.handle = self.handle, ctypes.c_void_p()
        _c.library().rp_job_free(handle)

    __del__ = close


def _is_stopped(_context: Any) -> int:
    return _stop.asked


def _all_gather(fabric: TorchFabric, _context, members, count, mine, size, gathered) -> int:
    lib = _c.library()
    try:
        parts = fabric.gather(members[:count], ctypes.string_at(mine, size) if size else b"")
        for place, part in enumerate(parts):
            _c.check(lib.rp_gathered_put(gathered, place, part, len(part)))
        return 0
    except BaseException as error:  # a callback must not throw
        code, message = 0, f"{type(error).__name__}: {error}"
        if isinstance(error, Error):
            code, message = _c.numbers().get(error.code, 0), error.message
        lib.rp_gathered_fail(gathered, code, message.encode())
        return 1


_all: weakref.WeakSet[Job] = weakref.WeakSet()


class _Place:
    """Where the job of some ranks is kept."""

    def __init__(self, world: Optional[dist.ProcessGroup], name: str, earlier: int = 0) -> None:
        self.world = world
        self.lock = threading.RLock()
        self._name = name
        self._job: Optional[Job] = None
        self.number = 0  # of the job; the same on all ranks once each has heard why the one before has failed
        self._again = False
        self._earlier = earlier  # number of jobs of an earlier world that have failed

    def job(self, ranks: Optional[Sequence[int]]) -> Job:
        """Returns the job. Collective if there is none. Throws why another rank has left it, if this one
        doesn't know; the call after that opens the next."""
        fabric = None if self._job is None else self._job.fabric
        if fabric is not None:
            known = fabric.failure
            why = known or fabric.channel.left()
            if why is not None:
                self._forget(why)
                if known is None:
                    raise why
        while self._job is None:
            self._job = self._opened(ranks)
        return self._job

    def leave(self, ranks: Sequence[int], failure: BaseException) -> None:
        fabric = None if self._job is None else self._job.fabric
        if fabric is not None and fabric.failure is None:
            fabric.leave(failure)
            return
        if fabric is not None:
            self._forget(fabric.failure)
        self._channel(ranks).leave(failure)
        self._go_on()

    def _forget(self, why: Optional[Error]) -> None:
        """Ends the job, and its saves in flight: their groups are gone, and they hold the locks of directories."""
        assert self._job is not None
        with self._job.lock:
            for save in list(self._job.saves):
                save.end(why)
            self._job.close()
        self._job = None
        self._go_on()

    def _go_on(self) -> None:
        self.number += 1
        self._again = True

    def _channel(self, ranks: Sequence[int]) -> Channel:
        """Returns the next that no earlier world with the same store has used."""
        while True:
            channel = Channel(self._name, self.number, ranks, self._again)
            if not channel.is_used() and (self.number >= self._earlier or channel.left() is None):
                return channel
            self.number += 1

    def _opened(self, ranks: Optional[Sequence[int]]) -> Optional[Job]:
        """Returns nothing if an earlier world has used the number."""
        if ranks is None:
            return Job(_settings, None)
        channel = self._channel(ranks)
        try:
            why = channel.left()
            if why is not None:
                raise why
            return Job(_settings, TorchFabric(channel, _settings.deadline_seconds, lambda: _stop.asked))
        except Used:
            self.number += 1
            return None
        except BaseException as error:
            self._go_on()
            channel.leave(error)
            raise


_places: dict[tuple, _Place] = {}
_numbers: dict[tuple, int] = {}  # of the last jobs in places of earlier worlds, whose store this one may have
_finding = threading.Lock()
_inherited: Any = None  # the world in which this process was forked, where it is no rank


def _world() -> Optional[dist.ProcessGroup]:
    return dist.group.WORLD if dist.is_available() and dist.is_initialized() else None


def job_of(group: Optional[dist.ProcessGroup]) -> Job:
    """Returns the job over the ranks of a group, by default of all. Collective if there is none."""
    world = _world()
    if group is not None and group is dist.GroupMember.NON_GROUP_MEMBER:
        raise Error("USAGE", "this rank is not in the process group: only its members make the call", rank=dist.get_rank())
    return job_over(None if world is None else dist.get_process_group_ranks(group or world))


def job_over(ranks: Optional[Sequence[int]], purpose: str = "job") -> Job:
    """Returns the job over these ranks of the world, or of this process alone. Collective if there is none.
    Calls that may run in another thread at the same time have another purpose: on each rank another one of
    them could be first."""
    place = _place_of(ranks, purpose)
    with place.lock:
        return place.job(ranks)


def leave_job(ranks: Sequence[int], purpose: str, failure: BaseException) -> None:
    """Tells these ranks that this one does not come to the job's next call, because of a failure."""
    place = _place_of(ranks, purpose)
    with place.lock:
        place.leave(ranks, failure)


def _place_of(ranks: Optional[Sequence[int]], purpose: str) -> _Place:
    world = _world()
    if ranks is not None and world is _inherited:
        raise Error("USAGE", "a forked child can't save or load; do it in the rank itself")
    with _finding:
        # What an earlier world had ends here, but for saves that are still in flight.
        for key, place in list(_places.items()):
            if place.world is not None and place.world is not world:
                _numbers[key] = place.number
                del _places[key]
        key = (None if ranks is None else tuple(ranks), _settings, purpose)
        return _places.setdefault(key, _Place(None if ranks is None else world, str(key), _numbers.get(key, 0)))


@atexit.register
def _close_all() -> None:
    for job in list(_all):
        job.close()


def _begin_anew() -> None:
    """In a forked child: it has jobs of its own, and doesn't wait for a thread that it doesn't have."""
    global _finding, _inherited
    _finding = threading.Lock()
    _inherited = _world()
    for job in _all:
        job.lock = threading.RLock()
    _places.clear()


os.register_at_fork(after_in_child=_begin_anew)
