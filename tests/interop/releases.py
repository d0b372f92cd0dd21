#!/usr/bin/env python3
"""Shows defects that some releases of Megatron-Core have and others have not, and that Reprise tells the two apart.

    releases.py --reprise PROGRAM      with the megatron-core that this interpreter finds

Prints one line for each case; exits with 0 if all have the verdict that is expected of this release. Uses no GPU, and no network
but loopback. The rerun machine's lost object, Megatron-LM issue 4378, is a pair of scenarios of the trainer megatron.
"""
import argparse
import contextlib
import importlib.metadata
import inspect
import io
import logging
import pathlib
import subprocess
import sys
import tempfile
import types
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "trainers/megatron"))
warnings.filterwarnings("ignore")
import torch

import gloo_ranks
import without_cuda
from cases_mcore import OWN_WRITER, VERSION
from megatron.core import dist_checkpointing, parallel_state, rerun_state_machine
from megatron.core.dist_checkpointing.mapping import ShardedTensor
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.transformer.module import MegatronModule
from megatron.core.transformer.transformer_config import TransformerConfig

MODULES = {"images": "modality_submodules.images.encoders.clip.", "language": "language_model."}
ITERATION = 10


class Part(MegatronModule):
    """The one layer that a rank owns, under the name that MimoModel gives it."""

    def __init__(self, config, name):
        super().__init__(config)
        self.prefix = MODULES[name]
        self.layer = torch.nn.Linear(4, 3 + len(name), bias=False)

    def sharded_state_dict(self, prefix="", sharded_offsets=(), metadata=None):
        return {"layer": ShardedTensor.from_rank_offsets(self.prefix + "layer.weight", self.layer.weight, replica_id=(0, 0, 0))}


def optimizer_of(part, config, rate):
    """Megatron's distributed optimizer of one rank's module, as after some steps of Adam."""
    model = DistributedDataParallel(config, DistributedDataParallelConfig(use_distributed_optimizer=True), part)
    found = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=rate, weight_decay=0.0, clip_grad=0.0, use_distributed_optimizer=True), [model])
    inner = found.chained_optimizers[0].optimizer
    for p in (p for group in inner.param_groups for p in group["params"]):
        inner.state[p] = {"step": torch.tensor(3.0), "exp_avg": torch.full_like(p, rate), "exp_avg_sq": torch.ones_like(p)}
    return found


def mimo_save_and_load(folder, rank):
    """Each rank owns one module: saves through the release's MimoOptimizer and loads again. Returns the rate that came back, or the error."""
    from megatron.core.models.mimo.optimizer import MimoOptimizer, ModuleOptimizerInfo
    parallel_state.initialize_model_parallel(1, 2)
    config = TransformerConfig(num_layers=2, hidden_size=4, num_attention_heads=1, use_cpu_initialization=True, pipeline_model_parallel_size=2, pipeline_dtype=torch.float32)
    names = list(MODULES)
    part = Part(config, names[rank])
    own = optimizer_of(part, config, (1 + rank) / 64)
    alone = types.SimpleNamespace(rank=lambda: 0, size=lambda: 1)  # the module's grid has one rank
    groups = types.SimpleNamespace(tp=alone, pp=alone, dp=alone)
    optimizer = MimoOptimizer({name: ModuleOptimizerInfo(optimizer=own if name == names[rank] else None, grid=None, pg_collection=groups, is_active=name == names[rank])
                               for name in names}, own.config)
    metadata = {"distrib_optim_sharding_type": "dp_reshardable", "chained_optim_avoid_prefix": True}

    def state(loading):
        model = part.sharded_state_dict()
        return {"iteration": ITERATION, "model": model, "optimizer": optimizer.sharded_state_dict(model, is_loading=loading, metadata=metadata)}

    dist_checkpointing.save(state(False), folder, content_metadata=metadata, **OWN_WRITER)
    torch.distributed.barrier()
    loaded = dist_checkpointing.load(state(True), folder)
    for group in own.param_groups:
        group["lr"] = 0.0
    try:
        with torch.no_grad():
            optimizer.load_state_dict(loaded["optimizer"])
    except AssertionError as error:  # what it needs is not there
        return f"asserts {error}"
    return own.param_groups[0]["lr"]


class Stage(torch.nn.Module):
    """One stage of a pipeline of two, as far as a save asks."""

    def sharded_state_dict(self, prefix="", metadata=None):
        here = parallel_state.get_pipeline_model_parallel_rank()
        return {"w": ShardedTensor.from_rank_offsets("decoder.layers.w", torch.arange(6.0), (0, here, 2))}


ARGUMENTS = {"ckpt_format": "torch_dist", "use_dist_ckpt": True, "tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 2, "world_size": 2,
             "async_strategy": "mcore", "no_save_optim": True}
