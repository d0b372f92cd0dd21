#!/usr/bin/env python3
"""Runs machine-made mutants of core/ against the tests that evaluate them.

    mutation.py TREE [--sample N] [--seed S] [--jobs J] [--seconds T] [--out FILE] [--again FILE] [--list]

TREE is what instrument.py made, built. Each test runs once with all switches off and writes which
switches it evaluated. A mutant then runs against those tests alone, the fastest first, until one of
them fails: then it is killed. In a first round each mutant meets tests of FIRST_ROUND seconds. The
second round goes on with those that are still alive. So a run that --seconds ends early has tried
more of them, and says how many are not decided. A mutant that no test evaluated is counted by
itself. With --again, the survivors that an earlier run wrote to FILE run, and those that it did not
try; what it killed counts as killed. That holds if the code is the same and tests were only added to;
otherwise the whole sample runs. With --list, the mutants that would run are printed instead.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

BINARIES = ("test_core_", "test_sim_world", "test_laws", "test_hostile")
# The longest sweeps of crashes, flips and sizes repeat one path a thousand times and would cost hours.
LEFT_OUT = re.compile(r"ProtocolCrash|Histories|CrashStates.*1_and_2|^Costs|^BitFlip|^FlipSurvivors|"
                      r"ByteChange.of_the_metadata")
SLOWEST = 60  # seconds; a test that takes longer with all switches off is left out
FIRST_ROUND = 10.0  # seconds of tests that each mutant meets before any meets more
TOGETHER = 2.0  # seconds; tests of one program run in one process up to this time

Test = collections.namedtuple("Test", "program name")  # of the catalogue, the name is a file
How = collections.namedtuple("How", "ended test")  # how a mutant ended, and the tests that saw it
ALIVE = ("survived", "undecided")  # no test killed it; undecided: not all of its tests have run


def names_in(program):
    """Returns the names of a program's tests."""
    lines = subprocess.run([program, "--gtest_list_tests"], stdout=subprocess.PIPE, check=True).stdout.decode()
    suite = ""
    for line in lines.splitlines():
        name = line.split("#")[0].rstrip()
        if not name.startswith(" "):
            suite = name
        elif "DISABLED_" not in name:
            yield suite + name.strip()


def tests_of(tree):
    """Returns all tests, and the scenario files of the core set."""
    build, found = os.path.join(tree, "build/release"), []
    for path in sorted(glob.glob(build + "/**/test_*", recursive=True)):
        name = os.path.basename(path)
        if name.startswith(BINARIES) and os.access(path, os.X_OK) and "." not in name:
            found += [Test(path, test) for test in names_in(path) if not LEFT_OUT.search(test)]
    program = os.path.join(build, "reprise")
    for path in sorted(glob.glob(os.path.join(tree, "scenarios/**/*.yaml"), recursive=True)):
        with open(path) as text:
            if re.search(r"^tags:.*\bcore\b", text.read(), re.MULTILINE) and "/trainers/" not in path:
                found.append(Test(program, os.path.relpath(path, tree)))
    return found


def command(tests):
    """Returns the command that runs these tests, all of one program."""
    if tests[0].program.endswith("/reprise"):
        return [tests[0].program, "run", "--rows", "1", "--quiet"] + [test.name for test in tests]
    return [tests[0].program, "--gtest_brief=1", "--gtest_fail_fast",
            "--gtest_filter=" + ":".join(test.name for test in tests)]


