#!/usr/bin/env python3
"""Saves one state of a model and its distributed optimizer with the megatron-core that runs this script, on the CPU.

    make_optimizer_forms.py OUT FORM [tp=2] [pp=2] [dp=2] [bucket=200] [norms=ones] [moe=1] [from=CHECKPOINT]

OUT/iter_0000010 is what Megatron's own optimizer and dist_checkpointing.save write in this form: fully_reshardable,
dp_reshardable, or fully_sharded_model_space (megatron-core 0.14 and earlier). All values are functions of
a tensor's key and the global index, so that each release, layout and form saves the same state. `bucket` is the number
of elements from which the optimizer begins another bucket; with norms=ones all norms have the same weights, and moments
that differ. With from=CHECKPOINT, a directory with .metadata in the form fully_reshardable, the state is loaded from there, into a job that
holds zeros, and OUT/reads.json has the bytes of tensors that torch read from each file on each rank.
"""
import argparse
import collections
import inspect
import json
import logging
import pathlib
import sys
import warnings
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "trainers/megatron"), str(HERE.parents[1] / "python")]
warnings.filterwarnings("ignore")
import torch

import numpy

if not hasattr(numpy, "product"):  # megatron-core 0.14 asks numpy 1 for it
    numpy.product = numpy.prod
import gloo_ranks
import without_cuda  # before megatron.core, which asks for a GPU
from torch.distributed.checkpoint import filesystem
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from megatron.core import dist_checkpointing, parallel_state
from megatron.core.dist_checkpointing.dict_utils import nested_values
from megatron.core.dist_checkpointing.mapping import ShardedTensor, ShardedTensorFactory, apply_factories
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer
from megatron.core.transformer.transformer_config import TransformerConfig

ITERATION = 10
SIZES = {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "bucket": 0, "moe": 0}


def values(name, shape, region):
    """The part `region` of a tensor of this name: numbers of which bfloat16 keeps a part."""
    count = 1
    for n in shape:
        count *= n
    mixed = (torch.arange(count, dtype=torch.int64) * 2654435761 + zlib.crc32(name.encode())) % 65521
    return (mixed.to(torch.float32) / 32768 - 1).reshape(shape)[region]


def fill(model, slot, norms):
    """Puts this slot's values into the parameters."""
    state = model.sharded_state_dict()
    apply_factories(state)
    with torch.no_grad():
        for part in nested_values(state):
            if isinstance(part, ShardedTensor):
                region = tuple(slice(o, o + n) for o, n in zip(part.global_offset, (1,) * part.prepend_axis_num + tuple(part.local_shape)))
                ones = norms == "ones" and slot == "param" and "norm" in part.key
                new = values(f"{slot}.{part.key}", part.global_shape, region)
                part.data.copy_((torch.ones_like(new) if ones else new).reshape(part.data.shape))


def config(sizes):
    experts = dict(num_moe_experts=4, moe_router_topk=2, moe_ffn_hidden_size=12, moe_token_dispatcher_type="allgather",
                   expert_model_parallel_size=sizes["ep"]) if sizes["moe"] else {}
    return TransformerConfig(
        num_layers=2, hidden_size=8, ffn_hidden_size=12, num_attention_heads=2, gated_linear_unit=True, add_bias_linear=False,
        use_cpu_initialization=True, tensor_model_parallel_size=sizes["tp"], pipeline_model_parallel_size=sizes["pp"],
        pipeline_dtype=torch.bfloat16, params_dtype=torch.bfloat16, bf16=True, gradient_accumulation_fusion=False,
        masked_softmax_fusion=False, bias_activation_fusion=False, **experts)


def job(sizes, norms):
    """Returns model and optimizer, as after steps of Adam."""
    parallel_state.initialize_model_parallel(sizes["tp"], sizes["pp"], expert_model_parallel_size=sizes["ep"])
    settings = config(sizes)
    spec = get_gpt_layer_local_spec(num_experts=4, moe_grouped_gemm=False) if sizes["moe"] else get_gpt_layer_local_spec()
    gpt = GPTModel(settings, spec, vocab_size=18, max_sequence_length=8, pre_process=parallel_state.is_pipeline_first_stage(),
                   post_process=parallel_state.is_pipeline_last_stage(), position_embedding_type="rope",
                   share_embeddings_and_output_weights=False).to(torch.bfloat16)
    cut = {"overlap_grad_reduce": True, "bucket_size": sizes["bucket"]} if sizes["bucket"] else {}
    model = DistributedDataParallel(settings, DistributedDataParallelConfig(use_distributed_optimizer=True, grad_reduce_in_fp32=True, **cut), gpt)
    optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=1e-3, weight_decay=0.01, clip_grad=0.0, bf16=True, params_dtype=torch.bfloat16,
                                                       use_distributed_optimizer=True), [model])
    inner = getattr(optimizer, "chained_optimizers", [optimizer])
    whole = {}
    for slot in ("exp_avg", "exp_avg_sq", "param"):  # the parameters keep the last
        twin = [(name, p) for name, p in gpt.named_parameters()]
        kept = [p.data for _, p in twin]
        for _, p in twin:
            p.data = torch.empty(p.shape, dtype=torch.float32)
        fill(gpt, slot, norms)
        whole[slot] = {p: p.data.clone() for _, p in twin}
        for (_, p), data in zip(twin, kept):
            p.data = data
    for p, data in whole["param"].items():
        p.data.copy_(data)
    for one in inner:
        for maps in one.gbuf_ranges:
            for map_of_buckets in maps.values():
                for bucket in map_of_buckets:
                    for p, ranges in bucket["param_map"].items():
                        group, order = one.model_param_group_index_map[p]
                        main = one.optimizer.param_groups[group]["params"][order]
                        part = slice(ranges["param"].start, ranges["param"].end)
                        main.data.copy_(whole["param"][p].reshape(-1)[part])
                        one.optimizer.state[main] = {"step": torch.tensor(float(ITERATION))} | {
                            slot: whole[slot][p].reshape(-1)[part].clone() for slot in ("exp_avg", "exp_avg_sq")}
    return gpt, optimizer


