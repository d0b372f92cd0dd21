"""What the hook tells of saves and loads of each kind, and where a life ends that is told to."""
import importlib.util
import os
import signal
import unittest

from lives import HERE, Folder

TRAINER = """
import io, os, pathlib, pickle, sys, threading, torch
import torch.distributed as dist, torch.distributed.checkpoint as dcp
torch.manual_seed(0)
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

def alone():
    dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/meet", rank=0, world_size=1)

def train(steps, after=lambda step: None):
    for step in range(1, steps + 1):
        model(torch.full((1, 4), float(step))).sum().backward()
        optimizer.step(); optimizer.zero_grad()
        after(step)
"""


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = Folder()
        self.addCleanup(self.folder.close)

    def run_script(self, text, *arguments, status=0, **options):
        life = self.folder.run(TRAINER + text, *arguments, **options)
        self.assertEqual(life.status, status, life.output)
        self.assertEqual(life.of("hook_error"), [])
        return life


class Moves(Case):
    def handed(self, life, name, leaf):
        """The values of a leaf in each save, and what was held then."""
        saves = life.of("save")
        return [s["leaves"][leaf] for s in saves], [life.held(s["step"])[name] for s in saves]

    def test_torch_save_and_load(self):
        life = self.run_script("""
train(4, lambda step: torch.save({"model": model.state_dict(), "step": step, "note": None}, f"{step}.pt") if step % 2 else None)
""")
        self.assertEqual([(s["step"], s["path"], s["by"], s["asynchronous"]) for s in life.of("save")],
                         [(1, "./1.pt", "torch.save", False), (3, "./3.pt", "torch.save", False)])
        self.assertEqual([s["path"] for s in life.of("saved")], ["./1.pt", "./3.pt"])
        handed, held = self.handed(life, "param.weight", "model.weight")
        self.assertEqual(handed, held)
        self.assertEqual([s["leaves"]["step"] for s in life.of("save")], ["=1", "=3"])
        again = self.run_script("""
model.load_state_dict(torch.load("3.pt")["model"])
train(1)
""", life="C")
        self.assertEqual([(r["step"], r["path"]) for r in again.of("load")], [(0, "./3.pt")])
        self.assertEqual(again.of("held")[0]["why"], "first")
        self.assertEqual(again.of("load")[0]["leaves"]["model.weight"], handed[1])
        self.assertEqual(again.held(0)["param.weight"], held[1])

    def test_dcp_with_objects_that_give_their_state(self):
        life = self.run_script("""
from torch.distributed.checkpoint.state_dict import get_state_dict
asked = []
class App:
    def state_dict(self):
        asked.append(1)
        weights, state = get_state_dict(model, optimizer)
        return {"model": weights, "optimizer": state}
    def load_state_dict(self, state): pass
def after(step):
    if step == 2: dcp.save({"app": App(), "step": step}, checkpoint_id="ck")
train(3, after)
assert len(asked) == 1, asked
dcp.load({"app": App()}, checkpoint_id="ck")
assert len(asked) == 2, asked
train(1)
""")
        self.assertEqual([r["step"] for r in life.steps], [1, 2, 3, 4])
        handed, held = self.handed(life, "param.weight", "app.model.weight")
        self.assertEqual(handed, held)
        self.assertEqual([(s["by"], s["path"]) for s in life.of("save") + life.of("load")], [("dcp.save", "./ck"), ("dcp.load", "./ck")])
        self.assertEqual(life.of("load")[0]["leaves"]["app.model.weight"], handed[0])
        self.assertEqual(len(life.of("saved")), 1)

    def test_an_asynchronous_save_is_saved_when_it_is_complete(self):
        life = self.run_script("""
alone()
saves = []
def after(step):
    if step == 2: saves.append(dcp.async_save({"model": model.state_dict()}, checkpoint_id="ck"))
    if step == 3: saves[0].result()
train(4, after)
""")
        self.assertEqual([(s["by"], s["step"], s["asynchronous"]) for s in life.of("save")], [("dcp.async_save", 2, True)])
        self.assertEqual([s["path"] for s in life.of("saved")], ["./ck"])
        order = [r["what"] for r in life.records]
        self.assertLess(order.index("save"), order.index("saved"))
        handed, held = self.handed(life, "param.weight", "model.weight")
        self.assertEqual(handed, held)

    def test_a_save_in_a_thread_of_the_script(self):
        life = self.run_script("""
def after(step):
    if step == 2:
        copy = {k: v.clone() for k, v in model.state_dict().items()}
        thread = threading.Thread(target=torch.save, args=(copy, "ck.pt")); thread.start(); thread.join()
train(3, after)
""")
        self.assertEqual([(s["thread"], s["step"]) for s in life.of("save")], [("other", 2)])
        self.assertEqual(life.of("save")[0]["leaves"]["weight"], life.held(2)["param.weight"])

    def test_unpickling_and_whole_models(self):
        """torch.load runs within pickle.loads, and a model that is pickled must not take the hook along."""
        life = self.run_script("""
def after(step):
    if step == 1:
        buffer = io.BytesIO(); torch.save(model, buffer); buffer.seek(0)
        torch.load(buffer, weights_only=False)
        pickle.loads(pickle.dumps(model.state_dict()))
        torch.save({"model": model, "optimizer": optimizer}, pathlib.Path("out/whole.pt"))
os.mkdir("out")
train(2, after)
""")
        self.assertEqual([r["path"] for r in life.of("load")], ["(in memory)"])
        self.assertEqual([r["path"] for r in life.of("save")], ["(in memory)", "./out/whole.pt"])
        self.assertEqual(life.of("save")[1]["leaves"]["model.weight"], life.held(1)["param.weight"])
        self.assertNotIn(b"reprise", (self.folder.path / "out/whole.pt").read_bytes())

    def test_reprise_itself(self):
        life = self.run_script("""
import reprise.torch as rt
def after(step):
    if step == 1: rt.save({"model": model.state_dict()}, "run", step=1)
    if step == 2: saves.append(rt.begin_save({"model": model.state_dict()}, "run", step=2)); saves[0].before_update()
    if step == 3: saves[0].finish()
saves = []
train(3, after)
wanted = {"model": model.state_dict()}
rt.load(wanted, "run", step=2)
model.load_state_dict(wanted["model"])
train(1)
""")
        self.assertEqual([(s["step"], s["by"], s["asynchronous"]) for s in life.of("save")],
                         [(1, "reprise.torch.save", False), (2, "reprise.torch.begin_save", True)])
        self.assertEqual([s["step"] for s in life.of("saved")], [1, 3])
        handed, held = self.handed(life, "param.weight", "model.weight")
        self.assertEqual(handed, held)
        self.assertEqual(life.of("load")[0]["leaves"]["model.weight"], handed[1])

    @unittest.skipUnless(importlib.util.find_spec("megatron"), "Megatron-Core is not here")
    def test_megatron_core(self):
        life = self.run_script("""
from megatron.core import dist_checkpointing, parallel_state
from megatron.core.dist_checkpointing import ShardedTensor
requests = []
def sharded(): return {"w": ShardedTensor.from_rank_offsets("w", model.weight.detach()), "step": 2}
def after(step):
    if step == 2: requests.append(dist_checkpointing.save(sharded(), "ck", async_sharded_save=True))
    if step == 3: requests[0].execute_sync()  # which copies what there is then
if __name__ == "__main__":
    alone()
    parallel_state.initialize_model_parallel()
    os.mkdir("ck")
    train(3, after)
    dist_checkpointing.load(sharded(), "ck")
    train(1)
""", started=True, REPRISE_WATCH_STANDIN=str(HERE.parents[1] / "trainers/megatron/without_cuda.py"))
        self.assertEqual([(s["step"], s["by"], s["asynchronous"]) for s in life.of("save")], [(2, "dist_checkpointing.save", True)])
        self.assertEqual([s["step"] for s in life.of("saved")], [3])
        self.assertEqual([s["by"] for s in life.of("load")], ["dist_checkpointing.load"])
        self.assertEqual(life.of("save")[0]["leaves"]["w.@0,0"], life.held(2)["param.weight"])
        self.assertEqual(life.of("load")[0]["leaves"]["w"], life.held(3)["param.weight"])

    def test_what_objects_hold_and_paths_that_differ(self):
        text = """
import argparse, pathlib
class Odd:
    __slots__ = ()
def after(step):
    args = argparse.Namespace(rate=0.1, out=os.path.join(os.getcwd(), "out"), where=pathlib.Path(os.getcwd()))
    torch.save({"args": args, "odd": Odd(), "text": "x" * 500, "set": {3, 1}, "f": 0.1}, "ck.pt")
train(1, after)
"""
        first, other = self.run_script(text), Folder()
        self.addCleanup(other.close)
        second = other.run(TRAINER + text)
        leaves = first.of("save")[0]["leaves"]
        self.assertEqual(leaves, second.of("save")[0]["leaves"])
        self.assertRegex(leaves["args"], "^#object:[0-9a-f]{16}$")
        self.assertEqual(leaves["f"], f"={(0.1).hex()}")


