#!/usr/bin/env python3
"""Checks, or writes, the table of what the compiler makes of each kernel on each architecture.

    kernels.py BUILD TABLE [--cuobjdump PROGRAM] [--write] [--jobs J]

BUILD is the build folder of the preset gpu; its compile_commands.json says how each .cu file is
compiled. Each is compiled again, for its registers, spills and stack, which ptxas prints. cuobjdump
shows the machine code, in which accesses of 16 bytes and the instructions of the main loop are counted.
Without it these are not checked.

The check fails if a kernel spills, if it has more registers than leave the table's number of blocks of
256 threads on a multiprocessor, more stack, fewer accesses of 16 bytes, or a main loop that is a tenth
longer than in the table, or if it is in only one of both. Exit status: 0, 1, or 3 if the machine code
was not looked at.
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
LOOP_MORE = 0.1  # by which the main loop may be longer than in the table: compilers differ
GRAIN = 8  # registers of a thread are given in steps of this
FIELDS = ("registers", "registers_max", "blocks", "spill_stores", "spill_loads", "stack", "loads16", "stores16", "loop", "loop_loads16")

WIDE_LOAD = re.compile(r"\bLDG?\.E[.A-Z0-9]*\.128\b")
WIDE_STORE = re.compile(r"\bSTG?\.E[.A-Z0-9]*\.128\b")

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


def main_loop(code):
    """Returns (instructions, loads of 16 bytes) of the shortest loop that has a third of the kernel's such loads or more.

    `code` has an address and a text for each instruction. (0, 0) without such a loop.
    """
    wide = [at for at, text in code if WIDE_LOAD.search(text)]
    found = []
    for at, text in code:
        back = re.search(r"\bBRA\b.*0x([0-9a-f]+)", text)
        if back and int(back.group(1), 16) < at:
            begin = int(back.group(1), 16)
            loads = sum(begin <= one <= at for one in wide)
            if loads and 3 * loads >= len(wide):
                found.append((sum(begin <= one <= at for one, _ in code), loads))
    return min(found, default=(0, 0))


def machine_code(cuobjdump, made):
    """Returns {(symbol, architecture): [(address, text)]} of a compiled file."""
    text = subprocess.run([cuobjdump, "-sass", made], check=True, stdout=subprocess.PIPE, text=True).stdout
    codes, architecture, at = {}, 0, None
    for line in text.splitlines():
        code = re.search(r"^\s*code for sm_(\d+)", line)
        if code:
            architecture = int(code.group(1))
        function = re.search(r"^\s*Function : (\w+)", line)
        if function:
            at = codes.setdefault((function.group(1), architecture), [])
        instruction = re.match(r"\s*/\*([0-9a-f]{4,6})\*/\s+(.*?);", line)
        if instruction and at is not None:
            at.append((int(instruction.group(1), 16), instruction.group(2)))
    return codes


def counts_of(code):
    """Returns the loads and stores of 16 bytes, and the main loop's instructions and loads."""
    loads = sum(bool(WIDE_LOAD.search(text)) for _, text in code)
    stores = sum(bool(WIDE_STORE.search(text)) for _, text in code)
    return loads, stores, *main_loop(code)


def look(build, cuobjdump, jobs):
    """Returns {(file, kernel, architecture): Kernel}; counts are None without cuobjdump."""
    folder = os.path.abspath(os.path.join(build, "kernels"))
    os.makedirs(folder, exist_ok=True)
    sources = sorted(commands(build), key=lambda source: source[1])
    kernels = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for source, (found, made) in zip(sources, pool.map(lambda one: compiled(*one, folder), sources)):
            codes = machine_code(cuobjdump, made) if cuobjdump else {}
            names = short_names(sorted({symbol for symbol, _ in found}))
            for (symbol, architecture), one in found.items():
                code = codes.get((symbol, architecture))
                if cuobjdump and not code:
                    sys.exit(f"cuobjdump shows no {names[symbol]} for sm_{architecture}")
                blocks = blocks_of(one["registers"])
                key = os.path.relpath(source[1], os.getcwd()), names[symbol], architecture
                if key in kernels:
                    sys.exit(f"two kernels are called {names[symbol]}")
                kernels[key] = Kernel(one["registers"], most_registers(blocks), blocks, one["spill_stores"],
                                      one["spill_loads"], one["stack"], *(counts_of(code) if code else [None] * 4))
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
                  "# registers for as many; loads16, stores16: instructions that access 16 bytes; stack and spills: bytes;\n"
                  "# loop: instructions of the shortest loop that has a third of the loads of 16 bytes or more, loop_loads16: its loads.\n"
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
        if one.loop is not None and one.loop > (1 + LOOP_MORE) * bound.loop:
            yield f"{what}: its main loop has {one.loop} instructions, and {bound.loop} in the table"
        for field in ("loads16", "stores16", "loop_loads16"):
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
          ("" if arguments.cuobjdump else "; machine code not looked at: no cuobjdump"))
    return 1 if wrong else (0 if arguments.cuobjdump else 3)


if __name__ == "__main__":
    sys.exit(main())
