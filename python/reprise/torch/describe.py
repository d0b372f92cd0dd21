"""What a state dict holds: its leaves by key, as the default planners of torch name them, and the memory
of each tensor."""

from __future__ import annotations

import ctypes
import io
from array import array
from dataclasses import dataclass, field
from typing import Any, Mapping, Optional

import torch
from torch.distributed.checkpoint import DefaultSavePlanner
from torch.distributed.checkpoint.metadata import MetadataIndex
from torch.distributed.checkpoint.planner_helpers import _create_chunk_list
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.checkpoint.utils import find_tensor_shard

from reprise import _c
from reprise.errors import Error

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_STRIDED_DIMS = 8  # with more, the engine wants the last ones together in memory
_NO_DISPATCH = torch.Tensor.__torch_dispatch__

_dtypes: dict[torch.dtype, int] = {}


def number_of(dtype: torch.dtype) -> int:
    """Returns the engine's number of an element type. Throws UNSUPPORTED if it has none."""
    known = _dtypes.get(dtype)
    if known is None:
        number = ctypes.c_int32()
        _c.check(_c.library().rp_dtype(str(dtype).partition(".")[2].encode(), ctypes.byref(number)))
        known = _dtypes[dtype] = number.value
    return known


def in_order(state_dict: Mapping[str, Any]) -> list[str]:
    """Returns the keys in an order that is the same on all ranks: what is called for each of them may be
    collective, such as state_dict() of sharded models."""
    return sorted(state_dict, key=str)


