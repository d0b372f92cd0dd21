"""Tensors that say they are on a CUDA device, in the memory of the model of CUDA (tests/models/cuda), which a
CPU can't touch. torch itself has no part in it: its allocator, streams and kernels are not exercised."""
import contextlib
import ctypes
import math
import os
from unittest import mock

import torch

LIBRARY = os.path.join(os.path.dirname(os.environ.get("REPRISE_LIBRARY", "")), "libreprise_c_cuda_model.so")


class OnDevice(torch.Tensor):
    """A tensor whose elements nothing but the engine may read or write."""

    is_cpu, is_cuda, device = False, True, torch.device("cuda", 0)


class OnAnother(OnDevice):
    device = torch.device("cuda", 1)


class Device:
    """The first device of the model, which has one."""

    def __init__(self):
        self._cuda = ctypes.CDLL(LIBRARY)

    def _call(self, name, *arguments):
        status = getattr(self._cuda, name)(*arguments)
        assert status == 0, f"{name}: {status}"

    def _copy(self, target, source, size):
        self._call("cudaMemcpyAsync", ctypes.c_void_p(target), ctypes.c_void_p(source), ctypes.c_size_t(size), 4, None)
        self._call("cudaStreamSynchronize", None)

    def stream(self):
        made = ctypes.c_void_p()
        self._call("cudaStreamCreateWithFlags", ctypes.byref(made), 1)
        return made.value

    def wait(self, stream):
        self._call("cudaStreamSynchronize", ctypes.c_void_p(stream))

    def fill(self, tensor, byte, stream):
        """Queues work of a training on a stream."""
        size = tensor.numel() * tensor.element_size()
        self._call("cudaMemsetAsync", ctypes.c_void_p(tensor.data_ptr()), byte, ctypes.c_size_t(size), ctypes.c_void_p(stream))

    def put(self, tensor, kind=OnDevice):
        """Returns a tensor on the device, with the elements and strides of this one."""
        strides, size = tensor.stride(), tensor.numel() * tensor.element_size()
        dense = torch.as_strided(tensor, (tensor.numel(),), (1,)).clone()
        first = ctypes.c_void_p()
        self._call("cudaMalloc", ctypes.byref(first), ctypes.c_size_t(size))
        self._copy(first.value, dense.data_ptr(), size)
        memory = (ctypes.c_uint8 * size).from_address(first.value)
        return torch.frombuffer(memory, dtype=tensor.dtype).as_strided(tensor.shape, strides).as_subclass(kind)

    def get(self, tensor):
        """Returns a copy in memory of the CPU, after all that was queued on the default stream."""
        dense = torch.empty(math.prod(tensor.shape), dtype=tensor.dtype)
        self._copy(dense.data_ptr(), tensor.data_ptr(), dense.numel() * dense.element_size())
        return dense.as_strided(tensor.shape, tensor.stride())


@contextlib.contextmanager
def opened(library=LIBRARY, stream=0):
    """Within, new jobs open this file for CUDA, and this is the stream on which torch computes."""
    current = mock.Mock(return_value=mock.Mock(cuda_stream=stream))
    with mock.patch.dict(os.environ, REPRISE_CUDA_LIBRARY=library):
        with mock.patch.object(torch.cuda, "current_stream", current):
            yield current
