"""Processes as users have them: launchers, ranks, workers, spawned and forked ones, and how each may end."""
import os
import signal
import unittest

import torch.distributed.fsdp
from lives import Folder

TRAINER = """
import os, sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps, after=lambda step: None):
    for step in range(1, steps + 1):
        model(torch.full((1, 4), float(step))).sum().backward()
        optimizer.step(); optimizer.zero_grad()
        after(step)
"""

RANKS = """
import os, torch, torch.distributed as dist, torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
# A spawned worker imports this, and must not be a rank once more.
def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    if {sharded}:
        from torch.distributed.fsdp import fully_shard
        mesh = torch.distributed.init_device_mesh("cpu", (2,))
        fully_shard(model, mesh=mesh)
    else:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    data = torch.arange(64.0).reshape(16, 4)
    sampler = DistributedSampler(data, seed=5)
    loader = DataLoader(data, batch_size=2, sampler=sampler, num_workers=2, multiprocessing_context="{start}")
    for step, batch in enumerate(loader, 1):
        model(batch).square().mean().backward(); optimizer.step(); optimizer.zero_grad()
        if step == 2:
            weights, state = get_state_dict(model, optimizer)
            dcp.save({{"model": weights, "optimizer": state}}, checkpoint_id="ck")
        if step == 4: break
    dist.destroy_process_group()
if __name__ == "__main__":
    main()
"""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    def run_script(self, text, *arguments, status=0, **options):
        life = self.folder.run(text, *arguments, **options)
        self.assertEqual(life.status, status, life.output)
        self.assertEqual(life.of("hook_error"), [])
        return life


class Ranks(Case):
    def ranks(self, sharded, start):
        life = self.run_script(RANKS.format(sharded=sharded, start=start), launcher=TORCHRUN)
        self.assertEqual(sorted(r["rank"] for r in life.of("start")), [0, 1])  # no launcher, no worker
        self.assertEqual({r["world"] for r in life.of("start")}, {2})
        self.assertEqual(len(life.steps), 8)
        first = life.of("held", step=2)
        self.assertEqual(len(first), 2)
        return life, [r["names"] for r in first]

    def test_ddp_with_forked_workers(self):
        life, held = self.ranks(False, "fork")
        weights = {name: value for name, value in held[0].items() if name.startswith(("param", "optim"))}
        self.assertEqual(weights, {name: held[1][name] for name in weights})
        self.assertIn("param.0.weight", weights)
        self.assertEqual(life.of("save")[0]["leaves"]["model.0.weight"], held[0]["param.0.weight"])

    def test_buffers_that_ddp_overwrites_are_told_by_its_first_rank_alone(self):
        batch_norm = RANKS.replace("torch.nn.Linear(8, 2)", "torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)")
        for kept, arguments in ((False, "model"), (True, "model, broadcast_buffers=False")):
            script = batch_norm.replace("DistributedDataParallel(model)", f"DistributedDataParallel({arguments})")
            life = self.run_script(script.format(sharded=False, start="fork"), launcher=TORCHRUN)
            told = ["buffer.1.running_mean" in r["names"] for r in life.of("held", step=2)]
            self.assertEqual(told, [True, kept])  # by rank
            said = [r["name"] for r in life.of("not_judged") if "DistributedDataParallel" in r["why"]]
            self.assertEqual(said, [] if kept else ["buffers of rank 1"])

    @unittest.skipUnless(hasattr(torch.distributed.fsdp, "fully_shard"), "fully_shard is elsewhere before torch 2.6")
    def test_fsdp2_with_spawned_workers(self):
        life, held = self.ranks(True, "spawn")
        for names, save in zip(held, life.of("save")):
            self.assertEqual(names["param.0.weight"].split(":")[0], "#float32[4,4]")
            self.assertEqual(save["leaves"]["model.0.weight"], names["param.0.weight"])
            self.assertEqual(save["leaves"]["optimizer.state.1.bias.exp_avg"], names["optim.1.bias.exp_avg"])
        self.assertNotEqual(held[0]["param.0.weight"], held[1]["param.0.weight"])

    def test_one_rank_is_killed(self):
        script = RANKS.format(sharded=False, start="fork")
        life = self.folder.run(script, launcher=TORCHRUN, life="B", kill={"step": 3, "rank": 1})
        self.assertNotEqual(life.status, 0)
        self.assertEqual([r["step"] for r in life.of("killed")], [3])
        self.assertEqual(life.of("end"), [])


