"""Makes a training script a trainer: reads the plan of this life, says what the process holds, and dies where it is told to.

It needs numpy and the standard library; torch tensors are taken where torch is there. Nothing here looks at a checkpoint
or at a state dict: keys, shapes and boxes are what the training script computed from its layout and its rank.

    from reprise.witness import Witness

    witness = Witness(versions=["torch"])
    for action in witness.actions(at_end):  # load (if this life begins with one), train, save, finalize
        ...
        with witness.phase("save.write", step): ...
        witness.state("save", step, [witness.tensor("model.w", [4, 8], [([2, 0], w)])], [witness.object("cursor", 7)])
"""
import contextlib
import ctypes
import enum
import hashlib
import importlib.metadata
import json
import math
import os
import signal
import sys
import types

import numpy

GOLD, STRIDE = numpy.uint64(0x9E3779B97F4A7C15), numpy.uint64(0xD1342543DE82EF95)
CHUNK = 1 << 18  # elements that are hashed at once, so that memory is bounded
SHOWN = 60  # longest value that is reported in words
FIRST, SECOND = numpy.uint64(0xBF58476D1CE4E5B9), numpy.uint64(0x94D049BB133111EB)


def mix64(x):
    """The finalizer of splitmix64 over an array of uint64; sums and products wrap."""
    x = x + GOLD
    x = (x ^ (x >> numpy.uint64(30))) * FIRST
    x = (x ^ (x >> numpy.uint64(27))) * SECOND
    return x ^ (x >> numpy.uint64(31))


def seed_of(key, dtype):
    return int.from_bytes(hashlib.sha256(key.encode() + b"\0" + dtype.encode()).digest()[:8], "little")


def merged(shape, at, size):
    """The same box with fewer dimensions: one that the box spans is made one with the dimension before it."""
    box = []
    for extent, begin, count in zip(shape, at, size):
        if box and (begin, count) == (0, extent):
            box[-1] = [n * extent for n in box[-1]]
        else:
            box.append([extent, begin, count])
    return [[part[i] for part in box] or [(1, 0, 1)[i]] for i in range(3)]


def indices(shape, at, size, first=0, last=None):
    """The row-major indices in the whole tensor of the elements of a box, in the box's row-major order, from the `first` to
    before the `last` of them."""
    shape, at, size = merged(shape, at, size)
    rest = numpy.arange(first, math.prod(size) if last is None else last, dtype=numpy.uint64)
    found, stride = numpy.zeros_like(rest), 1
    for extent, begin, count in list(zip(shape, at, size))[:0:-1]:
        rest, place = numpy.divmod(rest, numpy.uint64(max(count, 1)))
        found += (place + numpy.uint64(begin)) * numpy.uint64(stride)
        stride *= extent
    return found + (rest + numpy.uint64(at[0])) * numpy.uint64(stride)


def elements(values):
    """Name of the dtype, shape, size of an element, and the elements as bytes, which are no copy where none is needed."""
    if hasattr(values, "detach"):
        import torch
        flat = values.detach().cpu().contiguous().reshape(-1)
        name, width, shape = str(values.dtype).removeprefix("torch."), flat.element_size(), list(values.shape)
        return name, shape, width, flat.view(torch.uint8).numpy() if flat.numel() else numpy.zeros(0, numpy.uint8)
    values = numpy.asarray(values)
    flat = numpy.ascontiguousarray(values).reshape(-1)
    return values.dtype.name, list(values.shape), values.dtype.itemsize, flat.view(numpy.uint8) if flat.size else numpy.zeros(0, numpy.uint8)


def words_of(raw, width):
    """The elements as unsigned integers: one row, or two (low, high) if they have 16 bytes."""
    words = numpy.ascontiguousarray(raw).view(f"<u{min(width, 8)}").astype(numpy.uint64)
    return words.reshape(-1, 2).T if width == 16 else words.reshape(1, -1)


def library():
    """The digest in C++, which is much faster: the driver says where it is, or it is beside this file. None without it."""
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libreprise_witness.so")
    path = os.environ.get("REPRISE_WITNESS_LIBRARY", beside if os.path.exists(beside) else "")
    if not path:
        return None
    function = ctypes.CDLL(path).reprise_witness_digest
    numbers = ctypes.POINTER(ctypes.c_int64)
    function.argtypes = [ctypes.c_uint64, ctypes.c_size_t, ctypes.c_size_t, numbers, numbers, numbers, ctypes.c_void_p]
    function.restype = ctypes.c_uint64
    return function


