"""A network under torch's fully_shard, over replicas and tensor parallelism where the layout says so, saved by dcp."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "python")]
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import torch_parts
from reprise.witness import split

HIDDEN, BLOCKS = 8, 2
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


class Job(torch_parts.Job):
    def __init__(self, own):
        self.place = Place(own)
        super().__init__(own)

    def built(self):
        place, model = self.place, torch.nn.Sequential(*(Block() for _ in range(BLOCKS)))
        mesh = init_device_mesh("cpu", (place.replicas, place.shards, place.tp), mesh_dim_names=("dp_replicate", "dp", "tp"))
        over = mesh["dp"] if place.replicas == 1 else mesh["dp_replicate", "dp"]
        for block in model:
            if place.tp > 1:
                parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
            fully_shard(block, mesh=over)
        fully_shard(model, mesh=over)
        return model

    def held(self, model):
        """Each parameter with its place; one that is not in PARTS is an error."""
        found = dict(model.named_parameters())
        for block in range(BLOCKS):
            for name, shape, tp_dim in PARTS:
                yield torch_parts.Held(f"{block}.{name}", shape, *self.place.box(shape, tp_dim), self.place.holders(tp_dim), found.pop(f"{block}.{name}"))
        if found:
            raise ValueError(f"parameters without a place: {sorted(found)}")

    def data_parts(self):
        return self.place.replicas * self.place.shards, self.place.in_data, self.place.in_tp == 0


if __name__ == "__main__":
    torch_parts.carry_out(Job)
