"""Megatron-Core's GPT under its rerun machine, saved and loaded by dist_checkpointing as Megatron's training loop does it."""
import argparse
import inspect
import logging
import os
import pathlib
import random
import sys
import warnings

HERE = pathlib.Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "python")]
warnings.filterwarnings("ignore")
import numpy
import torch
import torch.distributed as dist

import without_cuda
from megatron.core import dist_checkpointing, parallel_state, rerun_state_machine
from megatron.core.dist_checkpointing.mapping import ShardedObject
from megatron.core.dist_checkpointing.serialization import get_default_load_sharded_strategy, get_default_save_sharded_strategy
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue
from megatron.core.dist_checkpointing.strategies.fully_parallel import FullyParallelSaveStrategyWrapper
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.rerun_state_machine import RerunDataIterator, RerunDiagnostic, RerunMode, RerunState
from megatron.core.transformer.transformer_config import TransformerConfig

from engine_saves import EngineSaves
from places import EXPERTS, Place, bucket_objects, bucket_squares, bucket_tensors, extra_states, tensors_of
from reprise.witness import Witness, initial
from reprise.witness_torch import summed

BATCH, MICRO, LENGTH, VOCAB = 8, 2, 6, 32
RERUN = "rerun_state_machine"


def config_of(place, moe):
    experts = dict(num_moe_experts=EXPERTS, moe_router_topk=2, moe_ffn_hidden_size=12, moe_token_dispatcher_type="allgather",
                   expert_model_parallel_size=place.ep, moe_router_dtype="fp32") if moe else {}
    return TransformerConfig(
        num_layers=2, hidden_size=8, ffn_hidden_size=12, num_attention_heads=2, gated_linear_unit=True, add_bias_linear=False,
        attention_dropout=0.0, hidden_dropout=0.0, use_cpu_initialization=True, tensor_model_parallel_size=place.tp,
        pipeline_model_parallel_size=place.pp, pipeline_dtype=torch.float32, gradient_accumulation_fusion=False,
        perform_initialization=False, masked_softmax_fusion=False, bias_activation_fusion=False, sequence_parallel=False, **experts)


def microbatches(job):
    """Forever the tokens of this rank's next samples: functions of their ids; the ids are told as samples of the step."""
    while True:
        for begin in range(job.consumed, job.consumed + BATCH, MICRO * job.place.dp):
            ids = range(begin + MICRO * job.place.in_dp, begin + MICRO * (job.place.in_dp + 1))
            rows = [initial("tokens", [1 << 20, LENGTH + 1], [i, 0], [1, LENGTH + 1], scale=0.5) + 0.5 for i in ids]
            tokens = torch.from_numpy((numpy.concatenate(rows) * VOCAB).astype(numpy.int64))
            yield {"ids": list(ids), "tokens": tokens[:, :-1].contiguous(), "labels": tokens[:, 1:].contiguous()}