class Stored(Case):
    LOSES = """
alone()
from torch.distributed.checkpoint import DefaultSavePlanner, FileSystemWriter
class Loses(FileSystemWriter):
    def finish(self, metadata, results):
        metadata.state_dict_metadata.pop("model.bias", None)
        super().finish(metadata, results)
class Own(DefaultSavePlanner): pass
state = {"model": model.state_dict(), "step": 3, "list": [1, {"a": torch.ones(2)}]}
train(1)
"""

    def not_stored(self, save):
        return [r["names"] for r in self.run_script(self.LOSES + save).of("not_stored")]

    def test_keys_that_a_complete_save_lacks(self):
        for save in (
            "dcp.save(state, storage_writer=Loses('ck'))",
            "dcp.async_save(state, storage_writer=Loses('ck')).result()",
            "dcp.save(state, storage_writer=Loses('ck'), planner=DefaultSavePlanner())",
        ):
            with self.subTest(save):
                self.assertEqual(self.not_stored(save), [["model.bias"]])

    def test_what_is_stored_or_has_keys_of_its_own_is_not_told(self):
        self.assertEqual(self.not_stored("dcp.save(state, checkpoint_id='ck')"), [])
        self.assertEqual(self.not_stored("dcp.save(state, storage_writer=Loses('ck'), planner=Own())"), [])


