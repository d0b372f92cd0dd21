"""What ranks of a Megatron job do in the tests. Importing this changes torch, so it is for processes of their own."""
import contextlib
import copy
import inspect
import itertools
import logging
import os
import pathlib
import queue
import shutil
import time

import torch
import torch.distributed as dist

from megatron_states import Layout, Rank
from states import differences, numbers

import job  # the trainer in trainers/megatron, which megatron_states has put on the path
import reprise.megatron as rm
import reprise.torch as rt
from megatron.core import dist_checkpointing, fp8_utils
from megatron.core.dist_checkpointing.dict_utils import dict_list_map_outplace
from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor, ShardedTensorFactory
from megatron.core.dist_checkpointing.strategies import filesystem_async
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue
from megatron.core.dist_checkpointing.strategies.fully_parallel import (
    FullyParallelLoadStrategyWrapper,
    FullyParallelSaveStrategyWrapper,
)

logging.getLogger("megatron").setLevel(logging.CRITICAL)


def stock_save(state, path):
    # Otherwise Megatron-Core starts a process on each rank, which imports it once more.
    filesystem_async._results_queue = queue.Queue()
    if dist.get_rank() == 0:
        os.makedirs(path, exist_ok=True)
    dist.barrier()
    dist_checkpointing.save(state, path)


def save_under_strategy(state, path):
    if dist.get_rank() == 0:
        os.makedirs(path, exist_ok=True)
    dist.barrier()
    strategy = rm.SaveStrategy()
    dist_checkpointing.save(state, path, strategy)
    assert strategy.result is not None and strategy.result.path == path, "another strategy saved"


def load_under_strategy(state, path):
    strategy = rm.LoadStrategy()
    loaded = dist_checkpointing.load(state, path, strategy)
    assert strategy.loads == 1, "another strategy loaded"
    return loaded


SAVES = {"ours": lambda *a: rm.save(*a), "stock": stock_save, "strategy": save_under_strategy}
LOADS = {
    "ours": lambda *a: rm.load(*a),
    "stock": lambda *a: dist_checkpointing.load(*a),
    "strategy": load_under_strategy,
}


def saved(rank, size, folder, layout, saves):
    layout = Layout(**layout)
    for name in saves:
        SAVES[name](Rank(layout, rank).state(), os.path.join(folder, name))
    return sorted(os.listdir(os.path.join(folder, saves[0])))


def loaded(rank, size, folder, layout, saves, loads):
    """Returns where what was loaded differs from what was saved."""
    layout, found = Layout(**layout), []
    for save, load in itertools.product(saves, loads):
        place = Rank(layout, rank)
        wanted = place.blank()
        others = place.objects()
        if layout.size != 4:  # random states belong to their layout
            del wanted["rng_state"]
        memory = wanted["model"]["layers"][place.layers[0]]["norm"].data
        result = LOADS[load](wanted, os.path.join(folder, save))
        expected = place.expected()
        if layout.size != 4:
            del expected["rng_state"]
            expected["args"] = result["args"]
        else:
            assert others["rng_state"].data is not None
        norm = result["model"]["layers"][place.layers[0]]["norm"]
        if memory is not None and memory.data_ptr() != norm.data_ptr():
            found.append("a tensor was not filled in place")
        found += [f"{save} to {load}, {layout}: {one}" for one in differences(expected, result)]
    return found


def simple(rank, key="w", **more):
    """One tensor cut over two ranks, one object of each rank, and common state."""
    mine = numbers(5, 6, 3).chunk(2)[rank]
    return {
        key: ShardedTensor.from_rank_offsets(key, mine.clone(), (0, rank, 2), **more),
        "object": ShardedObject("object", {"rank": rank}, (2,), (rank,)),
        "iteration": 3,
    }


def outcome(load, *arguments, **options):
    """What a load returns of keys, or that it throws."""
    try:
        found = load(*arguments, **options)
    except BaseException as error:  # as CheckpointException of torch is
        return "raises", type(error).__module__.partition(".")[0]
    if isinstance(found, tuple):
        return "returns", sorted(found[0]), sorted(found[1]), sorted(found[2])
    return "loads", sorted(found)


def strict_values(rank, size, folder):
    """For each value of `strict`, and a request with a key too many, a key too few or both, what loads do."""
    rm.save({**simple(rank), **simple(rank, "x")}, folder)
    found = []
    for strict in dist_checkpointing.validation.StrictHandling:
        for keys in (["w", "x"], ["w"], ["w", "x", "y"], ["w", "y"]):
            each = []
            for load in (dist_checkpointing.load, rm.load):
                wanted = {}
                for key in keys:
                    wanted.update(simple(rank, key))
                each.append(outcome(load, wanted, folder, strict=strict))
                dist.barrier()
            found.append((strict.name, keys, *each))
    return found


