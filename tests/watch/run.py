#!/usr/bin/env python3
"""Runs `reprise watch` over the scripts as they are and with defects, and holds its verdicts against what is right.

    run.py --reprise PROGRAM --environment frameworks=DIR [--environment torch=DIR ...] [--core | NAME ...]

A NAME may be a pattern such as 'ddp-*'. Prints one line for each case; exits with 0 if each has its verdict.
What has no environment here is told as not run. Everything stays on this machine, with gloo over loopback.
"""
from __future__ import annotations

import argparse
import fnmatch
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, NamedTuple, Tuple

from defects import DEFECTS
from jobs import FIELD, JOBS, Job

HERE = pathlib.Path(__file__).resolve().parent
TREE = HERE.parents[1]
EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 3}


class Case(NamedTuple):
    name: str
    job: Job
    edits: Tuple[Tuple[str, str], ...] = ()
    verdict: str = "pass"
    code: str = ""
    says: Tuple[str, ...] = ()
    core: bool = False


def cases() -> List[Case]:
    jobs = [Case(name, job, (), job.verdict, "", job.says, job.core) for name, job in {**JOBS, **FIELD}.items()]
    return jobs + [
        Case(name, defect.job, defect.edits, defect.verdict, defect.code, (defect.names,), defect.core)
        for name, defect in DEFECTS.items()
    ]


def script_of(case: Case) -> str:
    folder = HERE if "/" in case.job.script else HERE / "scripts"
    text = (folder / case.job.script).read_text()
    for old, new in case.edits:
        if text.count(old) != 1:
            raise ValueError(f"{case.name}: the script has {text.count(old)} times {old!r}")
        text = text.replace(old, new)
    return text


def command_of(case: Case, reprise: str, python: str, report: pathlib.Path) -> List[str]:
    job = case.job
    command = [reprise, "watch", "--quiet", "--report", str(report), "--name", case.name, "--python", python]
    command += ["--kill", str(job.kill)] if job.kill else []
    command += shlex.split(job.options)
    if job.resume:
        command.append(f"--resume-args={job.resume}")
    if job.stand_in:
        command += ["--stand-in", str(TREE / job.stand_in)]
    if job.at_ranks:
        command += ["--at", shlex.join(started(job, job.at_ranks, job.at_arguments))]
    return command + ["--", *started(job, job.ranks, job.arguments)]


def started(job: Job, ranks: int, arguments: str) -> List[str]:
    words = ["python", "-W", "ignore"]
    if ranks:
        words += ["-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
        words += ["--nproc-per-node", str(ranks)]
    return words + [pathlib.Path(job.script).name, *shlex.split(arguments)]


def watched(case: Case, reprise: str, python: str, top: pathlib.Path, timeout: int) -> Tuple[int, str, dict]:
    """Runs the case in a folder that holds its script alone; returns exit code, screen and report."""
    folder, report = top / case.name / "job", top / case.name / "report"
    folder.mkdir(parents=True)
    (folder / pathlib.Path(case.job.script).name).write_text(script_of(case))
    alone = dict(GLOO_SOCKET_IFNAME="lo", HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", TORCH_CPP_LOG_LEVEL="ERROR")
    ran = subprocess.run(
        command_of(case, reprise, python, report),
        cwd=folder,
        env={**os.environ, **alone},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    file = report / "report.json"
    return ran.returncode, ran.stdout, json.loads(file.read_text()) if file.is_file() else {}


def objections(case: Case, code: int, screen: str, report: dict) -> List[str]:
    """Returns what is wrong with a verdict."""
    found = []
    verdict = report.get("verdict", "none")
    if verdict != case.verdict or code != EXIT_CODES[case.verdict]:
        found.append(f"the verdict is {verdict} with exit code {code}, not {case.verdict}")
    told = report.get("scenarios", [{}])[0].get("code", "")
    if case.code and told != case.code:
        found.append(f"the code is {told or 'none'}, not {case.code}")
    found += [f"the screen does not say {words!r}" for words in case.says if not re.search(words, screen)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--reprise", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=DIR")
    parser.add_argument("--core", action="store_true", help="only the cases that CI runs")
    parser.add_argument("--show", action="store_true", help="print each screen, not only of cases that fail")
    parser.add_argument("--list", action="store_true", help="run nothing")
    parser.add_argument("--keep", help="folder for what the cases leave; by default it is removed")
    parser.add_argument("--timeout", type=int, default=900, help="seconds for a case")
    options = parser.parse_args()
    pythons: Dict[str, str] = {}
    for pair in options.environment:
        name, folder = pair.split("=", 1)
        pythons[name] = os.path.join(folder, "bin/python")
    chosen = [case for case in cases() if case.core or not options.core]
    if options.names:
        chosen = [case for case in cases() if any(fnmatch.fnmatch(case.name, name) for name in options.names)]
        for name in options.names:
            if not any(fnmatch.fnmatch(case.name, name) for case in chosen):
                parser.error(f"no case has the name {name}; --list shows them")
    counts = {"pass": 0, "FAIL": 0, "skip": 0}
    with tempfile.TemporaryDirectory(prefix="watch.") as scratch:
        top = pathlib.Path(options.keep or scratch).resolve()
        for case in chosen:
            began = time.monotonic()
            python = pythons.get(case.job.environment)
            if options.list:
                print(f"{case.name}: {case.verdict} {' '.join(case.says)}")
                continue
            if python is None:
                counts["skip"] += 1
                print(f"skip  {case.name}: not run: no environment {case.job.environment}", flush=True)
                continue
            try:
                code, screen, report = watched(case, options.reprise, python, top, options.timeout)
                wrong = objections(case, code, screen, report)
            except subprocess.TimeoutExpired:
                screen, wrong = "", [f"no verdict after {options.timeout} s"]
            counts["FAIL" if wrong else "pass"] += 1
            print(
                f"{'FAIL' if wrong else 'pass'}  {case.name}: {'; '.join(wrong) or case.verdict}"
                f"  {time.monotonic() - began:.0f} s",
                flush=True,
            )
            if wrong or options.show:
                print("    " + screen.rstrip().replace("\n", "\n    "), flush=True)
    print(f"{counts['pass']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
