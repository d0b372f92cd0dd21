"""What python/reprise/witness_torch.py tells, against what torch stores and against boxes that a trainer computes.

    PYTHONPATH=python python3 -m unittest discover tests/trainers -p test_witness_torch.py
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
sys.path[:0] = [str(TREE / "python"), str(TREE / "trainers")]

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no torch")
import torch.distributed.checkpoint as dcp  # noqa: E402
from torch.distributed.checkpoint.state_dict import get_state_dict  # noqa: E402

import run_alone  # noqa: E402
from reprise.witness import Witness  # noqa: E402
from reprise.witness_torch import ids_of, tell_torch  # noqa: E402


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = torch.nn.Embedding(6, 4), torch.nn.Linear(4, 6, bias=False)
        self.norm = torch.nn.BatchNorm1d(4)
        self.head.weight = self.embed.weight
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.head(self.norm(self.embed(x)))


def trained():
    torch.manual_seed(3)
    model = Tied()
    optimizer = torch.optim.AdamW([{"params": model.norm.parameters(), "weight_decay": 0.0}, {"params": [model.embed.weight]}], lr=0.1)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, 20)
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.arange(6)).square().sum().backward()
        optimizer.step()
        scheduler.step()
    return model, optimizer, scheduler


def told(folder, *held, **how):
    own = Witness(folder, life=len(list(pathlib.Path(folder).glob("life*"))))
    tell_torch(own, "save", 2, *held, **how)
    state = [json.loads(line) for line in pathlib.Path(own.path + ".jsonl").read_text().splitlines()][-1]
    return {tensor["key"]: tensor for tensor in state["tensors"]}, {thing["key"]: thing for thing in state["objects"]}


class Alone(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def test_keys_are_those_of_the_checkpoint(self):
        model, optimizer, scheduler = trained()
        weights, moments = get_state_dict(model, optimizer)
        loop = {"train": {"step": 2, "seen": torch.arange(3), "order": [{"epoch": 0}]}}
        dcp.save({"model": weights, "optim": moments, "scheduler": scheduler.state_dict(), **loop}, checkpoint_id=f"{self.folder}/stored")
        stored = dcp.FileSystemReader(f"{self.folder}/stored").read_metadata().state_dict_metadata
        tensors, objects = told(f"{self.folder}/told", model, optimizer, scheduler, loop=loop)
        self.assertEqual(set(tensors) | set(objects), set(stored))
        self.assertEqual(set(tensors), {key for key, value in stored.items() if hasattr(value, "size")})
        self.assertIn("model.head.weight", tensors)  # tied: under both names, as in a state dict
        self.assertNotIn("model.scratch", tensors)
        self.assertEqual(objects["optim.param_groups.0.lr"]["value"], repr(optimizer.param_groups[0]["lr"]))

    def test_every_bit_counts(self):
        model, optimizer, scheduler = trained()
        model = model.double()
        before = told(self.folder, model, optimizer, scheduler)
        weight, moment = model.norm.bias, optimizer.state[model.norm.bias]
        changes = {"model.norm.bias": weight.data, "model.norm.running_mean": model.norm.running_mean, "optim.state.norm.bias.exp_avg": moment["exp_avg"],
                   "optim.state.norm.bias.step": moment["step"]}
        for key, values in changes.items():
            kept = values.clone()
            bits = values.view(torch.int64 if values.dtype == torch.float64 else torch.int32)
            bits += 1
            after = told(self.folder, model, optimizer, scheduler)
            self.assertEqual([name for name in before[0] if before[0][name] != after[0][name]], [key])
            values.copy_(kept)
        optimizer.param_groups[1]["lr"] *= 1 + 2**-50
        after = told(self.folder, model, optimizer, scheduler)
        self.assertEqual([name for name in before[1] if before[1][name] != after[1][name]], ["optim.param_groups.1.lr"])

    def test_a_parameter_of_no_model(self):
        model, optimizer, _ = trained()
        self.assertRaisesRegex(ValueError, "pass all its models", told, self.folder, model.norm, optimizer)

    def test_flat_parameters_are_refused(self):
        flat = type("FullyShardedDataParallel", (torch.nn.Module,), {})()
        self.assertRaisesRegex(ValueError, "boxes are unknown", told, self.folder, torch.nn.Sequential(flat))

    def test_buffers_that_distributed_data_parallel_overwrites(self):
        """Told by the first rank of its group alone, under their own names."""
        wrapped = type("DistributedDataParallel", (torch.nn.Module,), {})()
        wrapped.module, wrapped.broadcast_buffers, wrapped.process_group = trained()[0], True, None
        for rank, has in ((0, True), (1, False)):
            with unittest.mock.patch("torch.distributed.get_rank", lambda group: rank):
                tensors, _ = told(self.folder, wrapped)
            self.assertEqual("model.norm.running_mean" in tensors, has)
            self.assertIn("model.norm.weight", tensors)

    def test_samples_by_content(self):
        batch = {"x": torch.arange(12.0).reshape(3, 4), "y": [torch.tensor([1, 2, 1]), None], "count": torch.tensor(3)}
        ids = ids_of(batch)
        self.assertEqual(len(set(ids)), 3)
        turned = {"x": batch["x"][[2, 0, 1]], "y": [batch["y"][0][[2, 0, 1]], None], "count": torch.tensor(3)}
        self.assertEqual(ids_of(turned), [ids[2], ids[0], ids[1]])
        batch["y"][0][1] = 5
        self.assertEqual([a == b for a, b in zip(ids, ids_of(batch))], [True, False, True])


RANK = """
import json, os, sys
sys.path[:0] = [%r, %r, %r]
import torch.distributed as dist
from reprise.witness import Witness
from reprise.witness_torch import tell_torch
import train

