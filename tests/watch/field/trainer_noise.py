"""The Trainer of transformers with data that draws noise, as augmentation does, resumed in the middle of an epoch."""
import argparse

import torch
from transformers import Trainer, TrainingArguments, set_seed


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        return {"x": torch.full((4,), float(index)) + torch.randn(4)}


class Line(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(4, 1)

    def forward(self, x):
        return {"loss": self.line(x).square().mean()}


parser = argparse.ArgumentParser()
parser.add_argument("--save_steps", type=int, default=5)  # with 8 there is a save at the end of an epoch
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()
set_seed(2)
training = TrainingArguments(
    "out", max_steps=16, save_steps=args.save_steps, per_device_train_batch_size=2, learning_rate=1e-3, use_cpu=True,
    report_to=[], disable_tqdm=True, logging_steps=1, remove_unused_columns=False,
)
Trainer(Line(), training, train_dataset=Noisy()).train(resume_from_checkpoint=args.resume)
