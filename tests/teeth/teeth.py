#!/usr/bin/env python3
"""Runs machine-made mutants of core/ against the tests that evaluate them.

    teeth.py TREE [--sample N] [--seed S] [--jobs J] [--seconds T] [--out FILE]

TREE is what instrument.py made, built. Each test runs once with all switches off and writes which
switches it evaluated. A mutant then runs against those tests alone, the fastest first, until one of
them fails: then it is killed. A mutant that no test evaluated is counted by itself.
"""
import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile
import time

BINARIES = ("test_core_", "test_sim_world")
# The longest sweeps of crashes repeat one path a thousand times and would cost an hour more.
LEFT_OUT = "-ProtocolCrash*:*Histories*:CrashStates*1_and_2*"
CATALOGUE = ["run", "scenarios", "--tag", "core", "--rows", "1", "--quiet"]
SLOWEST = 120  # seconds; a test that takes longer with all switches off is left out


def tests_of(tree):
    """Returns the commands of the tests by name."""
    build = os.path.join(tree, "build/release")
    found = {}
    for folder, _, names in os.walk(build):
        for name in names:
            path = os.path.join(folder, name)
            if name.startswith(BINARIES) and os.access(path, os.X_OK) and "." not in name:
                found[name] = [path, "--gtest_brief=1", "--gtest_fail_fast",
                               "--gtest_filter=" + LEFT_OUT]
    program = os.path.join(build, "reprise")
    if os.path.exists(program):
        found["catalogue"] = [program] + CATALOGUE
    return found


class Runner:
    def __init__(self, tree):
        self.tree = os.path.abspath(tree)
        self.tests = tests_of(self.tree)
        self.seconds, self.seen = {}, {}
        self.left_out = []  # tests that do not pass with all switches off

    def run(self, name, limit, **variables):
        """Returns "passed", "failed", "crashed" or "hung", and the seconds that it took."""
        environment = dict(os.environ, RC_PARAMS="seed=1", **variables)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            os.chmod(scratch, 0o1777)  # some tests go on as another user
            environment["TMPDIR"] = scratch
            process = subprocess.Popen(self.tests[name], cwd=self.tree, env=environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       start_new_session=True)
            try:
                code = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                return "hung", time.monotonic() - begun
        ended = "passed" if code == 0 else "crashed" if code < 0 else "failed"
        return ended, time.monotonic() - begun

    def look(self):
        """Runs each test with all switches off, and drops those that fail or take too long."""
        for name in sorted(self.tests):
            with tempfile.NamedTemporaryFile(mode="r") as seen:
                ended, seconds = self.run(name, SLOWEST, REPRISE_TEETH_SEEN=seen.name)
                mutants = {tuple(map(int, line.split(":"))) for line in seen}
            print(f"  {name}: {ended}, {seconds:.1f} s, evaluates {len(mutants)}", flush=True)
            if ended == "passed":
                self.seconds[name], self.seen[name] = seconds, mutants
            else:
                self.left_out.append(name)

    def judge(self, mutant):
        """Returns how the mutant ended and the test that killed it."""
        site, variant = mutant
        covering = [name for name, seen in self.seen.items() if mutant in seen]
        for name in sorted(covering, key=self.seconds.get):
            ended, _ = self.run(name, 5 + 4 * self.seconds[name],
                                REPRISE_TEETH=f"{site}:{variant}")
            if ended != "passed":
                return ended, name
        return "survived", ""


def read_sites(tree):
    sites = {}
    with open(os.path.join(tree, "sites.tsv")) as lines:
        for line in lines:
            number, variant, path, at, kind, change, source = line.rstrip("\n").split("\t", 6)
            sites[int(number), int(variant)] = (path, int(at), kind, change, source)
    return sites


def read_equivalent(path):
    """Returns the reason for each (file, source line, change)."""
    reasons = {}
    with open(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("#") or not line.strip():
                continue
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 4 or not fields[3].strip():
                sys.exit(f"{path}:{number}: wants file, source line, change and reason")
            reasons[tuple(fields[:3])] = fields[3]
    return reasons


def change_of(site):
    path, _, kind, change, source = site
    return path, source, f"{kind} -> {change}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree")
    parser.add_argument("--sample", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--least", type=float, default=0, help="percent that must be killed")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    sites = read_sites(arguments.tree)
    reasons = read_equivalent(os.path.join(os.path.dirname(__file__), "equivalent.tsv"))
    runner = Runner(arguments.tree)
    print("each test with all switches off:")
    runner.look()
    if not runner.seen:
        sys.exit("no test passes with all switches off")
    evaluated = sorted(set().union(*runner.seen.values()) & sites.keys())
    chosen = random.Random(arguments.seed).sample(evaluated, min(arguments.sample, len(evaluated)))
    print(f"{len(sites)} mutants, {len(evaluated)} of them evaluated by a test, "
          f"{len(chosen)} drawn with seed {arguments.seed}", flush=True)
    begun, ended = time.monotonic(), {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        def judged(mutant):
            if time.monotonic() - begun > arguments.seconds:
                return None
            return runner.judge(mutant)
        for mutant, verdict in zip(chosen, pool.map(judged, chosen)):
            if verdict is not None:
                ended[mutant] = verdict
    code = report(arguments, sites, reasons, evaluated, ended, runner.left_out)
    if runner.left_out:
        print("not run, since they fail or are too slow with all switches off: " +
              ", ".join(runner.left_out))
    return code or (3 if runner.left_out else 0)


def report(arguments, sites, reasons, evaluated, ended, left_out):
    counts = {}
    for how, _ in ended.values():
        counts[how] = counts.get(how, 0) + 1
    survivors = [mutant for mutant, (how, _) in ended.items() if how == "survived"]
    equivalent = [m for m in survivors if change_of(sites[m]) in reasons]
    killed = len(ended) - len(survivors)
    rest = len(ended) - len(equivalent)
    for mutant in sorted(survivors, key=lambda m: sites[m][:2]):
        path, line, kind, change, source = sites[mutant]
        reason = reasons.get(change_of(sites[mutant]))
        print(f"{'equivalent' if reason else 'survived'}: {path}:{line}: {kind} -> {change}: "
              f"{source}" + (f" ({reason})" if reason else ""))
    raw = 100 * killed / max(len(ended), 1)
    share = 100 * killed / max(rest, 1)
    print(f"{len(ended)} mutants ran: {killed} killed "
          f"({', '.join(f'{n} {how}' for how, n in sorted(counts.items()) if how != 'survived')}), "
          f"{len(survivors)} survived, {len(equivalent)} of these are equivalent")
    print(f"raw rate {raw:.1f} %, without the equivalent {share:.1f} %")
    if arguments.out:
        with open(arguments.out, "w") as out:
            json.dump({"seed": arguments.seed, "mutants": len(sites), "evaluated": len(evaluated),
                       "ran": len(ended), "left_out": left_out, "killed": killed, "survived": len(survivors),
                       "equivalent": len(equivalent), "raw_percent": round(raw, 1),
                       "survivors": [f"{sites[m][0]}:{sites[m][1]}: {sites[m][2]} -> {sites[m][3]}"
                                     for m in sorted(survivors)]}, out, indent=1)
    return 3 if not ended else 1 if share < arguments.least else 0


if __name__ == "__main__":
    sys.exit(main())
