"""Questions about stored checkpoints, by the program."""
import argparse
import os
import pathlib
import pickle
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import unittest

import reprise
from reprise import checkpoints, program

try:
    import torch
    import torch.distributed.checkpoint as dcp
except ImportError:
    torch = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
HALVES = ROOT / "tests/data/mcore_0.16.1_gpt_tp2_pp2"
PIECES = ROOT / "tests/data/mcore_0.16.1_gpt_dp2"


class Scratch(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)


class Checkpoints(Scratch):
    def flipped(self):
        """A copy with an item whose bits are flipped, and the name of its file."""
        copy = self.folder / "flipped"
        shutil.copytree(HALVES, copy)
        one = checkpoints.inspect(HALVES, chunks=True)["tensors"][0]["chunks"][0]
        file = next(copy.rglob(one["file"]))
        data = bytearray(file.read_bytes())
        place = slice(one["file_offset"], one["file_offset"] + one["file_bytes"])
        data[place] = bytes(byte ^ 1 for byte in data[place])
        file.write_bytes(data)
        return copy, one["file"]

    def test_whole(self):
        found = checkpoints.verify(HALVES)
        self.assertTrue(found.good)
        self.assertEqual((found["verdict"], found["tensors"], found["findings"]), ("whole", 36, []))

    def test_all_below_a_directory(self):
        root = self.folder / "run"
        shutil.copytree(HALVES, root)
        copy, _ = self.flipped()
        (copy / "iter_0000010").rename(root / "iter_0000020")
        (root / "logs").mkdir()
        found = checkpoints.verify_all(root)
        self.assertEqual(found.code, 1)
        self.assertEqual([one["verdict"] for one in found["checkpoints"]], ["whole", "damaged"])
        beside = {pathlib.Path(one["path"]).name for one in found["roots"][0]["beside"]}
        self.assertEqual(beside, {"logs", "latest_checkpointed_iteration.txt"})
        resume = {one["program"]: one for one in found["roots"][0]["resume"]}
        self.assertTrue(resume["Megatron-LM"]["path"].endswith("iter_0000010"))
        self.assertTrue(resume["Megatron-LM"]["good"])
        (self.folder / "empty").mkdir()
        self.assertEqual(checkpoints.verify(self.folder / "empty", all=True).code, 3)

    def test_summary(self):
        summary = checkpoints.inspect(HALVES)["summary"]
        self.assertEqual(summary["iteration"]["of_state"], 10)
        self.assertEqual((summary["layout"]["tp"], summary["layout"]["pp"]), (2, 2))
        self.assertEqual(summary["optimizer"]["param_groups"][0]["lr"], 0.0003)

    def test_names_that_run_code(self):
        found = checkpoints.scan(HALVES)
        self.assertTrue(found.good)
        self.assertIn("torch._utils._rebuild_tensor_v2", str(found["files"]))
        file = self.folder / "own.pkl"
        file.write_bytes(pickle.dumps({"own": argparse.ArgumentParser, "a": 1}))
        self.assertEqual(checkpoints.scan(file).code, 1)
        self.assertTrue(checkpoints.scan(file, allow=["argparse.ArgumentParser"]).good)
        file.write_bytes(pickle.dumps(os.getcwd))
        names = checkpoints.scan(file)["files"][0]["names"]
        self.assertEqual([(one["name"], one["standing"]) for one in names], [("posix.getcwd", "refused")])
        with self.assertRaises(reprise.Error):
            checkpoints.scan(self.folder / "nothing")

    def test_keys_that_are_expected(self):
        stored = {one["key"]: {"shape": one["shape"], "dtype": one["dtype"]} for one in checkpoints.inspect(HALVES)["tensors"]}
        self.assertTrue(checkpoints.match(HALVES, stored, only=["."]).good)
        key, entry = next(iter(stored.items()))
        found = checkpoints.match(HALVES, {**stored, key: {**entry, "shape": [1, *entry["shape"]]}, f"{key}s": entry})
        self.assertEqual(found.code, 1)
        self.assertEqual([one["key"] for one in found["shape"]], [key])
        self.assertEqual([one["key"] for one in found["missing"]], [f"{key}s"])
        with self.assertRaises(reprise.Error):
            checkpoints.match(HALVES, [])

    @unittest.skipUnless(torch, "needs torch")
    def test_a_model_on_the_meta_device(self):
        def make_model():
            return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))

        dcp.save({"model": make_model().state_dict()}, checkpoint_id=self.folder / "saved")
        with torch.device("meta"):
            model = make_model()
        expected = checkpoints.expect(model)
        self.assertEqual(expected["0.weight"], {"shape": [3, 4], "dtype": "float32"})
        answer = checkpoints.match(self.folder / "saved", expected)
        self.assertEqual((answer.code, answer["rename"]), (1, "s/^model\\.//"))
        self.assertTrue(checkpoints.match(self.folder / "saved", expected, rename=[answer["rename"]], strict=True).good)
        self.assertTrue(checkpoints.match(self.folder / "saved", checkpoints.expect({"model": model.state_dict()})).good)
        self.assertFalse(checkpoints.match(self.folder / "saved", checkpoints.expect({"model": model.half().state_dict()})).good)
        snippet = program.run(["match", "--snippet"]).screen
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        exec(snippet, {"make_model": make_model})
        self.assertTrue(checkpoints.match("saved", "keys.json", rename=[answer["rename"]], strict=True).good)

    def test_damaged(self):
        copy, file = self.flipped()
        found = checkpoints.verify(copy)
        self.assertFalse(found.good)
        self.assertEqual((found.code, found["verdict"]), (1, "damaged"))
        self.assertIn(file, str(found["findings"][0]))

    def test_the_same(self):
        target = self.folder / "-eight"
        self.assertEqual(checkpoints.reshard(HALVES, target, ranks=8)["chunks_after"], 132)
        compared = checkpoints.diff(str(HALVES), target)
        self.assertTrue(compared.good)
        self.assertEqual(compared["different"], 0)

    def test_not_all_compared(self):
        compared = checkpoints.diff(HALVES, PIECES, keys=["^rng_state", "^rerun"], no_checksums=True)
        self.assertEqual((compared.code, compared.good), (3, False))

    def test_exported(self):
        written = checkpoints.export(HALVES, self.folder / "out", max_shard="4KB", jobs=1)
        self.assertTrue(written.good)
        self.assertEqual(written["proved"], 4368)
        self.assertIn("model.safetensors.index.json", written["files"])
        self.assertEqual(checkpoints.inspect(self.folder / "out", keys="fc1")["tensors"][0]["dtype"],
                         checkpoints.inspect(HALVES, keys="fc1")["tensors"][0]["dtype"])

    def test_imported(self):
        checkpoints.export(HALVES, self.folder / "out")
        written = checkpoints.import_(self.folder / "out", self.folder / "back", ranks=2)
        self.assertEqual((written.good, written["proved"]), (True, 4368))
        self.assertTrue(checkpoints.diff(self.folder / "out", self.folder / "back", quiet=True)["different"] == 0)

    def test_sealed(self):
        copy = self.folder / "copy"
        shutil.copytree(HALVES, copy)
        self.assertEqual(checkpoints.digest(copy), checkpoints.digest(PIECES, jobs=1))
        inspected = checkpoints.inspect(copy, digest=True, sha256=True, jobs=2)["tensors"]
        self.assertEqual({one["key"]: int(one["digest"], 16) for one in inspected}, checkpoints.digest(copy))
        self.assertEqual({len(one["sha256"]) for one in inspected}, {64})
        self.assertEqual(checkpoints.seal(copy)["result"], "sealed")
        self.assertTrue(checkpoints.verify(copy, sealed=True).good)
        self.assertTrue(checkpoints.seal(copy, jobs=1).good)
        next(copy.rglob("common.pt")).with_name("new").write_text("x")
        self.assertFalse(checkpoints.seal(copy).good)
        self.assertFalse(checkpoints.verify(copy, sealed=True).good)

    def test_plan(self):
        whole = checkpoints.plan(HALVES, "tp=1")
        half = checkpoints.plan(HALVES, "tp=2,pp=2", rank=3, memory=True, host_memory="1MB")
        self.assertTrue(half.good)
        self.assertEqual(half["amplification"], 1)
        self.assertEqual([one["ranks"] for one in half["ranks"]], [[3]])
        self.assertLess(half["ranks"][0]["held"], whole["ranks"][0]["held"])
        self.assertEqual(half["readers"], 1000000 // max(one["peak"] for one in checkpoints.plan(HALVES, "tp=2,pp=2")["ranks"]))
        with self.assertRaises(reprise.Error):
            checkpoints.plan(HALVES, "tp=5")

    def test_forms_of_an_optimizer(self):
        forms = ROOT / "tests/data/optimizer_forms_0.16.1"
        for form in "dp_reshardable", "fully_sharded_model_space":
            made = checkpoints.reshard(forms / form, self.folder / form, optimizer="fully_reshardable")
            self.assertEqual((made["optimizer"]["from"], made["optimizer"]["to"]), (form, "fully_reshardable"))
            self.assertEqual(checkpoints.digest(self.folder / form), checkpoints.digest(forms / "fully_reshardable"))
        with self.assertRaises(reprise.Error):
            checkpoints.reshard(forms / "fully_reshardable", self.folder / "none", optimizer="dp_reshardable")

    def test_links_of_a_cache(self):
        """As huggingface_hub keeps what it downloads."""
        checkpoints.export(HALVES, self.folder / "out", max_shard="8KB")
        blobs, snapshot = self.folder / "models--a--b/blobs", self.folder / "models--a--b/snapshots/0123"
        blobs.mkdir(parents=True)
        snapshot.mkdir(parents=True)
        for file in (self.folder / "out").iterdir():
            shutil.copy(file, blobs / f"of-{file.name}")
            (snapshot / file.name).symlink_to(f"../../blobs/of-{file.name}")
        self.assertTrue(checkpoints.verify(snapshot).good)
        self.assertTrue(checkpoints.diff(snapshot, self.folder / "out").good)
        next(blobs.glob("*00002*")).unlink()
        found = checkpoints.verify(snapshot)
        self.assertEqual((found.good, found["verdict"]), (False, "damaged"))

    def test_trend(self):
        run = ROOT / "tests/data/changes_2.15.0/run"
        found = checkpoints.trend(run)
        self.assertTrue(found.good)
        self.assertEqual([one["name"] for one in found["checkpoints"]], ["step-2", "step-4", "step-6"])
        back = checkpoints.trend(run / "step-4", run / "step-2")
        self.assertEqual((back.code, back["verdict"]), (1, "stale"))
        with self.assertRaisesRegex(reprise.Error, "trend takes the directory of a run"):
            checkpoints.trend()
        self.assertTrue(checkpoints.verify(run / "step-4", health=True, against=run / "step-2").good)

    def test_sources(self):
        pair = [ROOT / "tests/data/changes_2.15.0" / name for name in "ab"]
        found = {one["key"]: one for one in checkpoints.diff(*pair, sort="change")["tensors"]}
        self.assertEqual(found["scaled.twice"]["source"]["sentence"], "B is A times 2")
        self.assertIsNone(found["none.noise"]["source"])

    def test_which(self):
        for step in (5, 20):
            shutil.copytree(ROOT / "tests/data/torch_2.15.0/plain", self.folder / f"step-{step}")
        found = checkpoints.which(self.folder, for_="torchtitan")
        self.assertTrue(found.good)
        self.assertEqual([point["path"] for point in found["points"]], [str(self.folder / "step-20")])

    def test_releases(self):
        new = ROOT / "tests/data/releases_2.15.0/mcore-0.19/object"
        found = checkpoints.inspect(new)
        self.assertEqual([one["who"] for one in found["written_by"]], ["torch >= 2.15", "megatron-core >= 0.19"])
        self.assertEqual(found["reshard_for"], ["torch-2.14", "mcore-0.18"])
        written = checkpoints.reshard(new, self.folder / "old", for_=found["reshard_for"])
        self.assertEqual((written["for"], len(written["changes"])), (["torch-2.14", "mcore-0.18"], 3))
        self.assertEqual([one["who"] for one in checkpoints.inspect(self.folder / "old")["readable_by"]], ["torch >= 2.4", "megatron-core >= 0.8"])
        self.assertTrue(checkpoints.diff(new, self.folder / "old").good)
        with self.assertRaisesRegex(reprise.Error, "torch-2.5 can't read this: it has elements of uint16"):
            checkpoints.reshard(ROOT / "tests/data/releases_2.15.0/torch-2.7/unsigned", self.folder / "none", for_="torch-2.5")
        self.assertFalse((self.folder / "none").exists())

    def test_errors_have_their_place(self):
        for ask in (checkpoints.verify, checkpoints.inspect, lambda path: checkpoints.diff(path, HALVES),
                    lambda path: checkpoints.export(path, self.folder / "out")):
            with self.assertRaises(reprise.Error) as caught:
                ask(self.folder / "nowhere")
            self.assertEqual((caught.exception.code, caught.exception.file), ("NOT_FOUND", str(self.folder / "nowhere")))

    def test_unknown_option(self):
        with self.assertRaisesRegex(reprise.Error, "colour") as caught:
            checkpoints.verify(HALVES, colour="red")
        self.assertEqual(caught.exception.code, "USAGE")

    def test_words_of_options(self):
        self.assertEqual(program.words({"max_shard": "2GB", "json": True, "jobs": 2, "keys": ["a", "b"], "map": None,
                                        "set": {"vocab": 32, "x": "y z"}, "quiet": False, "from_": pathlib.Path("c")}),
                         ["--max-shard=2GB", "--json", "--jobs=2", "--keys=a", "--keys=b", "--set=vocab=32", "--set=x=y z", "--from=c"])

    def test_answer_survives_a_pickle(self):
        answer = checkpoints.Answer({"a": 1}, 3)
        copy = pickle.loads(pickle.dumps(answer))
        self.assertEqual((copy, copy.code, copy.good), (answer, 3, False))

    def test_no_program(self):
        named = os.environ.pop("REPRISE_PROGRAM", None)
        path, where = os.environ["PATH"], sys.executable
        try:
            os.environ["PATH"] = str(self.folder)
            sys.executable = str(self.folder / "python")
            if os.path.exists(os.path.join(program.sysconfig.get_path("scripts"), "reprise")):
                self.skipTest("the program is installed here")
            with self.assertRaisesRegex(FileNotFoundError, "the wheel reprise-ckpt has it"):
                checkpoints.verify(HALVES)
        finally:
            os.environ["PATH"], sys.executable = path, where
            if named is not None:
                os.environ["REPRISE_PROGRAM"] = named

    def test_interrupt_ends_the_program(self):
        mark = self.folder / "ended"
        slow = self.folder / "slow"
        slow.write_text(f"#!/bin/sh\ntrap 'touch {mark}; exit 130' TERM\ntouch {self.folder}/began\nwhile :; do sleep 0.05; done\n")
        slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
        named = os.environ.get("REPRISE_PROGRAM")
        os.environ["REPRISE_PROGRAM"] = str(slow)

        def interrupt():
            while not (self.folder / "began").exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        other = threading.Thread(target=interrupt)
        other.start()
        try:
            with self.assertRaises(KeyboardInterrupt):
                checkpoints.verify(HALVES)
        finally:
            other.join()
            if named is None:
                del os.environ["REPRISE_PROGRAM"]
            else:
                os.environ["REPRISE_PROGRAM"] = named
        self.assertTrue(mark.exists())


@unittest.skipIf(torch is None, "no torch")
class Health(Scratch):
    """Numbers beside those that torch counts in what it wrote."""

    def states(self):
        torch.manual_seed(1)
        unhealthy = torch.randn(70, 30)
        unhealthy[3, 4] = float("nan")
        unhealthy[5] = float("-inf")
        unhealthy[6:9] = 0
        state = {str(dtype).split(".")[1]: unhealthy.to(dtype) for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16)}
        state["float8_e5m2"] = torch.randn(70, 30).to(torch.float8_e5m2)
        state["complex64"] = torch.view_as_complex(torch.randn(70, 30, 2))
        state["int16"] = torch.randint(-5, 5, (70, 30), dtype=torch.int16)
        state["uninitialized"] = torch.full((70, 30), 1e-42)
        state["transposed"] = torch.randn(70, 30).t()
        state["only_nan"] = torch.full((3,), float("nan"))
        return state

    @staticmethod
    def counted(tensor):
        numbers = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        small = torch.finfo(tensor.dtype).tiny if numbers.is_floating_point() and numbers.element_size() > 1 else 0
        numbers = numbers.double().flatten()
        finite = numbers[numbers.isfinite()]
        count = {"numbers": numbers.numel(), "nan": numbers.isnan().sum(), "infinite": numbers.isinf().sum(), "zeros": (numbers == 0).sum(),
                 "denormals": ((numbers != 0) & (numbers.abs() < small)).sum()}
        count = {name: int(value) for name, value in count.items()}
        if len(finite) == 0:
            return {**count, "min": None, "max": None, "mean": None, "norm": None}
        return {**count, "min": finite.min().item(), "max": finite.max().item(), "mean": finite.mean().item(), "norm": finite.norm().item()}

    def test_stats_are_those_of_torch(self):
        state = self.states()
        dcp.save(state, checkpoint_id=self.folder / "ckpt")
        found = {one["key"]: one["stats"] for one in checkpoints.inspect(self.folder / "ckpt", stats=True)["tensors"]}
        self.assertEqual(set(found), set(state))
        for key, tensor in state.items():
            with self.subTest(key):
                for name, value in self.counted(tensor).items():
                    if isinstance(value, float):
                        self.assertAlmostEqual(found[key][name], value, delta=1e-9 * (1 + abs(value)))
                    else:
                        self.assertEqual(found[key][name], value, name)

    def test_digests_are_those_of_the_trainer(self):
        from reprise.torch import digest

        state = self.states()
        dcp.save(state, checkpoint_id=self.folder / "ckpt")
        self.assertEqual(checkpoints.digest(self.folder / "ckpt"), digest.digests(state))

    def test_views_that_overlap_themselves(self):
        """torch stores these as they are, since their storage has as many elements as they have."""
        rows, one = torch.arange(12.0).as_strided((4, 3), (2, 1)), torch.arange(4.0)[1:2].expand(4)
        dcp.save({"rows": rows, "one": one}, checkpoint_id=self.folder / "views")
        dcp.save({"rows": rows.contiguous(), "one": one.contiguous()}, checkpoint_id=self.folder / "plain")
        self.assertTrue(checkpoints.verify(self.folder / "views").good)
        self.assertTrue(checkpoints.diff(self.folder / "views", self.folder / "plain").good)
        checkpoints.reshard(self.folder / "views", self.folder / "two", ranks=2)
        self.assertTrue(checkpoints.diff(self.folder / "two", self.folder / "plain").good)
        file = next((self.folder / "views").glob("*.distcp"))
        data = file.read_bytes()
        place = data.index(rows.contiguous().numpy().tobytes()[:12])
        file.write_bytes(data[:place] + b"\x01" + data[place + 1:])
        self.assertFalse(checkpoints.verify(self.folder / "views").good)
        with self.assertRaisesRegex(reprise.Error, "CHECKSUM"):
            checkpoints.reshard(self.folder / "views", self.folder / "three", ranks=2)

    def test_health(self):
        state = self.states()
        dcp.save(state, checkpoint_id=self.folder / "ckpt")
        self.assertTrue(checkpoints.verify(self.folder / "ckpt").good)
        found = checkpoints.verify(self.folder / "ckpt", health=True)
        self.assertEqual((found.code, found["whole"], found["health"]["healthy"]), (1, True, False))
        self.assertEqual({one["key"]: one["severity"] for one in found["health"]["findings"]},
                         {"float64": "error", "float32": "error", "float16": "error", "bfloat16": "error", "only_nan": "error", "uninitialized": "warning"})
        for key in ("float64", "float32", "float16", "bfloat16", "only_nan"):
            del state[key]
        dcp.save(state, checkpoint_id=self.folder / "healthy")
        self.assertTrue(checkpoints.verify(self.folder / "healthy", health=True).good)
        self.assertFalse(checkpoints.verify(self.folder / "healthy", health=True, strict=True).good)
        self.assertFalse(checkpoints.verify(self.folder / "healthy", health=True, limit={"abs": 0.5}).good)


if __name__ == "__main__":
    unittest.main()
