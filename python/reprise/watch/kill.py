"""The end that a life was told to take: SIGKILL of this process by itself."""

from __future__ import annotations

import os
import signal
from concurrent.futures import Future, wait
from typing import Optional

from .records import Records
from .settings import Kill

WAIT_SECONDS = 600.0  # for asynchronous saves


class Killer:
    def __init__(self, kill: Optional[Kill], records: Records) -> None:
        self._kill, self._records = kill, records
        self._saves: list[Future] = []

    def _due(self, step: int) -> bool:
        kill = self._kill
        return kill is not None and step >= kill.step and kill.rank in (None, self._records.rank)

    def updated(self, step: int) -> None:
        """An update was made."""
        kill = self._kill
        if kill is None or kill.phase or kill.asynchronous == "during" or not self._due(step):
            return
        if kill.asynchronous == "complete":
            self._wait()
        self._die(step, f"step {step}")

    def at(self, phase: str, step: int, path: str) -> None:
        """A phase of a save begins."""
        if self._kill is not None and self._kill.phase == phase and self._due(step):
            self._die(step, f"{phase} of {path}")

    def began(self, save: Future, step: int) -> None:
        """An asynchronous save is on its way."""
        self._saves = [other for other in self._saves if not other.done()] + [save]
        if self._kill is not None and self._kill.asynchronous == "during" and self._due(step):
            done = save.done()
            self._die(step, "an asynchronous save was complete already" if done else "while an asynchronous save is on its way")

    def _wait(self) -> None:
        rest = wait(self._saves, timeout=WAIT_SECONDS).not_done
        if rest:
            self._records.say(
                "not_judged",
                name="kill",
                why=f"{len(rest)} asynchronous saves were not complete after {WAIT_SECONDS:.0f} s",
            )

    def _die(self, step: int, at: str) -> None:
        self._records.say("killed", step=step, at=at)
        os.kill(os.getpid(), signal.SIGKILL)
