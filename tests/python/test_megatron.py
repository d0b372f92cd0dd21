"""Megatron-Core: what it saves ours loads, and the other way round, under other layouts."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import ranks

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "reprise"
HAVE_MEGATRON = importlib.util.find_spec("megatron") is not None


def run(size, function, *arguments):
    return ranks.run(size, f"megatron_ranks:{function}", *arguments, timeout=300)


@unittest.skipUnless(HAVE_MEGATRON, "megatron-core is not installed")
class Layouts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def assert_same(self, found):
        self.assertEqual([one for of_rank in found for one in of_rank], [])

    def test_both_ways_on_two_ranks(self):
        run(2, "saved", self.folder, dict(tp=2), ["ours", "stock"])
        if PROGRAM.exists():
            ours, stock = (os.path.join(self.folder, name) for name in ("ours", "stock"))
            for words in (["verify", ours], ["diff", ours, stock]):
                said = subprocess.run([PROGRAM, *words], text=True, capture_output=True)
                self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assert_same(run(2, "loaded", self.folder, dict(dp=2, ep=2), ["stock"], ["ours"]))
        self.assert_same(run(2, "loaded", self.folder, dict(pp=2), ["ours"], ["stock"]))

    def test_both_ways_under_the_same_and_other_layouts(self):
        saves, loads = ["ours", "stock", "strategy"], ["ours", "stock", "strategy"]
        names = run(4, "saved", self.folder, dict(tp=2, pp=2), saves)[0]
        self.assertEqual(names[:2] + names[-2:], [".metadata", "__0_0.distcp", "common.pt", "metadata.json"])
        self.assert_same(run(4, "loaded", self.folder, dict(tp=2, pp=2), saves, loads))
        self.assert_same(run(2, "loaded", self.folder, dict(dp=2, ep=2), saves, ["ours", "strategy"]))
        self.assert_same(run(1, "loaded", self.folder, dict(), ["ours", "strategy"], ["stock"]))


@unittest.skipUnless(HAVE_MEGATRON, "megatron-core is not installed")
class Calls(unittest.TestCase):
    def run_ranks(self, size, function, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            return run(size, function, folder, *arguments)

    def test_strictness_means_what_it_means_there(self):
        for of_rank in self.run_ranks(2, "strict_values"):
            for strict, keys, theirs, ours in of_rank:
                with self.subTest(strict=strict, keys=keys):
                    self.assertEqual(theirs[0], ours[0])
                    if ours[0] == "raises":
                        self.assertEqual(ours[1], "reprise")
                    else:
                        self.assertEqual(theirs, ours)

    def test_mistakes_have_the_same_code_on_all_ranks_and_change_nothing(self):
        common = ["MULTI_WRITER", "NO_WRITER", "NOT_FOUND", "NOT_STORED", "NOT_STORED", None, "SHAPE_DRIFT", "DTYPE_DRIFT", "nothing"]
        first, second = self.run_ranks(2, "refusals")
        self.assertEqual(first, ["CheckpointingException", *common])
        self.assertEqual(second, ["PEER_FAILED", *common])

    def test_a_rank_that_fails_to_prepare_is_reported_within_seconds(self):
        first, second = self.run_ranks(2, "failing")
        peer, own, done = ("PEER_FAILED", True), ("ValueError", True), ("done", True)
        self.assertEqual(first, [peer, peer, own, done, peer, done])
        self.assertEqual(second, [own, own, peer, done, own, done])

    def test_data_that_are_not_what_their_sharded_tensor_says(self):
        wrong, wrapped = ("LAYOUT_MISMATCH", "w"), ("UNSUPPORTED", "w")
        said = [wrong, wrong, wrapped, wrapped, [1.0] * 3, [2.0] * 3]
        self.assertEqual(self.run_ranks(2, "wrong_data"), [said, said])

    def test_missing_rows_become_zero_and_missing_keys_stay_as_they_are(self):
        for rank, found in enumerate(self.run_ranks(2, "other_shapes")):
            rows = [1.0] * 3 if rank == 0 else [1.0, 0.0, 0.0]
            expected = [(rows, ["w"], {"v"}, [7.0]), (rows, ["w"], {"v"}, None)]
            self.assertEqual(found, expected * 2)

    def test_iterations_have_a_tracker_and_the_newest_whole_one_is_loaded(self):
        for found in self.run_ranks(2, "iterations"):
            names = ["iter_0000002", "iter_0000003", "latest_checkpointed_iteration.txt"]
            self.assertEqual(found, (names, "3", 3))

    def test_strategies_within_the_wrappers_that_share_the_work(self):
        self.assertEqual(self.run_ranks(2, "in_parallel", dict(dp=2, ep=2)), [(2, [])] * 2)


@unittest.skipUnless(HAVE_MEGATRON, "megatron-core is not installed")
class Models(unittest.TestCase):
    def test_gpt_and_its_optimizers_both_ways(self):
        for layout, size, options in (
            ({"tp": 2, "pp": 2}, 4, {}),
            ({"tp": 2, "dp": 2}, 4, {"optimizer": "dp_reshardable"}),
            ({"dp": 2, "ep": 2}, 2, {"model": "moe"}),
        ):
            with self.subTest(layout=layout), tempfile.TemporaryDirectory() as folder:
                self.assertEqual(run(size, "trained", folder, layout, options), [[]] * size)


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
