"""What a torch_dist checkpoint holds, read by torch: the digest of each tensor, and the keys of the objects."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "trainers"))
import torch
import torch.distributed.checkpoint as dcp

from reprise_witness import digest, elements


def keys_of(folder):
    """(tensors, objects) that .metadata names."""
    entries = dcp.FileSystemReader(folder).read_metadata().state_dict_metadata
    tensors = {key: entry for key, entry in entries.items() if hasattr(entry, "chunks")}
    return tensors, sorted(set(entries) - set(tensors))


def digests_of(folder):
    """key -> (dtype, shape, digest), in the form that run_alone.digests has."""
    tensors, _ = keys_of(folder)
    whole = {key: torch.empty(entry.size, dtype=entry.properties.dtype) for key, entry in tensors.items()}
    dcp.load(whole, storage_reader=dcp.FileSystemReader(folder), no_dist=True)
    found = {}
    for key, values in whole.items():
        dtype, shape, words = elements(values)
        found[key] = (dtype, tuple(shape), f"{digest(key, dtype, shape, [0] * len(shape), shape, words):016x}")
    return found
