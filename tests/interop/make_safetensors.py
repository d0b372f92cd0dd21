#!/usr/bin/env python3
"""Writes small safetensors checkpoints with the real packages: make_safetensors.py tests/data

Makes safetensors_<version>/NAME for each function below, and safetensors_<version>/expected.json with what was passed to the
writers. Needs torch, safetensors, transformers and peft, and no GPU or network.
"""
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
os.environ["HF_HUB_OFFLINE"] = "1"
sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file, save_model
from torch.distributed.checkpoint.filesystem import FileSystemWriter, SerializationFormat
from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter

import check_with_torch
import gloo_ranks
from make_fixtures import arange, content, have, sharded

MAKERS = {}


def checkpoint(make):
    """Registers a function make(path) -> {key: whole tensor}."""
    MAKERS[make.__name__] = make
    return make


def cut(whole, ranks):
    """Returns the tensors, each cut along its first dimension over all ranks, if it has one."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    mesh = init_device_mesh("cpu", (ranks,))
    return {k: sharded(v, mesh, [Shard(0)]) if v.dim() else v for k, v in whole.items()}


@checkpoint
def one(path):
    path.mkdir()
    save_file(content(), path / "model.safetensors", metadata={"format": "pt"})
    return content()


@checkpoint
def torch_dist(path):
    """The same tensors as a distributed checkpoint."""
    dcp.save(content(), checkpoint_id=path.name)
    return content()


@checkpoint
def dtypes(path):
    path.mkdir()
    bits = torch.tensor([0x00, 0x80, 0x01, 0x38, 0x7F, 0xFF], dtype=torch.uint8)
    tensors = {"zero_dim": torch.tensor(2.5), "empty": torch.empty(0, 7), "ключ with spaces": arange(2),
               "nine_dims": arange(2, 1, 1, 1, 1, 1, 1, 3, 2), "nan": torch.tensor([float("nan"), -0.0, 0.0])}
    names = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
             "complex64")
    tensors |= {name: arange(2, 3, dtype=dtype) for name, dtype in have(*names).items()}
    narrow = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2")
    tensors |= {name: bits.clone().view(dtype) for name, dtype in have(*narrow).items()}
    tensors["bool"] = torch.tensor([True, False])
    save_file(tensors, path / "model.safetensors")
    return tensors


def llama(tied):
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(3)
    config = LlamaConfig(vocab_size=24, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, max_position_embeddings=16, tie_word_embeddings=tied)
    return LlamaForCausalLM(config).to(torch.bfloat16)


@checkpoint
def transformers_shards(path):
    model = llama(tied=True)
    model.save_pretrained(path, max_shard_size="1KB")
    return {k: v for k, v in model.state_dict().items() if k != "lm_head.weight"}


@checkpoint
def tied(path):
    """Written by safetensors' save_model, which notes in the file which names it left out."""
    path.mkdir()
    model = llama(tied=True)
    save_model(model, str(path / "model.safetensors"))
    return {k: v for k, v in model.state_dict().items() if k != "model.embed_tokens.weight"}


@checkpoint
def adapter(path):
    from peft import LoraConfig, get_peft_model, get_peft_model_state_dict
    model = get_peft_model(llama(tied=False), LoraConfig(r=2, target_modules=["q_proj", "v_proj"], base_model_name_or_path="tiny-llama"))
    model.peft_config["default"].base_model_name_or_path = "tiny-llama"
    model.save_pretrained(path)
    (path / "README.md").unlink()
    return get_peft_model_state_dict(model)


def save_on_rank(writer, whole, ranks, others, rank):
    dcp.save(cut(whole, ranks) | others, storage_writer=writer)


def save_on_ranks(writer, whole, ranks, others=None):
    gloo_ranks.run(ranks, save_on_rank, writer, whole, ranks, others or {})


@checkpoint
def pieces(path):
    """Torch's pieces: each rank writes its own part under the names of the whole."""
    save_on_ranks(HuggingFaceStorageWriter(path.name, save_distributed=True), content(), 3)
    return content()


@checkpoint
def consolidated(path):
    """The same in two files for each rank, and put together by torch."""
    keys = sorted(content())
    files = {key: 1 + i % 2 for i, key in enumerate(keys) if content()[key].is_floating_point()}
    whole = {key: content()[key] for key in files}  # torch 2.15 can't put together integers
    save_on_ranks(HuggingFaceStorageWriter(path.name, save_distributed=True, enable_consolidation=True, fqn_to_index_mapping=files), whole, 2)
    return whole


@checkpoint
def one_rank(path):
    """Torch's writer on one rank: two files and an index."""
    files = {key: 1 + i % 2 for i, key in enumerate(sorted(content()))}
    path.mkdir()
    dcp.save(content(), storage_writer=HuggingFaceStorageWriter(path.name, fqn_to_index_mapping=files))
    return content()


@checkpoint
def within(path):
    """A distributed checkpoint, in whose payload files torch wrote the tensors as safetensors."""
    writer = FileSystemWriter(path.name, serialization_format=SerializationFormat.SAFETENSORS)
    save_on_ranks(writer, content(), 2, {"step": 100})
    return content()


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[1]).resolve() / f"safetensors_{importlib.metadata.version('safetensors')}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    os.chdir(out)  # so that .metadata names no directory of this machine
    expected = {"torch": torch.__version__.split("+")[0], "python": platform.python_version()}
    expected |= {name: importlib.metadata.version(name) for name in ("safetensors", "transformers", "peft")}
    expected["checkpoints"] = {}
    for name, make in MAKERS.items():
        whole = make(out / name)
        expected["checkpoints"][name] = {key: check_with_torch.content_of(tensor) for key, tensor in sorted(whole.items())}
        print(f"{name}: {len(whole)} tensors")
    (out / "expected.json").write_text(check_with_torch.as_json(expected) + "\n")


if __name__ == "__main__":
    main()
