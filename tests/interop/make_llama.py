#!/usr/bin/env python3
"""Writes a small checkpoint of a GPT like Llama over tp 2, without optimizer, with the megatron-core that runs this script.

    make_llama.py OUT       OUT/mcore_<version>_llama/iter_0000010
"""
import os
import pathlib
import sys

import gpt_models
import make_fixtures
from cases_mcore import fixtures

INNER = f"iter_{fixtures.ITERATION:07d}"
NAME = f"{fixtures.PREFIX}_llama"


def llama(path, rank):
    gpt_models.save("llama", {"tp": 2, "pp": 1, "ep": 1}, {"singleton_local_shards": False}, pathlib.Path(path) / INNER, False, rank)
    if rank == 0:
        (pathlib.Path(path) / "latest_checkpointed_iteration.txt").write_text(str(fixtures.ITERATION))


make_fixtures.FIXTURES[NAME] = (llama, 2)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[1]).resolve()
    os.chdir(out)
    make_fixtures.make(NAME, out, INNER)


if __name__ == "__main__":
    main()
