"""Image classifier under DistributedDataParallel, one .pt file a checkpoint.

torchrun --nproc-per-node 2 ddp_torch_save.py --epochs 3
torchrun --nproc-per-node 2 ddp_torch_save.py --epochs 3 --resume runs/last.pt
"""
import argparse
import os
import random

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Pictures(Dataset):
    def __init__(self, count):
        gen = np.random.RandomState(0)
        self.labels = gen.randint(0, 10, count)
        self.images = (gen.randn(count, 3, 8, 8) + self.labels.reshape(-1, 1, 1, 1) / 5).astype("float32")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]), int(self.labels[index])


def make_model():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1, stride=2), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * 4 * 4, 10),
    )


def augment(images):
    """Flips at random, shifts at random, adds some noise."""
    if random.random() < 0.5:
        images = images.flip(-1)
    images = images.roll(int(np.random.randint(-2, 3)), dims=-2)
    return images + 0.05 * torch.randn_like(images)


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def get_rng():
    return {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.get_rng_state()}


def set_rng(state):
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.set_rng_state(state["torch"])


def save(path, step, epoch, batch, model, optimizer, scheduler, scaler, ema):
    rngs = [None] * dist.get_world_size()
    dist.all_gather_object(rngs, get_rng())
    if dist.get_rank() == 0:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        state = {
            "step": step,
            "epoch": epoch,
            "batch": batch,
            "model": model.module.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "scaler": scaler.state_dict(),
            "ema": ema.state_dict(),
            "rng": rngs,
        }
        torch.save(state, path + ".tmp")
        os.replace(path + ".tmp", path)
    dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=75)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--output", default="runs")
    parser.add_argument("--resume", default="")
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    seed_everything(42 + rank)
    dataset = Pictures(args.samples)
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, args.batch_size, sampler=sampler, num_workers=args.workers)
    model = DDP(make_model())
    ema = AveragedModel(model.module, multi_avg_fn=get_ema_multi_avg_fn(0.95), use_buffers=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.epochs * len(loader))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=4, enabled=args.amp)
    step, first_epoch, first_batch, rng = 0, 0, 0, None

    if args.resume:
        checkpoint = torch.load(args.resume, map_location="cpu", weights_only=False)
        model.module.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        scheduler.load_state_dict(checkpoint["scheduler"])
        scaler.load_state_dict(checkpoint["scaler"])
        ema.load_state_dict(checkpoint["ema"])
        step, first_epoch, first_batch = checkpoint["step"], checkpoint["epoch"], checkpoint["batch"]
        rng = checkpoint["rng"][rank]

    for epoch in range(first_epoch, args.epochs):
        sampler.set_epoch(epoch)
        for batch, (images, labels) in enumerate(loader):
            if epoch == first_epoch and batch < first_batch:
                continue
            if rng is not None:
                set_rng(rng)
                rng = None
            with torch.autocast("cpu", torch.bfloat16, enabled=args.amp):
                loss = nn.functional.cross_entropy(model(augment(images)), labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            scheduler.step()
            ema.update_parameters(model.module)
            step += 1
            print(f"rank {rank} epoch {epoch} step {step} loss {loss.item()}", flush=True)
            if step % args.save_every == 0:
                save(
                    f"{args.output}/last.pt", step, epoch, batch + 1,
                    model, optimizer, scheduler, scaler, ema,
                )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
