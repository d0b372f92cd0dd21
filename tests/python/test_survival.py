"""Saves that survive: kills at each step of a save, a full disk, two jobs and a reader in one directory.

A process that has imported torch forks one for each task, since an import takes seconds. doom.c, which is
preloaded there, kills a task at its n-th call that changes files."""
import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import torch
import torch.distributed as dist

import reprise
import reprise.torch as rt
from reprise.torch import fabric
from states import BESIDE

# One of so many kills is tried; 1 tries all 312.
SAMPLE = int(os.environ.get("REPRISE_KILLS_SAMPLE", "12"))
SOON = 30.0  # seconds; far less than a deadline
LONGEST = 120  # seconds of a task, on a machine that does much else


# ------------------------------------------------------------------ tasks, each in a process of its own


def made(step):
    """A state whose every value names the step."""
    return {"w": [torch.full((300, 100), float(step + i)) for i in range(4)], "b": torch.full((7,), step), "n": step}


def step_in(state):
    """Returns the step whose state this is, whole, or a text that says what it is."""
    step = state["n"]
    for i, w in enumerate(state["w"]):
        if not bool((w == step + i).all()):
            return f"w.{i} is not that of step {step}"
    return step if bool((state["b"] == step).all()) else f"b is not that of step {step}"


def loaded(path, **options):
    state = made(-100)
    rt.load(state, path, **options)
    return step_in(state)


def armed(nth, meet, gathers=False):
    """Kills this process at its n-th call that changes files, or gathering of bytes; -1 counts them. The file where
    torch's ranks meet is not of the save."""
    if not gathers:
        doom = ctypes.CDLL(None)
        doom.doom_arm(ctypes.c_long(nth), Task.report, meet.encode())
        return lambda: doom.doom_seen()
    usual, seen = fabric.TorchFabric._gather, [0]

    def gather(self, members, mine):
        if seen[0] == nth:
            os.write(Task.report, f"gather {nth}".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        seen[0] += 1
        return usual(self, members, mine)

    fabric.TorchFabric._gather = gather
    return lambda: seen[0]


def join(meet, rank, size):
    if size > 1:
        dist.init_process_group("gloo", init_method=f"file://{meet}", rank=rank, world_size=size)


def save(path, step, how, meet=None, rank=0, size=1, nth=-1, dies=0, gathers=False):
    """Saves as ``how`` says. The rank that ``dies`` does so at its n-th call."""
    join(meet, rank, size)
    count = armed(nth if rank == dies else -1, meet or "", gathers)
    began = time.monotonic()
    options = {"step": step, "keep": 1, "step_names": "iter_%07d"} if "keep" in how else {}
    try:
        if "begin" in how:
            saving = rt.begin_save(made(step), path, **options)
            saving.before_update()
            while not saving.poll():
                pass
        else:
            rt.save(made(step), path, **options)
    except reprise.Error as error:
        return error.code, error.file, time.monotonic() - began < SOON
    return "saved", count()


def verify(path, step, how):
    """Returns what is loaded, what is loaded after another save, and what is in the directory then. A process that was
    killed in its first steps leaves an empty file or an empty directory, which nobody can tell from what another
    writer is about to begin."""
    first = loaded(path)
    options = {"step": step, "keep": 1, "step_names": "iter_%07d"} if "keep" in how else {}
    rt.save(made(step), path, **options)
    folder = path if "keep" in how else os.path.dirname(path)
    return first, loaded(path), sorted(entry.name for entry in os.scandir(folder) if not is_empty(entry))


def is_empty(entry):
    return not os.listdir(entry) if entry.is_dir() else entry.stat().st_size == 0


def limited(path, step, size_limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_limit, resource.RLIM_INFINITY))
    return save(path, step, "keep")


def holds(path, begun, done):
    """Has a save in flight until the other one is done."""
    saving = rt.begin_save(made(1), path, step=1)
    open(begun, "w").close()  # a pipe: waits for its reader
    open(done).close()
    return saving.finish().path, os.getpid()


