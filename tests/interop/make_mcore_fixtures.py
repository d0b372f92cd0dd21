#!/usr/bin/env python3
"""Writes small Megatron-Core torch_dist checkpoints on the CPU, with the megatron-core that runs this script.

    make_mcore_fixtures.py OUT [NAME...]     OUT/mcore_<version>[_NAME]/iter_0000010

The model is a real GPTModel, so keys, shapes and sharding are Megatron's. Values are a function of key and global
index, so every layout gives the same content. Parts of the training loop that are outside of megatron-core
(args, the RNG list, the scheduler) are composed here in the form that Megatron-LM's checkpointing gives them.
"""
import argparse
import os
import pathlib
import random
import shutil
import sys
import zlib

import make_fixtures
import check_with_torch

import megatron.core
import numpy
import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing, parallel_state, rerun_state_machine
from megatron.core.dist_checkpointing.dict_utils import nested_values
from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor, apply_factories
from megatron.core.dist_checkpointing.optimizer import get_param_id_to_sharded_param_map, optim_state_to_sharding_state
from megatron.core.dist_checkpointing.strategies.fully_parallel import FullyParallelSaveStrategyWrapper
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer.enums import AttnBackend, ModelType
from megatron.core.transformer.transformer_config import TransformerConfig

ITERATION = 10
if not torch.cuda.is_available():
    # Replaces two calls of the writer, which waits for the GPU before it copies and counts failures in a tensor on the
    # GPU.
    torch.cuda.synchronize = lambda device=None: None
    torch.cuda.current_device = lambda: "cpu"


def values(key, shape, region):
    """Returns the part `region` of a tensor with this key and shape. Values are small multiples of 1/8, which every dtype holds exactly."""
    count = 1
    for n in shape:
        count *= n
    whole = (torch.arange(count) * 7 + zlib.crc32(key.encode())) % 127
    return (whole.to(torch.float64) / 8 - 4).reshape(shape)[region]


def fill(state):
    for part in nested_values(state):
        if isinstance(part, ShardedTensor):
            region = tuple(slice(o, o + n) for o, n in zip(part.global_offset, part.local_shape_with_axes))
            part.data = values(part.key, part.global_shape, region).reshape(part.data.shape).to(part.data.dtype)


def with_axes(tensor):
    return (1,) * tensor.prepend_axis_num + tuple(tensor.local_shape)


ShardedTensor.local_shape_with_axes = property(with_axes)


def arguments(layout):
    return argparse.Namespace(
        tensor_model_parallel_size=layout["tp"], pipeline_model_parallel_size=layout["pp"], context_parallel_size=1,
        expert_model_parallel_size=1, num_layers=2, hidden_size=8, lr=3e-4, betas=(0.9, 0.95), bf16=True, params_dtype=torch.bfloat16,
        attention_backend=AttnBackend.auto, model_type=ModelType.encoder_or_decoder, swiglu=True, save=None,
        data_path=["a", "b"], seed=1234, ckpt_format="torch_dist", iteration=ITERATION, exit_signal=None,
        rerun_mode="validate_results", lr_decay_style="cosine")


def rng_state(rank):
    generator = random.Random(rank)
    torch.manual_seed(100 + rank)
    numpy.random.seed(rank)
    state = {
        "random_rng_state": generator.getstate(), "np_rng_state": numpy.random.get_state(),
        "torch_rng_state": torch.get_rng_state(), "cuda_rng_state": torch.arange(16, dtype=torch.uint8),
        "rng_tracker_states": {"model-parallel-rng": torch.full((16,), rank, dtype=torch.uint8)},
    }
    pp, tp = parallel_state.get_pipeline_model_parallel_rank(), parallel_state.get_tensor_model_parallel_rank()
    shape = (parallel_state.get_pipeline_model_parallel_world_size(), parallel_state.get_tensor_model_parallel_world_size())
    return ShardedObject("rng_state", [state], shape, (pp, tp), replica_id=parallel_state.get_data_parallel_rank(with_context_parallel=True))


def rerun_state(rank):
    m = rerun_state_machine
    machine = m.RerunStateMachine(mode=m.RerunMode.VALIDATE_RESULTS,
                                  error_injector=m.RerunErrorInjector(1000, m.RerunDiagnostic.PERSISTENT_ERROR))
    machine.state, machine.current_iteration = m.RerunState.WILL_RERUN_FROM_CHECKPOINT, ITERATION
    machine.checkpoint_requested = True
    if rank == 0:  # this rank's result was not reproduced
        machine.failed_validation_call = m.Call(m.Caller("rejecting loss nan", 0), 3)
        machine.initial_result, machine.suspicious_node, machine.suspicious_device = 2.5, "node-17", 0
        machine.error_injector.injected_error_type = m.RerunDiagnostic.PERSISTENT_ERROR
    machine.large_value_counts, machine.max_values = {"loss": 4}, {"loss": 9.5}
    batches = m.RerunDataIterator(iter(()))
    batches.saved_microbatches, batches.replaying = [{"tokens": torch.arange(4) + rank}], False
    return machine.state_dict([batches] if rank == 0 else None, "torch_dist", force=True)


def gpt(layout):
    config = dict(
        num_layers=2, hidden_size=8, ffn_hidden_size=12, num_attention_heads=2, gated_linear_unit=True, add_bias_linear=False,
        use_cpu_initialization=True, tensor_model_parallel_size=layout["tp"], pipeline_model_parallel_size=layout["pp"],
        pipeline_dtype=torch.bfloat16, params_dtype=torch.bfloat16, bf16=True)
    model = GPTModel(
        TransformerConfig(**config), get_gpt_layer_local_spec(), vocab_size=18,
        max_sequence_length=8, pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(), position_embedding_type="rope")
    return model.to(torch.bfloat16)


