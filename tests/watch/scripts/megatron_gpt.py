"""Pretrains a small GPT with Megatron-Core, saved by dist_checkpointing as Megatron-LM's own loop does it.

torchrun --nproc-per-node 2 megatron_gpt.py --tensor-model-parallel-size 2 --train-iters 12
torchrun --nproc-per-node 2 megatron_gpt.py --tensor-model-parallel-size 2 --train-iters 12 --load checkpoints
"""
import argparse
import inspect
import os
import random
from pathlib import Path

import numpy as np
import torch
from megatron.core import dist_checkpointing, parallel_state
from megatron.core.dist_checkpointing.mapping import ShardedObject
from megatron.core.dist_checkpointing.serialization import get_default_save_sharded_strategy
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue
from megatron.core.dist_checkpointing.strategies.fully_parallel import FullyParallelSaveStrategyWrapper
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.transformer_config import TransformerConfig
from torch.distributed.checkpoint import FileSystemReader

VOCAB, LENGTH = 32, 8


def metadata():
    """Anew for each call, which may add to it."""
    return {"chained_optim_avoid_prefix": True, "singleton_local_shards": False}


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--train-iters", type=int, default=12)
    parser.add_argument("--save-interval", type=int, default=4)
    parser.add_argument("--tensor-model-parallel-size", type=int, default=1)
    parser.add_argument("--micro-batch-size", type=int, default=2)
    parser.add_argument("--global-batch-size", type=int, default=8)
    parser.add_argument("--train-samples", type=int, default=40)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--use-distributed-optimizer", action="store_true")
    parser.add_argument("--ckpt-assume-constant-structure", action="store_true")
    parser.add_argument("--async-save", action="store_true")
    parser.add_argument("--distributed-backend", default="gloo")
    parser.add_argument("--save", type=Path, default="checkpoints")
    parser.add_argument("--load", type=Path)
    return parser.parse_args()


