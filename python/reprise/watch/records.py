"""The records of a process: JSON, one object a line, each line by one write."""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
import traceback
from typing import Any, Callable, Optional


def rank_and_world() -> tuple[int, int]:
    """Returns this process's rank and the number of ranks, from torch.distributed if it is set up, else from
    what launchers put into the environment."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    for rank, world in (
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("SLURM_PROCID", "SLURM_NTASKS"),
    ):
        if rank in os.environ:
            return int(os.environ[rank]), int(os.environ.get(world, 1))
    return 0, 1


def told(error: BaseException) -> str:
    """An exception on one line of a readable length."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


class Records:
    """Lines wait in memory until the process trains; then they are in FOLDER/LIFE/rank-R-PID.jsonl."""

    def __init__(self, folder: str, life: str) -> None:
        self._folder = os.path.join(folder, life)
        self._waiting: list[bytes] = []
        self._failed: set[tuple[str, str]] = set()
        self._lock = threading.RLock()
        self.path: Optional[str] = None
        self.rank = 0

    def open(self, **start: Any) -> None:
        """Says `start`, and then all that waited."""
        with self._lock:
            if self.path is None:
                self.rank, world = rank_and_world()
                os.makedirs(self._folder, exist_ok=True)
                self.path = os.path.join(self._folder, f"rank-{self.rank}-{os.getpid()}.jsonl")
                waiting, self._waiting = self._waiting, []
                self.say("start", rank=self.rank, world=world, **start)
                for line in waiting:
                    self._write(line)

    def say(self, what: str, **fields: Any) -> None:
        line = json.dumps({"what": what, **fields}, default=str).encode() + b"\n"
        with self._lock:
            if self.path is None:
                self._waiting.append(line)
            else:
                self._write(line)

    def failed(self, where: str, error: BaseException) -> None:
        """Says that the hook itself failed; the same failure once."""
        if (where, repr(error)) in self._failed:
            return
        self._failed.add((where, repr(error)))
        trace = traceback.format_exception(type(error), error, error.__traceback__)
        self.say("hook_error", where=where, error=f"{type(error).__name__}: {error}", trace="".join(trace)[-2000:])

    def guarded(self, call: Callable) -> Callable:
        """The same function, which returns None instead of raising."""

        @functools.wraps(call)
        def safe(*args, **kwargs):
            try:
                return call(*args, **kwargs)
            except Exception as error:
                try:
                    self.failed(call.__qualname__, error)
                except OSError as second:
                    print(f"reprise watch: no record can be written: {second}", file=sys.stderr)
                return None

        return safe

    def unlock(self) -> None:
        """In a forked process, where the thread that held the lock may not be."""
        self._lock = threading.RLock()

    def flush_failures(self) -> None:
        """At the end of a process that never trained: what failed in the hook is told all the same."""
        if self.path is None and self._failed:
            self.open(trained=False)

    def _write(self, line: bytes) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            while line:
                line = line[os.write(file, line) :]
        finally:
            os.close(file)
