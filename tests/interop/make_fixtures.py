#!/usr/bin/env python3
"""Writes the small real checkpoints of tests/data/torch_<version>/ with the torch that runs this script.

    make_fixtures.py OUT [NAME...]      OUT/torch_<version>/NAME and OUT/torch_<version>/NAME.expected.json

Each fixture is one of the functions below; its decorator tells how many gloo processes run it. Afterwards
the reader of check_with_torch.py writes the expected file. If the function returns the tensors that were
passed to torch, they are compared with that file. Uses no GPU.
"""
import os
import pathlib
import platform
import random
import shutil
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.distributed.tensor
import torch.multiprocessing as mp
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemWriter

import check_with_torch
import gloo_ranks

if not hasattr(torch.distributed.tensor, "Shard"):  # true in torch 2.4
    import torch.distributed._tensor
    for name in ("DTensor", "Replicate", "Shard", "distribute_tensor"):
        setattr(torch.distributed.tensor, name, getattr(torch.distributed._tensor, name))

FIXTURES = {}


def fixture(ranks):
    """Registers a function save(path, rank) -> {flat key: whole tensor} or None, which `ranks` processes run."""
    def register(save):
        FIXTURES[save.__name__] = (save, ranks)
        return save
    return register


def arange(*shape, start=0, dtype=torch.float32):
    count = 1
    for n in shape:
        count *= n
    return torch.arange(start, start + count, dtype=torch.float64).to(dtype).reshape(shape)


def have(*names):
    """Returns the named dtypes that this torch has."""
    return {n: getattr(torch, n) for n in names if hasattr(torch, n)}


def flat(value, key=""):
    """Returns the tensors in dicts and lists by the keys that torch gives them. A tuple is one object for torch."""
    if isinstance(value, torch.Tensor):
        return {key: value}
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {}
    for name, part in parts:
        found |= flat(part, f"{key}.{name}" if key else str(name))
    return found


# ---------------------------------------------------------------------------------------------- fixtures of one process


@fixture(ranks=1)
def plain(path, rank):
    bits = torch.tensor([0x00, 0x80, 0x01, 0x38, 0x7F, 0xFF], dtype=torch.uint8)  # these bits include the NaNs of the fp8 types
    tensors = {
        "float32": torch.tensor([[0.0, -0.0, 1.5], [float("inf"), float("-inf"), float("nan")]]),
        "float64": torch.tensor([0.1, 1e300, 5e-324], dtype=torch.float64),
        "float16": torch.tensor([1.0, 65504.0, 6e-8], dtype=torch.float16),
        "bfloat16": torch.tensor([1.0, 3.140625, -1e30], dtype=torch.bfloat16),
        "bool": torch.tensor([[True, False], [False, True]]),
        "complex64": torch.tensor([1 + 2j, -3.5j], dtype=torch.complex64),
        "complex128": torch.tensor([1e-200 + 2j], dtype=torch.complex128),
        "zero_dim": torch.tensor(2.5),
        "zero_dim_int": torch.tensor(7),
        "empty": torch.empty(0),
        "empty_0_7": torch.empty(0, 7, dtype=torch.int64),
        "six_dims": torch.ones(1, 1, 1, 1, 1, 2),
        "transposed": arange(3, 4).t(),
        "permuted": arange(2, 3, 4).permute(2, 0, 1),
        "view_of_larger": arange(10, 10)[2:5, 3:7],
        "column": arange(6, 6)[:, 2],
        "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
        "every_second": arange(10)[::2],
    }
    for name in ("int8", "int16", "int32", "int64"):
        limits = torch.iinfo(getattr(torch, name))
        tensors[name] = torch.tensor([limits.min, -1, 0, limits.max], dtype=getattr(torch, name))
    for name, dtype in have("uint8", "uint16", "uint32", "uint64").items():
        largest = (1 << (8 * dtype.itemsize)) - 1
        if name != "uint8" and torch.__version__ < "2.6":
            continue  # torch saves this dtype but can't load it
        tensors[name] = torch.tensor([0, 1, largest], dtype=dtype)
    for name, dtype in have("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz").items():
        tensors[name] = bits.view(dtype).reshape(2, 3)
    nested = {
        "dict": {"inner": {"w": arange(2, 2)}, "7": arange(3)},
        "list": [arange(2), {"deep": arange(1, 2)}, [arange(1), 5]],
        "ключ/with spaces, (parens) and.dots": arange(2),
        "k" * 300: arange(1),
    }
    objects = {
        "int": 5, "negative": -70000, "large": 1 << 40, "huge": -(1 << 70), "float": 3e-4, "str": "текст", "none": None,
        "true": True, "bytes": b"\x00\xffraw", "tuple": (1, "two", 3.0, (None,)), "list": [1, 2, "x"],
        "empty_dict": {}, "empty_list": [], "empty_tuple": (), "long_str": "s" * 300, "dict": {"a": {"b": 1}},
        "tuple_with_tensor": (arange(2), 1),
    }
    torch.manual_seed(1)
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    state = {"tensors": tensors, "nested": nested, "objects": objects, "model": model.state_dict(), "optim": optimizer.state_dict()}
    dcp.save(state, checkpoint_id=path)
    return flat(state)