class Outside(Case):
    """What is outside of the life's directory all lives would share."""

    def saved_to(self, place, status=1):
        work = self.folder.path / "work"
        work.mkdir(exist_ok=True)
        text = f"os.chdir({str(work)!r})\ntrain(2); torch.save(model.state_dict(), {place!r}); train(1)"
        return self.run_script(text, status=status, REPRISE_WATCH_WORK=str(work))

    def test_is_refused_before_anything_is_written(self):
        kept = self.folder.path / "mine.pt"
        for place in ("../mine.pt", str(kept), "/dev/shm/reprise-watch-test.pt"):
            kept.write_text("mine")
            life = self.saved_to(place)
            self.assertEqual(kept.read_text(), "mine")
            self.assertEqual(life.of("outside")[0]["path"], os.path.abspath(self.folder.path / "work" / place))
            self.assertIn("was refused", life.output)
            self.assertEqual(life.of("end")[0]["exit"], "exit")
        self.assertFalse(os.path.exists("/dev/shm/reprise-watch-test.pt"))

    def test_a_file_that_is_renamed_to_outside_is_refused(self):
        for how in ("os.replace('a.pt', {0!r})", "os.rename('a.pt', {0!r})", "pathlib.Path('a.pt').replace({0!r})"):
            kept = self.folder.path / "mine.pt"
            kept.write_text("mine")
            work = self.folder.path / "work"
            work.mkdir(exist_ok=True)
            text = f"os.chdir({str(work)!r})\ntorch.save(model.state_dict(), 'a.pt'); {how.format(str(kept))}; train(1)"
            life = self.run_script(text, status=1, REPRISE_WATCH_WORK=str(work))
            self.assertEqual((kept.read_text(), life.of("outside")[0]["path"]), ("mine", str(kept)))
        (self.folder.path / "elsewhere").write_text("of another program")
        text = f"os.chdir({str(work)!r})\nos.replace('../elsewhere', '../there'); os.replace('a.pt', 'b.pt'); train(1)"
        self.assertEqual(self.run_script(text, REPRISE_WATCH_WORK=str(work)).of("outside"), [])

    def test_inside_is_told_without_the_directory(self):
        (self.folder.path / "link").symlink_to(self.folder.path / "work")
        for place in ("a.pt", str(self.folder.path / "work/a.pt"), str(self.folder.path / "link/a.pt")):
            life = self.saved_to(place, status=0)
            self.assertEqual(life.of("outside"), [])
        self.assertEqual(self.saved_to("a.pt", status=0).of("save")[0]["path"], "./a.pt")


