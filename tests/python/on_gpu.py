"""Checks of the Python package that need a GPU, and how long a training stands still beside torch's own saves.

    REPRISE_LIBRARY=lib/libreprise_c.so PYTHONPATH=python python3 tests/python/on_gpu.py [--out OUT.json]

Prints a line for each check and row. Ends with 1 if a check failed, and with 3 and "not run" without a GPU.
`--device cpu` runs what needs none, to try this file."""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import reprise
import reprise.torch as rt
from reprise.torch.digest import digests
from states import differences, every_kind, numbers

warnings.filterwarnings("ignore")
CHECKS = []
ALLOCATORS = ("expandable_segments:True", "backend:cudaMallocAsync")


def check(call):
    CHECKS.append(call)
    return call


def moved(value, device):
    """Returns the state with its tensors on a device, under their strides; values within tuples stay."""
    if isinstance(value, dict):
        return {key: moved(one, device) for key, one in value.items()}
    if isinstance(value, list):
        return [moved(one, device) for one in value]
    if not isinstance(value, torch.Tensor):
        return value
    copy = value.detach().to(device, copy=True, memory_format=torch.preserve_format)
    return torch.nn.Parameter(copy) if isinstance(value, torch.nn.Parameter) else copy


def same(left, right):
    found = differences(moved(left, "cpu"), moved(right, "cpu"))
    assert not found, found


def state_of(seed, device):
    """Every kind of tensor on the device, and a scalar that stays on the CPU, as an optimizer's step."""
    return {**moved(every_kind(seed), device), "on_cpu": numbers(seed + 50, 3)}


@check
def both_ways_with_torch(device, path):
    saved = rt.save(state_of(1, device), path, step=1)
    for load in (lambda state: dcp.load(state, checkpoint_id=saved.path), lambda state: rt.load(state, path)):
        for where in (device, "cpu"):
            loaded = state_of(2, where)
            load(loaded)
            same(loaded, state_of(1, device))
    dcp.save(state_of(3, device), checkpoint_id=path + "/step-2")
    loaded = state_of(4, device)
    rt.load(loaded, path)
    same(loaded, state_of(3, device))


@check
def digests_are_those_on_the_cpu(device, path):
    large = {"large": numbers(9, 3000, 5000), "turned": numbers(8, 300, 500).t()}
    found = digests({key: tensor.to(device) for key, tensor in large.items()})
    assert found == digests(large), found


@check
def views_of_one_tensor(device, path):
    """Every view is saved and loaded in place, and what lies between is left alone."""
    def made(seed):
        whole = numbers(seed, 64, 48).to(device)
        return whole, {"turned": whole[:16].t(), "apart": whole[16:32:2, ::3], "whole": whole[32:]}

    _, saved = made(1)
    rt.save(saved, path)
    whole, loaded = made(2)
    rt.load(loaded, path)
    same(loaded, saved)
    same({"between": whole[17:32:2]}, {"between": made(2)[0][17:32:2]})


@check
def under_the_planners_of_torch(device, path):
    dcp.save(state_of(1, device), storage_writer=rt.Writer(path, step=1))
    loaded = state_of(2, device)
    dcp.load(loaded, storage_reader=rt.Reader(path))
    same(loaded, state_of(1, device))
    future = dcp.async_save(state_of(3, device), storage_writer=rt.Writer(path, step=2))
    getattr(future, "upload_completion", future).result()
    dcp.load(loaded, storage_reader=rt.Reader(path))
    same(loaded, state_of(3, device))


@check
def in_order_with_the_stream(device, path):
    """Work that a save or a load has to wait for takes half a second on another stream than the default one."""
    if device == "cpu":
        return "not run: no streams"
    weights, stream = torch.zeros(3_000_000, device=device), torch.cuda.Stream(device)
    with torch.cuda.stream(stream):
        torch.cuda._sleep(1_000_000_000)
        weights.fill_(2)
        saving = rt.begin_save({"w": weights, "small": weights[:100]}, path, step=1)
        saving.before_update()
        weights.fill_(3)
        saving.finish()
        torch.cuda._sleep(1_000_000_000)
        weights.fill_(4)
        rt.load({"w": weights}, path)
        seen = weights.clone()
    stream.synchronize()
    assert torch.equal(seen, torch.full_like(seen, 2)), seen.unique()


