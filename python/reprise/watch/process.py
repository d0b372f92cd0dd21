"""Puts the parts together in one process, from its start to its end."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import pathlib
import socket
import sys
import threading
from typing import Any, Callable, Optional

from .digests import Digests
from .formats import watch_formats, watch_torch
from .held import Held
from .imports import AfterImport
from .kill import Killer
from .moves import Moves
from .records import Records, rank_and_world, told
from .settings import Settings
from .steps import Steps
from .values import Values

VERSION = 1  # of the records
FORKED = "a process that was forked from one that trains is not watched"
PACKAGES = {
    "torch": "torch", "numpy": "numpy", "transformers": "transformers", "accelerate": "accelerate",
    "lightning": "lightning", "pytorch_lightning": "pytorch-lightning", "megatron.core": "megatron-core",
    "torchtitan": "torchtitan", "torchdata": "torchdata", "safetensors": "safetensors", "deepspeed": "deepspeed",
}  # fmt: skip


class Process:
    """What is watched in this process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.records = Records(settings.folder, settings.life)
        self.digests = Digests()
        folders = {settings.folder: "<record>", settings.work: ".", os.getcwd(): "."}
        values = Values(self.digests, {**folders, os.path.realpath(settings.work or "."): "."})
        self.held = Held(values)
        self.steps = Steps(self.records, values, self.held, settings.every_step, settings.whole, self._open_records)
        self.killer = Killer(settings.kill, self.records)
        self.moves = Moves(self.records, values, self.steps, self.killer, settings.work, self._open_records)
        self.stand_ins: list[str] = []
        self.on = True
        self.status: Any = None  # given to sys.exit since the last update
        self._ended = False

    def _open_records(self) -> None:
        """From here on records are written: the process trains, or what it did before that decides."""
        if self.records.path is None:
            self.digests.prepare()
            self.records.open(
                version=VERSION,
                life=self.settings.life,
                local_rank=int(os.environ.get("LOCAL_RANK", 0)),
                pid=os.getpid(),
                command=list(sys.orig_argv) if hasattr(sys, "orig_argv") else list(sys.argv),
                folder=os.getcwd(),
                host=socket.gethostname(),
                packages=versions(),
                stand_ins=self.stand_ins,
                digest=self.digests.by,
                whole=self.settings.whole,
                why=self.digests.why,
            )

    def updated(self, optimizer) -> None:
        self.status = None
        if self.steps.optimizer(optimizer):
            self.killer.updated(self.steps.count)

    def end(self, exit: str, **fields: Any) -> None:
        """The process ends. Only the first call counts."""
        if self._ended or not self.on:
            return
        self._ended = True
        if self.records.path is None and self.moves.loaded:
            self._open_records()  # a load may be why it never trained
        if self.records.path is None:
            self.records.flush_failures()
            return
        self.records.guarded(self.steps.end)()
        if not self.held.whole_search:
            self.records.say("not_judged", name="objects", why="more can be reached than a search looks at")
        if self.held.overwritten:
            why = "DistributedDataParallel overwrites them with its first rank's before each forward"
            self.records.say("not_judged", name=f"buffers of rank {rank_and_world()[0]}", why=why)
        seconds = round(self.digests.seconds, 6)
        self.records.say("end", step=self.steps.count, exit=exit, hash_seconds=seconds, **fields)

    def end_of_interpreter(self) -> None:
        error = getattr(sys, "last_value", None)
        if error is not None and not isinstance(error, SystemExit):
            self.end("exception", error=told(error))
        else:
            self.end_with(self.status)

    def end_with(self, status: Any) -> None:
        """The process ends with an exit code, or with a text that stands for 1."""
        if status in (None, 0):
            self.end("returned")
        else:
            self.end("exit", error=str(status)[:500])

    def forked(self) -> None:
        """In a child that this process forked. One forked before training may train itself."""
        if self.records.path is None:
            self.records.unlock()
            self.moves.loaded = False
        else:
            self.on = False
            self.moves.off = FORKED


