"""The healthy jobs: a script of scripts/ with its arguments, and what makes it resume."""
from __future__ import annotations

import dataclasses
from typing import Tuple


@dataclasses.dataclass(frozen=True)
class Job:
    """A training command that `reprise watch` runs as it is.

    Attributes:
        script: file of scripts/ or field/.
        arguments: of the script, in every life.
        resume: what the script needs besides to resume.
        ranks: processes under torchrun; 0: the script is started by itself.
        at_ranks, at_arguments: processes and arguments of the life that resumes, if it has another layout.
        kill: step after which a life is killed; 0: the program chooses it.
        options: of `reprise watch` besides.
        environment: of the packages that it needs: "frameworks", or "torch" (with Megatron-Core 0.16.1) or "newest" as
            ./dev interop makes them.
        stand_in: file that is imported first, from the root of the tree.
        verdict: "pass", or what this job, which nobody changed, must get.
        says: patterns that the screen must have.
        core: whether CI runs it, and not only the nightly run.
    """

    script: str
    arguments: str = ""
    resume: str = "--resume"
    ranks: int = 2
    at_ranks: int = 0
    at_arguments: str = ""
    kill: int = 0
    options: str = ""
    environment: str = "frameworks"
    stand_in: str = ""
    verdict: str = "pass"
    says: Tuple[str, ...] = ()
    core: bool = False

    def but(self, **changes) -> Job:
        return dataclasses.replace(self, **changes)


# A save in the middle of the second epoch, one after it, and steps to compare.
FSDP2 = Job("fsdp2_dcp.py", "--steps 14 --save-every 5 --samples 56", kill=12, environment="torch")
DDP = Job("ddp_torch_save.py", "--samples 75", resume="--resume runs/last.pt", kill=8, environment="torch")
# From four ranks to others, with the same batch in all.
AT = FSDP2.but(ranks=4, at_ranks=2, at_arguments=FSDP2.arguments + " --batch-size 8")
TRAINER = Job("hf_trainer.py", ranks=0, kill=13)
ACCELERATE = Job("accelerate_loop.py", resume="--resume_from_checkpoint out/step_8", ranks=0, kill=9)
LIGHTNING = Job("lightning_fit.py", resume="--ckpt_path last", ranks=0, kill=15)
MEGATRON = Job(
    "megatron_gpt.py",
    resume="--load checkpoints",
    kill=10,
    environment="torch",
    stand_in="trainers/megatron/without_cuda.py",
)
TITAN = Job("titan_train.py", resume="", kill=7, stand_in="tests/watch/titan_without_cuda.py")

JOBS = {
    "fsdp2": FSDP2.but(core=True),
    "fsdp2-dp1": FSDP2.but(ranks=1),
    "fsdp2-dp4": FSDP2.but(ranks=4),
    "fsdp2-tp2": FSDP2.but(arguments=FSDP2.arguments + " --tp 2"),
    "fsdp2-dp2-tp2": FSDP2.but(arguments=FSDP2.arguments + " --tp 2", ranks=4),
    "fsdp2-workers": FSDP2.but(arguments=FSDP2.arguments + " --workers 2"),
    "fsdp2-padded": FSDP2.but(arguments=FSDP2.arguments.replace("56", "53")),
    "fsdp2-at-dp1": FSDP2.but(at_ranks=1, at_arguments=FSDP2.arguments + " --batch-size 8", core=True),
    "fsdp2-at-dp2": AT,
    "fsdp2-at-tp2": AT.but(at_ranks=4, at_arguments=FSDP2.arguments + " --tp 2 --batch-size 8"),
    # Its augmentation draws random numbers on each rank, so pictures are others.
    "ddp-at-dp1": DDP.but(
        at_ranks=1, at_arguments=DDP.arguments + " --batch-size 16", verdict="inconclusive", says=("other data",)
    ),
    "ddp": DDP.but(core=True),
    "ddp-dp1": DDP.but(ranks=1, arguments="--samples 37"),
    # DistributedDataParallel makes its buckets anew after the first step of a process: four summands, another order.
    "ddp-dp4": DDP.but(ranks=4, arguments="--samples 149", verdict="inconclusive", says=("another order",)),
    "ddp-kill-chosen": DDP.but(kill=0),
    "ddp-killed-in-a-save": DDP.but(kill=6, options="--kill-in save"),
    "ddp-killed-after-a-save": DDP.but(kill=6, options="--kill-in written"),
    "ddp-four-lives": DDP.but(kill=4, options="--lives 4"),
    "ddp-in-place": DDP.but(arguments=DDP.arguments + " --output {work}/runs", resume="--resume {work}/runs/last.pt", options="--in-place"),
    "ddp-killed-in-no-asynchronous-save": DDP.but(
        options="--kill-in async", verdict="inconclusive", says=("made no asynchronous save",)
    ),
    "fsdp2-killed-while-saving": FSDP2.but(kill=10, options="--kill-in async"),
    "ddp-amp": DDP.but(arguments=DDP.arguments + " --amp"),
    "ddp-workers": DDP.but(arguments=DDP.arguments + " --workers 2"),
    "trainer": TRAINER,
    "trainer-dp2": TRAINER.but(ranks=2, arguments="--samples 46"),
    "trainer-accumulates": TRAINER.but(arguments="--accumulate 2 --samples 88"),
    "trainer-workers": TRAINER.but(arguments="--workers 2"),
    "accelerate": ACCELERATE,
    "accelerate-dp2": ACCELERATE.but(ranks=2),
    "accelerate-workers": ACCELERATE.but(arguments="--workers 2"),
    "lightning-dp2": LIGHTNING.but(arguments="--devices 2 --samples 90"),
    "titan": TITAN,
    "titan-async": TITAN.but(arguments="--async-mode async"),
    "megatron-tp2": MEGATRON.but(arguments="--tensor-model-parallel-size 2"),
    "megatron-in-the-background": MEGATRON.but(arguments="--async-save"),
    "megatron-newest": MEGATRON.but(environment="newest"),
}

# What watching found in released packages, each beside its control: docs/field.md.
BATCHES = Job("field/lightning_batches.py", resume="--ckpt_path c/step=6.ckpt", ranks=0, kill=8)
DROPOUT = Job("field/accelerate_dropout.py", ranks=0, kill=4)
NOISE = Job("field/trainer_noise.py", ranks=0, kill=12)
KEPT = MEGATRON.but(arguments="--ckpt-assume-constant-structure")

FIELD = {
    "field-lightning-max-steps": BATCHES.but(arguments="--max_steps 12", verdict="fail", says=("data",)),
    "field-lightning-max-steps-control": BATCHES,
    "field-lightning-in-an-epoch": BATCHES.but(
        arguments="--every_n_train_steps 4", resume="--ckpt_path c/step=8.ckpt", kill=9, verdict="fail", says=("data",)
    ),
    "field-lightning-workers": LIGHTNING.but(arguments="--workers 2", verdict="fail", says=("data",)),
    "field-lightning-workers-control": LIGHTNING,
    "field-accelerate-dropout": DROPOUT.but(verdict="fail", says=(r"rng\.torch",)),
    "field-accelerate-dropout-control": DROPOUT.but(arguments="--own-generator"),
    "field-trainer-noise": NOISE.but(verdict="fail", says=("data",)),
    "field-trainer-noise-control": NOISE.but(arguments="--save_steps 8"),
    "field-megatron-kept-structure": KEPT.but(verdict="fail", says=("best",)),
    "field-megatron-kept-structure-newest": KEPT.but(environment="newest", verdict="fail", says=("best",)),
    "field-megatron-kept-structure-control": MEGATRON,
}
