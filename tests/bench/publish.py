#!/usr/bin/env python3
"""Writes a page from the results of one run of benchmarks: publish.py RESULTS OUT

RESULTS holds Google Benchmark's JSON, one file per executable (save.json, ...), and beside_torch*.json, one
for each environment of PyTorch that took part. Writes OUT/<date>-<machine>.json and .md, and prints the page.
Needs only Python; nothing that is built or measured needs it.

RESULTS may hold NAME.profile, too: where the CPU time of the row NAME went (time_shares.py); "/" in the row's name is "-" in NAME.

Counters that the script reads: ours_GBps, limit_GBps, ratio, bare_ratio, aim (0: none), noise, peak_MiB, threads;
seconds, bare_seconds, aim_seconds, items; items_per_second, aim_per_second (0: none); read_over_needed,
aim_read_over_needed. The label of a row is "limit: WORDS; bare: WORDS", or one of the two.
"""
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys

import time_shares

# Why a row is slower than PyTorch; no run measures the reasons. The first entry whose pattern matches the row applies. The
# entries are written by hand for rows that were investigated.
REASONS = [
    (r"^save .*no checksums", "ours is as fast as pwrite by two threads to the same tmpfs (save_to_memory/large), so nothing is left to gain"),
    (r"^until the job may go on", "both copy the whole state once, and go on"),
    (r"^load .*CRC-32 verified", "all records are read and their CRC-32 computed; torch checks none"),
]

BESIDE_AIM = 1.5  # times as fast as the peer, or as fast as the limit

BY_HAND = "by hand: "
ABOUT_REASONS = ("`by hand`: the reason is from a list kept by hand, written where a row was looked into, and not measured by "
                 "this run; `not explained`: nothing says why.")
ABOUT_BARE = ("`bare` makes only the system calls and passes over memory that the work can't do without. It was measured in this run, "
              "in turns with ours and the limit where there is one. The column has its share of the limit, or its time.")


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def first_match(pattern, text, default="unknown"):
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1).strip() if found else default


def mount_of(path):
    """Returns the device and the file system on which a path lies."""
    found = output_of("findmnt", "-n", "-o", "SOURCE,FSTYPE,SIZE", "-T", path).split("\n")
    return " ".join(found[-1].split()) or "unknown"


def git(*words):
    return output_of("git", "-c", "safe.directory=*", *words)


def machine(results):
    cpu = first_match(r"^model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    memory = int(first_match(r"^MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text(), "0"))
    cache = pathlib.Path("build/release/CMakeCache.txt")
    compiler = first_match(r"^CMAKE_CXX_COMPILER:[A-Z]+=(.*)", cache.read_text() if cache.exists() else "", "c++")
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_GiB": round(memory / (1 << 20)),
        "kernel": f"{platform.system()} {platform.release()}",
        "tmpfs": mount_of("/dev/shm"),
        "disk": mount_of("build"),
        "compiler": output_of(compiler, "--version").split("\n")[0],
        "commit": git("rev-parse", "HEAD"),
        "dirty": git("status", "--porcelain") != "",
        "load_before": (results / "load_before.txt").read_text().strip() if (results / "load_before.txt").exists() else "unknown",
    }


def slug_of(about):
    """Returns the machine as part of a file's name."""
    cpu = re.sub(r"\((R|TM|C)\)|CPU|Processor|@|\bwith\b", " ", about["cpu"], flags=re.IGNORECASE)
    return "-".join(re.findall(r"[a-z0-9.]+", f"{cpu} {about['cores']} cores".lower()))


def number(value):
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def seconds(value):
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.2f} s"


def by_hand(*words):
    """Returns what the list says about a row."""
    text = " ".join(words)
    return next((BY_HAND + why for pattern, why in REASONS if re.search(pattern, text)), "not explained")


def profile_of(what, profiles):
    """Returns where the CPU time of a row went, by the profile with its name; empty if there is none."""
    return profiles.get(re.sub(r", 2 threads$| \([\d,]+ items\)$", "", what).replace("/", "-"), "")


