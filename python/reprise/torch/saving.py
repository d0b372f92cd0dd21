"""Saves."""

from __future__ import annotations

import atexit
import copy
import ctypes
import logging
import os
import sys
import threading
import traceback
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Union

import torch.distributed as dist

from reprise import _c
from reprise.errors import Error

from .describe import State, flattened, is_tensor, pickled, state_dicts_of
from .job import Job, interruptible, job_of

STEP_NAMES = "step-%d"

_log = logging.getLogger("reprise")


@dataclass(frozen=True)
class UnequalCopy:
    """A value that is no tensor, or a part of a tensor, of which ranks hold different ones. The writer's is
    stored."""

    key: str
    offset: tuple[int, ...]  #: where the part begins; () for a value that is no tensor
    writer: int
    holders: tuple[int, ...]  #: ranks that hold another one


@dataclass(frozen=True)
class SaveResult:
    """A checkpoint that was committed."""

    path: str  #: directory of the checkpoint
    tensors: int  #: in the whole checkpoint
    objects: int  #: that are no tensors
    bytes: int  #: that this rank wrote
    planned: str  #: "fresh", "replanned" or "reused"
    staging_bytes: int  #: largest amount of memory that this rank used for copies
    waited_for_staging: bool  #: True if a copy had to wait for a write
    unequal: tuple[UnequalCopy, ...]  #: the same on all ranks
    log: tuple[str, ...]  #: messages for the operator, the same on all ranks


class Saving:
    """A save that is written in the background; ``begin_save`` makes it. ``poll`` and ``finish`` commit it,
    collectively; a save that nobody finishes is finished when the interpreter exits."""

    def __init__(
        self, job: Job, state: State, handle: ctypes.c_void_p, versions: Optional[list[int]]
    ) -> None:
        self._job = job
        self._versions = versions
        self._state: Optional[State] = state  # keeps the tensors' memory until it was copied
        self._handle = handle
        self._result: Optional[SaveResult] = None
        self._failure: Optional[BaseException] = None
        _in_flight.append(self)
        job.saves.append(self)
        if job.fabric is not None:
            _Exit.listen()

    def before_update(self) -> None:
        """Waits until the state has been copied; from then on it may change. Call it before the optimizer's
        step. Not collective."""
        with self._job.lock:
            if self._handle:
                self._job.check(_c.library().rp_save_wait_for_staging(self._handle))
            changed = self._changed()
            self._state = None
            if changed is not None:
                what = "this tensor was changed before before_update, so the save is given up"
                failure = Error("USAGE", what, key=changed)
                self.end(failure)
                self._job.leave(failure)
                raise failure

    def _changed(self) -> Optional[str]:
        """Returns the key of a tensor that was changed since the save began, if that is looked for."""
        if self._state is None or self._versions is None:
            return None
        kept = zip(self._state.kept, self._versions)
        return next((key for (key, tensor), before in kept if tensor._version != before), None)

    def poll(self) -> bool:
        """Returns True once the checkpoint is committed. Commits it if all ranks have written their parts;
        never waits for a rank that still writes."""
        with self._job.lock:
            if self._result is None:
                committed = ctypes.c_int32()
                self._end_if_it_fails(_c.library().rp_save_poll, ctypes.byref(committed))
                if committed.value:
                    self.finish()
            return self._result is not None

    def finish(self) -> SaveResult:
        """Waits until all ranks have written their parts, and commits. A second call returns the same."""
        with self._job.lock:
            if self._result is None:
                result = _c.SaveResult()
                self._end_if_it_fails(_c.library().rp_save_finish, ctypes.byref(result))
                self._result = _result_of(result)
                self.end(None)
                _tell(self._job, self._result)
            return self._result

    def _end_if_it_fails(self, call: Any, into: Any) -> None:
        if self._failure is not None:
            raise copy.copy(self._failure)
        with interruptible():  # whose Ctrl-C does not end a save that went well
            try:
                self._job.check(call(self._handle, into))
            except Error as error:
                self.end(error)
                raise

    def end(self, failure: Optional[BaseException]) -> None:
        """Frees the save, which is not committed if there is a failure; the calls that follow throw it."""
        self._failure = copy.copy(failure)
        if self in _in_flight:  # not in a forked child
            _in_flight.remove(self)
        self._job.saves.remove(self)
        _c.library().rp_save_free(self._handle)
        self._handle = ctypes.c_void_p()
        self._state = None


_in_flight: list[Saving] = []


