"""Replaces single bytes of real metadata and archives. Where `reprise verify` says whole, torch, zipfile and Python must read the same."""
import collections
import ctypes
import datetime
import json
import os
import pathlib
import re
import resource
import shutil
import signal

import torch
import torch.distributed.checkpoint as dcp

import flips
import make_pickles
from content import Different

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
BATCH = 400
BYTES_PER_CHANGE = 255
ALL = os.environ.get("REPRISE_INTEROP_ALL", "") == "1"  # the nightly run; otherwise one change in STEP is tried
STEP = 1 if ALL else int(os.environ.get("REPRISE_INTEROP_STEP", 293))

# The differences that docs/format.md allows: a name, what verify notes, and what Python says of the same bytes. Whoever adds one
# explains it there.
RULES = (
    ("names that are never imported", r"which is not on the list of allowed names|when it is called", r"^(ModuleNotFoundError|AttributeError|ImportError|ValueError: Empty module name|other)"),
    ("opcodes of the text protocols", r"belongs to the text protocols", r""),
    ("archives of a later version", r"versions 1 to 10 are supported", r"^RuntimeError.*version"),
    ("a value written in another way", r"", r"^equal"),
    ("arguments that are not interpreted", r"may not be |this use is not allowed|is not known|to each other|changed later|is built twice|itself|Unsupported|outside of a tensor", r""),
)


def limit_child(folder):
    """Leaves a child too little to do harm: changed pickles may call anything."""
    os.chdir(folder)
    signal.alarm(600)
    in_use = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    for what, most in ((resource.RLIMIT_CPU, 500), (resource.RLIMIT_AS, in_use + (1 << 30)), (resource.RLIMIT_FSIZE, 1 << 20),
                       (resource.RLIMIT_NOFILE, 64), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (most, most))
    ctypes.CDLL(None).unshare(0x40000000)  # its own network, which has nothing; not everyone may have that
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)


