"""Records what an unmodified training process holds, trains on, saves and loads.

The program ``reprise watch -- COMMAND`` puts ``site/`` in front of PYTHONPATH, so that each Python
process of COMMAND begins by calling ``start()``. Nothing of torch is imported here: what is to be
watched is wrapped right after the script itself has imported it. Processes that never train, such as
launchers and the workers of a DataLoader, write nothing.

Where to start reading: ``process.py`` puts the parts together. A step is told by ``steps.py``, what a
rank holds is found by ``search.py`` and named by ``held.py``, what goes through saves and loads is
told by ``moves.py`` and ``formats.py``, and ``records.py`` writes it all as JSON, one object a line.

What the script computes stays the same to the bit, random states included. A mistake of the hook
never reaches the script: it becomes a record ``hook_error``, and no verdict is passed on it.
"""

from __future__ import annotations

__all__ = ["start"]


def start() -> bool:
    """Begins to watch this process if the environment says so (REPRISE_WATCH); returns whether it does."""
    from .settings import Settings

    settings = Settings.of_environment()
    if settings is None:
        return False
    from .process import begin

    begin(settings)
    return True
