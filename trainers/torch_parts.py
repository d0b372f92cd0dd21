"""What the torch trainers share: a writer and a reader that tell their phases, saves in folders with a tracker, samples."""
import os
import pathlib

import numpy
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

from reprise_witness import Witness, initial, split

BATCH, INPUTS = 8, 5  # samples of one step in the whole job, numbers of a sample
_witness = None


def witness(**about):
    """The witness of this process; one that a rank started to write for it finds its rank's in the environment."""
    global _witness
    if _witness is None:
        _witness = Witness(**about)
    return _witness


def start():
    """The witness and the process group of a torch trainer."""
    torch.set_num_threads(1)
    own = witness(versions=["torch"])
    dist.init_process_group("gloo")
    return own


class Writer(dcp.FileSystemWriter):
    """The file system's writer; says when it writes and, on the coordinator, when it commits."""

    def __init__(self, path, step):
        super().__init__(path)
        self.step_told = step

    def write_data(self, plan, planner):
        with witness().phase("save.write", self.step_told):
            written = super().write_data(plan, planner)
            written.wait()
        return written

    def finish(self, metadata, results):
        with witness().phase("save.commit", self.step_told):
            super().finish(metadata, results)


class Reader(dcp.FileSystemReader):
    def read_data(self, plan, planner):
        with witness().phase("load.read"):
            read = super().read_data(plan, planner)
            read.wait()
        return read


class Saves:
    """step_<n> (or one folder for all) under the root, and a file `latest` that is replaced when a save is whole."""

    def __init__(self, own):
        self.witness, self.root, self.pending = own, pathlib.Path(own.checkpoints), None
        self.caching = own.option("plan_caching", "off") == "on"

    def folder(self, step):
        return f"step_{step}" if self.witness.option("folders", "per_step") == "per_step" else "checkpoint"

    def save(self, state, step, kind):
        """Saves now, or begins to; kind is none, thread or process."""
        self.finalize()
        with self.witness.phase("save.begin", step):
            name = self.folder(step)
            writer = Writer(self.root / name, step)
            planner = DefaultSavePlanner(enable_plan_caching=self.caching)
        if kind == "none":
            dcp.save(state, storage_writer=writer, planner=planner)
            self.publish(name, step)
        else:
            kinds = {"thread": AsyncCheckpointerType.THREAD, "process": AsyncCheckpointerType.PROCESS}
            future = dcp.async_save(state, storage_writer=writer, planner=planner, async_checkpointer_type=kinds[kind])
            self.pending = (future, name, step)

    def finalize(self):
        """Waits for the save that is under way, if any, and publishes it."""
        if self.pending:
            (future, name, step), self.pending = self.pending, None
            future.result()
            self.publish(name, step)

    def publish(self, name, step):
        dist.barrier()
        with self.witness.phase("save.publish", step):
            if self.witness.rank == 0:
                part = self.root / "latest.part"
                with open(part, "w") as file:
                    file.write(name)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(part, self.root / "latest")
        dist.barrier()

    def load(self, state):
        """Fills `state` in place from the save that the tracker names."""
        with self.witness.phase("load.begin"):
            name = (self.root / "latest").read_text()
        dcp.load(state, storage_reader=Reader(self.root / name))


def samples_of(cursor, parts, part):
    """The ids that one of `parts` data-parallel ranks takes of the batch that begins at the cursor."""
    begin, count = split(BATCH, parts, part)
    return range(cursor + begin, cursor + begin + count)


def batch(ids):
    """Inputs and targets of these samples: functions of the id alone."""
    rows = [initial(name, [1 << 20, INPUTS], [i, 0], [1, INPUTS], scale=1.0) for name in ("input", "target") for i in ids]
    both = torch.from_numpy(numpy.concatenate(rows)).reshape(2, len(ids), INPUTS)
    return both[0], both[1]


def summed(number, weight=1.0):
    """A float64 summed over all ranks in the order of the ranks, so that it is the same on each."""
    mine = torch.tensor([float(number.detach() if isinstance(number, torch.Tensor) else number) * weight], dtype=torch.float64)
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    return sum(p.item() for p in parts)


def carry_out(job, own):
    """The loop of a torch trainer."""
    for action in own.actions(at_end=lambda: job.told("end")):
        if action["do"] == "train":
            for _ in range(action["steps"]):
                job.train()
        elif action["do"] == "save":
            kind = own.option("async", "none")
            wanted = action.get("async")
            job.save("none" if wanted is False else "thread" if wanted and kind == "none" else kind)
        elif action["do"] == "load":
            job.load(cold_at=action["step"] if action.get("cold") else None)
        elif action["do"] == "finalize":
            job.saves.finalize()
        else:
            raise ValueError(f"no action {action['do']}")
    dist.barrier()
    if job.saves.pending is None:
        dist.destroy_process_group()
    else:
        os._exit(0)  # the plan does not wait for the save that is under way, and neither does this process
