#!/usr/bin/env python3
"""Measures how time and memory of each verb grow with the number of tensors, files, objects and ranks.

    curves.py PROGRAM OUT [--most N] [--folder DIR]

PROGRAM is reprise. Makes checkpoints of up to 1,000,000 tensors of 4 bytes, of up to 4,000 files, and, where torch can
be imported, of up to 100,000 objects, and plans for up to 102,400 ranks. Each verb runs twice on each and the faster run
counts: wall time, core time, and the most memory that it held. A verb that fails is told with its last line. --most is
the largest number of anything, for a short run. Writes OUT-<machine>.json and .md.
"""
import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import publish

AIMS = {"tensors": 1_000_000, "files": 4_000, "objects": 100_000, "ranks": 102_400}
TURNS = 2
LIMIT_S = 600


def verbs_of(folder):
    """Returns (name, arguments) of each verb, for the checkpoint `ckpt` and its copy `copy` in the folder."""
    ckpt, copy, out = folder / "root/iter_0000001", folder / "root/iter_0000002", folder / "out"
    return [
        ("inspect", ["inspect", ckpt, "--json"]),
        ("verify", ["verify", ckpt, "--json"]),
        ("verify --no-payload", ["verify", ckpt, "--no-payload"]),
        ("digest", ["digest", ckpt]),
        ("diff", ["diff", ckpt, copy]),
        ("scan", ["scan", ckpt]),
        ("which", ["which", folder / "root"]),
        ("trend", ["trend", folder / "root"]),
        ("reshard", ["reshard", "--writers", "1", ckpt, out, "--quiet"]),
    ]


def write_safetensors(file, count, shape):
    """Writes `count` tensors of float32 of the shape, whose elements count up."""
    elements = 1
    for extent in shape:
        elements *= extent
    size = 4 * elements
    header = {f"layers.{i}.weight": {"dtype": "F32", "shape": shape, "data_offsets": [i * size, (i + 1) * size]}
              for i in range(count)}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(file, "wb") as out:
        out.write(struct.pack("<Q", len(text)))
        out.write(text)
        for i in range(count):
            out.write(struct.pack("<f", i) * elements)


def run(arguments):
    """Returns seconds, core seconds and MiB of a run, or its last line if it failed."""
    begin = time.perf_counter()
    child = subprocess.Popen([str(word) for word in arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1, 3):
        return {"failed": said.strip().split("\n")[-1] or f"exit code {child.returncode}"}
    return {"seconds": time.perf_counter() - begin, "core_seconds": used.ru_utime + used.ru_stime,
            "MiB": used.ru_maxrss / 1024, "exit_code": child.returncode}


def fastest(arguments, clear):
    runs = []
    for _ in range(TURNS):
        shutil.rmtree(clear, ignore_errors=True)
        runs.append(run(["timeout", str(LIMIT_S), *arguments]))
        if "failed" in runs[-1] or runs[-1]["seconds"] > 60:
            break
    shutil.rmtree(clear, ignore_errors=True)
    return min(runs, key=lambda one: one.get("seconds", float("inf")))


def make_tensors(program, count, ckpt):
    with tempfile.TemporaryDirectory(dir=ckpt.parent) as scratch:
        write_safetensors(f"{scratch}/model.safetensors", count, [1])
        subprocess.run([program, "import", f"{scratch}/model.safetensors", ckpt, "--quiet"], check=True, stdout=subprocess.DEVNULL)


def make_files(program, count, ckpt):
    with tempfile.TemporaryDirectory(dir=ckpt.parent) as scratch:
        write_safetensors(f"{scratch}/model.safetensors", 4, [count, 16])
        subprocess.run([program, "import", f"{scratch}/model.safetensors", ckpt, "--ranks", str(count), "--quiet"], check=True, stdout=subprocess.DEVNULL)


SAVE_OBJECTS = """
import sys
import torch.distributed.checkpoint as dcp
state = {f"rng.{i}": {"seed": i, "words": [i, i + 1]} for i in range(int(sys.argv[1]))}
planner = dcp.DefaultSavePlanner(flatten_state_dict=False)
dcp.save(state, checkpoint_id=sys.argv[2], no_dist=True, planner=planner)
"""


def make_objects(_, count, ckpt):
    subprocess.run([sys.executable, "-W", "ignore", "-c", SAVE_OBJECTS, str(count), str(ckpt)], check=True)


def apart(work, *arguments):
    """Calls the function in a process of its own: what this one holds would count as memory of each verb that it starts."""
    child = os.fork()
    if child == 0:
        try:
            work(*arguments)
        except BaseException as error:  # told by the parent
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"{work.__name__}: failed")