class Pretraining:
    def __init__(self, args):
        self.args = args
        torch.distributed.init_process_group(args.distributed_backend)
        parallel_state.initialize_model_parallel(args.tensor_model_parallel_size)
        self.dp_rank = parallel_state.get_data_parallel_rank()
        self.dp_size = parallel_state.get_data_parallel_world_size()
        self.tp_rank = parallel_state.get_tensor_model_parallel_rank()
        random.seed(1234), np.random.seed(1234), torch.manual_seed(1234 + 10 * self.dp_rank)
        config = TransformerConfig(
            num_layers=2, hidden_size=16, ffn_hidden_size=32, num_attention_heads=2, add_bias_linear=False,
            hidden_dropout=args.dropout, attention_dropout=args.dropout, use_cpu_initialization=True,
            tensor_model_parallel_size=args.tensor_model_parallel_size, gradient_accumulation_fusion=False,
            masked_softmax_fusion=False, bias_activation_fusion=False, bias_dropout_fusion=False,
        )
        config.finalize_model_grads_func = finalize_model_grads
        gpt = GPTModel(
            config, get_gpt_layer_local_spec(), vocab_size=VOCAB, max_sequence_length=LENGTH,
            position_embedding_type="rope",
        )
        ddp = DistributedDataParallelConfig(use_distributed_optimizer=args.use_distributed_optimizer)
        self.model = DistributedDataParallel(config, ddp, gpt)
        self.model.broadcast_params()
        self.optimizer = get_megatron_optimizer(
            OptimizerConfig(
                optimizer="adam", lr=args.lr, min_lr=0.0, weight_decay=0.01, clip_grad=0.0,
                use_distributed_optimizer=args.use_distributed_optimizer,
            ),
            [self.model],
        )
        self.scheduler = OptimizerParamScheduler(
            self.optimizer, init_lr=0.0, max_lr=args.lr, min_lr=0.0, lr_warmup_steps=2 * args.global_batch_size,
            lr_decay_steps=args.train_iters * args.global_batch_size, lr_decay_style="cosine", start_wd=0.01,
            end_wd=0.1, wd_incr_steps=args.train_iters * args.global_batch_size, wd_incr_style="linear",
        )
        self.iteration = self.consumed_samples = 0
        self.best = None  # of this rank, kept since the first evaluation
        self.queue, self.strategy = AsyncCallsQueue(), None

    def batches(self):
        """Forever this replica's microbatches; each epoch is shuffled anew."""
        rows = torch.arange(LENGTH + 1) + torch.arange(self.args.train_samples)[:, None] * 3
        micro, at = self.args.micro_batch_size, self.consumed_samples
        while True:
            epoch, place = divmod(at, self.args.train_samples)
            order = torch.randperm(self.args.train_samples, generator=torch.Generator().manual_seed(77 + epoch))
            mine = order[place + self.dp_rank * micro :][:micro]
            tokens = rows[mine] % VOCAB
            yield {"tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}
            at += micro * self.dp_size

    def forward_step(self, iterator, model):
        batch = next(iterator)
        positions = torch.arange(LENGTH).expand_as(batch["tokens"])
        output = model(batch["tokens"], positions, None, labels=batch["labels"])
        return output, lambda out: (out.mean(), {"loss": out.detach().mean()})

    def train_step(self, iterator):
        self.model.zero_grad_buffer()
        self.optimizer.zero_grad()
        losses = get_forward_backward_func()(
            forward_step_func=self.forward_step, data_iterator=iterator, model=[self.model],
            num_microbatches=self.args.global_batch_size // self.args.micro_batch_size // self.dp_size,
            seq_length=LENGTH, micro_batch_size=self.args.micro_batch_size, forward_only=False,
        )
        self.optimizer.step()
        self.scheduler.step(increment=self.args.global_batch_size)
        self.iteration += 1
        self.consumed_samples += self.args.global_batch_size
        return torch.stack([loss["loss"] for loss in losses]).mean().item()

    def state_dict(self, loading):
        model = self.model.module.sharded_state_dict(metadata=metadata())
        rng = {
            "random_rng_state": random.getstate(),
            "np_rng_state": np.random.get_state(),
            "torch_rng_state": torch.get_rng_state(),
        }
        grid, place = (self.dp_size, self.args.tensor_model_parallel_size), (self.dp_rank, self.tp_rank)
        state = {
            "iteration": self.iteration,
            "consumed_samples": self.consumed_samples,
            "model": model,
            "optimizer": self.optimizer.sharded_state_dict(model, is_loading=loading, metadata=metadata()),
            "opt_param_scheduler": self.scheduler.state_dict(),
            "rng_state": ShardedObject("rng_state", rng, grid, place),
        }
        if loading or self.best is not None:
            state["best"] = ShardedObject("best", self.best, grid, place)
        return state

    def save_checkpoint(self):
        folder, cached = self.args.save / f"iter_{self.iteration:07d}", self.args.ckpt_assume_constant_structure
        folder.mkdir(parents=True, exist_ok=True)
        torch.distributed.barrier()
        if self.strategy is None:
            self.strategy = get_default_save_sharded_strategy("torch_dist")
            self.strategy.use_cached_ckpt_structure = cached
            group = parallel_state.get_data_parallel_group(with_context_parallel=True)
            self.strategy = FullyParallelSaveStrategyWrapper(self.strategy, group, cached)
        later = {"async_strategy": "mcore"} if "async_strategy" in inspect.signature(dist_checkpointing.save).parameters else {}
        request = dist_checkpointing.save(
            self.state_dict(loading=False), str(folder), self.strategy, async_sharded_save=self.args.async_save,
            validate_access_integrity=not cached, content_metadata=metadata(), **later,
        )
        iteration = self.iteration

        def publish():
            if torch.distributed.get_rank() == 0:
                (self.args.save / "latest_checkpointed_iteration.txt").write_text(str(iteration))

        if self.args.async_save:
            request.add_finalize_fn(publish)
            self.queue.schedule_async_request(request)
        else:
            publish()

    def load_checkpoint(self):
        iteration = int((self.args.load / "latest_checkpointed_iteration.txt").read_text())
        folder = str(self.args.load / f"iter_{iteration:07d}")
        wanted = self.state_dict(loading=True)
        stored = FileSystemReader(folder).read_metadata().state_dict_metadata
        if not any(key.startswith("best/") for key in stored):
            del wanted["best"]
        state = dist_checkpointing.load(wanted, folder)
        self.model.module.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["opt_param_scheduler"])
        self.iteration, self.consumed_samples = state["iteration"], state["consumed_samples"]
        self.best = state.get("best")
        random.setstate(state["rng_state"]["random_rng_state"])
        np.random.set_state(state["rng_state"]["np_rng_state"])
        torch.set_rng_state(state["rng_state"]["torch_rng_state"])

    def run(self):
        if self.args.load:
            self.load_checkpoint()
        iterator = self.batches()
        while self.iteration < self.args.train_iters:
            loss = self.train_step(iterator)
            rank = torch.distributed.get_rank()
            print(f"rank {rank} step {self.iteration} loss {loss} best {self.best}", flush=True)
            self.queue.maybe_finalize_async_calls(blocking=False)
            if self.iteration > 5:
                self.best = min(loss, self.best or loss)
            if self.iteration % self.args.save_interval == 0:
                self.save_checkpoint()
        self.queue.maybe_finalize_async_calls(blocking=True)
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    Pretraining(get_args()).run()
