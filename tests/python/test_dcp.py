"""The engine under torch's own planners: a writer and a reader of storage, and torch's defaults replaced."""
import contextlib
import inspect
import io
import os
import tempfile
import unittest
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.planner import LoadPlan

import ranks
import reprise
import reprise.torch as rt
from states import Counter, differences, every_kind, numbers

try:
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
except ImportError:  # before torch 2.5
    from torch.distributed._tensor import Replicate, Shard, distribute_tensor, init_device_mesh

warnings.filterwarnings("ignore")
OLD = torch.__version__.startswith("2.4.")
Stock = (dcp.FileSystemWriter, dcp.FileSystemReader)


def failures(call, *arguments, **options):
    """Returns the error of each rank."""
    try:
        call(*arguments, **options)
    except CheckpointException as error:
        return {rank: failure for rank, (failure, _) in error.failures.items()}
    raise AssertionError("it did not fail")


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name="run"):
        return os.path.join(self.folder, name)

    def assert_same(self, left, right):
        self.assertEqual(differences(left, right), [])

    def assert_failed(self, code, call, *arguments, **options):
        error = failures(call, *arguments, **options)[0]
        self.assertIsInstance(error, reprise.Error)
        self.assertEqual(error.code, code, error)
        return error


def staged(seed):
    """What torch stages right; it forgets that a view is conjugate or negative."""
    state = every_kind(seed)
    del state["views"]["conjugate"], state["views"]["negative"]
    return state


class BitForBit(Case):
    def test_writer_to_torch(self):
        writer = rt.Writer(self.path(), step=3)
        dcp.save(every_kind(1), storage_writer=writer)
        self.assertEqual(writer.result.path, self.path("run/step-3"))
        loaded = every_kind(2)
        dcp.load(loaded, checkpoint_id=writer.result.path)
        self.assert_same(loaded, every_kind(1))

    def test_torch_to_reader(self):
        dcp.save(every_kind(1), checkpoint_id=self.path())
        loaded = every_kind(2)
        dcp.load(loaded, storage_reader=rt.Reader(self.path()))
        self.assert_same(loaded, every_kind(1))

    def test_writer_to_reader_and_to_load(self):
        state = {"all": every_kind(1), "counter": Counter(7)}
        dcp.save(state, storage_writer=rt.Writer(self.path(), step=1))
        for load in (rt.load, lambda state, path: dcp.load(state, storage_reader=rt.Reader(path))):
            counter = Counter(0)
            state = {"all": every_kind(2), "counter": counter}
            load(state, self.path())
            self.assert_same(state["all"], every_kind(1))
            self.assertEqual((counter.count, counter.loads), (7, 1))

    def test_what_torch_keeps_of_it(self):
        """Metadata, and how torch's tools nest it, are those of torch's own writer."""
        returned = dcp.save(every_kind(1), storage_writer=rt.Writer(self.path()))
        dcp.save(every_kind(1), checkpoint_id=self.path("stock"))
        ours, theirs = (dcp.FileSystemReader(self.path(n)).read_metadata() for n in ("run", "stock"))
        self.assertEqual(ours.state_dict_metadata.keys(), theirs.state_dict_metadata.keys())
        self.assertEqual(ours.planner_data, theirs.planner_data)
        self.assertEqual(returned.storage_data.keys(), ours.storage_data.keys())
        nested = []
        for name in ("run", "stock"):
            dcp_to_torch_save(self.path(name), self.path(name + ".pt"))
            nested.append(torch.load(self.path(name + ".pt"), weights_only=False))
        self.assert_same(*nested)

    def test_types_are_converted_and_a_part_is_loaded(self):
        dcp.save({"a": numbers(1, 4, 3), "b": 1}, storage_writer=rt.Writer(self.path()))
        loaded = {"a": torch.zeros(3, 4, dtype=torch.float64).t()}
        dcp.load(loaded, storage_reader=rt.Reader(self.path()))
        self.assert_same(loaded["a"], numbers(1, 4, 3).double())

    def test_keys_without_nesting(self):
        state = {"a": {"b": 1}, "w": numbers(1, 3)}
        planner = DefaultSavePlanner(flatten_state_dict=False)
        dcp.save(state, storage_writer=rt.Writer(self.path()), planner=planner)
        for reader in (rt.Reader(self.path()), dcp.FileSystemReader(self.path())):
            loaded = {"a": None, "w": torch.zeros(3)}
            planner = DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
            dcp.load(loaded, storage_reader=reader, planner=planner)
            self.assert_same(loaded, state)

    def test_an_asynchronous_save(self):
        dcp.async_save(staged(1), storage_writer=rt.Writer(self.path(), step=1)).result()
        loaded = staged(2)
        dcp.load(loaded, storage_reader=rt.Reader(self.path()))
        self.assert_same(loaded, staged(1))