def begin(settings: Settings) -> Process:
    process = Process(settings)
    guarded = process.records.guarded
    after_import = AfterImport()
    after_import.call("torch", guarded(lambda torch: watch(torch, process)))
    watch_formats(after_import, process.moves, guarded)
    atexit.register(guarded(process.end_of_interpreter))
    os.register_at_fork(after_in_child=guarded(process.forked))
    leave, finish = os._exit, sys.exit

    @functools.wraps(leave)
    def _exit(status: int = 0):
        guarded(process.end_with)(status)
        leave(status)

    @functools.wraps(finish)
    def exit(status: Any = None, /):
        process.status = status
        finish(status)

    os._exit, sys.exit = _exit, exit
    os.rename, os.replace = process.moves.renaming(os.rename), process.moves.renaming(os.replace)
    kept = getattr(pathlib, "_normal_accessor", None)  # before Python 3.11, pathlib holds both functions
    if kept is not None:
        kept.rename, kept.replace = os.rename, os.replace
    return process


def watch(torch, process: Process) -> None:
    """Wraps torch, when it was imported."""
    watch_calls(torch, process)
    watch_backward(torch, process)
    watch_torch(torch, process.moves)
    sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(stepped(process))
    schedules = torch.optim.lr_scheduler
    for kind in (
        torch.optim.Optimizer,
        schedules.LRScheduler,
        *(schedules.SequentialLR, schedules.ChainedScheduler, schedules.ReduceLROnPlateau),
        torch.amp.GradScaler,
    ):
        watch_made(kind, process)
    for path in process.settings.stand_ins:
        process.stand_ins.append(path)
        stand_in(path)


def stand_in(path: str) -> None:
    """Imports a file under its own name."""
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def watch_calls(torch, process: Process) -> None:
    """Sees each outermost call of a module. A hook of torch's would not be given keyword arguments, and would
    be traced by torch.compile."""
    real, is_compiling, inside = torch.nn.Module.__call__, torch.compiler.is_compiling, threading.local()
    forward = process.records.guarded(process.steps.forward)

    @functools.wraps(real)
    def __call__(self, *args, **kwargs):
        if is_compiling():
            return real(self, *args, **kwargs)
        if not process.on or getattr(inside, "module", False):
            return real(self, *args, **kwargs)
        inside.module = True
        try:
            forward(self, args, kwargs, sys._getframe(1))
            return real(self, *args, **kwargs)
        finally:
            inside.module = False

    leave_uncompiled(torch, __call__)
    torch.nn.Module.__call__ = __call__


def watch_backward(torch, process: Process) -> None:
    real, is_compiling = torch.autograd.backward, torch.compiler.is_compiling
    begins = process.records.guarded(process.steps.backward)

    @functools.wraps(real)
    def backward(*args, **kwargs):
        if is_compiling():
            return real(*args, **kwargs)
        if process.on:
            begins(args[0] if args else kwargs.get("tensors"), sys._getframe(1))
        return real(*args, **kwargs)

    leave_uncompiled(torch, backward)
    torch.autograd.backward = backward


def leave_uncompiled(torch, function: Callable) -> None:
    """torch.compile compiles what the function calls, not the function, as it does with torch's own."""
    skip = getattr(getattr(torch._C._dynamo, "eval_frame", None), "skip_code", None)
    if skip is not None:
        skip(function.__code__)


def stepped(process: Process) -> Callable:
    updated = process.records.guarded(process.updated)

    def after_step(optimizer, args, kwargs) -> None:
        if process.on:
            updated(optimizer)

    return after_step


def watch_made(kind: type, process: Process) -> None:
    """Meets each instance when it has been made."""
    real: Optional[Callable] = kind.__dict__.get("__init__")
    made = process.records.guarded(process.held.made)
    if real is None:
        return

    @functools.wraps(real)
    def __init__(self, *args, **kwargs):
        real(self, *args, **kwargs)
        if process.on:
            made(self)

    kind.__init__ = __init__


def versions() -> dict[str, str]:
    """Versions of the packages that were imported."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for module, package in PACKAGES.items():
        if module in sys.modules:
            try:
                found[package] = version(package)
            except PackageNotFoundError:
                found[package] = str(getattr(sys.modules[module], "__version__", "?"))
    return found
