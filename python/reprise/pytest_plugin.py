"""The plug-in for pytest: its fixture ``resume`` runs ``reprise watch`` on a training command.

pytest finds it where ``reprise-ckpt`` is installed, and ``pytest --reprise`` switches it on::

    def test_resumes(resume):
        resume("torchrun --nproc-per-node 2 train.py --steps 12", resume_args="--resume")

docs/watch.md says what a test may ask for. Nothing of torch is imported here.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any, Callable, NamedTuple, Sequence, Union

import pytest

from . import program

Words = Union[str, Sequence[str]]


class Inconclusive(pytest.fail.Exception):  # type: ignore[misc, name-defined]
    """Nothing can be said of the resume, and the test did not expect that."""


class Watched(NamedTuple):
    """What ``reprise watch`` found.

    Attributes:
        verdict: "pass", "fail" or "inconclusive".
        code: of what decides, such as "LOST_OBJECT"; "" if it passed.
        screen: what it printed.
        report: report.json.
        folder: has report.json, junit.xml, report.html and summary.md.
    """

    verdict: str
    code: str
    screen: str
    report: dict[str, Any]
    folder: Path


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("reprise")
    group.addoption("--reprise", action="store_true", help="run tests with the fixture resume, which kill training")
    group.addoption("--reprise-report", metavar="DIR", help="keep their reports there, each in a folder of its own")


@pytest.fixture
def resume(request: pytest.FixtureRequest) -> Callable[..., Watched]:
    """Runs a training command, kills it, resumes it, and fails the test if the resume shows.

    ``resume(command, *, expect="pass", cwd=None, **options)`` returns a Watched. ``command`` is a text as for a
    shell, or a list of words. ``expect`` is the verdict or the code that the test wants, or a list of those that it
    accepts. ``options`` are those of ``reprise watch``, such as ``kill=7``, ``resume_args="--resume"``,
    ``every_step=True`` or ``without=["old", "logs"]``.
    """
    config = request.config
    if not config.getoption("--reprise"):
        pytest.skip("it kills and resumes a training command: pytest --reprise runs it")
    kept = config.getoption("--reprise-report")
    place = config.invocation_params.dir / kept if kept else request.getfixturevalue("tmp_path")
    test = re.sub(r"[^\w.=-]+", "-", request.node.nodeid).strip("-")[-200:]
    calls = itertools.count(1)

    def run(command: Words, *, expect: Words = "pass", cwd: Any = None, **options: Any) -> Watched:
        number = next(calls)
        name = test if number == 1 else f"{test}-{number}"
        watched = _watch(command, place / name, cwd, {"name": name, "python": sys.executable, **options})
        expected = [expect] if isinstance(expect, str) else list(expect)
        if watched.verdict in expected or watched.code in expected:
            return watched
        wanted = "" if expect == "pass" else f", not {' or '.join(expected)}"
        failure = Inconclusive if watched.verdict == "inconclusive" else pytest.fail.Exception
        raise failure(f"{watched.verdict}{wanted}: {shlex.join(_words(command))}\n{watched.screen}", pytrace=False)

    return run


def _words(command: Words) -> list[str]:
    return shlex.split(command) if isinstance(command, str) else [str(word) for word in command]


def _watch(command: Words, folder: Path, cwd: Any, options: dict[str, Any]) -> Watched:
    """Throws pytest's failure if the program ended without a verdict, such as at wrong usage."""
    if options.get("resume_args"):
        options["resume_args"] = shlex.join(_words(options["resume_args"]))
    words = [f"--report={folder}", *program.words(options), "--", *_words(command)]
    try:
        ended = program.run(["watch", "--quiet", *words], cwd=cwd, env={**os.environ, "PATH": program.folders()})
    except FileNotFoundError as absent:
        pytest.fail(str(absent), pytrace=False)
    if ended.code not in (0, 1, 3):
        pytest.fail(f"reprise watch ended with {ended.code}\n{ended.screen}{ended.complaint}", pytrace=False)
    report = json.loads((folder / "report.json").read_text())
    return Watched(report["verdict"], report["scenarios"][0]["code"], ended.screen, report, folder)
