#!/usr/bin/env python3
"""Reads a DCP checkpoint with torch and describes its content.

    check_with_torch.py DIR                  prints the content as JSON (keys, shapes, sha256)
    check_with_torch.py DIR EXPECTED.json    compares with it: one line, exit status 0 (same) or 1 (not)

Everything is read twice: by torch's own load path (as in dcp_to_torch_save), and item by item with
torch.load(weights_only=True), after which the chunks are joined. The two results must agree bit by bit.
"""
import hashlib
import io
import json
import pathlib
import pickle
import re
import sys

import torch
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

REPR_CHARS_MAX = 400


def tensor_bytes(tensor):
    """Returns the bytes of the whole tensor, contiguous and little-endian."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def as_text(value):
    """Returns the value's repr without memory addresses, cut to a readable length."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(value))
    return text if len(text) <= REPR_CHARS_MAX else text[:REPR_CHARS_MAX] + "…"


def first_values(tensor, count=4):
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)[:count]
    if flat.dtype in (torch.uint16, torch.uint32, torch.uint64) or not flat.dtype.is_floating_point:
        return [str(v) for v in flat.tolist()]
    try:
        return [str(v) for v in flat.to(torch.float64).tolist()]
    except (RuntimeError, NotImplementedError):
        return []  # packed dtypes have no values of single elements


def describe_tensor(tensor, chunks):
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "chunks": chunks,
        "sha256": hashlib.sha256(tensor_bytes(tensor)).hexdigest(),
        "first": first_values(tensor),
    }


def content_of(tensor):
    """Returns what a fixture says of a tensor that was saved: its dtype, shape and SHA-256, whatever its memory is like."""
    described = describe_tensor(tensor.detach().clone(), 0)
    return {name: described[name] for name in ("dtype", "shape", "sha256")}


def read_metadata(directory):
    """Returns a list of (rank, Metadata): one entry with rank None for `.metadata`, or one for each `__<rank>.metadata`."""
    whole = directory / ".metadata"
    if whole.exists():
        return [(None, pickle.loads(whole.read_bytes()))]
    parts = {int(p.name[2:-9]): p for p in directory.glob("__*.metadata")}
    return [(rank, pickle.loads(parts[rank].read_bytes())) for rank in sorted(parts)]


def read_item(directory, info, weights_only):
    with open(directory / info.relative_path, "rb") as file:
        file.seek(info.offset)
        data = file.read(info.length)
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=weights_only)


def paste_items(directory, metadata, tensors, objects):
    """The second reader: reads the items one at a time, directly from the files named in storage_data."""
    for index, info in metadata.storage_data.items():
        entry = metadata.state_dict_metadata[index.fqn]
        if not hasattr(entry, "chunks"):
            objects[index.fqn] = read_item(directory, info, weights_only=False)
            continue
        chunk = read_item(directory, info, weights_only=True)
        if index.fqn not in tensors:
            tensors[index.fqn] = torch.empty(entry.size, dtype=chunk.dtype)
        region = tuple(slice(o, o + n) for o, n in zip(index.offset, chunk.shape))
        tensors[index.fqn][region].copy_(chunk)


def load_whole(directory, metadata):
    """The first reader: torch's own, with a planner that requests every key."""
    state = {}
    _load_state_dict(state, storage_reader=FileSystemReader(str(directory)),
                     planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    flat = {}
    for key in metadata.state_dict_metadata:
        value = state
        for step in (metadata.planner_data or {}).get(key, (key,)):
            value = value[step]
        flat[key] = value
    return flat


def read_checkpoint(directory):
    """Returns the whole tensors by key, a list of (rank or None, objects by key), and the boxes of each tensor's chunks by key.

    Without rank coordination each rank keeps objects of its own, which may differ between ranks.
    """
    parts = read_metadata(directory)
    if not parts:
        raise SystemExit(f"{directory}: no metadata")
    tensors, objects, chunks = {}, [], {}
    for rank, metadata in parts:
        mine = {}
        paste_items(directory, metadata, tensors, mine)
        objects.append((rank, mine))
        for key, entry in metadata.state_dict_metadata.items():
            if hasattr(entry, "chunks"):
                boxes = {(tuple(c.offsets), tuple(c.sizes)) for c in entry.chunks}
                chunks[key] = chunks.get(key, set()) | boxes
    if parts[0][0] is None:
        for key, value in load_whole(directory, parts[0][1]).items():
            if key in tensors:
                other = tensors[key]
                if value.dtype != other.dtype or tensor_bytes(value) != tensor_bytes(other):
                    raise SystemExit(f"{directory}: torch's two ways to read {key!r} disagree")
    return tensors, objects, chunks


def describe(directory):
    directory = pathlib.Path(directory)
    tensors, objects_by_rank, chunks = read_checkpoint(directory)
    objects = {}
    for rank, mine in objects_by_rank:
        objects.update(mine if rank is None else {f"{k} (rank {rank})": v for k, v in mine.items()})
    common = directory / "common.pt"  # Megatron-Core's file next to the DCP files
    if common.exists():
        state = torch.load(common, map_location="cpu", weights_only=False)
        objects.update({f"common.pt {k}": v for k, v in state.items()})
    return {
        "tensors": {k: describe_tensor(tensors[k], len(chunks[k])) for k in sorted(tensors)},
        "objects": {k: {"type": type(objects[k]).__name__, "repr": as_text(objects[k])} for k in sorted(objects)},
    }


def as_json(content):
    """Returns JSON with one line for each key, so that a change of one tensor changes one line."""
    lines = []
    for name, value in content.items():
        if isinstance(value, dict) and name in ("tensors", "objects"):
            rows = ",\n".join(f"  {json.dumps(k, ensure_ascii=False)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
            lines.append(f" {json.dumps(name)}: {{\n{rows}\n }}")
        else:
            lines.append(f" {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}"


def differences(actual, expected):
    """Yields the differences in content. Chunks may differ, since the same content can be cut in many ways."""
    for section in ("tensors", "objects"):
        for key in sorted(actual[section].keys() | expected[section].keys()):
            mine, theirs = actual[section].get(key), expected[section].get(key)
            if mine is None or theirs is None:
                yield f"{key!r} is only in the {'expected file' if mine is None else 'checkpoint'}"
                continue
            for field in theirs:
                if field not in ("chunks", "first") and mine[field] != theirs[field]:
                    yield f"{key!r} {field}: {mine[field]} instead of {theirs[field]}"


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    try:
        actual = describe(sys.argv[1])
    except Exception as error:  # torch raises many kinds for a checkpoint that it can't read
        print(f"UNREADABLE {sys.argv[1]} (torch {torch.__version__}): {type(error).__name__}: {error}")
        return 1
    if len(sys.argv) == 2:
        print(as_json(actual))
        return 0
    expected = json.loads(pathlib.Path(sys.argv[2]).read_text())
    found = list(differences(actual, expected))
    if found:
        print(f"DIFFERENT {sys.argv[1]}: {found[0]}" + (f" (and {len(found) - 1} more)" if len(found) > 1 else ""))
        return 1
    print(f"SAME {sys.argv[1]}: {len(actual['tensors'])} tensors, {len(actual['objects'])} objects "
          f"(torch {torch.__version__})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