def refusals(rank, size, folder):
    """What mistakes are called on this rank."""
    said = []

    def note(call, *arguments, **options):
        try:
            call(*arguments, **options)
            said.append("nothing")
        except Exception as error:
            said.append(getattr(error, "code", type(error).__name__))

    twice = {"w": ShardedTensor.from_rank_offsets("w", torch.ones(2), replica_id=0)}
    note(rm.save, twice, folder)
    note(rm.save, dict(twice), folder, validate_access_integrity=False)
    nobody = {"w": ShardedTensor.from_rank_offsets("w", torch.ones(2), replica_id=1)}
    note(rm.save, nobody, folder, validate_access_integrity=False)
    assert not os.path.exists(os.path.join(folder, ".metadata"))
    one = ShardedTensor.from_rank_offsets("w", torch.ones(2), replica_id=rank, allow_shape_mismatch=True)
    note(rm.load, {"w": one}, os.path.join(folder, "nowhere"))
    other = os.path.join(folder, "other")
    for step in (None, 1):  # one checkpoint, and a folder of them
        rt.save({"w": torch.zeros(2)}, other, step=step, step_names="iter_%07d")
        note(rm.load, {"w": ShardedTensor.from_rank_offsets("w", one.data, replica_id=rank)}, other)
        shutil.rmtree(other, ignore_errors=True)
    said.append(rm.load({"w": one}, os.path.join(folder, "nowhere"), missing_ok=True))
    assert one.data.tolist() == [1, 1], "a load that failed has changed a tensor"
    rm.save({"w": ShardedTensor.from_rank_offsets("w", torch.ones(3), replica_id=rank)}, folder)
    note(rm.load, {"w": ShardedTensor.from_rank_offsets("w", torch.ones(2), replica_id=rank)}, folder)
    note(rm.load, {"w": ShardedTensor.from_rank_offsets("w", torch.ones(3).half(), replica_id=rank)}, folder)
    note(rm.load, {"w": ShardedTensor.from_rank_offsets("w", torch.ones(3), replica_id=rank), "v": 1}, folder)
    return said


class Wrapper(torch.Tensor):
    """A tensor without memory of its own, as those of Transformer Engine are."""

    @staticmethod
    def __new__(cls, content):
        return torch.Tensor._make_wrapper_subclass(cls, content.shape, dtype=content.dtype, device=content.device)

    def __init__(self, content):
        self.content = content

    def dequantize(self):
        return self.content * 2

    @classmethod
    def __torch_dispatch__(cls, function, types, arguments=(), options=None):
        bare = [one.content if isinstance(one, Wrapper) else one for one in arguments]
        found = function(*bare, **(options or {}))
        return cls(found) if isinstance(found, torch.Tensor) else found


def of_data(rank, data, key="w"):
    """A sharded tensor of float32, the same on all ranks, that holds other data."""
    one = ShardedTensor.from_rank_offsets(key, torch.ones(3), replica_id=rank)
    one.data = data
    return {key: one}


def wrong_data(rank, size, folder):
    """What data are called that are not as their sharded tensor says, and what they are afterwards."""
    said = []

    def note(call, data):
        try:
            said.append(call(of_data(rank, data), folder)["w"].tolist())
        except rm.Error as error:
            said.append((error.code, error.key))

    rm.save(of_data(rank, torch.ones(3)), folder)
    memory = torch.zeros(12, dtype=torch.bfloat16)
    note(rm.save, torch.ones(3).double())
    note(rm.load, memory[:3])
    assert not memory.any(), "a load has written beyond its tensor"
    note(rm.save, Wrapper(torch.ones(3)))
    note(rm.load, Wrapper(torch.ones(3)))
    note(rm.load, torch.nn.Parameter(torch.zeros(3)))
    # As where Transformer Engine is installed.
    fp8_utils.HAVE_TE_FP8_TENSOR_CLASS, fp8_utils.FP8_TENSOR_CLASS = True, Wrapper
    fp8_utils.is_te_min_version = lambda *_: True
    rm.save(of_data(rank, Wrapper(torch.ones(3))), folder)
    note(rm.load, torch.zeros(3))
    return said


def other_shapes(rank, size, folder):
    """Loads four rows into a tensor that has six, and into one that is not stored, in each way."""
    rm.save({"w": ShardedTensor.from_rank_offsets("w", torch.ones(2, 2), (0, rank, 2))}, folder)
    found = []
    for load in (dist_checkpointing.load, rm.load):
        for data in (True, False):
            wanted = {}
            for key in ("w", "v"):
                memory = torch.full((3, 2), 7.0)
                wanted[key] = ShardedTensor.from_rank_offsets(key, memory, (0, rank, 2), allow_shape_mismatch=True)
                wanted[key].data = memory if data else None
            absent = wanted["v"].data
            loaded, _, missing = load(wanted, folder, strict="return_all")
            rows = loaded["w"][:, 0].tolist()
            found.append((rows, sorted(loaded), missing, None if absent is None else absent.unique().tolist()))
            dist.barrier()
    return found


