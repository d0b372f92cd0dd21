"""What wraps models, and what that puts into the names of their tensors. Nothing of torch is imported here."""

from __future__ import annotations

from typing import Any

WRAPPERS = {"DistributedDataParallel": "module", "DataParallel": "module", "OptimizedModule": "_orig_mod"}
INNER = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")  # no state dict has them


def bare(model: Any) -> Any:
    """The model, or the one that a wrapper holds."""
    while type(model).__name__ in WRAPPERS:
        model = getattr(model, WRAPPERS[type(model).__name__])
    return model


def unwrapped(name: str) -> str:
    """A tensor's name without what DDP, FSDP, torch.compile and activation checkpointing put into it."""
    for inner in INNER:
        name = name.replace(inner, "")
    return name