own = Witness(sys.argv[1], 0, layout=json.loads(sys.argv[2]))
own.checkpoints = sys.argv[1]
dist.init_process_group("gloo")
job = train.Job(own)
job.train()
job.told("save")
tell_torch(own, "save", job.step, job.model, job.optimizer, loop={"train": job.of_loop()})
dist.barrier()
dist.destroy_process_group()
"""


class Sharded(unittest.TestCase):
    def states(self, layout, ranks):
        """Of each rank what it tells by the trainer's own boxes, and by those of its parameters."""
        script = RANK % (str(TREE / "trainers/torch-fsdp2"), str(TREE / "trainers"), str(TREE / "python"))
        port = run_alone.free_port()
        with tempfile.TemporaryDirectory() as folder:
            env = {name: value for name, value in os.environ.items() if not name.startswith("REPRISE_PLAN")}
            env |= dict(WORLD_SIZE=str(ranks), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
            started = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", script, folder, json.dumps(layout)], env=dict(env, RANK=str(rank)))
                       for rank in range(ranks)]
            self.assertEqual([process.wait(300) for process in started], [0] * ranks)
            for rank in range(ranks):
                lines = [json.loads(line) for line in pathlib.Path(folder, f"life0-rank{rank}.jsonl").read_text().splitlines()]
                yield [line for line in lines if line["what"] == "state"]

    def test_boxes_are_those_that_the_trainer_computes(self):
        for layout, ranks in (({"dp": 2, "tp": 2}, 4), ({"dp_replicate": 2, "dp": 2}, 4), ({"dp": 4}, 4)):
            empty = 0
            for by_hand, by_itself in self.states(layout, ranks):
                self.assertEqual(by_hand["objects"], by_itself["objects"])
                for one, other in zip(by_hand["tensors"], by_itself["tensors"]):
                    self.assertEqual(one, other, layout)
                    empty += not one["boxes"]
                self.assertEqual(len(by_hand["tensors"]), len(by_itself["tensors"]))
            self.assertEqual(empty > 0, layout == {"dp": 4})  # five rows on four ranks: 2, 2, 1, 0


if __name__ == "__main__":
    unittest.main()
