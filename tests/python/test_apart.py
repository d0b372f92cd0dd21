"""Ranks that fall apart in a call: all hear of it in seconds, and the next call of all works."""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
import weakref

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner

import ranks
import reprise
import reprise.torch as rt
from reprise.torch import fabric
from states import BESIDE

SOON = 40  # seconds; far less than a deadline


def store():
    return dist.distributed_c10d._get_default_store()


def said(call, *arguments, **options):
    """Returns how a call ended, and whether that took only seconds."""
    began = time.monotonic()
    try:
        call(*arguments, **options)
        how = "done"
    except KeyboardInterrupt:
        how = "stopped"
    except reprise.Error as error:
        how = error.code, error.rank
    except CheckpointException as error:
        how = [getattr(failure, "code", str(failure)) for _, (failure, _) in sorted(error.failures.items())]
    except Exception as error:
        how = type(error).__name__
    return how, time.monotonic() - began < SOON


def works(path, step):
    """True if all ranks can save and load again."""
    rt.save({"n": step}, path, step=step)
    state = {"n": 0}
    rt.load(state, path)
    return state == {"n": step}


def late(rank, size, folder):
    """Rank 1 comes to a save after rank 0 has given it up: because of its deadline, and because of Ctrl-C."""
    path, found = os.path.join(folder, "run"), []
    rt.configure(deadline_seconds=3)
    found.append(works(path, 1))
    for step, (why, stops) in enumerate((("deadline", False), ("stopped", True))):
        if rank == 0:
            if stops:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            found.append(said(rt.save, {"n": -1}, path, step=9))
            store().set(why, "")
        else:
            store().wait([why])
            found.append(said(rt.save, {"n": -1}, path, step=9))
        found.append(works(path, 2 + step))
    return found + [sorted(os.listdir(path))]


def never_met(rank, size, folder):
    """Rank 1 does not come to the first save of all, and comes to the second."""
    path, found = os.path.join(folder, "run"), []
    rt.configure(deadline_seconds=2)
    if rank == 0:
        try:
            rt.save({"n": 1}, path)
        except reprise.Error as error:
            found.append((error.code, error.rank, "[1]" in error.message))
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        rt.configure(deadline_seconds=600)
        found.append(said(rt.save, {"n": 1}, path))
        store().set("ready", "")
    else:
        store().wait(["ready"])
        rt.configure(deadline_seconds=600)
        found.append(said(rt.save, {"n": 1}, path))
    return found + [works(path, 3)]


class Fails(DefaultSavePlanner):
    def finish_plan(self, plan):
        if dist.get_rank() == 1:
            raise ValueError("mine")
        return super().finish_plan(plan)


class FailsToLoad(DefaultLoadPlanner):
    def finish_plan(self, plan):
        if dist.get_rank() == 1:
            raise ValueError("mine")
        return super().finish_plan(plan)


class Exits:
    """A Stateful object that ends the interpreter of one rank."""

    def state_dict(self):
        if dist.get_rank() == 1:
            sys.exit(1)
        return {}

    def load_state_dict(self, state):
        pass


def alone_with_a_mistake(rank, size, folder):
    """Rank 1 leaves a call that the others are in or come to."""
    path, found = os.path.join(folder, "run"), []
    state = {"n": torch.ones(2)}
    for repeat in range(2):  # before there is a job of torch's planners, and after
        found.append(said(dcp.save, state, storage_writer=rt.Writer(path), planner=Fails()))
        dcp.save(state, storage_writer=rt.Writer(path))
        found.append(said(dcp.load, state, storage_reader=rt.Reader(path), planner=FailsToLoad()))
        dcp.load(state, storage_reader=rt.Reader(path))
    path += "s"
    saving = rt.begin_save(state, path, step=1, check_updates=True)
    if rank == 1:
        state["n"].add_(1)
    found.append(said(lambda: (saving.before_update(), saving.finish())))
    found.append(works(path, 2))
    try:
        found.append(said(rt.save, {"exits": Exits()}, path, step=3))
    except SystemExit:
        found.append("exit")
    return found + [works(path, 3), sorted(os.listdir(path))]


class Waits:
    """A Stateful object that fails on rank 1, and on rank 0 waits until the save on rank 1 has ended."""

    def state_dict(self):
        if dist.get_rank() == 1:
            raise ValueError("mine")
        store().wait(["ended"])
        return {}

    def load_state_dict(self, state):
        pass


def stuck(rank, size, folder):
    """Rank 0 can't hear of a mistake of rank 1, which does not wait for ever."""
    path = os.path.join(folder, "run")
    usual, fabric._AGAIN_SECONDS = fabric._AGAIN_SECONDS, 2
    found = [works(path, 1)]
    try:
        rt.save({"waits": Waits()}, path, step=2)
    except (ValueError, reprise.Error) as error:
        found.append((type(error).__name__, "mine" in str(error)))
    fabric._AGAIN_SECONDS = usual
    store().set("ended", "")
    return found + [works(path, 3)]


