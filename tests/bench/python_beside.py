#!/usr/bin/env python3
"""Compares the Python package with torch.distributed.checkpoint and with the peers that are installed.

    python_beside.py OUT [--small] [--turns N] [--folder DIR]

All ways of one row take turns in the same processes, on the same tensors. Wall time is that of the slowest
rank; CPU time is summed over ranks and the processes that they start; a row shows medians. By default
files are on a tmpfs, where syncing costs nothing, so that durable ways and others are compared fairly.
Whatever is loaded is compared with what was saved, outside of the measured times. Peak memory is what a
rank's resident memory grows by at most during a call. A way that fails is shown with its reason, and takes
no further turns. Writes OUT-<machine>.json and .md.
"""
import argparse
import gc
import json
import math
import mmap
import os
import pathlib
import re
import resource
import shutil
import signal
import statistics
import sys
import tempfile
import time
import warnings

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
warnings.filterwarnings("ignore")

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard

import publish
import reprise.torch as rt

try:
    import torch_checkpointing
except ImportError:
    torch_checkpointing = None
try:
    import safetensors.torch as safetensors
except ImportError:
    safetensors = None

STATES = {"10,000 x 64 KiB": (10_000, 64 << 10), "100 x 10.24 MiB": (100, 10_737_418)}
# What the engine is to reach beside the best durable way of torch.
AIMS = {("save", "10,000 x 64 KiB"): 4.0, ("save", "100 x 10.24 MiB"): 1.0, ("load", "10,000 x 64 KiB"): 5.0, ("load", "100 x 10.24 MiB"): 5.0}
LIMIT, OURS, TORCH, PEER = "limit", "ours", "torch", "peer"


