"""Megatron-Core: what it saves ours loads, and the other way round, under other layouts."""
import contextlib
import copy
import importlib.util
import inspect
import itertools
import logging
import os
import pathlib
import queue
import subprocess
import sys
import tempfile
import unittest

import torch
import torch.distributed as dist

import ranks
from states import differences, numbers

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "reprise"
HAVE_MEGATRON = importlib.util.find_spec("megatron") is not None
if HAVE_MEGATRON:
    logging.getLogger("megatron").setLevel(logging.CRITICAL)
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing.dict_utils import dict_list_map_outplace
    from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor
    from megatron.core.dist_checkpointing.strategies import filesystem_async
    from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue
    from megatron.core.dist_checkpointing.strategies.fully_parallel import (
        FullyParallelLoadStrategyWrapper,
        FullyParallelSaveStrategyWrapper,
    )

    import reprise.megatron as rm
    from megatron_states import Layout, Rank


def run(size, function, *arguments):
    """Ranks that are forked, since an import of Megatron-Core takes seconds."""
    return ranks.run(size, function, *arguments, method="fork")


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
    for name in saves:
        SAVES[name](Rank(layout, rank).state(), os.path.join(folder, name))
    return sorted(os.listdir(os.path.join(folder, saves[0])))


def loaded(rank, size, folder, layout, saves, loads):
    """Returns where what was loaded differs from what was saved."""
    found = []
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


@unittest.skipUnless(HAVE_MEGATRON, "megatron-core is not installed")
class Layouts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def assert_same(self, found):
        self.assertEqual([one for of_rank in found for one in of_rank], [])

    def test_both_ways_on_two_ranks(self):
        run(2, saved, self.folder, Layout(tp=2), ["ours", "stock"])
        if PROGRAM.exists():
            ours, stock = (os.path.join(self.folder, name) for name in ("ours", "stock"))
            for words in (["verify", ours], ["diff", ours, stock]):
                said = subprocess.run([PROGRAM, *words], text=True, capture_output=True)
                self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assert_same(run(2, loaded, self.folder, Layout(dp=2, ep=2), ["stock"], ["ours"]))
        self.assert_same(run(2, loaded, self.folder, Layout(pp=2), ["ours"], ["stock"]))

    def test_both_ways_under_the_same_and_other_layouts(self):
        saves, loads = list(SAVES), list(LOADS)
        names = run(4, saved, self.folder, Layout(tp=2, pp=2), saves)[0]
        self.assertEqual(names[:2] + names[-2:], [".metadata", "__0_0.distcp", "common.pt", "metadata.json"])
        self.assert_same(run(4, loaded, self.folder, Layout(tp=2, pp=2), saves, loads))
        self.assert_same(run(2, loaded, self.folder, Layout(dp=2, ep=2), saves, ["ours", "strategy"]))
        self.assert_same(run(1, loaded, self.folder, Layout(), ["ours", "strategy"], ["stock"]))


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
    assert one.data.tolist() == [1, 1], "a load that failed has changed a tensor"
    rm.save({"w": ShardedTensor.from_rank_offsets("w", torch.ones(3), replica_id=rank)}, folder)
    note(rm.load, {"w": ShardedTensor.from_rank_offsets("w", torch.ones(2), replica_id=rank)}, folder)
    note(rm.load, {"w": ShardedTensor.from_rank_offsets("w", torch.ones(3).half(), replica_id=rank)}, folder)
    note(rm.load, {"w": ShardedTensor.from_rank_offsets("w", torch.ones(3), replica_id=rank), "v": 1}, folder)
    return said


def iterations(rank, size, folder):
    """Saves three iterations in each way that runs in the background, and returns what is there."""
    calls = AsyncCallsQueue()
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


@unittest.skipUnless(HAVE_MEGATRON, "megatron-core is not installed")
class Calls(unittest.TestCase):
    def run_ranks(self, size, function, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            return run(size, function, folder, *arguments)

    def test_strictness_means_what_it_means_there(self):
        for of_rank in self.run_ranks(2, strict_values):
            for strict, keys, theirs, ours in of_rank:
                with self.subTest(strict=strict, keys=keys):
                    self.assertEqual(theirs[0], ours[0])
                    if ours[0] == "raises":
                        self.assertEqual(ours[1], "reprise")
                    else:
                        self.assertEqual(theirs, ours)

    def test_mistakes_have_the_same_name_on_all_ranks_and_leave_things_alone(self):
        common = ["MULTI_WRITER", "NO_WRITER", "NOT_FOUND", "SHAPE_DRIFT", "DTYPE_DRIFT", "nothing"]
        first, second = self.run_ranks(2, refusals)
        self.assertEqual(first, ["CheckpointingException", *common])
        self.assertEqual(second, ["PEER_FAILED", *common])

    def test_iterations_have_a_tracker_and_the_newest_whole_one_is_loaded(self):
        for found in self.run_ranks(2, iterations):
            names = ["iter_0000002", "iter_0000003", "latest_checkpointed_iteration.txt"]
            self.assertEqual(found, (names, "3", 3))

    def test_strategies_within_the_wrappers_that_share_the_work(self):
        self.assertEqual(self.run_ranks(2, in_parallel, Layout(dp=2, ep=2)), [(2, [])] * 2)


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
    import job

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


@unittest.skipUnless(HAVE_MEGATRON, "megatron-core is not installed")
class Models(unittest.TestCase):
    def test_gpt_and_its_optimizers_both_ways(self):
        import job  # noqa: F401  before the ranks are forked

        for layout, size, options in (
            ({"tp": 2, "pp": 2}, 4, {}),
            ({"tp": 2, "dp": 2}, 4, {"optimizer": "dp_reshardable"}),
            ({"dp": 2, "ep": 2}, 2, {"model": "moe"}),
        ):
            with self.subTest(layout=layout), tempfile.TemporaryDirectory() as folder:
                self.assertEqual(run(size, trained, folder, layout, options), [[]] * size)


@unittest.skipUnless(HAVE_MEGATRON, "megatron-core is not installed")
class Example(unittest.TestCase):
    def test_goes_on_at_another_number_of_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            for size, last in ((2, 25), (4, 40)):
                command = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone"]
                command += [f"--nproc-per-node={size}", str(ROOT / "examples/python/megatron_core.py"), folder, str(last)]
                ran = subprocess.run(command, text=True, capture_output=True, timeout=300)
                self.assertEqual((ran.stdout, ran.returncode), (f"iteration {last}: {last}\n", 0), ran.stderr)
            self.assertEqual(pathlib.Path(folder, "latest_checkpointed_iteration.txt").read_text(), "40")


if __name__ == "__main__":
    unittest.main()
