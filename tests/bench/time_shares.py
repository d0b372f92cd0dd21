"""Where the processors' time of a benchmark went, from what `perf report` prints of it.

bench_profile (tools/bench.sh) runs a row again under perf and keeps the report as NAME.profile, a line for each function:
its share, its library and its name. publish.py adds the shares by part of the program to the row that NAME stands for.
"""
import re

# The first part whose pattern is in "LIBRARY NAME" has the function. The program's floors are its namespaces.
PARTS = [
    ("the kernel", r"^\[kernel|\[k\]"),
    ("the allocator", r"_int_malloc|_int_free|\bmalloc|\bcfree|\bcalloc|\brealloc|operator (new|delete)|unlink_chunk|sysmalloc|systrim"),
    ("copying, clearing and comparing memory", r"mem(move|cpy|set|cmp)"),
    ("checksums and digests", r"^lib(crypto|z|isal|xxhash)|[Ss]ha256|[Cc]rc32"),
    ("the scenario driver with its judges", r"reprise::(driver|reports|cli)::"),
    ("the simulated world", r"reprise::sim::"),
    ("pickles", r"reprise::pickle::"),
    ("the benchmark itself", r"reprise::bench::|benchmark::"),
    ("the engine", r"reprise::"),
    ("the standard libraries", r"^lib(c|m|stdc\+\+|gcc_s)\.so|\bstd::"),
]
LEAST = 1.5  # per cent; smaller parts are added up as "other"


def part_of(function):
    return next((part for part, pattern in PARTS if re.search(pattern, function)), "other")


def shares(report):
    """Returns the share of each part, in per cent, largest first; empty if perf saw nothing."""
    found = {}
    for percent, function in re.findall(r"^\s+(\d+\.\d+)%\s+(.*\S)", report, re.MULTILINE):
        found[part_of(function)] = found.get(part_of(function), 0.0) + float(percent)
    return dict(sorted(found.items(), key=lambda entry: -entry[1]))


def words(report):
    """Returns the shares as text; empty if perf saw nothing."""
    parts = shares(report)
    large = {part: share for part, share in parts.items() if share >= LEAST and part != "other"}
    if not large:
        return ""
    said = [f"{part} {share:.0f} %" for part, share in large.items()]
    rest = 100 - sum(large.values())
    return "of its time, " + ", ".join(said + ([f"other {rest:.0f} %"] if rest >= 0.5 else []))