def adam_state(model, model_state):
    """Returns optimizer state as the fp32 non-distributed optimizer saves it, made with megatron-core's own mapping."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW([torch.nn.Parameter(p.detach().float()) for p in parameters], lr=3e-4)
    for group in optimizer.param_groups:
        for p in group["params"]:
            p.grad = torch.zeros_like(p)
    optimizer.step()
    state = optimizer.state_dict()
    for one in state["state"].values():
        one.pop("step")
    optim_state_to_sharding_state(state, get_param_id_to_sharded_param_map(model_state, parameters), exclude_keys="step")
    state["param_groups"][0]["step"] = ITERATION
    return state


def save_gpt(path, rank, layout):
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=layout["tp"], pipeline_model_parallel_size=layout["pp"])
    model = gpt(layout)
    model_state = model.sharded_state_dict()
    state = {"args": arguments(layout), "checkpoint_version": 3.0, "iteration": ITERATION, "model": model_state}
    state |= training_state(rank, model, model_state)
    apply_factories(state)
    fill(state)
    strategy = dist_checkpointing.serialization.get_default_save_sharded_strategy()
    if dist.get_world_size() > layout["tp"] * layout["pp"]:
        strategy = FullyParallelSaveStrategyWrapper(strategy, parallel_state.get_data_parallel_group(with_context_parallel=True))
    content = {"distrib_optim_sharding_type": "fully_reshardable", "singleton_local_shards": False, "chained_optim_avoid_prefix": True}
    return save(state, path, strategy, content)


def training_state(rank, model, model_state):
    return {
        "optimizer": adam_state(model, model_state),
        "opt_param_scheduler": {"max_lr": 3e-4, "lr_warmup_steps": 0, "num_steps": 80, "lr_decay_style": "cosine", "lr_decay_steps": 800,
                                "min_lr": 0.0, "start_wd": 0.1, "end_wd": 0.1, "wd_incr_style": "constant", "wd_incr_steps": 800},
        "num_floating_point_operations_so_far": 1 << 40, "rng_state": rng_state(rank), "rerun_state_machine": rerun_state(rank),
    }


def wholes(state):
    """Returns, as whole tensors, those tensors of which this rank has a part."""
    return {part.key: values(part.key, part.global_shape, ...).to(part.data.dtype)
            for part in nested_values(state) if isinstance(part, ShardedTensor)}


def save(state, path, strategy, content):
    """Saves. Returns, as whole tensors, those tensors of which this rank has a part."""
    folder = pathlib.Path(path) / f"iter_{ITERATION:07d}"
    if dist.get_rank() == 0:
        folder.mkdir(parents=True)
    truth = wholes(state)
    dist.barrier()
    dist_checkpointing.save(state, str(folder), strategy, content_metadata=content)
    if dist.get_rank() == 0:
        (pathlib.Path(path) / "latest_checkpointed_iteration.txt").write_text(str(ITERATION))
    return truth


def gpt_tp2_pp2(path, rank):
    """Saves a GPT of 2 layers over tp 2 x pp 2, with optimizer, RNG and rerun state."""
    return save_gpt(path, rank, {"tp": 2, "pp": 2})


def gpt_dp2(path, rank):
    """Saves the same content over dp 2 with the fully parallel strategy."""
    return save_gpt(path, rank, {"tp": 1, "pp": 1})


def buckets(path, rank):
    """Saves optimizer buckets that are cut unevenly over 2 ranks, with keys of the dp_reshardable form."""
    prefix = "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_0."
    begin, end = ((0, 9), (9, 23))[rank]
    def piece(name):
        data = values(prefix + name, (23,), slice(begin, end)).float()
        return ShardedTensor(prefix + name, data, data.dtype, tuple(data.shape), (23,), (begin,), None)
    state = {
        "args": arguments({"tp": 1, "pp": 1}), "checkpoint_version": 3.0, "iteration": ITERATION,
        "optimizer": {
            "state": {name: piece(name) for name in ("param", "exp_avg", "exp_avg_sq")},
            "numel": ShardedObject("optimizer.distributed.dp_group_idx_0.per_bucket_numel", [{(torch.bfloat16, torch.float32): [32]}], (1,), (0,), replica_id=rank),
            "numel_unpadded": ShardedObject("optimizer.distributed.dp_group_idx_0.per_bucket_numel_unpadded", [{(torch.bfloat16, torch.float32): [23]}], (1,), (0,), replica_id=rank),
            "param_state_sharding_type": "dp_reshardable"},
    }
    strategy = dist_checkpointing.serialization.get_default_save_sharded_strategy()
    return save(state, path, strategy, {"distrib_optim_sharding_type": "dp_reshardable"})


PREFIX = f"mcore_{megatron.core.__version__}"
for save_function, rank_count in ((gpt_tp2_pp2, 4), (gpt_dp2, 2), (buckets, 2)):
    make_fixtures.FIXTURES[f"{PREFIX}_{save_function.__name__}"] = (save_function, rank_count)


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[1]).resolve()
    os.chdir(out)
    names = [n for n in make_fixtures.FIXTURES if n.startswith(PREFIX)]
    for name in sys.argv[2:] or names:
        make_fixtures.make(name, out, f"iter_{ITERATION:07d}")


if __name__ == "__main__":
    main()
