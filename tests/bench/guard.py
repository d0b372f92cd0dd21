#!/usr/bin/env python3
"""Holds the ratios of a run of benchmarks against those that were kept: guard.py RESULTS KEPT [--write]

RESULTS holds Google Benchmark's JSON, one file per executable; KEPT is a table of a row's name, its ratio to the limit
that was measured in turns with it, and its rate. A row that has lost 15 % of its ratio has become slow, whatever the
machine does besides. It is not decided if
- its turns lie further apart than that;
- its rate is as high as before: then the limit has become faster;
- the ratios were kept on another processor, where each kind of work has a speed of its own, unless half of it is lost.
--write keeps what RESULTS has, but of rows whose turns lie too far apart what was kept before. Exit code: 0 no row is
slow, 1 one is or was not measured, 3 one is not decided, or none was kept.
"""
import argparse
import json
import pathlib
import re
import sys

LOSS = 0.15  # share of its ratio that a row may lose
LOSS_ELSEWHERE = 0.5  # the same on another processor
HEAD = "# row\tits ratio to the limit that was measured with it\tits GB/s; guard.py reads and writes this\n"
PROCESSOR = "# processor: "


def processor(cpuinfo):
    """Returns what tells processors apart: many virtual ones have the same name."""
    fields = dict(re.findall(r"^([^\t:]+?)\s*: (.*)$", cpuinfo.split("\n\n")[0], re.MULTILINE))
    names = ("model name", "cpu family", "model", "stepping", "cache size")
    return ", ".join(f"{name} {fields[name]}" for name in names if name in fields) or "unknown"


def measured(results):
    """Returns (ratio, GB/s, noise) by row."""
    rows = {}
    for file in sorted(pathlib.Path(results).glob("*.json")):
        for row in json.loads(file.read_text()).get("benchmarks", []):
            if "noise" in row:
                rows[row["name"].split("/iterations:")[0]] = (row["ratio"], row["ours_GBps"], row["noise"])
    return rows


def kept(text):
    """Returns (ratio, GB/s) by row, and the processor they are from."""
    rows = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, ratio, rate = line.split("\t")
            rows[name] = (float(ratio), float(rate))
    return rows, next((line[len(PROCESSOR):] for line in text.splitlines() if line.startswith(PROCESSOR)), "unknown")


def judge(now, before, same_processor):
    """Yields (row, verdict, words)."""
    for name, (ratio, rate) in before.items():
        if name not in now:
            yield name, 1, f"was not measured; its ratio was {ratio:.2f}"
            continue
        found, found_rate, noise = now[name]
        words = f"{found:.2f} of its limit, before {ratio:.2f}; noise {noise:.0%}"
        if found >= (1 - LOSS) * ratio:
            yield name, 0, words
        elif noise > LOSS:
            yield name, 3, words + ": not decided"
        elif same_processor and found_rate >= (1 - LOSS) * rate:
            yield name, 3, f"{words}: not decided: {found_rate:.3g} GB/s, before {rate:.3g}: its limit is faster"
        elif not same_processor and found >= (1 - LOSS_ELSEWHERE) * ratio:
            yield name, 3, words + ": not decided on this processor"
        else:
            yield name, 1, words + ": SLOW"
    for name in now.keys() - before.keys():
        yield name, 1, "is new; './dev bench --guard --write' keeps it"


def table(now, before, here):
    """Returns the table to keep."""
    rows = {name: before[name] if noise > LOSS and name in before else (ratio, rate) for name, (ratio, rate, noise) in now.items()}
    return HEAD + PROCESSOR + here + "\n" + "".join(f"{name}\t{ratio:.3f}\t{rate:.3g}\n" for name, (ratio, rate) in sorted(rows.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("kept", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="keep the ratios of this run")
    chosen = parser.parse_args()
    here = processor(pathlib.Path("/proc/cpuinfo").read_text())
    now = measured(chosen.results)
    if not now:
        sys.exit(f"{chosen.results}: no benchmark with a limit")
    before, there = kept(chosen.kept.read_text()) if chosen.kept.exists() else ({}, "unknown")
    if chosen.write:
        chosen.kept.write_text(table(now, before, here))
        return 0
    if not before:
        print(f"not run: no ratios are kept in {chosen.kept}; './dev bench --guard --write' keeps those of a quiet machine")
        return 3
    verdicts = sorted(judge(now, before, here == there != "unknown"))
    if here != there:
        print(f"processor: {here}\nkept on:   {there}")
    for name, _, words in verdicts:
        print(f"{name}: {words}")
    codes = {code for _, code, _ in verdicts}
    return 1 if 1 in codes else 3 if 3 in codes else 0


if __name__ == "__main__":
    sys.exit(main())
