"""Loads."""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import os
from dataclasses import dataclass
from typing import Any, Iterator, Optional, Union

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.stateful import Stateful

from reprise import _c

from .describe import State, flattened, in_order, is_tensor, put_back, state_dicts_of
from .job import Job, interruptible, job_of
from .saving import STEP_NAMES, engine_path, path_of

_log = logging.getLogger("reprise")

NOT_LOADED = b"\0"  # what stands in for a value until it is loaded


@dataclass(frozen=True)
class LoadResult:
    """What was loaded, and what was not."""

    path: str  #: directory of the checkpoint
    step: Optional[int]  #: its iteration, if it is one
    loaded: tuple[str, ...]  #: keys of this rank that were filled
    not_stored: tuple[str, ...]  #: keys that were asked for and are not in the checkpoint; with strict none
    not_requested: tuple[str, ...]  #: stored keys that no rank asked for; not looked for with strict
    fell_back_from: tuple[str, ...]  #: newer checkpoints that are damaged, and why
    bytes_read: int  #: bytes of elements that this rank read
    log: tuple[str, ...]  #: messages for the operator


def load(
    state_dict: dict[str, Any],
    path: Union[str, os.PathLike],
    *,
    step: Optional[int] = None,
    strict: bool = True,
    missing_ok: bool = False,
    newest_whole: bool = True,
    step_names: str = STEP_NAMES,
    read_once: bool = False,
    process_group: Optional[dist.ProcessGroup] = None,
) -> Optional[LoadResult]:
    """Loads a checkpoint into a state dict, in place, whatever layout it was saved with.

    Tensors are filled where they are; values that are no tensors are replaced in the dict, and for a
    ``Stateful`` object its load_state_dict() is called, as ``dcp.load`` does. Checksums are verified.
    Shapes and element types must be those that are stored. Values that are no tensors are unpickled, so
    load only what you trust.

    Args:
        state_dict: says what is wanted. It may want less than is stored.
        path: a checkpoint, or a directory with iterations.
        step: iteration to load; by default the newest.
        strict: False leaves alone what is wanted and not stored, and the result names it.
        missing_ok: True returns None if nothing was ever saved there.
        newest_whole: if the newest iteration is damaged, goes on to the one before.
        step_names: see ``save``.
        read_once: each byte that several ranks need is read by one, and sent to the others.
        process_group: the ranks; by default all.

    Raises:
        reprise.Error: the same on all ranks. NOT_FOUND, INCOMPLETE_SELECTED, NOT_STORED, SHAPE_DRIFT,
            DTYPE_DRIFT leave the state dict as it was. After CHECKSUM, TORN_FILE and others that come
            while elements are read, tensors hold 0xBD.
    """
    options = _c.LoadOptions(
        directory=engine_path(path if step is None else os.path.join(path, step_names % step)),
        step_names=step_names.encode(),
        strictness=_c.RAISE_UNEXPECTED if strict else _c.RETURN_ALL,
        verify_checksums=True,
        newest_whole=newest_whole,
        read_once=read_once,
        if_any=missing_ok,
    )
    with interruptible():
        return _loaded(state_dict, process_group, options)


def _loaded(
    state_dict: dict[str, Any], group: Optional[dist.ProcessGroup], options: _c.LoadOptions
) -> Optional[LoadResult]:
    """Collective: if one rank can't describe what it wants, all throw."""
    job = job_of(group)

    def described() -> tuple[dict[str, Any], dict[str, tuple], list[str], dict[str, Any], State]:
        own = state_dicts_of(state_dict)
        leaves, paths = flattened(own)
        objects = [key for key, value in leaves.items() if not is_tensor(value)]
        return leaves, paths, objects, own, State(leaves, {}, dict.fromkeys(objects, NOT_LOADED))

    with job.lock:
        leaves, paths, objects, own, state = job.on_all(described)
        with filled(job, state, options) as found:
            result = _result_of(found, leaves)
    if result is None:
        return None
    with torch.no_grad():
        for tensor, copy in state.stand_ins:
            tensor.copy_(copy)
    for key in objects:
        if key not in result.not_stored:
            put_back(own, paths[key], _unpickled(state.bytes_of(key)))
    for key in in_order(state_dict):
        value = state_dict[key]
        if isinstance(value, Stateful):
            value.load_state_dict(own[key])
        else:
            state_dict[key] = own[key]
    return result


@contextlib.contextmanager
def filled(job: Job, state: State, options: _c.LoadOptions) -> Iterator[_c.LoadResult]:
    """Fills a state, and gives what was found, which is valid within. Collective; the caller has the job's lock."""
    lib, handle, found = _c.library(), ctypes.c_void_p(), _c.LoadResult()
    job.on_all(lambda: job.use_device(state.device))
    options.stream = state.stream
    job.check(
        lib.rp_load_all(
            job.handle,
            state.handle,
            ctypes.byref(options),
            ctypes.byref(handle),
            ctypes.byref(found),
        )
    )
    try:
        absent = set(_c.texts(found.not_stored, found.not_stored_count))
        for key, tensor in state.kept if found.found else ():
            if key not in absent and not tensor.is_inference():  # which has no version
                torch.autograd.graph.increment_version(tensor)  # as torch does for what it fills
        if job.fabric is None or job.fabric.rank == 0:
            for damaged in _passed_over(found):
                _log.warning("passed over %s", damaged)
        yield found
    finally:
        lib.rp_load_free(handle)


def _unpickled(content: bytes) -> Any:
    # As torch's default planner does: these are values of any class.
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=False)


def _passed_over(found: _c.LoadResult) -> tuple[str, ...]:
    """Returns newer checkpoints that are damaged, and why. The engine's paths are below the job's root, /."""
    return tuple(f"/{text}" for text in _c.texts(found.fell_back_from, found.fell_back_from_count))


def _result_of(found: _c.LoadResult, leaves: dict[str, Any]) -> Optional[LoadResult]:
    if not found.found:
        return None
    not_stored = _c.texts(found.not_stored, found.not_stored_count)
    absent = set(not_stored)
    return LoadResult(
        path=path_of(found.directory),
        step=found.step if found.has_step else None,
        loaded=tuple(key for key in leaves if key not in absent),
        not_stored=not_stored,
        not_requested=_c.texts(found.not_requested, found.not_requested_count),
        fell_back_from=_passed_over(found),
        bytes_read=found.bytes_read,
        log=_c.texts(found.log, found.log_count),
    )
