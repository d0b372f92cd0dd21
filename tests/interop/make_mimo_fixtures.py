#!/usr/bin/env python3
"""Writes checkpoints of several modules, each on a rank grid of its own, on the CPU, with the megatron-core that runs this script.

    make_mimo_fixtures.py OUT [NAME...]     OUT/mcore_<version>_mimo_<NAME>/iter_0000010

megatron-core 0.16.1 has MimoModel but no optimizer for it. What the optimizer of later releases passes to dist_checkpointing.save
is composed here: weights under the model's own names; for each module the state of its optimizers under mimo.<module>., and its
param groups, scaler and sharding type as objects of shape (1,) whose replica id is (tp, pp, dp) in the module's groups; random
states over the module's (pp, tp); everything else from rank 0, which owns only one module. Ranks, writing and format are Megatron's.
"""
import dataclasses
import os
import pathlib
import sys

import make_fixtures
import make_mcore_fixtures as fixtures

import torch
from megatron.core import dist_checkpointing
from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor
from megatron.core.dist_checkpointing.utils import add_prefix_for_sharding

SLOTS = ("fp32_param", "exp_avg", "exp_avg_sq")


@dataclasses.dataclass
class Module:
    """A module and its grid, which has the ranks from `first` to first + tp * dp * pp - 1. tp varies fastest, pp slowest."""
    name: str
    model: str  # prefix of the names of its weights
    first: int
    tp: int = 1
    dp: int = 1
    pp: int = 1
    experts: int = 0  # number of tp x dp ranks that have experts; with experts the optimizer is a chain of two
    layers: int = 2

    def size(self):
        return self.tp * self.dp * self.pp

    def place(self, rank):
        """Returns (tp, dp, pp) of a rank; None if the rank does not own the module."""
        local = rank - self.first
        if not 0 <= local < self.size():
            return None
        return local % self.tp, local // self.tp % self.dp, local // (self.tp * self.dp)


IMAGES = "modality_submodules.images.encoders.clip."
LANGUAGE = "language_model."


def cut(key, shape, *offsets, prepend=0, replica=0, dtype=torch.bfloat16):
    """Returns this rank's part of a tensor, without values."""
    return ShardedTensor.from_rank_offsets(key, torch.empty(shape, dtype=dtype), *offsets, prepend_axis_num=prepend, replica_id=replica)