def failing(rank, size, folder):
    """What this rank gets, and whether that takes only seconds, if rank 1 fails while it prepares its state."""
    rt.configure(deadline_seconds=20)

    def fails(*_):
        if rank == 1:
            raise ValueError("as a model's own code might")
        return {}

    class Unpicklable:
        def __reduce__(self):
            raise ValueError("as a lock might")

    def built():
        return {**simple(rank), "f": ShardedTensorFactory("f", torch.ones(2), fails, lambda found: found)}

    found = []
    for call in (
        lambda: rm.save(built(), folder),
        lambda: rm.save(simple(rank), folder, preprocess_common_before_consistancy_check=fails),
        lambda: rm.save({**simple(rank), "common": Unpicklable()}, folder),
        lambda: rm.save(simple(rank), folder),
        lambda: rm.load(built(), folder),
        lambda: rm.load({"w": simple(rank)["w"]}, folder),
    ):
        began = time.monotonic()
        try:
            call()
            how = "done"
        except Exception as error:
            how = getattr(error, "code", type(error).__name__)
        found.append((how, time.monotonic() - began < 10))
    return found


def iterations(rank, size, folder):
    """Saves three iterations in each way that runs in the background, and returns what is there."""
    calls = AsyncCallsQueue()
    state = simple(rank)
    saving = rm.begin_save(state, folder, step=0, check_updates=True)
    state["w"].data.add_(1)
    try:
        saving.before_update()
        raise AssertionError("a change that came too early was not seen")
    except rm.Error as error:
        assert (error.code, error.key) == ("USAGE", "w"), error
    state = simple(rank)
    saving = rm.begin_save(state, folder, step=1, keep=2)
    saving.before_update()
    state["w"].data.zero_()  # from now on it may change
    saving.finish()
    request = rm.save(simple(rank), folder, step=2, keep=2, async_sharded_save=True)
    calls.schedule_async_request(request)
    calls.maybe_finalize_async_calls(blocking=True)
    rm.save({**simple(rank), "iteration": 30}, folder, step=3, keep=2)
    first = rm.load({"w": simple(rank)["w"]}, folder, step=2)
    assert torch.equal(first["w"], simple(rank)["w"].data)
    if rank == 0:
        path = pathlib.Path(folder, "iter_0000003", "common.pt")
        path.write_bytes(path.read_bytes()[:-40] + bytes(40))
    dist.barrier()
    loaded = rm.load({}, folder)
    names = sorted(name for name in os.listdir(folder) if name[0] != ".")
    return names, pathlib.Path(folder, "latest_checkpointed_iteration.txt").read_text(), loaded["iteration"]


def in_parallel(rank, size, folder, layout):
    """Under Megatron-Core's own wrappers, and asynchronously. Returns differences."""
    layout = Layout(**layout)
    path = pathlib.Path(folder, "iter_0000001")
    path.mkdir(exist_ok=True)
    strategy = rm.SaveStrategy()
    saves = FullyParallelSaveStrategyWrapper(strategy, dist.group.WORLD)
    later = {"async_strategy": "mcore"} if "async_strategy" in inspect.signature(dist_checkpointing.save).parameters else {}
    calls = AsyncCallsQueue()
    request = dist_checkpointing.save(Rank(layout, rank).state(), str(path), saves, async_sharded_save=True, **later)
    calls.schedule_async_request(request)
    calls.maybe_finalize_async_calls(blocking=True)
    strategy = rm.LoadStrategy()
    loads = FullyParallelLoadStrategyWrapper(strategy, dist.group.WORLD, exchange_algo="gather_object")
    loaded = dist_checkpointing.load(Rank(layout, rank).blank(holes=False), str(path), loads)
    return strategy.loads, differences(Rank(layout, rank).expected(), loaded)


class Unwitnessed:
    """Stands in for the witness of the trainer in trainers/megatron, and notes nothing."""

    seed, faults, checkpoints = 3, {}, "."

    def __init__(self, layout, rank, world, options):
        self.layout, self.rank, self.world, self.options = layout, rank, world, options

    def phase(self, *_):
        return contextlib.nullcontext()

    def __getattr__(self, name):
        return lambda *_, **__: None


def without_padding(value):
    """Turns arrays and tuples to lists. Leaves out what the distributed optimizer has between parameters, which
    Megatron-Core loads into memory without content."""
    if isinstance(value, dict):
        return {} if value.get("padding") else {key: without_padding(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_padding(one) for one in value]
    return value.tolist() if type(value).__module__ == "numpy" else value


def trained(rank, size, folder, layout, options):
    """Saves a GPT and its optimizer after two steps, in each way, and returns differences of what is loaded."""
    of_rank = job.Job(Unwitnessed(layout, rank, size, options))
    for _ in range(2):
        of_rank.train()
    one = of_rank.state(False, of_rank.machine.state_dict(None, "torch_dist"))
    for name in ("ours", "stock"):
        SAVES[name](dict_list_map_outplace(lambda value: value, one), os.path.join(folder, name))
    found = {}
    for save, load in itertools.product(("ours", "stock"), ("ours", "stock")):
        of_rank.begin_state()
        content = LOADS[load](of_rank.state(True, None), os.path.join(folder, save))
        found[save, load] = without_padding(copy.deepcopy(content))
    return [f"{ways}: {path}" for ways, one in found.items() for path in differences(found["stock", "stock"], one)]