class Iterations(Case):
    def save(self, step, **options):
        dcp.save({"w": numbers(step, 1000)}, storage_writer=rt.Writer(self.path(), step=step, **options))

    def test_keep_leaves_the_newest_which_the_reader_finds(self):
        for step in range(4):
            self.save(step, keep=2)
        self.assertEqual(sorted(os.listdir(self.path())), ["step-2", "step-3"])
        for reader, step in ((rt.Reader(self.path()), 3), (rt.Reader(self.path(), step=2), 2)):
            loaded = {"w": torch.zeros(1000)}
            dcp.load(loaded, storage_reader=reader)
            self.assert_same(loaded["w"], numbers(step, 1000))

    def test_one_reader_follows_a_job(self):
        reader = rt.Reader(self.path())
        with contextlib.redirect_stderr(io.StringIO()):
            self.assert_failed("NOT_FOUND", dcp.load, {}, storage_reader=reader)
        for step in (1, 2):
            self.save(step)
            loaded = {"w": torch.zeros(1000)}
            dcp.load(loaded, storage_reader=reader)
            self.assert_same(loaded["w"], numbers(step, 1000))

    def test_a_plan_is_used_again(self):
        planned = []
        for step in (1, 2):
            writer = rt.Writer(self.path(), step=step, structure="mine")
            dcp.save({"w": torch.zeros(3)}, storage_writer=writer)
            planned.append(writer.result.planned)
        self.assertEqual(planned, ["fresh", "reused"])

    def test_a_damaged_file_is_an_error_with_its_place(self):
        self.save(1)
        self.save(2)
        file = self.path("run/step-2/__0_0.distcp")
        with open(file, "r+b") as out:
            out.seek(os.path.getsize(file) // 2)
            out.write(b"\xa5\x5a\xa5")
        load = {"w": torch.zeros(1000)}
        error = self.assert_failed("CHECKSUM", dcp.load, load, storage_reader=rt.Reader(self.path()))
        self.assertEqual((error.key, error.file), ("w", file))
        self.assertGreater(error.offset, 0)


class Resolves(DefaultSavePlanner):
    """A planner that resolves another value than it planned."""

    def __init__(self, value):
        super().__init__()
        self.value = value

    def resolve_data(self, item):
        return self.value


class Halved(DefaultSavePlanner):
    """A planner whose metadata is not what it planned."""

    def create_global_plan(self, all_plans):
        plans, metadata = super().create_global_plan(all_plans)
        metadata.state_dict_metadata["w"].size = torch.Size([4])
        return plans, metadata


class Refusals(Case):
    def test_metadata_that_is_not_what_was_stored(self):
        writer = rt.Writer(self.path())
        error = self.assert_failed("LAYOUT_MISMATCH", dcp.save, {"w": torch.ones(2)}, storage_writer=writer, planner=Halved())
        self.assertEqual(error.key, "w")
        self.assertFalse(os.path.exists(self.path()))

    def test_a_tensor_that_is_not_what_was_planned(self):
        for other in (torch.ones(3), torch.ones(2).half()):
            planner = Resolves(other)
            error = self.assert_failed("LAYOUT_MISMATCH", dcp.save, {"w": torch.ones(2)}, storage_writer=rt.Writer(self.path()), planner=planner)
            self.assertEqual(error.key, "w")
            self.assertFalse(os.path.exists(self.path()))

    def test_what_can_not_be_stored_is_named(self):
        state = {"k": {"w": torch.ones(2, device="meta")}}
        error = self.assert_failed("UNSUPPORTED", dcp.save, state, storage_writer=rt.Writer(self.path()))
        self.assertEqual(error.key, "k.w")

    def test_options(self):
        for wrong in ({"keep": 0}, {"checksums": "md5"}):
            with self.assertRaises(ValueError):
                rt.Writer(self.path(), step=1, **wrong)
        dcp.save({"n": 1}, storage_writer=rt.Writer(self.path()))
        self.assert_failed("USAGE", dcp.save, {"n": 2}, storage_writer=rt.Writer(self.path(), replace=False))

    def test_a_directory_that_holds_something_else(self):
        """A checkpoint takes the place of its whole directory."""
        save = lambda: dcp.save({"n": 1}, storage_writer=rt.Writer(self.path()))
        os.makedirs(self.path("run/logs"))
        self.assert_failed("USAGE", save)
        with self.assertRaises(reprise.Error) as caught:
            rt.save({"n": 1}, self.path())
        self.assertIn("'logs'", caught.exception.message)
        rt.save({"n": 1}, self.path(), step=1)
        os.rmdir(self.path("run/logs"))
        self.assert_failed("USAGE", save)  # would remove iterations
        self.assertEqual(os.listdir(self.path()), ["step-1"])

    def test_ranks_that_save_each_for_itself(self):
        with self.assertRaises(reprise.Error) as caught:
            rt.Writer(self.path()).set_up_storage_writer(True, rank=0, use_collectives=False)
        self.assertEqual(caught.exception.code, "UNSUPPORTED")

    def test_ranks_that_found_different_iterations(self):
        plans = [LoadPlan([], storage_data=(rank, f"run/step-{rank}")) for rank in range(2)]
        with self.assertRaises(reprise.Error) as caught:
            rt.Reader(self.path()).prepare_global_plan(plans)
        self.assertEqual((caught.exception.code, caught.exception.file), ("STALE_METADATA", "run/step-1"))

    def test_nothing_there(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assert_failed("NOT_FOUND", dcp.load, {"n": 0}, storage_reader=rt.Reader(self.path()))


class Installed(Case):
    def setUp(self):
        super().setUp()
        self.addCleanup(rt.uninstall)

    def install(self):
        with contextlib.redirect_stdout(io.StringIO()) as said:
            rt.install()
        self.assertEqual(said.getvalue().count("\n"), 1)

    def is_verified(self, path):
        """True if a load of a checkpoint with a flipped bit fails: torch's own reader doesn't look."""
        file = os.path.join(path, "__0_0.distcp")
        with open(file, "rb") as read:
            at = read.read().index(numbers(1, 1000).numpy().tobytes()) + 100
        with open(file, "r+b") as out:
            out.seek(at)
            out.write(b"\xa5")
        try:
            dcp.load({"w": torch.zeros(1000)}, checkpoint_id=path)
            return False
        except CheckpointException as error:
            return error.failures[0][0].code == "CHECKSUM"

    def test_plain_calls_use_the_engine_until_they_don_t(self):
        state = {"w": numbers(1, 1000), "n": 1}
        self.install()
        dcp.save(state, checkpoint_id=self.path())
        loaded = {"w": torch.zeros(1000), "n": 0}
        dcp.load(loaded, checkpoint_id=self.path())
        self.assert_same(loaded, state)
        self.assertTrue(self.is_verified(self.path()))
        rt.uninstall()
        self.assertEqual((dcp.FileSystemWriter, dcp.FileSystemReader), Stock)
        dcp.save(state, checkpoint_id=self.path("stock"))
        self.assertFalse(self.is_verified(self.path("stock")))

    def test_programs_that_make_their_own(self):
        """As Accelerate and Lightning do, with torch's arguments."""
        self.install()
        writer = dcp.FileSystemWriter(path=self.path(), single_file_per_rank=True, thread_count=2)
        dcp.save(every_kind(1), storage_writer=writer)
        self.assertEqual(writer.result.path, self.path())
        loaded = every_kind(2)
        dcp.load(loaded, storage_reader=dcp.FileSystemReader(self.path()))
        self.assert_same(loaded, every_kind(1))
        with self.assertRaises(TypeError):
            dcp.FileSystemWriter(self.path(), no_such_argument=1)

    def test_a_directory_that_a_program_has_made(self):
        """And to which it adds a file of its own after each save, as Lightning does."""
        self.install()
        os.mkdir(self.path())
        for n in (1, 2):
            dcp.save({"n": n}, checkpoint_id=self.path())
            torch.save({}, self.path("run/meta.pt"))
        loaded = {"n": 0}
        dcp.load(loaded, checkpoint_id=self.path())
        self.assertEqual(loaded, {"n": 2})

    @unittest.skipIf(OLD, "torch 2.4 has none")
    def test_an_extension_is_refused(self):
        self.install()
        with self.assertRaises(reprise.Error):
            dcp.FileSystemReader(self.path(), _extension_registry=object())


def sharded(seed, mesh):
    """Shards that two ranks can't share evenly, copies, and values."""
    return {
        "rows": distribute_tensor(numbers(seed, 5, 6), mesh, [Shard(0)]),
        "columns": distribute_tensor(numbers(seed + 1, 4, 7), mesh, [Shard(1)]),
        "one": distribute_tensor(numbers(seed + 2, 1, 3), mesh, [Shard(0)]),
        "copies": distribute_tensor(numbers(seed + 3, 4), mesh, [Replicate()]),
        "all": every_kind(seed),
    }


def both_ways(rank, size, folder):
    mesh, found = init_device_mesh("cpu", (size,)), []
    ours, stock = os.path.join(folder, "ours"), os.path.join(folder, "stock")
    for step in (1, 2):
        writer = rt.Writer(ours, step=step, keep=1)
        dcp.save(sharded(step, mesh), storage_writer=writer)
    found += [] if os.listdir(ours) == ["step-2"] and writer.result.planned == "reused" else ["keep"]
    dcp.save(sharded(1, mesh), checkpoint_id=stock)
    for name, seed, source in (
        ("writer to torch", 2, {"checkpoint_id": writer.result.path}),
        ("writer to reader", 2, {"storage_reader": rt.Reader(ours)}),
        ("torch to reader", 1, {"storage_reader": rt.Reader(stock)}),
    ):
        loaded = sharded(9, mesh)
        dcp.load(loaded, **source)
        found += differences(loaded, sharded(seed, mesh), name)
    metadata = dcp.FileSystemReader(writer.result.path).read_metadata()
    found += differences(metadata.planner_data, dcp.FileSystemReader(stock).read_metadata().planner_data)
    dcp.async_save({**sharded(3, mesh), "all": staged(3)}, storage_writer=rt.Writer(ours, step=3)).result()
    loaded = {**sharded(9, mesh), "all": staged(9)}
    rt.load(loaded, ours)
    found += differences(loaded, {**sharded(3, mesh), "all": staged(3)}, "async")
    return found


def parts_of_the_ranks(rank, size, folder):
    """A process group that is not all ranks, and ranks that save by themselves."""
    found = []
    group = dist.new_group([0, 2])
    if rank != 1:
        path = os.path.join(folder, "group")
        dcp.save({"n": 1, "w": numbers(1, 4)}, storage_writer=rt.Writer(path), process_group=group)
        loaded = {"n": 0, "w": torch.zeros(4)}
        dcp.load(loaded, storage_reader=rt.Reader(path), process_group=group)
        found += differences(loaded, {"n": 1, "w": numbers(1, 4)})
    path = os.path.join(folder, f"alone{rank}")
    dcp.save({"n": rank}, storage_writer=rt.Writer(path), no_dist=True)
    loaded = {"n": -1}
    dcp.load(loaded, storage_reader=rt.Reader(path), no_dist=True)
    return found + differences(loaded, {"n": rank})


def each_for_itself(rank, size, folder):
    """What ranks saved without collectives, each with metadata of its own, is read by as many."""
    path = os.path.join(folder, "run")
    made = lambda seed: {"w": numbers(seed + rank, 4), "mine": {"rank": rank + seed}}
    dcp.save(made(1), storage_writer=Stock[0](path), use_collectives=False)
    dist.barrier()
    loaded = made(5)
    dcp.load(loaded, storage_reader=rt.Reader(path))
    return differences(loaded, made(1))


class Fails(DefaultSavePlanner):
    def resolve_data(self, item):
        if dist.get_rank() == 1:
            raise ValueError("mine")
        return super().resolve_data(item)


def one_fails(rank, size, folder):
    """All ranks learn of it, at once, and nothing is committed."""
    path, mesh = os.path.join(folder, "run"), init_device_mesh("cpu", (size,))
    state = {"w": distribute_tensor(numbers(1, 4), mesh, [Shard(0)])}
    found = failures(dcp.save, state, storage_writer=rt.Writer(path), planner=Fails())
    said = [(type(error).__name__, "mine" in str(error)) for _, error in sorted(found.items())]
    dcp.save(state, storage_writer=rt.Writer(path))
    return said, rt.load(state, path).loaded


class Ranks(Case):
    def test_shards_and_copies_both_ways(self):
        self.assertEqual(ranks.run(2, both_ways, self.folder), [[]] * 2)

    @unittest.skipIf(OLD, "torch 2.4 mistakes the ranks of a group, and has no no_dist")
    def test_a_group_of_the_ranks_and_each_alone(self):
        self.assertEqual(ranks.run(3, parts_of_the_ranks, self.folder), [[]] * 3)

    @unittest.skipUnless("use_collectives" in inspect.signature(dcp.save).parameters, "this torch can't")
    def test_ranks_that_saved_each_for_itself(self):
        self.assertEqual(ranks.run(2, each_for_itself, self.folder), [[]] * 2)
        error = self.assert_failed("UNSUPPORTED", dcp.load, {"w": torch.zeros(4)}, storage_reader=rt.Reader(self.path()))
        self.assertIn("each of 2 ranks", error.message)

    def test_a_rank_that_fails_is_an_error_of_all(self):
        said = [("Error", True), ("ValueError", True)], ("w",)
        self.assertEqual(ranks.run(2, one_fails, self.folder), [said] * 2)


if __name__ == "__main__":
    unittest.main()
