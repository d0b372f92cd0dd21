"""Tells when a step of training begins and ends, what it takes and what it loses.

A step is an update: the first optimizer step after a training forward or a backward. So several
forwards can belong to one step (gradient accumulation), and further optimizers that step after the
same backward; the step that torch's get_state_dict makes to fill an optimizer belongs to none.
"""

from __future__ import annotations

import sys
import threading
import time
import types
from typing import Any, Callable, Optional

from .held import Held
from .records import Records
from .values import SCALARS, Opaque, Values, attributes, is_array, is_tensor, parts
from .wholes import rows

INPUT_DEEP = 4
FORWARDS = 256  # of a process that has not trained yet, and may never: inputs of more are not told


class Steps:
    """Attributes:
    count: updates that this process has made.
    moved: "save" or "load" if there was one since the last whole record of what is held.
    thread: number of the thread that trains, or None before the first step.
    """

    def __init__(
        self, records: Records, values: Values, held: Held, every_step: bool, whole: bool, begin: Callable[[], None]
    ) -> None:
        """`begin` is called once, when it turns out that the process trains. `whole` asks for what can be compared
        under another layout: whole tensors, and the rows of inputs."""
        self._records, self._values, self._held = records, values, held
        self._every_step, self._whole = every_step, whole
        self._begin_process = begin
        self.count = 0
        self.moved = "first"
        self.thread: Optional[int] = None
        self._trains = False  # there was a backward or an update
        self._open = False  # a step has begun
        self._losses: list[Any] = []
        self._inputs: list[str] = []
        self._rows: list[str] = []
        self._forwards = 0
        self._since = time.perf_counter()

    # ------------------------------------------------------------------------ events

    def forward(self, module, args: tuple, kwargs: dict, frame: types.FrameType) -> None:
        """The outermost call of a module begins."""
        torch = sys.modules["torch"]
        if not (module.training and torch.is_grad_enabled()) or in_backward(torch):
            return
        if not is_trained(module):
            return
        if self.thread is None:
            self.thread = threading.get_ident()
        if self.thread != threading.get_ident() or is_capturing(torch):
            return
        self._held.trains(module)
        self._begin(frame)
        self._forwards += 1
        if self._forwards > FORWARDS and not self._trains:
            return
        inputs = given([args, kwargs])
        self._inputs.extend(self._values.told(value) for value in inputs)
        if self._whole:
            self._rows.extend(rows(inputs, self._values.tensor))

    def backward(self, tensors: Any, frame: types.FrameType) -> None:
        """A backward pass begins at these tensors."""
        torch = sys.modules["torch"]
        if in_backward(torch) or is_capturing(torch):
            return
        if self.thread is None:
            self.thread = threading.get_ident()
        if self.thread != threading.get_ident():
            return
        self._begin(frame)
        self._open_records()
        for tensor in tensors if isinstance(tensors, (list, tuple)) else [tensors]:
            if is_tensor(tensor) and tensor.numel() == 1:
                self._losses.append(tensor.detach().clone())

    def optimizer(self, optimizer) -> bool:
        """An optimizer has stepped; returns whether that is an update."""
        if not self._open:
            return False
        self._held.made(optimizer)
        self._open_records()
        self._open = False
        self.count += 1
        now = time.perf_counter()
        self._records.say(
            "step",
            step=self.count,
            losses=[number(loss) for loss in self._losses],
            inputs=self._inputs,
            lr=self._held.rates(),
            forwards=self._forwards,
            seconds=round(now - self._since, 6),
            **({} if self._forwards else {"unseen": True}),
            **({"rows": self._rows} if self._whole else {}),
        )
        self._losses, self._inputs, self._rows, self._forwards, self._since = [], [], [], 0, now
        self._held.keep()
        return True

    def end(self) -> None:
        """The process ends, after its last step."""
        if self._trains:
            self._records.say("held", step=self.count, at="end", why="end", **self._held.fields())

    # ------------------------------------------------------------------------ what is said

    def _open_records(self) -> None:
        """The process trains: what it has said so far is written."""
        if not self._trains:
            self._trains = True
            self._begin_process()

    def _begin(self, frame: types.FrameType) -> None:
        if self._open:
            return
        self._open = True
        if not self.count:
            self._since = time.perf_counter()
        why, self.moved = self.moved or "every", ""
        light = why == "every" and not self._every_step
        if not light:
            self._held.search(frame)
        more = {"light": True} if light else {}
        fields = self._held.fields(light, self._whole and not light)
        self._records.say("held", step=self.count, at="forward", why=why, **more, **fields)


def given(value: Any, deep: int = 0, above: tuple = ()) -> list[Any]:
    """The tensors and arrays of a call's arguments, in order; not those that a module computed."""
    if is_tensor(value):
        return [] if value.requires_grad else [value]
    if is_array(value):
        return [value]
    if isinstance(value, SCALARS) or deep > INPUT_DEEP or id(value) in above:
        return []
    inner = parts(value)
    if inner is None:
        module = type(value).__module__.split(".")[0]
        try:
            inner = [] if module in ("builtins", "torch") else list(attributes(value).items())
        except Opaque:
            inner = []
    above = (*above, id(value))
    return [tensor for _, part in inner for tensor in given(part, deep + 1, above)]


def is_trained(module) -> bool:
    """Whether it has a parameter that is trained. torch.compile calls modules with fakes, which is no forward."""
    for parameter in module.parameters():
        if type(parameter).__name__ == "FakeTensor":
            return False
        if parameter.requires_grad:
            return True
    return False


def number(loss) -> str:
    try:
        return float(loss).hex()
    except (TypeError, ValueError, OverflowError):
        return str(loss)


def in_backward(torch) -> bool:
    """Whether this thread runs a backward pass, in which checkpointed forwards are made again."""
    return torch._C._current_graph_task_id() != -1


def is_capturing(torch) -> bool:
    """While a CUDA graph is captured nothing may be copied."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
