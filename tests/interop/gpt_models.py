"""Small GPT models of Megatron-Core in float32 on the CPU, which run forward and are saved as Megatron's training saves them.

A model is given by arguments of Megatron's training. Where megatron.training is installed, its own parser adds all the others, and
its own function makes the configuration of them; elsewhere this file does.
"""
import argparse
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "trainers/megatron"))
import torch
import torch.distributed as dist

import without_cuda
import cases_mcore
from megatron.core import dist_checkpointing, parallel_state
from megatron.core.dist_checkpointing.mapping import apply_factories
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.transformer.transformer_config import TransformerConfig

try:
    from megatron.training.argument_utils import core_transformer_config_from_args
    from megatron.training.arguments import parse_args
except ImportError:
    parse_args = None

VOCAB, LENGTH = 101, 24

LLAMA = dict(
    num_attention_heads=4, group_query_attention=True, num_query_groups=2, kv_channels=8, position_embedding_type="rope", rotary_base=5000,
    normalization="RMSNorm", norm_epsilon=1e-4, swiglu=True, add_bias_linear=False, untie_embeddings_and_output_weights=True)
MODELS = {
    "llama": LLAMA,
    # The sizes of heads do not follow from the hidden size, and the embedding serves as output layer, too.
    "llama_tied": LLAMA | dict(kv_channels=16, num_query_groups=1, rotary_base=10000, untie_embeddings_and_output_weights=False),
    "llama_no_groups": LLAMA | dict(group_query_attention=False, num_query_groups=1, num_layers=3),
    "mixtral": LLAMA | dict(num_experts=4, moe_router_topk=2, moe_ffn_hidden_size=20),
    "gpt2": dict(num_attention_heads=4, kv_channels=8, position_embedding_type="learned_absolute", normalization="LayerNorm", norm_epsilon=1e-3),
    "gpt2_exact": dict(num_attention_heads=2, kv_channels=16, position_embedding_type="learned_absolute", normalization="LayerNorm",
                       bias_gelu_fusion=False, untie_embeddings_and_output_weights=True),
}

# What releases without megatron.training have as defaults, as far as rules ask for it.
DEFAULTS = dict(
    rotary_base=10000, rotary_percent=1.0, rotary_interleaved=False, rotary_seq_len_interpolation_factor=None, use_rope_scaling=False,
    no_rope_freq=None, norm_epsilon=1e-5, apply_layernorm_1p=False, apply_residual_connection_post_layernorm=False, swiglu=False,
    squared_relu=False, quick_geglu=False, add_bias_linear=True, add_qkv_bias=False, bias_gelu_fusion=True, bias_swiglu_fusion=True,
    group_query_attention=False, num_query_groups=1, qk_layernorm=False, qk_l2_norm=False, window_size=None, softmax_type="vanilla",
    attention_output_gate=False, glu_linear_offset=0.0, activation_func_clamp_value=None, multi_latent_attention=False,
    untie_embeddings_and_output_weights=False, num_experts=None, moe_router_topk=2, moe_router_pre_softmax=False,
    moe_router_score_function="softmax", moe_router_topk_scaling_factor=None, moe_router_num_groups=None, moe_router_group_topk=None,
    moe_expert_capacity_factor=None, moe_apply_probs_on_input=False, moe_shared_expert_intermediate_size=None, moe_layer_freq=1)


