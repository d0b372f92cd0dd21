#!/usr/bin/env python3
"""Prints the table of tests/data/README.md: table.py tests/data"""
import hashlib
import json
import pathlib
import sys

HOLDS = {
    "plain": "every dtype, no dimensions, no elements, views and transposes, nested dicts and lists, objects, AdamW state",
    "plain_odd": "conjugate and negated views, channels_last, float8_e8m0fnu, complex32",
    "file_per_item": "one file per item",
    "fsdp2_uneven": "DTensors on 4 ranks and on 2 x 2, uneven, with empty shards",
    "fsdp2_model": "a trained model under fully_shard on 4 ranks",
    "fsdp2_tp_strided": "the same under fully_shard (2) over tensor parallelism (2): strided shards",
    "replicated": "plain tensors and objects on 2 ranks, deduplicated",
    "replicated_lowest_rank": "the same, all left to rank 0: a file of 0 bytes",
    "async_threads": "async_save on 2 ranks with 2 writer threads",
    "nocollectives": "one metadata file per rank",
    "same_content_a": "a model state over 4 ranks, rows",
    "same_content_b": "the same content over 2 x 2, columns and rows",
    "different_content": "the same but for one bit of one element (see `changed`), 3 ranks",
    "sd_view_strided": "shards of transposed matrices, stored permuted",
    "gpt_tp2_pp2": "Megatron GPT over tp 2, pp 2: optimizer, RNG, rerun state, common.pt",
    "gpt_dp2": "the same content over dp 2, saved fully parallel",
    "llama": "Megatron GPT like Llama over tp 2, float32, without optimizer, with arguments of the training",
    "buckets": "Megatron optimizer buckets cut unevenly (composed keys)",
    "spellings": "pairs of objects, equal ones in two spellings and others that are easily taken for equal",
    "mimo_prefixed": "two modules on grids of their own, one with a chain of two optimizers (composed keys)",
}


def rows(data):
    for expected in sorted(data.rglob("*.expected.json")):
        name = expected.name.removesuffix(".expected.json")
        folder = expected.parent / name
        content = json.loads(expected.read_text())
        made = f"{content['torch'].split('+')[0]} | {content['python']}"
        where = folder.relative_to(data)
        files = sorted(folder.rglob(".metadata")) or sorted(folder.rglob("__*.metadata"))
        digest = " ".join(hashlib.sha256(f.read_bytes()).hexdigest() for f in files) or "-"
        short = name.split("_", 2)[2] if name.startswith("mcore_") else name
        script = "make_mimo_fixtures" if "_mimo_" in name else "make_llama" if short == "llama" else "make_mcore_fixtures" if short != name else f"make_{name}" if name in ("objects", "spellings") else "make_fixtures"
        yield f"| `{where}` | {HOLDS.get(short, 'one torch.save file per kind of object')} | {made} | {script} | {digest} |"


print("| checkpoint | holds | torch | Python | script | sha256 of `.metadata` |\n|---|---|---|---|---|---|")
print("\n".join(rows(pathlib.Path(sys.argv[1]))))
