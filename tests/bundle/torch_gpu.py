#!/usr/bin/env python3
"""Times the installed PyTorch on the work that bench_gpu times, with the same sizes in the same kind of memory.

    torch_gpu.py OUT.json [--device cuda|cpu] [--scale N]     --scale 8: an eighth of the bytes

Files are on a tmpfs. Every time is the median of three turns, after one turn that does not count. Exits
with 3 if there is no torch or no such device. The file has all settings that were tried; the table
shows the default and the fastest setting.
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")
try:
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import FileSystemWriter
except ImportError as error:
    print(f"no torch: {error}")
    sys.exit(3)

MIB = 1 << 20
TURNS = 3


def median_of(work, prepare=lambda: None):
    """Returns the median of the seconds that work(prepare()) takes; work may return a measurement of its own instead."""
    times = []
    for _ in range(1 + TURNS):
        prepared = prepare()
        begin = time.perf_counter()
        told = work(prepared)
        times.append(told if isinstance(told, float) else time.perf_counter() - begin)
    return statistics.median(times[1:])


class Bench:
    def __init__(self, device, scale):
        self.device = torch.device(device)
        self.scale = scale
        self.rows = []
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="reprise-torch-", dir="/dev/shm"))

    def synchronize(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def add(self, what, size, tried):
        """Adds a row to the table. `tried` maps each setting to seconds; the default comes first."""
        default, best = next(iter(tried)), min(tried, key=tried.get)
        rate = {name: size / seconds / 1e9 for name, seconds in tried.items()}
        self.rows.append({"what": what, "bytes": size, "default": default, "best": best, "seconds": tried, "GB_s": rate})
        print(f"{what:<28} default {rate[default]:8.2f} GB/s   best {rate[best]:8.2f} GB/s ({best})", flush=True)

    def state(self, tensors, bytes_each):
        count = bytes_each // self.scale // 2
        generator = torch.Generator(self.device).manual_seed(4)
        return {f"layers.{t:05d}.weight": torch.randn(count, generator=generator, device=self.device, dtype=torch.bfloat16)
                for t in range(tensors)}

    def fresh(self):
        shutil.rmtree(self.root / "ckpt", ignore_errors=True)
        return self.root / "ckpt"

    def writer(self, **setting):
        """Returns a writer to a directory from which the last checkpoint was removed, before the clock
        starts."""
        return FileSystemWriter(self.fresh(), **setting)

    def save_and_load(self, name, tensors, bytes_each):
        state = self.state(tensors, bytes_each)
        size = sum(tensor.nbytes for tensor in state.values())

        def save(writer):
            dcp.save(state, storage_writer=writer, no_dist=True)

        settings = {"as it comes": {}, "no sync": {"sync_files": False}}
        for threads in (2, 8):
            settings[f"no sync, {threads} threads"] = {"sync_files": False, "thread_count": threads}
        self.add(f"dcp.save {name}", size, {words: median_of(save, lambda s=s: self.writer(**s))
                                            for words, s in settings.items()})

        def blocked(writer, **setting):
            """Returns the seconds that pass until the job may continue."""
            begin = time.perf_counter()
            done = dcp.async_save(state, storage_writer=writer, **setting)
            seconds = time.perf_counter() - begin
            done.result()
            return seconds

        ways = {"as it comes": {}}
        try:
            from torch.distributed.checkpoint.staging import BlockingAsyncStager
            ways["staging kept"] = {"async_stager": BlockingAsyncStager(cache_staged_state_dict=True)}
        except ImportError:
            pass
        self.add(f"dcp.async_save {name}", size, {
            words: median_of(lambda writer, w=w: blocked(writer, **w), lambda: self.writer(sync_files=False))
            for words, w in ways.items()})

        save(self.writer())
        target = {key: torch.zeros_like(tensor) for key, tensor in state.items()}

        def load(_):
            dcp.load(target, checkpoint_id=self.root / "ckpt", no_dist=True)
            self.synchronize()

        self.add(f"dcp.load {name}", size, {"as it comes": median_of(load)})
        if not all(torch.equal(target[key], state[key]) for key in state):
            raise RuntimeError("torch loaded something else than was saved")

    def compare(self):
        count = 2048 * MIB // self.scale // 4
        a = torch.randn(count, device=self.device)
        b = a.clone()

        def equal(_):
            assert torch.equal(a, b)

        def largest(_):
            assert (a - b).abs().max().item() == 0

        self.add("torch.equal", 2 * a.nbytes, {"as it comes": median_of(equal)})
        self.add("(a - b).abs().max()", 2 * a.nbytes, {"as it comes": median_of(largest)})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--scale", type=int, default=1)
    args = parser.parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        print("no GPU: torch sees none")
        return 3
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    bench = Bench(args.device, args.scale)
    try:
        bench.compare()
        bench.save_and_load("8 x 128 MiB", 8, 128 * MIB)
        bench.save_and_load("10,000 x 64 KiB", 10_000, MIB // 16)
    finally:
        shutil.rmtree(bench.root, ignore_errors=True)
        dist.destroy_process_group()
    name = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    pathlib.Path(args.out).write_text(json.dumps({"torch": torch.__version__, "device": name, "scale": args.scale, "rows": bench.rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
