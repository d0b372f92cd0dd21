"""Cases of what torch writes, in addition to the fixtures: functions save(path, rank) -> {flat key: whole tensor} as in make_fixtures.py."""
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.default_planner import DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import FileSystemWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

import make_fixtures
from make_fixtures import arange, flat, full_tensors, have

CASES = {}


def case(ranks):
    def register(save):
        CASES[save.__name__] = (save, ranks)
        return save
    return register


def patterned(shape, dtype):
    """Returns a tensor with every bit pattern of a small dtype, or with a variety of bytes for a large one."""
    count = 1
    for n in shape:
        count *= n
    size = torch.empty(0, dtype=dtype).element_size()
    if dtype == torch.bool:
        return (torch.arange(count) % 3 == 0).reshape(shape)
    numbers = torch.arange(count * size, dtype=torch.int64)
    return ((numbers * 37 + numbers // 251) % 256).to(torch.uint8).view(dtype).reshape(shape)


def pieces(whole, mesh, placements):
    """Returns a DTensor made of views, because gloo can't send some dtypes."""
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset
    shape, offset = compute_local_shape_and_global_offset(whole.shape, mesh, placements)
    local = whole[tuple(slice(o, o + n) for o, n in zip(offset, shape))] if 0 not in shape else whole.new_empty(shape)
    return DTensor.from_local(local, mesh, placements, run_check=False, shape=whole.shape, stride=whole.stride())


@case(ranks=3)
def dtypes_over_three_ranks(path, rank):
    """Saves tensors of every dtype, cut unevenly along either dimension, and replicated ones."""
    mesh = init_device_mesh("cpu", (3,))
    whole = {}
    names = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "bool", "uint8", "int8", "int16", "int32", "int64",
             "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
    for name, dtype in have(*names).items():
        if name.startswith("uint") and name != "uint8" and torch.__version__ < "2.6":
            continue  # torch saves this dtype but can't load it
        for how, placement in (("rows", Shard(0)), ("columns", Shard(1)), ("all", Replicate())):
            whole[f"{how}.{name}"] = (patterned((17, 31), dtype), placement)
    dcp.save({k: pieces(v, mesh, [p]) for k, (v, p) in whole.items()}, checkpoint_id=path)
    return {k: v for k, (v, _) in whole.items()}


@case(ranks=2)
def more_than_eight_dimensions(path, rank):
    """Saves tensors of 9 to 12 dimensions, which Reprise counts as 8: cut along an early one, whole, and without elements."""
    mesh = init_device_mesh("cpu", (2,))
    shapes = {"nine": (2, 1, 3, 1, 1, 2, 1, 2, 3), "ten": (5, 1, 1, 2, 1, 1, 1, 1, 4, 3), "twelve": (2,) * 12,
              "none": (2, 1, 1, 1, 1, 1, 1, 3, 0, 2)}
    whole = {f"{how}.{name}": (patterned(shape, torch.float32), placement) for name, shape in shapes.items()
             for how, placement in (("cut", Shard(0)), ("all", Replicate()))}
    dcp.save({k: pieces(v, mesh, [p]) for k, (v, p) in whole.items()}, checkpoint_id=path)
    return {k: v for k, (v, _) in whole.items()}


@case(ranks=4)
def mesh_of_two_dimensions(path, rank):
    """Saves on a 2 x 2 mesh: shards twice on one dimension, shards on two dimensions, replicas, and values without dimensions."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("outer", "inner"))
    rows = {
        "rows.rows": (arange(7, 3), [Shard(0), Shard(0)]), "rows.columns": (arange(5, 7), [Shard(0), Shard(1)]),
        "columns.rows": (arange(5, 7), [Shard(1), Shard(0)]), "copies.rows": (arange(5, 2), [Replicate(), Shard(0)]),
        "columns.copies": (arange(2, 5), [Shard(1), Replicate()]), "deep": (arange(3, 5, 4, dtype=torch.bfloat16), [Shard(1), Shard(2)]),
        "one_row": (arange(1, 6), [Shard(0), Shard(1)]), "none": (torch.empty(0, 3), [Shard(0), Shard(1)]),
        "number": (torch.tensor(2.5), [Replicate(), Replicate()]),
    }
    dcp.save({k: pieces(v, mesh, p) for k, (v, p) in rows.items()}, checkpoint_id=path)
    return {k: v for k, (v, _) in rows.items()}


@case(ranks=4)
def part_of_the_ranks(path, rank):
    """Saves DTensors on meshes of the ranks 1 to 3 and of the ranks 0 and 2; the other ranks hold nothing."""
    from torch.distributed.device_mesh import DeviceMesh
    whole = {"three": arange(8, 3), "two": arange(3, 5)}
    state = {"everywhere": arange(4)}
    for key, ranks, placement in (("three", [1, 2, 3], Shard(0)), ("two", [0, 2], Shard(1))):
        mesh = DeviceMesh("cpu", ranks)  # made on all ranks, since this is a collective
        if rank in ranks:
            state[key] = pieces(whole[key], mesh, [placement])
    dcp.save(state, checkpoint_id=path)
    return whole | {"everywhere": arange(4)}


@case(ranks=2)
def large(path, rank):
    """Saves tensors of several blocks: 9 MB by rows, 12 MB by columns."""
    mesh = init_device_mesh("cpu", (2,))
    whole = {"rows": patterned((1501, 1500), torch.float32), "columns": patterned((2000, 3001), torch.bfloat16)}
    dcp.save({k: pieces(v, mesh, [Shard(d)]) for d, (k, v) in enumerate(whole.items())}, checkpoint_id=path)
    return whole


@case(ranks=4)
def threads_and_file_per_item(path, rank):
    """Saves on 4 ranks with 3 writer threads and one file per item."""
    mesh = init_device_mesh("cpu", (4,))
    whole = {f"w{i}": arange(5 + i, 3) for i in range(7)}
    state = {k: distribute_tensor(v, mesh, [Shard(0)]) for k, v in whole.items()} | {"steps": [1, 2, {"three": (3,)}]}
    dcp.save(state, storage_writer=FileSystemWriter(path, single_file_per_rank=False, thread_count=3, sync_files=False))
    return whole


@case(ranks=3)
def threads_one_file_each(path, rank):
    """Saves on 3 ranks with 4 writer threads and one file per thread."""
    mesh = init_device_mesh("cpu", (3,))
    whole = {f"w{i}": patterned((11, 3 + i), torch.float64) for i in range(9)}
    dcp.save({k: distribute_tensor(v, mesh, [Shard(0)]) for k, v in whole.items()}, storage_writer=FileSystemWriter(path, thread_count=4))
    return whole


@case(ranks=2)
def cached_plans(path, rank):
    """Saves three times with one planner, whose cache has the plans; values and objects change between the saves."""
    mesh = init_device_mesh("cpu", (2,))
    for step in range(3):
        whole = {"w": arange(5, 3, start=step), "v": arange(4, start=7 * step)}
        state = {k: distribute_tensor(v, mesh, [Shard(0)]) for k, v in whole.items()} | {"step": step, "log": list(range(step))}
        planner = DefaultSavePlanner(enable_plan_caching=True)  # the cache belongs to the planner's class
        dcp.save(state, checkpoint_id=path if step == 2 else f"{path}.before{step}", planner=planner)
    return whole


@case(ranks=2)
def cached_plans_of_another_shape(path, rank):
    """Saves with a cached plan, then again with one tensor of another shape and one more tensor: only these are planned again."""
    mesh = init_device_mesh("cpu", (2,))
    planner = lambda: DefaultSavePlanner(enable_plan_caching=True)
    dcp.save({"w": distribute_tensor(arange(4, 3), mesh, [Shard(0)]), "v": arange(3)}, checkpoint_id=f"{path}.before", planner=planner())
    whole = {"w": arange(7, 3), "v": arange(3), "new": arange(5)}
    state = {k: distribute_tensor(v, mesh, [Shard(0)]) for k, v in whole.items()}
    dcp.save(state, checkpoint_id=path, planner=planner())
    return whole


@case(ranks=3)
def async_three_ranks(path, rank):
    """Saves with async_save, and changes the state in place meanwhile."""
    mesh = init_device_mesh("cpu", (3,))
    whole = {"w": arange(8, 5), "plain": arange(3)}
    state = {"w": distribute_tensor(whole["w"], mesh, [Shard(0)]), "plain": arange(3), "step": 5}
    future = dcp.async_save(state, checkpoint_id=path)
    state["plain"].zero_()
    state["w"].to_local().fill_(-1)
    getattr(future, "upload_completion", future).result()
    dist.barrier()
    return whole


class Counter:
    """An object with the interface that torch calls Stateful."""

    def state_dict(self):
        return {"count": 3, "weights": arange(3, dtype=torch.float64), "history": [arange(2), {"at": torch.tensor(1)}]}

    def load_state_dict(self, state):
        raise NotImplementedError


@case(ranks=2)
def containers(path, rank):
    """Saves Stateful objects, dicts in lists in dicts, keys that are numbers, and unusual objects."""
    import argparse
    import collections
    import fractions
    import pathlib
    state = {
        "counter": Counter(), "tree": {"a": [{"b": arange(2)}, [arange(1), [arange(3), {"c": torch.tensor(True)}]]], "empty": {}, "none": None},
        "optimizer": {"state": {0: {"step": torch.tensor(3.0), "exp_avg": arange(2, 2)}, 1: {"step": torch.tensor(3.0)}},
                      "param_groups": [{"params": [0, 1], "lr": 0.1, "betas": (0.9, 0.999), "foreach": None}]},
        "ordered": collections.OrderedDict(x=arange(2), y=collections.OrderedDict(z=1)), "size": torch.Size([2, 3]), "dtype": torch.bfloat16,
        "names": argparse.Namespace(a=1, b=[2.5, float("nan"), -0.0]), "sets": ({1, 2, 3}, frozenset({"x"})), "complex": 1 + 2j,
        "bytes": bytes(range(256)), "tensors": (arange(2), [arange(3, dtype=torch.bfloat16)]), "path": pathlib.PurePosixPath("a/b"),
        "rng": torch.get_rng_state(), "big": 1 << 200, "device": torch.device("cpu"), "default": collections.defaultdict(int, a=1),
        "fraction": fractions.Fraction(1, 3),  # a name that Reprise does not interpret
    }
    dcp.save(state, checkpoint_id=path)
    return flat(state | {"counter": state["counter"].state_dict()})


@case(ranks=4)
def hsdp(path, rank):
    """Saves a model and its optimizer after fully_shard over 2 ranks with 2 replicas."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicas", "shards"))
    return make_fixtures.save_trained(path, *make_fixtures.trained_fsdp2(mesh, None))


