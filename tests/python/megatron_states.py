"""Sharded state dicts as Megatron jobs have them, for each rank of a layout, with contents that follow from keys."""
import argparse
import itertools
import pathlib
import sys
import zlib
from dataclasses import dataclass

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "trainers" / "megatron"))
import without_cuda  # noqa: F401  Megatron-Core asks for CUDA in places
from megatron.core.dist_checkpointing.mapping import LocalNonpersistentObject, ShardedObject, ShardedTensor
from megatron.core.transformer.mlp import apply_swiglu_sharded_factory

from states import numbers

_empty = torch.empty
# Up to 0.18 Megatron-Core passes on all that torch stores of a tensor, and torch 2.15 stores strides, too.
torch.empty = lambda *args, strides=None, **rest: _empty(*args, **rest)

LAYERS, EXPERTS, VOCAB, HIDDEN = 4, 4, 20, 6
UNEVEN = (5, 1, 0, 3)  # rows that each of four ranks has


def whole(key, *shape, dtype=torch.float32):
    return numbers(zlib.crc32(key.encode()), *shape, dtype=dtype)


@dataclass(frozen=True)
class Layout:
    """Ranks in the order tp, dp, pp; experts are spread over the ranks of dp."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1

    @property
    def size(self):
        return self.tp * self.pp * self.dp


@dataclass
class Rank:
    layout: Layout
    rank: int

    def __post_init__(self):
        one = self.layout
        self.tp, self.dp, self.pp = self.rank % one.tp, self.rank // one.tp % one.dp, self.rank // one.tp // one.dp
        self.ep, self.edp = self.dp % one.ep, self.dp // one.ep
        each = LAYERS // one.pp
        self.layers = range(self.pp * each, (self.pp + 1) * each)

    def embedding(self, prefix=""):
        """The vocabulary is padded to a multiple of what the tensor parallel ranks share."""
        rows = -(-VOCAB // (4 * self.layout.tp)) * 4
        padded = torch.zeros(rows * self.layout.tp, HIDDEN)
        padded[:VOCAB] = whole(prefix + "embedding", VOCAB, HIDDEN)
        mine = padded[rows * self.tp : rows * (self.tp + 1)].clone()
        return ShardedTensor.from_rank_offsets(
            prefix + "embedding.word_embeddings.weight",
            mine,
            (0, self.tp, self.layout.tp),
            replica_id=(self.pp, 0, self.dp),
            allow_shape_mismatch=True,
        )

    def cut(self, key, layer, axis, *shape, dtype=torch.float32):
        """A layer's weight, cut along an axis by tensor parallelism; a view that is not contiguous if the axis is 1."""
        tensor = whole(f"{key}{layer}", *shape, dtype=dtype).chunk(self.layout.tp, axis)[self.tp]
        offsets = (0, layer, LAYERS), (axis + 1, self.tp, self.layout.tp)
        return ShardedTensor.from_rank_offsets(key, tensor, *offsets, replica_id=(0, 0, self.dp), prepend_axis_num=1)

    def halves(self, key, lead, *shape, replica):
        """A gated layer's weight: each of its halves is cut by tensor parallelism."""
        gate, up = whole(f"{key}{lead}", *shape).chunk(2)
        local = torch.cat([half.chunk(self.layout.tp)[self.tp] for half in (gate, up)])
        offsets = tuple((axis, at, extent) for axis, (at, extent) in enumerate(lead))
        one = ShardedTensor.from_rank_offsets(
            key, local, *offsets, (len(lead), self.tp, self.layout.tp), replica_id=replica, prepend_axis_num=len(lead)
        )
        return apply_swiglu_sharded_factory(one, offsets)

    def norm(self, key, layer):
        tensor = whole(f"{key}{layer}", HIDDEN)
        replica = (0, self.tp, self.dp)
        return ShardedTensor.from_rank_offsets(key, tensor, (0, layer, LAYERS), replica_id=replica, prepend_axis_num=1)

    def layer(self, prefix, layer):
        key = f"{prefix}decoder.layers."
        each = EXPERTS // self.layout.ep
        experts = {
            expert: self.halves(
                f"{key}mlp.experts.linear_fc1.weight",
                ((layer, LAYERS), (expert, EXPERTS)),
                8,
                HIDDEN,
                replica=(0, 0, self.edp),
            )
            for expert in range(self.ep * each, (self.ep + 1) * each)
        }
        return {
            "qkv": self.cut(f"{key}self_attention.linear_qkv.weight", layer, 0, 8, HIDDEN, dtype=torch.bfloat16),
            "proj": self.cut(f"{key}self_attention.linear_proj.weight", layer, 1, HIDDEN, 8),
            "fc1": self.halves(f"{key}mlp.linear_fc1.weight", ((layer, LAYERS),), 16, HIDDEN, replica=(0, 0, self.dp)),
            "norm": self.norm(f"{key}input_layernorm.weight", layer),
            "experts": experts,
        }

    def uneven(self):
        """Rows that only the ranks of tp = 0 and pp = 0 have main copies of; nobody's grid."""
        first = sum(UNEVEN[: self.dp])
        rows = sum(UNEVEN[self.dp :]) if self.dp == self.layout.dp - 1 else UNEVEN[self.dp]
        tensor = whole("uneven", sum(UNEVEN), 2)[first : first + rows].clone()
        replica = (self.tp, self.pp)
        return ShardedTensor(
            "uneven", tensor, tensor.dtype, tuple(tensor.shape), (sum(UNEVEN), 2), (first, 0), None, replica_id=replica
        )

    def objects(self):
        grid, at = (self.layout.pp, self.layout.tp), (self.pp, self.tp)
        rng = [{"torch": torch.arange(8) + 10 * self.pp + self.tp, "cuda": None}]
        extra = {
            layer: ShardedObject("extra_state", None, (LAYERS,), (layer,), replica_id=(self.tp, self.dp))
            for layer in self.layers
        }
        return {"rng_state": ShardedObject("rng_state", rng, grid, at, replica_id=self.dp), "extra": extra}

    def model(self, prefix=""):
        state = {"layers": {layer: self.layer(prefix, layer) for layer in self.layers}}
        if self.pp == 0 or self.pp == self.layout.pp - 1:  # tied to the output layer of the last stage
            state["embedding"] = self.embedding(prefix)
        return state

    def state(self):
        return {
            "args": argparse.Namespace(tensor_model_parallel_size=self.layout.tp, world_size=self.layout.size),
            "iteration": 7,
            "schedule": {"lr": 0.25, "steps": [1, 2, {"x": None}]},
            "model": self.model(),
            "optimizer": {"param_groups": [{"lr": 1.0, 0: "int key"}], "state": [self.model("exp_avg."), self.model("exp_avg_sq.")]},
            "uneven": self.uneven(),
            "here": LocalNonpersistentObject(f"rank {self.rank}"),
            **self.objects(),
        }

    def blank(self, holes=True):
        """The same without values, for a load; with `holes` some tensors have no memory yet."""
        state = self.state()
        del state["iteration"], state["args"], state["schedule"], state["optimizer"]["param_groups"]
        emptied(state, holes)
        return state

    def expected(self):
        """What a load of ``blank`` returns."""
        return plain(self.state())


def emptied(state, holes):
    """Replaces each tensor's content, in new memory; with `holes` every third has none."""
    turns = itertools.count()
    for _, _, value in items_of(state):
        if isinstance(value, ShardedTensor):
            value.data = None if holes and next(turns) % 3 == 0 else torch.full_like(value.data, 99)
        elif isinstance(value, ShardedObject):
            value.data = None
        elif hasattr(value, "build_fn"):
            value.data = torch.full_like(value.data, 99)


def plain(state):
    for container, key, value in items_of(state):
        if isinstance(value, LocalNonpersistentObject):
            container[key] = value.unwrap()
        elif hasattr(value, "replica_id"):
            container[key] = value.data
    return state


def items_of(container):
    for key, value in list(container.items() if isinstance(container, dict) else enumerate(container)):
        if isinstance(value, (dict, list)):
            yield from items_of(value)
        else:
            yield container, key, value
