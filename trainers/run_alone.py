#!/usr/bin/env python3
"""Starts one life of a trainer without the scenario driver, and says what its witness files hold.

    run_alone.py TRAINER ROOT --layout dp=2,tp=1 [--option async=thread]... [--load | --cold STEP]
                 [--kill RANK,PHASE,TIME] [--fault '{"rerun": {...}}'] ACTION...

An action is train:N, save, save:async, save:sync, load or finalize. Lives are counted by the files in
ROOT/witness; checkpoints go to ROOT/checkpoints. Run it with the Python that has the trainer's packages.
"""
import argparse
import contextlib
import ctypes
import json
import math
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def about(trainer):
    """The trainer's file as a dictionary; the small part of YAML that it is written in needs no package."""
    found, inner = {}, None
    for line in (HERE / trainer / "trainer.yaml").read_text().splitlines():
        line = line.split(" #")[0].rstrip()
        if line and not line.startswith("#"):
            name, _, value = line.strip().partition(":")
            value = value.strip()
            if value.startswith("{"):
                value = dict(pair.split(":") for pair in value.strip("{}").replace(" ", "").replace('"', "").split(","))
            elif value.startswith("["):
                value = [v.strip().strip('"') for v in value.strip("[]").split(",") if v.strip()]
            if line.startswith(" "):
                inner[name] = value
            elif value == "":
                inner = found[name] = {}
            else:
                found[name] = value
    return found


def needs(trainer):
    """The packages that a trainer runs with, by name."""
    return about(trainer)["needs"]


def free_port():
    """Returns a port where rank 0 can listen. It is one of those that the system gives to nobody who asks for any, unless there are none."""
    given = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
    first, last = map(int, given.read_text().split()) if given.exists() else (10000, 65535)
    others = [*range(10000, first), *range(last + 1, 65536)]
    for port in random.sample(others, min(100, len(others))):
        with socket.socket() as s, contextlib.suppress(OSError):  # taken
            s.bind(("", port))
            return port
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


def dies_with_us():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def life(trainer, root, layout, actions, options=None, load=None, kill=None, faults=None, seed=1, seconds=None, values="", quiet=False):
    """Runs one life to its end; returns its number, the exit code of each rank, and the seconds that it took.

    Once a rank has failed the others have ten seconds to notice; then they are ended.
    """
    root, known = pathlib.Path(root).resolve(), about(trainer)
    for name in ("checkpoints", "witness", "plans"):
        (root / name).mkdir(parents=True, exist_ok=True)
    number = len(list((root / "plans").glob("life*.json")))
    plan = root / "plans" / f"life{number}.json"
    plan.write_text(json.dumps({"life": number, "load": load, "options": options or {}, "actions": actions, "kill": kill, "faults": faults or {}}))
    ranks = math.prod(n for axis, n in layout.items() if axis not in known.get("inside", []))
    port, logs, processes = free_port(), [], []
    env = dict(os.environ, WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1",
               REPRISE_LAYOUT=json.dumps(layout), REPRISE_SEED=str(seed), REPRISE_PLAN=str(plan), REPRISE_CHECKPOINTS=str(root / "checkpoints"),
               REPRISE_WITNESS=str(root / "witness"), REPRISE_WITNESS_VALUES=values)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), str(HERE.parent / "python")]))
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # without compiled files each rank compiles 1,800 modules of torch: ten seconds
    env.setdefault("PYTHONPYCACHEPREFIX", os.path.expanduser("~/.cache/reprise/pycache"))
    command = [sys.executable if c == "python3" else c for c in known["command"]]
    begin = time.monotonic()
    for rank in range(ranks):
        logs.append(root / "plans" / f"life{number}-rank{rank}.log")
        with open(logs[-1], "wb") as log:
            processes.append(subprocess.Popen(command, cwd=HERE / trainer, env=dict(env, RANK=str(rank), LOCAL_RANK=str(rank)), stdout=log, stderr=log,
                                              start_new_session=True, preexec_fn=dies_with_us))
    end = begin + (seconds or float(known["seconds"]))
    try:
        while any(p.poll() is None for p in processes) and time.monotonic() < end:
            if any(p.returncode for p in processes):
                end = min(end, time.monotonic() + 10)
                if set(p.returncode for p in processes if p.returncode is not None) & {-9}:
                    end = min(end, time.monotonic() + 3)
            time.sleep(0.02)
    finally:
        for p in processes:
            try:
                os.killpg(p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
    codes = [p.wait() for p in processes]
    if any(codes) and not quiet:
        for log in logs:
            print(f"--- {log}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-int(os.environ.get("LINES_OF_LOG", 25)):]))
    return number, codes, time.monotonic() - begin


def lines_of(root, number):
    """The witness of one life: a list of lines for each rank."""
    found = sorted(pathlib.Path(root, "witness").glob(f"life{number}-rank*.jsonl"), key=lambda p: int(p.stem.partition("rank")[2].partition("-")[0]))
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in found if "-values" not in path.name]


def summary(lines):
    for rank, said in enumerate(lines):
        steps = [f"{line['step']}:{float.fromhex(line['loss']):.6f}" for line in said if line["what"] == "step"]
        states = [f"{line['when']}@{line['step']} ({len(line['tensors'])} tensors, {len(line['objects'])} objects)" for line in said if line["what"] == "state"]
        phases = [f"{line['name']}" for line in said if line["what"] == "phase" and line["edge"] == "begin"]
        samples = sum(len(line["samples"]) for line in said if line["what"] == "step")
        print(f"rank {rank}: loss {' '.join(steps)}; {samples} samples; {', '.join(states)}; {' '.join(phases)}; last line {said[-1]['what']}")


def action_of(text):
    name, _, value = text.partition(":")
    if name == "train":
        return {"do": name, "steps": int(value)}
    return {"do": name} | ({"async": value == "async"} if name == "save" and value else {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("trainer", "root"):
        parser.add_argument(name)
    parser.add_argument("actions", nargs="+")
    parser.add_argument("--layout", default="dp=1")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--load", action="store_true")
    parser.add_argument("--cold", type=int)
    parser.add_argument("--kill")
    parser.add_argument("--fault", default="{}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--values", default="")
    given = parser.parse_args()
    layout = {axis: int(n) for axis, n in (part.split("=") for part in given.layout.split(","))}
    kill = given.kill and dict(zip(("rank", "phase", "occurrence"), (int(given.kill.split(",")[0]), given.kill.split(",")[1], int(given.kill.split(",")[2]))))
    load = {"step": given.cold, "cold": True} if given.cold is not None else {"step": None} if given.load else None
    number, codes, seconds = life(given.trainer, given.root, layout, [action_of(a) for a in given.actions], dict(o.split("=") for o in given.option), load,
                                  kill, json.loads(given.fault), given.seed, values=given.values)
    summary(lines_of(given.root, number))
    print(f"life {number}: exit codes {codes}, {seconds:.1f} s")
    return max(abs(code) for code in codes)


if __name__ == "__main__":
    sys.exit(main())
