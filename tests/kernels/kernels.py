#!/usr/bin/env python3
"""Checks, or writes, the table of what the compiler makes of each kernel on each architecture.

    kernels.py BUILD TABLE [--cuobjdump PROGRAM] [--write] [--jobs J]

BUILD is the build folder of the preset gpu; its compile_commands.json says how each .cu file is
compiled. Each is compiled again, for its registers, spills and stack, which ptxas prints. cuobjdump
shows the machine code, in which accesses of 16 bytes are counted. Without it they are not checked.

The check fails if a kernel spills, if it has more registers than leave the table's number of blocks of
256 threads on a multiprocessor, more stack, or fewer accesses of 16 bytes than the table, or if it is
in only one of both. Exit status: 0, 1, or 3 if the accesses were not checked.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

THREADS = 256  # of a block: kThreadsPerBlock in launch.cuh
REGISTERS = 65536  # of a multiprocessor, for all three architectures
BLOCKS_MAX = 8  # with 2048 threads
GRAIN = 8  # registers of a thread are given in steps of this
FIELDS = ("registers", "registers_max", "blocks", "spill_stores", "spill_loads", "stack", "loads16", "stores16")

Kernel = collections.namedtuple("Kernel", FIELDS)


def blocks_of(registers):
    """Returns how many blocks of THREADS threads a multiprocessor holds at once."""
    given = (max(registers, 1) + GRAIN - 1) // GRAIN * GRAIN
    return min(BLOCKS_MAX, REGISTERS // (THREADS * given))


def most_registers(blocks):
    """Returns the most registers with which a multiprocessor holds that many blocks."""
    return min(255, REGISTERS // (THREADS * blocks) // GRAIN * GRAIN)


def commands(build):
    """Yields the folder, file and command of each source with kernels of the program."""
    with open(os.path.join(build, "compile_commands.json")) as text:
        for entry in json.load(text):
            if entry["file"].endswith(".cu") and "/tests/gpu/" not in entry["file"]:
                words = shlex.split(entry["command"])
                at = words.index("-o")
                yield entry["directory"], entry["file"], [w for w in words[:at] + words[at + 2:] if w != "-c"]


def short_names(mangled):
    """Returns for each symbol its name without folders, parameters and the compiler's additions."""
    names = {}
    text = subprocess.run(["c++filt"], input="\n".join(mangled), check=True, stdout=subprocess.PIPE, text=True).stdout
    for symbol, name in zip(mangled, text.splitlines()):
        name = re.sub(r"\(anonymous namespace\)::|reprise::|sim::|bench::|^void |(?<=\d)ul\b", "", name)
        depth, end = 0, len(name)
        for at, char in enumerate(name):
            depth += {"<": 1, ">": -1}.get(char, 0)
            if char == "(" and depth == 0:
                end = at
                break
        names[symbol] = re.sub(r"(?<=>) (?=>)", "", name[:end])
    return names


def compiled(directory, file, command, folder):
    """Compiles one source. Returns {(symbol, architecture): {field: number}} and the made file."""
    made = os.path.join(folder, os.path.basename(file) + ".fatbin")
    done = subprocess.run(command + ["-fatbin", "-Xptxas", "-v", "-o", made], cwd=directory, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{file} does not compile:\n{done.stdout}")
    found, at = {}, None
    for line in done.stdout.splitlines():
        entry = re.search(r"Compiling entry function '(\w+)' for 'sm_(\d+)'", line)
        if entry:
            at = found.setdefault((entry.group(1), int(entry.group(2))), {})
        stack = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line)
        # Functions that are not inlined have lines of their own before the kernel's registers.
        if stack and at is not None:
            for field, bytes_ in zip(("stack", "spill_stores", "spill_loads"), stack.groups()):
                at[field] = at.get(field, 0) + int(bytes_)
        used = re.search(r"Used (\d+) registers", line)
        if used and at is not None:
            at["registers"] = int(used.group(1))
    return found, made


def accesses(cuobjdump, made):
    """Returns {(symbol, architecture): (loads, stores)} of 16 bytes of a compiled file."""
    text = subprocess.run([cuobjdump, "-sass", made], check=True, stdout=subprocess.PIPE, text=True).stdout
    counts, architecture, at = {}, 0, None
    for line in text.splitlines():
        code = re.search(r"^\s*code for sm_(\d+)", line)
        if code:
            architecture = int(code.group(1))
        function = re.search(r"^\s*Function : (\w+)", line)
        if function:
            at = counts.setdefault((function.group(1), architecture), [0, 0])
        access = re.search(r"\b(LDG?|STG?)\.E[.A-Z0-9]*\.128\b", line)
        if access and at is not None:
            at[0 if access.group(1).startswith("LD") else 1] += 1
    return counts


