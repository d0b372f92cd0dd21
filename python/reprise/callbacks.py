"""Callbacks that tell a witness what a job of a framework holds, takes and computes; imports a framework where it is used.

    from reprise.callbacks import for_transformers
    from reprise.witness import Witness

    trainer = Trainer(..., callbacks=[for_transformers(Witness("run-b", life=1))])

Lives of one run are numbered from 0; each but the first must load. What it loaded is told at its first training forward:
some frameworks load the last parts after they said that training begins. Judge the folders with `reprise resume-proof`.
"""
import torch

from reprise.witness_torch import ids_of, summed, tell_torch
from reprise.wrappers import bare


class Followed:
    """A job whose training forwards are seen: its samples by their content, and the loss that the model returns. Without
    `hooks` somebody else calls `forward`.

    `at` returns the number of steps that are done; `loop` what the loop holds besides, as a dict; `how` is for tell_torch.
    """

    def __init__(self, own, model, optimizer=None, scheduler=None, at=lambda: 0, loop=dict, hooks=True, **how):
        self.own, self.at, self.loop, self.how = own, at, loop, how
        self.held = (model, optimizer, scheduler)
        self.loads, self.saved, self.ended = own.life > 0, None, False
        self._begin_step()
        if hooks:
            bare(model).register_forward_pre_hook(self._before, prepend=True, with_kwargs=True)
            bare(model).register_forward_hook(self._after)

    def _begin_step(self):
        self.samples, self.losses, self.lr = [], [], None

    def _before(self, module, args, kwargs):
        if module.training and not self.ended:
            self.forward((args, kwargs))

    def _after(self, module, args, output):
        loss = output.get("loss") if hasattr(output, "get") else getattr(output, "loss", output)
        if module.training and isinstance(loss, torch.Tensor) and loss.dim() == 0:
            self.losses.append(loss.detach())

    def forward(self, batch):
        """Before a training forward."""
        if self.loads:
            self.loads = False
            self.tell("loaded")
        self.samples += ids_of(batch)
        optimizer = self.held[1]
        if optimizer is not None and self.lr is None:
            self.lr = float(optimizer.param_groups[0]["lr"])

    def step(self, loss=None):
        """After an optimizer's step, when `at` counts it. The loss is the mean over the ranks; without one it is what the
        model returned since the last step."""
        losses = self.losses if loss is None else [loss]
        total = summed(sum(float(part) for part in losses)) / self.own.world if losses else None
        self.own.step(self.at(), loss=total, lr=self.lr, samples=self.samples)
        self._begin_step()

    def tell(self, when):
        tell_torch(self.own, when, self.at(), *self.held, loop=self.loop(), **self.how)

    def save(self):
        """Where the state is saved; once a step."""
        if self.saved != self.at():
            self.saved = self.at()
            self.tell("save")

    def end(self):
        self.ended = True
        self.tell("end")
        self.own.done()


def for_transformers(own, loop=dict):
    """A TrainerCallback. The loss is what the model returns, summed over the microbatches of a step."""
    from transformers import TrainerCallback

    class TellWitness(TrainerCallback):
        def on_train_begin(self, args, state, control, model=None, optimizer=None, lr_scheduler=None, **_):
            # Callbacks see the model without DistributedDataParallel around it.
            self.job = Followed(own, model, optimizer, lr_scheduler, lambda: state.global_step, loop, overwritten=own.world > 1)

        def on_step_end(self, *_, **__):
            self.job.step()

        def on_save(self, *_, **__):
            self.job.save()

        def on_train_end(self, *_, **__):
            self.job.end()

    return TellWitness()


def for_lightning(own, loop=dict):
    """A Callback of Lightning, for a job with one optimizer."""
    from lightning.pytorch.callbacks import Callback

    class TellWitness(Callback):
        def on_train_start(self, trainer, module):
            (optimizer,) = trainer.optimizers
            schedules = [config.scheduler for config in trainer.lr_scheduler_configs]
            at = lambda: trainer.global_step  # noqa: E731
            self.job = Followed(own, trainer.model, optimizer, *schedules[:1], at=at, loop=loop, hooks=False)
            self.told = trainer.global_step

        def on_train_batch_start(self, trainer, module, batch, index):
            self.job.forward(batch)

        def on_train_batch_end(self, trainer, module, outputs, batch, index):
            loss = outputs.get("loss") if hasattr(outputs, "get") else outputs
            if loss is not None:
                self.job.losses.append(loss.detach())
            if trainer.global_step != self.told:
                self.told = trainer.global_step
                self.job.step()

        def on_save_checkpoint(self, trainer, module, checkpoint):
            self.job.save()

        def on_fit_end(self, trainer, module):
            self.job.end()

    return TellWitness()


def for_accelerate(own, accelerator, model, optimizer, scheduler=None, at=lambda: 0, loop=dict):
    """Follows a loop under Accelerate; pass what `prepare` returned. `at` returns the number of steps that are done.

    Saves are told by themselves. Call `step(loss)` after each step and `end()` at the end.
    """
    job = Followed(own, model, optimizer, scheduler, at, loop)
    accelerator.register_save_state_pre_hook(lambda *_: job.save())
    return job