@check
def beside_a_capture(device, path):
    """A save in flight does not disturb the capture of a graph; one on the captured stream is refused."""
    if device == "cpu":
        return "not run: no graphs"
    weights = torch.ones(20_000_000, device=device)
    rt.save({"w": weights}, path, step=1)
    graph, total = torch.cuda.CUDAGraph(), torch.zeros(1, device=device)
    saving, codes = rt.begin_save({"w": weights}, path, step=2), []
    with torch.cuda.graph(graph):
        total.add_(weights[:10].sum())
        saving.before_update()
        try:
            rt.save({"w": weights}, path, step=3)
        except reprise.Error as error:
            codes.append(error.code)
    saving.finish()
    graph.replay()
    assert codes == ["USAGE"] and total.item() == 10, (codes, total)


@check
def on_another_device(device, path):
    """The current device stays, tensors of another one are saved, and those of two are refused."""
    if device == "cpu" or torch.cuda.device_count() < 2:
        return "not run: it takes two GPUs"
    state = {"w": numbers(1, 1000).to("cuda:1")}
    rt.save(state, path)
    loaded = {"w": torch.zeros(1000, device="cuda:1")}
    rt.load(loaded, path)
    same(loaded, state)
    assert torch.cuda.current_device() == 0
    with contextlib.suppress(reprise.Error):
        rt.save({"a": torch.zeros(1, device="cuda:0"), "b": torch.zeros(1, device="cuda:1")}, path + "-2")
        raise AssertionError("two devices were saved")


@check
def a_sharded_job(device, path):
    """FSDP2 with AdamW on one rank, whose group has NCCL alone, goes on as if it had never stopped."""
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.fsdp import fully_shard

    def state_of_job(model, adam):
        names, moments = get_state_dict(model, adam)
        return {"model": names, "optim": moments}

    def trained(seed, steps, load=None, save=None):
        torch.manual_seed(seed)
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64)).to(device)
        fully_shard(model)
        adam = torch.optim.AdamW(model.parameters())
        if load is not None:
            state = state_of_job(model, adam)
            rt.load(state, path, step=load)
            set_state_dict(model, adam, model_state_dict=state["model"], optim_state_dict=state["optim"])
        for step in steps:
            torch.manual_seed(step)
            model(torch.randn(8, 64, device=device)).square().sum().backward()
            adam.step()
            adam.zero_grad()
            if step == save:
                rt.save(state_of_job(model, adam), path, step=step)
        return {name: value.to_local().clone() for name, value in model.state_dict().items()}

    alone = dict(rank=0, world_size=1, store=dist.HashStore())
    if device == "cpu":
        dist.init_process_group("gloo", **alone)
    else:
        dist.init_process_group("nccl", device_id=torch.device(device, 0), **alone)
    try:
        whole = trained(7, range(6), save=2)
        same(trained(8, range(3, 6), load=2), whole)
    finally:
        dist.destroy_process_group()


@check
def with_each_allocator_of_torch(device, path):
    if device == "cpu":
        return "not run: no allocator"
    for setting in ALLOCATORS:
        ran = subprocess.run(
            [sys.executable, __file__, "--only", "both_ways_with_torch", "--rows", "0"],
            env=dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=setting), text=True, capture_output=True, timeout=120,
        )
        assert ran.returncode == 0, f"{setting}: {ran.stdout[-2000:]} {ran.stderr[-2000:]}"