def curve(program, make, counts, folder):
    rows = {}
    for count in counts:
        root = folder / "root"
        root.mkdir(parents=True)
        apart(make, program, count, root / "iter_0000001")
        shutil.copytree(root / "iter_0000001", root / "iter_0000002")
        for name, arguments in verbs_of(folder):
            rows.setdefault(name, {})[count] = fastest([program, *arguments], folder / "out")
        shutil.rmtree(root)
        print(f"{count:,} done", file=sys.stderr)
    return rows


def curve_of_plans(program, counts):
    rows = {}
    for ranks in counts:
        layout = f"tp=8,pp=64,dp={ranks // 512}"
        save = [program, "plan", "--model", "llama3-405b", "--layout", layout]
        rows.setdefault("plan of a save", {})[ranks] = fastest(save, "none")
        rows.setdefault("plan of a save, and of its load by as many", {})[ranks] = fastest([*save, "--to", f"tp=4,pp=64,dp={ranks // 256}"], "none")
    return rows


def cell(one):
    if one is None:
        return ""
    if "failed" in one:
        return "failed: " + one["failed"]
    code = f", exit {one['exit_code']}" if one["exit_code"] else ""
    return f"{one['seconds']:.2f} s, {one['MiB']:,.0f} MiB{code}"


def page(about, curves, not_run):
    lines = [f"# Growth, {about['date']}", ""]
    lines += [f"{about['cpu']}, {about['cores']} cores, {about['memory_GiB']} GiB; commit {about['commit'][:12]}{' with changes' if about['dirty'] else ''}."]
    lines += ["Made by `./dev bench --curves`: wall time of the faster of two runs, and the most memory that the process held. Files are",
              f"on {about['folder']}. Tensors have 4 bytes each; the files share 4 tensors; the ranks are those of Llama 3 405B with tp=8 and pp=64."]
    for what, rows in curves.items():
        counts = sorted({count for row in rows.values() for count in row})
        lines += ["", f"## {what}", ""]
        lines += publish.table(["verb", *(f"{count:,}" for count in counts)],
                               [[name, *(cell(row.get(count)) for count in counts)] for name, row in rows.items()])
    return lines + ["", *not_run]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("out")
    parser.add_argument("--most", type=int, default=1_000_000)
    parser.add_argument("--folder", default="/dev/shm")
    chosen = parser.parse_args()
    program = chosen.program.resolve()

    def counts(what):
        top = AIMS[what]
        return [n for n in (top // 1000, top // 100, top // 10, top) if 4 <= n <= chosen.most and (what != "ranks" or n >= 1024)]

    makers, not_run = {"tensors": make_tensors, "files": make_files}, []
    if importlib.util.find_spec("torch"):
        makers["objects"] = make_objects
    else:
        not_run.append("Objects: not run, because there is no torch; './dev interop' makes an environment that has it.")
    with tempfile.TemporaryDirectory(dir=chosen.folder, prefix="reprise-curves-") as scratch:
        curves = {what: curve(program, make, counts(what), pathlib.Path(scratch)) for what, make in makers.items()}
        curves["ranks"] = curve_of_plans(program, counts("ranks"))
    about = {"date": datetime.date.today().isoformat(), **publish.machine(pathlib.Path(".")), "folder": chosen.folder}
    out = f"{chosen.out}-{publish.slug_of(about)}"
    whole = {"about": about, "curves": curves, "not_run": not_run}
    pathlib.Path(f"{out}.json").write_text(json.dumps(whole, indent=1) + "\n")
    pathlib.Path(f"{out}.md").write_text("\n".join(page(about, curves, not_run)) + "\n")
    print(f"{out}.md")


if __name__ == "__main__":
    main()
