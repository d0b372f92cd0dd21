"""What stands in for CUDA where there is none: Megatron-Core asks for its device, its stream and its generator in places.

Imported before megatron.core. It touches neither planning nor state dicts: tensors that are asked for on a GPU are made in
host memory, waits for the GPU return at once, and the GPU's generator is a fixed tensor. Fused functions are not compiled:
that would start a C++ compiler in each process.
"""
import contextlib

import torch

PLACE = "cpu"  # the device that torch.cuda.current_device() names; another spelling makes it another device
STANDS_IN = not torch.cuda.is_available()


def on_host(make):
    def made(*args, device=None, **rest):
        return make(*args, device="cpu" if str(device).startswith("cuda") else device, **rest)
    return made


def of_gpu(tensor_type):
    """Megatron sorts parameters by the name of their type, and knows those on a GPU alone."""
    def named(tensor, dtype=None, *args, **rest):
        if dtype is None and isinstance(tensor, torch.nn.Parameter):
            return tensor_type(tensor).replace("torch.", "torch.cuda.")
        return tensor_type(tensor, *([] if dtype is None else [dtype]), *args, **rest)
    return named


class Stream:
    def wait_stream(self, other):
        pass


def stand_in():
    for name in ("tensor", "zeros", "ones", "empty", "full", "arange"):
        setattr(torch, name, on_host(getattr(torch, name)))
    torch.Tensor.type = of_gpu(torch.Tensor.type)
    torch.Tensor.cuda = lambda tensor, *args, **rest: tensor
    torch.cuda.current_device = lambda: PLACE
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.set_device = lambda device: None
    torch.cuda.get_rng_state = lambda device=None: torch.zeros(16, dtype=torch.uint8)
    torch.cuda.set_rng_state = lambda state, device=None: None
    torch.cuda.default_stream = lambda device=None: Stream()
    torch.cuda.current_stream = lambda device=None: Stream()
    torch.cuda.stream = lambda stream: contextlib.nullcontext()
    torch.compile = lambda function=None, **options: function if function else lambda later: later
    from megatron.core.tensor_parallel import random
    from megatron.core.transformer.moe import moe_utils
    random.CudaRNGStatesTracker.fork = lambda tracker, name="": contextlib.nullcontext()
    if not hasattr(moe_utils, "te_general_gemm"):  # a router asks for it where Transformer Engine is not installed, too
        moe_utils.te_general_gemm = None


if STANDS_IN:
    stand_in()
