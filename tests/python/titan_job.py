"""torchtitan's own Trainer on the CPU, with a small model and tokens that follow from their position."""
import copy
import types
from dataclasses import dataclass

import torch
import torch._utils

torch._utils._get_available_device_type = lambda: "cpu"  # before torchtitan asks
for name, answer in {
    "get_device_name": "CPU",
    "get_device_properties": types.SimpleNamespace(total_memory=1 << 30),
    "memory_stats": {},
    "reset_peak_memory_stats": None,
    "empty_cache": None,
}.items():
    if not hasattr(torch.cpu, name):
        setattr(torch.cpu, name, lambda *_, answer=answer: answer)

from torch.distributed.fsdp import fully_shard
from torchtitan.components.dataloader import ParallelAwareDataloader
from torchtitan.components.loss import CrossEntropyLoss
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.config import DebugConfig, TrainingConfig
from torchtitan.distributed import utils as dist_utils
from torchtitan.protocols.model import BaseModel
from torchtitan.protocols.model_spec import ModelSpec
from torchtitan.protocols.module import Module
from torchtitan.trainer import Trainer

dist_utils.set_pg_timeouts = lambda **_: None  # its barrier names a device

VOCAB, WIDTH, LENGTH = 32, 7, 6


class Weights(Module):
    def __init__(self, *shape):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(shape))

    def _init_self_parameters(self):
        torch.nn.init.normal_(self.weight, std=0.5)


class Small(BaseModel):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseModel.Config):
        def update_from_config(self, *, config, **kwargs):
            pass

        def get_nparams_and_flops(self, model, seq_len):
            return sum(p.numel() for p in model.parameters()), 1

    def __init__(self, config):
        super().__init__()
        self.tokens, self.hidden, self.head = Weights(VOCAB, WIDTH), Weights(WIDTH, WIDTH), Weights(VOCAB, WIDTH)

    def forward(self, tokens, **_):
        before = torch.nn.functional.embedding(tokens, self.tokens.weight)
        return torch.tanh(before @ self.hidden.weight) @ self.head.weight.t()


class Tokenizer(BaseTokenizer):
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


class Tokens(torch.utils.data.IterableDataset):
    def __init__(self, rank):
        self.rank, self.at = rank, 0

    def __iter__(self):
        while True:
            generator = torch.Generator().manual_seed(1000 * self.rank + self.at)
            self.at += 1
            row = torch.randint(0, VOCAB, (LENGTH + 1,), generator=generator)
            yield {"input": row[:-1]}, row[1:]

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Loader(ParallelAwareDataloader):
    @dataclass(kw_only=True, slots=True)
    class Config(ParallelAwareDataloader.Config):
        pass

    def __init__(self, config, *, dp_world_size, dp_rank, local_batch_size, **_):
        super().__init__(Tokens(dp_rank), dp_rank, dp_world_size, batch_size=local_batch_size)


def parallelized(model, *, parallel_dims, **_):
    fully_shard(model, mesh=parallel_dims.get_mesh("dp_shard"))
    return model


def trainer(folder, checkpoint, steps):
    spec = ModelSpec("small", "small", Small.Config(), parallelized, None, None, None)
    optimizer = default_adamw(lr=0.05)
    optimizer.implementation = "for-loop"
    return Trainer.Config(
        model_spec=spec,
        dump_folder=folder,
        loss=CrossEntropyLoss.Config(global_vocab_size=VOCAB),
        tokenizer=Tokenizer.Config(),
        optimizer=optimizer,
        lr_scheduler=LRSchedulersContainer.Config(warmup_steps=2, total_steps=10),
        training=TrainingConfig(
            local_batch_size=2, seq_len=LENGTH, steps=steps, disable_cuda_graphs=True, mixed_precision_param="float32"
        ),
        dataloader=Loader.Config(),
        metrics=MetricsProcessor.Config(log_freq=1000),
        checkpoint=checkpoint,
        debug=DebugConfig(seed=7),
    ).build()


def content(trainer):
    """What the trainer holds; tensors are copied."""
    return {
        "model": {name: p.detach().to_local().clone() for name, p in trainer.model_parts[0].named_parameters()},
        "optimizer": {
            key: value.to_local().clone() if hasattr(value, "to_local") else copy.copy(value)
            for key, value in trainer.optimizers.state_dict().items()
        },
        "schedule": trainer.lr_schedulers.state_dict(),
        "loader": trainer.dataloader.state_dict(),
        "trainer": trainer.state_dict(),
    }
