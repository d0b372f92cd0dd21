#!/usr/bin/env python3
"""Checks that torch, Megatron-Core and Reprise read the same bits from each other's checkpoints.

    interop.py --reprise PROGRAM [--only REGEX] [--keep DIR]

Prints one line for each case; the last line counts the cases. Exits with 0 if none failed. Uses no GPU, and no network but
loopback.
"""
import argparse
import contextlib
import importlib.metadata
import os
import pathlib
import platform
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")

import torch

from content import Different, Reprise, Skipped


def all_cases():
    """Returns a list of (name, check). check(reprise, folder) gets an empty folder; it returns the amount compared and a description of it."""
    import changes
    import exports
    import flips
    import older
    import reads
    import reruns
    import writes
    found = [*reads.cases(), *writes.cases(), *reruns.cases(), *older.cases(), *flips.cases(), *changes.cases(), *exports.cases()]
    if writes.has_mcore():
        import forms
        import mimo
        return [*found, *reads.mcore_cases(), *mimo.cases(), *forms.cases()]

    def without_mcore(reprise, folder):
        raise Skipped("not run: megatron-core is not installed")
    return [*found, ("Megatron", without_mcore)]


def run_case(check, reprise, folder):
    """Runs a case in its folder. Returns the verdict and a text for it."""
    try:
        with contextlib.chdir(folder):  # torch can't be imported where the working directory is gone
            compared, words = check(reprise, folder)
        return ("pass", words) if compared > 0 else ("FAIL", f"nothing was compared: {words}")
    except Skipped as reason:
        return "skip", str(reason)
    except Different as difference:
        return "FAIL", str(difference)
    except Exception as error:  # any other exception is a failure of the case
        import traceback
        return "FAIL", "".join(traceback.format_exception(error))[-3000:]


def version_of(package):
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


def print_versions(reprise, packages=("torch", "megatron-core", "numpy")):
    packages = ", ".join(map(version_of, packages))
    print(f"{packages}, Python {platform.python_version()}, {reprise.must('--version').strip()}", flush=True)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reprise", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="leave the checkpoints there")
    return parser.parse_args()


def main():
    options = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # exits normally, so that the ranks are ended, too
    if tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 8):
        sys.exit(f"torch {torch.__version__} is too old: 2.8 or newer")
    torch.set_num_threads(1)
    reprise = Reprise(options.reprise)
    print_versions(reprise)
    counts = {"pass": 0, "FAIL": 0, "skip": 0}
    began = time.monotonic()
    top = pathlib.Path(options.keep.resolve() if options.keep else tempfile.mkdtemp(prefix="interop."))
    try:
        for name, check in all_cases():
            if not re.search(options.only, name):
                continue
            folder = top / name.replace(" ", "_").replace("/", "_")
            folder.mkdir(parents=True)
            start = time.monotonic()
            verdict, words = run_case(check, reprise, folder)
            counts[verdict] += 1
            print(f"{verdict} {time.monotonic() - start:5.1f} s  {name}: {words}", flush=True)
            if not options.keep:
                shutil.rmtree(folder)
    finally:
        if not options.keep:
            shutil.rmtree(top)
    print(f"{counts['pass']} passed, {counts['FAIL']} failed, {counts['skip']} skipped in {time.monotonic() - began:.0f} s")
    return 1 if counts["FAIL"] or not counts["pass"] else 0


if __name__ == "__main__":
    sys.exit(main())
