"""Several processes over gloo: what FSDP2 and AdamW hold, under other numbers of ranks and layouts."""
import os
import tempfile
import threading
import time
import unittest
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh

import ranks
import reprise
import reprise.torch as rt
from reprise.torch import fabric
from states import differences, every_kind, numbers

from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

try:
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
except ImportError:  # before torch 2.5
    from torch.distributed._tensor import DTensor, Replicate, Shard, distribute_tensor
try:
    from torch.distributed.fsdp import fully_shard
except ImportError:
    from torch.distributed._composable.fsdp import fully_shard


def trained(seed, mesh=None, hidden=5, tensor_parallel=None):
    """The state of a small model and its optimizer after two steps; sizes that two ranks can't share evenly."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(7, hidden), torch.nn.GELU(), torch.nn.Linear(hidden, 3))
    if tensor_parallel is not None:
        parallelize_module(model, tensor_parallel, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    if mesh is not None:
        for layer in (model[0], model[2], model):
            fully_shard(layer, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=seed / 100)
    for _ in range(2):
        model(torch.randn(4, 7)).square().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    state, optim = get_state_dict(model, optimizer)
    return {"model": state, "optim": optim, "step": seed}


def whole(value):
    """The state with full tensors. Collective."""
    if isinstance(value, dict):
        return {key: whole(one) for key, one in value.items()}
    return value.full_tensor() if isinstance(value, DTensor) else value


def mesh_of(size):
    return init_device_mesh("cpu", (size,))


def fsdp(rank, size, folder):
    """Every direction on these ranks. Returns what differs."""
    mesh, found = mesh_of(size), []
    path = os.path.join(folder, "ours")
    saved = rt.save(trained(1, mesh), path, step=1)
    state = trained(2, mesh)
    dcp.load(state, checkpoint_id=saved.path)
    found += differences(state, trained(1, mesh), "ours to torch")
    for once in (False, True):
        state = trained(3 + once, mesh)
        rt.load(state, path, read_once=once)
        found += differences(state, trained(1, mesh), f"ours to ours {once}")
    dcp.save(trained(5, mesh), checkpoint_id=os.path.join(folder, "stock"))
    state = trained(6, mesh)
    rt.load(state, os.path.join(folder, "stock"))
    found += differences(state, trained(5, mesh), "torch to ours")
    full = whole(trained(1, mesh))
    if rank == 0:
        torch.save(full, os.path.join(folder, "full.pt"))
    return found


def meshes(rank, size, folder):
    """Copies of shards (HSDP), and FSDP of tensor-parallel layers, on four ranks, from each to each."""
    copies = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    made = {
        "hsdp": lambda seed: trained(seed, copies, hidden=8),
        "tp": lambda seed: trained(seed, grid["dp"], hidden=8, tensor_parallel=grid["tp"]),
    }
    found = []
    for name, make in made.items():
        path = os.path.join(folder, name)
        saved = make(1)
        rt.save(saved, path)
        dcp.save(saved, checkpoint_id=path + "-stock")
        wanted = whole(saved)
        for other, load, source in (
            (name, dcp_load, path),
            (name, rt.load, path + "-stock"),
            ("hsdp", rt.load, path),
            ("tp", rt.load, path),
        ):
            state = made[other](2)
            load(state, source)
            found += differences(whole(state), wanted, f"{name} to {other} by {load.__module__}")
        if rank == 0:
            torch.save(wanted, path + ".pt")
    return found


def load_at(rank, size, folder):
    state = trained(7, mesh_of(size))
    rt.load(state, os.path.join(folder, "ours"))
    full = whole(state)
    return differences(full, torch.load(os.path.join(folder, "full.pt"), weights_only=False))


def begun(rank, size, folder):
    """Two saves in the background, with collectives of the job's own in between."""
    mesh, path = mesh_of(size), os.path.join(folder, "begun")
    for step in (1, 2):
        state = trained(step, mesh)
        saving = rt.begin_save(state, path, step=step, keep=1)
        dist.all_reduce(torch.ones(3))
        saving.before_update()
        while not saving.poll():
            dist.all_reduce(torch.ones(3))
        assert saving.finish().planned == ("fresh" if step == 1 else "reused")
    state = trained(9, mesh)
    assert rt.load(state, path).step == 2
    return differences(state, trained(2, mesh)) + (os.listdir(path) != ["step-2"]) * ["keep"]


