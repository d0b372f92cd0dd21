#!/usr/bin/env python3
"""Holds the ratios of a run of benchmarks against those that were kept: guard.py RESULTS KEPT [--write]

RESULTS holds Google Benchmark's JSON, one file per executable; KEPT is a table of a row's name and its ratio
to the limit that was measured in turns with it. A row that has lost 15 % of its ratio has become slow, whatever
the machine does besides, unless its turns lay further apart than that: then the row is not decided. --write keeps
the ratios of RESULTS. Exit code: 0 no row is slow, 1 one is or was not measured, 3 one is not decided, or none was kept.
"""
import argparse
import json
import pathlib
import sys

LOSS = 0.15  # share of its ratio that a row may lose


def measured(results):
    """Returns (ratio, noise) by row."""
    rows = {}
    for file in sorted(pathlib.Path(results).glob("*.json")):
        for row in json.loads(file.read_text()).get("benchmarks", []):
            if "noise" in row:
                rows[row["name"].split("/iterations:")[0]] = (row["ratio"], row["noise"])
    return rows


def kept(file):
    lines = (line.split("\t") for line in file.read_text().splitlines() if not line.startswith("#"))
    return {name: float(ratio) for name, ratio in lines}


def judge(now, before):
    """Yields (row, verdict, words)."""
    for name, ratio in before.items():
        if name not in now:
            yield name, 1, f"was not measured; its ratio was {ratio:.2f}"
            continue
        found, noise = now[name]
        words = f"{found:.2f} of its limit, before {ratio:.2f}; noise {noise:.0%}"
        if found >= (1 - LOSS) * ratio:
            yield name, 0, words
        elif noise > LOSS:
            yield name, 3, words + ": not decided"
        else:
            yield name, 1, words + ": SLOW"
    for name in now.keys() - before.keys():
        yield name, 1, "is new; './dev bench --guard --write' keeps it"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("kept", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help="keep the ratios of this run")
    chosen = parser.parse_args()
    now = measured(chosen.results)
    if not now:
        sys.exit(f"{chosen.results}: no benchmark with a limit")
    if chosen.write:
        rows = "".join(f"{name}\t{ratio:.3f}\n" for name, (ratio, _) in sorted(now.items()))
        chosen.kept.write_text("# row\tits ratio to the limit that was measured with it; guard.py reads and writes this\n" + rows)
        return 0
    if not chosen.kept.exists():
        print(f"not run: no ratios are kept in {chosen.kept}; './dev bench --guard --write' keeps those of a quiet machine")
        return 3
    verdicts = sorted(judge(now, kept(chosen.kept)))
    for name, _, words in verdicts:
        print(f"{name}: {words}")
    codes = {code for _, code, _ in verdicts}
    return 1 if 1 in codes else 3 if 3 in codes else 0


if __name__ == "__main__":
    sys.exit(main())
