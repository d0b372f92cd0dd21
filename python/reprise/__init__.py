"""Saves and loads the state of training jobs as distributed checkpoints.

``import reprise.torch as rt`` has the calls for PyTorch. This module has what is common to all: the
version, and the exception ``Error``. Importing it needs neither torch nor the engine's library.

The distribution is named ``reprise-ckpt``.
"""

from __future__ import annotations

from .errors import Error

__all__ = ["Error", "__version__", "library_version"]

__version__ = "0.2.0"


def library_version() -> str:
    """Returns the version of the engine's library, such as "0.2.0". Throws ImportError if there is none."""
    from . import _c

    return _c.library().rp_version().decode()
