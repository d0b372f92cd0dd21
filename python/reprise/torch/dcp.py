"""The engine under the planners of ``torch.distributed.checkpoint``: a writer and a reader of storage.

The planners decide which rank stores what. Each rank's share is a state of the engine, which writes and
commits it as a whole within ``write_data``; the coordinator's ``finish`` has nothing left to write."""

from __future__ import annotations

import dataclasses
import inspect
import io
import os
import threading
from pathlib import Path
from typing import Any, Optional, Sequence, Union

import torch
import torch.distributed as dist
from torch.distributed import checkpoint
from torch.distributed.checkpoint import _storage_utils, filesystem, utils
from torch.distributed.checkpoint.filesystem import FileSystemReader as _StockReader
from torch.distributed.checkpoint.filesystem import FileSystemWriter as _StockWriter
from torch.distributed.checkpoint.metadata import Metadata, StorageMeta, TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner
from torch.distributed.checkpoint.storage import StorageReader, StorageWriter, WriteResult
from torch.futures import Future

from reprise import _c
from reprise.errors import Error

from .describe import Parts, State, is_reached
from .job import Job, interruptible, job_over, leave_job
from .loading import NOT_LOADED, filled
from .saving import STEP_NAMES, SaveResult, begun, engine_path, options_of, path_of


