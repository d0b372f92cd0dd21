"""Accelerate's recipe for a resume in the middle of an epoch (load_state, then skip_first_batches), with dropout."""
import argparse

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration, set_seed
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--own-generator", action="store_true")
parser.add_argument("--resume", action="store_true")
args = parser.parse_args()
accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
set_seed(3)
generator = torch.Generator().manual_seed(4) if args.own_generator else None
loader = DataLoader(torch.randn(12, 8), 2, shuffle=True, generator=generator)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
if args.resume:
    accelerator.load_state("state")
for step, batch in enumerate(accelerator.skip_first_batches(loader, 3) if args.resume else loader, 3 * args.resume + 1):
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    print(f"step {step} loss {loss.item()}", flush=True)
    if step == 3:
        accelerator.save_state("state")
