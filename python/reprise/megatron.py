"""Saves and loads the sharded state dicts of Megatron-Core, in its format ``torch_dist``.

    import reprise.megatron as rm

    rm.save(sharded_state_dict, "run", step=100, keep=3)     # run/iter_0000100, and the tracker
    state_dict = rm.load(sharded_state_dict, "run")

``save`` and ``load`` stand for those of ``megatron.core.dist_checkpointing``, and each reads what the
other wrote, bit for bit. A checkpoint is committed as a whole, with ``common.pt`` and ``metadata.json``.
Under ``SaveStrategy`` Megatron-Core writes some of these itself, into the committed directory.

Megatron-Core 0.16 or later. Calls are collective over all ranks.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, Callable, Iterator, Optional, Union

import torch
from megatron.core.dist_checkpointing import dict_utils, mapping, state_dict_utils, validation
from megatron.core.dist_checkpointing.mapping import (
    ShardedBase,
    ShardedObject,
    ShardedTensor,
    is_main_replica,
)
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncRequest
from megatron.core.dist_checkpointing.strategies.torch import (
    TorchDistLoadShardedStrategy,
    TorchDistSaveShardedStrategy,
)
from megatron.core.dist_checkpointing.utils import (
    _clean_metadata_for_serialization,
    extract_sharded_base,
    force_all_tensors_to_non_fp8,
)
from megatron.core.dist_checkpointing.validation import StrictHandling
from megatron.core.fp8_utils import dequantize_fp8_tensor, is_float8tensor

import reprise.torch  # noqa: F401  says what is wrong if this is another package of that name
from reprise import _c
from reprise.errors import Error
from reprise.torch.describe import Parts, State, pickled
from reprise.torch.job import Job, interruptible, job_of
from reprise.torch.loading import NOT_LOADED, filled
from reprise.torch.saving import SaveResult, Saving, begun, engine_path, options_of, path_of

__all__ = ["Error", "LoadStrategy", "SaveResult", "SaveStrategy", "Saving", "begin_save", "load", "save"]

STEP_NAMES = "iter_%07d"  # with the tracker latest_checkpointed_iteration.txt beside them
COMMON_FILE, COMMON_KEY = "common.pt", "common_state"
CONTENT_KEY = "content_metadata"  # in the common state


_Path = Union[str, os.PathLike]
_Preprocess = Callable[[dict], dict]
_Described = tuple[dict, bytes, Optional[Callable[[], None]]]


def save(
    sharded_state_dict: dict,
    checkpoint_dir: _Path,
    *,
    validate_access_integrity: bool = True,
    async_sharded_save: bool = False,
    preprocess_common_before_consistancy_check: Optional[_Preprocess] = None,
    content_metadata: Optional[dict] = None,
    **options: Any,
) -> Union[SaveResult, AsyncRequest]:
    """Saves a sharded state dict, and returns when the checkpoint is committed and would survive a power
    cut.

    Args:
        sharded_state_dict: as ``dist_checkpointing.save`` takes it, and changes it. Of what is not sharded,
            rank 0's is stored.
        checkpoint_dir: with a step the directory of all iterations, whose tracker is kept; otherwise the
            checkpoint itself, a directory that holds nothing else.
        async_sharded_save: True returns when the state has been copied, with a request for Megatron's queue of
            asynchronous calls. The save is written in threads of this process, and finished when the queue
            looks at it next, so that call waits for the writes. ``begin_save`` can be polled.
        validate_access_integrity, preprocess_common_before_consistancy_check, content_metadata: see
            ``dist_checkpointing.save``.
        options: step, keep, replace, checksums, read_back, structure, as in ``reprise.torch.save``.

    Raises:
        reprise.Error: the same on all ranks; no checkpoint was added, and an existing one is intact.
        Exception: what Megatron-Core found in this rank's state; the other ranks get a reprise.Error.
    """
    call = _c.library().rp_begin_save if async_sharded_save else _c.library().rp_save_all
    checks = validate_access_integrity, preprocess_common_before_consistancy_check
    saving = _begun(call, sharded_state_dict, content_metadata, checks, _options(checkpoint_dir, **options))
    return _request(saving) if async_sharded_save else saving.finish()


def begin_save(
    sharded_state_dict: dict,
    checkpoint_dir: _Path,
    *,
    validate_access_integrity: bool = True,
    preprocess_common_before_consistancy_check: Optional[_Preprocess] = None,
    content_metadata: Optional[dict] = None,
    check_updates: bool = False,
    **options: Any,
) -> Saving:
    """Begins a save and returns while the state is still being copied. Call ``before_update`` before the
    optimizer's step, and ``poll`` now and then or ``finish``. Arguments are those of ``save``, and
    ``check_updates`` of ``reprise.torch.begin_save``."""
    how = _options(checkpoint_dir, **options)
    how.returns = _c.WHEN_QUEUED
    checks = validate_access_integrity, preprocess_common_before_consistancy_check
    return _begun(_c.library().rp_begin_save, sharded_state_dict, content_metadata, checks, how, check_updates)


def load(
    sharded_state_dict: dict,
    checkpoint_dir: _Path,
    *,
    validate_access_integrity: bool = True,
    strict: Union[str, StrictHandling] = StrictHandling.ASSUME_OK_UNEXPECTED,
    step: Optional[int] = None,
    missing_ok: bool = False,
    newest_whole: bool = True,
    read_once: bool = False,
) -> Union[dict, tuple[dict, set[str], set[str]], None]:
    """Loads a checkpoint, whatever layout it was saved with, and returns a state dict.

    Checksums are verified. Element types must be those that are stored. What is not a tensor is unpickled as
    Megatron-Core does.

    Args:
        sharded_state_dict: what is wanted, as ``dist_checkpointing.load`` takes it. Tensors that it has are
            filled where they are.
        checkpoint_dir: a checkpoint, or a directory with iterations, of which the newest is loaded.
        validate_access_integrity, strict: see ``dist_checkpointing.load``. Objects are compared one by one.
        step: iteration to load from a directory with iterations.
        missing_ok: True returns None, on all ranks, if nothing was ever saved there.
        newest_whole, read_once: see ``reprise.torch.load``.

    Returns:
        The state dict; with "return_unexpected" or "return_all" also the keys that are stored and that no
        rank asked for, and those that this rank asked for and that are not stored.

    Raises:
        reprise.Error: as ``reprise.torch.load``; NOT_REQUESTED with "raise_all".
    """
    strict = validation.parse_strict_flag(strict)
    path = checkpoint_dir if step is None else os.path.join(checkpoint_dir, STEP_NAMES % step)
    options = _load_options(path, _ENGINE_STRICT[strict])
    options.if_any, options.newest_whole, options.read_once = missing_ok, newest_whole, read_once

    def described() -> tuple[dict, _Wanted, dict, dict]:
        force_all_tensors_to_non_fp8(sharded_state_dict)
        state_dict, local, factories = state_dict_utils.load_preprocess(sharded_state_dict)
        sharded, _ = extract_sharded_base(state_dict)
        return sharded, _Wanted(sharded), local, factories

    with interruptible():
        job = job_of(None)
        with job.lock:
            sharded, wanted, local, factories = job.on_all(described)
            if validate_access_integrity:
                job.on_all(lambda: _validate(sharded))
            found = _Found(job, wanted.state(b""), options)
    if found.path is None:
        return None
    state_dict = _common_of(found)
    loaded = wanted.filled(found)
    dict_utils.merge(state_dict, local)
    dict_utils.merge(state_dict, loaded)
    mapping.apply_factory_merges(state_dict, factories)
    missing, unexpected = wanted.mismatch(found)
    if strict in (StrictHandling.LOG_UNEXPECTED, StrictHandling.LOG_ALL):
        validation.maybe_report_missing_and_unexpected_keys(missing, unexpected, raise_error=False)
    if StrictHandling.requires_returning_mismatch_keys(strict):
        return state_dict, missing, unexpected
    return state_dict


_ENGINE_STRICT = {
    StrictHandling.ASSUME_OK_UNEXPECTED: _c.RAISE_UNEXPECTED,
    StrictHandling.RAISE_UNEXPECTED: _c.RAISE_UNEXPECTED,
    StrictHandling.RAISE_ALL: _c.RAISE_ALL,
    StrictHandling.LOG_UNEXPECTED: _c.RETURN_UNEXPECTED,
    StrictHandling.RETURN_UNEXPECTED: _c.RETURN_UNEXPECTED,
    StrictHandling.LOG_ALL: _c.RETURN_ALL,
    StrictHandling.RETURN_ALL: _c.RETURN_ALL,
    StrictHandling.IGNORE_ALL: _c.RETURN_ALL,
}


class SaveStrategy(TorchDistSaveShardedStrategy):
    """For ``dist_checkpointing.save(state, path, sharded_strategy=SaveStrategy())``, also within
    FullyParallelSaveStrategyWrapper. Options are those of ``save`` but for the step. The ``metadata.json`` is
    written by Megatron-Core after the commit, so ``save`` of this module is the safer call.

    Attributes:
        result: what the last save committed, or None.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("torch_dist", 1)
        if "step" in options or "keep" in options:
            raise ValueError("Megatron-Core names the directory, so a strategy has neither step nor keep")
        _options("", **options)  # throws if they make no sense
        self._reprise_options = options
        self.result: Optional[SaveResult] = None

    def save(self, sharded_state_dict: dict, checkpoint_dir: _Path) -> None:
        self.result = self._begun(_c.library().rp_save_all, sharded_state_dict, checkpoint_dir).finish()

    def async_save(
        self, sharded_state_dict: dict, checkpoint_dir: _Path, async_strategy: str = "mcore"
    ) -> AsyncRequest:
        if async_strategy != "mcore":
            raise Error("UNSUPPORTED", f"async_strategy={async_strategy!r}; the engine serves 'mcore'")
        return _request(self._begun(_c.library().rp_begin_save, sharded_state_dict, checkpoint_dir))

    def _begun(self, call: Any, sharded: dict, checkpoint_dir: _Path) -> Saving:
        def described() -> _Described:
            # Up to 0.18 the common state has been written by now. The commit replaces the directory.
            file = Path(checkpoint_dir, COMMON_FILE)
            stores = any(one.key == COMMON_KEY for one in dict_utils.nested_values(sharded))
            return sharded, file.read_bytes() if _leads() and not stores and file.exists() else b"", None

        return _begun_with(call, described, _options(checkpoint_dir, **self._reprise_options))


