"""Where the CPU time of a benchmark went, from what `perf report` prints of it.

bench_profile (tools/bench.sh) runs a row again under perf and keeps the report as NAME.profile, a line for each function:
its share, its library and its name. The share is of the function itself, without those that it calls. publish.py writes
the shares of the program's parts beside the row that NAME stands for.
"""
import re

# A function belongs to the first part whose pattern is in "LIBRARY NAME". Namespaces tell the parts of the program apart.
PARTS = [
    ("the kernel", r"^\[kernel|\[k\]"),
    ("the allocator", r"malloc|calloc|realloc|memalign|_int_free|cfree|\bfree\b|__libc_free|operator (new|delete)|unlink_chunk|systrim|arena"),
    ("copying, clearing and comparing memory", r"mem(move|cpy|set|cmp)"),
    ("checksums and digests", r"^lib(crypto|z|isal|xxhash)|[Ss]ha256|[Cc]rc32|[Dd]igest"),
    ("the driver's own code", r"reprise::(driver|reports|cli)::"),
    ("the simulated world's own code", r"reprise::sim::"),
    ("pickles", r"reprise::pickle::"),
    ("the benchmark itself", r"reprise::bench::|benchmark::"),
    ("the engine's own code", r"reprise::"),
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
    return "of its CPU time, " + ", ".join(said + ([f"other {rest:.0f} %"] if rest >= 0.5 else []))
