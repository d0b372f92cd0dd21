"""The trainers, life by life, without the scenario driver: what they say they hold is what is stored and what is loaded.

Run it with a Python that has torch (and megatron-core for some): python3 tests/trainers/test_trainers.py [-v] [CASE...]
"""
import importlib.metadata
import math
import pathlib
import sys
import tempfile
import unittest
import warnings

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "trainers")]
import run_alone  # noqa: E402

warnings.filterwarnings("ignore")


def installed(trainer):
    """Why this trainer cannot run here, or nothing."""
    for package, wanted in run_alone.needs(trainer).items():
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return f"{package} is not installed"
        if found != wanted:
            return f"{package} {found} is not {wanted}"
    return None


def needs(trainer):
    why = installed(trainer)
    return unittest.skipIf(why, f"{trainer}: {why}")


class Lives(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def live(self, trainer, layout, actions, codes=(0,), load=None, **rest):
        """One life; the witness of its ranks. All ranks must end with one of the codes."""
        parsed = [run_alone.action_of(a) for a in actions.split()]
        number, found, _ = run_alone.life(trainer, self.root, layout, parsed, load=load, quiet=set(codes) != {0}, **rest)
        self.assertLessEqual(set(found), set(codes), f"life {number}")
        return run_alone.lines_of(self.root, number)

    def steps(self, lines):
        """step -> (loss, norm) in hex, which must be the same on each rank."""
        told = [{line["step"]: (line["loss"], line["norm"]) for line in rank if line["what"] == "step"} for rank in lines]
        self.assertTrue(all(rank == told[0] for rank in told))
        return told[0]

    def samples(self, lines, upto=math.inf):
        return sorted(s for rank in lines for line in rank if line["what"] == "step" and line["step"] <= upto for s in line["samples"])

    def whole(self, digests):
        wrong = {key: what for key, what in digests.items() if len(what[2]) != 16}
        self.assertFalse(wrong)
        self.assertTrue(digests)
        return digests

    def told(self, lines, when, occurrence=0):
        return self.whole(run_alone.digests(lines, when, occurrence))

    def names(self, lines, when, occurrence=0):
        """The keys under which the objects that the ranks told of are to be stored."""
        return {key if shard is None else f"{key}/shard_{shard}" for key, shard in run_alone.objects(lines, when, occurrence)}

    def stored(self, name, blanks={}):
        import stored
        folder = str(self.root / "checkpoints" / name)
        return stored.digests_of(folder, blanks), set(stored.keys_of(folder)[1])

    def is_stored(self, lines, name, occurrence=0):
        """What the ranks held when they saved is what is in the folder, objects by name."""
        tensors, objects = self.stored(name, run_alone.blank_of(lines, "save", occurrence))
        self.assertEqual(self.told(lines, "save", occurrence), tensors)
        self.assertEqual(self.names(lines, "save", occurrence), objects)

    def is_loaded(self, saved, loaded, occurrence=0):
        self.assertEqual(self.told(saved, "save", occurrence), self.told(loaded, "loaded"))

    def near(self, one, two):
        for step in set(one) & set(two):
            for a, b in zip(one[step], two[step]):
                self.assertLess(abs(float.fromhex(a) / float.fromhex(b) - 1), 1e-5, f"step {step}")


@needs("torch-fsdp2")
class TorchFsdp2(Lives):
    def test_another_layout(self):
        """Replicas, shards and tensor parallelism; another layout loads it; a job that loads nothing goes elsewhere."""
        first = self.live("torch-fsdp2", {"dp": 2, "tp": 2}, "train:2 save train:2")
        self.is_stored(first, "step_2")
        cold = self.live("torch-fsdp2", {"dp": 2, "tp": 2}, "train:2", load={"step": 2, "cold": True})
        same = self.live("torch-fsdp2", {"dp": 2, "tp": 2}, "train:2", load={"step": 2})
        other = self.live("torch-fsdp2", {"dp": 3}, "train:2", load={"step": 2})
        self.is_loaded(first, same)
        self.is_loaded(first, other)
        last = [(step, self.steps(first)[step]) for step in (3, 4)]
        self.assertEqual(list(self.steps(same).items()), last)
        self.near(self.steps(first), self.steps(other))
        self.assertNotEqual(list(self.steps(cold).items()), last)
        for lines in (same, other):
            self.assertEqual(self.samples(first, upto=2) + self.samples(lines), list(range(32)))

    def test_asynchronous(self):
        """A thread, then a process; what was held at the call is what is stored, though training went on."""
        for kind, layout in (("thread", {"dp": 2}), ("process", {"dp_replicate": 2})):
            lines = self.live("torch-fsdp2", layout, "train:1 save train:2 finalize", options={"async": kind, "optimizer": "sgd", "folders": "one"})
            self.is_stored(lines, "checkpoint")
            self.assertNotEqual(self.told(lines, "save"), self.told(lines, "end"))

    def test_killed(self):
        """A rank dies in its second write; the tracker still names the first save, which is loaded."""
        first = self.live("torch-fsdp2", {"dp": 2}, "train:1 save train:1 save", codes=(-9, 1, -6), kill={"rank": 1, "phase": "save.write", "occurrence": 2})
        self.assertEqual([line["what"] for line in first[1]][-1], "phase")
        second = self.live("torch-fsdp2", {"dp": 1}, "train:1", load={"step": 1})
        self.is_loaded(first, second)

    def test_object_that_appears(self):
        """torch's own kept plans notice that there is one object more."""
        lines = self.live("torch-fsdp2", {"dp": 2}, "train:1 save train:1 save", options={"plan_caching": "on", "late_object": "dataloader_state"})
        self.is_stored(lines, "step_1", 0)
        self.is_stored(lines, "step_2", 1)


@needs("torch-ep-fsdp")
class TorchExperts(Lives):
    def test_another_layout(self):
        first = self.live("torch-ep-fsdp", {"dp": 2, "ep": 2}, "train:2 save train:1")
        self.is_stored(first, "step_2")
        other = self.live("torch-ep-fsdp", {"dp": 4, "ep": 2}, "train:1", load={"step": 2})
        self.is_loaded(first, other)
        self.near(self.steps(first), self.steps(other))

    def test_historical_placements(self):
        """Experts are stored and loaded as one rank has them; the witness says otherwise, for experts alone."""
        historical = {"placements": "historical"}
        first = self.live("torch-ep-fsdp", {"dp": 2, "ep": 2}, "train:1 save train:1", options=historical)
        second = self.live("torch-ep-fsdp", {"dp": 2, "ep": 2}, "train:1", options=historical, load={"step": 1})
        held, kept, loaded = self.told(first, "save"), self.stored("step_1")[0], self.told(second, "loaded")
        experts = {key for key in held if ".experts." in key and not key.endswith(".step")}
        self.assertEqual({key for key in held if held[key] != kept[key]}, experts)
        self.assertEqual({key for key in held if held[key] != loaded[key]}, experts)
        self.assertNotEqual(self.steps(first)[2], self.steps(second)[2])


@needs("megatron")
class Megatron(Lives):
    def test_another_layout(self):
        first = self.live("megatron", {"dp": 2}, "train:1 save train:1 finalize", options={"async": "fork"})
        self.is_stored(first, "iter_0000001")
        other = self.live("megatron", {"tp": 2, "pp": 2}, "train:1 save", load={"step": 1})
        self.is_loaded(first, other)
        self.is_stored(other, "iter_0000002")
        self.near(self.steps(first), self.steps(other))
        self.assertEqual(self.samples(first, upto=1) + self.samples(other), list(range(16)))

    def test_distributed_optimizer(self):
        """Its buckets over other numbers of replicas."""
        bucket = {"optimizer": "dp_reshardable"}
        first = self.live("megatron", {"dp": 2}, "train:2 save train:1", options=bucket)
        self.is_stored(first, "iter_0000002")
        other = self.live("megatron", {"dp": 1}, "train:1", load={"step": 2}, options=bucket)
        self.is_loaded(first, other)
        self.near(self.steps(first), self.steps(other))

    def test_experts(self):
        first = self.live("megatron", {"dp": 2, "ep": 2}, "train:1 save train:1", options={"model": "moe"})
        self.is_stored(first, "iter_0000001")
        other = self.live("megatron", {"dp": 4, "ep": 4}, "train:1", load={"step": 1}, options={"model": "moe"})
        self.is_loaded(first, other)
        self.near(self.steps(first), self.steps(other))

    def fault(self, cache, kind="persistent", codes=(16,)):
        return self.live("megatron", {"dp": 2}, "train:1 save train:1 save train:1", codes=codes, options={"cache": cache}, faults={"rerun": {"iteration": 3, "kind": kind}})

    def test_rerun_state_with_a_kept_structure(self):
        """The object that the fault brings is held by both ranks and is in no file; nothing fails but the load."""
        lines = self.fault("on")
        missing = {f"rerun_state_machine_state/shard_{rank}_2" for rank in range(2)}
        self.assertEqual(self.names(lines, "save", 2) - self.stored("iter_0000002")[1], missing)
        self.assertEqual([rank[-2]["code"] for rank in lines], [16, 16])
        self.live("megatron", {"dp": 2}, "train:1", codes=(1,), load={"step": 2}, options={"place": "other"})

    def test_rerun_state_without(self):
        """The same without a kept structure: another device decides."""
        lines = self.fault("off")
        self.is_stored(lines, "iter_0000002", 2)
        after = self.live("megatron", {"dp": 2}, "train:1", codes=(17,), load={"step": 2}, options={"place": "other"})
        self.is_loaded(lines, after, 2)
        self.assertEqual(run_alone.objects(lines, "save", 2), run_alone.objects(after, "loaded"))

    def test_object_that_appears(self):
        """The same with an object that no rule knows."""
        for cache, missing in (("on", {"dataloader_state/shard_0_1"}), ("off", set())):
            lines = self.live("megatron", {"dp": 1}, "train:1 save train:1 save train:1 save", options={"cache": cache, "late_object": "dataloader_state"})
            for n in range(3):
                self.assertEqual(self.names(lines, "save", n) - self.stored(f"iter_{n + 1:07d}")[1], missing if n else set(), f"save {n}, cache {cache}")
            (self.root / "checkpoints").rename(self.root / f"{cache}")


if __name__ == "__main__":
    unittest.main()
