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


def digests_of(folder, blanks={}):
    """key -> (dtype, shape, digest), in the form that run_alone.digests has; blank boxes do not count."""
    tensors, _ = keys_of(folder)
    whole = {key: torch.empty(entry.size, dtype=entry.properties.dtype) for key, entry in tensors.items()}
    dcp.load(whole, storage_reader=dcp.FileSystemReader(folder), no_dist=True)
    found = {}
    for key, values in whole.items():
        dtype, shape, words = elements(values)
        total = digest(key, dtype, shape, [0] * len(shape), shape, words)
        for at, size in blanks.get(key, ()):
            part = values[tuple(slice(a, a + s) for a, s in zip(at, size))]
            total -= digest(key, dtype, shape, at, size, elements(part)[2])
        found[key] = (dtype, tuple(shape), f"{total % 2**64:016x}")
    return found