def layouts(rank, size, folder):
    """DTensors under each placement, saved in one and loaded in another, with and against torch."""
    mesh, found = mesh_of(size), []
    two = init_device_mesh("cpu", (1, size), mesh_dim_names=("dp", "tp"))
    places = {
        "rows": (mesh, [Shard(0)]),
        "columns": (mesh, [Shard(1)]),
        "copies": (mesh, [Replicate()]),
        "two": (two, [Shard(1), Shard(0)]),
    }
    try:
        from torch.distributed.tensor.placement_types import _StridedShard

        places["strided"] = (two, [_StridedShard(0, split_factor=size), Shard(0)])
    except ImportError:
        pass

    def made(seed, name):
        full = {"even": numbers(seed, 8, 6), "odd": numbers(seed + 1, 5, 7), "few": numbers(seed + 2, 1, 1)}
        if name == "strided":
            del full["odd"], full["few"]  # torch's own can't split these
        on, placements = places[name]
        return {key: distribute_tensor(value, on, placements) for key, value in full.items()}

    for name in places:
        path = os.path.join(folder, name)
        rt.save(made(10, name), path)
        dcp.save(made(20, name), checkpoint_id=path + "-stock")
        for other in places:
            if name == "strided" != other:
                continue
            state = made(30, other)
            rt.load(state, path)
            found += differences(whole(state), whole({k: v for k, v in made(10, other).items()}), f"{name} to {other}")
        for load, seed, source in ((dcp_load, 10, path), (rt.load, 20, path + "-stock")):
            state = made(40, name)
            load(state, source)
            found += differences(state, made(seed, name), f"{name} {load.__name__}")
    return found


def dcp_load(state, path):
    dcp.load(state, checkpoint_id=path)


def shards(rank, size, folder):
    """A ShardedTensor, some ranks without a part, and every kind on all ranks."""
    from torch.distributed._shard.sharded_tensor import Shard as Piece, init_from_local_shards

    def made(seed):
        full = numbers(seed, 6, 4)
        rows = 6 // size
        piece = Piece.from_tensor_and_offsets(full[rank * rows : (rank + 1) * rows].clone(), [rank * rows, 0], rank)
        return {"sharded": init_from_local_shards([piece], 6, 4), "all": every_kind(seed)}

    found, path = [], os.path.join(folder, "shards")
    rt.save(made(1), path)
    dcp.save(made(2), checkpoint_id=path + "-stock")
    for load, seed, source in ((dcp_load, 1, path), (rt.load, 1, path), (rt.load, 2, path + "-stock")):
        state = made(3)
        load(state, source)
        wanted = made(seed)
        left, right = (s.pop("sharded").local_shards()[0].tensor for s in (state, wanted))
        found += differences(left, right, "sharded") + differences(state, wanted)
    return found


def part_of_a_mesh(rank, size, folder):
    """A tensor that only rank 0 holds, under a mesh of that rank alone."""
    from torch.distributed.device_mesh import DeviceMesh

    alone = DeviceMesh("cpu", [0])
    path = os.path.join(folder, "part")

    def made(seed):
        return {"w": DTensor.from_local(numbers(seed, 4), alone, [Replicate()], run_check=False), "n": 1}

    rt.save(made(1), path)
    state = made(2)
    rt.load(state, path)
    return differences(state, made(1)) if rank == 0 else []


def apart(rank, size, folder):
    """Mistakes of one rank that all hear of."""
    said = []
    path = os.path.join(folder, "apart")
    for state, options in (
        ({"f": (lambda: 1) if rank == 1 else 1}, {}),
        ({"w": torch.ones(2, device="meta" if rank == 1 else "cpu")}, {}),
        ({"n": 1}, {"step": rank}),
        ({"w": torch.ones(2 + rank)}, {}),
        ({"n": rank}, {"refuse_unequal": True}),
        ({"w": torch.full((2,), rank)}, {"refuse_unequal": True, "compare_tensors": True}),
    ):
        try:
            rt.save(state, path, **options)
            said.append("saved")
        except reprise.Error as error:
            said.append(error.code)
        except Exception as error:
            said.append(type(error).__name__)
    result = rt.save({"n": rank, "same": 1, "w": torch.full((2,), rank)}, path, compare_tensors=True)
    said += [(one.key, one.offset, one.writer, one.holders) for one in result.unequal]
    return said


def on_another_device(rank, size, folder):
    """The job makes its tensors elsewhere, but what the engine sends is in memory of the CPU."""
    path = os.path.join(folder, "device")
    torch.set_default_device("meta")
    rt.save({"w": torch.ones(3, device="cpu"), "rank": "any"}, path)
    state = {"w": torch.zeros(3, device="cpu"), "rank": None}
    rt.load(state, path)
    torch.set_default_device("cpu")
    return differences(state, {"w": torch.ones(3), "rank": "any"})


