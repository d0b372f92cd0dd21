"""Digests of bytes, and of what a rank holds of a tensor: 16 hexadecimal digits. They say nothing of strides
and devices, and are made by the engine."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import sys
import time
from ctypes import c_int64, c_uint64, c_void_p
from typing import Any, Iterator

from .. import _c

PIECE = 1 << 26  # bytes of a tensor on a device that are copied at once; a multiple of 8
ENGINE, HASHLIB = "rp_state_digests", "hashlib.blake2b"


class NotDense(Exception):
    """The tensor's bits can't be read. The text is what is told in their place."""


class Digests:
    """Attributes:
    by: what makes the digests; those of different makers can't be compared.
    why: why it is not the engine.
    seconds: what digests have taken so far.
    """

    def __init__(self) -> None:
        self.by, self.why, self.seconds = "", "", 0.0
        self._engine: Any = None

    def prepare(self) -> None:
        """Finds the engine, or says on stderr that it is not there."""
        if self.by:
            return
        try:
            self._engine, self.by = Engine(), ENGINE
        except (ImportError, RuntimeError) as error:
            self.by, self.why = HASHLIB, str(error)
            print(f"reprise watch: digests are made by Python's hashlib: {error}", file=sys.stderr)

    def of_bytes(self, raw: bytes) -> str:
        self.prepare()
        holder = ctypes.create_string_buffer(raw, len(raw))
        return self._of([(ctypes.addressof(holder), 0, len(raw))], len(raw))

    def of_tensor(self, tensor) -> str:
        """Hashes the bits in row-major order. Throws NotDense."""
        self.prepare()
        began = time.perf_counter()
        with undisturbed():
            found = [self._of(pieces(part.detach()), part.numel() * part.element_size()) for part in dense_parts(tensor)]
        self.seconds += time.perf_counter() - began
        return found[0] if len(found) == 1 else self.of_bytes("".join(found).encode())

    def _of(self, ranges, size: int) -> str:
        """The digest of `size` bytes that lie in ranges: address, first byte's place, and byte after the last."""
        if self._engine is not None:
            return f"{self._engine.of(ranges, size):016x}"
        hashed = hashlib.blake2b(digest_size=8)
        for address, begin, end in ranges:
            if end > begin:
                hashed.update((ctypes.c_char * (end - begin)).from_address(address))
        return hashed.hexdigest()


class Engine:
    """The engine's digest of bytes: they are one tensor of words of 8 bytes, and one of the bytes after the last."""

    def __init__(self) -> None:
        """Throws ImportError if there is no library."""
        self._lib = _c.library()
        self._dtypes = []
        for name in (b"int64", b"uint8"):
            number = ctypes.c_int32()
            _c.check(self._lib.rp_dtype(name, ctypes.byref(number)))
            self._dtypes.append(number.value)

    def of(self, ranges, size: int) -> int:
        """Digests of parts that don't overlap add up, so that a tensor can be read piece by piece."""
        total = 0
        for address, begin, end in ranges:
            words, rest = end // 8 - begin // 8, end % 8
            told = []
            if words:
                told += self._part(0, size // 8, address, begin // 8, words)
            if rest:
                told += self._part(1, size % 8, address + words * 8, 0, rest)
            if told:
                total += sum(self._digests(told, b"wb"[not words : 1 + bool(rest)]))
        return (total + size) % 2**64

    def _part(self, dtype: int, whole: int, address: int, begin: int, count: int) -> list[int]:
        replica = _c.ANY_COPY
        return [1, self._dtypes[dtype], replica, 1, 1, whole, _c.HOST, 0, address, begin, count]

    def _digests(self, told: list[int], keys: bytes) -> list[int]:
        state, found = c_void_p(), (c_uint64 * len(keys))()
        _c.check(self._lib.rp_state_new(ctypes.byref(state)))
        try:
            words = (c_int64 * len(told))(*told)
            _c.check(self._lib.rp_state_add_packed(state, words, len(told), keys, len(keys)))
            _c.check(self._lib.rp_state_digests(None, state, None, found, len(keys)))
        finally:
            self._lib.rp_state_free(state)
        return list(found)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """No gradient is recorded, and the script's own modes of torch don't see what is done here."""
    torch = sys.modules["torch"]
    modes = getattr(sys.modules.get("torch.utils._python_dispatch"), "_disable_current_modes", None)
    with torch.no_grad(), torch._C.DisableTorchFunctionSubclass(), modes() if modes else contextlib.nullcontext():
        yield


def dense_parts(tensor) -> list:
    """The plain strided tensors that hold the bits: one, or those of a sparse, quantized or wrapping one.
    Of a DTensor it is the local one."""
    torch = sys.modules["torch"]
    local = getattr(tensor, "_local_tensor", None)
    if local is not None:
        return dense_parts(local)
    if hasattr(type(tensor), "__tensor_flatten__"):
        names, _ = tensor.__tensor_flatten__()
        return [part for name in names for part in dense_parts(getattr(tensor, name))]
    if tensor.device.type == "meta":
        raise NotDense("=meta")
    if getattr(tensor, "is_quantized", False):
        return [tensor.int_repr()]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout != torch.strided:
        raise NotDense(f"=<tensor of layout {tensor.layout}>")
    fake = getattr(sys.modules.get("torch._subclasses.fake_tensor"), "FakeTensor", ())
    if isinstance(tensor, fake):
        raise NotDense("=fake")
    return [tensor]


def pieces(tensor) -> Iterator[tuple[int, int, int]]:
    """Where the bytes lie, in row-major order: address on the CPU, place of the first byte, and of that after
    the last. An address is good until the next one is asked for."""
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    width = tensor.element_size()
    if tensor.device.type == "cpu" or not tensor.is_contiguous():
        tensor = tensor.cpu().contiguous()
        yield tensor.data_ptr(), 0, tensor.numel() * width
        return
    flat, at_once = tensor.reshape(-1), PIECE // width
    for first in range(0, tensor.numel(), at_once):
        piece = flat[first : first + at_once].cpu()
        yield piece.data_ptr(), first * width, (first + piece.numel()) * width
