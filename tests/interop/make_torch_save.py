#!/usr/bin/env python3
"""Writes small files with torch.save and real packages: make_torch_save.py tests/data

Makes torch_save_<version>/NAME for each function below, and torch_save_<version>/expected.json with what torch.load reads of
them, under the names of DCP's flatten_state_dict. Needs torch and transformers before 5 (later ones write only safetensors), and
no GPU or network.
"""
import argparse
import collections
import json
import os
import pathlib
import platform
import shutil
import string
import sys
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")

import torch
from torch.distributed.checkpoint._nested_dict import flatten_state_dict

import check_with_torch
from make_fixtures import arange, have

MAKERS = {}


def file(make):
    """Registers a function make(path), which writes the file or directory NAME, in whose name '__' stands for '.'."""
    MAKERS[make.__name__.replace("__", ".")] = make
    return make


@file
def training__pt(path, epoch=3):
    """Model, optimizer, schedule and settings, as scripts save them."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "epoch": epoch,
                "rng": torch.get_rng_state(), "args": argparse.Namespace(lr=1e-3, name="run"), "title": string.Template("$run"), "nothing": {}, "best": None}, path)


@file
def later__pt(path):
    """The same, but for one number."""
    training__pt(path, epoch=4)


@file
def views__pt(path):
    base = arange(6, 8)
    nine = arange(2, 1, 2, 1, 2, 1, 2, 1, 3, 2)
    tensors = {"base": base, "transposed": base.t(), "rows": base[2:5], "columns": base[:, 1:8:3], "row": base[4], "again": base,
               "expanded": torch.tensor([1.5, -2.0]).reshape(2, 1).expand(2, 700), "scalar": base[3, 3], "empty": base[6:],
               "zero_dims": torch.tensor(7), "windows": arange(9).unfold(0, 4, 1), "flat": base.reshape(-1),
               "conjugated": torch.tensor([1 + 2j, 3 - 4j]).conj(), "imaginary": torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
               "ten_dims": nine, "ten_dims_permuted": nine.permute(9, 0, 1, 2, 3, 4, 5, 6, 7, 8).contiguous()}
    torch.save(tensors, path)


@file
def dtypes__pth(path):
    names = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8",
             "complex128", "complex64", "complex32")
    tensors = {name: arange(2, 3, dtype=dtype) for name, dtype in have(*names).items()}
    bits = torch.tensor([0x00, 0x80, 0x01, 0x38, 0x7F, 0xFF], dtype=torch.uint8)
    narrow = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn_x2")
    tensors |= {name: bits.clone().view(dtype) for name, dtype in have(*narrow).items()}
    tensors |= {"bool": torch.tensor([True, False]), "nan": torch.tensor([float("nan"), -0.0, 0.0])}
    torch.save(tensors, path)


@file
def names__pt(path):
    """Keys that are no text, dots in keys, tuples and lists, a long key, tensors with attributes."""
    parameter = torch.nn.Parameter(arange(3))
    tagged = torch.nn.Parameter(arange(2))
    tagged.allreduce = False
    default = collections.defaultdict(list)
    default["w"] = arange(2)
    torch.save({"a.b": arange(2), "a": {"c": arange(3), 0: arange(4), True: arange(5), None: 6}, "pair": (arange(2), {"x": 1}),
                "numbers": [1, 2, (3, 4)], "list": [arange(1), {"y": arange(2)}, [arange(3)]], "шаг": arange(2), "default": default,
                "k" * 5000: arange(2), "parameter": parameter, "tagged": tagged, "set": {1, 2}, "": 1}, path)


@file
def tied__bin(path):
    weight = torch.nn.Parameter(arange(4, 2))
    torch.save({"embed.weight": weight, "head.weight": weight, "norm.weight": arange(2)}, path)


@file
def tensor__pt(path):
    torch.save(arange(2, 3), path)


@file
def without_checksums__pt(path):
    torch.utils.serialization.config.save.compute_crc32 = False
    torch.save({"w": arange(20), "v": arange(3)}, path)
    torch.utils.serialization.config.save.compute_crc32 = True


@file
def same_names__pt(path):
    """Two values that flatten to one name."""
    torch.save({"a": {"b": arange(2)}, "a.b": arange(3)}, path)


@file
def not_read__pt(path):
    """Values that are read by no name: a whole module, a sparse tensor, a tuple as a key."""
    torch.save({"module": torch.nn.Linear(2, 2), "sparse": torch.eye(3).to_sparse(), "dict": {(1, 2): arange(2)}, "w": arange(2)}, path)


@file
def before_1_6__pt(path):
    torch.save({"w": arange(2)}, path, _use_new_zipfile_serialization=False)


@file
def script__ts(path):
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), path)


@file
def shards(path):
    """As transformers wrote models before safetensors."""
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(3)
    config = LlamaConfig(vocab_size=24, hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, max_position_embeddings=16, tie_word_embeddings=False)
    LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(path, max_shard_size="1KB", safe_serialization=False)


def untupled(value):
    """DCP takes a tuple for one value. Those with tensors are taken apart like lists here."""
    if isinstance(value, dict):
        return {key: untupled(part) for key, part in value.items()}
    if isinstance(value, tuple) and any(isinstance(part, torch.Tensor) for part in value):
        return [untupled(part) for part in value]
    return [untupled(part) for part in value] if isinstance(value, list) else value


def read(path):
    """Returns what torch reads of the file, or of all files in a directory: tensors, and the names of other values."""
    flat = {}
    for part in sorted(path.glob("*.bin")) if path.is_dir() else [path]:
        value = torch.load(part, weights_only=False)
        value = {"tensor": value} if isinstance(value, torch.Tensor) else value
        flat |= flatten_state_dict(untupled(value))[0]
    return {"tensors": {key: check_with_torch.content_of(value) for key, value in sorted(flat.items()) if isinstance(value, torch.Tensor)},
            "objects": sorted(key for key, value in flat.items() if not isinstance(value, torch.Tensor))}


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    version = torch.__version__.split("+")[0]
    out = pathlib.Path(sys.argv[1]).resolve() / f"torch_save_{version}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    import transformers
    expected = {"torch": version, "python": platform.python_version(), "transformers": transformers.__version__, "files": {}}
    for name, make in MAKERS.items():
        make(out / name)
        if name in ("same_names.pt", "not_read.pt", "before_1_6.pt", "script.ts"):
            continue
        expected["files"][name] = read(out / name)
        print(f"{name}: {len(expected['files'][name]['tensors'])} tensors")
    (out / "expected.json").write_text(check_with_torch.as_json(expected) + "\n")


if __name__ == "__main__":
    main()
