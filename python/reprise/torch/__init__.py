"""Saves and loads state dicts of PyTorch, in the format of ``torch.distributed.checkpoint``.

    import reprise.torch as rt

    rt.save(state_dict, "run", step=100, keep=3)
    rt.load(state_dict, "run")
    saving = rt.begin_save(state_dict, "run", step=200); ...; saving.before_update(); ...; saving.finish()

What ``dcp.save`` writes, ``load`` reads, and the other way round, bit for bit. A state dict is whatever
``dcp.save`` takes: nested dicts and lists of tensors, ``DTensor``, ``ShardedTensor``, ``Stateful`` objects
and anything that ``torch.save`` takes.

Calls are collective over the ranks of a process group, or of this process alone where
``torch.distributed`` isn't initialised: all ranks make the same calls in the same order, and an
``reprise.Error`` is the same on all of them.
"""

from __future__ import annotations

import reprise

if not hasattr(reprise, "Error"):
    raise ImportError(
        f"the module reprise in {getattr(reprise, '__file__', None)} is another package of that name; "
        "remove it (pip uninstall reprise), and then pip install --force-reinstall reprise-ckpt"
    )

from reprise.errors import Error

from .dcp import Reader, Writer, install, uninstall
from .job import configure
from .loading import LoadResult, load
from .saving import SaveResult, Saving, UnequalCopy, begin_save, save

__all__ = [
    "Error",
    "LoadResult",
    "Reader",
    "SaveResult",
    "Saving",
    "UnequalCopy",
    "Writer",
    "begin_save",
    "configure",
    "install",
    "load",
    "save",
    "uninstall",
]