def row(what, ours, limit, ratio, aim, met, peak="", bare="", measured="", profiles=None):
    """Returns the cells of a row. `measured` is what this run says about why the row misses its aim, if it does."""
    why = ""
    if met == "missed":
        why = "; ".join(filter(None, (measured, profile_of(what, profiles or {})))) or "not explained"
    return [what, ours, limit, ratio, bare, aim, met, peak, why]


def name_of(benchmark):
    return re.sub(r"/(iterations:\d+|manual_time|real_time|threads:\d+)", "", benchmark["name"])


def label_of(benchmark, part):
    """Returns the words for the limit or the bare work of a row."""
    return first_match(rf"(?:^|; ){part}: (.*?)(?:; bare: |$)", benchmark.get("label", ""), "")


def rows_of(benchmark, profiles):
    """Yields one row for each comparison of a benchmark with a limit or an aim."""
    if benchmark.get("run_type") != "iteration":
        return
    what = name_of(benchmark)
    if benchmark.get("error_occurred"):
        yield row(what, benchmark.get("error_message", "failed"), "", "", "", "missed")
        return
    peak = number(benchmark["peak_MiB"]) if "peak_MiB" in benchmark else ""
    if "ratio" in benchmark:
        aim, ratio = benchmark.get("aim", 0), benchmark["ratio"]
        met = "" if aim == 0 else "met" if ratio >= aim else "missed"
        threads = f", {benchmark['threads']:.0f} threads" if benchmark.get("threads", 1) > 1 else ""
        noise = f" (noise {benchmark['noise']:.0%})" if benchmark.get("noise", 0) > 0.15 else ""
        bare = measured = ""
        if "bare_ratio" in benchmark:
            bare = number(benchmark["bare_ratio"])
            measured = f"bare has {bare} of the limit, ours {number(ratio / benchmark['bare_ratio'])} of bare"
        yield row(what, f"{number(benchmark['ours_GBps'])} GB/s", f"{number(benchmark['limit_GBps'])} GB/s: {label_of(benchmark, 'limit')}{threads}",
                  number(ratio) + noise, f"{aim:g}" if aim else "", met, peak, bare, measured, profiles)
    if "read_over_needed" in benchmark:
        aim = benchmark["aim_read_over_needed"]
        met = "met" if benchmark["read_over_needed"] <= aim else "missed"
        yield row(f"{what}: bytes read", "", "bytes needed", f"{benchmark['read_over_needed']:.3f}", f"at most {aim:g}", met)
    if "aim_per_second" in benchmark:
        aim, rate = benchmark["aim_per_second"], benchmark["items_per_second"]
        met = "" if aim == 0 else "met" if rate >= aim else "missed"
        yield row(what + ", 2 threads", f"{rate:,.0f} a second", "", "", f"at least {aim:,.0f}" if aim else "", met, peak, profiles=profiles)
    if "aim_seconds" in benchmark:
        aim, taken = benchmark["aim_seconds"], benchmark["seconds"]
        met = "met" if taken <= aim else "missed"
        bare = measured = ""
        if "bare_seconds" in benchmark:
            bare = seconds(benchmark["bare_seconds"])
            measured = f"bare takes {bare}, ours {number(taken / benchmark['bare_seconds'])} times as long"
        if "items" in benchmark:
            what += f" ({benchmark['items']:,.0f} items)"
        yield row(what, seconds(taken), "", "", f"at most {seconds(aim)}", met, peak, bare, measured, profiles)


def about_bare(benchmarks):
    """Returns the lines that say what the bare work of each row is."""
    found = {}
    for benchmark in benchmarks:
        words = label_of(benchmark, "bare")
        if words and name_of(benchmark) not in found.setdefault(words, []):
            found[words].append(name_of(benchmark))
    return [ABOUT_BARE, ""] + [f"- {', '.join(names)}: {words}." for words, names in found.items()] if found else []


def table(head, rows):
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in cells) + " |" for cells in rows]


