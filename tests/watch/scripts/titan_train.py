"""torchtitan's trainer with a model, a tokenizer and a data set of our own; resumes by itself if there is a checkpoint.

torchrun --nproc-per-node 2 titan_train.py
"""
import argparse
from dataclasses import dataclass

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torchtitan.components.checkpointer import CheckpointManager
from torchtitan.components.dataloader import ParallelAwareDataloader
from torchtitan.components.loss import CrossEntropyLoss
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.config import DebugConfig, TrainingConfig
from torchtitan.protocols.model import BaseModel
from torchtitan.protocols.model_spec import ModelSpec
from torchtitan.protocols.module import Module
from torchtitan.trainer import Trainer

VOCAB, WIDTH, LENGTH = 40, 16, 8


class Weights(Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape))

    def _init_self_parameters(self):
        nn.init.normal_(self.weight, std=0.3)


class Bigrams(BaseModel):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseModel.Config):
        def update_from_config(self, *, config, **kwargs):
            pass

        def get_nparams_and_flops(self, model, seq_len):
            return sum(p.numel() for p in model.parameters()), 1

    def __init__(self, config):
        super().__init__()
        self.embed, self.middle, self.head = Weights(VOCAB, WIDTH), Weights(WIDTH, WIDTH), Weights(VOCAB, WIDTH)

    def forward(self, tokens, **_):
        x = nn.functional.embedding(tokens, self.embed.weight)
        return torch.tanh(x @ self.middle.weight) @ self.head.weight.t()


class Numbers(BaseTokenizer):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseTokenizer.Config):
        pass

    def __init__(self, config, **_):
        super().__init__()

    def encode(self, *args, **kwargs):
        return []

    def decode(self, *args, **kwargs):
        return ""

    def get_vocab_size(self):
        return VOCAB


class Counting(torch.utils.data.IterableDataset):
    """Rows that count, shuffled anew in each epoch; knows where it is."""

    def __init__(self, rank, world, rows=18):
        self.rank, self.world, self.rows, self.epoch, self.at = rank, world, rows, 0, 0

    def __iter__(self):
        while True:
            order = torch.randperm(self.rows, generator=torch.Generator().manual_seed(self.epoch))
            mine = order[self.rank :: self.world]
            while self.at < len(mine):
                row = (torch.arange(LENGTH + 1) * 3 + mine[self.at]) % VOCAB
                self.at += 1
                yield {"input": row[:-1]}, row[1:]
            self.epoch, self.at = self.epoch + 1, 0

    def state_dict(self):
        return {"epoch": self.epoch, "at": self.at}

    def load_state_dict(self, state):
        self.epoch, self.at = state["epoch"], state["at"]


class Loader(ParallelAwareDataloader):
    @dataclass(kw_only=True, slots=True)
    class Config(ParallelAwareDataloader.Config):
        pass

    def __init__(self, config, *, dp_world_size, dp_rank, local_batch_size, **_):
        super().__init__(Counting(dp_rank, dp_world_size), dp_rank, dp_world_size, batch_size=local_batch_size)


def parallelize(model, *, parallel_dims, **_):
    fully_shard(model, mesh=parallel_dims.get_mesh("dp_shard"))
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--interval", type=int, default=3)
    parser.add_argument("--async-mode", default="disabled")
    parser.add_argument("--out", default="titan")
    args = parser.parse_args()
    optimizer = default_adamw(lr=0.02)
    optimizer.implementation = "for-loop"
    trainer = Trainer.Config(
        model_spec=ModelSpec("bigrams", "bigrams", Bigrams.Config(), parallelize, None, None, None),
        dump_folder=args.out,
        loss=CrossEntropyLoss.Config(global_vocab_size=VOCAB),
        tokenizer=Numbers.Config(),
        optimizer=optimizer,
        lr_scheduler=LRSchedulersContainer.Config(warmup_steps=3, total_steps=args.steps),
        training=TrainingConfig(
            local_batch_size=2, seq_len=LENGTH, steps=args.steps, disable_cuda_graphs=True, mixed_precision_param="float32"
        ),
        dataloader=Loader.Config(),
        metrics=MetricsProcessor.Config(log_freq=1),
        checkpoint=CheckpointManager.Config(
            enable=True, interval=args.interval, last_save_model_only=False, async_mode=args.async_mode
        ),
        debug=DebugConfig(seed=7),
    ).build()
    trainer.train()
    trainer.close()


if __name__ == "__main__":
    main()
