"""Runs the examples as their first lines say."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import torch
import torch.distributed.checkpoint as dcp
import torch.distributed.fsdp

import reprise.torch as rt

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


def torchrun(ranks, *words, first=""):
    """Returns what an example printed on so many ranks. Python looks for modules in the folder `first` before all others."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}", *words]
    path = os.pathsep.join(filter(None, [first, os.environ.get("PYTHONPATH", "")]))
    environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode}\n{done.stdout}\n{done.stderr[-4000:]}")
    return done.stdout


def losses(printed):
    return {int(step): float(loss) for step, loss in re.findall(r"^step (\d+): loss (\S+)$", printed, re.M)}


@unittest.skipUnless(hasattr(torch.distributed.fsdp, "fully_shard"), "needs torch 2.6, which has fully_shard there")
class Fsdp2(unittest.TestCase):
    def test_goes_on_at_another_number_of_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            run, other = os.path.join(folder, "run"), os.path.join(folder, "other")
            example = str(EXAMPLES / "fsdp2.py")
            # As where torch alone was installed: it does not bring numpy along.
            pathlib.Path(folder, "numpy.py").write_text("raise ModuleNotFoundError('no numpy here')\n")
            first = losses(torchrun(2, example, run, "20", first=folder))
            again = losses(torchrun(2, example, run, "30"))
            whole = losses(torchrun(2, example, other, "40"))
            self.assertEqual((list(first), list(again)), (list(range(1, 21)), list(range(21, 31))))
            self.assertEqual({**first, **again}, {step: whole[step] for step in range(1, 31)})  # every bit

            ours, stock = wanted(), wanted()
            rt.load(ours, run)
            dcp.load(stock, checkpoint_id=os.path.join(run, "step-30"))
            self.assertEqual(sorted(os.listdir(run))[:3], ["step-10", "step-20", "step-30"])
            for key in ours["training"]["model"]:
                self.assertTrue(torch.equal(ours["training"]["model"][key], stock["training"]["model"][key]), key)
            self.assertEqual(ours["training"]["step"], 30)

            on_three = losses(torchrun(3, example, run, "40"))
            self.assertEqual(list(on_three), list(range(31, 41)))
            if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 8):
                return  # on another number of ranks 2.7 goes on differently, after its own dcp.load, too
            for step, loss in on_three.items():
                self.assertAlmostEqual(loss, whole[step], places=5)  # sums in another order


def wanted():
    shapes = {"0.weight": (48, 24), "0.bias": (48,), "2.weight": (24, 48), "2.bias": (24,)}
    return {"training": {"model": {key: torch.zeros(shape) for key, shape in shapes.items()}, "step": 0}}


if __name__ == "__main__":
    unittest.main()