class Rank:
    """This process, and what it saves: its rows of each tensor."""

    def __init__(self, rank, ranks, form, folder):
        self.rank, self.ranks, self.folder = rank, ranks, pathlib.Path(folder)
        count, size = form
        self.mesh = init_device_mesh("cpu", (ranks,)) if ranks > 1 else None
        rows = size // 4 // 16 // ranks * ranks
        self.shape = (rows // ranks, 16)
        noise = torch.randn(self.shape, generator=torch.Generator().manual_seed(rank))
        self.local = {f"layers.{i:05d}.weight": noise + i for i in range(count)}
        self.state = self.wrapped(self.local)

    def wrapped(self, local):
        if self.mesh is None:
            return dict(local)
        return {key: DTensor.from_local(t, self.mesh, [Shard(0)], run_check=False) for key, t in local.items()}

    def bytes(self):
        return sum(t.nbytes for t in self.local.values())

    def blank(self):
        """Tensors to load into, whose memory is there."""
        return self.wrapped({key: torch.full_like(t, -1.0) for key, t in self.local.items()})

    def holds(self, state):
        """True if the state is what was saved, bit for bit."""
        own = {key: t.to_local() if isinstance(t, DTensor) else t for key, t in state.items()}
        return all(torch.equal(own[key], t) for key, t in self.local.items())

    def barrier(self):
        if self.ranks > 1:
            dist.barrier()

    def gathered(self, mine):
        """What each rank passes, on all of them."""
        if self.ranks == 1:
            return [mine]
        all_ = [None] * self.ranks
        dist.all_gather_object(all_, mine)
        return all_

    def remove(self, path):
        """Removes a directory once no rank uses it."""
        self.barrier()
        if self.rank == 0:
            shutil.rmtree(path, ignore_errors=True)
        self.barrier()


def pwrite_all(rank, path):
    """The same bytes, one write for each tensor, and a sync: what no save can be faster than with one thread."""
    path.mkdir(exist_ok=True)
    file = os.open(path / f"bytes.{rank.rank}", os.O_WRONLY | os.O_CREAT)
    at = 0
    for tensor in rank.local.values():
        content = memoryview(tensor.numpy().reshape(-1).view("u1"))
        while len(content) > 0:
            done = os.pwrite(file, content, at)
            at, content = at + done, content[done:]
    os.fsync(file)
    os.close(file)


def pread_all(rank, state, path):
    file = os.open(path / f"bytes.{rank.rank}", os.O_RDONLY)
    at = 0
    for tensor in state.values():
        local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
        content = memoryview(local.numpy().reshape(-1).view("u1"))
        while len(content) > 0:
            done = os.preadv(file, [content], at)
            at, content = at + done, content[done:]
    os.close(file)


def peer_manager(asynchronous=False):
    kind = torch_checkpointing.CheckpointManager.Config
    return torch_checkpointing.CheckpointManager(kind.with_async_save() if asynchronous else kind.with_sync_save())


def saves(rank):
    """Name, kind, and the call: each gets a path where nothing is."""
    planner = DefaultSavePlanner(enable_plan_caching=True)
    ways = [
        ("pwrite and fsync, one thread", LIMIT, lambda path: pwrite_all(rank, path)),
        ("rt.save", OURS, lambda path: rt.save(rank.state, path)),
        ("rt.save, no checksums", OURS, lambda path: rt.save(rank.state, path, checksums="none", structure="bare")),
        ("dcp.save, rt.Writer", OURS, lambda path: dcp.save(rank.state, storage_writer=rt.Writer(path))),
    ]
    for threads in (1, 2):
        ways.append((f"dcp.save, durable, {threads} thread{'s' * (threads > 1)}", TORCH,
                     lambda path, threads=threads: dcp.save(rank.state, storage_writer=FileSystemWriter(path, thread_count=threads, overwrite=True))))
    ways.append(("dcp.save, no sync, 2 threads, plans cached", "torch, not durable",
                 lambda path: dcp.save(rank.state, planner=planner, storage_writer=FileSystemWriter(path, thread_count=2, sync_files=False))))
    if torch_checkpointing is not None and rank.ranks == 1:
        manager = peer_manager()
        ways.append(("torch_checkpointing, no sync", PEER, lambda path: manager.save(str(path), {"model": rank.state})))
    if safetensors is not None and rank.ranks == 1:
        ways.append(("safetensors.save_file, no sync", PEER, lambda path: (path.mkdir(), safetensors.save_file(rank.state, path / "model.safetensors"))))
    return ways


def loads(rank, paths):
    ways = [
        ("pread, one thread", LIMIT, lambda state: pread_all(rank, state, paths["limit"])),
        ("rt.load of its own", OURS, lambda state: rt.load(state, paths["ours"])),
        ("rt.load of torch's", OURS, lambda state: rt.load(state, paths["torch"])),
        ("dcp.load, rt.Reader, of torch's", OURS, lambda state: dcp.load(state, storage_reader=rt.Reader(paths["torch"]))),
        ("dcp.load of torch's", TORCH, lambda state: dcp.load(state, storage_reader=FileSystemReader(paths["torch"]))),
    ]
    if "torch_checkpointing" in paths:
        manager = peer_manager()
        ways.append(("torch_checkpointing", PEER, lambda state: state.update(manager.load(str(paths["torch_checkpointing"]), into={"model": state})["model"])))
    if "safetensors" in paths:
        ways.append(("safetensors.load_file, mapped and copied", PEER, lambda state: [state[key].copy_(t) for key, t in safetensors.load_file(paths["safetensors"] / "model.safetensors").items()]))
    return ways


def stalls(rank):
    """The call returns what finishes the save; the time until it returns is that for which training waits."""
    kinds = torch.distributed.checkpoint.state_dict_saver.AsyncCheckpointerType
    group = dist.new_group(backend="gloo") if rank.ranks > 1 else None
    if 4 * len(rank.state) > resource.getrlimit(resource.RLIMIT_NOFILE)[1]:
        mp.set_sharing_strategy("file_system")  # torch would send a descriptor for each tensor

    def ours_begun(path):
        return rt.begin_save(rank.state, path, structure="stall").finish

    def ours_copied(path):
        saving = rt.begin_save(rank.state, path, structure="stall")
        saving.before_update()
        return saving.finish

    def torchs(kind):
        return lambda path: dcp.async_save(rank.state, storage_writer=FileSystemWriter(path), process_group=group, async_checkpointer_type=kind).result

    ways = [
        ("rt.begin_save: until forward and backward go on", OURS, ours_begun),
        ("rt.begin_save and before_update at once: until the update goes on", OURS, ours_copied),
        ("dcp.async_save, a thread", TORCH, torchs(kinds.THREAD)),
        ("dcp.async_save, a process", TORCH, torchs(kinds.PROCESS)),
    ]
    if torch_checkpointing is not None and rank.ranks == 1:
        manager = peer_manager(asynchronous=True)

        def staged(path):
            written = manager.save(str(path), {"model": rank.state})
            with manager.lock():
                return written.result

        ways.append(("torch_checkpointing, until the update goes on", PEER, staged))
    return ways


def cpu_seconds():
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def memory(what):
    return int(next(line for line in open("/proc/self/status") if line.startswith(what)).split()[1]) << 10


def make_memory_free(size):
    """Takes and gives back this much memory, so that the machine has it. A virtual machine may have handed what was
    freed to its host, and getting it again is slower than a write to it by far."""
    mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0x8000)).close()


