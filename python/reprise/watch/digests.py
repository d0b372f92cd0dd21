"""Digests of bytes and of what a rank holds of a tensor: 16 hexadecimal digits."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import sys
import time
from typing import Iterator

PIECE = 1 << 26  # bytes of a tensor that are copied at once, where they must be


class NotDense(Exception):
    """The tensor's bits can't be read: what is told in its place."""


class Digests:
    """Attributes:
    by: name of the hash; digests of different ones can't be compared.
    why: why it is not the engine's.
    seconds: what digests have taken so far.
    """

    def __init__(self) -> None:
        self.by = "hashlib.blake2b"
        self.why = "the engine's library has no digest for single tensors yet"
        self.seconds = 0.0

    def of_bytes(self, raw: bytes) -> str:
        return hashlib.blake2b(raw, digest_size=8).hexdigest()

    def of_tensor(self, tensor) -> str:
        """Hashes the bits in row-major order. Throws NotDense."""
        began = time.perf_counter()
        hashed = hashlib.blake2b(digest_size=8)
        with undisturbed():
            for part in dense_parts(tensor):
                for piece in pieces(part.detach()):
                    size = piece.numel() * piece.element_size()
                    if size:
                        hashed.update((ctypes.c_char * size).from_address(piece.data_ptr()))
        self.seconds += time.perf_counter() - began
        return hashed.hexdigest()


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
    if isinstance(tensor, getattr(torch._subclasses.fake_tensor, "FakeTensor", ())):
        raise NotDense("=fake")
    return [tensor]


def pieces(tensor) -> Iterator:
    """Contiguous tensors on the CPU, one after the other in row-major order; views where that is possible."""
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    size = tensor.numel() * tensor.element_size()
    if size <= PIECE or tensor.dim() == 0 or (tensor.device.type == "cpu" and tensor.is_contiguous()):
        yield tensor.cpu().contiguous()
    elif tensor.shape[0] == 1:
        yield from pieces(tensor[0])
    else:
        for rows in tensor.split(max(1, PIECE * tensor.shape[0] // size)):
            yield from pieces(rows)
