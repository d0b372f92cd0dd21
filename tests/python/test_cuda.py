"""State dicts with tensors on a CUDA device, over the model of CUDA."""
import os
import tempfile
import unittest
from unittest import mock

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import reprise
import reprise.torch as rt
from reprise.torch import job
from reprise.torch.digest import digests
import model
from ranks import run
from states import differences, numbers


def on_cpu(seed):
    return {
        "model": {
            "large": numbers(seed, 500, 400),
            "transposed": numbers(seed + 1, 40, 60).t(),
            "half": numbers(seed + 2, 7, 3, dtype=torch.bfloat16),
            "layers": [numbers(seed + 3 + i, 9, 5) for i in range(150)],
        },
        "step": torch.tensor(float(seed)),
        "lr": seed / 7,
    }


def placed(state, place):
    """Returns the state with `place` of each tensor of the model; the others stay on the CPU."""
    layers = [place(layer) for layer in state["model"]["layers"]]
    model = {key: place(value) for key, value in state["model"].items() if key != "layers"}
    return {**state, "model": {**model, "layers": layers}}


@unittest.skipUnless(os.path.exists(model.LIBRARY), "not run: the model of CUDA is not built")
class OnTheModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "run")
        self.enterContext(mock.patch.object(job, "_places", {}))
        self.device = model.Device()

    def enterContext(self, manager):  # unittest's own came with Python 3.11
        self.addCleanup(manager.__exit__, None, None, None)
        return manager.__enter__()

    def put(self, seed):
        return placed(on_cpu(seed), self.device.put)

    def assert_holds(self, state, expected):
        self.assertEqual(differences(placed(state, self.device.get), expected), [])

    def test_saves_and_loads_both_ways_with_torch_on_the_cpu(self):
        with model.opened():
            saved = rt.save(self.put(1), self.path, step=1)
            loaded = on_cpu(2)
            dcp.load(loaded, checkpoint_id=saved.path)
            self.assertEqual(differences(loaded, on_cpu(1)), [])
            dcp.save(on_cpu(3), checkpoint_id=self.path + "/step-2")
            loaded = self.put(4)
            self.assertEqual(rt.load(loaded, self.path).step, 2)
            self.assert_holds(loaded, on_cpu(3))

    def test_a_job_takes_the_device_when_its_first_tensor_comes(self):
        with model.opened() as current:
            saving = rt.begin_save(on_cpu(1), self.path, step=1)
            self.assertFalse(current.called)
            second = rt.begin_save(self.put(2), self.path, step=2)
            self.assertTrue(current.called)
            saving.finish()
            second.before_update()
            second.finish()
            loaded = on_cpu(3)
            rt.load(loaded, self.path, step=1)
            self.assertEqual(differences(loaded, on_cpu(1)), [])
            loaded = self.put(4)
            rt.load(loaded, self.path)
            self.assert_holds(loaded, on_cpu(2))

    def test_calls_are_in_order_with_the_stream_of_torch(self):
        stream = self.device.stream()
        weights = self.device.put(numbers(1, 300, 300))
        with model.opened(stream=stream):
            self.device.fill(weights, 2, stream)
            saving = rt.begin_save({"w": weights}, self.path, step=1)
            saving.before_update()
            self.device.fill(weights, 3, stream)
            saving.finish()
            for load in (rt.load, lambda state, path: dcp.load(state, storage_reader=rt.Reader(path))):
                self.device.fill(weights, 4, stream)
                load({"w": weights}, self.path)
                self.device.wait(stream)
                self.assertEqual(self.device.get(weights).view(torch.uint8).unique().tolist(), [2])

    def test_digests_are_those_of_the_same_tensors_on_the_cpu(self):
        stream = self.device.stream()
        weights = self.device.put(numbers(1, 300, 300))
        expected = {"cpu": numbers(2, 500, 400).t(), "w": torch.full((300, 1200), 2, dtype=torch.uint8).view(torch.float32)}
        with model.opened(stream=stream):
            self.device.fill(weights, 2, stream)
            found = digests({"cpu": expected["cpu"], "w": weights})
        self.assertEqual(found, digests(expected))

    def test_under_the_planners_of_torch(self):
        with model.opened():
            dcp.save(self.put(1), storage_writer=rt.Writer(self.path, step=1))
            job._places.clear()
            loaded = self.put(2)
            dcp.load(loaded, storage_reader=rt.Reader(self.path))
        self.assert_holds(loaded, on_cpu(1))

    def refused(self, state, call=rt.save):
        with self.assertRaises(reprise.Error) as caught:
            call(state, self.path)
        self.assertEqual(caught.exception.code, "UNSUPPORTED", caught.exception)
        return caught.exception

    def test_two_devices_are_refused_with_the_key(self):
        state = {"a": self.device.put(numbers(1, 3)), "b": {"c": self.device.put(numbers(2, 3), model.OnAnother)}}
        with model.opened():
            error = self.refused(state)
        self.assertEqual(error.key, "b.c")
        self.assertIn("cuda:1 beside others on cuda:0", error.message)

    def test_a_device_that_is_not_there_is_refused_and_the_job_goes_on(self):
        with model.opened():
            error = self.refused({"a": self.device.put(numbers(2, 3), model.OnAnother)})
            self.assertIn("CUDA device 1 can't be used: this process sees 1", error.message)
            rt.save({"a": numbers(1, 3)}, self.path)

    def test_a_file_that_is_not_there_is_named(self):
        with model.opened("/nowhere/x.so"):
            for call in (rt.save, rt.begin_save, rt.load):
                error = self.refused({"a": self.device.put(numbers(1, 3))}, call)
                self.assertIn("/nowhere/x.so", error.message)
                self.assertIn("put the tensors into memory of the CPU", error.message)

    def test_of_amd_are_refused(self):
        with model.opened(), mock.patch.object(torch.version, "hip", "6.2"):
            self.assertEqual(self.refused({"a": self.device.put(numbers(1, 3))}).key, "a")

    def test_on_some_ranks_alone(self):
        self.assertEqual(run(2, on_some_ranks, self.path), [None, None])


