"""Jobs of transformers, Lightning and Accelerate with the ready callbacks, judged by `reprise resume-proof`.

    REPRISE=build/release/reprise PYTHONPATH=python PYTHON-WITH-THEM -m unittest discover tests/trainers -p test_callbacks.py

Each job runs through (run a), and in two lives (run b): saved after step 4, ended after step 5, and resumed.
"""
import importlib.util
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

TREE = pathlib.Path(__file__).resolve().parents[2]
REPRISE = os.environ.get("REPRISE", str(TREE / "build/release/reprise"))
sys.path.insert(0, str(TREE / "python"))
os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
warnings.filterwarnings("ignore")

try:
    import torch
except ImportError:
    raise unittest.SkipTest("no torch")

from reprise import callbacks  # noqa: E402
from reprise.witness import Witness  # noqa: E402

STEPS, SAVED, ENDED = 8, 4, 5


def needs(framework):
    return unittest.skipUnless(importlib.util.find_spec(framework), f"{framework} is not installed")


class Rows(torch.utils.data.Dataset):
    """Sequences of numbers below 32: functions of their place."""

    def __len__(self):
        return 16

    def __getitem__(self, index):
        tokens = (torch.arange(8) * (index + 1) + index) % 32
        return {"input_ids": tokens, "labels": tokens}


class Jobs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def judged(self, live, defect=None):
        """Exit code and screen of the judge, where the last life has the defect."""
        name = defect or "healthy"
        folder = lambda run: f"{self.folder}/{name}-{run}"
        live(Witness(folder("a"), 0), folder("saves-a"), None, STEPS)
        live(Witness(folder("b"), 0), folder("saves-b"), None, ENDED)
        live(Witness(folder("b"), 1), folder("saves-b"), defect or "", STEPS)
        ran = subprocess.run([REPRISE, "resume-proof", folder("a"), folder("b")], capture_output=True, text=True, env=dict(os.environ, COLUMNS="200"))
        return ran.returncode, ran.stdout + ran.stderr

    def check(self, live, defects):
        code, screen = self.judged(live)
        self.assertEqual(code, 0, screen)
        for defect, says in defects.items():
            code, screen = self.judged(live, defect)
            self.assertEqual(code, 1, f"{defect}\n{screen}")
            for words in says:
                self.assertIn(words, " ".join(screen.split()), defect)

    @needs("transformers")
    def test_transformers(self):
        from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments, set_seed

        class Ends(TrainerCallback):
            def __init__(self, at, defect):
                self.at, self.defect = at, defect

            def on_train_begin(self, args, state, control, model=None, optimizer=None, **_):
                if self.defect == "weight":
                    model.transformer.ln_f.weight.data *= 2
                if self.defect == "moments":
                    for kept in optimizer.state.values():
                        kept["exp_avg"].zero_()

            def on_step_end(self, args, state, control, **_):
                control.should_training_stop = control.should_training_stop or state.global_step == self.at

        def live(own, saves, defect, ends):
            set_seed(7)
            config = GPT2Config(vocab_size=32, n_positions=8, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0)
            arguments = TrainingArguments(output_dir=saves, max_steps=STEPS, per_device_train_batch_size=2, save_steps=SAVED, logging_steps=1, warmup_steps=2,
                                          use_cpu=True, report_to=[], disable_tqdm=True, log_level="error", seed=7, ignore_data_skip=defect == "data")
            # Restored after on_train_begin: what a life loaded is there at the first forward alone.
            told = callbacks.for_transformers(own, loop=lambda: {"rng": torch.get_rng_state()})
            trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=Rows(), callbacks=[Ends(ends, defect), told])
            trainer.train(resume_from_checkpoint=None if defect is None or defect == "from nothing" else f"{saves}/checkpoint-{SAVED}")

        self.check(live, {"weight": ("BIT_MISMATCH", "model.transformer.ln_f.weight"), "moments": ("BIT_MISMATCH", "exp_avg"),
                          "data": ("DATA_STREAM_SKIP",), "from nothing": ("STALE_BYTES", "step 0")})

    @needs("lightning")
    def test_lightning(self):
        import lightning as L
        from lightning.pytorch.callbacks import Callback, ModelCheckpoint

        class Small(L.LightningModule):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Sequential(torch.nn.Embedding(32, 4), torch.nn.Linear(4, 32))

            def training_step(self, batch, index):
                return torch.nn.functional.cross_entropy(self.inner(batch["input_ids"]).flatten(0, 1), batch["labels"].flatten())

            def configure_optimizers(self):
                optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
                return {"optimizer": optimizer, "lr_scheduler": {"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5), "interval": "step"}}

        class Breaks(Callback):
            def __init__(self, defect):
                self.defect = defect

            def on_train_start(self, trainer, module):
                if self.defect == "schedule":
                    trainer.lr_scheduler_configs[0].scheduler.last_epoch = 0
                if self.defect == "weight":
                    module.inner[1].bias.data += 1

        logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

        def live(own, saves, defect, ends):
            L.seed_everything(3, verbose=False)
            loader = torch.utils.data.DataLoader(Rows(), 4)  # four steps are an epoch
            length = {"max_steps": ends} if defect == "max_steps" else {"max_epochs": 2 if ends == STEPS else 1}  # to the end of an epoch
            trainer = L.Trainer(accelerator="cpu", devices=1, **length, logger=False, enable_progress_bar=False, enable_model_summary=False,
                                callbacks=[Breaks(defect), callbacks.for_lightning(own), ModelCheckpoint(saves, "{step}", save_top_k=-1, save_on_train_epoch_end=True)])
            trainer.fit(Small(), loader, ckpt_path=None if defect is None else f"{saves}/step={SAVED}.ckpt", weights_only=False)

        self.check(live, {"schedule": ("scheduler.last_epoch",), "weight": ("BIT_MISMATCH", "model.inner.1.bias"), "max_steps": ("DATA_STREAM_SKIP",)})

    @needs("accelerate")
    def test_accelerate(self):
        from accelerate import Accelerator
        from accelerate.utils import set_seed

        def live(own, saves, defect, ends):
            set_seed(5)
            accelerator = Accelerator(cpu=True)
            model = torch.nn.Sequential(torch.nn.Embedding(32, 4), torch.nn.Linear(4, 32))
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
            schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1 / (n + 1))
            model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(Rows(), 2), schedule)
            step = 0
            job = callbacks.for_accelerate(own, accelerator, model, optimizer, schedule, at=lambda: step, loop=lambda: {"step": step})
            if defect is not None:
                accelerator.load_state(f"{saves}/{SAVED}")
                step = SAVED
                if defect == "moments":
                    accelerator._optimizers[0].optimizer.state.clear()
                if defect == "schedule":
                    schedule.scheduler.last_epoch += 1
            while step < ends:
                for batch in accelerator.skip_first_batches(loader, 0 if defect == "data" else step % len(loader)):
                    loss = torch.nn.functional.cross_entropy(model(batch["input_ids"]).flatten(0, 1), batch["labels"].flatten())
                    accelerator.backward(loss)
                    optimizer.step()
                    schedule.step()
                    optimizer.zero_grad()
                    step += 1
                    job.step(loss)
                    if step == SAVED:
                        accelerator.save_state(f"{saves}/{step}")
                    if step == ends:
                        break
            job.end()

        self.check(live, {"moments": ("LOST_OBJECT", "optim.state."), "schedule": ("scheduler.last_epoch",), "data": ("DATA_STREAM_SKIP",)})


