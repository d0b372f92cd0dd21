"""Forks, exits and signals while a save is in flight, and ranks that die."""
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import weakref

import torch
import torch.distributed as dist

import ranks
import reprise
import reprise.torch as rt
from reprise.torch.job import interruptible
from states import BESIDE


def big(seed):
    return {f"w{i}": torch.full((1 << 18,), float(seed)) for i in range(16)}


def in_child(saving, path, answers):
    """A forked worker: its parent's save is not its own, and it may save by itself."""
    try:
        saving.finish()
        answers.put("finished")
    except reprise.Error as error:
        answers.put((error.code, "forked" in error.message))
    rt.save({"n": 5}, path)
    answers.put(rt.load({"n": 0}, path).loaded)


def one_dies(rank, size, folder):
    path = os.path.join(folder, "run")
    rt.save({"n": 1}, path, step=1)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    try:
        for step in range(2, 100):
            rt.save({"n": step}, path, step=step)
        return "saved"
    except reprise.Error as error:
        return (error.code, error.rank, time.monotonic() - began < 30)


def one_is_interrupted(rank, size, folder):
    """Rank 0 gets Ctrl-C while it waits for rank 1, which comes a second later and hears of it."""
    path = os.path.join(folder, "run")
    rt.save({"n": 1}, path, step=1)
    if rank == 1:
        time.sleep(1)
    else:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        rt.save({"n": 2}, path, step=2)
        return "saved"
    except KeyboardInterrupt:
        said = "stopped"
    except reprise.Error as error:
        said = error.code
    return said, sorted(name for name in os.listdir(path) if "." not in name)


def waits_alone(rank, size, folder):
    """Rank 0 gets Ctrl-C while it waits for a rank that doesn't come in time."""
    path = os.path.join(folder, "run")
    rt.save({"n": 1}, path, step=1)
    if rank == 1:
        time.sleep(8)
        os._exit(0)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    try:
        rt.save({"n": 2}, path, step=2)
        return "saved"
    except KeyboardInterrupt:
        return time.monotonic() - began < 6


def one_fails(rank, size, folder):
    """A rank that ends by an exception with a save in flight is gone at once."""
    code = (
        "import test_lives as t; t.dist.init_process_group('gloo', init_method='file://' + t.os.environ['MEET'], "
        "rank=int(t.os.environ['RANK']), world_size=2)\n"
        "t.rt.begin_save({'n': 1}, t.os.environ['TO'])\n"
        "if t.dist.get_rank() == 0: raise ValueError('mine')\n"
        "t.time.sleep(12); t.os._exit(0)"
    )
    environment = dict(BESIDE, RANK=str(rank), MEET=os.path.join(folder, "meet"), TO=os.path.join(folder, "run"))
    ended = subprocess.run([sys.executable, "-c", code], env=environment, text=True, stderr=subprocess.PIPE)
    return ended.returncode, "mine" in ended.stderr, time.monotonic()


def too_late(rank, size, folder):
    rt.configure(deadline_seconds=2)
    path = os.path.join(folder, "run")
    rt.save({"n": 1}, path)
    if rank == 1:
        time.sleep(6)
        return None
    try:
        rt.save({"n": 2}, path)
        return "saved"
    except reprise.Error as error:
        return error.code