def on_some_ranks(rank, size, path):
    """The second rank has its half on a device, later the first one, too."""
    from torch.distributed.device_mesh import init_device_mesh
    try:
        from torch.distributed.tensor import DTensor, Shard
    except ImportError:  # torch 2.4
        from torch.distributed._tensor import DTensor, Shard

    device, mesh = model.Device(), init_device_mesh("cpu", (size,))

    def state(seed, ranks):
        half = numbers(seed + rank, 30, 20)
        sharded = DTensor.from_local(half, mesh, [Shard(0)], run_check=False)
        if rank in ranks:
            sharded._local_tensor = device.put(half)
        return {"w": sharded, "own": {rank: device.put(half) if rank in ranks else half}}

    def halves(loaded):
        return [device.get(t) if t.is_cuda else t for t in (loaded["w"]._local_tensor, loaded["own"][rank])]

    with model.opened():
        for step, ranks in enumerate(([], [1], [0, 1], [])):
            rt.save(state(10 * step, ranks), path, step=step)
        for step, ranks in enumerate(([1], [0, 1], [], [0])):
            loaded = state(100, ranks)
            rt.load(loaded, path, step=step)
            assert all(torch.equal(half, numbers(10 * step + rank, 30, 20)) for half in halves(loaded)), step
        os.environ["REPRISE_CUDA_LIBRARY"] = "/nowhere/x.so" if rank == 1 else model.LIBRARY
        rt.configure(threads=2)  # new jobs
        try:
            rt.save(state(1, [0, 1]), path, step=9)
            raise AssertionError("saved without a device")
        except reprise.Error as error:
            assert (error.code, error.rank) == ("UNSUPPORTED", None if rank == 1 else 1), error
        rt.save(state(1, [0]), path, step=9)
        dist.barrier()


@unittest.skipIf(os.environ.get("REPRISE_CUDA_LIBRARY"), "REPRISE_CUDA_LIBRARY is set")
class OnThisMachine(unittest.TestCase):
    def test_what_is_missing_is_said(self):
        """A tensor that says it is on a device, and a machine or a library without one."""
        if torch.cuda.is_available():
            self.skipTest("there is a device")
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(job, "_places", {}):
            with self.assertRaises(reprise.Error) as caught:
                rt.save({"w": numbers(1, 3).as_subclass(model.OnDevice)}, folder + "/run")
        self.assertEqual(caught.exception.code, "UNSUPPORTED")
        self.assertRegex(caught.exception.message, "can't be (opened|used)")


if __name__ == "__main__":
    unittest.main()