RANK = """
import os, sys
sys.path[:0] = [%r, %r]
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from reprise import callbacks
from reprise.witness import Witness
from test_callbacks import Rows, SAVED, STEPS

def layers():
    return torch.nn.Sequential(torch.nn.Embedding(32, 4), torch.nn.Flatten(), torch.nn.BatchNorm1d(32), torch.nn.Linear(32, 32))

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = layers()

    def forward(self, input_ids, labels):
        return {"loss": self.layers(input_ids).square().mean()}

def trainer(run, life, ends):
    from transformers import Trainer, TrainingArguments
    set_seed(5)
    arguments = TrainingArguments(output_dir=f"{run}-saves", max_steps=ends, per_device_train_batch_size=2, save_steps=SAVED, use_cpu=True, report_to=[],
                                  disable_tqdm=True, lr_scheduler_type="constant")
    told = callbacks.for_transformers(Witness(run, life))
    Trainer(Model(), arguments, train_dataset=Rows(), callbacks=[told]).train(resume_from_checkpoint=f"{run}-saves/checkpoint-{SAVED}" if life else None)

def live(run, life, ends, wrong):
    set_seed(5)
    own, accelerator, step = Witness(run, life), Accelerator(cpu=True), 0
    model = layers()
    loader = torch.utils.data.DataLoader(Rows(), 2)
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01), loader)
    job = callbacks.for_accelerate(own, accelerator, model, optimizer, at=lambda: step, loop=lambda: {"step": step})
    if life:
        accelerator.load_state(f"{run}-saves")
        step = SAVED
        if wrong and own.rank == 1:
            model.module[3].bias.data[7] += 1
    while step < ends:
        for batch in accelerator.skip_first_batches(loader, step %% len(loader)):
            loss = model(batch["input_ids"]).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            job.step(loss)
            if step == SAVED:
                accelerator.save_state(f"{run}-saves")
            if step == ends:
                break
    job.end()

live("a", 0, STEPS, False)
for run in ("b", "wrong"):
    live(run, 0, SAVED + 1, False)
    live(run, 1, STEPS, run == "wrong")
if sys.argv[1] == "True":
    trainer("trainer-a", 0, STEPS)
    trainer("trainer-b", 0, SAVED)
    trainer("trainer-b", 1, STEPS)
torch.distributed.destroy_process_group()
"""


class Ranks(unittest.TestCase):
    @needs("accelerate")
    def test_distributed_data_parallel(self):
        """Two ranks, whose losses and running means differ; then one of them resumes with another weight."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "train.py").write_text(RANK % (str(TREE / "python"), str(TREE / "tests/trainers")))
            launch = [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", "2"]
            trainer = importlib.util.find_spec("transformers") is not None
            ran = subprocess.run([*launch, "train.py", str(trainer)], cwd=folder, env=dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1"),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(ran.returncode, 0, ran.stdout)
            runs = [("trainer-a", "trainer-b", 0, "pass")] * trainer + [("a", "b", 0, "pass"), ("a", "wrong", 1, "REPLICA_MISMATCH")]
            for uninterrupted, run, exit_code, says in runs:
                ran = subprocess.run([REPRISE, "resume-proof", uninterrupted, run], cwd=folder, capture_output=True, text=True)
                self.assertEqual(ran.returncode, exit_code, ran.stdout)
                self.assertIn(says, ran.stdout)
        self.assertIn("model.3.bias", ran.stdout)


class Unused(unittest.TestCase):
    def test_no_framework_is_imported(self):
        says = "import sys, reprise.callbacks; print([name for name in ('transformers', 'lightning', 'accelerate') if name in sys.modules])"
        ran = subprocess.run([sys.executable, "-c", says], capture_output=True, text=True, env=dict(os.environ, PYTHONPATH=str(TREE / "python")))
        self.assertEqual(ran.stdout, "[]\n", ran.stderr)


if __name__ == "__main__":
    unittest.main()