def in_children(rows, check, folder):
    """Yields check(row) for each row, from children of BATCH rows each; a row at which a child dies yields 'died'."""
    at = 0
    while at < len(rows):
        batch = rows[at:at + BATCH]
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.close(reader)
                limit_child(folder)
                for row in batch:
                    os.write(writer, (json.dumps(check(row)) + "\n").encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answers:
            said = [json.loads(line) for line in answers if line.endswith("\n")]
        os.waitpid(child, 0)
        if len(said) < len(batch):
            said.append("died")
        yield from said
        at += len(said)


def changed(data, change):
    at, mask = divmod(int(change), BYTES_PER_CHANGE)
    data = bytearray(data)
    data[at] ^= mask + 1
    return at, bytes(data)


def loaded(value):
    """Returns what a load takes from a value: of a tensor its elements, not if it wants a gradient."""
    return {**value, "tensor": {**value["tensor"], "requires_grad": None}} if isinstance(value, dict) and "tensor" in value else value


def reader_of(truth, checkpoint, undamaged):
    """Returns a function that says what torch and zipfile read after a change: '' if the same as Reprise."""
    def read(row):
        file, change, account, notes = row
        at, data = changed(truth.files[file], change)
        try:
            if file == ".metadata":
                (checkpoint / file).write_bytes(data)
                said = truth.account(checkpoint)
                return "" if said == account else f"other: {said[:160]}"
            for item in truth.items:
                if item[0] == file and item[1] <= at < item[2]:
                    value, known = (loaded(it) for it in (truth.read(data[item[1]:item[2]])[1], truth.known[item][1]))
                    if "opaque, kept as bytes" in notes or (account == undamaged) == (value == known):
                        return ""
                    return f"{'equal' if value == known else 'other'}: {str(value)[:160]}"
            return ""
        except BaseException as error:  # whatever it raises, torch does not read it
            return f"{type(error).__name__}: {str(error)[:160]}"
    return read


def rule_for(notes, said):
    return next((name for name, note, answer in RULES if (notes or not note) and re.search(note, notes) and re.search(answer, said)), None)


def agree(make, file):
    """Requires that Python's readers agree with Reprise on each change of `file` that verify passes, but for the named rules."""
    def check(reprise, folder):
        checkpoint = folder / "saved"
        make(checkpoint)
        truth = flips.Truth(checkpoint)
        undamaged, rows, (_, tried, _) = flips.survivors(reprise, checkpoint, folder / "survivors.txt", seconds=3000, bytes=1, file=file, step=STEP)[:3]
        if truth.account(checkpoint) != undamaged:
            raise Different(f"undamaged: {truth.account(checkpoint)} | {undamaged}")
        (folder / "empty").mkdir()
        used, wrong = collections.Counter(), []
        for row, said in zip(rows, in_children(rows, reader_of(truth, checkpoint, undamaged), folder / "empty")):
            rule = rule_for(row[3], said) if said else None
            if rule:
                used[rule] += 1
            elif said:
                at, mask = divmod(int(row[1]), BYTES_PER_CHANGE)
                wrong.append(f"{row[0]} byte {at} ^ {mask + 1:#x}: {said} | {row[2][:60]} | {row[3][-200:]}")
        (checkpoint / file).write_bytes(truth.files[file])
        RULES_USED.update(used)
        if wrong:
            raise Different(f"{len(wrong)} of {len(rows)} changes that verify calls whole are refused or read otherwise:\n" + "\n".join(wrong[:40]))
        return len(rows), f"{int(tried):,} changes, {len(rows):,} of them whole and read alike, but for {sum(used.values())} by rule {dict(used)}"
    return check


RULES_USED = collections.Counter()


def each_rule_is_needed(reprise, folder):
    unused = [name for name, _, _ in RULES if not RULES_USED[name]]
    if unused and ALL:
        raise Different(f"no change needs these rules: {unused}")
    return 1 + sum(RULES_USED.values()), f"{dict(RULES_USED)}"


def python_answers_as_written(reprise, folder):
    """The unit tests hold Reprise against pickles.tsv; this holds pickles.tsv against Python."""
    written = (DATA / "vectors" / "pickles.tsv").read_text().splitlines()
    said = list(in_children(list(make_pickles.ROWS.items()), lambda row: make_pickles.answer(row[1]), folder))
    names = [line.split("\t")[0] for line in written]
    wrong = [(name, before, now) for name, line, now in zip(names, written, said)
             if (before := line.split("\t")[2]) != now and "loads" in (before, now)]
    if wrong or names != list(make_pickles.ROWS):
        raise Different(f"pickles.tsv is not what Python says: {wrong[:5]}")
    return len(said), f"{len(said)} pickles, {said.count('loads')} of them load"


def with_common(folder):
    torch.save({"iteration": 7}, folder / "common.pt")


def saved(state):
    """Saves without checksums: with them, verify finds each change of an item."""
    def make(folder):
        torch.serialization.set_crc32_options(False)
        try:
            dcp.save(state(), checkpoint_id=folder, no_dist=True)
            with_common(folder)
        finally:
            torch.serialization.set_crc32_options(True)
    return make


def many_kinds():
    import argparse
    import signal as signals
    import uuid

    import numpy
    day = datetime.datetime(2026, 2, 3, 4, 5, 6, 7, datetime.timezone(datetime.timedelta(hours=2)))
    return {"kinds": collections.deque([day, day.date(), day.time(), range(0, 9, 2), 1 + 2j, pathlib.PurePosixPath("a/b"), torch.Size((2, 3)), torch.float16,
                      torch.device("cpu"), signals.SIGTERM, uuid.UUID(int=5), argparse.Namespace(lr=0.1), collections.OrderedDict(a=1),
                      collections.deque([1], 3), collections.Counter("ab"), {1, 2}, frozenset((3,)), b"\x01\xff", bytearray(b"z"), slice(1, 2),
                      numpy.arange(3, dtype=numpy.float32), numpy.int64(4), 1 << 70, None, True, 2.5, torch.arange(2.0)])}


def one_tensor():
    return {"weight": torch.arange(6, dtype=torch.float32).reshape(2, 3).t()}


def megatron(folder):
    shutil.copytree(DATA / "mcore_0.16.1_buckets" / "iter_0000010", folder)


def cases():
    yield "pickles composed by hand", python_answers_as_written
    yield "changed bytes of torch's metadata", agree(flips.make, ".metadata")
    yield "changed bytes of Megatron's metadata", agree(megatron, ".metadata")
    yield "changed bytes of an object", agree(saved(many_kinds), "__0_0.distcp")
    yield "changed bytes of a tensor", agree(saved(one_tensor), "__0_0.distcp")
    yield "changed bytes, each rule", each_rule_is_needed