def comes_second(path, begun, done):
    open(begun).close()
    try:
        rt.save(made(2), path, step=2)
        how = "saved"
    except reprise.Error as error:
        how = error.code, error.message
    open(done, "w").close()
    rt.save(made(3), os.path.join(path, "..", "other"), step=3)
    return how


def writes(path, steps, done):
    for step in range(1, steps + 1):
        rt.save(made(step), path, step=step, keep=1)
    open(done, "w").close()
    return steps


def reads(path, steps, done):
    """Loads until the writer has ended. Returns the steps, and the errors."""
    found, errors = [], []
    while not os.path.exists(done):
        try:
            found.append(loaded(path))
        except reprise.Error as error:
            errors.append(error.code)
    found.append(loaded(path))
    return found, sorted(set(errors))


def forks_a_worker(path, alive):
    """Forks a worker while a save is in flight, as a loader of data does, and is killed."""
    saving = rt.begin_save(made(1), path, step=1)
    worker = os.fork()
    if worker == 0:
        os.close(Task.report)
        with open(alive, "w") as pipe:  # until the test reads from it
            pipe.write(str(os.getpid()))
        signal.pause()
    with open(alive + ".pid", "w") as out:
        out.write(str(worker))
    assert saving is not None
    os.kill(os.getpid(), signal.SIGKILL)


# ------------------------------------------------------------------ the process that forks them


class Task:
    report = -1  # file for what a task says before it is killed


def forked(name, arguments):
    read, write = os.pipe()
    child = os.fork()
    if child != 0:
        os.close(write)
        return child, read
    Task.report = write
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        answer = {"answer": globals()[name](*arguments)}
    except BaseException as error:
        answer = {"failure": f"{type(error).__name__}: {error}"}
    os.write(write, json.dumps(answer).encode())
    os._exit(0)


def ended(child, pipe):
    """Returns what a task answered: a dict with its answer or failure, or what it said before it was killed."""
    if not select.select([pipe], [], [], LONGEST)[0]:
        os.kill(child, signal.SIGKILL)
    said = b""
    while more := os.read(pipe, 1 << 16):
        said += more
    os.close(pipe)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return {"killed": said.decode(), "signal": os.WTERMSIG(status)}
    return json.loads(said)


def serve():
    torch.set_num_threads(1)  # a pool of threads would not be there after a fork
    for line in sys.stdin:
        tasks = [forked(name, arguments) for name, arguments in json.loads(line)]
        print(json.dumps([ended(*task) for task in tasks]), flush=True)


# ------------------------------------------------------------------ tests


