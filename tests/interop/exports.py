"""Reprise exports what torch saved as a file of torch.save, and imports that file again; torch and Megatron-Core load both."""
import os
import subprocess
import sys

import torch

import gloo_ranks
import loads
import make_fixtures
import reads
import writes
from content import Content, Different, same_bits

# Loads a file with mmap and without. Prints how many tensors were the same both times.
LOADS = """
import sys, torch
a, b = (torch.load(sys.argv[1], weights_only=True, mmap=mmap) for mmap in (False, True))
same = sum(a[k].dtype == b[k].dtype and torch.equal(a[k].reshape(-1).view(torch.uint8), b[k].reshape(-1).view(torch.uint8)) for k in a)
print(len(a) if type(a) is dict and a.keys() == b.keys() else -1, same, torch.__version__)
"""


def loaded_by(python, path):
    """Returns how many tensors that torch loads in the same way twice."""
    done = subprocess.run([python, "-c", LOADS, path], capture_output=True, text=True, timeout=300)
    words = done.stdout.split()
    if len(words) != 3 or words[0] != words[1]:
        raise Different(f"{path.name}: {done.stdout.strip() or done.stderr.strip()[-400:]}")
    return int(words[0])


def there_and_back(fixture):
    """torch.load reads the exported file, with and without mmap. What was imported from it is loaded over 2 x 2 ranks, and by Megatron."""
    def check(reprise, folder):
        truth = reads.save(*make_fixtures.FIXTURES[fixture], folder)
        reprise.must("export", "saved", "one.pt", "--to", "torch")
        for mmap in (False, True):
            found = torch.load("one.pt", weights_only=True, mmap=mmap)
            wrong = [k for k in truth if k not in found or not same_bits(found[k], truth[k])]
            if type(found) is not dict or wrong or found.keys() != truth.keys():
                raise Different(f"mmap={mmap}: {wrong[:3]}, {sorted(found.keys() ^ truth.keys())[:3]}")
        older = os.environ.get("REPRISE_INTEROP_OLDER_PYTHON")
        for python in filter(None, (sys.executable, older)):
            if loaded_by(python, folder / "one.pt") != len(truth):
                raise Different(f"{python} does not load all")
        megatron = ["--megatron"] if writes.has_mcore() else []
        reprise.must("import", "one.pt", "again", "--ranks", 3, "--writers", 2, *megatron)
        again = Content(folder / "again")
        again.must_hold(truth)
        if again.tensors.keys() != truth.keys() or again.objects:
            raise Different("the imported checkpoint has other keys")
        reprise.must("verify", "again")
        loaded = sum(gloo_ranks.run(4, loads.into_dtensors, [again], (2, 2)))
        words = f"{len(truth)} tensors; {loaded:,} elements into DTensors over 2 x 2"
        if megatron:
            by_megatron = sum(gloo_ranks.run(3, loads.into_mcore, [again]))
            words += f", {by_megatron:,} by Megatron on 3 ranks"
            loaded = min(loaded, by_megatron)
        return loaded, words
    return check


def cases():
    for fixture in ("fsdp2_uneven", "fsdp2_tp_strided"):
        yield f"Reprise exports and imports {fixture}", there_and_back(fixture)