def in_two_threads(rank, size, folder):
    """A save under torch's planner beside one of ours; which of them is first differs between ranks."""
    def under_torch():
        time.sleep(0.5 * rank)
        dcp.save({"n": 1}, storage_writer=rt.Writer(os.path.join(folder, "torch")))

    thread = threading.Thread(target=under_torch)
    thread.start()
    time.sleep(0.5 * (1 - rank))
    rt.save({"n": 2}, os.path.join(folder, "ours"))
    thread.join()
    found = []
    for name in ("torch", "ours"):
        state = {"n": 0}
        rt.load(state, os.path.join(folder, name))
        found.append(state["n"])
    return found


def in_a_group(rank, size, folder):
    """Ranks 1 and 0 of three, as a group; rank 2 does something else."""
    group = dist.new_group([0, 1])
    if rank == 2:
        try:
            rt.save({"n": 1}, os.path.join(folder, "group"), process_group=group)
            return ["a rank that is not in the group took part"]
        except reprise.Error as error:
            return [] if (error.code, error.rank) == ("USAGE", 2) else [str(error)]
    path = os.path.join(folder, "group")
    rt.save({"n": 1, "w": torch.ones(2)}, path, process_group=group)
    state = {"n": 0, "w": torch.zeros(2)}
    rt.load(state, path, process_group=group, read_once=True)
    return differences(state, {"n": 1, "w": torch.ones(2)})


def gathered(rank, size, folder):
    """What members tell each other arrives, whether none, one, some or all of them tell something long."""
    channel = fabric.Channel("gathered", 0, range(size), False)
    over, found = fabric.TorchFabric(channel, 60.0, lambda: False), []
    fits = fabric._INLINE
    for lengths in ((0, 3, fits), (fits + 1, 0, 7), (0, fits, 300_000), (fits + 1, 5, 100_000), (90_000, 80_000, fits + 2)):
        told = [bytes([65 + one]) * length for one, length in enumerate(lengths)]
        if over.gather(range(size), told[rank]) != told:
            found.append(f"{lengths}")
        if rank != 0 and over.gather([2, 1], told[rank]) != [told[2], told[1]]:
            found.append(f"{lengths} of two, not in order")
    over.close()
    return found


def needs_gpu_before(*version):
    """FSDP2 came to the CPU bit by bit."""
    own = tuple(map(int, torch.__version__.split(".")[:2]))
    return unittest.skipIf(own < version, "this of FSDP2 needs a GPU in this torch")


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def assert_same(self, size, function):
        self.assertEqual(ranks.run(size, function, self.folder), [[]] * size)

    @needs_gpu_before(2, 5)
    def test_fsdp_of_two_ranks_and_then_of_one_and_three(self):
        self.assert_same(2, fsdp)
        full = torch.load(os.path.join(self.folder, "full.pt"), weights_only=False)
        for load in (dcp_load, rt.load):
            state = trained(8)
            load(state, os.path.join(self.folder, "ours/step-1"))
            self.assertEqual(differences(state, full), [])
        self.assert_same(3, load_at)

    @needs_gpu_before(2, 8)
    def test_hsdp_and_tensor_parallel_layers_of_4_ranks_and_then_of_1(self):
        self.assert_same(4, meshes)
        for name in ("hsdp", "tp"):
            state = trained(3, hidden=8)
            rt.load(state, os.path.join(self.folder, name))
            full = torch.load(os.path.join(self.folder, name + ".pt"), weights_only=False)
            self.assertEqual(differences(state, full), [])

    @needs_gpu_before(2, 5)
    def test_begun_saves_while_the_job_goes_on(self):
        self.assert_same(2, begun)

    def test_layouts_of_two_ranks(self):
        self.assert_same(2, layouts)

    def test_sharded_tensors_and_every_kind(self):
        self.assert_same(2, shards)

    def test_a_tensor_of_a_part_of_the_ranks(self):
        self.assert_same(2, part_of_a_mesh)

    def test_another_default_device(self):
        self.assert_same(2, on_another_device)

    def test_saves_in_two_threads(self):
        self.assertEqual(ranks.run(2, in_two_threads, self.folder), [[1, 2]] * 2)

    def test_a_group_of_the_ranks(self):
        self.assert_same(3, in_a_group)

    def test_messages_of_any_length(self):
        self.assert_same(3, gathered)

    def test_mistakes_of_one_rank(self):
        first, second = ranks.run(2, apart, self.folder)
        diverges = "COMMON_STATE_DIVERGES"
        self.assertEqual(first[:6], ["PEER_FAILED", "UNSUPPORTED", "USAGE", "SHAPE_DRIFT", diverges, diverges])
        self.assertEqual(second[1:], first[1:])
        self.assertNotEqual(second[0], "saved")
        self.assertEqual(sorted(first[6:]), [("n", (), 0, (1,)), ("w", (0,), 0, (1,))])


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    unittest.main()
