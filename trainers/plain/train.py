"""The shortest training script that is a trainer: every rank holds the whole model, saved by torch.distributed.checkpoint."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from reprise.witness import Witness

dist.init_process_group("gloo")
own = Witness(versions=["torch"])
torch.manual_seed(own.seed)  # the same weights on every rank
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
step = 0


def momentum():
    return {name: optimizer.state[p].get("momentum_buffer", torch.zeros_like(p)) for name, p in model.named_parameters()}


def state():
    """What goes into a checkpoint."""
    return {"model": model.state_dict(), "momentum": momentum(), "step": step}


def tell(when):
    """Says what this rank holds: from the model and the optimizer, not from the state that is saved."""
    held = [(f"model.{name}", p) for name, p in model.named_parameters()] + [(f"momentum.{name}", m) for name, m in momentum().items()]
    tensors = [own.tensor(key, value.shape, [([0] * value.dim(), value)], holders=own.world) for key, value in held]
    own.state(when, step, tensors, [own.object("step", step)])


def train():
    global step
    samples = range(8 * step + own.rank, 8 * step + 8, own.world)  # this rank's share of eight
    inputs = torch.stack([torch.full((8,), number / 10) for number in samples])
    optimizer.zero_grad()
    loss = model(inputs).square().sum() / 8
    loss.backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    loss = loss.detach()
    dist.all_reduce(loss)  # the loss of the whole job
    optimizer.step()
    step += 1
    own.step(step, loss=loss.item(), lr=0.1, samples=samples)


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
    model.load_state_dict(read["model"])
    step = read["step"]
    for name, p in model.named_parameters():
        optimizer.state[p]["momentum_buffer"] = read["momentum"][name]
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