@case(ranks=3)
def flattened_optimizer(path, rank):
    """Saves get_state_dict with flatten_optimizer_state_dict of FSDP2 on 3 ranks; only rank 0 writes files."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
    model, optimizer = make_fixtures.trained_fsdp2(init_device_mesh("cpu", (3,)), None)
    options = StateDictOptions(flatten_optimizer_state_dict=True)
    model_state, optimizer_state = get_state_dict(model, optimizer, options=options)
    dcp.save({"model": model_state, "optim": optimizer_state}, checkpoint_id=path)
    return full_tensors("model.", model_state) | full_tensors("optim.", optimizer_state)


@case(ranks=2)
def sharded_tensor(path, rank):
    """Saves torch's older ShardedTensor, as FSDP1 uses it."""
    from torch.distributed._shard.sharded_tensor import Shard as Piece, init_from_local_shards
    from torch.distributed._shard.metadata import ShardMetadata
    whole = arange(7, 3)
    begin, end = ((0, 5), (5, 7))[rank]
    metadata = ShardMetadata(shard_offsets=[begin, 0], shard_sizes=[end - begin, 3], placement=f"rank:{rank}/cpu")
    state = {"w": init_from_local_shards([Piece(whole[begin:end].clone(), metadata)], 7, 3), "b": arange(3)}
    dcp.save(state, checkpoint_id=path)
    return {"w": whole, "b": arange(3)}