class Runner:
    def __init__(self, tree, jobs):
        self.tree, self.jobs = os.path.abspath(tree), jobs
        self.seconds, self.seen = {}, {}
        self.left_out = []  # tests that do not pass with all switches off

    def run(self, tests, limit, **variables):
        """Returns "passed", "failed", "crashed" or "hung", and the seconds that it took. `limit` is in
        seconds of the processor, so a busy machine makes no test look hung; a test that only waits is
        hung after three times as long."""
        environment = dict(os.environ, RC_PARAMS="seed=1", **variables)
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as scratch:
            os.chmod(scratch, 0o1777)  # some tests go on as another user
            environment["TMPDIR"] = scratch
            process = subprocess.Popen(["prlimit", f"--cpu={int(limit)}:{int(limit) + 2}"] + command(tests),
                                       cwd=self.tree, env=environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       start_new_session=True)
            try:
                code = process.wait(timeout=3 * limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                return "hung", time.monotonic() - begun
        names = {0: "passed", -signal.SIGXCPU: "hung"}
        ended = names.get(code, "crashed" if code < 0 else "failed")
        return ended, time.monotonic() - begun

    def look_at(self, test):
        with tempfile.NamedTemporaryFile(mode="r") as seen:
            ended, seconds = self.run([test], SLOWEST, REPRISE_MUTATION_SEEN=seen.name)
            return ended, seconds, {tuple(map(int, line.split(":"))) for line in seen}

    def look(self):
        """Runs each test with all switches off, and drops those that fail or take too long."""
        tests = tests_of(self.tree)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            for test, (ended, seconds, mutants) in zip(tests, pool.map(self.look_at, tests)):
                if ended == "passed":
                    self.seconds[test], self.seen[test] = seconds, mutants
                else:
                    self.left_out.append(test.name)
                    print(f"  {test.name}: {ended} after {seconds:.1f} s", flush=True)
        print(f"  {len(tests)} tests, {sum(self.seconds.values()):.0f} s", flush=True)

    def batches(self, mutant):
        """Yields lists of tests of one program that evaluate the mutant, the fastest first."""
        covering = sorted((t for t in self.seen if mutant in self.seen[t]), key=self.seconds.get)
        waiting, most = collections.defaultdict(list), 0.125
        for test in covering:
            # The time that tests may take together grows, so the first batches are quick.
            together = waiting[test.program]
            if together and sum(map(self.seconds.get, together)) + self.seconds[test] > most:
                yield waiting.pop(test.program)
                most = min(TOGETHER, 2 * most)
            waiting[test.program].append(test)
        yield from waiting.values()

    def judge(self, mutant, batches, budget):
        """Runs batches until one kills the mutant, or until they have taken `budget` seconds. Returns how
        the mutant ended, and the tests that killed it."""
        site, variant = mutant
        for tests in batches:
            alone = sum(map(self.seconds.get, tests))
            ended, _ = self.run(tests, 5 + 4 * alone, REPRISE_MUTATION=f"{site}:{variant}")
            if ended != "passed":
                return How(ended, tests[0].name if len(tests) == 1 else
                           f"{tests[0].name} and {len(tests) - 1} more")
            budget -= alone
            if budget <= 0:
                return How("undecided", "")
        return How("survived", "")


Site = collections.namedtuple("Site", "path line kind change source")


def read_sites(tree):
    sites = {}
    with open(os.path.join(tree, "sites.tsv")) as lines:
        for line in lines:
            number, variant, path, at, kind, change, source = line.rstrip("\n").split("\t", 6)
            sites[int(number), int(variant)] = Site(path, int(at), kind, change, source)
    return sites


def change_of(site):
    return site.path, site.source, f"{site.kind} -> {site.change}"


def read_equivalent(path, sites):
    """Returns the reason for each (file, source line, change). Ends the program if an entry is none,
    or is more than one site."""
    numbers = collections.Counter(change_of(site) for site in sites.values())
    reasons = {}
    with open(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("#") or not line.strip():
                continue
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 4 or not fields[3].strip():
                sys.exit(f"{path}:{number}: wants file, source line, change and reason")
            if numbers[tuple(fields[:3])] != 1:
                sys.exit(f"{path}:{number}: is {numbers[tuple(fields[:3])]} mutants and must be one")
            reasons[tuple(fields[:3])] = fields[3]
    return reasons


def text_of(site):
    return f"{site.path}:{site.line}: {site.kind} -> {site.change}: {site.source}"


def sampled(sites, evaluated, seed, size):
    """Returns a sample. Each mutant has a place in it that follows from the seed and from the text of
    the mutant, so a change of other code leaves it in its place."""
    twins, places = collections.Counter(), {}
    for mutant in evaluated:
        text = "\n".join(change_of(sites[mutant]))
        places[mutant] = hashlib.sha256(f"{seed}\n{twins[text]}\n{text}".encode()).digest()
        twins[text] += 1
    return sorted(evaluated, key=places.get)[:size]


def earlier_run(arguments):
    """Returns the run that --again names if what it killed would be killed again: since its commit the
    code is the same, and tests were only added to. Otherwise says why not, and returns None."""
    if not arguments.again:
        return None
    with open(arguments.again) as text:
        earlier = json.load(text)
    why = changed_since(earlier.get("commit"))
    if not why:
        return earlier
    print(f"the whole sample runs again: {why}", flush=True)
    return None


def changed_since(commit):
    """Returns what has changed since the commit in a way that may let a mutant live; "" if nothing has."""
    def changes(*paths):
        return subprocess.run(["git", "diff", "--numstat", commit, "--", *paths], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout.decode().splitlines()
    if not commit:
        return "the earlier run does not say of which commit it is"
    try:
        for line in changes("core", "include", "sim", "driver", "properties", "reports/*.cpp", "scenarios"):
            return f"{line.split()[2]} has changed"
        for line in changes("tests", ":(exclude)tests/mutation/equivalent.tsv"):
            if line.split()[1] != "0":
                return f"lines of {line.split()[2]} are gone"
    except subprocess.CalledProcessError:
        return f"there is no commit {commit} here"
    return ""


def drawn(arguments, sites, evaluated, earlier):
    """Returns the mutants that run: a sample, or of an earlier run the survivors and those not tried."""
    if earlier is None:
        return sampled(sites, evaluated, arguments.seed, arguments.sample)
    wanted = set(earlier["survivors"]) | set(earlier["untried"])
    return [mutant for mutant in evaluated if text_of(sites[mutant]) in wanted]


def judge_all(runner, chosen, arguments, sites):
    """Runs both rounds within arguments.seconds. Returns how each mutant ended that was tried."""
    begun = time.monotonic()
    ended = {mutant: How("untried", "") for mutant in chosen}
    batches = {mutant: runner.batches(mutant) for mutant in chosen}
    for number, budget in ((1, FIRST_ROUND), (2, float("inf"))):
        def judged(mutant):
            late = time.monotonic() - begun > arguments.seconds
            return None if late else runner.judge(mutant, batches[mutant], budget)

        waiting = ("untried", "undecided")[number - 1]
        alive = [mutant for mutant in chosen if ended[mutant].ended == waiting]
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for done, (mutant, how) in enumerate(zip(alive, pool.map(judged, alive)), 1):
                ended[mutant] = how or ended[mutant]
                if how and how.ended == "survived":
                    print(f"  survived: {text_of(sites[mutant])}", flush=True)
                if done % 50 == 0:
                    print(f"  round {number}: {done} of {len(alive)}, "
                          f"{time.monotonic() - begun:.0f} s", flush=True)
    return {mutant: how for mutant, how in ended.items() if how.ended != "untried"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree")
    parser.add_argument("--sample", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--least", type=float, default=0, help="percent that must be killed")
    parser.add_argument("--out")
    parser.add_argument("--again", help="runs the survivors of this file, and what it did not try")
    parser.add_argument("--targets", action="store_true", help="prints what to build, and runs nothing")
    parser.add_argument("--list", action="store_true", help="prints the mutants and runs none")
    arguments = parser.parse_args()
    if arguments.targets:
        with open(os.path.join(arguments.tree, "build/release/tests.txt")) as tests:
            print("reprise", *(name for name in tests.read().split() if name.startswith(BINARIES)))
        return 0
    sites = read_sites(arguments.tree)
    reasons = read_equivalent(os.path.join(os.path.dirname(__file__), "equivalent.tsv"), sites)
    runner = Runner(arguments.tree, arguments.jobs)
    print("each test with all switches off:", flush=True)
    runner.look()
    if not runner.seen:
        sys.exit("no test passes with all switches off")
    evaluated = sorted(set().union(*runner.seen.values()) & sites.keys())
    earlier = earlier_run(arguments)
    chosen = drawn(arguments, sites, evaluated, earlier)
    print(f"{len(sites)} mutants, {len(evaluated)} of them evaluated by a test, {len(chosen)} " +
          (f"of {arguments.again}" if earlier else f"drawn with seed {arguments.seed}"), flush=True)
    if arguments.list:
        for mutant in chosen:
            known = " (equivalent)" if change_of(sites[mutant]) in reasons else ""
            print(f"  {text_of(sites[mutant])}{known}")
        return 0
    ended = judge_all(runner, chosen, arguments, sites)
    code = report(arguments, sites, reasons, evaluated, chosen, ended, runner.left_out, earlier)
    if runner.left_out:
        print("not run, since they fail or are too slow with all switches off: " +
              ", ".join(runner.left_out))
    return code or (3 if runner.left_out or len(ended) < len(chosen) else 0)


def head():
    """Returns the commit that runs, or None if the tree has changes that are not committed."""
    def git(*words):
        return subprocess.run(["git", *words], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    return None if git("status", "--porcelain") else git("rev-parse", "HEAD")


def report(arguments, sites, reasons, evaluated, chosen, ended, left_out, earlier):
    """Prints the rates, writes --out, and returns the exit code."""
    counts = collections.Counter(how.ended for how in ended.values())
    alive = sorted(mutant for mutant, how in ended.items() if how.ended in ALIVE)
    equivalent = [mutant for mutant in alive if change_of(sites[mutant]) in reasons]
    for mutant in alive:
        reason = reasons.get(change_of(sites[mutant]))
        print(f"{'equivalent' if reason else ended[mutant].ended}: {text_of(sites[mutant])}" +
              (f" ({reason})" if reason else ""))
    print(f"{len(ended)} mutants ran: {len(ended) - len(alive)} killed "
          f"({', '.join(f'{n} {how}' for how, n in sorted(counts.items()) if how not in ALIVE)}), "
          f"{len(alive)} survived, {len(equivalent)} of these are equivalent, "
          f"{counts['undecided']} met only the first of their tests")
    survivors = [text_of(sites[m]) for m in alive if m not in equivalent]
    untried = [text_of(sites[mutant]) for mutant in chosen if mutant not in ended]
    known, ran = len(equivalent), len(ended)
    if earlier:
        tried = {text_of(sites[mutant]) for mutant in ended}
        survivors += [text for text in earlier["survivors"] if text not in tried]
        untried = [text for text in earlier["untried"] if text not in tried]
        known += earlier["equivalent"]
        ran = earlier["ran"] + len(earlier["untried"]) - len(untried)
        print(f"with the earlier run: {ran} mutants ran, {ran - known - len(survivors)} killed, "
              f"{len(survivors)} survived, {known} are equivalent")
    killed = ran - known - len(survivors)
    raw = 100 * killed / max(ran, 1)
    share = 100 * killed / max(ran - known, 1)
    print(f"raw rate {raw:.1f} %, without the equivalent {share:.1f} %")
    if arguments.out:
        with open(arguments.out, "w") as out:
            json.dump({"seed": arguments.seed, "commit": head(), "mutants": len(sites),
                       "evaluated": len(evaluated), "ran": ran, "left_out": left_out, "killed": killed,
                       "survived": known + len(survivors), "undecided": counts["undecided"],
                       "equivalent": known, "raw_percent": round(raw, 1), "percent": round(share, 1),
                       "survivors": survivors, "untried": untried}, out, indent=1)
    if untried or ran == 0:
        return 3
    if share >= arguments.least:
        return 0
    # More tests might kill those that are undecided.
    return 3 if 100 * (killed + counts["undecided"]) / max(ran - known, 1) >= arguments.least else 1


if __name__ == "__main__":
    sys.exit(main())
