"""Defects planted into copies of the scripts: small edits, each of which loses or spoils one thing in a resume."""
from __future__ import annotations

import dataclasses
from typing import Tuple

from jobs import ACCELERATE, AT, DDP, FSDP2, LIGHTNING, MEGATRON, TRAINER, Job


@dataclasses.dataclass(frozen=True)
class Defect:
    """A job whose script is edited.

    Attributes:
        edits: pairs of old and new text; the old text is in the script exactly once.
        names: pattern of what the verdict must name.
        code: of the verdict, or "" if one of several is right.
        verdict: of an edit that is no defect, another one.
    """

    job: Job
    edits: Tuple[Tuple[str, str], ...]
    names: str
    code: str = ""
    verdict: str = "fail"
    core: bool = False


def lines(*texts: str, indent: int = 8) -> str:
    return "".join(" " * indent + text + "\n" for text in texts)


AMP = DDP.but(arguments=DDP.arguments + " --amp")

FSDP2_LOAD = """        set_state_dict(
            self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
        )
"""
FSDP2_NO_OPTIMIZER = (
    ('            "optimizer": optimizer,\n', ""),
    (FSDP2_LOAD, '        set_state_dict(self.model, [], model_state_dict=state["model"], optim_state_dict={})\n'),
)
DDP_LOAD = """        model.module.load_state_dict(checkpoint["model"])
"""
DDP_RNG = """        rng = checkpoint["rng"][rank]
"""
DDP_SKIP = "if epoch == first_epoch and batch < first_batch:"
ACCELERATE_LOAD = """        accelerator.load_state(args.resume_from_checkpoint)
"""
MEGATRON_RNG = """        torch.set_rng_state(state["rng_state"]["torch_rng_state"])
"""

