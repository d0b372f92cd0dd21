#!/usr/bin/env python3
"""Prints which ranks Megatron-Core chooses to write which shards: make_owners.py RANKS SHARDS SEED > FILE

Prints a random case with the answer of the installed distribute_shards_to_ranks:

    # ...                                            comments
    RANKS                                            number of ranks
    owner key offset length shape width holder...    one line per shard

Shards are ranges of 1-d tensors, counted in elements of `width` bytes. The first holder has the
main copy; no rank holds two shards of one tensor. Few sizes and few holders give many ties.
"""
import random
import sys
import time


def random_case(ranks, shards, seed):
    """Returns a list of (key, offset, length, shape, width, holders)."""
    draw = random.Random(seed)
    case = []
    for number in draw.sample(range(10 * shards), shards):
        if len(case) == shards:
            break
        key = f"layers.{number}.weight"
        copies = draw.choice((1, 2, 2, 3, 4, 8))
        count = min(draw.randrange(1, 9), ranks // copies, shards - len(case))
        width = draw.choice((1, 2, 4, 8))
        lengths = [draw.choice((256, 512, 1024, draw.randrange(1, 5000))) for _ in range(count)]
        holders = draw.sample(range(ranks), count * copies)
        offset = 0
        for n, length in enumerate(lengths):
            case.append((key, offset, length, sum(lengths), width, holders[n * copies:(n + 1) * copies]))
            offset += length
    return case


def elect(case, ranks):
    """Returns the owners that Megatron chooses, and the time that this took."""
    from megatron.core.dist_checkpointing.exchange_utils import distribute_shards_to_ranks

    holders = {(row[0], (row[1],), None): sorted(row[5]) for row in case}
    sizes = {(row[0], (row[1],), None): row[2] * row[4] for row in case}
    begin = time.perf_counter()
    owners = distribute_shards_to_ranks(holders, sizes, ranks, set())
    seconds = time.perf_counter() - begin
    return [owners[(row[0], (row[1],), None)] for row in case], seconds


def text_of(case, owners, ranks):
    import megatron.core

    lines = [f"# owner key offset length shape width holder...: megatron-core {megatron.core.__version__}, by make_owners.py", str(ranks)]
    for owner, (key, offset, length, shape, width, holders) in zip(owners, case):
        lines.append(" ".join(map(str, (owner, key, offset, length, shape, width, *holders))))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    ranks, shards, seed = map(int, sys.argv[1:])
    made = random_case(ranks, shards, seed)
    sys.stdout.write(text_of(made, elect(made, ranks)[0], ranks))
