"""Runs a script in a life of its own, watched or not, and reads what the hook recorded.

A life is forked from the process of the tests, which has imported torch once; `started` ones are new
processes of Python, as a user's are.
"""
import contextlib
import glob
import json
import os
import runpy
import subprocess
import sys
import tempfile
import textwrap
import traceback
from pathlib import Path
from typing import NamedTuple

import torch  # what each life begins with
import torch.distributed.checkpoint  # noqa: F401

HERE = Path(__file__).resolve().parent
SITE = HERE.parents[1] / "python/reprise/watch/site"


class Life(NamedTuple):
    """How it ended (a negative status is the number of a signal), its output, and its records by rank."""

    status: int
    output: str
    records: list

    def of(self, what, **fields):
        return [r for r in self.records if r["what"] == what and all(r.get(k) == v for k, v in fields.items())]

    def held(self, step, at="forward"):
        found = self.of("held", step=step, at=at)
        return found[0]["names"] if found else None

    @property
    def steps(self):
        return self.of("step")


class Folder:
    """A folder of its own for a test, in which its lives run one after the other."""

    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="watch-"))
        self._lives = 0

    def script(self, text, name="script.py"):
        (self.path / name).write_text(textwrap.dedent(text))
        return name

    def run(self, text, *arguments, life="A", watched=True, started=False, launcher=(), kill=None, every=True, **environment):
        """Runs a script to its end."""
        script = self.script(text)
        self._lives += 1
        record = self.path / f"record-{self._lives}"
        env = {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", **environment}
        if watched:
            env.update(REPRISE_WATCH=str(record), REPRISE_WATCH_LIFE=life, REPRISE_WATCH_EVERY_STEP="1" if every else "0")
            if kill is not None:
                env["REPRISE_WATCH_KILL"] = json.dumps(kill)
        output = self.path / f"output-{self._lives}"
        run = started_life if started or launcher else forked_life
        status = run(self.path, script, arguments, env, output, launcher)
        records = []
        for path in sorted(glob.glob(f"{record}/{life}/*.jsonl")):
            records += [json.loads(line) for line in Path(path).read_text().splitlines()]
        return Life(status, output.read_text(), records)

    def close(self):
        import shutil

        shutil.rmtree(self.path)


def started_life(folder, script, arguments, env, output, launcher):
    env = {**os.environ, **env}
    own = [] if launcher[:2] == ("-m", "reprise.watch") else [str(SITE)]
    env["PYTHONPATH"] = os.pathsep.join([*own, env.get("PYTHONPATH", "")])
    with open(output, "w") as out:
        command = [sys.executable, *launcher, script, *arguments]
        return subprocess.run(command, cwd=folder, env=env, stdout=out, stderr=out, timeout=240).returncode


def forked_life(folder, script, arguments, env, output, launcher):
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 70
        try:
            status = inside(folder, script, arguments, env, output)
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def inside(folder, script, arguments, env, output):
    """The life of a forked process: what Python does from sitecustomize to the end of the interpreter."""
    import atexit
    import threading

    os.environ.update(env)
    os.chdir(folder)
    out = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    atexit._clear()
    torch.set_num_threads(1)
    sys.argv = [script, *arguments]
    sys.path.insert(0, str(folder))
    if "REPRISE_WATCH" in env:
        from reprise.watch import start

        start()
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException as error:
        status, sys.last_value = 1, error
        traceback.print_exc()
    threading._shutdown()
    atexit._run_exitfuncs()
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    return status