class Ends(Case):
    def test_by_an_exception(self):
        life = self.run_script(TRAINER + "train(2); raise ValueError('no more')", status=1, started=True)
        end = life.of("end")[0]
        self.assertEqual((end["exit"], end["error"]), ("exception", "ValueError: no more"))
        self.assertEqual(life.held(2, at="end").keys(), life.held(1).keys())

    def test_by_os_exit(self):
        life = self.run_script(TRAINER + "train(2); os._exit(3)", status=3)
        self.assertEqual((life.of("end")[0]["exit"], life.of("end")[0]["error"]), ("exit", "3"))
        self.assertIsNotNone(life.held(2, at="end"))
        self.assertEqual(self.run_script(TRAINER + "train(2); os._exit(0)").of("end")[0]["exit"], "returned")

    def test_by_sys_exit(self):
        for code, end in (("16", ("exit", "16")), ("", ("returned", None)), ("0", ("returned", None))):
            life = self.run_script(TRAINER + f"import sys; train(2); sys.exit({code})", status=int(code or 0))
            self.assertEqual((life.of("end")[0]["exit"], life.of("end")[0].get("error")), end)
        text = "import sys\ntry: sys.exit(3)\nexcept SystemExit: pass\ntrain(2)"
        self.assertEqual(self.run_script(TRAINER + text).of("end")[0]["exit"], "returned")

    def test_before_the_first_step_because_of_a_load(self):
        text = "torch.save(model.state_dict(), 'a.pt')\nstate = torch.load('a.pt')\n"
        life = self.run_script(TRAINER + text + "raise ValueError('size mismatch')", status=1)
        self.assertEqual([r["what"] for r in life.records], ["start", "save", "saved", "load", "end"])
        self.assertEqual(life.of("end")[0]["error"], "ValueError: size mismatch")
        life = self.run_script(TRAINER + "torch.load('b.pt')", status=1)
        self.assertRegex(life.of("load")[0]["error"], "^FileNotFoundError: ")

    def test_two_stand_ins(self):
        for name in ("one", "two"):
            (self.folder.path / f"{name}.py").write_text(f"print('{name}')")
        files = [str(self.folder.path / f"{name}.py") for name in ("one", "two")]
        life = self.run_script(TRAINER + "train(1)", REPRISE_WATCH_STANDIN=os.pathsep.join(files))
        self.assertEqual((life.output.split()[:2], life.of("start")[0]["stand_ins"]), (["one", "two"], files))

    def test_what_a_function_held_is_told_at_the_end(self):
        life = self.run_script("""
            import torch
            def main():
                model = torch.nn.Linear(4, 2)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
                for i in range(2): model(torch.ones(1, 4)).sum().backward(); optimizer.step(); schedule.step()
            main()
            """)
        self.assertLessEqual({"param.weight", "group.0.0.lr", "sched.StepLR.last_epoch"}, set(life.held(2, at="end")))

    def test_by_a_signal(self):
        life = self.run_script(TRAINER + "train(2); os.kill(os.getpid(), 15)", status=-signal.SIGTERM)
        self.assertEqual((len(life.steps), life.of("end")), (2, []))


class Spawns(Case):
    def test_saves_of_spawned_ranks_are_told(self):
        life = self.run_script(
            """
            import os, torch
            def rank(number):
                os.environ.update(RANK=str(number), WORLD_SIZE="2")
                model = torch.nn.Linear(4, 2)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
                model(torch.ones(1, 4)).sum().backward(); optimizer.step()
                torch.save(model.state_dict(), f"{number}.pt"); torch.load(f"{number}.pt")
            if __name__ == "__main__":
                torch.multiprocessing.spawn(rank, nprocs=2)
            """,
            started=True,
        )
        self.assertEqual(sorted(r["path"] for r in life.of("save")), ["./0.pt", "./1.pt"])
        self.assertEqual(len(life.of("load")), 2)


class Forks(Case):
    def test_a_child_of_a_process_that_trains_is_not_watched(self):
        life = self.run_script(TRAINER + """
def after(step):
    if step == 1:
        child = os.fork()
        if child == 0:
            train(2); torch.save(model.state_dict(), "child.pt"); os._exit(0)
        os.waitpid(child, 0)
train(3, after)
""")
        self.assertEqual([r["step"] for r in life.steps], [1, 2, 3])
        self.assertEqual([r["name"] for r in life.of("not_judged")], ["torch.serialization.save"])
        self.assertEqual(len(life.of("end")), 1)

    def test_children_that_train_are_watched_each(self):
        life = self.run_script(TRAINER + """
import torch.multiprocessing as mp
def rank(number):
    os.environ["RANK"] = str(number)
    train(2)
if __name__ == "__main__":
    mp.start_processes(rank, nprocs=2, start_method=sys.argv[1])
""", "fork")
        self.assertEqual(sorted(r["rank"] for r in life.of("start")), [0, 1])
        self.assertEqual((len(life.steps), len(life.of("end"))), (4, 2))


class Starts(Case):
    def test_a_sitecustomize_of_the_user_runs(self):
        (self.folder.path / "mine").mkdir()
        (self.folder.path / "mine/sitecustomize.py").write_text("import builtins; builtins.mine = 7\n")
        text = TRAINER + "print(mine, [p for p in sys.path if 'watch/site' in p]); train(1)"
        life = self.run_script(text, started=True, PYTHONPATH=str(self.folder.path / "mine"))
        self.assertEqual((life.output, len(life.steps)), ("7 []\n", 1))

    def test_as_a_module(self):
        life = self.run_script(TRAINER + "print(__name__, sys.argv[1:]); train(1)", "a", launcher=("-m", "reprise.watch"))
        self.assertEqual((life.output, len(life.steps)), ("__main__ ['a']\n", 1))

    def test_a_stand_in_runs_when_torch_was_imported(self):
        (self.folder.path / "stand.py").write_text("import torch; torch.stands = 1\n")
        life = self.run_script(TRAINER + "print(torch.stands); train(1)", REPRISE_WATCH_STANDIN="stand.py")
        self.assertEqual((life.output, life.of("start")[0]["stand_ins"]), ("1\n", ["stand.py"]))

    def test_a_wrong_setting_leaves_the_script_alone_and_says_so(self):
        life = self.run_script("print('ran')", started=True, kill={"steps": 3})
        self.assertIn("ran", life.output)
        self.assertIn("this process is not watched", life.output)


class Defects(unittest.TestCase):
    def test_a_defect_of_the_hook_is_a_record_and_the_script_goes_on(self):
        folder = Folder()
        self.addCleanup(folder.close)
        life = folder.run(TRAINER + """
import reprise.watch.held
def fails(*arguments): raise RuntimeError("a defect")
reprise.watch.held.random_states = fails
train(2); print("done")
""")
        self.assertEqual((life.status, life.output), (0, "done\n"))
        self.assertEqual({r["error"] for r in life.of("hook_error")}, {"RuntimeError: a defect"})
        self.assertEqual(len(life.of("end")), 1)


if __name__ == "__main__":
    unittest.main()