FAST = library()


def digest(key, dtype, shape, at, size, raw, width):
    """The digest of a box as a number: digests of disjoint boxes add up, modulo 2**64, to that of the tensor."""
    seed, count = seed_of(key, dtype), math.prod(size)
    if count and FAST:
        box = [(ctypes.c_int64 * len(part))(*part) for part in merged(shape, at, size)]
        return FAST(seed, width, len(box[0]), *box, raw.ctypes.data)
    total = 0
    for first in range(0, count, CHUNK):
        last = min(first + CHUNK, count)
        words = words_of(raw[first * width:last * width], width)
        mixed = mix64((numpy.uint64(seed) + indices(shape, at, size, first, last) * STRIDE) ^ words[0])
        total += int(numpy.sum(mix64(mixed ^ words[1]) if len(words) == 2 else mixed, dtype=numpy.uint64))
    return total % 2**64


def digest_of_text(key, text):
    """The digest of an object: that of the bytes of its canonical text."""
    raw = numpy.frombuffer(text.encode(), numpy.uint8)
    return f"{digest(key, 'object', raw.shape, [0], raw.shape, raw, 1):016x}"


def canonical(value, path="", above=()):
    """A tree of JSON values that does not depend on the process: floats as hex, tensors by their digest, other objects by
    what pickle would keep of them. Raises TypeError, with the path to the value, if that says too little."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, enum.Enum):
        return {"enum": value.name}
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return {"float": float(value).hex()}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": value.hex()}
    if isinstance(value, type):
        return {"type": f"{value.__module__}.{value.__qualname__}"}
    if isinstance(value, types.ModuleType):
        raise TypeError(f"{path} is a module, which has no state of its own")
    if id(value) in above:
        raise TypeError(f"{path} contains itself")

    def of(part, where):
        return canonical(part, path + where, (*above, id(value)))

    if isinstance(value, dict):
        return {"dict": sorted(([of(k, f" key {k!r}"), of(v, f"[{k!r}]")] for k, v in value.items()), key=json.dumps)}
    if isinstance(value, (list, tuple)):
        return [of(v, f"[{i}]") for i, v in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        return {"set": sorted((of(v, " member") for v in value), key=json.dumps)}
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        dtype, shape, width, raw = elements(value)
        return {"dtype": dtype, "shape": shape, "digest": f"{digest('', dtype, shape, [0] * len(shape), shape, raw, width):016x}"}
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if name == "torch._C.Generator":
        return {"class": name, "state": of(value.get_state(), ".get_state()")}
    if callable(value) and hasattr(value, "__qualname__") and not hasattr(value, "__self__"):
        return {"function": importable(value, path)}
    try:
        kept = value.__reduce_ex__(2)
    except Exception as error:
        raise TypeError(f"{path} is of the class {name}, whose state can't be read ({error}); report what it holds, or judged=False") from error
    if isinstance(kept, str):
        return {"global": f"{type(value).__module__}.{kept}"}
    make, given, state, items, entries = (*kept, None, None, None)[:5]
    return {"class": name, "make": of(make, ""), "given": of(given, " given"), "state": of(state, ""),
            "items": None if items is None else of(list(items), ""), "entries": None if entries is None else of(dict(entries), "")}


def importable(function, path):
    """The name of a function of a module. What is defined elsewhere may hold values that no name shows."""
    name, found = f"{function.__module__}.{function.__qualname__}", sys.modules.get(function.__module__ or "builtins")
    for part in function.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not function:
        raise TypeError(f"{path} is the function {name}, which can't be imported, so its content is unknown; report what it holds, or judged=False")
    return name


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
    """What one rank says of one life, in FOLDER/life<LIFE>-rank<RANK>.jsonl.

    `Witness()` is for a life that `reprise run` starts: all else is in its environment. `Witness(folder, life)` is for a
    life that somebody starts by hand, for `reprise resume-proof`: lives of one run are numbered from 0 and lie in one
    folder, and no file is written twice. Rank and number of ranks are torchrun's RANK and WORLD_SIZE, or 0 and 1; without
    `layout` it is {"dp": number of ranks}. Without a plan, `actions` has none: say `done` at the end.
    """

    def __init__(self, folder=None, life=0, versions=(), stand_ins=(), layout=None, seed=0):
        env = os.environ
        self.rank, self.world = int(env.get("RANK", 0)), int(env.get("WORLD_SIZE", 1))
        self.wanted = [key for key in env.get("REPRISE_WITNESS_VALUES", "").split("\n") if key]
        if folder is not None:
            self.seed, self.layout, self.checkpoints = seed, layout or {"dp": self.world}, None
            self.plan, self.own, self.pid = {"life": life, "actions": []}, True, os.getpid()
        elif "REPRISE_PLAN" in env:
            self.seed, self.layout, self.checkpoints = int(env["REPRISE_SEED"]), json.loads(env["REPRISE_LAYOUT"]), env["REPRISE_CHECKPOINTS"]
            with open(env["REPRISE_PLAN"]) as file:
                self.plan = json.load(file)
            folder, self.own = env["REPRISE_WITNESS"], "REPRISE_WITNESS_PID" not in env  # not in a process that this rank started
            self.pid = int(env.setdefault("REPRISE_WITNESS_PID", str(os.getpid())))
        else:
            raise ValueError("Witness() is for a program that `reprise run` starts; by hand, say where and which life: Witness('run', 0)")
        self.life, self.options, self.faults = self.plan["life"], self.plan.get("options") or {}, self.plan.get("faults") or {}
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, f"life{self.life}-rank{self.rank}")
        if self.own:
            if os.path.exists(self.path + ".jsonl"):
                raise FileExistsError(f"{self.path}.jsonl is there: this life has run; give the next one the next number, or another folder")
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
        self.done()

    def done(self):
        """Says that this life ended as planned; nothing but phases may follow."""
        self.say("done")

    def exit(self, code, why):
        """Ends the process with a code that is planned; nothing else is cleaned up or waited for."""
        self.say("exit", code=code, why=why)
        self.done()
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

    def tensor(self, key, shape, pieces, holders=1, dtype=None, blank=(), per_rank=False):
        """What this rank holds of a tensor: pieces are (at, values); each of `holders` ranks holds the same boxes.

        `dtype` need be given only where this rank holds nothing of it; `blank` are boxes (at, size) that are nobody's.
        With `per_rank` it belongs to this rank's place in the layout, and another layout may lack it.
        """
        shape, boxes = [int(n) for n in shape], []
        for at, values in pieces:
            name, size, width, raw = elements(values)
            at, dtype = [int(n) for n in at], dtype or name
            if name != dtype or len(size) != len(shape) or any(a < 0 or a + s > n for a, s, n in zip(at, size, shape)):
                raise ValueError(f"{key}: {name} {size} at {at} is no box of {dtype} {shape}")
            boxes.append({"at": at, "size": size, "digest": f"{digest(key, dtype, shape, at, size, raw, width):016x}", "raw": raw, "width": width})
        told = {"key": key, "dtype": dtype, "shape": shape, "boxes": [b for b in boxes if math.prod(b["size"])], "holders": holders}
        told |= {"per_rank": True} if per_rank else {}
        return told | ({"blank": [{"at": list(at), "size": list(size)} for at, size in blank]} if blank else {})

    def object(self, key, value=None, shard=None, judged=True, stored=True, per_rank=False):
        """An object that a checkpoint must hold, under no key of its own if not `stored`; its content is judged if `judged`.

        `shard` numbers the parts of one of Megatron's sharded objects. With `per_rank` the object belongs to this rank's
        place in the layout, as `dataloader.dp_rank_1` does, and another layout may lack it.
        """
        text = json.dumps(canonical(value, key), sort_keys=True) if judged else ""
        told = {"key": key, "digest": digest_of_text(key, text) if judged else None}
        if judged and isinstance(value, (bool, int, float, str)) and len(repr(value)) <= SHOWN:
            told["value"] = repr(value)
        told |= {"per_rank": True} if per_rank else {}
        return told | ({} if shard is None else {"shard": shard}) | ({} if stored else {"stored": False})

    def state(self, when, step, tensors=(), objects=()):
        """Says what this rank holds now; `when` is save, loaded or end."""
        tensors = [dict(tensor) for tensor in tensors]
        for tensor in tensors:
            wanted = tensor["key"] in self.wanted or "*" in self.wanted
            tensor["boxes"] = [dict(box) for box in tensor["boxes"]]
            for box in tensor["boxes"]:
                raw, width = box.pop("raw"), box.pop("width")
                if wanted:
                    words = words_of(raw, width)
                    where = {"key": tensor["key"], "dtype": tensor["dtype"], "at": box["at"], "size": box["size"]}
                    self.say("values", "-values.jsonl", when=when, step=step, **where, bits=[f"{int(w):x}" for w in words.T.reshape(-1)])
        self.say("state", when=when, step=step, tensors=tensors, objects=list(objects))
