"""Makes a training script a trainer: reads the plan of this life, says what the process holds, and dies where it is told to.

It needs numpy and the standard library; torch tensors are taken where torch is there. Nothing here looks at a checkpoint
or at a state dict: keys, shapes and boxes are what the training script computed from its layout and its rank.

    witness = Witness(versions=["torch"])
    for action in witness.actions(at_end):  # load (if this life begins with one), train, save, finalize
        ...
        with witness.phase("save.write", step): ...
        witness.state("save", step, [witness.tensor("model.w", [4, 8], [([2, 0], w)])], [witness.object("cursor", 7)])
"""
import contextlib
import enum
import hashlib
import importlib.metadata
import json
import math
import os
import signal
import sys

import numpy

GOLD, STRIDE = numpy.uint64(0x9E3779B97F4A7C15), numpy.uint64(0xD1342543DE82EF95)
FIRST, SECOND = numpy.uint64(0xBF58476D1CE4E5B9), numpy.uint64(0x94D049BB133111EB)


def mix64(x):
    """The finalizer of splitmix64 over an array of uint64; sums and products wrap."""
    x = x + GOLD
    x = (x ^ (x >> numpy.uint64(30))) * FIRST
    x = (x ^ (x >> numpy.uint64(27))) * SECOND
    return x ^ (x >> numpy.uint64(31))


def seed_of(key, dtype):
    return int.from_bytes(hashlib.sha256(key.encode() + b"\0" + dtype.encode()).digest()[:8], "little")


def indices(shape, at, size):
    """The row-major indices in the whole tensor of the elements of a box, in the box's row-major order."""
    found, stride = numpy.zeros(1, numpy.uint64), 1
    for extent, begin, count in zip(reversed(shape), reversed(at), reversed(size)):
        axis = (numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(begin)) * numpy.uint64(stride)
        found, stride = (axis[:, None] + found[None, :]).reshape(-1), stride * extent
    return found


def elements(values):
    """Name of the dtype, shape, and the elements as unsigned integers: one row, or two (low, high) if they have 16 bytes."""
    if hasattr(values, "detach"):
        import torch
        flat = values.detach().cpu().contiguous().reshape(-1)
        name, width, shape = str(values.dtype).removeprefix("torch."), flat.element_size(), list(values.shape)
        raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    else:
        values = numpy.asarray(values)
        name, width, shape, raw = values.dtype.name, values.dtype.itemsize, list(values.shape), values.tobytes()
    words = numpy.frombuffer(raw, f"<u{min(width, 8)}").astype(numpy.uint64)
    return name, shape, words.reshape(-1, 2).T if width == 16 else words.reshape(1, -1)


def digest(key, dtype, shape, at, size, words):
    """The digest of a box as a number: digests of disjoint boxes add up, modulo 2**64, to that of the tensor."""
    mixed = mix64((numpy.uint64(seed_of(key, dtype)) + indices(shape, at, size) * STRIDE) ^ words[0])
    return int(numpy.sum(mix64(mixed ^ words[1]) if len(words) == 2 else mixed, dtype=numpy.uint64))


