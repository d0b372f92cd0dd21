"""What stands in for CUDA where torchtitan's trainer asks for it; imported before the script."""
import types

import torch
import torch._utils


def stand_in():
    torch._utils._get_available_device_type = lambda: "cpu"  # before torchtitan asks
    for name, answer in {
        "get_device_name": "CPU",
        "get_device_properties": types.SimpleNamespace(total_memory=1 << 30),
        "memory_stats": {},
        "reset_peak_memory_stats": None,
        "empty_cache": None,
    }.items():
        if not hasattr(torch.cpu, name):
            setattr(torch.cpu, name, lambda *_, answer=answer: answer)
    from torchtitan.distributed import utils

    utils.set_pg_timeouts = lambda **_: None  # its barrier names a device


if not torch.cuda.is_available():
    stand_in()