def state_dicts_of(state_dict: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the state dict with each ``Stateful`` object replaced by what its state_dict() returns."""
    own = dict(state_dict)
    for key in in_order(own):
        if isinstance(own[key], Stateful):
            own[key] = own[key].state_dict()
    return own


def flattened(state_dict: dict[str, Any]) -> tuple[dict[str, Any], dict[str, tuple]]:
    """Returns the leaves by key, and the path of each key: names of dicts and positions in lists."""
    planner = DefaultSavePlanner()
    planner.set_up_planner(state_dict, is_coordinator=False)
    return planner.state_dict, planner.mappings


def put_back(state_dict: dict[str, Any], path: tuple, value: Any) -> None:
    """Replaces the value at a path. Names in a path are texts also where keys are not."""
    container: Any = state_dict
    for step in path[:-1]:
        container = container[_key_in(container, step)]
    container[_key_in(container, path[-1])] = value


def _key_in(container: Any, step: Any) -> Any:
    if isinstance(container, Mapping) and step not in container:
        return next((key for key in container if str(key) == step), step)
    return step


def is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or hasattr(value, "__create_chunk_list__")


def is_reached(tensor: torch.Tensor) -> bool:
    """True if the engine may read and write the tensor's memory."""
    return not _is_wrapper(tensor) and (tensor.is_cpu or tensor.is_cuda and torch.version.hip is None)


def _is_wrapper(tensor: torch.Tensor) -> bool:
    return type(tensor).__torch_dispatch__ is not _NO_DISPATCH


def _in_memory(tensor: torch.Tensor, key: str) -> torch.Tensor:
    """Returns the tensor, or a copy of one whose memory the engine can't use as it is. Throws UNSUPPORTED
    for a tensor that is not strided elements in memory of the CPU or of a CUDA device, such as one that wraps
    others."""
    if _is_wrapper(tensor):
        raise Error("UNSUPPORTED", f"a tensor of type {type(tensor).__name__}", key=key)
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise Error("UNSUPPORTED", f"a tensor of layout {tensor.layout}, {tensor.dtype}", key=key)
    if not is_reached(tensor):
        what = f"a tensor on the device {tensor.device}: the engine reaches memory of the CPU and of CUDA devices"
        raise Error("UNSUPPORTED", what, key=key)
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.dim() > _STRIDED_DIMS and not tensor.is_contiguous():
        tensor = tensor.detach().contiguous()
    return tensor


@dataclass
class Parts:
    """What this rank has of a tensor: boxes, each with its offset in the whole."""

    dtype: torch.dtype
    shape: torch.Size  #: of the whole
    boxes: list[tuple[torch.Size, torch.Tensor]] = field(default_factory=list)
    replica: int = _c.ANY_COPY  #: of these boxes; ANY_COPY, or 0 on one of the ranks that have them
    any_shape: bool = False  #: True if a load may find another shape, and fills what is stored


class Leaves:
    """Describes tensors for the engine, and keeps their memory."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.keys: list[bytes] = []
        self.kept: list[tuple[str, torch.Tensor]] = []  # whose memory the words name
        self.stand_ins: list[tuple[torch.Tensor, torch.Tensor]] = []  # a tensor, and its copy
        self.device: Optional[torch.device] = None  # of CUDA, if there is such a tensor

    def add(self, key: str, value: Any) -> None:
        if type(value) in _PLAIN and getattr(value, "global_offsets", None) is None:
            shape = value.shape
            self._begin(key, value.dtype, shape, 1)
            self._part(key, value.dtype, [0] * len(shape), shape, value)
        elif type(value) is Parts:
            self._begin(key, value.dtype, value.shape, len(value.boxes), value.replica)
            for offset, box in value.boxes:
                self._part(key, value.dtype, offset, box.shape, box)
        else:
            self._add_shards(key, value)

    def _add_shards(self, key: str, value: Any) -> None:
        shape = getattr(value, "global_shape", None) or value.size()
        chunks = boxes_of(value)
        self._begin(key, value.dtype, shape, len(chunks))
        for place, chunk in enumerate(chunks):
            local = find_tensor_shard(value, MetadataIndex(key, chunk.offsets, place))
            self._part(key, value.dtype, chunk.offsets, chunk.sizes, local)

    def _begin(
        self, key: str, dtype: torch.dtype, shape: Any, parts: int, replica: int = _c.ANY_COPY
    ) -> None:
        name = key.encode()
        self.keys.append(name)
        try:
            number = _dtypes.get(dtype) or number_of(dtype)
        except Error as error:
            raise Error(error.code, error.message, key=key) from None
        self.words += (len(name), number, replica, len(shape), parts, *shape)

    def _part(
        self, key: str, dtype: torch.dtype, offset: Any, extent: Any, local: torch.Tensor
    ) -> None:
        memory = _in_memory(local, key)
        if memory is not local:
            self.stand_ins.append((local, memory))
        if memory.shape != extent:
            raise Error("LAYOUT_MISMATCH", f"a part of {tuple(extent)} has {tuple(memory.shape)}", key=key)
        if memory.dtype != dtype:
            raise Error("LAYOUT_MISMATCH", f"a part of a tensor of {dtype} has {memory.dtype}", key=key)
        self.kept.append((key, memory))
        strides = () if memory.is_contiguous() else memory.stride()
        kind = _c.HOST if memory.is_cpu else self._on_device(key, memory.device)
        self.words += (kind, len(strides) != 0, memory.data_ptr(), *offset, *extent, *strides)

    def _on_device(self, key: str, device: torch.device) -> int:
        self.device = self.device or device
        if self.device == device:
            return _c.DEVICE
        what = f"a tensor on {device} beside others on {self.device}: a rank has tensors of one CUDA device"
        raise Error("UNSUPPORTED", what, key=key)


def boxes_of(value: Any) -> list[Any]:
    """Returns the boxes of a tensor that this rank holds, each with `offsets` and `sizes`. There are none of a
    DTensor if the rank is not in its mesh."""
    mesh = getattr(value, "device_mesh", None)
    return [] if mesh is not None and mesh.get_coordinate() is None else _create_chunk_list(value)


def pickled(value: Any) -> bytes:
    """Returns what the default planner of torch stores of a value that is no tensor."""
    out = io.BytesIO()
    torch.save(value, out)
    return out.getvalue()


class State:
    """A state of the engine, made of the leaves of a state dict, and of Megatron's common state."""

    def __init__(
        self,
        leaves: Mapping[str, Any],
        paths: Mapping[str, tuple],
        objects: Mapping[str, bytes],
        common: Optional[bytes] = None,
    ):
        self.handle = ctypes.c_void_p()
        self._lib = _c.library()
        _c.check(self._lib.rp_state_new(ctypes.byref(self.handle)))
        tensors = Leaves()
        for key, value in leaves.items():
            if key not in objects:
                tensors.add(key, value)
        self.kept, self.stand_ins = tensors.kept, tensors.stand_ins
        self._count = len(tensors.keys)
        self._device = tensors.device
        self._pack(self._lib.rp_state_add_packed, tensors.words, tensors.keys)
        for key, content in objects.items():
            if "\0" in key:
                raise Error("UNSUPPORTED", "a key with a zero byte", key=key)
            _c.check(
                self._lib.rp_state_add_bytes(
                    self.handle, key.encode(), content, len(content), _c.ANY_COPY
                )
            )
        self._set_paths(paths)
        for key, value in leaves.items():
            if type(value) is Parts and value.any_shape:
                _c.check(self._lib.rp_state_allow_other_shape(self.handle, key.encode()))
        if common is not None:
            _c.check(self._lib.rp_state_set_common(self.handle, common, len(common)))

    def __del__(self) -> None:
        if self.handle:
            self._lib.rp_state_free(self.handle)

    @property
    def device(self) -> Optional[int]:
        """Number of the CUDA device that has tensors of this state."""
        return None if self._device is None else self._device.index

    @property
    def stream(self) -> Optional[int]:
        """The stream of that device on which this thread computes."""
        return None if self._device is None else torch.cuda.current_stream(self._device).cuda_stream

    def digests(self, job: Optional[ctypes.c_void_p] = None) -> list[int]:
        """Returns the digests of what this rank holds of the tensors, in their order. ``job`` is the engine's job
        that has their device, or None if all are in memory of the CPU."""
        found = (ctypes.c_uint64 * self._count)()
        _c.check(self._lib.rp_state_digests(job, self.handle, self.stream, found, self._count))
        return list(found)

    def bytes_of(self, key: str) -> bytes:
        """Returns bytes as added, or as replaced by a load."""
        return self._given(self._lib.rp_state_bytes, key.encode())

    def common(self) -> bytes:
        """Returns the common state as set, or as replaced by a load."""
        return self._given(self._lib.rp_state_common)

    def _given(self, call: Any, *arguments: Any) -> bytes:
        start, size = ctypes.c_void_p(), ctypes.c_size_t()
        _c.check(call(self.handle, *arguments, ctypes.byref(start), ctypes.byref(size)))
        return ctypes.string_at(start, size.value) if size.value else b""

    def _pack(self, call: Any, words: list[int], texts: list[bytes]) -> None:
        numbers, text = array("q", words), b"".join(texts)
        _c.check(call(self.handle, numbers.buffer_info()[0], len(numbers), text, len(text)))

    def _set_paths(self, paths: Mapping[str, tuple]) -> None:
        words: list[int] = []
        texts: list[bytes] = []
        for key, path in paths.items():
            name = key.encode()
            texts.append(name)
            words += (len(name), len(path))
            for step in path:
                if isinstance(step, int):
                    words += (1, step)
                else:
                    text = step.encode()
                    texts.append(text)
                    words += (0, len(text))
        self._pack(self._lib.rp_state_set_paths, words, texts)