def beside_cells(entry):
    ours, theirs = seconds(entry["ours_s"]), seconds(entry["torch_s"])
    if "bytes" in entry:
        ours += f", {entry['bytes'] / entry['ours_s'] / 1e9:.2f} GB/s"
        theirs += f", {entry['bytes'] / entry['torch_s'] / 1e9:.2f} GB/s"
    why = by_hand(entry["what"], entry["ours"], entry["torch"]) if entry["ratio"] < BESIDE_AIM else ""
    return [entry["what"], entry["ours"], ours, entry["torch"], theirs, number(entry["ratio"]), why]


def about_reasons(rows):
    return ["", ABOUT_REASONS] if any(BY_HAND in why or why == "not explained" for *_, why in rows) else []


def page(about, benches, beside, profiles):
    lines = [f"# Benchmarks of {about['date']}", ""]
    lines += [f"{about['cpu']}, {about['cores']} cores, {about['memory_GiB']} GiB, {about['kernel']}; tmpfs {about['tmpfs']}, disk {about['disk']};"]
    lines += [f"{about['compiler']}; commit {about['commit'][:12]}{' with changes' if about['dirty'] else ''}."]
    lines += [f"Load averages before the run: {about['load_before']}.", ""]
    lines += ["Made by `./dev bench --publish`. Each limit was measured in turns with ours, in the same process; rates are",
              "of median times. `peak MiB` is by how much the process grew at most beyond what it held before. `noise` is how",
              "far apart the middle half of the turns lay, where that is more than 15 %. `of its CPU time`: the row, or a sample of",
              "the scenarios or pairs, ran once more under `perf`; shares are of functions themselves, without those that they call."]
    for name, document in benches.items():
        rows = [cells for benchmark in document["benchmarks"] for cells in rows_of(benchmark, profiles)]
        lines += ["", f"## {name}", ""]
        lines += table(["what", "ours", "limit", "ratio", "bare", "aim", "", "peak MiB", "why"], rows)
        bare = about_bare(document["benchmarks"])
        lines += [""] + bare if bare else []
        lines += about_reasons(rows)
    lines += ["", "## Beside PyTorch", ""]
    if not beside:
        return lines + ["Not run: no environment; `./dev interop` makes it."]
    lines += ["In turns with ours on the same bytes and files, all on the tmpfs, where syncing costs nothing. A ratio above 1: ours is",
              "faster. Ranks in turn: one process loads each rank's share after the other, each alone on the machine; so do we."]
    measured = set()
    for document in beside:
        found = document["versions"]
        rows = [beside_cells(entry) for entry in document["rows"]]
        measured |= {entry["row"] for entry in document["rows"]}
        lines += ["", f"Measured with torch {found['torch']}, megatron-core {found['megatron_core'] or 'not installed'}, Python {found['python']}:", ""]
        lines += table(["what", "ours", "", "PyTorch", "", "ratio", "why"], rows) + about_reasons(rows)
    same = [entry for document in beside for entry in document["rows"] if "other_owners" in entry]
    lines += [""] + [f"{entry['what']}: {entry['other_owners']} of {entry['items']} shards have another owner." for entry in same]
    return lines + [f"{line}." for document in beside for line in document["not_run"] if line.split(":")[0] not in measured]


def main(results, out):
    results, out = pathlib.Path(results), pathlib.Path(out)
    found = {file.stem: json.loads(file.read_text()) for file in sorted(results.glob("*.json"))}
    benches = {name: document for name, document in found.items() if not name.startswith("beside_torch")}
    beside = [document for name, document in found.items() if name.startswith("beside_torch")]
    texts = {file.stem: time_shares.words(file.read_text()) for file in sorted(results.glob("*.profile"))}
    profiles = {name: text for name, text in texts.items() if text}
    about = {"date": datetime.date.today().isoformat(), **machine(results)}
    slug = slug_of(about)
    out.mkdir(parents=True, exist_ok=True)
    lines = page(about, benches, beside, profiles)
    whole = {"about": about, "benchmarks": {name: document["benchmarks"] for name, document in benches.items()}, "beside_torch": beside, "profiles": profiles}
    (out / f"{about['date']}-{slug}.json").write_text(json.dumps(whole, indent=1) + "\n")
    (out / f"{about['date']}-{slug}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    print(f"\nwritten: {out}/{about['date']}-{slug}.md and .json")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
