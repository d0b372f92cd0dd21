"""Counts in a sharded state dict of Megatron-Core, and goes on from the newest iteration on any number of ranks:

    torchrun --nproc-per-node 4 megatron_core.py run 20
    torchrun --nproc-per-node 2 megatron_core.py run 40
"""
import sys

import torch
import torch.distributed as dist
from megatron.core.dist_checkpointing import ShardedTensor

import reprise.megatron as rm


def sharded(rows):
    """As a module's sharded_state_dict() has it: these are this rank's rows."""
    return {"model": {"weight": ShardedTensor.from_rank_offsets("weight", rows, (0, dist.get_rank(), dist.get_world_size()))}}


def main(path, last):
    dist.init_process_group("gloo")
    rows = torch.zeros(8 // dist.get_world_size(), 4)
    found = rm.load(sharded(rows), path, missing_ok=True)
    iteration = found["iteration"] if found else 0
    while iteration < last:
        rows += 1
        iteration += 1
        if iteration % 10 == 0:
            rm.save({**sharded(rows), "iteration": iteration}, path, step=iteration, keep=3)
    if dist.get_rank() == 0:
        print(f"iteration {iteration}: {rows[0, 0].item():.0f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
