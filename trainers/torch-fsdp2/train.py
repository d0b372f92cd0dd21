"""A network under torch's fully_shard, over replicas and tensor parallelism where the layout says so, saved by dcp."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import torch
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import torch_parts
from reprise_witness import initial, split

HIDDEN, BLOCKS, LR = 8, 2, 1 / 64
# Of each block: name, shape, and the dimension that tensor parallelism cuts.
PARTS = [("up.weight", (HIDDEN, torch_parts.INPUTS), 0), ("up.bias", (HIDDEN,), 0), ("down.weight", (torch_parts.INPUTS, HIDDEN), 1),
         ("down.bias", (torch_parts.INPUTS,), None), ("norm.weight", (torch_parts.INPUTS,), None), ("norm.bias", (torch_parts.INPUTS,), None)]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(torch_parts.INPUTS, HIDDEN), torch.nn.Linear(HIDDEN, torch_parts.INPUTS)
        self.norm = torch.nn.LayerNorm(torch_parts.INPUTS)

    def forward(self, x):
        return x + self.norm(self.down(torch.relu(self.up(x))))


class Place:
    """Where this rank stands: replicas outermost, then shards, then tensor parallelism."""

    def __init__(self, own):
        self.replicas, self.shards, self.tp = (own.layout.get(axis, 1) for axis in ("dp_replicate", "dp", "tp"))
        if self.replicas * self.shards * self.tp != own.world:
            raise ValueError(f"{own.layout} is not {own.world} ranks")
        self.in_tp, self.in_shards = own.rank % self.tp, own.rank // self.tp % self.shards
        self.in_data = own.rank // self.tp

    def box(self, shape, tp_dim):
        """Begin and size of this rank's part: tensor parallelism cuts first, fully_shard cuts the rows of what is left."""
        at, size = [0] * len(shape), list(shape)
        if tp_dim is not None:
            at[tp_dim], size[tp_dim] = split(shape[tp_dim], self.tp, self.in_tp)
        begin, size[0] = split(size[0], self.shards, self.in_shards)
        at[0] += begin
        return at, size

    def holders(self, tp_dim):
        return self.replicas * (self.tp if tp_dim is None else 1)


class Job:
    def __init__(self, own):
        self.witness, self.place, self.saves = own, Place(own), torch_parts.Saves(own)
        self.step = self.cursor = self.saved = 0
        self.model = self.built()
        self.names = {id(parameter): name for name, _, _, parameter in self.parameters(self.model)}
        self.optimizer = {"adamw": self.adamw, "sgd": self.sgd}[own.option("optimizer", "adamw")]()
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: 1 / (1 + step / 4))

    def adamw(self):
        return torch.optim.AdamW(self.model.parameters(), lr=LR, foreach=False)

    def sgd(self):
        return torch.optim.SGD(self.model.parameters(), lr=LR, momentum=0.875, foreach=False)

    def built(self):
        place, model = self.place, torch.nn.Sequential(*(Block() for _ in range(BLOCKS)))
        mesh = init_device_mesh("cpu", (place.replicas, place.shards, place.tp), mesh_dim_names=("dp_replicate", "dp", "tp"))
        over = mesh["dp"] if place.replicas == 1 else mesh["dp_replicate", "dp"]
        for block in model:
            if place.tp > 1:
                parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
            fully_shard(block, mesh=over)
        fully_shard(model, mesh=over)
        with torch.no_grad():
            for name, shape, tp_dim, parameter in self.parameters(model):
                at, size = place.box(shape, tp_dim)
                local = parameter.to_local()
                if list(local.shape) != size:
                    raise ValueError(f"{name}: fully_shard gives {list(local.shape)} where {size} at {at} is this rank's")
                local.copy_(torch.from_numpy(initial(f"model.{name}", shape, at, size, self.witness.seed)))
        return model

    def parameters(self, model):
        """Name, shape, cut dimension and parameter, in the order of PARTS; a parameter that is not in PARTS is an error."""
        found = dict(model.named_parameters())
        for block in range(BLOCKS):
            for name, shape, tp_dim in PARTS:
                yield f"{block}.{name}", shape, tp_dim, found.pop(f"{block}.{name}")
        if found:
            raise ValueError(f"parameters without a place: {sorted(found)}")

    def train(self):
        place = self.place
        parts = place.replicas * place.shards
        ids = torch_parts.samples_of(self.cursor, parts, place.in_data)
        inputs, targets = torch_parts.batch(ids)
        loss = (self.model(inputs) - targets).square().sum() / torch_parts.BATCH
        self.optimizer.zero_grad()
        (loss * parts).backward()  # fully_shard takes the mean over the ranks
        squares = sum(p.grad.to_local().double().square().sum().item() / place.holders(tp_dim) for _, _, tp_dim, p in self.parameters(self.model))
        lr = self.optimizer.param_groups[0]["lr"]
        self.optimizer.step()
        self.schedule.step()
        self.step, self.cursor = self.step + 1, self.cursor + torch_parts.BATCH
        first = place.in_tp == 0
        self.witness.step(self.step, loss=torch_parts.summed(loss, first), lr=lr, norm=torch_parts.summed(squares) ** 0.5, samples=ids if first else ())

    def told(self, when):
        """Tells the witness what the model, the optimizer and the loop hold."""
        own, tensors = self.witness, []
        for name, shape, tp_dim, parameter in self.parameters(self.model):
            at, _ = self.place.box(shape, tp_dim)
            holders = self.place.holders(tp_dim)
            tensors.append(own.tensor(f"model.{name}", shape, [(at, parameter.to_local())], holders))
            for kind, value in self.optimizer.state[parameter].items():
                value = value.to_local() if hasattr(value, "to_local") else value
                whole = value.dim() == 0
                tensors.append(own.tensor(f"optim.state.{name}.{kind}", [] if whole else shape, [([] if whole else at, value)], own.world if whole else holders))
        objects = [own.object(f"train.{name}", value) for name, value in self.of_loop().items()]
        for number, group in enumerate(self.optimizer.param_groups):
            named = {**group, "params": [self.names[id(p)] for p in group["params"]]}
            objects += [own.object(f"optim.param_groups.{number}.{name}", value) for name, value in named.items()]
        if self.late(when):
            objects.append(own.object("dataloader_state", self.dataloader()))
        own.state(when, self.step, tensors, objects)

    def of_loop(self):
        return {"step": self.step, "cursor": self.cursor, "schedule_step": self.schedule.last_epoch}

    def late(self, when):
        """True where the loader's state is a part of the job: from the second save of a process on."""
        return self.witness.option("late_object", "none") == "dataloader_state" and when == "save" and self.saved > 0

    def dataloader(self):
        return [self.cursor, [self.cursor + n for n in range(3)]]

    def state(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optim": optimizer, "train": self.of_loop()}

    def save(self, kind):
        self.told("save")
        state = self.state() | ({"dataloader_state": self.dataloader()} if self.late("save") else {})
        self.saved += 1
        self.saves.save(state, self.step, kind)

    def load(self, cold_at=None):
        if cold_at is None:
            state = self.state()
            self.saves.load(state)
            set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
            loop = state["train"]
        else:
            loop = {"step": cold_at, "cursor": cold_at * torch_parts.BATCH, "schedule_step": cold_at}
        self.step, self.cursor, self.schedule.last_epoch = loop["step"], loop["cursor"], loop["schedule_step"]
        self.told("loaded")


if __name__ == "__main__":
    started = torch_parts.start()
    torch_parts.carry_out(Job(started), started)