DEFECTS = {
    # FSDP2 and torch.distributed.checkpoint
    "fsdp2-optimizer-not-saved": Defect(FSDP2, FSDP2_NO_OPTIMIZER, r"optim\..*exp_avg|exp_avg|optimizer"),
    "fsdp2-epoch-not-loaded": Defect(
        FSDP2,
        (("        sampler.set_epoch(training.epoch)\n", "        sampler.set_epoch(0 if args.resume else training.epoch)\n"),),
        r"data",
    ),
    "fsdp2-schedule-not-loaded": Defect(
        FSDP2, (('        self.scheduler.load_state_dict(state["scheduler"])\n', ""),), r"sched"
    ),
    "fsdp2-ema-left-out": Defect(
        FSDP2,
        (('            "ema": self.ema.shadow,\n', ""), ('        self.ema.shadow = state["ema"]\n', "")),
        r"ema",
    ),
    "fsdp2-shard-of-another-rank": Defect(
        FSDP2,
        (
            (
                FSDP2_LOAD,
                FSDP2_LOAD
                + lines(
                    "local = self.model.embed.weight.detach().to_local()",
                    "shards = [torch.empty_like(local) for _ in range(dist.get_world_size())]",
                    "dist.all_gather(shards, local)",
                    "local.copy_(shards[dist.get_rank() - 1])",
                ),
            ),
        ),
        r"param.*embed\.weight",
        core=True,
    ),
    "fsdp2-random-state-of-another-rank": Defect(
        FSDP2,
        (
            ('            f"rng_{dist.get_rank()}": torch', '            f"rng_{dist.get_rank() ^ (self.step == 0)}": torch'),
            ('state[f"rng_{dist.get_rank()}"]', 'state[f"rng_{dist.get_rank() ^ 1}"]'),
        ),
        r"rng\.torch",
    ),
    "fsdp2-older-checkpoint": Defect(FSDP2, (("max(done)", "min(done)"),), r"continues from step 5"),
    "fsdp2-buffer-not-persistent": Defect(
        FSDP2,
        (("torch.zeros((), dtype=torch.int64))", "torch.zeros((), dtype=torch.int64), persistent=False)"),),
        r"buffer.*tokens_seen",
    ),
    "fsdp2-rate-halved": Defect(
        FSDP2,
        (
            (
                '        self.scheduler.load_state_dict(state["scheduler"])\n',
                '        self.scheduler.load_state_dict(state["scheduler"])\n'
                '        self.optimizer.param_groups[0]["lr"] *= 0.5\n',
            ),
        ),
        r"\blr\b|group.*lr",
    ),
    # The tensors are written a step later than the counters were read, as a thread does that copies nothing.
    "fsdp2-torn-by-a-late-write": Defect(
        FSDP2,
        (
            (
                '                saving = dcp.async_save({"training": training}, checkpoint_id=target, process_group=saving_group)\n',
                '                late = {"training": training.state_dict()}\n',
            ),
            (
                "            training.step += 1\n",
                "            training.step += 1\n"
                "            if late is not None:\n"
                "                dcp.save(late, checkpoint_id=target)\n"
                "                late = None\n",
            ),
            ("    while training.step < args.steps:\n", "    late = None\n    while training.step < args.steps:\n"),
        ),
        r"as after step",
        "STALE_BYTES",
    ),
    # From four ranks to two
    "fsdp2-at-dp2-optimizer-not-saved": Defect(AT, FSDP2_NO_OPTIMIZER, r"exp_avg", "LOST_OBJECT"),
    "fsdp2-at-dp2-rows-exchanged": Defect(
        AT, ((FSDP2_LOAD, FSDP2_LOAD + lines("with torch.no_grad():", "    self.model.head.weight.copy_(self.model.head.weight.flip(0))")),),
        r"head\.weight", "BIT_MISMATCH",
    ),
    "fsdp2-at-dp2-data-from-the-start": Defect(
        AT, (("        for _ in range(training.batch):\n", "        for _ in range(0 if args.resume else training.batch):\n"),),
        r"takes the data of step", "DATA_STREAM_SKIP",
    ),
    "fsdp2-adam-forgets-its-steps": Defect(
        FSDP2,
        (
            (
                FSDP2_LOAD,
                FSDP2_LOAD + lines('for one in self.optimizer.state.values():', '    one["step"].zero_()'),
            ),
        ),
        r"\bstep\b",
    ),
    # DistributedDataParallel and torch.save
    "ddp-optimizer-not-loaded": Defect(
        DDP, (('        optimizer.load_state_dict(checkpoint["optimizer"])\n', ""),), r"momentum_buffer|optim"
    ),
    "ddp-ends-with-16-as-planned": Defect(
        DDP,
        (("    dist.destroy_process_group()\n", "    dist.destroy_process_group()\n    import sys; sys.exit(16)\n"),),
        r"exit code 16",
        verdict="pass",
    ),
    "ddp-state-does-not-fit": Defect(
        DDP, ((DDP_LOAD, lines("model.module.load_state_dict({})")),), r"ended before its first step: RuntimeError", "LOST_OBJECT"
    ),
    "ddp-file-is-torn": Defect(
        DDP,
        (("        torch.save(state, path + \".tmp\")\n", "        torch.save(state, path + \".tmp\")\n        os.truncate(path + \".tmp\", 900)\n"),),
        r"could not load ./runs/last.pt: ",
        "LOST_OBJECT",
    ),
    "ddp-epochs-counted-from-the-start": Defect(
        DDP, (("sampler.set_epoch(epoch)", "sampler.set_epoch(epoch - first_epoch)"),), r"data", core=True
    ),
    "ddp-random-states-of-rank-0": Defect(DDP, ((DDP_RNG, DDP_RNG.replace("[rank]", "[0]")),), r"rng\."),
    "ddp-python-random-state-lost": Defect(DDP, (('    random.setstate(state["python"])\n', ""),), r"rng\.python"),
    "ddp-numpy-random-state-lost": Defect(DDP, (('    np.random.set_state(state["numpy"])\n', ""),), r"rng\.numpy"),
    "ddp-momentum-zeroed": Defect(
        DDP,
        (
            (
                '        optimizer.load_state_dict(checkpoint["optimizer"])\n',
                '        optimizer.load_state_dict(checkpoint["optimizer"])\n'
                + lines("for one in optimizer.state.values():", '    one["momentum_buffer"].zero_()'),
            ),
        ),
        r"momentum_buffer",
    ),
    "ddp-schedule-stepped-twice": Defect(
        DDP,
        (
            (
                '        scheduler.load_state_dict(checkpoint["scheduler"])\n',
                '        scheduler.load_state_dict(checkpoint["scheduler"])\n        scheduler.step()\n',
            ),
        ),
        r"sched",
    ),
    "ddp-scaler-not-loaded": Defect(AMP, (('        scaler.load_state_dict(checkpoint["scaler"])\n', ""),), r"scaler"),
    "ddp-ema-not-loaded": Defect(
        DDP, (('        ema.load_state_dict(checkpoint["ema"])\n', ""),), r"ema|AveragedModel"
    ),
    "ddp-stale-rank": Defect(
        DDP,
        (
            (
                '        os.replace(path + ".tmp", path)\n',
                '        if os.path.exists(path):\n            os.replace(path, path + ".old")\n        os.replace(path + ".tmp", path)\n',
            ),
            (
                "torch.load(args.resume, map_location",
                'torch.load(args.resume + (".old" if rank == 1 else ""), map_location',
            ),
        ),
        r"different steps|rank 1.*step 3|step 3.*rank 1",
    ),
    "ddp-batch-taken-twice": Defect(DDP, ((DDP_SKIP, DDP_SKIP.replace("first_batch:", "first_batch - 1:")),), r"data"),
    "ddp-batch-skipped": Defect(DDP, ((DDP_SKIP, DDP_SKIP.replace("first_batch:", "first_batch + 1:")),), r"data"),
    "ddp-running-statistics-left-out": Defect(
        DDP,
        (
            (
                DDP_LOAD,
                lines(
                    'kept = {name: value for name, value in checkpoint["model"].items() if "running" not in name}',
                    "model.module.load_state_dict(kept, strict=False)",
                ),
            ),
        ),
        r"buffer.*running_mean|running",
    ),
    "ddp-saved-in-bf16": Defect(
        DDP,
        (
            (
                '            "model": model.module.state_dict(),\n',
                '            "model": {k: v.bfloat16() if v.is_floating_point() else v for k, v in model.module.state_dict().items()},\n',
            ),
        ),
        r"param",
    ),
    "ddp-renamed-key-loaded-in-part": Defect(
        DDP,
        (
            (
                DDP_LOAD,
                lines(
                    'renamed = {name.replace("8.", "head."): value for name, value in checkpoint["model"].items()}',
                    "model.module.load_state_dict(renamed, strict=False)",
                ),
            ),
        ),
        r"param.*8\.(weight|bias)",
    ),
    "ddp-one-tensor-not-loaded": Defect(
        DDP,
        (
            (
                DDP_LOAD,
                lines(
                    'checkpoint["model"]["3.bias"] = model.module[3].bias.detach().clone()',
                    'model.module.load_state_dict(checkpoint["model"])',
                ),
            ),
        ),
        r"param.*3\.bias",
    ),
    # The Trainer of transformers
    "trainer-model-alone-saved": Defect(
        TRAINER,
        (("        save_total_limit=3,\n", "        save_total_limit=3,\n        save_only_model=True,\n"),),
        r"optim|exp_avg",
    ),
    "trainer-data-not-skipped": Defect(
        TRAINER,
        (("        save_total_limit=3,\n", "        save_total_limit=3,\n        ignore_data_skip=True,\n"),),
        r"data",
    ),
    "trainer-random-states-not-loaded": Defect(
        TRAINER,
        (("    trainer.train(resume", "    trainer._load_rng_state = lambda folder: None\n    trainer.train(resume"),),
        r"rng\.torch",
    ),
    "trainer-schedule-not-loaded": Defect(
        TRAINER,
        (
            (
                "    trainer.train(resume",
                "    create = trainer.create_scheduler\n"
                "    load = trainer._load_optimizer_and_scheduler\n"
                "    def load_and_begin_again(folder):\n"
                "        load(folder)\n"
                "        trainer.lr_scheduler.last_epoch = 0\n"
                "    trainer._load_optimizer_and_scheduler = load_and_begin_again if args.resume else load\n"
                "    trainer.train(resume",
            ),
        ),
        r"sched",
    ),
    # Accelerate
    "accelerate-ema-not-registered": Defect(
        ACCELERATE, (("    accelerator.register_for_checkpointing(ema)\n", ""),), r"ema"
    ),
    "accelerate-schedule-not-prepared": Defect(
        ACCELERATE,
        (
            (
                "    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)\n",
                "    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n",
            ),
        ),
        r"sched",
    ),
    "accelerate-batches-not-skipped": Defect(
        ACCELERATE, (("epoch == first_epoch and skip:", "epoch == first_epoch and not skip:"),), r"data"
    ),
    "accelerate-weights-untied": Defect(
        ACCELERATE,
        (
            (
                ACCELERATE_LOAD,
                ACCELERATE_LOAD
                + lines("plain = accelerator.unwrap_model(model)", "plain.head.weight = nn.Parameter(plain.embed.weight.detach().clone())"),
            ),
        ),
        r"head\.weight",
    ),
    "accelerate-second-moment-lost": Defect(
        ACCELERATE,
        (
            (
                ACCELERATE_LOAD,
                ACCELERATE_LOAD
                + lines("for one in optimizer.state.values():", '    one["exp_avg_sq"].zero_()'),
            ),
        ),
        r"exp_avg_sq",
    ),
    "accelerate-loader-without-generator": Defect(
        ACCELERATE,
        (("        generator=torch.Generator().manual_seed(99),  # so that a new epoch takes nothing from the state of dropout\n", ""),),
        r"rng\.torch",
    ),
    # Lightning
    "lightning-random-states-not-saved": Defect(
        LIGHTNING, (("callbacks=[RandomStates(), checkpoints]", "callbacks=[checkpoints]"),), r"rng\.torch"
    ),
    "lightning-buffer-not-persistent": Defect(
        LIGHTNING, (('"seen", torch.zeros(3))', '"seen", torch.zeros(3), persistent=False)'),), r"buffer.*seen"
    ),
    "lightning-tensor-left-out": Defect(
        LIGHTNING,
        (
            (
                "    def configure_optimizers(self):\n",
                "    def on_load_checkpoint(self, checkpoint):\n"
                '        del checkpoint["state_dict"]["head.weight"]\n'
                "        self.strict_loading = False\n\n"
                "    def configure_optimizers(self):\n",
            ),
        ),
        r"param.*head\.weight",
    ),
    # Megatron-Core
    "megatron-random-states-of-replica-0": Defect(
        MEGATRON,
        (
            (
                '            "rng_state": ShardedObject("rng_state", rng, grid, place),\n',
                '            "rng_state": ShardedObject("rng_state", rng, grid[1:], place[1:], replica_id=self.dp_rank),\n',
            ),
        ),
        r"rng\.torch",
    ),
    "megatron-samples-not-counted": Defect(
        MEGATRON,
        (
            (
                '        self.iteration, self.consumed_samples = state["iteration"], state["consumed_samples"]\n',
                '        self.iteration = state["iteration"]\n',
            ),
        ),
        r"data",
    ),
    "megatron-schedule-not-loaded": Defect(
        MEGATRON, (('        self.scheduler.load_state_dict(state["opt_param_scheduler"])\n', ""),), r"sched"
    ),
    "megatron-optimizer-not-loaded": Defect(
        MEGATRON, (('        self.optimizer.load_state_dict(state["optimizer"])\n', ""),), r"optim|exp_avg"
    ),
}
