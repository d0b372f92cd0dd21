"""What a rank tells of whole tensors and of rows: the same sums, whatever the layout."""
import unittest

import torch
import torch.distributed.tensor

from lives import Folder
from reprise.watch.wholes import rows, wholes

SHARDED = """
import sys, torch, torch.distributed as dist
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
dist.init_process_group("gloo")
mesh = torch.distributed.init_device_mesh("cpu", (dist.get_world_size(),))
torch.manual_seed(3)
model, data = torch.nn.Linear(4, 5), torch.arange(32.0).reshape(8, 4)
model = torch.distributed.tensor.distribute_module(model, mesh, lambda name, module, mesh: [
    module.register_parameter(key, torch.nn.Parameter(distribute_tensor(value.detach(), mesh, [Shard(0)])))
    for key, value in list(module.named_parameters())] and None)
optimizer = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9)
count = 8 // dist.get_world_size()
mine = data[dist.get_rank() * count :][:count]
model(DTensor.from_local(mine, mesh, [Replicate()], run_check=False)).to_local().sum().backward()
optimizer.step()
dist.destroy_process_group()
"""


def whole_of(life, name):
    """Its form and the sum over the parts that ranks told."""
    parts = {}
    for held in life.of("held", step=0, at="forward"):
        form, _, rest = held["wholes"][name].partition("@")
        place, _, digest = rest.rpartition(":")
        parts[place] = int(digest, 16)
    return form, sum(parts.values()) % 2**64, len(parts)


class Wholes(unittest.TestCase):
    def test_forms(self):
        told = wholes({"a": torch.zeros(2, 3), "b": torch.tensor(1.0), "sparse": torch.eye(2).to_sparse()})
        self.assertEqual(set(told), {"a", "b"})
        self.assertRegex(told["a"], r"^float32\[2,3\]@0,0\+2,3:[0-9a-f]{16}$")
        self.assertRegex(told["b"], r"^float32\[\]@\+:[0-9a-f]{16}$")
        self.assertNotEqual(told["a"], wholes({"a": torch.ones(2, 3)})["a"])

    def test_rows_are_told_one_by_one(self):
        batch = torch.arange(6).reshape(3, 2)
        told = rows([batch, torch.zeros(3)], lambda row: str(row.tolist()))
        self.assertEqual(told, ["[0, 1] 0.0", "[2, 3] 0.0", "[4, 5] 0.0"])
        self.assertEqual(rows([torch.tensor(1.0)], str), [])
        self.assertEqual(rows([], str), [])

    @unittest.skipUnless(hasattr(torch.distributed.tensor, "DTensor"), "torch 2.4 can't multiply DTensors on one rank")
    def test_parts_of_two_ranks_make_the_whole_of_one(self):
        folder = Folder()
        self.addCleanup(folder.close)
        lives = []
        for ranks in ("1", "2"):
            launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks)
            life = folder.run(SHARDED, launcher=launcher, REPRISE_WATCH_WHOLE="1")
            self.assertEqual(life.status, 0, life.output)
            self.assertTrue(all(start["whole"] for start in life.of("start")))
            lives.append(life)
        for name in ("param.weight", "param.bias"):
            one, two = whole_of(lives[0], name), whole_of(lives[1], name)
            self.assertEqual((one[:2], one[2], two[2]), (two[:2], 1, 2))
        first = [{row for step in life.steps for row in step["rows"]} for life in lives]
        self.assertEqual(first[0], first[1])
        self.assertEqual(len(first[0]), 8)


if __name__ == "__main__":
    unittest.main()
