"""What the torch trainers share: a writer and a reader that tell their phases, saves in folders with a tracker, samples."""
import collections
import os
import pathlib

import numpy
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

from engine_saves import TorchSaves
from reprise.witness import Witness, initial, split
from reprise.witness_torch import summed, tell_torch

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
        # Saves beside training talk in a group of their own: two threads in one group would take each other's messages.
        alone = own.options.get("async", "none") != "none" and own.options.get("async_group", "own") == "own"
        self.group = dist.new_group(backend="gloo") if alone else None
        self.caching = own.options.get("plan_caching", "off") == "on"

    def folder(self, step):
        return f"step_{step}" if self.witness.options.get("folders", "per_step") == "per_step" else "checkpoint"

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
            future = dcp.async_save(state, storage_writer=writer, planner=planner, process_group=self.group, async_checkpointer_type=kinds[kind])
            self.pending = (future, name, step)

    def before_update(self):
        """Nothing: torch returns when the state is copied."""

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


Held = collections.namedtuple("Held", "name shape at size holders parameter")  # a parameter and which box of it is this rank's


class Job:
    """A model under fully_shard that trains, saves and loads. A trainer says how it is built and who holds what:

    built() -> model; held(model) -> each parameter as Held; data_parts() -> (parts, this rank's part, True if it is the one
    that counts); ready(p) after the gradients are there; outside(state) -> the state as it is handed to dcp.
    """
    LR = 1 / 64

    def __init__(self, own):
        self.witness = own
        self.saves = TorchSaves(own) if own.options.get("engine", "torch") == "reprise" else Saves(own)
        self.step = self.cursor = self.saved = 0
        self.model = self.built()
        self.fill()
        self.places = {h.name: (h.shape, h.at, h.holders) for h in self.held(self.model)}
        self.optimizer = {"adamw": self.adamw, "sgd": self.sgd}[own.options.get("optimizer", "adamw")]()
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 / (1 + step / 4))

    def adamw(self):
        return torch.optim.AdamW(self.model.parameters(), lr=self.LR, foreach=False)

    def sgd(self):
        return torch.optim.SGD(self.model.parameters(), lr=self.LR, momentum=0.875, foreach=False)

    def fill(self):
        """First content: a function of key and global index. fully_shard must have left this rank the box that is its own."""
        with torch.no_grad():
            for h in self.held(self.model):
                local = h.parameter.to_local()
                if list(local.shape) != h.size:
                    raise ValueError(f"{h.name}: fully_shard gives {list(local.shape)} where {h.size} at {h.at} is this rank's")
                local.copy_(torch.from_numpy(initial(f"model.{h.name}", h.shape, h.at, h.size, self.witness.seed)))

    def ready(self):
        pass

    def outside(self, state):
        return state

    def train(self):
        parts, part, counts = self.data_parts()
        ids = samples_of(self.cursor, parts, part)
        inputs, targets = batch(ids)
        loss = (self.model(inputs) - targets).square().sum() / BATCH
        self.optimizer.zero_grad()
        (loss * parts).backward()  # fully_shard takes the mean over the ranks
        self.ready()
        squares = sum(h.parameter.grad.to_local().double().square().sum().item() / h.holders for h in self.held(self.model))
        lr = self.optimizer.param_groups[0]["lr"]
        self.saves.before_update()
        self.optimizer.step()
        self.schedule.step()
        self.step, self.cursor = self.step + 1, self.cursor + BATCH
        self.witness.step(self.step, loss=summed(loss, counts), lr=lr, norm=summed(squares) ** 0.5, samples=ids if counts else ())

    def told(self, when):
        """Tells the witness what the model, the optimizer and the loop hold, by the trainer's own boxes."""
        late = [self.witness.object("dataloader_state", judged=False)] if self.late(when) else []
        tell_torch(self.witness, when, self.step, self.model, self.optimizer, loop={"train": self.of_loop()},
                   place=lambda name, _: self.places[name], objects=late)

    def of_loop(self):
        return {"step": self.step, "cursor": self.cursor, "schedule_step": self.schedule.last_epoch}

    def late(self, when):
        """True where the loader's state is a part of the job: from the second save of a process on."""
        return self.witness.options.get("late_object", "none") == "dataloader_state" and when == "save" and self.saved > 0

    def dataloader(self):
        return [self.cursor, [self.cursor + n for n in range(3)]]

    def state(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer, "train": self.of_loop()}

    def save(self, kind):
        self.told("save")
        state = self.outside(self.state()) | ({"dataloader_state": self.dataloader()} if self.late("save") else {})
        self.saved += 1
        self.saves.save(state, self.step, kind)

    def load(self, cold_at=None):
        if cold_at is None:
            state = self.state()
            outside = self.outside(state)  # in the same memory
            self.saves.load(outside)
            optimizer = {**state["optim"], "param_groups": outside["optim"]["param_groups"]}
            set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=optimizer)
            loop = outside["train"]
        else:
            loop = {"step": cold_at, "cursor": cold_at * BATCH, "schedule_step": cold_at}
        self.step, self.cursor, self.schedule.last_epoch = loop["step"], loop["cursor"], loop["schedule_step"]
        self.told("loaded")


def carry_out(kind_of_job):
    """A torch trainer from its start to its end."""
    own = start()
    job = kind_of_job(own)
    for action in own.actions(at_end=lambda: job.told("end")):
        if action["do"] == "train":
            for _ in range(action["steps"]):
                job.train()
        elif action["do"] == "save":
            kind = own.options.get("async", "none")
            wanted = action.get("async")
            if wanted and kind == "none":
                raise ValueError("an asynchronous save needs the option async: thread or process")
            job.save("none" if wanted is False else kind)
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
