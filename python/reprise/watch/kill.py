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
        self._saves: list[tuple[Future, bool]] = []  # with whether a thread completes it

    def _due(self, step: int) -> bool:
        kill = self._kill
        return kill is not None and step >= kill.step and kill.rank in (None, self._records.rank)

    def updated(self, step: int) -> None:
        """An update was made."""
        kill = self._kill
        if kill is None or kill.phase or kill.asynchronous == "during" or not self._due(step):
            return
        if kill.asynchronous == "complete" and not self._complete():
            return
        self._die(step, f"step {step}")

    def at(self, phase: str, step: int, path: str) -> None:
        """A phase of a save begins."""
        if self._kill is not None and self._kill.phase == phase and self._due(step):
            self._die(step, f"{phase} of {path}")

    def began(self, save: Future, step: int, by_thread: bool) -> None:
        """An asynchronous save is on its way; `by_thread`: it is completed by a thread, not by a call of the
        script's."""
        self._saves = [other for other in self._saves if not other[0].done()] + [(save, by_thread)]
        if self._kill is not None and self._kill.asynchronous == "during" and self._due(step):
            done = save.done()
            self._die(step, "an asynchronous save was complete already" if done else "while an asynchronous save is on its way")

    def _complete(self) -> bool:
        """Whether all asynchronous saves are complete; those of threads are waited for. For one that the script
        completes it is the end of a later step that ends the life."""
        rest = wait([save for save, by_thread in self._saves if by_thread], timeout=WAIT_SECONDS).not_done
        if rest:
            why = f"{len(rest)} asynchronous saves were not complete after {WAIT_SECONDS:.0f} s"
            self._records.say("not_judged", name="kill", why=why)
        return all(save.done() for save, by_thread in self._saves if not by_thread)

    def _die(self, step: int, at: str) -> None:
        self._records.say("killed", step=step, at=at)
        os.kill(os.getpid(), signal.SIGKILL)