def look(build, cuobjdump, jobs):
    """Returns {(file, kernel, architecture): Kernel}; counts are None without cuobjdump."""
    folder = os.path.abspath(os.path.join(build, "kernels"))
    os.makedirs(folder, exist_ok=True)
    sources = sorted(commands(build), key=lambda source: source[1])
    kernels = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for source, (found, made) in zip(sources, pool.map(lambda one: compiled(*one, folder), sources)):
            counts = accesses(cuobjdump, made) if cuobjdump else {}
            names = short_names(sorted({symbol for symbol, _ in found}))
            for (symbol, architecture), one in found.items():
                loads, stores = counts.get((symbol, architecture), (None, None))
                if cuobjdump and loads is None:
                    sys.exit(f"cuobjdump shows no {names[symbol]} for sm_{architecture}")
                blocks = blocks_of(one["registers"])
                key = os.path.relpath(source[1], os.getcwd()), names[symbol], architecture
                if key in kernels:
                    sys.exit(f"two kernels are called {names[symbol]}")
                kernels[key] = Kernel(one["registers"], most_registers(blocks), blocks, one["spill_stores"],
                                      one["spill_loads"], one["stack"], loads, stores)
    return kernels


def read_table(path):
    table = {}
    with open(path) as lines:
        for line in lines:
            if not line.startswith("#"):
                file, name, architecture, *numbers = line.rstrip("\n").split("\t")
                table[file, name, int(architecture.removeprefix("sm_"))] = Kernel(*map(int, numbers))
    return table


def write_table(path, kernels, compiler):
    with open(path, "w") as out:
        out.write("# What the compiler makes of each kernel. ./dev kernels --write writes this, ./dev kernels checks it.\n"
                  "# blocks: of 256 threads, that registers leave room for on a multiprocessor; registers_max: the most\n"
                  "# registers for as many; loads16, stores16: instructions that access 16 bytes; stack and spills: bytes.\n"
                  f"# {compiler}\n"
                  "# file\tkernel\tarchitecture\t" + "\t".join(FIELDS) + "\n")
        for file, name, architecture in sorted(kernels):
            numbers = "\t".join(map(str, kernels[file, name, architecture]))
            out.write(f"{file}\t{name}\tsm_{architecture}\t{numbers}\n")


def mistakes_of(kernels, table):
    """Yields a sentence for each bound that a kernel breaks."""
    for key in sorted(kernels.keys() | table.keys()):
        file, name, architecture = key
        what = f"{file}: {name} on sm_{architecture}"
        if key not in table or key not in kernels:
            yield f"{what}: only in the {'table' if key in table else 'sources'}; ./dev kernels --write"
            continue
        one, bound = kernels[key], table[key]
        if one.spill_stores or one.spill_loads:
            yield f"{what}: spills {one.spill_stores} and {one.spill_loads} bytes"
        if one.registers > bound.registers_max:
            yield (f"{what}: {one.registers} registers leave room for {one.blocks} blocks, {bound.registers_max} "
                   f"for {bound.blocks}")
        if one.stack > bound.stack:
            yield f"{what}: {one.stack} bytes of stack, and {bound.stack} in the table"
        for field in ("loads16", "stores16"):
            if getattr(one, field) is not None and getattr(one, field) < getattr(bound, field):
                yield f"{what}: {getattr(one, field)} {field}, and {getattr(bound, field)} in the table"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("table")
    parser.add_argument("--cuobjdump")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    kernels = look(arguments.build, arguments.cuobjdump, arguments.jobs)
    if not kernels:
        sys.exit("no kernel was compiled")
    if arguments.write:
        if not arguments.cuobjdump:
            sys.exit("the table needs cuobjdump")
        nvcc = next(commands(arguments.build))[2][0]
        version = subprocess.run([nvcc, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
        write_table(arguments.table, kernels, re.search(r"Cuda compilation tools.*", version).group())
    wrong = list(mistakes_of(kernels, read_table(arguments.table)))
    for sentence in wrong:
        print(sentence)
    print(f"{len(kernels)} kernels, {len(wrong)} beyond a bound" +
          ("" if arguments.cuobjdump else "; accesses of 16 bytes not checked: no cuobjdump"))
    return 1 if wrong else (0 if arguments.cuobjdump else 3)


if __name__ == "__main__":
    sys.exit(main())
