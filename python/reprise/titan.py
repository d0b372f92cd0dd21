"""A checkpointer for torchtitan 0.3 and later.

    import reprise.titan

    config.checkpoint = reprise.titan.Manager.Config(enable=True, interval=500, async_mode="async")

Files, keys and bytes are those of torchtitan's own manager, and each reads what the other wrote. For
torchtitan 0.2 there is ``reprise.torch.install()``.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import torch
import torch.distributed.checkpoint as dcp

import reprise.torch as rt
from reprise.torch.job import interruptible, job_of

try:
    from torchtitan.components.checkpointer import CheckpointManager
    from torchtitan.components.checkpointer.base import MODEL
    from torchtitan.tools import filesystem
except ImportError as error:
    raise ImportError(
        f"reprise.titan needs torchtitan 0.3 or later: {error}. With 0.2, call reprise.torch.install() before "
        "the training script imports torchtitan, whose own manager then saves and loads with the engine"
    ) from error

__all__ = ["Manager"]

_log = logging.getLogger("reprise")


class Manager(CheckpointManager):
    """torchtitan's manager, which saves and loads with the engine.

    What it stores in Hugging Face's format, it stores and loads as torchtitan does. ``keep_latest_k`` counts
    whole checkpoints, and removes older ones after a commit. If the newest checkpoint is damaged, a load goes
    on to the one before. Element types that differ are converted, as torchtitan does. All ranks make the same calls.
    """

    @dataclass(kw_only=True, slots=True)
    class Config(CheckpointManager.Config):
        """That of torchtitan's manager.

        async_mode: "disabled" saves before ``save`` returns. With any other, the state is copied while the
            next step runs, up to ``maybe_wait_for_staging``, and written in the background; a later call of
            ``maybe_wait_for_staging``, ``save``, ``load`` or ``close`` commits it.
        checksums, check_updates: see ``reprise.torch.begin_save``.
        """

        checksums: str = "crc32"
        check_updates: bool = False

    def __init__(self, config: Config, **parts: Any) -> None:
        # Neither torchtitan's group for asynchronous saves nor its thread that removes checkpoints.
        others: dict[str, Any] = {"async_mode": "disabled", "keep_latest_k": 0}
        super().__init__(dataclasses.replace(config, **others), **parts)
        if not self.enable:
            return
        if filesystem.is_remote(self.folder):
            raise rt.Error("UNSUPPORTED", "the engine saves to file systems alone", file=self.folder)
        self._in_background = config.async_mode != "disabled"
        self._checksums, self._check_updates = config.checksums, config.check_updates
        self.save_future: Optional[rt.Saving] = None
        self._staging: Optional[rt.Saving] = None  # until its state has been copied
        self._newest = False
        self.keep_latest_k = config.keep_latest_k

    def __del__(self) -> None:
        pass  # ranks collect garbage at different times, and to finish a save is collective

    @torch.no_grad()
    def _save(self, curr_step: int, last_step: bool = False) -> bool:
        if not self._should_save(curr_step, last_step):
            return False
        self.maybe_wait_for_saving()
        if last_step:
            self._save_last_step(curr_step)
        elif self._in_background:
            self.save_future = self._staging = rt.begin_save(
                self._flattened_model_states_sd(),
                self.folder,
                check_updates=self._check_updates,
                **self._options(curr_step),
            )
        else:
            rt.save(self._flattened_model_states_sd(), self.folder, **self._options(curr_step))
        return True

    def dcp_save(
        self,
        state_dict: dict[str, Any],
        checkpoint_id: str,
        async_mode: Any,
        enable_garbage_collection: bool = False,
        to_hf: bool = False,
    ) -> Any:
        """Saves the last step."""
        if to_hf:
            return super().dcp_save(state_dict, checkpoint_id, async_mode, enable_garbage_collection, to_hf)
        step = int(os.path.basename(checkpoint_id).rpartition("-")[2])
        rt.save(state_dict, self.folder, **self._options(step))
        return None

    def _options(self, step: int) -> dict[str, Any]:
        return {"step": step, "keep": self.keep_latest_k or None, "checksums": self._checksums}

    def _load(self, step: int = -1) -> bool:
        self.maybe_wait_for_saving()
        self._newest = step == -1
        self._found = self._newest_step() if self._newest else step
        return super()._load(step)

    def _find_load_step(self, folder: str = "") -> int:
        return self._found  # since torchtitan's own looks on each rank by itself

    def _newest_step(self) -> int:
        """Returns the highest step that all ranks find, or -1 if none finds any. Collective: a file system may not
        show a new step to all of them at once."""
        with interruptible():
            job = job_of(None)
            with job.lock:
                own = job.on_all(lambda: _steps_in(Path(self.folder)))
                fabric = job.fabric
                told = [] if fabric is None else fabric.gather(range(fabric.size), json.dumps(own).encode())
        of_ranks = [dict(json.loads(one)) for one in told] or [dict(own)]
        found = set(of_ranks[0]).intersection(*of_ranks)
        if not found and any(of_ranks):
            rank = next(rank for rank, steps in enumerate(of_ranks) if steps)
            what = f"rank {rank} finds step {max(of_ranks[rank])}, but no step is found by all ranks"
            raise rt.Error("NOT_FOUND", what, rank=rank, file=self.folder)
        whole = {step for step in found if all(steps[step] for steps in of_ranks)}
        newest = max(whole or found, default=-1)
        if fabric is None or fabric.rank == 0:
            for step in sorted(step for step in found if step > newest):
                _log.warning("passed over step %d: in Hugging Face's format there are weights alone", step)
        return newest

    def dcp_load(
        self, state_dict: dict[str, Any], checkpoint_id: str, from_hf: bool, from_quantized: bool
    ) -> None:
        if from_hf:
            return super().dcp_load(state_dict, checkpoint_id, from_hf, from_quantized)
        own = os.path.dirname(checkpoint_id) == self.folder.rstrip("/")
        path = self.folder if own and self._newest else checkpoint_id
        try:
            rt.load(state_dict, path)
        except rt.Error as error:
            if error.code != "DTYPE_DRIFT":
                raise
            # Weights may have been exported with another type. Nothing has changed yet, and torch converts.
            dcp.load(state_dict, storage_reader=rt.Reader(path))
        if MODEL in self.states:  # whose tensors stand at the top of the state dict
            self.states[MODEL].load_state_dict(state_dict)

    def _maybe_wait_for_staging(self) -> None:
        if self._staging is not None:
            self._staging.before_update()
            self._staging = None
        elif self.save_future is not None and self.save_future.poll():
            self.save_future = None

    def _wait_for_saving(self) -> None:
        saving, self.save_future, self._staging = self.save_future, None, None
        assert saving is not None
        saving.finish()

    def _close(self) -> None:
        if self.save_future is None:
            return
        if sys.exc_info()[0] is None:
            self.maybe_wait_for_saving()
        else:  # the other ranks may not come; threads may still read the tensors
            self.save_future.before_update()


def _steps_in(folder: Path) -> list[tuple[int, bool]]:
    """Returns the steps that are stored in torch's format (True) or in Hugging Face's. What an interrupted save has
    left beside them is none."""
    names = os.listdir(folder) if folder.is_dir() else []
    found = []
    for name in (name for name in names if re.fullmatch(r"step-\d+", name)):
        whole = (folder / name / ".metadata").is_file()
        if whole or (folder / name / "model.safetensors.index.json").is_file():
            found.append((int(name[5:]), whole))
    return found
