"""Cases of what Megatron-Core writes, in addition to the fixtures: functions save(path, rank) -> {key: whole tensor}. Also a job that continues elsewhere."""
import importlib.metadata
import inspect
import multiprocessing
import os
import pathlib

import torch
import torch.distributed as dist

import make_fixtures
import make_mcore_fixtures as fixtures  # replaces CUDA calls where there is no GPU
from cases_torch import patterned
from megatron.core import dist_checkpointing, parallel_state
from megatron.core.dist_checkpointing.mapping import LocalNonpersistentObject, ShardedObject, ShardedTensor, ShardedTensorFactory
from megatron.core.dist_checkpointing.strategies import filesystem_async
from megatron.core.dist_checkpointing.strategies.fully_parallel import FullyParallelSaveStrategyWrapper
from megatron.core.dist_checkpointing.strategies.torch import TorchDistSaveShardedStrategy

CASES = {}
VERSION = tuple(int(n) for n in importlib.metadata.version("megatron-core").split(".")[:2])
# Releases from 0.17 on would use the writer of another package unless they are told to use their own.
OWN_WRITER = {"async_strategy": "mcore"} if "async_strategy" in inspect.signature(dist_checkpointing.save).parameters else {}


def results_queue(mp_mode=None):
    """Replaces Megatron's own function, which starts a fresh Python in each rank and takes longer than everything else."""
    if filesystem_async._results_queue is None:
        filesystem_async._results_queue = multiprocessing.get_context("fork").Manager().Queue()
    return filesystem_async._results_queue


filesystem_async._get_write_results_queue = filesystem_async.get_write_results_queue = results_queue  # the name in 0.16, and since

def case(ranks):
    def register(save):
        CASES[save.__name__] = (save, ranks)
        return save
    return register


def uneven(key, whole, rank, ends, axis=0):
    """Returns a rank's part of a tensor that is cut along one axis at `ends`. Megatron has no grid for such cuts."""
    begin, end = ends[rank], ends[rank + 1]
    data = whole.narrow(axis, begin, end - begin).contiguous()
    offset = tuple(begin if d == axis else 0 for d in range(whole.dim()))
    return ShardedTensor(key, data, data.dtype, tuple(data.shape), tuple(whole.shape), offset, None)


def gated(key, whole, rank, ranks):
    """Returns a factory like that of Megatron's gated MLP: the local tensor has two halves, which are stored as two parts of one global tensor."""
    def build(key, data, replica_id, flattened_range):
        halves = data.chunk(2)
        return [ShardedTensor.from_rank_offsets(key, half, (0, rank + n * ranks, 2 * ranks), replica_id=replica_id) for n, half in enumerate(halves)]
    first, second = (half.chunk(ranks)[rank] for half in whole.chunk(2))
    return ShardedTensorFactory(key, torch.cat([first, second]), build, lambda parts: torch.cat(parts))


WHOLE = {
    "regular": patterned((6, 4), torch.float32), "both": patterned((3, 6), torch.bfloat16), "rows": patterned((11, 3), torch.float32),
    "columns": patterned((2, 3, 13), torch.bfloat16), "layers": patterned((3, 5, 2), torch.float32), "copies": patterned((4, 4), torch.float16),
    "gated": patterned((12, 3), torch.bfloat16), "number": torch.tensor(2.5), "eight_bits": patterned((6, 5), torch.float8_e4m3fn),
    "other_eight_bits": patterned((3, 5), torch.float8_e5m2), "counts": patterned((9,), torch.int64), "flags": patterned((7,), torch.bool),
}


def state_of(rank, step=0):
    """Returns a rank's state with all kinds of entries; the job has 3 ranks."""
    grid = lambda key, *offsets, replica=0: ShardedTensor.from_rank_offsets(
        key, WHOLE[key].chunk(3, offsets[0][0])[rank].contiguous() if offsets else WHOLE[key], *offsets, replica_id=replica)
    return {
        "model": {
            "a": grid("regular", (0, rank, 3)), "b": grid("both", (1, rank, 3)), "copies": grid("copies", replica=rank),
            "nested": [{"n": grid("number", replica=rank)}, grid("flags", replica=(0, rank))],
            "layer": ShardedTensor.from_rank_offsets("layers", WHOLE["layers"][rank].contiguous(), (0, rank, 3), prepend_axis_num=1),
            "rows": uneven("rows", WHOLE["rows"], rank, (0, 1, 7, 11)), "columns": uneven("columns", WHOLE["columns"], rank, (0, 6, 8, 13), 2),
            "gated": gated("gated", WHOLE["gated"], rank, 3), "eight": grid("eight_bits", (0, rank, 3)),
            "other": grid("other_eight_bits", (0, rank, 3)), "counts": uneven("counts", WHOLE["counts"], rank, (0, 4, 5, 9)),
            "one_each": ShardedObject("one_each", {"rank": rank, "t": torch.arange(rank + 1)}, (3,), (rank,)),
            "grid": ShardedObject("grid", [rank, (1.5, "x")], (1, 3), (0, rank)), "shared": ShardedObject("shared", {"step": step}, (1,), (0,), replica_id=rank),
        },
        "left_here": LocalNonpersistentObject([rank]), "iteration": step, "checkpoint_version": 3.0,
        "args": fixtures.arguments({"tp": 1, "pp": 1}), "nested": {"list": [1, {"x": (2.5, None)}], "tensor": torch.arange(3)},
    }


