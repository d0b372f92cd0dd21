#!/usr/bin/env python3
"""Compares Reprise with the installed PyTorch and Megatron-Core, in turns, on the same bytes and files.

    beside_torch.py WORKER REPRISE OUT.json [ROWS...]     ROWS: save load reshard plan owners manifest compare

WORKER is build/release/bench/bench_beside_torch, which does our side of each row. Files are on a tmpfs
(/dev/shm), where syncing costs nothing, so both sides are equally durable. Every time is the median
of its turns. Outside of the measured times, whatever either side loaded is compared with what was saved.
"""
import json
import mmap
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner, _validate_global_plan
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, TensorProperties, TensorStorageMetadata
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
from torch.testing._internal.distributed.fake_pg import FakeStore

import gloo_ranks
import make_owners

LARGE = (8, 8192, 8192)  # 1 GiB of bf16: number of tensors, rows, columns
SMALL = (10_000, 256, 128)  # 10,000 tensors of 64 KiB
CONTENT_BYTES = 1 << 30


def seconds_of(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def size_of(case):
    return case[0] * case[1] * case[2] * 2


def words_for(case):
    return f"{case[0]} x {case[1] * case[2] * 2 // 1024 // (1 if case is SMALL else 1024)} {'KiB' if case is SMALL else 'MiB'}"


def key_of(tensor):
    return f"layers.{tensor:05d}.weight"


class Worker:
    """Our side: sends one request at a time to the worker program and returns its answer."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"{' '.join(map(str, words))}: {answer.strip() or 'the worker ended'}")
        return [float(number) for number in answer.split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Table:
    """Collects and prints rows, with rates for rows that move bytes."""

    def __init__(self):
        self.rows = []

    def add(self, row, what, setting, ours, theirs, torch_setting="", **more):
        ours, theirs = statistics.median(ours), statistics.median(theirs)
        # A ratio above 1 means that Reprise is faster.
        self.rows.append({"row": row, "what": what, "ours": setting, "torch": torch_setting,
                          "ours_s": ours, "torch_s": theirs, "ratio": theirs / ours, **more})
        print(f"{what:<44} {setting:<34} {ours:8.3f} s   {torch_setting:<52} {theirs:8.3f} s   {theirs / ours:6.2f} x", flush=True)


class Place:
    """The directory on the tmpfs with all files, and with the content that all tensors' elements come from."""

    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="reprise-beside-", dir="/dev/shm"))
        self.content = self.root / "content"
        generator = torch.Generator().manual_seed(4)
        noise = torch.randint(0, 256, (1 << 22,), dtype=torch.uint8, generator=generator).numpy().tobytes()
        with open(self.content, "wb") as file:
            for _ in range(CONTENT_BYTES // len(noise)):
                file.write(noise)

    def fresh(self, name):
        shutil.rmtree(self.root / name, ignore_errors=True)
        return self.root / name

    def remove(self):
        shutil.rmtree(self.root, ignore_errors=True)


def tensors_of(content, case, of=(0, 1)):
    """Returns the tensors that one rank saves, as views of the content; `of` is (rank, number of ranks)."""
    count, rows, columns = case
    bytes_all = torch.from_file(str(content), shared=True, size=CONTENT_BYTES, dtype=torch.uint8)
    each = rows * columns * 2
    return {key_of(t): bytes_all[t * each:(t + 1) * each].view(torch.bfloat16).view(rows, columns)
            for t in range(count) if t % of[1] == of[0]}


def same_bits(loaded, saved):
    return all(torch.equal(loaded[key].view(torch.int16), saved[key].view(torch.int16)) for key in saved)


# ---------------------------------------------------------------- torch's side, in one process or two

def torch_save(state, path, crc, threads=1, single=True, sync=False, planner=None, no_dist=True):
    torch.serialization.set_crc32_options(crc)
    writer = FileSystemWriter(path, thread_count=threads, single_file_per_rank=single, sync_files=sync)
    dcp.save(state, storage_writer=writer, planner=planner, no_dist=no_dist)


def torch_load(state, path, no_dist=True):
    dcp.load(state, checkpoint_id=path, no_dist=no_dist)


def serve_rank(rank, port, content, requests, answers):
    """Runs one of two gloo processes, each of which has half of the tensors."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    states = {}
    for verb, case, path, crc in iter(requests.get, None):
        if case not in states:
            states = {case: (tensors_of(content, case, (rank, 2)), None)}
        saved, target = states[case]
        if verb == "load" and target is None:
            target = {key: torch.zeros_like(tensor) for key, tensor in saved.items()}
            states[case] = (saved, target)
        dist.barrier()
        begin = time.perf_counter()
        if verb == "save":
            torch_save(saved, path, crc, no_dist=False)
        else:
            torch_load(target, path, no_dist=False)
        dist.barrier()
        seconds = time.perf_counter() - begin
        if verb == "load" and not same_bits(target, saved):
            seconds = None
        answers.put((rank, seconds))
    dist.destroy_process_group()


class TwoRanks:
    def __init__(self, content):
        context = mp.get_context("spawn")
        self.held = gloo_ranks.held_port()
        port = self.held.getsockname()[1]
        self.answers = context.Queue()
        self.requests = [context.Queue() for _ in range(2)]
        self.processes = [context.Process(target=serve_rank, args=(rank, port, content, self.requests[rank], self.answers), daemon=True)
                          for rank in range(2)]
        for process in self.processes:
            process.start()

    def ask(self, verb, case, path, crc=False):
        for requests in self.requests:
            requests.put((verb, case, path, crc))
        times = [self.answers.get(timeout=240)[1] for _ in self.requests]
        if None in times:
            raise RuntimeError("two ranks of torch loaded something else than was saved")
        return max(times)

    def close(self):
        for requests in self.requests:
            requests.put(None)
        for process in self.processes:
            process.join(30)
        self.held.close()


# ---------------------------------------------------------------- rows

def in_turns(turns, *sides):
    """Returns the times of each side. Each turn begins with another side. The first turn counts only if it is the only one."""
    times = [[] for _ in sides]
    for turn in range(turns + (turns > 1)):
        order = list(enumerate(sides))
        for n, side in order if turn % 2 == 0 else reversed(order):
            seconds = side()
            if turn > 0 or turns == 1:
                times[n].append(seconds)
    return times


def rows_of_save(table, place, worker, two):
    for case, turns in ((LARGE, 3), (SMALL, 1)):
        state = tensors_of(place.content, case)
        worker.ask("state", *case)

        def ours(checksums, staging=256, answer=0):
            return worker.ask("save", place.fresh("ours"), checksums, staging)[answer]

        def theirs(**setting):
            path = place.fresh("torch")
            return seconds_of(lambda: torch_save(state, path, **setting))

        what = f"save {words_for(case)}"
        ours_crc, default = in_turns(turns, lambda: ours("crc32"), lambda: theirs(crc=True, sync=True))
        table.add("save", what, "CRC-32", ours_crc, default, "dcp.save, as it comes (CRC-32)", bytes=size_of(case))
        settings = {
            "no CRC, no sync": lambda: theirs(crc=False),
            "no CRC, no sync, cached plans": lambda: theirs(crc=False, planner=DefaultSavePlanner(enable_plan_caching=True)),
            "no CRC, no sync, 2 gloo processes": lambda: two.ask("save", case, place.fresh("torch")),
        }
        if case is LARGE:
            settings["no CRC, no sync, 2 threads"] = lambda: theirs(crc=False, threads=2)
            settings["no CRC, no sync, a file per tensor"] = lambda: theirs(crc=False, single=False)
        ours_plain, *tried = in_turns(turns, lambda: ours("none"), *settings.values())
        add_best(table, "save", f"{what}", "no checksums", ours_plain, "dcp.save, best", settings, tried, bytes=size_of(case))
        if case is LARGE:
            two_crc = in_turns(turns, lambda: two.ask("save", case, place.fresh("torch"), True))[0]
            table.add("save", what, "CRC-32", ours_crc, min(two_crc, theirs_best_crc(turns, theirs), key=statistics.median),
                      "dcp.save, best with CRC-32", bytes=size_of(case))
            rows_of_async(table, place, state, ours)
        for name in ("ours", "torch"):
            place.fresh(name)


def theirs_best_crc(turns, theirs):
    return in_turns(turns, lambda: theirs(crc=True))[0]


def add_best(table, row, what, setting, ours, name, settings, tried, **more):
    """Adds a row that compares with the fastest of all settings of torch that were tried."""
    best = min(range(len(tried)), key=lambda n: statistics.median(tried[n]))
    others = {key: statistics.median(times) for key, times in zip(settings, tried)}
    table.add(row, what, setting, ours, tried[best], f"{name}: {list(settings)[best]}", tried_s=others, **more)


def rows_of_async(table, place, state, ours):
    """Measures how long the job must wait for a save. Our staging has room for the whole state, as that of async_save does."""
    def theirs():
        path = place.fresh("torch")
        torch.serialization.set_crc32_options(True)
        begin = time.perf_counter()
        done = dcp.async_save(state, storage_writer=FileSystemWriter(path))
        seconds = time.perf_counter() - begin
        done.result()
        return seconds

    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    mine, blocked = in_turns(3, lambda: ours("crc32", 2048, 1), theirs)
    dist.destroy_process_group()
    table.add("save", "until the job may go on, 8 x 128 MiB", "Save::begin, staging 2 GiB", mine, blocked, "dcp.async_save, as it comes")


def rows_of_load(table, place, worker, two):
    """Measures loads of one checkpoint by both sides. Torch wrote the checkpoint."""
    for case, turns in ((LARGE, 3), (SMALL, 1)):
        saved = tensors_of(place.content, case)
        worker.ask("state", *case)
        place.fresh("both").mkdir()
        path = place.root / "both" / "ckpt"
        torch_save(saved, path, crc=True)
        target = {key: torch.zeros_like(tensor) for key, tensor in saved.items()}
        ours_plain, ours_verified, alone, together = in_turns(
            turns,
            lambda: worker.ask("load", path.parent, "ignored", 0, 1)[0],
            lambda: worker.ask("load", path.parent, "verified", 0, 1)[0],
            lambda: seconds_of(lambda: torch_load(target, path)),
            lambda: two.ask("load", case, path))
        if not same_bits(target, saved):
            raise RuntimeError("torch loaded something else than was saved")
        what = f"load {words_for(case)}"
        table.add("load", what, "no checksums", ours_plain, alone, "dcp.load, as it comes (it checks no CRC)", bytes=size_of(case))
        table.add("load", what, "CRC-32 verified", ours_verified, alone, "dcp.load, as it comes (it checks no CRC)", bytes=size_of(case))
        settings = {"1 process": None, "2 gloo processes": None}
        add_best(table, "load", what, "no checksums", ours_plain, "dcp.load, best", settings, [alone, together], bytes=size_of(case))
    place.fresh("both")


def sharded(target, dimension, rank, parts):
    """Returns the DTensors that a rank holds on a mesh of `parts` ranks, in the memory `target`."""
    mesh = DeviceMesh("cpu", torch.arange(parts), mesh_dim_names=("shard",), _init_backend=False)
    count, rows, columns = LARGE
    state, at = {}, 0
    for t in range(count):
        length = LARGE[1 + dimension]
        step = -(-length // parts)
        mine = max(0, min(step, length - rank * step))
        shape = (mine, columns) if dimension == 0 else (rows, mine)
        local = target[at:at + shape[0] * shape[1]].view(shape)
        at += local.numel()
        state[key_of(t)] = DTensor.from_local(local, mesh, [Shard(dimension)], run_check=False,
                                              shape=torch.Size((rows, columns)), stride=(columns, 1))
    return state


def torch_load_parts(path, target, dimension, parts, saved):
    """Loads the share of each rank in turn, as if it were alone on the machine: the world is fake, the DTensors are real."""
    seconds = 0.0
    for rank in range(parts):
        dist.init_process_group("fake", rank=rank, world_size=parts, store=FakeStore())
        state = sharded(target, dimension, rank, parts)
        target.fill_(0)
        seconds += seconds_of(lambda: torch_load(state, path))
        step = -(-LARGE[1 + dimension] // parts)
        for key, tensor in state.items():
            piece = saved[key].narrow(dimension, rank * step, tensor.to_local().shape[dimension])
            if not torch.equal(tensor.to_local().view(torch.int16), piece.view(torch.int16)):
                raise RuntimeError(f"torch loaded something else into {key} of rank {rank}")
        dist.destroy_process_group()
    return seconds


def rows_of_reshard(table, place, worker, reprise):
    """Measures loads of the same files by both sides: those that torch wrote on 1 rank, and those that reshard made of them for 8."""
    saved = tensors_of(place.content, LARGE)
    worker.ask("state", *LARGE)
    target = torch.zeros(size_of(LARGE) // 2, dtype=torch.bfloat16)
    one, eight = place.fresh("one"), place.fresh("eight")
    one.mkdir()
    eight.mkdir()
    torch_save(saved, one / "ckpt", crc=True)
    subprocess.run([reprise, "reshard", one / "ckpt", eight / "ckpt", "--ranks", "8", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    for what, path, dimension, parts, turns in (("1 to 8 ranks", one, 0, 8, 1), ("8 to 3 ranks", eight, 0, 3, 2),
                                                ("8 ranks, rows to columns", eight, 1, 8, 1)):
        read = []

        def ours():
            seconds, bytes_read, needed = worker.ask("load", path, "ignored", dimension, parts)
            read.append(bytes_read / needed)
            return seconds

        mine, theirs = in_turns(turns, ours, lambda: torch_load_parts(path / "ckpt", target, dimension, parts, saved))
        table.add("reshard", f"{what}, 1 GiB, ranks in turn", "no checksums", mine, theirs, "dcp.load of DTensors, as it comes",
                  bytes=size_of(LARGE), read_over_needed=max(read))
    place.fresh("one")
    place.fresh("eight")


def planned(rank, ranks, tensors):
    """Returns the DTensors of a rank without memory: rows are split over dp, columns over tp."""
    mesh = DeviceMesh("cpu", torch.arange(ranks).view(ranks // 8, 8), mesh_dim_names=("dp", "tp"), _init_backend=False)
    least = max(64, ranks // 8)
    state = {}
    for t in range(tensors):
        rows = least * (1 + t % 20)
        local = torch.empty(rows // (ranks // 8), 16, device="meta")
        state[key_of(t)] = DTensor.from_local(local, mesh, [Shard(0), Shard(1)], run_check=False,
                                              shape=torch.Size((rows, 128)), stride=(128, 1))
    return state


def grids(tensors, rows, columns):
    """Returns the metadata of tensors that are cut into a grid of boxes of 4 x 4 elements."""
    chunks = [ChunkStorageMetadata(torch.Size((4 * i, 4 * j)), torch.Size((4, 4))) for i in range(rows) for j in range(columns)]
    properties = TensorProperties(dtype=torch.float32)
    return Metadata({key_of(t): TensorStorageMetadata(properties, torch.Size((4 * rows, 4 * columns)), list(chunks)) for t in range(tensors)})


def rows_of_plan(table, worker, ranks=64, tensors=1600):
    plans, local = [], 0.0
    for rank in range(ranks):
        dist.init_process_group("fake", rank=rank, world_size=ranks, store=FakeStore())
        planner = DefaultSavePlanner()
        planner.set_up_planner(planned(rank, ranks, tensors), None, rank == 0)
        local += seconds_of(lambda: plans.append(planner.create_local_plan()))
        dist.destroy_process_group()
    items = sum(len(plan.items) for plan in plans)
    both = {}
    whole = seconds_of(lambda: both.update(plan=planner.create_global_plan(plans)))
    ours_local, ours_global, our_items = worker.ask("plan", ranks, tensors)
    if items != our_items:
        raise RuntimeError(f"torch plans {items} items, Reprise {our_items}")
    what = f"{ranks} ranks x {tensors} tensors, {items} items"
    table.add("plan", f"local plans, {what}", "local_plan", [ours_local], [local], "create_local_plan", items=items)
    table.add("plan", f"global plan, {what}", "global_plan", [ours_global], [whole], "create_global_plan", items=items)
    for count, rows, columns in ((tensors, ranks // 8, 8), (512, 256, 8)):
        metadata = grids(count, rows, columns)
        # Passes two plans, because torch does not compare volumes if there is only one.
        ours, theirs = in_turns(3, lambda: worker.ask("cover", count, rows, columns)[0],
                                lambda: seconds_of(lambda: _validate_global_plan([None, None], metadata)))
        table.add("plan", f"proof of cover, {count} tensors of {rows * columns} boxes", "prove_cover", ours, theirs,
                  "_validate_global_plan", items=count * rows * columns)


def rows_of_owners(table, place, worker, ranks=300, shards=4096):
    import megatron.core

    case = make_owners.random_case(ranks, shards, 7)
    file = place.root / "owners"
    times = []
    for _ in range(3):
        owners, seconds = make_owners.elect(case, ranks)
        times.append(seconds)
    file.write_text(make_owners.text_of(case, owners, ranks))
    answers = [worker.ask("owners", file) for _ in range(3)]
    if answers[0][1] != shards:
        raise RuntimeError("the case was not read whole")
    table.add("owners", f"owners of {shards} shards on {ranks} ranks", "global_plan, cover proved, too", [row[0] for row in answers],
              times, f"distribute_shards_to_ranks {megatron.core.__version__}", items=shards, other_owners=int(answers[0][2]))
    if answers[0][2] != 0:
        raise RuntimeError(f"{int(answers[0][2])} shards have another owner than Megatron-Core's")


def rows_of_manifest(table, place, reprise):
    """Compares a check of 1 GiB in 8 files against a manifest of SHA-256. Ours compares every CRC-32, too."""
    import megatron.core
    from megatron.core.dist_checkpointing import validation

    one, eight = place.fresh("one"), place.fresh("eight")
    one.mkdir()
    torch_save(tensors_of(place.content, LARGE), one / "ckpt", crc=True)
    subprocess.run([reprise, "reshard", one / "ckpt", eight, "--ranks", "8", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    validation.save_integrity_manifest(str(eight))
    mine, theirs = in_turns(
        3, lambda: seconds_of(lambda: subprocess.run([reprise, "verify", eight], check=True, stdout=subprocess.DEVNULL)),
        lambda: seconds_of(lambda: validation.verify_integrity_manifest(str(eight))))
    table.add("manifest", "verify a manifest, 1 GiB in 8 files", "reprise verify, CRC-32, too", mine, theirs,
              f"verify_integrity_manifest {megatron.core.__version__}", bytes=size_of(LARGE))
    place.fresh("one")
    place.fresh("eight")


def has_manifests():
    try:
        from megatron.core.dist_checkpointing.validation import verify_integrity_manifest  # noqa: F401
    except ImportError:
        return False
    return True


def rows_of_compare(table, place, worker):
    half = CONTENT_BYTES // 2
    memory = torch.from_file(str(place.content), shared=True, size=CONTENT_BYTES, dtype=torch.uint8)
    memory[half:] = memory[:half]
    most = torch.get_num_threads()
    for name in ("bfloat16", "float32"):
        # Uses finite values, because torch finds NaN unequal to itself.
        left, right = (part.view(getattr(torch, name)) for part in (memory[:half], memory[half:]))
        left.copy_(torch.randn(1 << 20).to(left.dtype).repeat(left.numel() >> 20))
        right.copy_(left)
        for threads in sorted({1, most}):
            torch.set_num_threads(threads)
            difference = []

            def ours():
                seconds, mismatches, _ = worker.ask("compare", name, half, threads)
                if mismatches != 0:
                    raise RuntimeError("equal halves differ")
                return seconds

            mine, equal, largest = in_turns(
                3, ours, lambda: seconds_of(lambda: difference.append(not torch.equal(left, right))),
                lambda: seconds_of(lambda: difference.append((left - right).abs().max().item())))
            if any(difference):
                raise RuntimeError("torch sees a difference between equal halves")
            what = f"compare 2 x 512 MiB of {name}, {threads} thread{'s' if threads > 1 else ''}"
            table.add("compare", what, "bits and max_delta", mine, equal, "torch.equal", bytes=2 * half, threads=threads)
            table.add("compare", what, "bits and max_delta", mine, largest, "(a - b).abs().max()", bytes=2 * half, threads=threads)
    torch.set_num_threads(most)


def versions():
    found = {"torch": torch.__version__, "python": sys.version.split()[0], "torch_threads": torch.get_num_threads()}
    try:
        import megatron.core

        found["megatron_core"] = megatron.core.__version__
    except ImportError:
        found["megatron_core"] = None
    return found


def main(program, reprise, out, *names):
    table, began = Table(), time.perf_counter()
    found = versions()
    print("beside " + ", ".join(f"{key} {value}" for key, value in found.items()), flush=True)
    place, worker, two, missing = Place(), Worker(program), None, []
    try:
        worker.ask("content", place.content)
        wanted = lambda name: not names or name in names
        if wanted("save") or wanted("load"):
            two = TwoRanks(str(place.content))
        if wanted("save"):
            rows_of_save(table, place, worker, two)
        if wanted("load"):
            rows_of_load(table, place, worker, two)
        if two:
            two.close()
        if wanted("reshard"):
            rows_of_reshard(table, place, worker, reprise)
        if wanted("plan"):
            rows_of_plan(table, worker)
        if wanted("owners") and found["megatron_core"]:
            rows_of_owners(table, place, worker)
        elif wanted("owners"):
            missing.append("owners: not run, megatron-core is not installed")
        if wanted("manifest") and has_manifests():
            rows_of_manifest(table, place, reprise)
        elif wanted("manifest"):
            missing.append("manifest: not run, this megatron-core has none")
        if wanted("compare"):
            rows_of_compare(table, place, worker)
    finally:
        worker.close()
        place.remove()
    result = {"versions": found, "seconds": time.perf_counter() - began, "not_run": missing, "rows": table.rows}
    pathlib.Path(out).write_text(json.dumps(result, indent=1) + "\n")
    print(f"{len(table.rows)} rows in {result['seconds']:.0f} s" + "".join(f"; {line}" for line in missing))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # exits normally, so that nothing is left on the tmpfs
    main(*sys.argv[1:])