def met_and_left(rank, size, folder):
    """Rank 1 leaves just after all have come. Returns how the save ended, whether the next works, and how long
    rank 0 then waits for a rank that is late."""
    usual, fabric._AGAIN_SECONDS = fabric._AGAIN_SECONDS, 3
    meet = fabric.Channel.meet
    if rank == 1:
        def meet_and_leave(*arguments):
            meet(*arguments)
            raise reprise.Error("INTERRUPTED", "after all have come")

        fabric.Channel.meet = meet_and_leave
    path = os.path.join(folder, "run")
    found = [said(rt.save, {"n": 1}, path, step=1)]
    fabric._AGAIN_SECONDS, fabric.Channel.meet = usual, meet
    found.append(works(path, 2))
    fabric._AGAIN_SECONDS = 1  # as long as calls of the group would last, if its deadline were that
    rt.configure(deadline_seconds=30)
    found.append(works(path, 3))
    if rank == 1:
        time.sleep(3)
    return found + [works(path, 4)]


def beside_an_earlier_one(rank, size, folder):
    """A save fails while an earlier one is in flight, which so fails, too, and keeps nobody from the directory."""
    path, found = os.path.join(folder, "run"), []
    state = {"n": torch.ones(2)}
    earlier = rt.begin_save(state, path, step=1)
    earlier.before_update()
    saving = rt.begin_save(state, path, step=2, check_updates=True)
    if rank == 1:
        state["n"].add_(1)
    found.append(said(lambda: (saving.before_update(), saving.finish())))
    found.append(works(path, 3))
    return found + [said(earlier.poll), said(earlier.finish), said(saving.finish), os.path.exists(os.path.join(path, "step-1"))]


