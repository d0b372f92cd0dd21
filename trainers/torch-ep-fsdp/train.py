"""Experts spread over an expert mesh beside fully_shard: each rank has some experts, and of those a shard of the rows.

fully_shard knows of an expert's shards alone, so the tensors are described anew for a checkpoint: over shards and experts,
or, with `placements: historical`, by the helper of a fork that took the parameter's own mesh.
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "python")]
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard

import torch_parts
from reprise.witness import split

WIDTH, HIDDEN, EXPERTS, BLOCKS = torch_parts.INPUTS, 8, 4, 2
# Of each block: name, shape; the experts' first dimension is the expert, and fully_shard cuts their second.
DENSE = [("gate.weight", (EXPERTS, WIDTH)), ("mix.weight", (HIDDEN, WIDTH)), ("mix.bias", (HIDDEN,))]
OF_EXPERTS = [("experts.up", (EXPERTS, HIDDEN, HIDDEN)), ("experts.down", (EXPERTS, HIDDEN, WIDTH))]


class Gather(torch.autograd.Function):
    """The rows of all ranks of a group; backward adds up what each made of mine."""

    @staticmethod
    def forward(context, rows, group):
        context.group = group
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, rows.contiguous(), group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(context, gradient):
        return Scatter.apply(gradient, context.group), None


class Scatter(torch.autograd.Function):
    """My rows of the sum over the ranks of a group; backward is the rows of all."""

    @staticmethod
    def forward(context, rows, group):
        context.group = group
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, rows.contiguous(), group=group)
        return sum(parts).chunk(len(parts))[dist.get_rank(group)]

    @staticmethod
    def backward(context, gradient):
        return Gather.apply(gradient, context.group), None


class Experts(torch.nn.Module):
    def __init__(self, count, first, group):
        super().__init__()
        self.first, self.group = first, group
        self.up, self.down = torch.nn.Parameter(torch.empty(count, HIDDEN, HIDDEN)), torch.nn.Parameter(torch.empty(count, HIDDEN, WIDTH))

    def forward(self, rows, gates):
        rows, gates = Gather.apply(rows, self.group), Gather.apply(gates, self.group)
        gates = gates[:, self.first:self.first + len(self.up)]
        made = torch.einsum("neh,ehw->new", torch.relu(torch.einsum("nh,ehk->nek", rows, self.up)), self.down)
        return Scatter.apply((made * gates[:, :, None]).sum(1), self.group)


class Block(torch.nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.gate, self.mix, self.experts = torch.nn.Linear(WIDTH, EXPERTS, bias=False), torch.nn.Linear(WIDTH, HIDDEN), experts

    def forward(self, x):
        return x + self.experts(self.mix(x), self.gate(x).softmax(-1))


class Job(torch_parts.Job):
    def __init__(self, own):
        self.dp, self.ep = own.layout.get("dp", 1), own.layout.get("ep", 1)
        if self.dp != own.world or self.dp % self.ep or EXPERTS % self.ep or torch_parts.BATCH % self.dp:
            raise ValueError(f"{own.layout}: not for {own.world} ranks, {EXPERTS} experts and batches of {torch_parts.BATCH}")
        self.in_ep, self.in_shards, self.shards = own.rank % self.ep, own.rank // self.ep, self.dp // self.ep
        super().__init__(own)

    def built(self):
        self.mesh = init_device_mesh("cpu", (self.shards, self.ep), mesh_dim_names=("shards", "ep"))
        everywhere, each = init_device_mesh("cpu", (self.dp,), mesh_dim_names=("dp",)), EXPERTS // self.ep
        model = torch.nn.Sequential(*(Block(Experts(each, each * self.in_ep, self.mesh.get_group("ep"))) for _ in range(BLOCKS)))
        for block in model:
            fully_shard(block.experts, mesh=self.mesh["shards"], shard_placement_fn=lambda parameter: Shard(1))
            fully_shard(block, mesh=everywhere)
        return fully_shard(model, mesh=everywhere)

    def held(self, model):
        found = dict(model.named_parameters())
        for block in range(BLOCKS):
            for name, shape in DENSE:
                begin, count = split(shape[0], self.dp, self.witness.rank)
                yield torch_parts.Held(f"{block}.{name}", shape, [begin] + [0] * (len(shape) - 1), [count, *shape[1:]], 1, found.pop(f"{block}.{name}"))
            for name, shape in OF_EXPERTS:
                each, (begin, count) = EXPERTS // self.ep, split(shape[1], self.shards, self.in_shards)
                yield torch_parts.Held(f"{block}.{name}", shape, [each * self.in_ep, begin, 0], [each, count, shape[2]], 1, found.pop(f"{block}.{name}"))
        if found:
            raise ValueError(f"parameters without a place: {sorted(found)}")

    def data_parts(self):
        return self.dp, self.witness.rank, True

    def ready(self):
        """An expert's gradient has the rows of all its ranks in it already, and fully_shard has averaged over the shards alone."""
        for name, parameter in self.model.named_parameters():
            if ".experts." in name:
                parameter.grad.to_local().div_(self.ep)

    def outside(self, state):
        """The state with experts described for the checkpoint; the local tensors stay where they are."""
        historical = self.witness.options.get("placements", "right") == "historical"
        def described(path, value):
            if isinstance(value, dict):
                return {key: described(f"{path}.{key}", inner) for key, inner in value.items()}
            if not isinstance(value, DTensor) or ".experts." not in path:
                return value
            mesh, placements = (value.device_mesh, value.placements) if historical else (self.mesh, [Shard(1), Shard(0)])
            return DTensor.from_local(value.to_local(), mesh, placements, run_check=False)
        return described("", state)


if __name__ == "__main__":
    torch_parts.carry_out(Job)
