"""Reprise rewrites what torch 2.15 saved, and an earlier torch, in an environment of its own, reads the result."""
import json
import os
import pathlib
import subprocess
import sys

from content import Different, Skipped, resharded

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "torch_2.15.0"
CHECK = pathlib.Path(__file__).with_name("check_with_torch.py")


def older_python():
    """Returns the interpreter that has the earlier torch; ./dev interop says which, or why there is none."""
    python = os.environ.get("REPRISE_INTEROP_OLDER_PYTHON", "")
    if not python:
        raise Skipped("not run: " + os.environ.get("REPRISE_INTEROP_OLDER_WHY", "no environment with an earlier torch"))
    return python


def says(python, directory, expected):
    """Returns the line in which check_with_torch.py says what that torch reads."""
    done = subprocess.run([python, CHECK, directory, expected], capture_output=True, text=True, timeout=300)
    return (done.stdout.strip().splitlines() or [done.stderr.strip()[-400:]])[-1]


def fixtures():
    """Yields each checkpoint whose values one torch saved for all ranks."""
    for expected in sorted(DATA.glob("*.expected.json")):
        saved = DATA / expected.name.removesuffix(".expected.json")
        if (saved / ".metadata").exists():
            yield saved, expected


def earlier_torch_reads(reprise, folder):
    """The earlier torch reads each checkpoint of torch 2.15 after a reshard, and neither the original nor one with strides."""
    python = older_python()
    tensors = 0
    for saved, expected in fixtures():
        resharded(reprise, saved, folder / saved.name, "--ranks", 3)
        said = says(python, folder / saved.name, expected)
        if not said.startswith("SAME"):
            raise Different(f"{saved.name}: {said}")
        tensors += len(json.loads(expected.read_text())["tensors"])
    saved, expected = next(fixtures())
    resharded(reprise, saved, folder / "strides", "--keep-strides")
    for directory, reader, word in ((saved, python, "UNREADABLE"), (folder / "strides", python, "UNREADABLE"), (folder / "strides", sys.executable, "SAME")):
        said = says(reader, directory, expected)
        if not said.startswith(word):
            raise Different(f"{directory.name}: {said}, which should be {word}")
    return tensors, f"{tensors} tensors; {said[said.index('('):]} reads strides, the earlier one does not"


def cases():
    if "REPRISE_INTEROP_OLDER_PYTHON" not in os.environ and "REPRISE_INTEROP_OLDER_WHY" not in os.environ:
        return  # this run has not looked for one
    yield "an earlier torch reads what Reprise writes", earlier_torch_reads