class Job:
    def __init__(self, witness):
        self.witness, self.place, self.root = witness, Place(witness.layout, witness.rank, witness.world), pathlib.Path(witness.checkpoints)
        self.iteration = self.consumed = self.saves = 0
        self.queue, self.strategy = AsyncCallsQueue(), None
        self.engine = EngineSaves(witness) if witness.options.get("engine", "megatron") == "reprise" else None
        place = self.place
        parallel_state.initialize_model_parallel(place.tp, place.pp, expert_model_parallel_size=place.ep)
        random.seed(witness.seed), numpy.random.seed(witness.seed), torch.manual_seed(witness.seed + place.in_pp * 100)
        moe = witness.options.get("model", "gpt") == "moe"
        self.bucket = witness.options.get("optimizer", "plain") != "plain"
        if moe and self.bucket:
            raise ValueError("where an expert's optimizer state is in the buckets is not worked out here")
        self.config = config_of(place, moe)
        gpt = GPTModel(self.config, get_gpt_layer_local_spec(num_experts=EXPERTS if moe else None, moe_grouped_gemm=False), vocab_size=VOCAB, max_sequence_length=LENGTH,
                       pre_process=place.in_pp == 0, post_process=place.in_pp == place.pp - 1, position_embedding_type="rope")
        self.tensors = tensors_of(gpt, place, self.config.num_layers, VOCAB)
        self.fill()
        self.model = DistributedDataParallel(self.config, DistributedDataParallelConfig(use_distributed_optimizer=self.bucket), gpt)
        self.optimizer = get_megatron_optimizer(OptimizerConfig(optimizer="adam", lr=1 / 64, min_lr=0.0, weight_decay=0.0, clip_grad=0.0, use_distributed_optimizer=self.bucket), [self.model])
        self.schedule = OptimizerParamScheduler(self.optimizer, init_lr=0.0, max_lr=1 / 64, min_lr=0.0, lr_warmup_steps=0, lr_decay_steps=100 * BATCH, lr_decay_style="cosine",
                                                start_wd=0.0, end_wd=0.0, wd_incr_steps=100 * BATCH, wd_incr_style="constant")
        self.config.finalize_model_grads_func = finalize_model_grads
        self.batches = RerunDataIterator(microbatches(self))
        self.machine = self.rerun_machine()

    def fill(self):
        """First content, a function of key and global index; norms are near one."""
        with torch.no_grad():
            for tensor in self.tensors:
                for at, part in tensor.pieces(tensor.parameter):
                    values = torch.from_numpy(initial(tensor.key, tensor.shape, at, tensor.size_of(part), self.witness.seed, 0.25)).reshape(part.shape)
                    part.copy_(values + 1 if "norm" in tensor.key and tensor.key.endswith("weight") else values)

    def rerun_machine(self):
        mode = RerunMode.VALIDATE_RESULTS if self.witness.options.get("rerun", "on") == "on" else RerunMode.DISABLED
        kinds = {"transient": RerunDiagnostic.TRANSIENT_ERROR, "persistent": RerunDiagnostic.PERSISTENT_ERROR, "correct": RerunDiagnostic.CORRECT_RESULT}
        self.fault = self.witness.faults.get("rerun")
        kind = kinds.get(self.fault["kind"] if self.fault else None, RerunDiagnostic.TRANSIENT_ERROR)
        rerun_state_machine.initialize_rerun_state_machine(mode=mode, error_injector=rerun_state_machine.RerunErrorInjector(1, kind))
        return rerun_state_machine.get_rerun_state_machine()

    def forward(self, batches, model):
        batch = next(batches)
        positions = torch.arange(LENGTH).expand(MICRO, LENGTH)
        output = model(batch["tokens"], positions, None, labels=batch["labels"])
        def loss_of(output):
            loss = output.float().mean()
            self.machine.validate_result(loss, lambda value: self.rejected or torch.isnan(value), "rejected loss", fatal=True)
            self.losses.append(loss.item())
            self.ids += batch["ids"] if self.place.in_tp == 0 else []
            # As Megatron's own loss function: the tensor that was validated is returned, and the schedule divides it in place.
            return loss if self.witness.options.get("loss", "shared") == "shared" else loss.clone(), {"loss": loss.detach()}
        return output, loss_of

    def train(self):
        """One iteration as Megatron's train_step has it."""
        mine = self.fault and (self.iteration + 1, self.place.rank) == (self.fault["iteration"], self.fault.get("rank", self.witness.world - 1))
        self.rejected = bool(mine) and self.fault["kind"] == "rejected"  # a rule rejects what is computed; nothing is injected
        self.machine.error_injector.should_inject_errors = bool(mine) and not self.rejected
        self.machine.current_iteration = self.iteration
        injected = False
        while self.machine.should_run_forward_backward(self.batches):
            self.losses, self.ids = [], []
            self.model.zero_grad_buffer()
            self.optimizer.zero_grad()
            get_forward_backward_func()(forward_step_func=self.forward, data_iterator=self.batches, model=[self.model], num_microbatches=BATCH // MICRO // self.place.dp,
                                        seq_length=LENGTH, micro_batch_size=MICRO, forward_only=False)
            injected = injected or self.machine.error_injector.injected_error_type is not None
        if mine and (self.rejected or injected):
            with self.witness.phase("rerun.fault", self.iteration + 1):
                pass
        saves, leaves, code = self.machine.should_checkpoint_and_exit()
        if saves:
            self.save(False, for_rerun=True)
        if leaves:
            self.told("end")
            dist.barrier()
            self.witness.exit(code, f"the rerun machine: {self.machine.state.name}")
        squares = bucket_squares(self.model.module, self.place, self.tensors) if self.bucket else sum(t.squares() / t.holders for t in self.tensors)
        lr = self.schedule.get_lr(self.optimizer.param_groups[0])
        if self.engine:
            self.engine.before_update()
        self.optimizer.step()
        self.schedule.step(increment=BATCH)
        self.iteration, self.consumed = self.iteration + 1, self.consumed + BATCH
        first = self.place.in_tp == 0 and self.place.in_pp == self.place.pp - 1
        loss = summed(sum(self.losses) * MICRO / BATCH if first else 0)
        self.witness.step(self.iteration, loss=loss, lr=lr, norm=summed(squares) ** 0.5, samples=self.ids)

    # What is saved: as generate_state_dict and save_checkpoint of Megatron's training have it.

    def metadata(self):
        kind = self.witness.options.get("optimizer", "plain")
        return {"chained_optim_avoid_prefix": True, "singleton_local_shards": False} | ({} if kind == "plain" else {"distrib_optim_sharding_type": kind})

    def rng_state(self):
        place = self.place
        state = {"random_rng_state": random.getstate(), "np_rng_state": numpy.random.get_state(), "torch_rng_state": torch.get_rng_state(),
                 "cuda_rng_state": torch.cuda.get_rng_state(), "rng_tracker_states": {}}
        return ShardedObject("rng_state", [state], (place.pp, place.tp), (place.in_pp, place.in_tp), replica_id=place.in_dp)

    def late(self, saving):
        """True from the second save of a process on, where the loader's state becomes a part of the job."""
        return self.witness.options.get("late_object", "none") == "dataloader_state" and saving and self.saves > 0

    def dataloader(self):
        return {"consumed": self.consumed, "rank": self.place.in_dp}

    def arguments(self):
        place = self.place
        return argparse.Namespace(tensor_model_parallel_size=place.tp, pipeline_model_parallel_size=place.pp, data_parallel_size=place.dp,
                                  expert_model_parallel_size=place.ep, world_size=self.witness.world)

    def state(self, loading, rerun, rng=True):
        model = self.model.module.sharded_state_dict(metadata=self.metadata())
        state = {"checkpoint_version": 3.0, "iteration": self.iteration, "consumed_samples": self.consumed, "model": model, "args": self.arguments(),
                 "optimizer": self.optimizer.sharded_state_dict(model, is_loading=loading, metadata=self.metadata()),
                 "opt_param_scheduler": self.schedule.state_dict(), RERUN: rerun}
        if rng:
            state["rng_state"] = self.rng_state()
        if self.late(not loading):
            state["dataloader_state"] = ShardedObject("dataloader_state", self.dataloader(), (self.witness.world,), (self.witness.rank,))
        return state

    def told(self, when, batches=None):
        """Tells the witness what the modules, the optimizer, the rerun machine and the loop hold."""
        own, place = self.witness, self.place
        tensors = [own.tensor(key, shape, pieces, holders) for t in self.tensors for key, shape, pieces, holders in t.all(self.optimizer)]
        if self.bucket:
            tensors += [own.tensor(key, shape, pieces, 1, blank=blank) for key, shape, pieces, blank in bucket_tensors(self.model.module, self.optimizer.chained_optimizers[0], place)]
        objects = [own.object("rng_state", self.rng_state().data, f"{place.in_pp}.{place.in_tp}_{place.pp}.{place.tp}")]
        objects += [own.object(key, shard=shard, judged=False) for key, shard in extra_states(self.model.module, place, self.config.num_layers)]
        objects += [own.object(key, shard=shard, judged=False) for key, shard in (bucket_objects(place) if self.bucket else ())]
        # Releases from 0.18 on save an idle machine, too. At its end, a faulted life has what the uninterrupted one can't have.
        idle = self.machine.state == RerunState.NOT_RUNNING_YET
        if not idle or (when != "end" and self.machine.state_dict(batches, "torch_dist") is not None):
            objects.append(own.object("rerun_state_machine_state", self.rerun_fields(batches), f"{own.rank}_{own.world}"))
        if self.late(when == "save"):
            objects.append(own.object("dataloader_state", shard=f"{own.rank}_{own.world}", judged=False))
        steps = {float(state["step"]) for inner in getattr(self.optimizer, "chained_optimizers", [self.optimizer]) for state in inner.optimizer.state.values() if "step" in state}
        counted = {"adam_steps": sorted(steps), "schedule": self.schedule.state_dict(), "progress": [self.iteration, self.consumed]}
        objects += [own.object(key, value, stored=False) for key, value in counted.items()]  # parts of Megatron's common state
        own.state(when, self.iteration, tensors, objects)

    def rerun_fields(self, batches):
        """What the machine of this rank knows, read from the machine."""
        names = ("rerun_requested", "checkpoint_requested", "restart_again_requested", "continue_requested", "failed_validation_call", "initial_result", "suspicious_node",
                 "suspicious_device", "large_value_counts", "max_values")
        kept = [batches.state_dict()] if batches else self.machine.data_iterator_checkpoints
        return {name: getattr(self.machine, name) for name in names} | {"batches": kept, "injected": self.machine.error_injector.injected_error_type}

    def save(self, asynchronous, for_rerun=False):
        self.finalize()
        batches = self.batches if for_rerun else None
        self.told("save", batches)
        if self.engine:
            return self.save_by_engine(self.state(False, self.machine.state_dict(batches, "torch_dist")), at_once=not asynchronous)
        cached = self.witness.options.get("cache", "off") == "on"
        with self.witness.phase("save.begin", self.iteration):
            name, state = f"iter_{self.iteration:07d}", self.state(False, self.machine.state_dict(batches, "torch_dist"))
            self.saves += 1
            if self.witness.rank == 0:
                (self.root / name).mkdir(parents=True, exist_ok=True)
            dist.barrier()
            if self.strategy is None:
                self.strategy = get_default_save_sharded_strategy("torch_dist")
                if cached:
                    self.strategy.use_cached_ckpt_structure = True
                self.tell_phases(self.strategy)
                if self.witness.options.get("fully_parallel", "on") == "on":
                    self.strategy = FullyParallelSaveStrategyWrapper(self.strategy, parallel_state.get_data_parallel_group(with_context_parallel=True), cached)
        own_writer = {"async_strategy": "mcore"} if "async_strategy" in inspect.signature(dist_checkpointing.save).parameters else {}
        request = dist_checkpointing.save(state, str(self.root / name), self.strategy, async_sharded_save=asynchronous, validate_access_integrity=not cached, content_metadata=self.metadata(), **own_writer)
        iteration = self.iteration
        if asynchronous:
            request.add_finalize_fn(lambda: self.publish(iteration))
            self.queue.schedule_async_request(request)
        else:
            self.publish(iteration)

    def save_by_engine(self, state, at_once):
        import reprise.megatron

        self.saves += 1
        self.engine.begin(self.iteration, lambda: reprise.megatron.begin_save(state, self.root, step=self.iteration, content_metadata=self.metadata()), at_once)

    def load_by_engine(self, template, iteration):
        import reprise.megatron

        return reprise.megatron.load(template, self.root, step=iteration)

    def tell_phases(self, strategy):
        """The strategy's writing and its commit are phases; the writing may be in a process of its own."""
        requested = strategy._get_save_and_finalize_callbacks
        def telling(writer, planned, *rest):  # releases from 0.17 on say who writes asynchronously, too
            request, iteration = requested(writer, planned, *rest), self.iteration
            def write(*args, **rest):
                with self.witness.phase("save.write", iteration):
                    return request.async_fn(*args, **rest)
            def commit():
                with self.witness.phase("save.commit", iteration):
                    [done() for done in request.finalize_fns]
            return request._replace(async_fn=write, finalize_fns=[commit])
        strategy._get_save_and_finalize_callbacks = telling

    def publish(self, iteration):
        dist.barrier()
        with self.witness.phase("save.publish", iteration):
            if self.witness.rank == 0:
                (self.root / "latest_checkpointed_iteration.txt").write_text(str(iteration))
        dist.barrier()

    def finalize(self):
        """Waits for the saves that are under way and publishes them."""
        self.queue.maybe_finalize_async_calls(blocking=True)
        if self.engine:
            self.engine.finalize()

    def begin_state(self):
        """The distributed optimizer asks torch's Adam for its step before a load; it has none before its own first step."""
        if self.bucket:
            inner = self.optimizer.chained_optimizers[0].optimizer
            for p in (p for group in inner.param_groups for p in group["params"] if not inner.state[p]):
                inner.state[p] = {"step": torch.tensor(0.0), "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}

    def load(self, cold_at=None):
        if cold_at is not None:
            self.iteration, self.consumed = cold_at, cold_at * BATCH
            self.schedule.step(increment=self.consumed)
            return self.told("loaded")
        self.begin_state()
        with self.witness.phase("load.begin"):
            iteration = int((self.root / "latest_checkpointed_iteration.txt").read_text())
            folder = str(self.root / f"iter_{iteration:07d}")
            common = dist_checkpointing.load_common_state_dict(folder)
            was, now = vars(common["args"]), vars(self.arguments())
            same_grid = all(was[n] == now[n] for n in ("tensor_model_parallel_size", "pipeline_model_parallel_size"))
            same_ranks = same_grid and all(was[n] == now[n] for n in ("data_parallel_size", "world_size"))
            pending = same_ranks and self.machine.validate_state_dict(common.get(RERUN))
            template = self.state(True, self.machine.state_dict(None, "torch_dist", force=True) if pending else None, rng=same_grid)
        with self.witness.phase("load.read", iteration):
            state = self.load_by_engine(template, iteration) if self.engine else dist_checkpointing.load(template, folder, get_default_load_sharded_strategy(folder))
        self.model.module.load_state_dict(state["model"])
        with torch.no_grad():  # with float32 parameters the distributed optimizer copies into views of them
            self.optimizer.load_state_dict(state["optimizer"])
        if self.bucket and self.witness.options.get("adam_step", "lost") == "kept":
            inner = self.optimizer.chained_optimizers[0].optimizer
            for group in inner.param_groups:
                for p in group["params"]:
                    inner.state[p]["step"] = torch.tensor(float(group["step"]))
        self.schedule.load_state_dict(state["opt_param_scheduler"])
        self.iteration, self.consumed = state["iteration"], state["consumed_samples"]
        if pending:
            self.machine.load_state_dict(state[RERUN])
        if same_grid:
            rng = state["rng_state"][0]
            random.setstate(rng["random_rng_state"]), numpy.random.set_state(rng["np_rng_state"]), torch.set_rng_state(rng["torch_rng_state"])
        self.told("loaded")


def main():
    torch.set_num_threads(1)
    logging.getLogger("megatron").setLevel(logging.ERROR)
    witness = Witness(versions=["torch", "megatron-core"], stand_ins=["without_cuda.py"] if without_cuda.STANDS_IN else [])
    without_cuda.PLACE = "cpu" if witness.options.get("place", "same") == "same" else "cpu:0"
    dist.init_process_group("gloo")
    job = Job(witness)
    for action in witness.actions(lambda: job.told("end")):
        if action["do"] == "train":
            for _ in range(action["steps"]):
                job.train()
        elif action["do"] == "save":
            job.save(action.get("async", witness.options.get("async", "none") != "none"))
        elif action["do"] == "load":
            job.load(cold_at=action["step"] if action.get("cold") else None)
        elif action["do"] == "finalize":
            job.finalize()
        else:
            raise ValueError(f"no action {action['do']}")
    dist.barrier()
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(0)  # Megatron's writers keep a process and threads that would be waited for