class _Exit:
    """Whether the interpreter ends with a failure. For SystemExit it can't be asked, so sys.exit() is listened to
    while a save over several ranks is in flight; who throws it otherwise makes the others wait a while."""

    PATIENCE_SECONDS = 60.0
    status: Any = None
    usual: Any = None

    @classmethod
    def listen(cls) -> None:
        cls.status = None  # an earlier one has been caught
        if cls.usual is None:
            cls.usual, sys.exit = sys.exit, cls._noted  # type: ignore[assignment]

    @classmethod
    def _noted(cls, status: Any = None, /) -> None:
        if threading.current_thread() is threading.main_thread():
            cls.status = status
        cls.usual(status)

    @classmethod
    def has_failed(cls) -> bool:
        return cls.status not in (None, 0) or (hasattr(sys, "last_value") and not hasattr(sys, "ps1"))


@atexit.register
def _finish_all() -> None:
    for saving in list(_in_flight):
        try:
            fabric = saving._job.fabric
            if fabric is None or not _Exit.has_failed():
                if fabric is not None:
                    fabric.patience_seconds = _Exit.PATIENCE_SECONDS
                saving.finish()
            else:
                # It doesn't wait for the others, which may not come.
                fabric.leave(Error("PEER_FAILED", "the rank ended with an error, and a save in flight"))
                saving.before_update()  # threads may still read the tensors
        except Exception:  # the next one is finished all the same
            traceback.print_exc()


# A forked child, such as a worker that loads data, has no part in its parent's saves.
os.register_at_fork(after_in_child=_in_flight.clear)


def save(
    state_dict: Mapping[str, Any],
    path: Union[str, os.PathLike],
    *,
    step: Optional[int] = None,
    keep: Optional[int] = None,
    step_names: str = STEP_NAMES,
    replace: bool = True,
    checksums: str = "crc32",
    read_back: str = "before_older_goes",
    compare_tensors: bool = False,
    refuse_unequal: bool = False,
    structure: str = "state",
    process_group: Optional[dist.ProcessGroup] = None,
) -> SaveResult:
    """Saves a state dict, and returns when the checkpoint is committed and would survive a power cut.

    Args:
        state_dict: anything that ``dcp.save`` takes. Tensors of any strides, in memory of the CPU or of
            one CUDA device per rank.
        path: with a step the directory of all iterations, otherwise the checkpoint itself, a directory that
            holds nothing else.
        step: number of the iteration.
        keep: number of iterations to keep, the new one included; by default all.
        step_names: name of an iteration's directory, with one %d. With "iter_%07d", Megatron's tracker is
            kept, too.
        replace: False throws USAGE if the checkpoint exists.
        checksums: "crc32", "crc32+sha256" (adds a manifest, integrity.json) or "none".
        read_back: when each rank reads its file again: "before_older_goes", "always" or "never".
        compare_tensors: True also compares the copies of tensors on several ranks, which costs another
            read of their memory.
        refuse_unequal: True throws COMMON_STATE_DIVERGES if ranks hold copies that differ, of values that
            are no tensors or of tensors if those are compared; otherwise the result and the log name them.
        structure: name of this kind of state, whose plan the next save of it uses again.
        process_group: the ranks; by default all.

    Raises:
        reprise.Error: the same on all ranks; no checkpoint was added, and an existing one is intact.
    """
    options = options_of(
        path, step, keep, step_names, replace, checksums, read_back, structure
    )
    options.compare_tensors, options.refuse_unequal = compare_tensors, refuse_unequal
    with interruptible():
        return _began(_c.library().rp_save_all, state_dict, process_group, options).finish()


def begin_save(
    state_dict: Mapping[str, Any],
    path: Union[str, os.PathLike],
    *,
    step: Optional[int] = None,
    keep: Optional[int] = None,
    step_names: str = STEP_NAMES,
    replace: bool = True,
    checksums: str = "crc32",
    read_back: str = "before_older_goes",
    compare_tensors: bool = False,
    refuse_unequal: bool = False,
    structure: str = "state",
    staging_bytes: Optional[int] = None,
    check_updates: bool = False,
    process_group: Optional[dist.ProcessGroup] = None,
) -> Saving:
    """Begins a save and returns while the state is still being copied.

    Call ``before_update`` before the state changes, and ``poll`` now and then or ``finish``.

    Args:
        staging_bytes: most memory for copies; by default as much as this rank writes. With less, this call
            waits for writes. For tensors on a CUDA device it is pinned, which makes the first call slow; later
            ones use it again.
        check_updates: True looks in ``before_update`` whether a tensor was changed too early, and then throws
            USAGE with its key. For debugging: this rank gives up the save, and the others fail with it. It sees
            what torch and ``load`` change, but not kernels that write by pointer, such as those of other packages'
            fused optimizers.
        others: as in ``save``.
    """
    options = options_of(
        path, step, keep, step_names, replace, checksums, read_back, structure
    )
    options.compare_tensors, options.refuse_unequal = compare_tensors, refuse_unequal
    options.returns = _c.WHEN_QUEUED
    options.staging_bytes = _number(staging_bytes, "staging_bytes")
    with interruptible():
        return _began(
            _c.library().rp_begin_save, state_dict, process_group, options, check_updates
        )