def strategy_of(**options):
    return TorchDistSaveShardedStrategy("torch_dist", 1, **options)


def folder_of(path, rank):
    if rank == 0:
        pathlib.Path(path).mkdir(parents=True)
    dist.barrier()
    return str(path)


@case(ranks=3)
def every_kind(path, rank):
    """Saves grids, uneven cuts, prepended axes, replicas, a factory, objects on grids and common.pt."""
    dist_checkpointing.save(state_of(rank), folder_of(path, rank), strategy_of(), content_metadata={"a": 1})
    return WHOLE


@case(ranks=3)
def fully_parallel_one_thread(path, rank):
    """Saves the same state; each replica is written by the rank that has the least to write, with one file per rank."""
    dist_checkpointing.save(state_of(rank), folder_of(path, rank), FullyParallelSaveStrategyWrapper(strategy_of(thread_count=1)))
    return WHOLE


@case(ranks=3)
def asynchronous(path, rank):
    """Saves the same state through an AsyncRequest."""
    request = dist_checkpointing.save(state_of(rank), folder_of(path, rank), strategy_of(), async_sharded_save=True, **OWN_WRITER)
    request.execute_sync()
    return WHOLE


@case(ranks=3)
def cached_structure(path, rank):
    """Saves four times with a strategy that caches plans and metadata; objects and the common state change between the saves."""
    strategy = strategy_of(cached_metadata=True)
    for step in range(4):
        dist_checkpointing.save(state_of(rank, step), folder_of(path if step == 3 else f"{path}.{step}", rank), strategy)
    return WHOLE


@case(ranks=2)
def common_state_object(path, rank):
    """Saves the common state as an object, where releases from 0.19 on store it (composed before), and one prefix in a file of its own."""
    common = {"iteration": 7, "args": fixtures.arguments({"tp": 2, "pp": 1})}
    state = {"w": ShardedTensor.from_rank_offsets("w", patterned((4, 3), torch.float32).chunk(2)[rank], (0, rank, 2))}
    state |= common if VERSION >= (0, 19) else {"common": ShardedObject("common_state", common, (1,), (0,), replica_id=rank)}
    dist_checkpointing.save(state, folder_of(path, rank), strategy_of(separation_hint="w"))
    if rank == 0 and VERSION < (0, 19):
        (pathlib.Path(path) / "common.pt").unlink()
    return {"w": patterned((4, 3), torch.float32)}


for _fixture in ("gpt_tp2_pp2", "gpt_dp2", "buckets"):
    def _in_one_folder(path, rank, name=f"{fixtures.PREFIX}_{_fixture}"):
        return make_fixtures.FIXTURES[name][0](path, rank)
    CASES[_fixture] = (_in_one_folder, make_fixtures.FIXTURES[f"{fixtures.PREFIX}_{_fixture}"][1])


def gpt_loaded(path, layout, rank):
    """Returns what a GPT with this layout and its optimizer hold after Megatron's own code loaded them."""
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # the common state holds Megatron's own enums
    fixtures.parallel_state.initialize_model_parallel(tensor_model_parallel_size=layout["tp"], pipeline_model_parallel_size=layout["pp"])
    model = fixtures.gpt(layout)
    model_state = model.sharded_state_dict()
    state = {"model": model_state, "optimizer": fixtures.adam_state(model, model_state)}
    assert parallel_state.model_parallel_is_initialized()
    return dist_checkpointing.load(state, str(path))


def every_kind_loaded(path, rank):
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    state = state_of(rank)
    for part in fixtures.nested_values(state):
        if isinstance(part, (ShardedTensor, ShardedTensorFactory)):
            part.data = torch.zeros_like(part.data)
    return dist_checkpointing.load(state, str(path))