def arguments(sizes):
    return argparse.Namespace(tensor_model_parallel_size=sizes["tp"], pipeline_model_parallel_size=sizes["pp"], data_parallel_size=sizes["dp"],
                              expert_model_parallel_size=sizes["ep"], world_size=sizes["tp"] * sizes["pp"] * sizes["dp"], iteration=ITERATION)


def state_of(gpt, optimizer, form, sizes, loading=False):
    metadata = {"distrib_optim_sharding_type": form, "singleton_local_shards": False, "chained_optim_avoid_prefix": True}
    model = gpt.sharded_state_dict(metadata=metadata)
    takes = "metadata" in inspect.signature(optimizer.sharded_state_dict).parameters or any(
        p.kind == p.VAR_KEYWORD for p in inspect.signature(optimizer.sharded_state_dict).parameters.values())
    how = {"metadata": metadata} if takes else {"sharding_type": form}
    return metadata, {"checkpoint_version": 3.0, "iteration": ITERATION, "args": arguments(sizes), "model": model,
                      "optimizer": optimizer.sharded_state_dict(model, is_loading=loading, **how)}


def emptied(gpt, optimizer):
    with torch.no_grad():
        for p in gpt.parameters():
            p.zero_()
        for one in getattr(optimizer, "chained_optimizers", [optimizer]):
            for main, state in one.optimizer.state.items():
                for values in (main, state["exp_avg"], state["exp_avg_sq"]):
                    values.zero_()


def load(source, gpt, optimizer, sizes):
    """Loads into the job. Returns the bytes of tensors that torch read, by file."""
    emptied(gpt, optimizer)
    folder = source
    metadata = filesystem.FileSystemReader(folder).read_metadata()
    tensors = {(info.relative_path, info.offset) for index, info in metadata.storage_data.items()
               if isinstance(metadata.state_dict_metadata[index.fqn], TensorStorageMetadata)}
    reads, sliced = collections.Counter(), filesystem.FileSystemReader._slice_file

    def counting(reader, file, info):
        if (info.relative_path, info.offset) in tensors:
            reads[info.relative_path] += info.length
        return sliced(reader, file, info)
    filesystem.FileSystemReader._slice_file = counting
    put = DistributedOptimizer._set_main_param_and_optimizer_states

    def with_step(one, parameter, tensors):  # torch's Adam has a step for each parameter, that of Transformer Engine has not
        group, order = one.model_param_group_index_map[parameter]
        put(one, parameter, {"step": one.optimizer.state[one.optimizer.param_groups[group]["params"][order]]["step"], **tensors})
    DistributedOptimizer._set_main_param_and_optimizer_states = with_step
    _, wanted = state_of(gpt, optimizer, "fully_reshardable", sizes, loading=True)
    found = dist_checkpointing.load(wanted, folder, dist_checkpointing.serialization.get_default_load_sharded_strategy(folder))
    filesystem.FileSystemReader._slice_file = sliced
    gpt.load_state_dict(found["model"])
    with torch.no_grad():
        optimizer.load_state_dict(found["optimizer"])
    return reads


def save(out, form, sizes, norms, source, rank):
    logging.getLogger("megatron").setLevel(logging.ERROR)
    gpt, optimizer = job(sizes, norms)
    folder = pathlib.Path(out) / f"iter_{ITERATION:07d}"
    if rank == 0:
        folder.mkdir(parents=True)
    torch.distributed.barrier()
    if source:
        reads = [None] * torch.distributed.get_world_size()
        torch.distributed.all_gather_object(reads, load(source, gpt, optimizer, sizes))
        if rank == 0:
            (pathlib.Path(out) / "reads.json").write_text(json.dumps(reads))
    metadata, state = state_of(gpt, optimizer, form, sizes)
    more = {"async_strategy": "mcore"} if "async_strategy" in inspect.signature(dist_checkpointing.save).parameters else {}
    if "content_metadata" in inspect.signature(dist_checkpointing.save).parameters:
        more["content_metadata"] = metadata
    dist_checkpointing.save(state, str(folder), **more)
    if rank == 0:
        (pathlib.Path(out) / "latest_checkpointed_iteration.txt").write_text(str(ITERATION))


def main():
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    out, form, words = sys.argv[1], sys.argv[2], dict(word.split("=") for word in sys.argv[3:])
    norms, source = words.pop("norms", ""), words.pop("from", "")
    sizes = SIZES | {name: int(size) for name, size in words.items()}
    gloo_ranks.run(sizes["tp"] * sizes["pp"] * sizes["dp"], save, out, form, sizes, norms, source)


if __name__ == "__main__":
    main()
