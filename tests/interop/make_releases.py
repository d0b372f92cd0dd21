#!/usr/bin/env python3
"""Makes the fixtures of several releases out of a folder that release_table.py wrote: make_releases.py FOLDER OUT

OUT/releases_<newest torch>/RELEASE/CASE, and an expected.json that says which packages wrote each.
"""
import json
import pathlib
import shutil
import sys

# What one release wrote, and its packages: each form that a later release gave up, or began.
KEPT = {
    "torch-2.7/unsigned": "torch 2.7.1, Python 3.10.13", "torch-2.11/ranks": "torch 2.11.0, Python 3.12.1",
    "mcore-0.8/optimizer": "megatron-core 0.8.0, torch 2.4.1, Python 3.10.13", "mcore-0.12/optimizer": "megatron-core 0.12.3, torch 2.7.1, Python 3.10.13",
    "mcore-0.15/optimizer": "megatron-core 0.15.3, torch 2.11.0, Python 3.12.1", "mcore-0.18/object": "megatron-core 0.18.2, torch 2.14.1, Python 3.12.1",
    "mcore-0.19/object": "megatron-core 0.19.2, torch 2.15.0, Python 3.12.1", "mcore-0.19/optimizer": "megatron-core 0.19.2, torch 2.15.0, Python 3.12.1",
}


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    folder, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]) / "releases_2.15.0"
    for name in KEPT:
        shutil.copytree(folder / name, out / name)
    content = {"torch": "2.15.0", "python": "3.12.1", "written_by": KEPT}
    (out / "expected.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