def canonical(value):
    """A tree of JSON values that does not depend on the process: floats as hex, tensors by their digest."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, enum.Enum):
        return {"enum": value.name}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return {"float": float(value).hex()}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {"dict": sorted(([canonical(k), canonical(v)] for k, v in value.items()), key=json.dumps)}
    if isinstance(value, (list, tuple)):
        return [canonical(v) for v in value]
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        dtype, shape, words = elements(value)
        return {"dtype": dtype, "shape": shape, "digest": f"{digest('', dtype, shape, [0] * len(shape), shape, words):016x}"}
    return {"class": type(value).__name__, "fields": canonical(vars(value))}


def split(count, parts, number):
    """Begin and length of part `number` where `count` rows are cut as torch.chunk cuts them."""
    rows = -(-count // parts)
    begin = min(number * rows, count)
    return begin, min(rows, count - begin)


def initial(key, shape, at, size, seed=0, scale=0.5):
    """First content of a box, a function of key and global index alone, as float32 in [-scale, scale)."""
    mixed = mix64(indices(shape, at, size) * STRIDE + numpy.uint64(seed_of(key, f"initial {seed}")))
    whole = (mixed >> numpy.uint64(40)).astype(numpy.float64) / (1 << 23) - 1
    return (whole * scale).astype(numpy.float32).reshape(size)


class Witness:
    def __init__(self, versions=(), stand_ins=()):
        env = os.environ
        self.rank, self.world, self.seed = int(env["RANK"]), int(env["WORLD_SIZE"]), int(env["REPRISE_SEED"])
        self.layout, self.checkpoints = json.loads(env["REPRISE_LAYOUT"]), env["REPRISE_CHECKPOINTS"]
        with open(env["REPRISE_PLAN"]) as file:
            self.plan = json.load(file)
        self.life, self.options, self.faults = self.plan["life"], self.plan.get("options") or {}, self.plan.get("faults") or {}
        self.wanted = [key for key in env.get("REPRISE_WITNESS_VALUES", "").split("\n") if key]
        self.path = os.path.join(env["REPRISE_WITNESS"], f"life{self.life}-rank{self.rank}")
        self.own = "REPRISE_WITNESS_PID" not in env  # false in a process that this rank started, such as one that writes
        self.pid = int(env.setdefault("REPRISE_WITNESS_PID", str(os.getpid())))
        if self.own:
            found = {name: importlib.metadata.version(name) for name in versions}
            self.say("start", life=self.life, rank=self.rank, world=self.world, layout=self.layout, seed=self.seed, versions=found, stand_ins=list(stand_ins))

    def say(self, what, _file=".jsonl", **fields):
        """Appends one whole line with one write."""
        line = json.dumps({"what": what, **fields}, allow_nan=False).encode() + b"\n"
        with open(self.path + _file, "ab", buffering=0) as file:
            if file.write(line) != len(line):
                raise OSError("the witness file took a part of a line")

    def actions(self, at_end=lambda: None):
        """Yields this life's actions in order, the first load included; calls at_end and says done at last."""
        load = self.plan.get("load")
        yield from ([{"do": "load", **load}] if load else []) + list(self.plan["actions"])
        at_end()
        self.say("done")

    def exit(self, code, why):
        """Ends the process with a code that is planned; nothing else is cleaned up or waited for."""
        self.say("exit", code=code, why=why)
        self.say("done")
        sys.stdout.flush()
        os._exit(code)

    def step(self, step, loss=None, lr=None, scale=None, norm=None, samples=()):
        given = {"loss": loss, "lr": lr, "scale": scale, "norm": norm}
        floats = {name: float(value).hex() for name, value in given.items() if value is not None}
        self.say("step", step=step, samples=[int(s) for s in samples], **floats)

    @contextlib.contextmanager
    def phase(self, name, step=None):
        """Says when a phase begins and ends; the planned kill comes after its begin is said and before its work."""
        self.say("phase", name=name, edge="begin", step=step)
        kill = self.plan.get("kill")
        if kill and (kill["rank"], kill["phase"]) == (self.rank, name) and self.begun(name) == kill.get("occurrence", 1):
            for pid in dict.fromkeys((self.pid, os.getpid())):
                os.kill(pid, signal.SIGKILL)
        yield
        self.say("phase", name=name, edge="end", step=step)

    def begun(self, name):
        """How often this phase began in this life, in processes that the rank started, too: the witness file knows."""
        with open(self.path + ".jsonl") as file:
            return sum((line.get("name"), line.get("edge")) == (name, "begin") for line in map(json.loads, file))

    def tensor(self, key, shape, pieces, holders=1, dtype=None, blank=()):
        """What this rank holds of a tensor: pieces are (at, values); each of `holders` ranks holds the same boxes.

        `dtype` need be given only where this rank holds nothing of it; `blank` are boxes (at, size) that are nobody's.
        """
        shape, boxes = [int(n) for n in shape], []
        for at, values in pieces:
            name, size, words = elements(values)
            at, dtype = [int(n) for n in at], dtype or name
            if name != dtype or len(size) != len(shape) or any(a < 0 or a + s > n for a, s, n in zip(at, size, shape)):
                raise ValueError(f"{key}: {name} {size} at {at} is no box of {dtype} {shape}")
            boxes.append({"at": at, "size": size, "digest": f"{digest(key, dtype, shape, at, size, words):016x}", "words": words})
        told = {"key": key, "dtype": dtype, "shape": shape, "boxes": [b for b in boxes if math.prod(b["size"])], "holders": holders}
        return told | ({"blank": [{"at": list(at), "size": list(size)} for at, size in blank]} if blank else {})

    def object(self, key, value=None, shard=None, judged=True, stored=True):
        """An object that a checkpoint must hold, under no key of its own if not `stored`; its content is judged if `judged`."""
        words = numpy.frombuffer(json.dumps(canonical(value), sort_keys=True).encode(), numpy.uint8).astype(numpy.uint64)
        found = f"{digest(key, 'object', words.shape, [0], words.shape, words.reshape(1, -1)):016x}" if judged else None
        return {"key": key, "digest": found} | ({} if shard is None else {"shard": shard}) | ({} if stored else {"stored": False})

    def state(self, when, step, tensors=(), objects=()):
        """Says what this rank holds now; `when` is save, loaded or end."""
        tensors = [dict(tensor) for tensor in tensors]
        for tensor in tensors:
            wanted = tensor["key"] in self.wanted or "*" in self.wanted
            tensor["boxes"] = [dict(box) for box in tensor["boxes"]]
            for box in tensor["boxes"]:
                words = box.pop("words")
                if wanted:
                    where = {"key": tensor["key"], "dtype": tensor["dtype"], "at": box["at"], "size": box["size"]}
                    self.say("values", "-values.jsonl", when=when, step=step, **where, bits=[f"{int(w):x}" for w in words.T.reshape(-1)])
        self.say("state", when=when, step=step, tensors=tensors, objects=list(objects))
