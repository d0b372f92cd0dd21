#!/usr/bin/env python3
"""A small trainer of PyTorch that saves from a GPU and loads to it, held against Reprise.

    torch_trainer.py [--device cuda|cpu] REPRISE...

REPRISE... is the command that runs reprise. The trainer trains on the device, saves with
torch.distributed.checkpoint, and goes on. Reprise must find the checkpoint whole, and write the same
content in two files for two ranks. A second trainer starts cold from what Reprise wrote, must hold
the same bits on the device, and after as many further steps the same bits as the first. It saves, too,
and Reprise must find both of its saves the same as the first trainer's. Last, Reprise must see one
changed element. Prints one line for each of these, and exits with 3 if there is no torch or no device.
"""
import argparse
import inspect
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # the same sums in every run
try:
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
except ImportError as error:
    print(f"not run: no torch: {error}")
    sys.exit(3)

if "no_dist" not in inspect.signature(dcp.save).parameters:
    print(f"not run: torch {torch.__version__} is too old to save without a process group")
    sys.exit(3)

STEPS = 3
SAME, DIFFERENT = 0, 1  # exit status of reprise


class Trainer:
    def __init__(self, device, seed):
        torch.manual_seed(seed)
        self.device = device
        self.model = torch.nn.Sequential(torch.nn.Linear(64, 129), torch.nn.GELU(), torch.nn.Linear(129, 7)).to(device)
        self.half = torch.nn.Linear(7, 33, dtype=torch.bfloat16, device=device)
        self.parts = torch.nn.ModuleDict({"body": self.model, "tail": self.half})
        self.optimizer = torch.optim.AdamW(self.parts.parameters(), lr=1e-2, foreach=False)
        self.step = 0

    def train(self):
        for _ in range(STEPS):
            # Samples follow from the step, and are made on the host: a load needs no generator's state.
            samples = torch.randn(16, 64, generator=torch.Generator().manual_seed(self.step)).to(self.device)
            loss = self.half(self.model(samples).bfloat16()).float().square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.step += 1

    def state(self):
        model, optimizer = get_state_dict(self.parts, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": self.step}

    def save(self, path):
        dcp.save(self.state(), checkpoint_id=path, no_dist=True)

    def load(self, path):
        state = self.state()
        dcp.load(state, checkpoint_id=path, no_dist=True)
        set_state_dict(self.parts, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.step = state["step"]


def tensors_of(state, path=""):
    if isinstance(state, torch.Tensor):
        yield path, state
    elif isinstance(state, dict):
        for key in state:
            yield from tensors_of(state[key], f"{path}.{key}")


def must(true, what):
    if not true:
        print(f"failed: {what}")
        sys.exit(1)
    print(f"ok: {what}", flush=True)


def same_bits(left, right):
    """True if both states have the same tensors, bit for bit, wherever they are."""
    left, right = dict(tensors_of(left.state())), dict(tensors_of(right.state()))
    return bool(left) and left.keys() == right.keys() and all(
        left[key].dtype == right[key].dtype and left[key].shape == right[key].shape and
        torch.equal(left[key].contiguous().view(-1).view(torch.uint8), right[key].contiguous().view(-1).view(torch.uint8))
        for key in left)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reprise", nargs="+")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("not run: torch sees no GPU")
        return 3
    torch.use_deterministic_algorithms(True, warn_only=True)

    def reprise(*words):
        done = subprocess.run(arguments.reprise + list(map(str, words)), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print("  " + done.stdout.strip().rsplit("\n", 1)[-1])
        return done.returncode

    with tempfile.TemporaryDirectory(prefix="reprise-trainer-") as scratch:
        root = pathlib.Path(scratch)
        first = Trainer(arguments.device, seed=1)
        first.train()
        on_device = sum(tensor.device.type == arguments.device for _, tensor in tensors_of(first.state()))
        must(on_device >= 18, f"{on_device} tensors of the trainer's state are on {arguments.device}")
        first.save(root / "three")
        held = Trainer(arguments.device, seed=2)
        must(not same_bits(first, held), "a new trainer holds something else")
        must(reprise("verify", root / "three") == SAME, "reprise verify: torch's checkpoint is whole")
        must(reprise("reshard", root / "three", root / "two-ranks", "--ranks", "2") == SAME,
             "reprise reshard writes it for two ranks")
        must(reprise("diff", root / "three", root / "two-ranks") == SAME, "reprise diff: with the same content")
        held.load(root / "two-ranks")
        must(held.step == STEPS and same_bits(first, held), "torch loads the same bits from what Reprise wrote")
        held.save(root / "three-again")
        must(reprise("diff", root / "three", root / "three-again") == SAME, "reprise diff: and saves them again")
        first.train()
        held.train()
        must(same_bits(first, held), "both hold the same bits after further steps")
        first.save(root / "six")
        held.save(root / "six-again")
        must(reprise("diff", root / "six", root / "six-again") == SAME, "reprise diff: and save the same")
        with torch.no_grad():
            held.half.weight[32, 6] = -held.half.weight[32, 6] - 1
        held.save(root / "changed")
        must(reprise("diff", root / "six", root / "changed") == DIFFERENT, "reprise diff: one changed element is seen")
    return 0


if __name__ == "__main__":
    sys.exit(main())