def dense(module, rank, prefix="", dtype=torch.bfloat16):
    """Returns a column-parallel matrix and a norm for each layer of this rank's stage. The last stage has one more norm."""
    tp, dp, pp = module.place(rank)
    here = module.layers // module.pp
    parts = []
    for layer in range(pp * here, (pp + 1) * here):
        place = (0, layer, module.layers)
        layers = f"{prefix}{module.model}decoder.layers."
        parts.append(cut(layers + "mlp.linear_fc1.weight", (8 // module.tp, 3), place, (1, tp, module.tp), prepend=1, replica=(0, 0, dp), dtype=dtype))
        parts.append(cut(layers + "input_layernorm.weight", (3,), place, prepend=1, replica=(0, tp, dp), dtype=dtype))
    if pp == module.pp - 1:
        parts.append(cut(f"{prefix}{module.model}decoder.final_layernorm.weight", (3,), replica=(0, tp, dp), dtype=dtype))
    return parts


def expert(module, rank, prefix="", dtype=torch.bfloat16):
    """Returns one expert of each layer of this rank's stage. Experts are spread over the module's tp x dp ranks."""
    tp, dp, pp = module.place(rank)
    index, copy = (dp * module.tp + tp) % module.experts, (dp * module.tp + tp) // module.experts
    here = module.layers // module.pp
    key = f"{prefix}{module.model}decoder.layers.mlp.experts.experts.linear_fc1.weight"
    return [cut(key, (4, 3), (0, layer, module.layers), (1, index, module.experts), prepend=2, replica=(0, 0, copy), dtype=dtype)
            for layer in range(pp * here, (pp + 1) * here)]


def named(parts):
    return {f"{part.key}.{i}": part for i, part in enumerate(parts)}


def param_groups(expert_parallel):
    return [{"params": [], "wd_mult": wd, "lr_mult": 1.0, "is_expert_parallel": expert_parallel, "is_decoupled_lr": False,
             "lr": 1.32e-4, "weight_decay": 0.1 * wd, "betas": (0.9, 0.95), "eps": 1e-8, "step": fixtures.ITERATION} for wd in (1.0, 0.0)]


def scaler():
    return {"scale": torch.tensor([65536.0]), "growth_tracker": torch.tensor([3], dtype=torch.int32), "hysteresis_tracker": torch.tensor([2], dtype=torch.int32)}


def by_parameter(module, rank, chain, cuts):
    """Returns an optimizer's state in the fully_reshardable form: a tensor for each slot and parameter; groups, scaler and type are still plain."""
    state = {slot: named(cuts(module, rank, f"optimizer.state.{slot}.", torch.float32)) for slot in SLOTS}
    return {"optimizer": {"state": state, "param_groups": param_groups(chain == 1)}, "grad_scaler": scaler(),
            "param_state_sharding_type": "fully_reshardable"}


def in_buckets(module, rank, chain, cuts):
    """Returns an optimizer's state in the dp_reshardable form: buckets of each (tp, pp), cut unevenly over dp; groups and scaler are already objects."""
    tp, dp, pp = module.place(rank)
    group = pp * module.tp + tp
    prefix = f"optimizer.distributed.dp_group_idx_{group}."
    length = 23 + 4 * group
    ends = [length * r * r // module.dp ** 2 for r in range(module.dp + 1)]
    begin, end = ends[dp], ends[dp + 1]
    bucket = prefix + "gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_0."
    def piece(slot):
        return ShardedTensor(bucket + slot, torch.empty(end - begin), torch.float32, (end - begin,), (length,), (begin,), None)
    def stored(key, value):
        return ShardedObject(prefix + key, value, (1,), (0,), replica_id=(0, 0, dp))
    groups = param_groups(chain == 1)
    for one in groups:
        del one["params"]
    dtypes = (torch.bfloat16, torch.float32)
    state = {slot: piece(slot) for slot in ("param", "exp_avg", "exp_avg_sq")}
    state |= {"per_bucket_numel": stored("per_bucket_numel", [{dtypes: [length + 9]}]),
              "per_bucket_numel_unpadded": stored("per_bucket_numel_unpadded", [{dtypes: [length]}])}
    return {"optimizer": stored("optimizer", {"param_groups": groups}), "grad_scaler": stored("grad_scaler", scaler()),
            "param_state": state, "param_state_sharding_type": "dp_reshardable"}


def extracted(optimizer, module, suffix, replica):
    """Turns those entries of one optimizer's dict that would go to the common state into objects of the module."""
    plain = optimizer.get("optimizer")
    found = {}
    if isinstance(plain, dict):
        found["param_groups"] = plain.pop("param_groups")
        if not plain:
            del optimizer["optimizer"]
    for part in ("grad_scaler", "param_state_sharding_type"):
        if not isinstance(optimizer[part], ShardedObject):
            found[part] = optimizer.pop(part)
    for part, value in found.items():
        optimizer[f"_mimo_{part}{suffix}"] = ShardedObject(
            f"optimizer.mimo.{module.name}{suffix}.{part}", value, (1,), (0,), replica_id=replica)


def optimizer_of(module, rank, form, prefixed):
    tp, dp, pp = module.place(rank)
    cuts = [dense, expert][:2 if module.experts else 1]
    chain = {}
    for i, cut_of in enumerate(cuts):
        chain[i] = form(module, rank, i, cut_of)
        if len(cuts) > 1 and form is in_buckets:
            add_prefix_for_sharding(chain[i], f"chained_{i}.")
        extracted(chain[i], module, f".{i}" if i else "", (tp, pp, dp))
    state = chain if len(cuts) > 1 else chain[0]
    if prefixed:
        add_prefix_for_sharding(state, f"mimo.{module.name}.")
    return state


def random_states(module, rank, key):
    tp, dp, pp = module.place(rank)
    torch.manual_seed(100 + rank - dp * module.tp)
    state = {"random_rng_state": (3, (rank - dp * module.tp, 2, 3), None), "torch_rng_state": torch.get_rng_state()[:64].clone(),
             "cuda_rng_state": torch.arange(16, dtype=torch.uint8), "rng_tracker_states": {"model-parallel-rng": torch.full((16,), tp, dtype=torch.uint8)}}
    return ShardedObject(key, [state], (module.pp, module.tp), (pp, tp), replica_id=dp)


def state_of(modules, rank, form, prefixed, rng_key="mimo.{}.rng_state"):
    mine = [module for module in modules if module.place(rank)]
    model = {}
    for module in mine:
        model |= named(dense(module, rank))
        if module.experts:
            model |= named(expert(module, rank))
    state = {"model": model, "checkpoint_version": 3.0, "iteration": fixtures.ITERATION, "args": fixtures.arguments({"tp": 1, "pp": 1}),
             "opt_param_scheduler": {"max_lr": 1.6e-4, "num_steps": 3 * 8, "lr_decay_style": "cosine"},
             "optimizer": {module.name: optimizer_of(module, rank, form, prefixed) if module in mine else {} for module in modules}}
    state["rng_state"] = {module.name: random_states(module, rank, rng_key.format(module.name)) for module in mine}
    fixtures.fill(state)  # done last, since values depend on the final keys
    return state


# Modules and their ranks. Only the third job has data parallel copies and three modules.
PREFIXED = [Module("images", IMAGES, 0, tp=2), Module("language", LANGUAGE, 2, tp=2, pp=2, experts=2)]
BARE = [Module("images", IMAGES, 0), Module("language", LANGUAGE, 1, pp=3, layers=3)]
BUCKETS = [Module("audio", "modality_submodules.audio.encoders.whisper.", 0), Module("images", IMAGES, 1, dp=2),
           Module("language", LANGUAGE, 3, tp=2, dp=2, experts=2)]


def strategy():
    return dist_checkpointing.serialization.get_default_save_sharded_strategy()


def ranks_of(modules):
    return sum(module.size() for module in modules)


def prefixed(path, rank, without=lambda state: None):
    """Saves images on tp 2 and language on tp 2 x pp 2 with experts and a chain of two; everything is under mimo.<module>."""
    state = state_of(PREFIXED, rank, by_parameter, True)
    without(state)
    return fixtures.save(state, path, strategy(), {"distrib_optim_sharding_type": "fully_reshardable"})


def bare(path, rank, without=lambda state: None):
    """Saves images on one rank and language on pp 3; the optimizers' keys are those from before the prefix existed."""
    state = state_of(BARE, rank, by_parameter, False, "{}.rng_state")
    without(state)
    return fixtures.save(state, path, strategy(), {"distrib_optim_sharding_type": "fully_reshardable"})


def buckets(path, rank, without=lambda state: None):
    """Saves three modules with dp 2 and tp 2; their optimizers' state is in buckets, and one optimizer is a chain of two."""
    state = state_of(BUCKETS, rank, in_buckets, True)
    without(state)
    return fixtures.save(state, path, strategy(), {"distrib_optim_sharding_type": "dp_reshardable"})


JOBS = {"prefixed": (prefixed, PREFIXED), "bare": (bare, BARE), "buckets": (buckets, BUCKETS)}
# This is the only one of the jobs that is kept as test data.
make_fixtures.FIXTURES[f"{fixtures.PREFIX}_mimo_prefixed"] = (prefixed, ranks_of(PREFIXED))


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[1]).resolve()
    os.chdir(out)
    names = [n for n in make_fixtures.FIXTURES if n.startswith(f"{fixtures.PREFIX}_mimo_")]
    for name in sys.argv[2:] or names:
        make_fixtures.make(name, out, f"iter_{fixtures.ITERATION:07d}")


if __name__ == "__main__":
    main()
