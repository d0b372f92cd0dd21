"""torchtitan's own Trainer on the CPU, with a small model and tokens that follow from their position, and what its
ranks do in the tests. Importing this changes torch, so it is for processes of their own."""
import copy
import logging
import os
import pathlib
import sys
from dataclasses import dataclass

import torch

import titan_without_cuda

titan_without_cuda.stand_in()  # also where there is a GPU

from torch.distributed.fsdp import fully_shard
from torchtitan.components.checkpointer import CheckpointManager
from torchtitan.components.dataloader import ParallelAwareDataloader
from torchtitan.components.loss import CrossEntropyLoss
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.components.optimizer import LRSchedulersContainer, default_adamw
from torchtitan.components.tokenizer import BaseTokenizer
from torchtitan.config import ConfigManager, DebugConfig, TrainingConfig
from torchtitan.protocols.model import BaseModel
from torchtitan.protocols.model_spec import ModelSpec
from torchtitan.protocols.module import Module
from torchtitan.trainer import Trainer

import reprise.titan
from states import differences

logging.disable(logging.WARNING)

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


def manager(kind, **options):
    options = {"enable": True, "interval": 2, "last_save_model_only": False, **options}
    if kind == "stock":
        return CheckpointManager.Config(**options)
    return reprise.titan.Manager.Config(async_mode="async" if kind == "async" else "disabled", **options)


def trained(folder, checkpoint, steps):
    one = trainer(folder, checkpoint, steps)
    one.train()
    one.close()
    return content(one)


def resumed(rank, size, folder, saver, loader):
    """Returns where trainers that were stopped after step 3 and started again differ from one that was not."""
    straight = trained(os.path.join(folder, "straight"), manager("ours"), 5)
    stopped = os.path.join(folder, "stopped")
    trained(stopped, manager(saver), 3)
    found = []
    for step in (3, 2):  # saved at the end, and in between
        again = trained(stopped, manager(loader, load_step=step), 5)
        found += [f"{saver} to {loader} from step {step}: {one}" for one in differences(straight, again)]
    return found


def kept(rank, size, folder):
    """Returns what is stored after seven steps, and the step that is loaded if the newest is damaged."""
    trained(folder, manager("async", keep_latest_k=2), 7)
    names = sorted(name for name in os.listdir(os.path.join(folder, "checkpoint")) if name[0] != ".")
    newest = pathlib.Path(folder, "checkpoint", "step-7", f"__{rank}_0.distcp")
    content = newest.read_bytes()
    newest.write_bytes(content[: len(content) // 2] + bytes(len(content) - len(content) // 2))
    if rank == 0:  # as a save that was killed leaves it
        rest = pathlib.Path(folder, "checkpoint", "step-9.saving-0123")
        rest.mkdir()
        (rest / ".metadata").write_bytes(b"")
    again = trainer(folder, manager("ours"), 7)
    found = again.checkpointer.load()
    again.close()
    return names, found, again.step


def converted(rank, size, folder):
    """Returns where weights that were exported with another element type are not those that torchtitan loads."""
    trained(folder, manager("ours", last_save_model_only=True, export_dtype="bfloat16"), 3)
    found = []
    for kind in ("ours", "stock"):
        path = os.path.join(folder, "checkpoint", "step-3")
        one = trainer(os.path.join(folder, kind), manager(kind, initial_load_path=path), 3)
        assert one.checkpointer.load()
        found.append(content(one)["model"])
        one.close()
    assert all(torch.equal(value, value.bfloat16().float()) for value in found[0].values())
    return list(differences(*found))


def seen(rank, size, folder):
    """Returns what is loaded if the newest is in Hugging Face's format, and if rank 1 sees another folder than rank 0."""
    trained(folder, manager("ours"), 4)
    export = pathlib.Path(folder, "checkpoint", "step-9")
    if rank == 0:
        export.mkdir()
        (export / "model.safetensors.index.json").write_text("{}")
    torch.distributed.barrier()
    again = trainer(folder, manager("ours"), 4)
    said, listed = [], os.listdir
    reprise.titan._log.warning = lambda line, *values: said.append(line % values)
    found = [again.checkpointer.load(), again.step, said]
    if rank == 1:
        os.listdir = lambda _: []
    try:
        found.append(again.checkpointer.load())
    except reprise.Error as error:
        found.append((error.code, error.message))
    os.listdir = listed
    again.close()
    return found


def failing(rank, size, folder):
    """Rank 0 fails while a save is in flight, and must close without the others."""
    one = trainer(folder, manager("async"), 9)
    one.checkpointer.save(2)
    try:
        if rank == 0:
            raise ValueError("as a training step might")
    except ValueError:
        one.close()
    return os.path.exists(os.path.join(folder, "checkpoint", "step-2"))


def remote(rank, size):
    """Returns how a folder that is no path is refused, unless nothing is to be saved."""
    parts = dict.fromkeys(["dataloader", "optimizers", "lr_schedulers", "sd_adapter"])
    off = reprise.titan.Manager.Config(folder="gs://bucket/run").build(model_parts=[], states={}, **parts)
    assert not off.save(1) and not off.load()
    off.maybe_wait_for_staging(), off.close()
    try:
        manager("ours", folder="gs://bucket/run").build(model_parts=[], states={}, **parts)
    except reprise.Error as error:
        return error.code, error.file


def configured(rank, size, examples):
    """Returns what torchtitan makes of the example's configuration."""
    sys.path.insert(0, examples)
    words = ["--module", "torchtitan_config", "--config", "llama3_8b", "--checkpoint.interval", "50"]
    found = ConfigManager().parse_args(words).checkpoint
    return type(found) is reprise.titan.Manager.Config, found.interval, found.keep_latest_k, found.async_mode