class Kills(Case):
    def killed(self, text, kill, *arguments):
        life = self.run_script(text, *arguments, life="B", kill=kill, status=-signal.SIGKILL)
        self.assertEqual(life.records[-1]["what"], "killed")
        self.assertEqual(life.of("end"), [])
        return life

    def test_after_a_step(self):
        life = self.killed("train(5)", {"step": 3, "rank": 0})
        self.assertEqual((life.steps[-1]["step"], life.records[-1]["at"]), (3, "step 3"))

    def test_another_rank_is_not_killed(self):
        self.assertEqual(len(self.run_script("train(5)", kill={"step": 3, "rank": 1}).steps), 5)

    def test_at_a_phase_of_a_save(self):
        text = """
def after(step):
    torch.save(model.state_dict(), f"{step}.pt"); print("saved", flush=True)
train(5, after)
"""
        life = self.killed(text, {"step": 2, "rank": 0, "phase": "save.begin"})
        self.assertEqual((life.output, (self.folder.path / "2.pt").exists()), ("saved\n", False))
        life = self.killed(text, {"step": 2, "rank": 0, "phase": "save.written"})
        self.assertEqual((life.output, (self.folder.path / "2.pt").exists()), ("saved\n", True))

    ASYNCHRONOUS = """
alone()
from torch.distributed.checkpoint import FileSystemWriter
go = threading.Event()
class Slow(FileSystemWriter):
    def write_data(self, *arguments):
        go.wait(float(sys.argv[1]))
        return super().write_data(*arguments)
def after(step):
    if step == 2: dcp.async_save({"model": model.state_dict()}, storage_writer=Slow("ck"))
train(5, after)
"""

    def test_while_an_asynchronous_save_is_on_its_way(self):
        life = self.killed(self.ASYNCHRONOUS, {"step": 2, "rank": 0, "asynchronous": "during"}, "60")
        self.assertEqual(life.records[-1]["at"], "while an asynchronous save is on its way")
        self.assertFalse((self.folder.path / "ck/.metadata").exists())

    def test_only_when_an_asynchronous_save_is_complete(self):
        life = self.killed(self.ASYNCHRONOUS, {"step": 3, "rank": 0, "asynchronous": "complete"}, "1")
        self.assertEqual([r["what"] for r in life.records[-2:]], ["saved", "killed"])
        self.assertTrue((self.folder.path / "ck/.metadata").exists())


if __name__ == "__main__":
    unittest.main()