class Survival(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
        if compiler is None:
            raise unittest.SkipTest("no C compiler, which doom.c needs")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        doom, here = os.path.join(folder.name, "doom.so"), os.path.dirname(os.path.abspath(__file__))
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", os.path.join(here, "doom.c"), "-o", doom, "-ldl"], check=True)
        code = "import test_survival; test_survival.serve()"
        environment = dict(BESIDE, LD_PRELOAD=doom)
        cls.server = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", code],
            env=environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.stdout.close)
        cls.addClassCleanup(cls.server.stdin.close)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "run", "all")
        os.mkdir(os.path.dirname(self.path))
        self.met = 0

    def run_all(self, *tasks):
        """Runs tasks at the same time, and returns what each answered."""
        self.server.stdin.write(json.dumps([(task.__name__, arguments) for task, *arguments in tasks]) + "\n")
        self.server.stdin.flush()
        return json.loads(self.server.stdout.readline())

    def answers(self, *tasks):
        ended = self.run_all(*tasks)
        self.assertEqual([one for one in ended if "answer" not in one], [])
        return [one["answer"] for one in ended]

    def run_job(self, size, step, how, nth=-1, dies=0, gathers=False, path=None):
        self.met += 1
        meet = os.path.join(self.folder, f"meet{self.met}")
        arguments = [(save, path or self.path, step, how, meet, rank, size, nth, dies, gathers) for rank in range(size)]
        return self.run_all(*arguments)

    @staticmethod
    def came_to_an_end_before(nth, ended):
        """True if a rank has saved with fewer gathers: how many a save makes that waits for its files depends on time."""
        how, count = ended.get("answer", ["", nth + 1])
        return how == "saved" and count <= nth

    def kill(self, size, how, nth, dies=0, gathers=False):
        """Kills a rank in a save over a checkpoint. Returns what it was about to do."""
        shutil.rmtree(os.path.dirname(self.path))
        os.mkdir(os.path.dirname(self.path))
        for rank in self.run_job(size, 1, how):
            self.assertEqual(rank.get("answer", rank)[0], "saved")
        ended = self.run_job(size, 2, how, nth, dies, gathers)
        with self.subTest(size=size, how=how, nth=nth, dies=dies, gathers=gathers, ended=ended):
            for rank, one in enumerate(ended):
                if rank == dies and gathers and self.came_to_an_end_before(nth, one):
                    continue
                if rank == dies:
                    self.assertEqual(one.get("signal"), signal.SIGKILL)
                elif one.get("answer", [one])[0] != "saved":  # it was committed, and what the dead rank had to do was not
                    self.assertEqual([*one.get("answer", [one])[::2]], ["PEER_FAILED", True])
            (first, second, names), = self.answers((verify, self.path, 3, how))
            saved = any(one.get("answer", [one])[0] == "saved" for one in ended)
            self.assertIn(first, (2,) if saved else (1, 2))
            self.assertEqual(second, 3)
            self.assertEqual(names, ["iter_0000003", "latest_checkpointed_iteration.txt"] if "keep" in how else ["all"])
            self.found.add(first)
            return ended[dies].get("killed", "")
        return ""

    def kills(self, size, how, gathers=False):
        """Kills at a sample of the steps of a save. Returns what was about to be done at each."""
        shutil.rmtree(os.path.dirname(self.path))
        os.mkdir(os.path.dirname(self.path))
        self.found = set()
        self.run_job(size, 1, how)
        counts = [one["answer"][1] for one in self.run_job(size, 2, how, gathers=gathers)]
        points = [(dies, nth) for dies, count in enumerate(counts) for nth in range(count)]
        self.assertGreater(len(points), 8)
        return [self.kill(size, how, nth, dies, gathers) for dies, nth in points[::SAMPLE]]

    def assert_phases(self, killed, *phases):
        """Each phase was hit by one of the kills, if all of them were tried."""
        said = "\n".join(killed)
        if SAMPLE == 1:
            self.assertEqual([phase for phase in phases if phase not in said], [])
            self.assertEqual(self.found, {1, 2})

    def test_killed_in_a_save_with_retention(self):
        killed = self.kills(1, "keep")
        self.assert_phases(killed, "mkdir", "create", "write", "sync", "rename", ".metadata", "latest_", "remove")

    def test_killed_in_a_save_in_the_background(self):
        self.assert_phases(self.kills(1, "keep, begin"), "create", "write", "sync", "rename", "remove")

    def test_killed_in_a_save_that_replaces(self):
        self.assert_phases(self.kills(1, "replace"), "create", "write", "sync", "rename", "remove")
        self.assert_phases(self.kills(1, "replace, begin"), "create", "write", "sync", "rename", "remove")

    def test_a_rank_killed_in_a_save(self):
        self.assert_phases(self.kills(2, "keep"), "create", "write", "sync", "rename", "latest_", "remove")
        self.assert_phases(self.kills(2, "replace"), "create", "write", "sync", "rename", "remove")

    def test_a_rank_killed_in_a_save_in_the_background(self):
        self.assert_phases(self.kills(2, "replace, begin"), "create", "write", "sync", "rename", "remove")
        self.assert_phases(self.kills(2, "keep, begin"), "create", "write", "sync", "rename", "latest_", "remove")

    def test_a_rank_killed_while_ranks_plan_and_agree(self):
        for how in ("keep", "replace, begin"):
            self.assert_phases(self.kills(2, how, gathers=True), "gather 0", "gather 5")

    def test_a_limit_on_files_is_no_space(self):
        self.run_job(1, 1, "keep")
        (code, file, soon), = self.answers((limited, self.path, 2, 100_000))
        self.assertEqual((code, soon), ("NO_SPACE", True))
        self.assertIn(".distcp", file)
        self.assertEqual(self.answers((verify, self.path, 3, "keep"))[0][:2], [1, 3])

    def test_a_full_disk_is_no_space_on_all_ranks(self):
        if os.geteuid() != 0:
            self.skipTest("only root can mount a small file system")
        disk = os.path.join(self.folder, "disk")
        os.mkdir(disk)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], stderr=subprocess.PIPE, text=True)
        if mounted.returncode != 0:
            self.skipTest(f"no small file system: {mounted.stderr}")
        self.addCleanup(subprocess.run, ["umount", disk], check=True)
        path, ballast = os.path.join(disk, "all"), os.path.join(disk, "ballast")
        for how in ("keep", "keep, begin"):
            shutil.rmtree(path, ignore_errors=True)
            self.run_job(2, 1, how, path=path)
            with open(ballast, "wb") as out:
                out.write(bytes(1_200_000))
            for one in self.run_job(2, 2, how, path=path):
                code, file, soon = one["answer"]
                self.assertEqual((code, soon), ("NO_SPACE", True))
                self.assertTrue(file.startswith(disk), file)
            self.assertEqual(self.answers((loaded, path)), [1])
            os.remove(ballast)
            self.assertEqual([one["answer"][0] for one in self.run_job(2, 3, how, path=path)], ["saved"] * 2)
            self.assertEqual(self.answers((loaded, path)), [3])

    def pipes(self):
        pipes = [os.path.join(self.folder, name) for name in ("begun", "done")]
        for pipe in pipes:
            os.mkfifo(pipe)
        return pipes

    def test_two_jobs_in_one_directory(self):
        pipes = self.pipes()
        (_, process), (code, message) = self.answers((holds, self.path, *pipes), (comes_second, self.path, *pipes))
        self.assertEqual(code, "LOCKED")
        self.assertIn(f"process {process} on host", message)
        self.assertEqual(self.answers((loaded, self.path)), [1])

    def test_a_reader_beside(self):
        self.answers((writes, self.path, 1, os.path.join(self.folder, "first")))
        done, steps = os.path.join(self.folder, "done"), 240 // SAMPLE
        _, (found, errors) = self.answers((writes, self.path, steps, done), (reads, self.path, steps, done))
        self.assertEqual([one for one in found if type(one) is not int], [])
        self.assertEqual((sorted(found), found[-1]), (found, steps))
        self.assertEqual([code for code in errors if code not in ("NOT_FOUND", "STALE_METADATA")], [])

    def test_a_worker_that_outlives_its_trainer_holds_no_lock(self):
        alive = os.path.join(self.folder, "alive")
        os.mkfifo(alive)
        # Open for reading and writing, so that neither side waits, and the worker runs on.
        with contextlib.closing(os.fdopen(os.open(alive, os.O_RDWR), "rb", buffering=0)):
            one, = self.run_all((forks_a_worker, self.path, alive))
            self.assertEqual(one.get("signal"), signal.SIGKILL)
            with open(alive + ".pid") as file:
                worker = int(file.read())
            try:
                self.assertTrue(os.path.exists(f"/proc/{worker}"))
                self.assertEqual(self.answers((writes, self.path, 2, os.path.join(self.folder, "done"))), [2])
            finally:
                os.kill(worker, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
