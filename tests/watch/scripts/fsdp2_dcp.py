"""Trains a small language model with FSDP2, saved in the background by torch.distributed.checkpoint.

    torchrun --nproc-per-node 2 fsdp2_dcp.py --steps 12
    torchrun --nproc-per-node 2 fsdp2_dcp.py --steps 12 --resume
"""
import argparse
import pathlib

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

VOCAB, WIDTH, LENGTH = 64, 32, 12


class Block(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        mixed = x.cumsum(1) / torch.arange(1, x.shape[1] + 1).view(1, -1, 1)
        return x + self.dropout(self.down(F.gelu(self.up(self.norm(mixed)))))


class Model(nn.Module):
    def __init__(self, layers, dropout):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, WIDTH)
        self.layers = nn.ModuleList(Block(dropout) for _ in range(layers))
        self.head = nn.Linear(WIDTH, VOCAB)
        self.register_buffer("tokens_seen", torch.zeros((), dtype=torch.int64))

    def forward(self, tokens):
        if self.training:
            self.tokens_seen += tokens.numel()
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Ema:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name].lerp_(p, 1 - self.decay)


class Training(Stateful):
    def __init__(self, model, optimizer, scheduler, ema):
        self.model, self.optimizer, self.scheduler, self.ema = model, optimizer, scheduler, ema
        self.step = self.epoch = self.batch = 0
        self.rng = None

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {
            "model": model,
            "optimizer": optimizer,
            "scheduler": self.scheduler.state_dict(),
            "ema": self.ema.shadow,
            "progress": {"step": self.step, "epoch": self.epoch, "batch": self.batch},
            f"rng_{dist.get_rank()}": torch.get_rng_state(),
        }

    def load_state_dict(self, state):
        set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
        self.scheduler.load_state_dict(state["scheduler"])
        self.ema.shadow = state["ema"]
        self.step, self.epoch, self.batch = (state["progress"][k] for k in ("step", "epoch", "batch"))
        self.rng = state[f"rng_{dist.get_rank()}"]


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tp", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default="checkpoints")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args()


def main():
    args = parse()
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size() // args.tp, args.tp), mesh_dim_names=("dp", "tp"))
    dp_rank, dp_size = mesh["dp"].get_local_rank(), mesh["dp"].size()

    torch.manual_seed(17)
    model = Model(args.layers, args.dropout)
    for block in model.layers:
        if args.tp > 1:
            parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)
    training = Training(model, optimizer, scheduler, Ema(model))

    tokens = torch.randint(VOCAB, (args.samples, LENGTH + 1), generator=torch.Generator().manual_seed(5))
    dataset = TensorDataset(tokens)
    sampler = DistributedSampler(dataset, dp_size, dp_rank, shuffle=True, seed=3)
    loader = DataLoader(dataset, args.batch_size, sampler=sampler, num_workers=args.workers)
    torch.manual_seed(1000 + dp_rank)  # dropout differs between the replicas

    if args.resume:
        done = [int(p.parent.name[5:]) for p in args.out.glob("step-*/.metadata")]
        dcp.load({"training": training}, checkpoint_id=args.out / f"step-{max(done)}")

    saving, saving_group = None, dist.new_group(backend="gloo")  # saves run beside the training's own collectives
    while training.step < args.steps:
        sampler.set_epoch(training.epoch)
        batches = iter(loader)
        for _ in range(training.batch):
            next(batches)
        if training.rng is not None:
            torch.set_rng_state(training.rng)
            training.rng = None
        for (batch,) in batches:
            logits = model(batch[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            training.ema.update(model)
            training.step += 1
            training.batch += 1
            print(f"rank {dist.get_rank()} step {training.step} loss {loss.item()}", flush=True)
            if training.step % args.save_every == 0:
                if saving is not None:
                    saving.result()
                target = args.out / f"step-{training.step}"
                saving = dcp.async_save({"training": training}, checkpoint_id=target, process_group=saving_group)
            if training.step == args.steps:
                break
        else:
            training.epoch += 1
            training.batch = 0
    if saving is not None:
        saving.result()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
