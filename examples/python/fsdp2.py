"""Trains under fully_shard, and goes on from the newest checkpoint on any number of ranks:

    torchrun --nproc-per-node 4 fsdp2.py run 20
    torchrun --nproc-per-node 2 fsdp2.py run 40
"""
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.fsdp import fully_shard

import reprise.torch as rt


class Training(Stateful):
    def __init__(self):
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(24, 48), torch.nn.ReLU(), torch.nn.Linear(48, 24))
        fully_shard(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.step = 0

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer, "step": self.step}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.step = state["step"]

    def train(self):
        samples = torch.randn(24, 24, generator=torch.Generator().manual_seed(self.step))
        samples = samples.chunk(dist.get_world_size())[dist.get_rank()].to(self.model[0].weight.device)
        loss = (self.model(samples) - samples).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.step += 1
        dist.all_reduce(loss := loss.detach())
        return loss.item() / dist.get_world_size()


def main(path, last):
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cuda:nccl,cpu:gloo" if torch.cuda.is_available() else "gloo")
    training = Training()
    rt.load({"training": training}, path, missing_ok=True)
    while training.step < last:
        loss = training.train()
        if dist.get_rank() == 0:
            print(f"step {training.step}: loss {loss!r}")
        if training.step % 10 == 0:
            rt.save({"training": training}, path, step=training.step, keep=3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
