#!/usr/bin/env python3
"""Checks, or writes, the list of an adapter's calls and of the test that fails without each.

    removed_calls.py PROGRAM SITES LIST [--once FILTER] [--jobs J] [--report FILE]
    removed_calls.py PROGRAM SITES LIST --write [--skip FILTER] [--once FILTER] [--jobs J]

PROGRAM runs tests on a model of the device, with a switch at each call (instrument.py, which wrote
SITES too). Each line of LIST is one call: its file, function and statement, and the schedule and the
test that fails when the call is left out. Or, with "-" for both, why nobody could see that it is
missing. FILTER names tests that choose their own schedule, so they run under the first one alone.

The check fails if LIST is not that of the sources, if a call has neither a test nor a reason, or if
its test passes without it. --write keeps the tests that still fail, and looks for others where they
don't. It tries the calls that have a reason, too. --skip
names tests that it does not try, since they take long.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
import xml.sax.saxutils

SCHEDULES = ("latest", "random", "eager")
FAST = 3.0  # seconds; tests up to this time run together in one process
HEAD = ("# Each call of the adapter, and the test that fails when a switch leaves it out. Written by\n"
        "# ./dev mutation --adapters, checked by ctest; a reason is written by hand in place of \"?\".\n"
        "# file <tab> function <tab> statement <tab> schedule <tab> test <tab> reason\n")

Row = collections.namedtuple("Row", "schedule test reason")
NONE = Row("-", "-", "?")
NO_TEST = "no test"  # all were skipped, or there is none of that name


def read_sites(path):
    """Returns the switch of each call. Calls of the same text in functions of one name are counted."""
    sites, twins = {}, collections.Counter()
    with open(path) as lines:
        for line in lines:
            number, variant, file, _, _, _, function, statement = line.rstrip("\n").split("\t")
            twins[file, function, statement] += 1
            count = twins[file, function, statement]
            sites[file, function + (f" ({count})" if count > 1 else ""), statement] = f"{number}:{variant}"
    return sites


def read_list(path):
    rows = {}
    if not os.path.exists(path):
        return rows
    with open(path) as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("#") or not line.strip():
                continue
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 6 or tuple(fields[:3]) in rows:
                sys.exit(f"{path}:{number}: wants file, function, statement, schedule, test and reason, once")
            rows[tuple(fields[:3])] = Row(*fields[3:])
    return rows


class Program:
    def __init__(self, path, once):
        self.path, self.once = os.path.abspath(path), once

    def run(self, names, schedule, switch=None, report=None, limit=240):
        """Runs tests with a call left out. Returns the name of the first that failed, crashed or did not
        end; None if all passed."""
        variables = {"REPRISE_SCHEDULE": schedule, "REPRISE_FEW": "1", "RC_PARAMS": "seed=1"}
        if switch:
            variables["REPRISE_MUTATION"] = switch
        command = ["prlimit", f"--cpu={limit}", self.path, "--gtest_filter=" + names]
        command += [f"--gtest_output=xml:{report}"] if report else ["--gtest_fail_fast"]
        with tempfile.TemporaryDirectory() as scratch:
            try:
                done = subprocess.run(command, env=dict(os.environ, TMPDIR=scratch, **variables), cwd=scratch,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=3 * limit)
                code, output = done.returncode, done.stdout.decode(errors="replace")
            except subprocess.TimeoutExpired as late:
                code, output = 1, (late.stdout or b"").decode(errors="replace")
        if code == 0:
            return None if re.search(r"\[  PASSED  \] [1-9]", output) else NO_TEST
        failed = re.findall(r"^\[  FAILED  \] ([^\s,]+)(?:,| \()", output, re.MULTILINE)
        begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.MULTILINE)
        return (failed or begun[-1:] or ["before its first test"])[0]

    def batches(self, skip):
        """Returns (schedule, filter) pairs that cover all tests, the fast ones first."""
        fast, slow = [], []
        for schedule in SCHEDULES:
            names = "-" + ":".join(filter(None, (skip, self.once if schedule != SCHEDULES[0] else "")))
            with tempfile.NamedTemporaryFile() as report:
                failed = self.run(names, schedule, report=report.name)
                if failed:
                    sys.exit(f"{failed} fails under {schedule} with no call left out")
                seconds = {case.get("classname") + "." + case.get("name"): float(case.get("time"))
                           for case in xml.etree.ElementTree.parse(report.name).iter("testcase")
                           if case.get("result") == "completed"}
            fast.append((schedule, ":".join(name for name in seconds if seconds[name] <= FAST)))
            slow += [(seconds[name], schedule, name) for name in seconds if seconds[name] > FAST]
        return fast + [(schedule, name) for _, schedule, name in sorted(slow)]


def kills(program, row, switch):
    return row.test != "-" and program.run(row.test, row.schedule, switch) == row.test


def killer(program, batches, row, switch):
    """Returns the row of a call: what it was if that still holds, or the first test that fails twice."""
    if kills(program, row, switch):
        return row._replace(reason="")
    for schedule, names in batches:
        failed = program.run(names, schedule, switch)
        found = Row(schedule, failed, "")
        # Alone it must fail, too.
        if failed not in (None, NO_TEST) and kills(program, found, switch):
            return found
    return Row("-", "-", row.reason or "?")


def write(program, sites, rows, path, jobs, skip):
    batches = program.batches(skip)
    order = sorted(sites)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        found = {}
        made = pool.map(lambda key: killer(program, batches, rows.get(key, NONE), sites[key]), order)
        for key, row in zip(order, made):
            found[key] = row
            print(f"  {key[0]}: {key[1]}: {key[2][:60]}: {row.schedule} {row.test} {row.reason}", flush=True)
    with open(path, "w") as out:
        out.write(HEAD)
        for key in order:
            out.write("\t".join(key + found[key]) + "\n")
    return found


def mistakes_of(program, sites, rows, path, jobs):
    """Returns for each call the sentence that says why its line is wrong; "" if it is right."""
    again = "./dev mutation --adapters writes the list"
    mistakes = {key: f"{path} has this call, which is none of the sources; {again}" for key in rows.keys() - sites.keys()}
    mistakes.update({key: f"{path} lacks this call; {again}" for key in sites.keys() - rows.keys()})
    both = sorted(rows.keys() & sites.keys())
    for schedule in SCHEDULES:
        names = {rows[key].test for key in both if rows[key].schedule == schedule}
        failed = program.run(":".join(sorted(names)), schedule) if names else None
        if failed:
            sys.exit(f"{failed} fails under {schedule} with no call left out")

    def mistake(key):
        row = rows[key]
        if row.test == "-":
            return "" if row.reason not in ("", "?") else "no test fails without this call, and the list gives no reason"
        if kills(program, row, sites[key]):
            return ""
        return f"{row.test} passes under {row.schedule} without this call"

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        mistakes.update(zip(both, pool.map(mistake, both)))
    return mistakes


def write_report(path, mistakes):
    """Writes what ./dev test counts, as GoogleTest does."""
    failed = sum(1 for why in mistakes.values() if why)
    with open(path, "w") as out:
        head = f'tests="{len(mistakes)}" failures="{failed}" disabled="0" errors="0"'
        out.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites {head} name="AllTests">\n'
                  f'<testsuite name="RemovedCalls" {head}>\n')
        for key in sorted(mistakes):
            name = xml.sax.saxutils.quoteattr(" ".join(key))
            why = mistakes[key] and f"<failure>{xml.sax.saxutils.escape(mistakes[key])}</failure>"
            out.write(f'<testcase classname="RemovedCalls" name={name}>{why}</testcase>\n')
        out.write("</testsuite>\n</testsuites>\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("sites")
    parser.add_argument("list")
    parser.add_argument("--once", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--skip", default="")
    arguments = parser.parse_args()
    program, sites = Program(arguments.program, arguments.once), read_sites(arguments.sites)
    rows = read_list(arguments.list)
    if arguments.write:
        rows = write(program, sites, rows, arguments.list, arguments.jobs, arguments.skip)
        mistakes = {key: "no test fails without this call, and the list gives no reason"
                    if rows[key].reason == "?" else "" for key in rows}
    else:
        mistakes = mistakes_of(program, sites, rows, arguments.list, arguments.jobs)
    if arguments.report:
        write_report(arguments.report, mistakes)
    wrong = [key for key in sorted(mistakes) if mistakes[key]]
    for key in wrong:
        print(f"{key[0]}: {key[1]}: {key[2]}\n  {mistakes[key]}")
    reasons = sum(1 for row in rows.values() if row.test == "-")
    print(f"{len(mistakes)} calls, {len(wrong)} of them wrong in the list; {reasons} without a test, for a reason")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
