"""The shortest training script that is a trainer: every rank holds the whole model, saved by torch.distributed.checkpoint."""
import os
import pathlib

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from reprise.witness import Witness
from reprise.witness_torch import summed, tell_torch

dist.init_process_group("gloo")
own = Witness(versions=["torch"])
torch.manual_seed(own.seed)  # the same weights on every rank
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
step = 0


def tell(when):
    """Says what this rank holds: from the model and the optimizer, not from the state that is saved."""
    tell_torch(own, when, step, model, optimizer, loop={"step": step})


def state():
    """What goes into a checkpoint."""
    weights, moments = get_state_dict(model, optimizer)
    return {"model": weights, "optim": moments, "step": step}


def train():
    global step
    samples = range(8 * step + own.rank, 8 * step + 8, own.world)  # this rank's share of eight
    inputs = torch.stack([torch.full((8,), number / 10) for number in samples])
    optimizer.zero_grad()
    loss = model(inputs).square().sum() / 8
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    step += 1
    own.step(step, loss=summed(loss), lr=optimizer.param_groups[0]["lr"], samples=samples)


def save():
    tell("save")
    with own.phase("save.write", step):
        dcp.save(state(), checkpoint_id=f"{own.checkpoints}/step_{step}")
    if own.rank == 0:  # the tracker comes last, at once
        pathlib.Path(own.checkpoints, "new").write_text(f"step_{step}")
        os.replace(f"{own.checkpoints}/new", f"{own.checkpoints}/latest")
    dist.barrier()


def load():
    global step
    read = state()
    dcp.load(read, checkpoint_id=f"{own.checkpoints}/{pathlib.Path(own.checkpoints, 'latest').read_text()}")
    set_state_dict(model, optimizer, model_state_dict=read["model"], optim_state_dict=read["optim"])
    step = read["step"]
    tell("loaded")


for action in own.actions(lambda: tell("end")):
    if action["do"] == "train":
        for _ in range(action["steps"]):
            train()
    elif action["do"] == "save":
        save()
    elif action.get("cold"):
        step = action["step"]  # the control run: only the counters go on, nothing is read
        tell("loaded")
    else:
        load()
dist.barrier()
dist.destroy_process_group()  # torch ends with an abort, now and then, if a group is still there when Python stops