@fixture(ranks=1)
def plain_odd(path, rank):
    """Saves values that a careful reader may refuse but that torch reads."""
    z = torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex64)
    state = {
        "conj": z.conj(),
        "neg": torch._neg_view(arange(3)),
        "parameter": torch.nn.Parameter(arange(2, 3)),
        "channels_last": arange(2, 3, 2, 2).to(memory_format=torch.channels_last),
        "buffer": torch.nn.Buffer(arange(2)) if hasattr(torch.nn, "Buffer") else arange(2),
    }
    for name, dtype in have("float8_e8m0fnu", "complex32").items():
        raw = torch.tensor([0x00, 0x3C, 0x00, 0x40, 0x7F, 0x11, 0x00, 0xBC], dtype=torch.uint8)
        state[name] = raw.view(dtype)
    dcp.save(state, checkpoint_id=path)
    return {k: v.detach() for k, v in state.items()}


@fixture(ranks=1)
def file_per_item(path, rank):
    state = {"a": arange(3, 3), "b": {"c": arange(2, dtype=torch.bfloat16)}, "step": 4, "name": "x", "empty": torch.empty(0)}
    dcp.save(state, storage_writer=FileSystemWriter(path, single_file_per_rank=False))
    return flat(state)


# ---------------------------------------------------------------------------------------------- fixtures of several
# ranks


def sharded(whole, mesh, placements):
    from torch.distributed.tensor import distribute_tensor
    return distribute_tensor(whole, mesh, placements)