def program(rank, size, folder, body):
    """Runs this as a program of its own, whose interpreter ends. Returns its status, and what it printed."""
    code = (
        "import ctypes, os, sys, test_apart as t\n"
        "rank, path = int(os.environ['RANK']), os.environ['TO']\n"
        "t.dist.init_process_group('gloo', init_method='file://' + os.environ['MEET'], rank=rank, world_size=2)\n"
    )
    environment = dict(BESIDE, RANK=str(rank), MEET=os.path.join(folder, "meet"), TO=os.path.join(folder, "run"))
    run = [sys.executable, "-W", "ignore", "-c", code + body]
    ended = subprocess.run(run, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return ended.returncode, ended.stdout.strip() or ended.stderr


def ends(rank, size, folder, how):
    """Rank 1 ends with a save in flight, which rank 0 wants to finish."""
    begun = "saving = t.rt.begin_save({'n': 1}, path)\n"
    return program(rank, size, folder, begun + f"if rank == 1:\n    {how}\nprint(t.said(saving.finish))")


def again(rank, size, folder):
    """torch.distributed is destroyed and initialised again."""
    path, found = os.path.join(folder, "run"), []
    found.append(works(path, 1))
    saving = rt.begin_save({"n": 2}, path, step=2)
    earlier = weakref.ref(saving._job.fabric)
    place = dist.FileStore(os.path.join(folder, "again"), size)
    for step in (3, 4):
        dist.destroy_process_group()
        world = dist.PrefixStore(str(step), place)
        dist.init_process_group("gloo", store=world, rank=rank, world_size=size)
        if step == 3:
            saving.finish()  # its groups are its own
            del saving
        found.append(works(path, step))
        found.append(earlier() is None)
    return found + [sorted(os.listdir(path))]


def in_the_same_store(rank, size, folder):
    """Saves fail in a world, before and after the ranks have met; the next has the same store, and both work."""
    path, found = os.path.join(folder, "run"), []
    place = dist.FileStore(os.path.join(folder, "again"), size)
    dist.distributed_c10d._get_default_store = lambda: place  # torch's own keys would be in each other's way
    rt.configure(deadline_seconds=2)
    if rank == 0:
        found.append(said(rt.save, {"n": 1}, path))
        store().set("given up", "")
    else:
        store().wait(["given up"])
        found.append(said(rt.save, {"n": 1}, path))
    rt.configure(deadline_seconds=60)
    state = {"n": torch.ones(2)}
    for step in (1, 2, 3):
        saving = rt.begin_save(state, path, step=step, check_updates=True)
        if rank == 1 and step < 3:
            state["n"].add_(1)
        found.append(said(lambda: (saving.before_update(), saving.finish())))
        if step > 1:
            dist.destroy_process_group()
            world = dist.FileStore(os.path.join(folder, f"world{step}"), size)
            dist.init_process_group("gloo", store=world, rank=rank, world_size=size)
        rt.configure(deadline_seconds=2 if step == 2 else 60)
        found.append(said(works, path, 10 * step))
        rt.configure(deadline_seconds=60)
    return found


def forked(rank, size, folder):
    """A child that ends as an interpreter does leaves its parent's groups alone, and is no rank."""
    body = (
        "t.works(path, 1)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        # Before 2.15 torch's own group waits at its end for threads that a forked child hasn't got, also without us.
        "    t.torch.__version__ >= '2.15' or ctypes.pythonapi.Py_IncRef(ctypes.py_object(t.dist.group.WORLD))\n"
        "    sys.exit(0 if t.said(t.rt.save, {'n': 1}, path, step=7) == (('USAGE', None), True) else 1)\n"
        "print(os.waitpid(child, 0)[1], t.works(path, 2))"
    )
    return program(rank, size, folder, body)


class Apart(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_a_rank_that_comes_too_late(self):
        first, second = ranks.run(2, late, self.folder)
        steps = ["step-1", "step-2", "step-3"]
        self.assertEqual(first, [True, (("DEADLINE", 0), True), True, ("stopped", True), True, steps])
        self.assertEqual(second, [True, (("DEADLINE", 0), True), True, (("INTERRUPTED", 0), True), True, steps])

    def test_ranks_that_have_not_met_yet(self):
        first, second = ranks.run(2, never_met, self.folder)
        self.assertEqual(first, [("DEADLINE", 0, True), ("stopped", True), True])
        self.assertEqual(second, [(("INTERRUPTED", 0), True), True])

    def test_a_rank_that_leaves_a_call(self):
        first, second = ranks.run(2, alone_with_a_mistake, self.folder)
        planner = (["PEER_FAILED", "mine"], True)
        self.assertEqual(first[:4], [planner] * 4)
        self.assertEqual(second[:4], [planner] * 4)
        self.assertEqual(first[4:6], [(("USAGE", 1), True), True])
        self.assertEqual(second[4:6], [(("USAGE", None), True), True])
        self.assertEqual(first[6:], [(("PEER_FAILED", 1), True), True, ["step-2", "step-3"]])
        self.assertEqual(second[6:], ["exit", True, ["step-2", "step-3"]])

    def test_a_mistake_that_the_others_can_not_hear_of(self):
        first, second = ranks.run(2, stuck, self.folder)
        self.assertEqual(first, [True, ("Error", True), True])
        self.assertEqual(second, [True, ("ValueError", True), True])

    @unittest.skipUnless(fabric._CALLS_TAKE_NEW_TIMEOUT, "before torch 2.11 the others then wait as long as the deadline says")
    def test_a_rank_that_leaves_after_all_have_come(self):
        first, second = ranks.run(2, met_and_left, self.folder)
        self.assertEqual(first[1:], [True] * 3)
        self.assertEqual(second[1:], [True] * 3)
        self.assertEqual(second[0], (("INTERRUPTED", None), True))
        self.assertIn(first[0], [((code, rank), True) for code, rank in (("INTERRUPTED", 1), ("PEER_FAILED", 0), ("DEADLINE", 0))])

    def test_a_save_that_fails_ends_those_in_flight(self):
        first, second = ranks.run(2, beside_an_earlier_one, self.folder)
        heard, own = (("USAGE", 1), True), (("USAGE", None), True)
        self.assertEqual(first, [heard, True, heard, heard, heard, False])
        self.assertEqual(second, [own, True, own, own, own, False])

    def test_a_rank_that_ends(self):
        for how, status in (("sys.exit(3)", 3), ("raise ValueError", 1), ("raise SystemExit", 0)):
            with self.subTest(how):
                folder = tempfile.mkdtemp(dir=self.folder)
                first, second = ranks.run(2, ends, folder, how)
                self.assertEqual(second[0], status)
                self.assertEqual(first, (0, "(('PEER_FAILED', 1), True)" if status else "('done', True)"))

    def test_another_world(self):
        steps = [f"step-{step}" for step in range(1, 5)]
        self.assertEqual(ranks.run(2, again, self.folder), [[True] * 5 + [steps]] * 2)

    def test_another_world_in_the_same_store(self):
        first, second = ranks.run(2, in_the_same_store, self.folder)
        done = ("done", True)
        heard, own = (("USAGE", 1), True), (("USAGE", None), True)
        self.assertEqual(first, [(("DEADLINE", 0), True), heard, done, heard, done, done, done])
        self.assertEqual(second, [(("DEADLINE", 0), True), own, done, own, done, done, done])

    def test_a_forked_child_of_a_rank(self):
        self.assertEqual(ranks.run(2, forked, self.folder), [(0, "0 True")] * 2)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    unittest.main()