def padded(vocab, ranks):
    """The size of the vocabulary as Megatron pads it, for --make-vocab-size-divisible-by 4."""
    return -(-vocab // (4 * ranks)) * 4 * ranks


def arguments(model, layout):
    """The arguments of a training of this model, as its checkpoint has them."""
    sizes = dict(num_layers=2, hidden_size=32, ffn_hidden_size=48, seq_length=LENGTH, max_position_embeddings=LENGTH, params_dtype=torch.float32,
                 make_vocab_size_divisible_by=4, padded_vocab_size=padded(VOCAB, layout["tp"]), tensor_model_parallel_size=layout["tp"],
                 pipeline_model_parallel_size=layout["pp"], expert_model_parallel_size=layout["ep"], ckpt_format="torch_dist")
    if parse_args is None:
        return argparse.Namespace(**(DEFAULTS | sizes | MODELS[model]))
    sys.argv = ["train"]
    args = parse_args()
    new_names = {"norm_epsilon": "layernorm_epsilon"}  # since arguments are made from the fields of TransformerConfig
    for name, value in (sizes | MODELS[model]).items():
        name = name if hasattr(args, name) or name not in new_names else new_names[name]
        assert hasattr(args, name) or name in ("padded_vocab_size", "params_dtype"), name  # these follow from others
        setattr(args, name, value)
    return args


def config_of(args):
    own = dict(
        use_cpu_initialization=True, perform_initialization=False, attention_dropout=0.0, hidden_dropout=0.0, pipeline_dtype=torch.float32,
        gradient_accumulation_fusion=False, masked_softmax_fusion=False, persist_layer_norm=False, apply_rope_fusion=False,
        bias_dropout_fusion=False, moe_token_dispatcher_type="allgather")
    if parse_args is not None:
        for name, value in own.items():
            setattr(args, name, value)
        args.no_persist_layer_norm = True
        config = core_transformer_config_from_args(args)
        config.deallocate_pipeline_outputs = False
        return config
    gated = dict(gated_linear_unit=True, activation_func=torch.nn.functional.silu, bias_activation_fusion=args.bias_swiglu_fusion)
    moe = dict(num_moe_experts=args.num_experts, moe_router_topk=args.moe_router_topk, moe_ffn_hidden_size=getattr(args, "moe_ffn_hidden_size", None))
    return TransformerConfig(
        num_layers=args.num_layers, hidden_size=args.hidden_size, ffn_hidden_size=args.ffn_hidden_size, num_attention_heads=args.num_attention_heads,
        num_query_groups=args.num_query_groups if args.group_query_attention else None, kv_channels=args.kv_channels,
        normalization=args.normalization, layernorm_epsilon=args.norm_epsilon, add_bias_linear=args.add_bias_linear,
        tensor_model_parallel_size=args.tensor_model_parallel_size, pipeline_model_parallel_size=args.pipeline_model_parallel_size,
        expert_model_parallel_size=args.expert_model_parallel_size,
        **(gated if args.swiglu else dict(bias_activation_fusion=args.bias_gelu_fusion)), **(moe if args.num_experts else {}), **own)


def stage():
    return parallel_state.get_pipeline_model_parallel_rank()


def build(args):
    config = config_of(args)
    spec = get_gpt_layer_local_spec(num_experts=args.num_experts, moe_grouped_gemm=False, normalization=args.normalization)
    return GPTModel(
        config, spec, vocab_size=args.padded_vocab_size, max_sequence_length=args.max_position_embeddings, parallel_output=False,
        pre_process=parallel_state.is_pipeline_first_stage(), post_process=parallel_state.is_pipeline_last_stage(),
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights, position_embedding_type=args.position_embedding_type,
        rotary_base=args.rotary_base, rotary_percent=args.rotary_percent).eval()


def fill(model, args):
    """Random weights of a size that keeps activations near one, and norms and biases that differ from their start. Rows of the padding are zero."""
    vocabulary = ("embedding.word_embeddings.weight", "output_layer.weight")
    tied = not args.untie_embeddings_and_output_weights
    for name, parameter in model.named_parameters():
        split = getattr(parameter, "tensor_model_parallel", False) or "experts" in name
        ranks = [parallel_state.get_tensor_model_parallel_rank(), parallel_state.get_expert_model_parallel_rank()] if split else []
        where = "vocabulary" if name in vocabulary and tied else f"{stage()} {name}"
        generator = torch.Generator().manual_seed(zlib.crc32(f"{where} {ranks}".encode()))
        values = torch.randn(parameter.shape, generator=generator)
        if name.endswith("bias") or "norm" in name:
            values = 0.3 * values + (0 if name.endswith("bias") else 1)
        elif name != vocabulary[0] or tied:
            values *= (3 if "router" in name else 1) / parameter.shape[-1] ** 0.5
        if name in vocabulary:
            rows = parameter.shape[0]
            first = parallel_state.get_tensor_model_parallel_rank() * rows
            values[max(0, VOCAB - first):] = 0
        with torch.no_grad():
            parameter.copy_(values)


def tokens():
    return torch.randint(VOCAB, (2, LENGTH), generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def logits(model):
    """The logits of tokens() on the last stage of the pipeline, nothing on others."""
    last = parallel_state.get_pipeline_model_parallel_world_size() - 1
    if stage() > 0:
        hidden = torch.empty(LENGTH, len(tokens()), model.config.hidden_size)
        dist.recv(hidden, parallel_state.get_pipeline_model_parallel_prev_rank())
        model.set_input_tensor(hidden)
    mask = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)[None, None]
    out = model(tokens(), torch.arange(LENGTH).expand(len(tokens()), LENGTH), mask)
    if stage() == last:
        return out.clone()
    dist.send(out.contiguous(), parallel_state.get_pipeline_model_parallel_next_rank())
    return None


def make(name, layout):
    """The model and its arguments on this rank, with weights."""
    parallel_state.initialize_model_parallel(layout["tp"], layout["pp"], expert_model_parallel_size=layout["ep"])
    args = arguments(name, layout)
    model = build(args)
    fill(model, args)
    return model, args


def state_of(model, args, metadata, optimizer=False):
    model_state = model.sharded_state_dict(metadata=dict(metadata))
    state = {"args": args, "checkpoint_version": 3.0, "iteration": cases_mcore.fixtures.ITERATION, "model": model_state}
    if optimizer:
        state["optimizer"] = cases_mcore.fixtures.adam_state(model, model_state)
    apply_factories(state)
    return state


def save(name, layout, metadata, folder, optimizer, rank):
    """Saves the model and returns its logits, where this rank has them."""
    model, args = make(name, layout)
    state = state_of(model, args, metadata, optimizer)  # first: it makes a step of the optimizer
    if rank == 0:
        folder.mkdir(parents=True)
    dist.barrier()
    dist_checkpointing.save(state, str(folder), content_metadata=dict(metadata), **cases_mcore.OWN_WRITER)
    return logits(model)


def loaded(name, layout, folder, rank):
    """Loads a checkpoint into a model of other weights and returns its logits, where this rank has them."""
    model, args = make(name, layout)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.5)
    state = model.sharded_state_dict(metadata={"singleton_local_shards": False})
    # An imported checkpoint has no _extra_state, and a strictness that passes over it does not work with torch 2.15.
    state = {key: part for key, part in state.items() if "_extra_state" not in key}
    missing, unexpected = model.load_state_dict(dist_checkpointing.load({"model": state}, str(folder))["model"], strict=False)
    wrong = [key for key in missing + unexpected if "_extra_state" not in key]
    assert not wrong, wrong
    return logits(model)
