"""A language model with tied embeddings, trained by a loop of our own under Accelerate.

accelerate launch --cpu accelerate_loop.py
accelerate launch --cpu accelerate_loop.py --resume_from_checkpoint out/step_8
"""
import argparse
import math
import os

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, ProjectConfiguration, set_seed
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, Dataset


class Text(Dataset):
    def __init__(self, count, length=16, vocab=40):
        generator = torch.Generator().manual_seed(2)
        step = torch.randint(1, 5, (count, 1), generator=generator)
        self.rows = (step * torch.arange(length + 1) + torch.arange(count)[:, None]) % vocab

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class TinyLM(nn.Module):
    def __init__(self, vocab=40, width=32, dropout=0.1):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        layer = nn.TransformerEncoderLayer(width, 2, 64, dropout, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)
        self.head.weight = self.embed.weight  # tied

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        return self.head(self.norm(self.encoder(self.embed(tokens), mask, is_causal=True)))


class Ema:
    """Saved and loaded by Accelerate, since it is registered for checkpointing."""

    def __init__(self, model, decay):
        self.decay, self.updates = decay, 0
        self.values = [p.detach().clone() for p in model.parameters()]

    def update(self, model):
        self.updates += 1
        for value, p in zip(self.values, model.parameters()):
            value.mul_(self.decay).add_(p.detach(), alpha=1 - self.decay)

    def state_dict(self):
        return {"decay": self.decay, "updates": self.updates, "values": self.values}

    def load_state_dict(self, state):
        self.decay, self.updates, self.values = state["decay"], state["updates"], state["values"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num_epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=42)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--checkpointing_steps", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--output_dir", default="out")
    parser.add_argument("--resume_from_checkpoint", default=None)
    args = parser.parse_args()

    accelerator = Accelerator(
        cpu=True,
        project_config=ProjectConfiguration(args.output_dir),
        dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True),
    )
    set_seed(1234)
    loader = DataLoader(
        Text(args.samples),
        args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        generator=torch.Generator().manual_seed(99),  # so that a new epoch takes nothing from the state of dropout
    )
    model = TinyLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95))
    total = args.num_epochs * math.ceil(args.samples / args.batch_size / accelerator.num_processes)
    scheduler = LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / 4) * max(0.1, 1 - n / total))
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    ema = Ema(accelerator.unwrap_model(model), decay=0.9)
    accelerator.register_for_checkpointing(ema)

    step = first_epoch = skip = 0
    if args.resume_from_checkpoint:
        accelerator.load_state(args.resume_from_checkpoint)
        step = int(args.resume_from_checkpoint.rsplit("_", 1)[1])
        first_epoch, skip = divmod(step, len(loader))

    model.train()
    for epoch in range(first_epoch, args.num_epochs):
        loader.set_epoch(epoch)
        batches = loader
        if args.resume_from_checkpoint and epoch == first_epoch and skip:
            batches = accelerator.skip_first_batches(loader, skip)
        for tokens in batches:
            with accelerator.accumulate(model):
                logits = model(tokens[:, :-1])
                loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            ema.update(accelerator.unwrap_model(model))
            step += 1
            print(f"rank {accelerator.process_index} epoch {epoch} step {step} loss {loss.item()}", flush=True)
            if step % args.checkpointing_steps == 0:
                accelerator.save_state(os.path.join(args.output_dir, f"step_{step}"))
    accelerator.end_training()


if __name__ == "__main__":
    main()
