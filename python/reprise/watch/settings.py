"""What the driver tells a life through the environment."""

from __future__ import annotations

import json
import os
from typing import NamedTuple, Optional


class Kill(NamedTuple):
    """When this process ends itself with SIGKILL.

    Attributes:
        step: after this many updates of the process; with a phase, the first one at or after it.
        rank: rank that dies, or None: each.
        phase: "", "save.begin" (handed over, nothing written) or "save.written" (complete on disk).
        asynchronous: "", "complete" (only when each save that was begun is) or "during".
    """

    step: int
    rank: Optional[int] = None
    phase: str = ""
    asynchronous: str = ""

    @staticmethod
    def of(text: str) -> Kill:
        given = json.loads(text)
        known = {name: given[name] for name in Kill._fields if given.get(name) is not None}
        unknown = sorted(set(given) - set(Kill._fields))
        if unknown:
            raise ValueError(f"REPRISE_WATCH_KILL: {unknown} is not known")
        kill = Kill(**known)
        if kill.phase not in ("", "save.begin", "save.written"):
            raise ValueError(f"REPRISE_WATCH_KILL: there is no phase {kill.phase!r}")
        if kill.asynchronous not in ("", "complete", "during"):
            raise ValueError(f"REPRISE_WATCH_KILL: asynchronous is not {kill.asynchronous!r}")
        return kill


class Settings(NamedTuple):
    folder: str  # of the records, absolute
    life: str
    kill: Optional[Kill]
    every_step: bool
    whole: bool  # the life that resumes has another layout: whole tensors are told, too
    stand_ins: tuple[str, ...]  # paths of files that are run right after torch was imported
    work: str  # what all lives have in common is outside of this directory; "" if it is not known

    @staticmethod
    def of_environment() -> Optional[Settings]:
        """Returns None where nothing is to be watched."""
        folder = os.environ.get("REPRISE_WATCH")
        if not folder:
            return None
        kill = os.environ.get("REPRISE_WATCH_KILL")
        whole = on("REPRISE_WATCH_WHOLE")
        return Settings(
            folder=os.path.abspath(folder),
            life=os.environ.get("REPRISE_WATCH_LIFE", "A"),
            kill=Kill.of(kill) if kill else None,
            every_step=on("REPRISE_WATCH_EVERY_STEP") or whole,  # a rank can't know when another one saves
            whole=whole,
            stand_ins=tuple(filter(None, os.environ.get("REPRISE_WATCH_STANDIN", "").split(os.pathsep))),
            work=os.environ.get("REPRISE_WATCH_WORK", ""),
        )


def on(name: str) -> bool:
    return os.environ.get(name, "") not in ("", "0")