@fixture(ranks=4)
def fsdp2_uneven(path, rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    line = init_device_mesh("cpu", (4,))
    square = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
    rows = [
        ("line.rows7", arange(7, 3), line, [Shard(0)]),
        ("line.rows6", arange(6, 2), line, [Shard(0)]),
        ("line.rows3_one_rank_empty", arange(3, 2), line, [Shard(0)]),
        ("line.rows1_three_ranks_empty", arange(1, 2), line, [Shard(0)]),
        ("line.rows0", torch.empty(0, 5), line, [Shard(0)]),
        ("line.cols7", arange(2, 7), line, [Shard(1)]),
        ("line.cols5_bf16", arange(3, 5, dtype=torch.bfloat16), line, [Shard(1)]),
        ("line.replicated", arange(2, 2), line, [Replicate()]),
        ("square.rows_cols", arange(5, 7), square, [Shard(0), Shard(1)]),
        ("square.cols_rows", arange(5, 7), square, [Shard(1), Shard(0)]),
        ("square.hsdp", arange(5, 2), square, [Replicate(), Shard(0)]),
        ("square.rows_rows", arange(7, 2), square, [Shard(0), Shard(0)]),
        ("square.three_dims", arange(3, 5, 4, dtype=torch.int64), square, [Shard(2), Shard(0)]),
        ("square.replicated", arange(3), square, [Replicate(), Replicate()]),
    ]
    state = {"line": {}, "square": {}}
    for name, whole, mesh, placements in rows:
        group, leaf = name.split(".")
        state[group][leaf] = sharded(whole, mesh, placements)
    dcp.save(state, checkpoint_id=path)
    return {name: whole for name, whole, _, _ in rows}


def full_tensors(prefix, state):
    whole = {}
    for key, value in state.items():
        if isinstance(value, dict):
            whole |= full_tensors(f"{prefix}{key}.", value)
        elif isinstance(value, torch.Tensor):
            whole[f"{prefix}{key}"] = value.full_tensor() if hasattr(value, "full_tensor") else value
    return whole


def trained_fsdp2(mesh, tp_mesh):
    """Trains two linear layers and a norm with uneven rows under fully_shard; also with tensor parallelism if tp_mesh is given."""
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        from torch.distributed._composable.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    torch.manual_seed(7)
    model = torch.nn.ModuleDict({"up": torch.nn.Linear(5, 6), "down": torch.nn.Linear(6, 5), "norm": torch.nn.LayerNorm(5)})
    model.forward = lambda x: model["norm"](model["down"](torch.relu(model["up"](x))))
    if tp_mesh is not None:
        parallelize_module(model, tp_mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    for part in (model["up"], model["down"], model["norm"]):
        fully_shard(part, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    for _ in range(2):
        model(torch.ones(2, 5) * 0.3).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def save_trained(path, model, optimizer):
    from torch.distributed.checkpoint.state_dict import get_state_dict
    model_state, optimizer_state = get_state_dict(model, optimizer)
    dcp.save({"model": model_state, "optim": optimizer_state, "train_state": {"step": 2, "tokens": 1 << 33}}, checkpoint_id=path)
    return full_tensors("model.", model_state) | full_tensors("optim.state.", optimizer_state["state"])


@fixture(ranks=4)
def fsdp2_model(path, rank):
    from torch.distributed.device_mesh import init_device_mesh
    return save_trained(path, *trained_fsdp2(init_device_mesh("cpu", (4,)), None))


@fixture(ranks=4)
def fsdp2_tp_strided(path, rank):
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model, optimizer = trained_fsdp2(mesh["dp"], mesh["tp"])
    if rank == 0:
        print("placements of up.weight:", model["up"].weight.placements)
    return save_trained(path, model, optimizer)


def replicated_state(rank):
    return {"model": {"w": arange(4, 4), "b": arange(4)}, "step": 12, "same_everywhere": {"x": [1, 2]}, "big": arange(8, 8)}


@fixture(ranks=2)
def replicated(path, rank):
    state = replicated_state(rank)
    dcp.save(state, checkpoint_id=path)
    return flat(state)


@fixture(ranks=2)
def replicated_lowest_rank(path, rank):
    """Lets rank 0 write everything, so that the file of rank 1 has no bytes."""
    state = replicated_state(rank)
    dcp.save(state, checkpoint_id=path, planner=DefaultSavePlanner(dedup_save_to_lowest_rank=True))
    return flat(state)


@fixture(ranks=2)
def async_threads(path, rank):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    line = init_device_mesh("cpu", (2,))
    whole = {f"w{i}": arange(3 + i, 2 + i, start=100 * i) for i in range(5)}
    state = {"model": {k: sharded(v, line, [Shard(0)]) for k, v in whole.items()}, "step": 3, "lr": 0.1}
    dcp.async_save(state, storage_writer=FileSystemWriter(path, thread_count=2)).result()
    dist.barrier()
    return {f"model.{k}": v for k, v in whole.items()}


@fixture(ranks=2)
def nocollectives(path, rank):
    """Saves without rank coordination: each rank writes a metadata file, and nothing is deduplicated."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard
    whole = arange(5, 3)
    state = {"w": sharded(whole, init_device_mesh("cpu", (2,)), [Shard(0)]), "b": arange(3), "rank": rank, "step": 9}
    dcp.save(state, checkpoint_id=path, use_collectives=False)
    dist.barrier()
    return {"w": whole, "b": arange(3)}


def content(change=None):
    whole = {
        "layers.0.weight": arange(6, 4) / 8, "layers.0.bias": arange(6, dtype=torch.bfloat16),
        "layers.1.weight": arange(4, 6, start=50) / 8, "embedding": arange(9, 4, start=-10, dtype=torch.float64),
        "ids": arange(7, dtype=torch.int64), "scale": torch.tensor(0.5),
    }
    if change:
        key, index, value = change
        whole[key][index] = value
    return whole


def save_content(path, whole, mesh_shape, placements):
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", mesh_shape)
    usable = lambda t: [p if getattr(p, "dim", -1) < t.dim() else type(p)(0) for p in placements]
    state = {k: sharded(v, mesh, usable(v)) if v.dim() else v for k, v in whole.items()}
    dcp.save(state | {"step": 100, "args": {"lr": 0.1, "betas": (0.9, 0.95)}}, checkpoint_id=path)
    return whole


@fixture(ranks=4)
def same_content_a(path, rank):
    from torch.distributed.tensor import Shard
    return save_content(path, content(), (4,), [Shard(0)])


@fixture(ranks=4)
def same_content_b(path, rank):
    from torch.distributed.tensor import Shard
    return save_content(path, content(), (2, 2), [Shard(1), Shard(0)])


CHANGE = ("layers.1.weight", (2, 3), 8.125 + 2 ** -20)  # differs in one bit of the mantissa


@fixture(ranks=3)
def different_content(path, rank):
    from torch.distributed.tensor import Shard
    return save_content(path, content(CHANGE), (3,), [Shard(1)])


@fixture(ranks=2)
def sd_view_strided(path, rank):
    """Saves slices of a transposed matrix. They are stored with permuted strides, not row by row."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard
    line = init_device_mesh("cpu", (2,))
    whole = arange(4, 6).t()  # 6 x 4, strides (1, 6)
    cube = arange(2, 3, 4).permute(2, 1, 0)  # 4 x 3 x 2
    def mine(tensor, dim):
        return DTensor.from_local(tensor.chunk(2, dim)[rank], line, [Shard(dim)], run_check=False)
    dcp.save({"rows": mine(whole, 0), "cols": mine(whole, 1), "cube": mine(cube, 0), "plain": whole}, checkpoint_id=path)
    return {"rows": whole, "cols": whole, "cube": cube, "plain": whole}


# ---------------------------------------------------------------------------------------------- running the functions


def one_rank(rank, name, ranks, port, truth_file):
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    random.seed(0)
    save, _ = FIXTURES[name]
    if ranks > 1:
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE=str(ranks))
        dist.init_process_group("gloo", rank=rank, world_size=ranks)
    truth = save(name, rank)  # a relative path, so that .metadata names no directory of this machine
    if rank == 0 and truth:
        torch.save({k: v.detach().clone() for k, v in truth.items()}, truth_file)
    if ranks > 1:
        dist.barrier()
        dist.destroy_process_group()


def make(name, out, inner="."):
    """Saves the fixture, reads it back from its folder `inner`, and writes NAME.expected.json."""
    _, ranks = FIXTURES[name]
    shutil.rmtree(out / name, ignore_errors=True)
    truth_file = out / f"{name}.truth.tmp"
    with gloo_ranks.held_port() as held:
        arguments = (name, ranks, held.getsockname()[1], str(truth_file))
        if ranks > 1:
            mp.spawn(one_rank, args=arguments, nprocs=ranks)
        else:
            one_rank(0, *arguments)
    expected = {"torch": torch.__version__, "python": platform.python_version(), "ranks": ranks}
    expected |= check_with_torch.describe(out / name / inner)
    if truth_file.exists():
        for key, tensor in torch.load(truth_file).items():
            want = check_with_torch.describe_tensor(tensor, 0)
            got = expected["tensors"][key]
            assert all(got[f] == want[f] for f in ("dtype", "shape", "sha256")), (name, key, got, want)
        truth_file.unlink()
    if name == "different_content":
        key, index, new = CHANGE
        old = content()[key][index].item()
        expected["changed"] = {"key": key, "index": list(index), "old": old, "new": new}
    (out / f"{name}.expected.json").write_text(check_with_torch.as_json(expected) + "\n")
    print(f"{name}: {len(expected['tensors'])} tensors, {len(expected['objects'])} objects")


def main():
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[1]).resolve() / f"torch_{torch.__version__.split('+')[0]}"
    out.mkdir(parents=True, exist_ok=True)
    os.chdir(out)
    for name in sys.argv[2:] or FIXTURES:
        make(name, out)


if __name__ == "__main__":
    main()