def rows(device, path, scale):
    """Yields how long calls take, in ms: the median of 5, and the first."""
    wait = torch.cuda.synchronize if device != "cpu" else lambda: None
    gloo = dict(backend="gloo", rank=0, world_size=1, store=dist.HashStore())
    for count, size in ((8, (128 << 20) // scale), (10_000 // scale, 64 << 10)):
        name = f"{count} x {size >> 10} KiB"
        state = {f"w{i}": torch.full((size // 2,), float(i), dtype=torch.bfloat16, device=device) for i in range(count)}
        turn = iter(range(1000))

        def ours():
            began = time.perf_counter()
            saving = rt.begin_save(state, path + "/ours", step=next(turn), keep=1)
            returned = time.perf_counter()
            saving.before_update()
            return returned - began, time.perf_counter() - began, saving.finish

        def torchs(**options):
            began = time.perf_counter()
            future = dcp.async_save(state, checkpoint_id=f"{path}/torch-{next(turn)}", **options)
            took = time.perf_counter() - began
            return took, took, getattr(future, "upload_completion", future).result

        def pinned():
            from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

            options = StagingOptions(use_pinned_memory=device != "cpu", use_shared_memory=False,
                                     use_async_staging=False, use_non_blocking_copy=device != "cpu")
            stager = DefaultStager(options)
            return lambda: torchs(async_stager=stager)

        for what, make in (("reprise begin_save", lambda: ours), ("dcp.async_save", lambda: torchs),
                           ("dcp.async_save, pinned memory kept", pinned)):
            try:
                dist.init_process_group(**{**gloo, "store": dist.HashStore()})
                call, times = make(), []
                for _ in range(6):
                    wait()
                    returned, copied, finish = call()
                    times.append((returned * 1e3, copied * 1e3))
                    finish()
                stalls = [statistics.median(time_[i] for time_ in times[1:]) for i in (0, 1)]
                yield {"state": name, "what": what, "until it returns": stalls[0], "until it may change": stalls[1],
                       "first": times[0][1]}
            except Exception as error:  # other releases of torch have other options
                yield {"state": name, "what": what, "not run": f"{type(error).__name__}: {error}"[:200]}
            finally:
                if dist.is_initialized():
                    dist.destroy_process_group()
        loaded = {key: torch.zeros_like(value) for key, value in state.items()}
        for what, load in (("reprise load", lambda: rt.load(loaded, path + "/ours")),
                           ("dcp.load", lambda: dcp.load(loaded, checkpoint_id=f"{path}/stock", no_dist=True))):
            dcp.save(state, checkpoint_id=f"{path}/stock", no_dist=True)
            times = []
            for _ in range(4):
                wait()
                began = time.perf_counter()
                load()
                wait()
                times.append((time.perf_counter() - began) * 1e3)
            same(loaded, state)
            yield {"state": name, "what": what, "ms": statistics.median(times[1:]), "first": times[0]}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda")
    options.add_argument("--only", help="name of a check")
    options.add_argument("--rows", type=int, default=1, help="what sizes are divided by; 0: no rows")
    options.add_argument("--out")
    asked = options.parse_args()
    if asked.device != "cpu" and not torch.cuda.is_available():
        print("not run: no GPU")
        return 3
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    found, failed = [], 0
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for one in CHECKS:
        if asked.only in (None, one.__name__):
            with tempfile.TemporaryDirectory(dir=place) as folder:
                began = time.perf_counter()
                try:
                    said = one(asked.device, folder + "/run") or "ok"
                except Exception as error:
                    said = f"failed: {type(error).__name__}: {error}"
                    failed += 1
            found.append({"check": one.__name__, "said": said, "seconds": time.perf_counter() - began})
            print(found[-1], flush=True)
    if asked.rows:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            for row in rows(asked.device, folder, asked.rows):
                found.append(row)
                print(row, flush=True)
    if asked.out:
        name = torch.cuda.get_device_name() if asked.device != "cpu" else "cpu"
        with open(asked.out, "w") as out:
            json.dump({"torch": torch.__version__, "reprise": reprise.__version__, "device": name, "found": found}, out, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