def engine_path(path: Union[str, os.PathLike]) -> bytes:
    """Returns a path below the root, as the engine takes it."""
    return os.fsencode(os.path.abspath(path)).lstrip(b"/")


def path_of(directory: bytes) -> str:
    """Returns the path of a directory that the engine names."""
    return os.path.join("/", os.fsdecode(directory))


def _number(value: Optional[int], name: str) -> int:
    """Returns 0, which stands for the default, if there is no number."""
    if value is not None and value < 1:
        raise ValueError(f"{name}: {value} is less than 1")
    return value or 0


def options_of(
    path: Union[str, os.PathLike],
    step: Optional[int],
    keep: Optional[int],
    step_names: str,
    replace: bool,
    checksums: str,
    read_back: str,
    structure: str,
) -> _c.SaveOptions:
    for name, value, choices in (
        ("checksums", checksums, _c.CHECKSUMS),
        ("read_back", read_back, _c.READ_BACK),
    ):
        if value not in choices:
            raise ValueError(f"{name}: {value!r} is none of {', '.join(choices)}")
    return _c.SaveOptions(
        directory=engine_path(path),
        has_step=step is not None,
        step=step or 0,
        step_names=step_names.encode(),
        keep=_number(keep, "keep"),
        refuse_existing=not replace,
        structure=structure.encode(),
        checksums=_c.CHECKSUMS[checksums],
        read_back=_c.READ_BACK[read_back],
    )


def _began(
    call: Any,
    state_dict: Mapping[str, Any],
    group: Optional[dist.ProcessGroup],
    options: _c.SaveOptions,
    check_updates: bool = False,
) -> Saving:
    """Collective: if one rank can't describe its state, all throw."""

    def described() -> State:
        leaves, paths = flattened(state_dicts_of(state_dict))
        objects = {key: pickled(value) for key, value in leaves.items() if not is_tensor(value)}
        return State(leaves, paths, objects)

    return begun(call, job_of(group), described, options, check_updates)


def begun(
    call: Any,
    job: Job,
    described: Callable[[], State],
    options: _c.SaveOptions,
    check_updates: bool = False,
) -> Saving:
    """Begins a save of what ``described`` returns. Collective: if it throws on one rank, all throw."""

    def with_versions() -> tuple[State, Optional[list[int]]]:
        state = described()
        job.use_device(state.device)
        return state, [tensor._version for _, tensor in state.kept] if check_updates else None

    handle = ctypes.c_void_p()
    with job.lock:
        state, versions = job.on_all(with_versions)
        options.stream = state.stream
        job.check(call(job.handle, state.handle, ctypes.byref(options), ctypes.byref(handle)))
    return Saving(job, state, handle, versions)


def _result_of(result: _c.SaveResult) -> SaveResult:
    return SaveResult(
        path=path_of(result.directory),
        tensors=result.tensors,
        objects=result.objects,
        bytes=result.bytes,
        planned=_c.PLANNED[result.planned],
        staging_bytes=result.staging_bytes,
        waited_for_staging=bool(result.waited_for_staging),
        unequal=tuple(
            UnequalCopy(
                one.key.decode("utf-8", "replace"),
                tuple(one.offset[: one.ndim]),
                one.writer,
                tuple(one.holders[: one.holder_count]),
            )
            for one in result.unequal[: result.unequal_count]
        ),
        log=_c.texts(result.log, result.log_count),
    )


def _tell(job: Job, result: SaveResult) -> None:
    """One rank logs what an operator should know."""
    if job.fabric is None or job.fabric.rank == 0:
        for line in result.log:
            _log.info("%s: %s", result.path, line)
        for copy in result.unequal:
            _log.warning(
                "%s: ranks %s hold another '%s' than rank %d, whose is stored",
                result.path,
                ", ".join(map(str, copy.holders)),
                copy.key,
                copy.writer,
            )
