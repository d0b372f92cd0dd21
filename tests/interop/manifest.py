#!/usr/bin/env python3
"""Records the origin of each fixture of tests/data: manifest.py tests/data > tests/data/manifest.json

Writes one entry for each checkpoint with an expected.json, and for other files that scripts made. `content` is the SHA-256 of
the lines "<sha256 of a file>  <its path>" of all its files, sorted. `script_sha256` is the SHA-256 of the script in the commit
that added the fixture, since scripts change later. Run this in a clone with history, after committing fixture and script.
"""
import hashlib
import json
import pathlib
import subprocess
import sys

SCRIPTS = {"mcore": "make_mcore_fixtures.py", "mimo": "make_mimo_fixtures.py", "torch": "make_fixtures.py", "objects": "make_objects.py", "spellings": "make_spellings.py", "owners": "make_owners.py", "safetensors": "make_safetensors.py", "llama": "make_llama.py",
           "torch_save": "make_torch_save.py", "rank_files": "make_rank_files.py", "torch_checkpointing": "make_rank_files.py", "deepspeed": "make_deepspeed.py",
           "optimizer_forms": "make_optimizer_forms.py", "changes": "make_changes.py", "scan": "make_scan.py", "releases": "make_releases.py"}


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def content_of(data, paths):
    lines = sorted(f"{sha256(p.read_bytes())}  {p.relative_to(data).as_posix()}\n" for p in paths)
    return sha256("".join(lines).encode())


def entry(data, name, paths, script, made):
    commit = git("log", "-1", "--format=%H", "--", *map(str, paths)).decode().strip()
    return name, {"script": script, "script_sha256": sha256(git("show", f"{commit}:tests/interop/{script}")),
                  "torch": made["torch"].split("+")[0], "python": made["python"],
                  "megatron_core": made.get("megatron_core"), "content": content_of(data, paths)}


def entries(data):
    for expected in sorted(data.rglob("*.expected.json")):
        name = expected.relative_to(data).as_posix().removesuffix(".expected.json")
        folder = data / name
        made = json.loads(expected.read_text())
        if name.startswith("mcore_"):
            made["megatron_core"] = name.split("_")[1]
        kind = next((kind for kind in ("mimo", "llama") if f"_{kind}" in name), name.split("_")[0])
        script = SCRIPTS[folder.name if folder.name in SCRIPTS else kind]
        yield entry(data, name, [expected, *(p for p in folder.rglob("*") if p.is_file())], script, made)
    for owners in sorted(data.glob("mcore_*_owners.txt")):
        made = {"torch": "2.15.0", "python": "3.11.7", "megatron_core": owners.name.split("_")[1]}
        yield entry(data, owners.name, [owners], SCRIPTS["owners"], made)


    for kind in ("safetensors", "torch_save", "rank_files", "torch_checkpointing", "deepspeed", "optimizer_forms", "changes", "scan", "releases"):
        for folder in sorted(data.glob(f"{kind}_[0-9]*")):
            made = json.loads((folder / "expected.json").read_text())
            yield entry(data, folder.name, [p for p in folder.rglob("*") if p.is_file()], SCRIPTS[kind], made)


def main():
    data = pathlib.Path(sys.argv[1]).resolve()
    rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in entries(data))
    print("{\n" + rows + "\n}")


if __name__ == "__main__":
    main()