class Writer(StorageWriter):
    """Saves what torch's planners plan: ``dcp.save(state_dict, storage_writer=Writer(path))``.

    The options are those of ``reprise.torch.save``. ``dcp.save`` throws a CheckpointException, whose
    ``failures`` hold for each rank the ``reprise.Error`` that all ranks got. ``dcp.async_save`` works, too.

    Attributes:
        result: what the last save committed, or None.
    """

    def __init__(
        self,
        path: Union[str, os.PathLike],
        *,
        step: Optional[int] = None,
        keep: Optional[int] = None,
        step_names: str = STEP_NAMES,
        replace: bool = True,
        checksums: str = "crc32",
        read_back: str = "before_older_goes",
        structure: str = "dcp",
    ) -> None:
        super().__init__()
        self.checkpoint_id = path
        self.result: Optional[SaveResult] = None
        self._plans: list[SavePlan] = []
        self._planned: tuple[Optional[Metadata], dict[str, Any]] = None, {}  # metadata that was checked, its boxes
        self._options = (step, keep, step_names, replace, checksums, read_back, structure)
        options_of(path, *self._options)  # throws if they make no sense

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: Union[str, os.PathLike]) -> bool:
        return _StockWriter.validate_checkpoint_id(checkpoint_id)

    def reset(self, checkpoint_id: Union[str, os.PathLike, None] = None) -> None:
        self.checkpoint_id = checkpoint_id or self.checkpoint_id
        self.result = None

    def storage_meta(self) -> Optional[StorageMeta]:
        return StorageMeta(checkpoint_id=self.checkpoint_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        if not kwargs.get("use_collectives", True):
            raise Error("UNSUPPORTED", "use_collectives=False: a checkpoint commits on all ranks or on none")
        _expected.by = None

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        return dataclasses.replace(plan, storage_data=(_own_rank(),))

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        ranks = _ranks_of(plans)
        # torch may send a plan that it has cached without its items.
        self._plans = plans if all(getattr(plan, "usable", True) for plan in plans) else []
        return [dataclasses.replace(plan, storage_data=ranks) for plan in plans]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        options = options_of(self.checkpoint_id, *self._options)

        def described() -> State:
            self._check_plans(getattr(planner, "metadata", None))
            return _share(plan, planner)

        _expected.by = None
        with interruptible():
            job = _job_of(plan.storage_data)
            self.result = begun(_c.library().rp_save_all, job, described, options).finish()
        return _done([])

    def _check_plans(self, metadata: Optional[Metadata]) -> None:
        """On the coordinator: throws LAYOUT_MISMATCH if its planner's metadata is not what the ranks are to write."""
        plans, self._plans = self._plans, []
        if plans and metadata is not None:
            self._planned = metadata, _all_boxes(metadata)
            _check_same(self._planned[1], _boxes_in(plans), os.fspath(self.checkpoint_id))

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Completes the metadata that ``dcp.save`` returns. Throws LAYOUT_MISMATCH if it is not what was
        stored."""
        assert self.result is not None
        stored = _StockReader(self.result.path).read_metadata()
        known, boxes = self._planned
        self._planned = None, {}
        _check_same(boxes if known is metadata else _all_boxes(metadata), _all_boxes(stored), self.result.path)
        metadata.storage_data, metadata.storage_meta = stored.storage_data, self.storage_meta()


class Reader(_StockReader):
    """Loads what torch's planners plan: ``dcp.load(state_dict, storage_reader=Reader(path))``.

    Checksums are verified. Unlike ``reprise.torch.load``, damaged content is an error (in the ``failures`` of a
    CheckpointException), and no older checkpoint is tried; and element types are converted, as torch does.

    Args:
        path: a checkpoint, or a directory with iterations.
        step: iteration to load; by default the newest.
        step_names: see ``reprise.torch.save``.
    """

    def __init__(
        self,
        path: Union[str, os.PathLike],
        *,
        step: Optional[int] = None,
        step_names: str = STEP_NAMES,
    ) -> None:
        super().__init__(path)
        self._asked, self._step, self._step_names = path, step, step_names
        self._stored: Optional[Metadata] = None
        self._failure: Optional[Exception] = None

    def reset(self, checkpoint_id: Union[str, os.PathLike, None] = None) -> None:
        super().reset(checkpoint_id)
        self._asked = checkpoint_id or self._asked

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Returns the metadata of the checkpoint, and settles which iteration it is."""
        if self._failure is not None and "rank" in kwargs:
            # After an error, torch looks for metadata of each rank, and throws one of its own if there is
            # none. set_up_storage_reader, which is next, throws ours.
            return Metadata({})
        asked = self._asked
        if self._step is not None:
            asked = os.path.join(asked, self._step_names % self._step)
        self._failure = None
        try:
            # Ranks that saved without collectives have metadata of their own.
            own = f"__{_own_rank()}.metadata"
            if os.path.exists(os.path.join(asked, own)) and not os.path.exists(os.path.join(asked, ".metadata")):
                self.path = Path(asked)
                return super().read_metadata(rank=_own_rank())
            options = self._options(asked, newest_whole=True)
            with interruptible():
                self.path = Path(_load(job_over(None), State({}, {}, {}), options))
            return super().read_metadata()
        except Exception as error:
            self._failure = error
            raise

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        if self._failure is not None:
            raise self._failure
        self._stored = metadata
        _expected.by = None

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return dataclasses.replace(plan, storage_data=(_own_rank(), str(self.path)))

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        paths = sorted({plan.storage_data[1] for plan in plans if plan.storage_data})
        if len(paths) > 1:
            what = f"ranks found {' and '.join(paths)}: one was committed meanwhile"
            raise Error("STALE_METADATA", what, file=paths[-1])
        ranks = _ranks_of(plans)
        return [dataclasses.replace(plan, storage_data=ranks) for plan in plans]

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        assert self._stored is not None
        wanted = _Wanted(plan, planner, self._stored)
        _expected.by = None
        with interruptible():
            job = _job_of(plan.storage_data)
            with job.lock:
                state = job.on_all(wanted.state)
                _load(job, state, self._options(self.path))
        wanted.deliver(state)
        return _done(None)

    def _options(self, path: Union[str, os.PathLike], newest_whole: bool = False) -> _c.LoadOptions:
        return _c.LoadOptions(
            directory=engine_path(path),
            step_names=self._step_names.encode(),
            strictness=_c.RAISE_UNEXPECTED,
            verify_checksums=True,
            newest_whole=newest_whole,
        )


class _Ranks(tuple):
    """The ranks that wait for each other in write_data or read_data; a part of the plan that torch sends to each
    of them. From when it arrives until the planner has finished it, this rank is expected."""

    def __reduce__(self) -> Any:
        return _arrived, (tuple(self),)


class _Expected(threading.local):
    by: Optional[_Ranks] = None


_expected = _Expected()


def _arrived(ranks: tuple[int, ...]) -> _Ranks:
    _expected.by = _Ranks(ranks)
    return _expected.by


def _wrap_exception(failure: BaseException) -> Any:
    """Stands before torch's function of that name, which is called on a rank whose step has failed. If that was in
    the planner, nobody else learns of it: the others are waiting for this rank in write_data or read_data."""
    ranks, _expected.by = _expected.by, None
    if ranks is not None and len(ranks) > 1:
        leave_job(ranks, _PURPOSE, failure)
    return _torch_wrap_exception(failure)


_torch_wrap_exception = utils._wrap_exception
utils._wrap_exception = _wrap_exception  # type: ignore[assignment]


def _own_rank() -> int:
    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def _ranks_of(plans: Sequence[Any]) -> _Ranks:
    """Returns the ranks that made these plans, which need not be all of the job."""
    if all(plan.storage_data for plan in plans):
        return _Ranks(plan.storage_data[0] for plan in plans)
    # A planner has made new ones.
    if len(plans) > 1 and len(plans) != dist.get_world_size():
        raise Error("UNSUPPORTED", "a planner that makes new plans, over a part of the ranks")
    return _Ranks(range(len(plans)))


_PURPOSE = "dcp"  # of the jobs that torch's planners save and load with


def _job_of(ranks: Sequence[int]) -> Job:
    return job_over(ranks if len(ranks) > 1 else None, _PURPOSE)


def _share(plan: SavePlan, planner: SavePlanner) -> State:
    """Returns what this rank is to store."""
    tensors: dict[str, Parts] = {}
    objects: dict[str, bytes] = {}
    for item in plan.items:
        key, value = item.index.fqn, planner.resolve_data(item)
        if not isinstance(value, torch.Tensor):
            objects[key] = value.getvalue()
        else:
            assert item.tensor_data is not None
            planned = item.tensor_data.chunk.sizes
            if value.shape != planned:
                what = f"{tuple(value.shape)} are to be written, but planned are {tuple(planned)}"
                raise Error("LAYOUT_MISMATCH", what, key=key)
            known = tensors.setdefault(key, Parts(item.tensor_data.properties.dtype, item.tensor_data.size))
            known.boxes.append((item.tensor_data.chunk.offsets, value.detach()))
    paths = plan.planner_data or {}
    if not isinstance(paths, dict):
        raise Error("UNSUPPORTED", f"a planner whose planner_data is a {type(paths).__name__}")
    leaves = {**tensors, **objects}
    return State(leaves, {key: paths[key] for key in leaves if key in paths}, objects)


class _Wanted:
    """What a plan wants of a checkpoint, and where it goes."""

    def __init__(self, plan: LoadPlan, planner: LoadPlanner, stored: Metadata) -> None:
        self._plan, self._planner, self._stored = plan, planner, stored.state_dict_metadata
        self._tensors: list[tuple[Any, torch.Tensor]] = []
        self._converted: list[tuple[torch.Tensor, torch.Tensor]] = []

    def state(self) -> State:
        tensors: dict[str, Parts] = {}
        objects: dict[str, bytes] = {}
        for item in self._plan.items:
            key = item.storage_index.fqn
            if item.type == LoadItemType.BYTE_IO:
                objects[key] = NOT_LOADED
                continue
            target = self._planner.resolve_tensor(item).detach()
            self._tensors.append((item, target))
            stored, begin = self._stored[key], item.storage_index.offset
            assert isinstance(stored, TensorStorageMetadata) and begin is not None
            if target.shape != item.lengths:
                what = f"{tuple(item.lengths)} are to be read into {tuple(target.shape)}"
                raise Error("SHAPE_DRIFT", what, key=key)
            known = tensors.setdefault(key, Parts(stored.properties.dtype, stored.size))
            offset = torch.Size(first + more for first, more in zip(begin, item.storage_offsets))
            known.boxes.append((offset, self._memory(target, known.dtype)))
        return State({**tensors, **objects}, {}, objects)

    def _memory(self, target: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        if is_reached(target) and target.dtype == dtype:
            return target
        self._converted.append((target, torch.empty(target.shape, dtype=dtype, device="cpu")))
        return self._converted[-1][1]

    def deliver(self, state: State) -> None:
        with torch.no_grad():
            for target, copy in state.stand_ins + self._converted:
                target.copy_(copy)
        for item, target in self._tensors:
            self._planner.commit_tensor(item, target)
        for item in self._plan.items:
            if item.type == LoadItemType.BYTE_IO:
                self._planner.load_bytes(item, io.BytesIO(state.bytes_of(item.storage_index.fqn)))


def _load(job: Job, state: State, options: _c.LoadOptions) -> str:
    """Fills a state. Collective. Returns the directory of the checkpoint."""
    with job.lock, filled(job, state, options) as found:
        return path_of(found.directory)


def _all_boxes(metadata: Metadata) -> dict[str, Any]:
    return {key: _boxes(value) for key, value in metadata.state_dict_metadata.items()}


def _boxes(stored: Any) -> Any:
    """Returns size and type of a tensor and its parts that are not empty, as far as planners decide them."""
    if not isinstance(stored, TensorStorageMetadata):
        return "bytes"
    boxes = {(tuple(chunk.offsets), tuple(chunk.sizes)) for chunk in stored.chunks if 0 not in chunk.sizes}
    return tuple(stored.size), stored.properties.dtype, boxes


def _boxes_in(plans: Sequence[SavePlan]) -> dict[str, Any]:
    """Returns the same of what ranks plan to write."""
    found: dict[str, Any] = {}
    for item in (item for plan in plans for item in plan.items):
        data, key = item.tensor_data, item.index.fqn
        if data is None:
            found[key] = None
        else:
            if key not in found:
                found[key] = TensorStorageMetadata(data.properties, data.size, [])
            found[key].chunks.append(data.chunk)
    return {key: _boxes(value) for key, value in found.items()}


def _check_same(planned: dict[str, Any], found: dict[str, Any], file: str) -> None:
    for key in {**planned, **found}:
        if planned.get(key) != found.get(key):
            what = "its size, type or parts are not those that the planner's metadata has"
            raise Error("LAYOUT_MISMATCH", what, key=key, file=file)


def _done(value: Any) -> Future:
    future: Future = Future()
    future.set_result(value)
    return future


class FileSystemWriter(Writer):
    """What ``install`` puts in the place of torch's FileSystemWriter. It takes the same arguments."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        asked = inspect.signature(_StockWriter).bind(*arguments, **options).arguments
        _refuse_extensions(asked)
        super().__init__(asked["path"], replace=asked.get("overwrite", True))


class FileSystemReader(Reader):
    """What ``install`` puts in the place of torch's FileSystemReader. It takes the same arguments."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        asked = inspect.signature(_StockReader).bind(*arguments, **options).arguments
        _refuse_extensions(asked)
        super().__init__(asked["path"])


def _refuse_extensions(asked: dict[str, Any]) -> None:
    for name in ("_extensions", "_extension_registry", "serialization_format"):
        if getattr(asked.get(name), "value", asked.get(name)) not in (None, "torch_save"):
            raise Error("UNSUPPORTED", f"{name}: the engine has none; uninstall() gives torch's own back")


# Where torch, and the programs that import from it, look for them.
_SEAMS = (checkpoint, filesystem, _storage_utils)


def install() -> None:
    """Makes the engine the default of ``torch.distributed.checkpoint``: of ``dcp.save`` and ``dcp.load``
    with a ``checkpoint_id`` that is a path, and of programs that make a FileSystemWriter or FileSystemReader
    by themselves. Names that were imported before stay torch's. Rank 0 prints one line."""
    _put(FileSystemWriter, FileSystemReader)
    if int(os.environ.get("RANK", 0)) == 0:
        what = "torch.distributed.checkpoint saves and loads with the engine"
        print(f"reprise: {what}; reprise.torch.uninstall() ends it", flush=True)


def uninstall() -> None:
    """Gives torch its own writer and reader back."""
    _put(_StockWriter, _StockReader)


def _put(writer: type[StorageWriter], reader: type[StorageReader]) -> None:
    for module in _SEAMS:
        module.FileSystemWriter, module.FileSystemReader = writer, reader  # type: ignore[attr-defined]