def measured(rank, call):
    """Returns what the call returned, and wall seconds, CPU seconds and peak bytes of this rank. Throws on all ranks
    what it threw on one."""
    gc.collect()
    make_memory_free(2 * rank.bytes() + (64 << 20))
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    rank.barrier()
    cpu, begin = cpu_seconds(), time.perf_counter()
    answer = failure = None
    try:
        answer = call()
    except (Exception, CheckpointException) as error:
        failure = f"{type(error).__name__}: {(str(error).strip() or 'no reason').splitlines()[-1]}"
    wall = time.perf_counter() - begin
    refuse_failed(rank, failure)
    return answer, {"wall": wall, "cpu": cpu_seconds() - cpu, "peak": memory("VmHWM") - before}


class Failed(Exception):
    """A way failed on some rank; the text says why."""


def refuse_failed(rank, failure):
    """Throws Failed on all ranks if one has a failure."""
    found = next((one for one in rank.gathered(failure) if one is not None), None)
    if found is not None:
        raise Failed(found[:200])


class Row:
    """One table: what its ways took, turn by turn."""

    def __init__(self, rank, what, state, ways):
        self.rank, self.what, self.state, self.order = rank, what, state, ways
        self.ways = {name: {"kind": kind, "turns": []} for name, kind, _ in ways}

    def take_turns(self, turns, one):
        """Calls `one` for each way in each turn, with its name, its call and the turn; it returns numbers and what
        else there is to tell. Their order is another one each time. The first turn, -1, is not counted: it makes
        groups and plans."""
        for turn in range(-1, turns):
            first = turn % len(self.order)
            for name, _, call in self.order[first:] + self.order[:first]:
                way = self.ways[name]
                if "failed" in way:
                    continue
                try:
                    numbers, more = one(name, call, turn)
                except Failed as failure:
                    way["failed"] = str(failure)
                    continue
                if turn >= 0:
                    all_ = self.rank.gathered(numbers)
                    way["turns"].append({n: (sum if n == "cpu" else max)(m[n] for m in all_) for n in numbers})
                    way.update(more)

    def result(self):
        def told(way):
            return way if "failed" in way else {n: statistics.median(turn[n] for turn in way["turns"]) for n in ("wall", "cpu", "peak")} | way

        return {"what": self.what, "state": self.state, "ranks": self.rank.ranks,
                "ways": [{"name": name, **told(way)} for name, way in self.ways.items()]}


def files_of(path):
    found = [file for file in path.rglob("*") if file.is_file()]
    return {"files": len(found), "bytes": sum(file.stat().st_size for file in found)}


def run_saves(rank, state, turns):
    row, kept = Row(rank, "save", state, saves(rank)), {
        "pwrite and fsync, one thread": "limit", "rt.save": "ours", "dcp.save, durable, 1 thread": "torch",
        "torch_checkpointing, no sync": "torch_checkpointing", "safetensors.save_file, no sync": "safetensors"}
    paths = {}

    def one(name, call, turn):
        keeps = turn == turns - 1 and name in kept
        path = rank.folder / (kept[name] if keeps else "save")
        try:
            _, numbers = measured(rank, lambda: call(path))
            if keeps:
                paths[kept[name]] = path
            return numbers, files_of(path)
        finally:
            if path not in paths.values():
                rank.remove(path)

    row.take_turns(turns, one)
    return row.result(), paths


def run_loads(rank, state, turns, paths):
    row, target = Row(rank, "load", state, loads(rank, paths)), rank.blank()

    def one(name, call, turn):
        for tensor in target.values():
            (tensor.to_local() if isinstance(tensor, DTensor) else tensor).fill_(-1)
        _, numbers = measured(rank, lambda: call(target))
        refuse_failed(rank, None if rank.holds(target) else "it loaded something else than what was saved")
        return numbers, {}

    row.take_turns(turns, one)
    return row.result()


def run_stalls(rank, state, turns):
    row = Row(rank, "stall", state, stalls(rank))

    def one(name, call, turn):
        path = rank.folder / "stall"
        try:
            finish, numbers = measured(rank, lambda: call(path))
            measured(rank, finish)
            return numbers, {}
        finally:
            rank.remove(path)

    row.take_turns(turns, one)
    return row.result()


def job(number, ranks, state, form, folder, turns, out):
    torch.set_num_threads(1)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # torch sends a file for each tensor to another process
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=number, world_size=ranks)
    rank = Rank(number, ranks, form, folder)
    save, paths = run_saves(rank, state, turns)
    rows = [save, run_loads(rank, state, turns, paths)]
    for path in paths.values():
        rank.remove(path)
    rows.append(run_stalls(rank, state, turns))
    if number == 0:
        pathlib.Path(out).write_text(json.dumps(rows))
    rank.barrier()
    sys.stdout.flush()
    os._exit(0)  # torch's process of asynchronous saves would be waited for


def run_job(arguments, ranks):
    """Runs a job's ranks, and leaves none of them behind."""
    context = mp.spawn(job, arguments, nprocs=ranks, join=False)
    try:
        while not context.join():
            pass
    finally:
        for process in context.processes:
            process.kill()
            process.join()