class Lives(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "run")

    def test_a_forked_worker_has_no_part_in_its_parents_save(self):
        saving = rt.begin_save(big(1), self.path, step=1)
        context = multiprocessing.get_context("fork")
        answers = context.SimpleQueue()
        child = context.Process(target=in_child, args=(saving, os.path.join(self.folder, "child"), answers))
        locked, done = threading.Event(), threading.Event()

        def hold():  # as a thread does that is within a call while another one forks
            with saving._job.lock:
                locked.set()
                done.wait(60)

        holder = threading.Thread(target=hold)
        holder.start()
        locked.wait()
        child.start()
        done.set()
        self.assertEqual(answers.get(), ("USAGE", True))
        self.assertEqual(answers.get(), ("n",))
        child.join(60)
        self.assertEqual(child.exitcode, 0)
        saving.finish()
        state = big(2)
        rt.load(state, self.path)
        self.assertTrue(all(bool((value == 1).all()) for value in state.values()))

    def test_a_save_that_nobody_finished_is_finished_at_exit(self):
        code = f"import test_lives as t\nt.rt.begin_save(t.big(3), {self.path!r}, step=1)"
        subprocess.run([sys.executable, "-c", code], check=True, env=BESIDE)
        state = big(4)
        self.assertEqual(rt.load(state, self.path).step, 1)
        self.assertEqual(float(state["w0"][0]), 3.0)

    def test_a_save_keeps_its_tensors_until_they_are_copied(self):
        state = big(1)
        tensors = [weakref.ref(tensor) for tensor in state.values()]
        saving = rt.begin_save(state, self.path, step=1)
        del state
        self.assertNotIn(None, [tensor() for tensor in tensors])
        saving.before_update()
        gc.collect()  # an earlier torch leaves a cycle behind
        self.assertEqual([tensor() for tensor in tensors], [None] * 16)
        saving.finish()
        state = big(2)
        rt.load(state, self.path)
        self.assertTrue(all(bool((value == 1).all()) for value in state.values()))

    def test_a_tensor_that_is_changed_too_early_is_found(self):
        state = big(1)
        saving = rt.begin_save(state, self.path, step=1, check_updates=True)
        state["w3"].add_(1)
        with self.assertRaises(reprise.Error) as caught:
            saving.before_update()
        self.assertEqual((caught.exception.code, caught.exception.key), ("USAGE", "w3"))
        self.assertIsNone(rt.load(big(2), self.path, missing_ok=True))
        rt.save(state, self.path, step=1)
        for key in ("w3", "other"):  # a load changes a tensor, too, if it is stored
            saving = rt.begin_save({key: state["w3"]}, self.path + "s", check_updates=True)
            rt.load({key: state["w3"]}, self.path, strict=False)
            if key == "w3":
                self.assertRaises(reprise.Error, saving.before_update)
            else:
                saving.before_update()
                saving.finish()
        saving = rt.begin_save(state, self.path, step=2, check_updates=True)
        saving.before_update()
        state["w3"].add_(1)
        self.assertEqual(saving.finish().tensors, 16)

    def test_what_the_handler_of_a_signal_throws_comes_out_after_the_save(self):
        class Told(Exception):
            pass

        def tell(number, frame):
            raise Told

        usual = signal.signal(signal.SIGALRM, tell)
        self.addCleanup(signal.signal, signal.SIGALRM, usual)
        state = big(6)
        for step in range(1, 9):
            with self.assertRaises(Told):
                signal.setitimer(signal.ITIMER_REAL, 0.001 * step)
                while True:  # the alarm comes while one of these is saved
                    rt.save(state, self.path, step=step, keep=2)
        signal.setitimer(signal.ITIMER_REAL, 0)
        loaded = big(0)
        rt.load(loaded, self.path)
        self.assertTrue(all(bool((value == 6).all()) for value in loaded.values()))

    def test_the_handlers_of_all_signals_are_called(self):
        came = []

        def tell(number, frame):
            came.append(number)
            raise KeyboardInterrupt

        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            self.addCleanup(signal.signal, number, signal.signal(number, tell))
        with self.assertRaises(KeyboardInterrupt), interruptible():
            for number in signals:
                signal.raise_signal(number)
        self.assertEqual(came, list(signals))

    def test_a_rank_that_dies_is_an_error_within_seconds(self):
        self.assertEqual(ranks.run(2, one_dies, self.folder, ends=[0])[0], ("PEER_FAILED", 0, True))

    def test_a_rank_that_is_interrupted_stops_all(self):
        first, second = ranks.run(2, one_is_interrupted, self.folder)
        self.assertEqual(first, ("stopped", ["step-1"]))
        self.assertEqual(second, ("INTERRUPTED", ["step-1"]))

    def test_a_rank_that_is_interrupted_waits_no_longer(self):
        self.assertEqual(ranks.run(2, waits_alone, self.folder, ends=[0])[0], True)

    def test_a_rank_that_fails_does_not_wait_for_the_others(self):
        first, second = ranks.run(2, one_fails, self.folder)
        self.assertEqual((first[:2], second[:2]), ((1, True), (0, False)))
        self.assertLess(first[2], second[2] - 5)

    def test_a_rank_that_does_not_come_is_an_error_after_the_deadline(self):
        self.assertEqual(ranks.run(2, too_late, self.folder)[0], "DEADLINE")


if __name__ == "__main__":
    unittest.main()
