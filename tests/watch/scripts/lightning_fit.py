"""A sequence classifier with Lightning.

python lightning_fit.py
python lightning_fit.py --ckpt_path last
"""
import argparse
import random

import lightning as L
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_data(count, length=10):
    generator = torch.Generator().manual_seed(8)
    x = torch.randn(count, length, 6, generator=generator)
    y = (x.mean(1)[:, 0] > 0).long() + (x.std(1)[:, 1] > 1).long()
    return TensorDataset(x, y)


class Classifier(L.LightningModule):
    def __init__(self, width=24, dropout=0.15, lr=5e-3, total_steps=24):
        super().__init__()
        self.save_hyperparameters()
        self.rnn = nn.GRU(6, width, batch_first=True)
        self.norm = nn.BatchNorm1d(width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, 3)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        hidden, _ = self.rnn(x)
        return self.head(self.dropout(self.norm(hidden[:, -1])))

    def training_step(self, batch, index):
        x, y = batch
        self.seen += torch.bincount(y, minlength=3)
        loss = nn.functional.cross_entropy(self(x), y)
        print(f"rank {self.global_rank} step {self.global_step + 1} loss {loss.item()}", flush=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, self.hparams.lr, self.hparams.total_steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}


class RandomStates(Callback):
    """Lightning does not save the random states, so dropout would differ after a restart."""

    def __init__(self):
        self.loaded = None

    def state_dict(self):
        return {"torch": torch.get_rng_state(), "numpy": np.random.get_state(), "python": random.getstate()}

    def load_state_dict(self, state):
        self.loaded = state

    def on_train_batch_start(self, trainer, module, batch, index):
        if self.loaded:
            torch.set_rng_state(self.loaded["torch"])
            np.random.set_state(self.loaded["numpy"])
            random.setstate(self.loaded["python"])
            self.loaded = None


class Data(L.LightningDataModule):
    def __init__(self, args):
        super().__init__()
        self.args = args
        self.data = make_data(args.samples)

    def train_dataloader(self):
        """Each epoch has an order of its own: Lightning tells the sampler which one it is."""
        sampler = DistributedSampler(self.data, self.trainer.world_size, self.trainer.global_rank, seed=100)
        generator = torch.Generator().manual_seed(5)  # else each epoch begins with a draw from the global state
        return DataLoader(
            self.data, self.args.batch_size, sampler=sampler, num_workers=self.args.workers, generator=generator
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max_epochs", type=int, default=4)
    parser.add_argument("--max_steps", type=int, default=-1)
    parser.add_argument("--save_steps", type=int, default=0)  # 0: at the end of each epoch
    parser.add_argument("--samples", type=int, default=48)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--dir", default="lightning")
    parser.add_argument("--ckpt_path", default=None)
    args = parser.parse_args()

    L.seed_everything(21)
    when = {"every_n_train_steps": args.save_steps} if args.save_steps else {"save_on_train_epoch_end": True}
    checkpoints = ModelCheckpoint(args.dir, "{step}", save_top_k=-1, save_last=True, **when)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=args.devices,
        max_steps=args.max_steps,
        max_epochs=args.max_epochs,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
        callbacks=[RandomStates(), checkpoints],
    )
    model = Classifier()
    trainer.fit(model, datamodule=Data(args), ckpt_path=args.ckpt_path, weights_only=False)


if __name__ == "__main__":
    main()