def table(row):
    """A row as lines of Markdown: each way beside torch's best durable one."""
    beside = [way for way in row["ways"] if way["kind"] == TORCH and "failed" not in way]
    base = min((way["wall"] for way in beside), default=math.nan)
    least = min((way["cpu"] for way in beside), default=math.nan)
    with_files = row["what"] == "save"
    head = ["way", "kind", "wall s", "x torch", "CPU s", "x torch", "peak MiB"] + (["files", "MB"] if with_files else [])
    lines = [f"## {row['what']}, {row['state']}, {row['ranks']} rank{'s' * (row['ranks'] > 1)}", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for way in row["ways"]:
        if "failed" in way:
            lines.append(f"| {way['name']} | {way['kind']} | failed: {way['failed'].replace('|', '/')} |" + " |" * (len(head) - 3))
            continue
        cells = [way["name"], way["kind"], f"{way['wall']:.3f}", f"{base / way['wall']:.2f}", f"{way['cpu']:.2f}",
                 f"{least / max(way['cpu'], 0.01):.2f}", f"{way['peak'] / (1 << 20):.0f}"]
        if with_files:
            cells += [str(way["files"]), f"{way['bytes'] / 1e6:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    aim = AIMS.get((row["what"], row["state"]))
    ours = row["ways"][1]
    if aim is not None and beside and "failed" not in ours:
        ratio = base / ours["wall"]
        lines += ["", f"{ours['name']}: {ratio:.2f} x the wall time of torch's best durable way; aim {aim:g}: {'met' if ratio >= aim else 'missed'}."]
        limit = base / row["ways"][0]["wall"]
        if ratio < aim and limit < aim:
            lines[-1] += f" No way can meet it here: {row['ways'][0]['name']}, which compares nothing, is {limit:.2f} x."
    return lines + [""]


def page(about, rows, turns):
    lines = ["# The Python package beside torch.distributed.checkpoint", "",
             f"{about['cpu']}, {about['cores']} cores, {about['memory_GiB']} GiB, {about['kernel']}; files on {about['files_on']}; torch {torch.__version__}, "
             f"Python {sys.version.split()[0]}; commit {about['commit']}.",
             f"Load average before the run: {about['load_before']}.", "",
             f"Made by `./dev bench --python`. Medians of {turns} turns, in which all ways of a table alternate in the same processes. `x torch` is torch's best",
             "durable time divided by this one's: above 1 is faster. `peak MiB` is by how much a rank's memory grew during the call at most. A save of the engine",
             "is committed, synced, with checksums; a load compares them. Before each call as much memory is taken and given back as it will need: a virtual",
             "machine may have returned what was free to its host, and getting it again would be measured with the call. Peers: " + about["peers"] + ".",
             "CUDA and pinned memory: not run.", ""]
    for row in rows:
        lines += table(row)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--folder", default="/dev/shm")
    parser.add_argument("--small", action="store_true", help="a hundredth of the tensors, to try the script")
    asked = parser.parse_args()
    states = {name: (count // 100 if asked.small else count, size) for name, (count, size) in STATES.items()}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that nothing stays in the folder
    peers = [f"torch_checkpointing {torch_checkpointing.__version__}" if torch_checkpointing else "torch_checkpointing is not installed",
             f"safetensors {safetensors.__name__ and __import__('safetensors').__version__}" if safetensors else "safetensors is not installed"]
    about = {**publish.machine(pathlib.Path(".")), "files_on": publish.mount_of(asked.folder), "peers": ", ".join(peers),
             "load_before": " ".join(open("/proc/loadavg").read().split()[:3]), "commit": publish.git("rev-parse", "HEAD")[:12]}
    cpu = re.sub(r"\W+", "-", re.sub(r"\(\w+\)|Processor|@", "", about["cpu"])).strip("-").lower()
    out = pathlib.Path(f"{asked.out}-{cpu}-{about['cores']}-cores")
    out.parent.mkdir(parents=True, exist_ok=True)
    rows = []
    for ranks in (1, 2):
        for state, form in states.items():
            print(f"{state}, {ranks} ranks", flush=True)
            with tempfile.TemporaryDirectory(dir=asked.folder, prefix="reprise-bench-") as folder:
                found = os.path.join(folder, "rows.json")
                run_job((ranks, state, form, folder, asked.turns, found), ranks)
                rows += json.loads(pathlib.Path(found).read_text())
            # What was measured so far is kept if a later job is ended.
            pathlib.Path(f"{out}.json").write_text(json.dumps({"about": about, "rows": rows}, indent=1) + "\n")
            pathlib.Path(f"{out}.md").write_text(page(about, rows, asked.turns))
    print(f"{out}.md")


if __name__ == "__main__":
    main()