UNSET = ("async_save", "async_ckpt_use_cpu_shm", "ckpt_assume_constant_structure", "ckpt_fully_parallel_save", "data_parallel_random_init", "dataloader_save",
         "log_progress", "no_save_rng", "save_retain_interval", "use_distributed_optimizer", "use_layer_wise_distributed_optimizer", "verify_integrity",
         "non_persistent_ckpt_type", "logging_level", "one_logger_async", "enable_one_logger", "wandb_project", "enable_msc", "hybrid_layer_pattern")


def save_with_groups(root, exchanged, rank):
    """Calls the save_checkpoint of Megatron's training, its two groups right or exchanged."""
    from megatron.training import checkpointing, global_vars
    parallel_state.initialize_model_parallel(1, 2)
    rerun_state_machine.initialize_rerun_state_machine(mode=rerun_state_machine.RerunMode.DISABLED)
    global_vars._GLOBAL_ARGS = argparse.Namespace(save=root, **ARGUMENTS, **dict.fromkeys(UNSET))
    tp, pp = parallel_state.get_tensor_model_parallel_group(), parallel_state.get_pipeline_model_parallel_group()
    with contextlib.redirect_stdout(io.StringIO()):
        checkpointing.save_checkpoint(ITERATION, [Stage()], None, None, 0, tp_group=pp if exchanged else tp, pp_group=tp if exchanged else pp)


class Wrong(Exception):
    """The verdict is another than is expected of this release."""


def verified(reprise, folder):
    done = subprocess.run([reprise, "verify", str(folder)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def must(said, code, *words):
    if said[0] != code or not all(word in said[1] for word in words):
        raise Wrong(f"verify should have ended with {code} and say {words}, but ended with {said[0]}: {said[1].strip()[-600:]}")


def mimo(reprise, top):
    """MimoOptimizer loses what rank 0 does not own before 0.18. Then it is an object of its module; from 0.19 on all keys name the module."""
    if VERSION < (0, 17):
        return "not run: this release has no MimoOptimizer"
    folder = top / f"iter_{ITERATION:07d}"
    folder.mkdir()
    came_back = gloo_ranks.run(2, mimo_save_and_load, str(folder))
    said = verified(reprise, folder)
    if VERSION >= (0, 18):
        must(said, 0, "whole", *(["0 warnings"] if VERSION >= (0, 19) else ["warning MULTI_WRITER"]))
        if came_back != [1 / 64, 2 / 64]:
            raise Wrong(f"the rates came back as {came_back}")
        return "whole, and both rates come back"
    must(said, 1, "NOT_STORED: module language stores optimizer state but not its param_state_sharding_type", "has that of images")
    if came_back[0] != 1 / 64 or not str(came_back[1]).startswith("asserts"):
        raise Wrong(f"the loads ended with {came_back}")
    return "damaged: the second module's sharding type is lost, and its load asserts"


def groups(reprise, top):
    """save_checkpoint takes the two groups as they are given; the random states then lie on the exchanged grid."""
    try:
        import megatron.training  # noqa: F401
    except ImportError:
        return "not run: this release has no megatron.training"
    if "tp_group" not in inspect.signature(__import__("megatron.training.checkpointing", fromlist=["x"]).save_checkpoint).parameters:
        return "not run: the save_checkpoint of this release takes no groups"
    for exchanged in (False, True):
        root = top / ("exchanged" if exchanged else "right")
        gloo_ranks.run(2, save_with_groups, str(root), exchanged)
        said = verified(reprise, root)
        if exchanged:
            must(said, 0, "warning LAYOUT_MISMATCH", "rng_state")
        else:
            must(said, 0, "whole", "0 warnings")
    return "whole with the right groups; with exchanged ones a warning names rng_state"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reprise", required=True, type=lambda path: pathlib.Path(path).resolve())
    reprise = parser.parse_args().reprise
    logging.getLogger("megatron").setLevel(logging.ERROR)
    without_cuda.PLACE = "cpu"
    counts = {"pass": 0, "FAIL": 0, "skip": 0}
    for name, case in {"MimoOptimizer on two ranks": mimo, "save_checkpoint with tp and pp group exchanged": groups}.items():
        with tempfile.TemporaryDirectory(prefix="releases.") as top:
            try:
                words = case(reprise, pathlib.Path(top))
                verdict = "skip" if words.startswith("not run") else "pass"
            except Wrong as wrong:
                verdict, words = "FAIL", str(wrong)
        counts[verdict] += 1
        print(f"{verdict}  megatron-core {importlib.metadata.version('megatron-core')}  {name}: {words}", flush=True)
    print(f"{counts['pass']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