class LoadStrategy(TorchDistLoadShardedStrategy):
    """For ``dist_checkpointing.load(state, path, sharded_strategy=LoadStrategy())``, also within
    FullyParallelLoadStrategyWrapper. Checksums are verified.

    Attributes:
        loads: number of times that this strategy has loaded.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stream_ckpt_dequant = False  # Megatron-Core converts FP8 tensors before
        self.loads = 0

    def load(self, sharded_state_dict: dict, checkpoint_dir: _Path, *_: Any) -> dict:
        with interruptible():
            job = job_of(None)
            with job.lock:
                wanted = job.on_all(lambda: _Wanted(sharded_state_dict))
                options = _load_options(checkpoint_dir, _c.RAISE_UNEXPECTED)
                found = _Found(job, wanted.state(), options)
        self.loads += 1
        return wanted.filled(found)


def _options(checkpoint_dir: _Path, **given: Any) -> _c.SaveOptions:
    usual = {
        "step": None,
        "keep": None,
        "replace": True,
        "checksums": "crc32",
        "read_back": "before_older_goes",
        "structure": "megatron",
    }
    if given.keys() - usual.keys():
        raise TypeError(f"no option {', '.join(sorted(given.keys() - usual.keys()))}")
    return options_of(checkpoint_dir, step_names=STEP_NAMES, **{**usual, **given})


def _load_options(path: _Path, strictness: int) -> _c.LoadOptions:
    return _c.LoadOptions(
        directory=engine_path(path),
        step_names=STEP_NAMES.encode(),
        strictness=strictness,
        verify_checksums=True,
    )


def _leads() -> bool:
    return torch.distributed.get_rank() == 0


def _request(saving: Saving) -> AsyncRequest:
    return AsyncRequest(async_fn=None, async_fn_args=(), finalize_fns=[saving.finish])


def _begun(
    call: Any,
    sharded_state_dict: dict,
    content_metadata: Optional[dict],
    checks: tuple[bool, Optional[_Preprocess]],
    options: _c.SaveOptions,
    check_updates: bool = False,
) -> Saving:
    def described() -> _Described:
        validates, preprocess = checks
        if content_metadata is not None:
            sharded_state_dict[CONTENT_KEY] = content_metadata
        sharded, common = state_dict_utils.save_preprocess(sharded_state_dict, False)
        if CONTENT_KEY in common:
            common[CONTENT_KEY] = _clean_metadata_for_serialization(common[CONTENT_KEY])
        compared = preprocess(common) if validates and preprocess else common
        content = pickled(common) if _leads() else b""
        return sharded, content, (lambda: _validate(sharded, compared)) if validates else None

    return _begun_with(call, described, options, check_updates)


def _begun_with(
    call: Any,
    described: Callable[[], _Described],
    options: _c.SaveOptions,
    check_updates: bool = False,
) -> Saving:
    """Begins a save of what ``described`` returns: sharded values alone, rank 0's common state, and what all ranks
    then call to compare theirs."""
    with interruptible():
        job = job_of(None)
        with job.lock:
            sharded, own, compare = job.on_all(described)
            if compare is not None:
                job.on_all(compare)
            # Ranks may have pickled equal values differently, so all save rank 0's.
            common = own if job.fabric is None else job.fabric.gather(range(job.fabric.size), own)[0]
            return begun(call, job, lambda: _saved(sharded, common), options, check_updates)


def _validate(sharded: dict, common: Optional[dict] = None) -> None:
    """Throws what Megatron-Core finds if it compares the ranks. It does that with collectives of torch, in which
    they would wait for a rank that has failed: all must have described their state before."""
    validation.validate_sharding_integrity(validation.determine_global_metadata(sharded)[1], common)


def _saved(sharded: dict, common: bytes) -> State:
    tensors: dict[str, Parts] = {}
    objects: dict[str, list[Any]] = {}
    # The main copy of a key comes first; if this rank has one, its other copies are left out.
    for one in sorted(dict_utils.nested_values(sharded), key=lambda one: not is_main_replica(one.replica_id)):
        main = is_main_replica(one.replica_id)
        if isinstance(one, ShardedObject):
            if main:
                objects.setdefault(one.unique_key, []).append(one.data)
            continue
        if one.data is None:
            raise Error("USAGE", "the tensor has no data", key=one.key)
        known = _parts_of(tensors, one, 0 if main else 1)
        if main or known.replica != 0:
            # Megatron-Core dequantizes what it writes, too.
            data = dequantize_fp8_tensor(one.data) if is_float8tensor(one.data) else one.data
            known.boxes.append((torch.Size(one.global_offset), _with_axes(one, data.detach())))
    stored = {key: pickled(values) for key, values in objects.items()}
    return State({**tensors, **stored}, {}, stored, common or None)


def _parts_of(tensors: dict[str, Parts], one: ShardedTensor, replica: int) -> Parts:
    if getattr(one, "flattened_range", None) is not None:
        raise Error("UNSUPPORTED", "flattened ranges, which Megatron-Core has up to 0.15", key=one.key)
    shape = torch.Size(one.global_shape)
    known = tensors.setdefault(one.key, Parts(one.dtype, shape, replica=replica))
    if (known.dtype, known.shape) != (one.dtype, shape):
        first = f"{known.dtype} of {tuple(known.shape)}"
        second = f"{one.dtype} of {tuple(shape)}"
        raise Error("LAYOUT_MISMATCH", f"this rank has it as {first} and as {second}", key=one.key)
    return known


def _with_axes(one: ShardedTensor, data: torch.Tensor) -> torch.Tensor:
    """Returns a view that has the axes that the stored tensor has before those of the local one."""
    for _ in range(one.prepend_axis_num):
        data = data.unsqueeze(0)
    return data


class _Wanted:
    """What this rank wants of a checkpoint: nested dicts and lists of sharded values."""

    def __init__(self, sharded: dict) -> None:
        self._sharded = sharded
        self._tensors: dict[str, Parts] = {}
        self._objects: dict[str, bytes] = {}
        self._data: dict[int, torch.Tensor] = {}  # by the id of the sharded tensor
        self._copies: list[tuple[str, torch.Tensor, torch.Tensor]] = []
        for one in dict_utils.nested_values(sharded):
            if isinstance(one, ShardedObject):
                self._objects[one.unique_key] = NOT_LOADED
                continue
            known = _parts_of(self._tensors, one, _c.ANY_COPY)
            known.any_shape = known.any_shape or one.allow_shape_mismatch
            known.boxes.append((torch.Size(one.global_offset), _with_axes(one, self._memory(one))))

    def _memory(self, one: ShardedTensor) -> torch.Tensor:
        memory = None if one.data is None else one.data.detach()
        if memory is None or one.allow_shape_mismatch:
            # What a stored tensor of another shape does not cover is 0, as in Megatron-Core. A load that fails
            # must leave the tensor as it was.
            if memory is None:
                memory = torch.zeros(one.local_shape, dtype=one.dtype)
            else:
                self._copies.append((one.key, memory, torch.zeros_like(memory)))
                memory = self._copies[-1][2]
        self._data[id(one)] = memory if one.data is None else one.data.detach()
        return memory

    def state(self, common: Optional[bytes] = None) -> State:
        return State({**self._tensors, **self._objects}, {}, self._objects, common)

    def filled(self, found: _Found) -> dict:
        """Returns what was loaded, in the place of the sharded values; what is not stored is left out."""
        with torch.no_grad():
            for tensor, copy in found.state.stand_ins:
                tensor.copy_(copy)
            for key, tensor, copy in self._copies:
                if key not in found.not_stored:
                    tensor.copy_(copy)
        objects: dict[str, Iterator[Any]] = {}

        def value_of(one: ShardedBase) -> Any:
            if isinstance(one, ShardedTensor):
                return self._data[id(one)]
            if one.unique_key not in objects:
                content = io.BytesIO(found.state.bytes_of(one.unique_key))
                objects[one.unique_key] = iter(torch.load(content, weights_only=False))
            return next(objects[one.unique_key])

        _, stored = dict_utils.extract_matching_values(
            self._sharded, lambda one: _name(one) in found.not_stored
        )
        return dict_utils.dict_list_map_outplace(value_of, stored)

    def mismatch(self, found: _Found) -> tuple[set[str], set[str]]:
        """Returns the keys of what is stored and no rank wants, and of what this rank wants in vain."""
        own = {_name(one): one.key for one in dict_utils.nested_values(self._sharded)}
        missing = {name.partition("/shard_")[0] for name in found.not_requested} - {COMMON_KEY}
        return missing, {own[name] for name in found.not_stored if name in own}


def _name(one: ShardedBase) -> str:
    return one.unique_key if isinstance(one, ShardedObject) else one.key


class _Found:
    """A load. Collective."""

    def __init__(self, job: Job, state: State, options: _c.LoadOptions) -> None:
        self.state = state
        with filled(job, state, options) as found:
            self.path = path_of(found.directory) if found.found else None
            self.not_stored = set(_c.texts(found.not_stored, found.not_stored_count))
            self.not_requested = set(_c.texts(found.not_requested, found.not_requested_count))


def _common_of(found: _Found) -> dict:
    common = torch.load(io.BytesIO(found.state.common()), map_location="cpu")
    return common[0] if isinstance(common, list) else common  # from 0.19 on it is an object
