"""torchtitan's trainer under its own manager of checkpoints and ours."""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import ranks

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
HAVE_TITAN = importlib.util.find_spec("torchtitan") is not None


def run(size, function, *arguments):
    return ranks.run(size, f"titan_job:{function}", *arguments, timeout=300)


@unittest.skipUnless(HAVE_TITAN, "torchtitan is not installed")
class Trainers(unittest.TestCase):
    def run_ranks(self, function, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            return run(2, function, folder, *arguments)

    def test_goes_on_as_if_it_had_never_stopped(self):
        self.assertEqual(self.run_ranks("resumed", "async", "ours"), [[], []])

    def test_torchtitans_own_manager_reads_ours(self):
        self.assertEqual(self.run_ranks("resumed", "async", "stock"), [[], []])

    def test_ours_reads_torchtitans_own(self):
        self.assertEqual(self.run_ranks("resumed", "stock", "ours"), [[], []])

    def test_keeps_as_many_as_it_should_and_passes_over_a_damaged_one(self):
        self.assertEqual(self.run_ranks("kept"), [(["step-6", "step-7"], True, 6)] * 2)

    def test_weights_of_another_element_type_are_converted(self):
        self.assertEqual(self.run_ranks("converted"), [[], []])

    def test_all_ranks_load_the_same_step(self):
        passed = "passed over step 9: in Hugging Face's format there are weights alone"
        nothing = ("NOT_FOUND", "rank 0 finds step 9, but no step is found by all ranks")
        expected = [True, 4, [passed], nothing], [True, 4, [], nothing]
        self.assertEqual(self.run_ranks("seen"), list(expected))

    def test_a_rank_that_fails_does_not_wait_for_the_others(self):
        self.assertEqual(self.run_ranks("failing"), [False, False])

    def test_a_remote_folder_is_refused(self):
        self.assertEqual(run(1, "remote"), [("UNSUPPORTED", "gs://bucket/run")])

    def test_finds_the_example(self):
        self.assertEqual(run(1, "configured", str(EXAMPLES)), [(True, 50, 3, "async")])


class OtherReleases(unittest.TestCase):
    def test_an_earlier_torchtitan_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "torchtitan").mkdir()
            pathlib.Path(folder, "torchtitan", "__init__.py").touch()
            path = os.pathsep.join([folder, os.environ["PYTHONPATH"]])
            ran = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", "import reprise.titan"],
                env=dict(os.environ, PYTHONPATH=path),
                text=True,
                capture_output=True,
            )
        self.assertIn("needs torchtitan 0.3", ran.stderr)


if __name__ == "__main__":
    unittest.main()
