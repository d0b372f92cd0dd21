#!/usr/bin/env python3
"""Holds the ratios of a run of benchmarks against those that were kept: guard.py RESULTS KEPT [--write]

RESULTS holds Google Benchmark's JSON, one file per executable; KEPT is a table of a row's name, its ratio to the limit
that was measured in turns with it, and its ratio to the bare work, if it has one. A row that has lost 15 % of its ratio
to the limit has become slow, whatever the machine does besides. It is not decided if
- its turns lay further apart than that;
- it is as fast as before beside the bare work: then the limit has become faster;
- the ratios were kept on another processor, where each kind of work has a speed of its own.
--write keeps the ratios of RESULTS. Exit code: 0 no row is slow, 1 one is or was not measured, 3 one is not decided, or
none was kept.
"""
import argparse
import json
import pathlib
import re
import sys

LOSS = 0.15  # share of its ratio that a row may lose
HEAD = "# row\tits ratio to the limit that was measured with it\tits ratio to bare work; guard.py reads and writes this\n"
PROCESSOR = "# processor: "


def processor(cpuinfo):
    """Returns what tells processors apart: many virtual ones have the same name."""
    fields = dict(re.findall(r"^([^\t:]+?)\s*: (.*)$", cpuinfo.split("\n\n")[0], re.MULTILINE))
    names = ("model name", "cpu family", "model", "stepping", "cache size")
    return ", ".join(f"{name} {fields[name]}" for name in names if name in fields)


def measured(results):
    """Returns (ratio, ratio to bare work or None, noise) by row."""
    rows = {}
    for file in sorted(pathlib.Path(results).glob("*.json")):
        for row in json.loads(file.read_text()).get("benchmarks", []):
            if "noise" in row:
                bare = row["ratio"] / row["bare_ratio"] if "bare_ratio" in row else None
                rows[row["name"].split("/iterations:")[0]] = (row["ratio"], bare, row["noise"])
    return rows


def kept(text):
    """Returns (ratio, ratio to bare work or None) by row, and the processor they are from."""
    rows = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, ratio, *bare = line.split("\t")
            rows[name] = (float(ratio), float(bare[0]) if bare else None)
    return rows, next((line[len(PROCESSOR):] for line in text.splitlines() if line.startswith(PROCESSOR)), "unknown")


def judge(now, before, same_processor):
    """Yields (row, verdict, words)."""
    for name, (ratio, bare) in before.items():
        if name not in now:
            yield name, 1, f"was not measured; its ratio was {ratio:.2f}"
            continue
        found, found_bare, noise = now[name]
        words = f"{found:.2f} of its limit, before {ratio:.2f}; noise {noise:.0%}"
        if found >= (1 - LOSS) * ratio:
            yield name, 0, words
        elif noise > LOSS:
            yield name, 3, words + ": not decided"
        elif bare and found_bare and found_bare >= (1 - LOSS) * bare:
            yield name, 3, f"{words}: not decided: {found_bare:.2f} of bare work, before {bare:.2f}"
        elif not same_processor:
            yield name, 3, words + ": not decided on this processor"
        else:
            yield name, 1, words + ": SLOW"
    for name in now.keys() - before.keys():
        yield name, 1, "is new; './dev bench --guard --write' keeps it"


def table(now, here):
    rows = (f"{name}\t{ratio:.3f}" + (f"\t{bare:.3f}" if bare else "") + "\n" for name, (ratio, bare, _) in sorted(now.items()))
    return HEAD + PROCESSOR + here + "\n" + "".join(rows)


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
    if chosen.write:
        chosen.kept.write_text(table(now, here))
        return 0
    if not chosen.kept.exists():
        print(f"not run: no ratios are kept in {chosen.kept}; './dev bench --guard --write' keeps those of a quiet machine")
        return 3
    before, there = kept(chosen.kept.read_text())
    verdicts = sorted(judge(now, before, here == there))
    if here != there:
        print(f"processor: {here}\nkept on:   {there}")
    for name, _, words in verdicts:
        print(f"{name}: {words}")
    codes = {code for _, code, _ in verdicts}
    return 1 if 1 in codes else 3 if 3 in codes else 0


if __name__ == "__main__":
    sys.exit(main())
