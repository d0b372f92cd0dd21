"""Which batches Lightning takes after a restart: `--ckpt_path 'c/step=6.ckpt'` in a job of three batches an epoch."""
import argparse

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset


class Line(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(1, 1)

    def training_step(self, batch, index):
        print(f"epoch {self.current_epoch} batch {index} data {batch[0].flatten().tolist()}", flush=True)
        return self.line(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.01)


parser = argparse.ArgumentParser()
parser.add_argument("--max_steps", type=int, default=-1)
parser.add_argument("--max_epochs", type=int, default=4)
parser.add_argument("--every_n_train_steps", type=int)  # by default at the end of each epoch
parser.add_argument("--ckpt_path")
args = parser.parse_args()
L.seed_everything(1)
saves = ModelCheckpoint("c", "{step}", save_top_k=-1, every_n_train_steps=args.every_n_train_steps)
trainer = L.Trainer(
    accelerator="cpu", max_steps=args.max_steps, max_epochs=args.max_epochs, callbacks=[saves], logger=False,
    enable_progress_bar=False, enable_model_summary=False,
)
trainer.fit(Line(), DataLoader(TensorDataset(torch.arange(6.0)[:, None]), 2), ckpt_path=args.ckpt_path)
