"""torchtitan's trainer under its own manager of checkpoints and ours."""
import importlib.util
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import ranks
import reprise
from states import differences

HAVE_TITAN = importlib.util.find_spec("torchtitan") is not None
if HAVE_TITAN:
    logging.disable(logging.WARNING)
    import titan_job
    from torchtitan.components.checkpointer import CheckpointManager
    from torchtitan.config import ConfigManager

    import reprise.titan


def manager(kind, **options):
    options = dict(enable=True, interval=2, last_save_model_only=False, **options)
    if kind == "stock":
        return CheckpointManager.Config(**options)
    return reprise.titan.Manager.Config(async_mode="async" if kind == "async" else "disabled", **options)


def trained(folder, checkpoint, steps):
    trainer = titan_job.trainer(folder, checkpoint, steps)
    trainer.train()
    trainer.close()
    return titan_job.content(trainer)


def resumed(rank, size, folder, saver, loader):
    """Returns where trainers that were stopped after step 3 and started again differ from one that was not."""
    straight = trained(os.path.join(folder, "straight"), manager("ours"), 5)
    stopped = os.path.join(folder, "stopped")
    trained(stopped, manager(saver), 3)
    found = []
    for step in (3, 2):  # saved at the end, and in between
        again = trained(stopped, manager(loader, load_step=step), 5)
        found += [f"{saver} to {loader} from step {step}: {one}" for one in differences(straight, again)]
    return found


def kept(rank, size, folder):
    """Returns what is stored after seven steps, and the step that is loaded if the newest is damaged."""
    trained(folder, manager("async", keep_latest_k=2), 7)
    names = sorted(name for name in os.listdir(os.path.join(folder, "checkpoint")) if name[0] != ".")
    newest = pathlib.Path(folder, "checkpoint", "step-7", f"__{rank}_0.distcp")
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))
    if rank == 0:  # as a save that was killed leaves it
        rest = pathlib.Path(folder, "checkpoint", "step-9.saving-0123")
        rest.mkdir()
        (rest / ".metadata").write_bytes(b"")
    trainer = titan_job.trainer(folder, manager("ours"), 7)
    found = trainer.checkpointer.load()
    step = trainer.step
    trainer.close()
    return names, found, step


def failing(rank, size, folder):
    """Rank 0 fails while a save is in flight, and must close without the others."""
    trainer = titan_job.trainer(folder, manager("async"), 9)
    trainer.checkpointer.save(2)
    try:
        if rank == 0:
            raise ValueError("as a training step might")
    except ValueError:
        trainer.close()
    return os.path.exists(os.path.join(folder, "checkpoint", "step-2"))


@unittest.skipUnless(HAVE_TITAN, "torchtitan is not installed")
class Trainers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def run_ranks(self, function, *arguments):
        return ranks.run(2, function, self.folder, *arguments, method="fork")

    def test_goes_on_as_if_it_had_never_stopped(self):
        self.assertEqual(self.run_ranks(resumed, "async", "ours"), [[], []])

    def test_torchtitans_own_manager_reads_ours(self):
        self.assertEqual(self.run_ranks(resumed, "async", "stock"), [[], []])

    def test_ours_reads_torchtitans_own(self):
        self.assertEqual(self.run_ranks(resumed, "stock", "ours"), [[], []])

    def test_keeps_as_many_as_it_should_and_passes_over_a_damaged_one(self):
        self.assertEqual(self.run_ranks(kept), [(["step-6", "step-7"], True, 6)] * 2)

    def test_a_remote_folder_is_refused(self):
        config = manager("ours", folder="gs://bucket/run")
        parts = dict.fromkeys(["dataloader", "optimizers", "lr_schedulers", "sd_adapter"])
        with self.assertRaises(reprise.Error) as caught:
            config.build(model_parts=[], states={}, **parts)
        self.assertEqual((caught.exception.code, caught.exception.file), ("UNSUPPORTED", "gs://bucket/run"))

    def test_a_rank_that_fails_does_not_wait_for_the_others(self):
        self.assertEqual(self.run_ranks(failing), [False, False])


@unittest.skipUnless(HAVE_TITAN, "torchtitan is not installed")
class Example(unittest.TestCase):
    def test_torchtitan_finds_the_configuration(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"))
        self.addCleanup(sys.path.pop, 0)
        words = ["--module", "torchtitan_config", "--config", "llama3_8b", "--checkpoint.interval", "50"]
        checkpoint = ConfigManager().parse_args(words).checkpoint
        self.assertIs(type(checkpoint), reprise.titan.Manager.Config)
        self.assertEqual((checkpoint.interval, checkpoint.keep_latest_k, checkpoint.async_mode), (50, 3, "async"))


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
