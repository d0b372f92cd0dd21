"""What python/reprise/witness.py says, against an implementation that goes element by element in Python's integers.

    python3 -m unittest discover tests/trainers -p test_witness.py
"""
import collections
import dataclasses
import datetime
import decimal
import functools
import hashlib
import itertools
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = str(HERE.parents[1] / "python")
sys.path.insert(0, PACKAGE)
from reprise import witness as w  # noqa: E402

try:
    import torch
except ImportError:
    torch = None

MASK = 2**64 - 1


class Slots:
    __slots__ = ("n", "unset")

    def __init__(self, n):
        self.n = n


@dataclasses.dataclass(frozen=True)
class Frozen:
    n: int


class Kept:
    def __init__(self, n):
        self.n, self.lock = n, threading.Lock()

    def __getstate__(self):
        return {"n": self.n}


def slow_mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def slow_digest(key, dtype, shape, at, size, parts):
    """parts: for each element of the box in row-major order its 8-byte words, low first."""
    base = int.from_bytes(hashlib.sha256(key.encode() + b"\0" + dtype.encode()).digest()[:8], "little")
    total = 0
    for offset, words in zip(itertools.product(*map(range, size)), parts):
        index = 0
        for extent, begin, step in zip(shape, at, offset):
            index = index * extent + begin + step
        mixed = slow_mix(((base + index * 0xD1342543DE82EF95) & MASK) ^ words[0])
        total += mixed if len(words) == 1 else slow_mix(mixed ^ words[1])
    return total & MASK


def box(key, shape, at, values):
    dtype, size, width, raw = w.elements(values)
    found = w.digest(key, dtype, shape, at, size, raw, width)
    if w.FAST:  # then the digest in Python must be the same
        fast, w.FAST = w.FAST, None
        slow, w.FAST = w.digest(key, dtype, shape, at, size, raw, width), fast
        assert slow == found, (slow, found)
    return found


class Digests(unittest.TestCase):
    def test_known(self):
        """Numbers that any other implementation must give, too."""
        self.assertEqual(slow_mix(0), 0xE220A8397B1DCDAF)  # the first number of splitmix64 seeded with 0
        known = [("model.w", [2, 2], numpy.array([[1, 2], [3, 4]], numpy.float32), "f"), ("n", [], numpy.array(7, numpy.int64), "q"),
                 ("flag", [3], numpy.array([True, False, True]), "?"), ("half", [2], numpy.array([1, -2], numpy.float16), "e")]
        for key, shape, values, code in known:
            bits = [int.from_bytes(struct.pack("<" + code, v), "little") for v in values.reshape(-1).tolist()]
            self.assertEqual(box(key, shape, [0] * len(shape), values), slow_digest(key, values.dtype.name, shape, [0] * len(shape), shape, [[b] for b in bits]))
        self.assertEqual([f"{box(k, s, [0] * len(s), v):016x}" for k, s, v, _ in known], KNOWN)

    def test_random_boxes(self):
        draw = random.Random(3)
        for dtype in (numpy.uint8, numpy.int16, numpy.uint32, numpy.int64, numpy.float64, numpy.complex64, numpy.complex128):
            shape = [draw.randint(1, 5) for _ in range(draw.randint(1, 4))]
            at = [draw.randrange(n) for n in shape]
            size = [draw.randint(1, n - a) for n, a in zip(shape, at)]
            raw = draw.randbytes(int(numpy.prod(size)) * numpy.dtype(dtype).itemsize)
            width = numpy.dtype(dtype).itemsize
            parts = [[int.from_bytes(e[i:i + 8], "little") for i in range(0, width, 8)] for e in (raw[n:n + width] for n in range(0, len(raw), width))]
            values = numpy.frombuffer(raw, dtype).reshape(size)
            self.assertEqual(box("k", shape, at, values), slow_digest("k", numpy.dtype(dtype).name, shape, at, size, parts), dtype)

    def test_boxes_add_up(self):
        """Any split along any axes, parts without elements included, has the digest of the whole."""
        draw = random.Random(5)
        for _ in range(50):
            shape = [draw.randint(1, 7) for _ in range(draw.randint(0, 3))]
            whole = numpy.asarray(numpy.random.default_rng(1).standard_normal(shape))
            cuts = [sorted([0, n, *(draw.randint(0, n) for _ in range(2))]) for n in shape]
            total = 0
            for corner in itertools.product(*(range(3) for _ in shape)):
                at, end = [c[i] for c, i in zip(cuts, corner)], [c[i + 1] for c, i in zip(cuts, corner)]
                total += box("w", shape, at, whole[tuple(map(slice, at, end))])
            self.assertEqual(total & MASK, box("w", shape, [0] * len(shape), whole))

    def test_chunks_add_up(self):
        """Digests do not depend on how many elements are hashed at once."""
        values, chunk = numpy.arange(7 * 5 * 3, dtype=numpy.float32).reshape(7, 5, 3), w.CHUNK
        expected = [box("w", [9, 8, 3], [1, 2, 0], values), box("w", [9, 5, 3], [2, 0, 0], values), box("w", [7, 5, 4], [0, 0, 1], values)]
        for w.CHUNK in (1, 2, 7, 64):
            self.assertEqual(expected, [box("w", [9, 8, 3], [1, 2, 0], values), box("w", [9, 5, 3], [2, 0, 0], values), box("w", [7, 5, 4], [0, 0, 1], values)])
        w.CHUNK = chunk

    def test_place_key_dtype_and_bits_count(self):
        one = numpy.arange(6, dtype=numpy.float32)
        same = box("w", [6], [0], one)
        self.assertNotEqual(same, box("v", [6], [0], one))
        self.assertNotEqual(same, box("w", [6], [0], one.view(numpy.int32)))
        self.assertNotEqual(same, box("w", [6], [0], one[::-1]))
        self.assertNotEqual(box("w", [7], [0], one), box("w", [7], [1], one))
        self.assertNotEqual(box("w", [1], [0], numpy.zeros(1)), box("w", [1], [0], -numpy.zeros(1)))

    @unittest.skipUnless(torch, "no torch")
    def test_torch(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.bool, torch.int64, torch.complex128):
            values = torch.tensor([[0.0, 1.0], [1.5, -2.0]]).to(dtype)
            raw, width = bytes(values.contiguous().untyped_storage()), values.element_size()
            parts = [[int.from_bytes(e[i:i + 8], "little") for i in range(0, width, 8)] for e in (raw[n:n + width] for n in range(0, len(raw), width))]
            name = str(dtype).split(".")[1]
            self.assertEqual(box("t", [4, 2], [2, 0], values), slow_digest("t", name, [4, 2], [2, 0], [2, 2], parts), name)
        self.assertEqual(box("s", [], [], torch.tensor(2.0)), box("s", [], [], numpy.float32(2)))
        turned = torch.arange(6.0).reshape(2, 3).T
        self.assertEqual(box("s", [3, 2], [0, 0], turned), box("s", [3, 2], [0, 0], turned.contiguous()))

    def test_initial_content_is_by_global_index(self):
        whole = w.initial("k", [6, 5], [0, 0], [6, 5], seed=4)
        self.assertTrue((whole[2:5, 1:3] == w.initial("k", [6, 5], [2, 1], [3, 2], seed=4)).all())
        self.assertTrue((whole != w.initial("k", [6, 5], [0, 0], [6, 5], seed=5)).any())
        self.assertEqual(len(set(whole.reshape(-1).tolist())), 30)
        self.assertLess(abs(whole).max(), 0.5)

    def test_objects(self):
        class Thing:
            def __init__(self, n):
                self.n = n
        text = lambda v: json.dumps(w.canonical(v), sort_keys=True)
        self.assertEqual(text({"b": 1, "a": [1.5, (None, True)]}), text({"a": [1.5, [None, True]], "b": 1}))
        for one, two in ((1, 1.0), (1, True), (1, "1"), ({1: 2}, {"1": 2}), (b"1", "31"), (0.1, 0.1 + 2**-56), (Thing(1), Thing(2)),
                         (numpy.zeros(2), numpy.zeros(3)), (float("nan"), None)):
            self.assertNotEqual(text(one), text(two))
        self.assertEqual(text(Thing(1)), text(Thing(1)))

    def test_objects_differ_by_their_state(self):
        """Each of these makes an object of a number. Equal numbers must have equal text, and other numbers another text."""
        text = lambda v: json.dumps(w.canonical(v), sort_keys=True)
        makers = [random.Random, numpy.random.default_rng, numpy.random.RandomState, numpy.random.PCG64, lambda n: {n, "x"}, lambda n: frozenset([n]),
                  lambda n: collections.deque([n], 3), lambda n: collections.deque([1], n), lambda n: pathlib.Path(f"/a/{n}"), Slots, Frozen, Kept,
                  lambda n: collections.OrderedDict(a=n), lambda n: functools.partial(w.split, n), lambda n: random.Random(n).random, datetime.timedelta,
                  decimal.Decimal, complex, range, slice, lambda n: iter([1, 2, 3][n:]), lambda n: bytearray([n]), lambda n: numpy.dtype(f"f{4 * n}"),
                  lambda n: [sorted, max][n - 1], lambda n: [int, str][n - 1]]
        if torch:
            makers += [lambda n: torch.Generator().manual_seed(n), lambda n: torch.Size([n]), lambda n: [torch.int8, torch.int16][n - 1], lambda n: torch.device("cpu", n)]
        for make in makers:
            self.assertEqual(text(make(1)), text(make(1)), make)
            self.assertNotEqual(text(make(1)), text(make(2)), make)
        self.assertEqual(text({1, 2, 3, "a"}), text({"a", 3, 2, 1}))

    def test_objects_without_a_known_state_are_refused(self):
        around = []
        around.append(around)
        refused = {"k": lambda: 1, "k given[0]": functools.partial(lambda: 1), "k['a'][1]": {"a": [1, lambda: 1]}, "k[0]": [(n for n in ())], "k[1]": [1, threading.Lock()]}
        for path, value in refused.items():
            with self.assertRaises(TypeError) as raised:
                w.Witness.object(None, "k", value)
            self.assertTrue(str(raised.exception).startswith(path + " is "), raised.exception)
        self.assertRaises(TypeError, w.Witness.object, None, "k", around)
        self.assertIsNone(w.Witness.object(None, "k", refused["k"], judged=False)["digest"])

    def test_what_belongs_to_a_rank(self):
        self.assertEqual(w.Witness.object(None, "k", 7, per_rank=True) | {"digest": 0}, {"key": "k", "digest": 0, "value": "7", "per_rank": True})
        self.assertTrue(w.Witness.tensor(None, "w", [1], [([0], numpy.ones(1))], per_rank=True)["per_rank"])
        self.assertNotIn("value", w.Witness.object(None, "k", "long" * 20))

    def test_cut_as_torch_cuts(self):
        for count, parts in itertools.product(range(9), range(1, 6)):
            cut = [w.split(count, parts, n) for n in range(parts)]
            self.assertEqual(sum(n for _, n in cut), count)
            if torch and count:
                sizes = [len(c) for c in torch.arange(count).chunk(parts)]
                self.assertEqual([n for _, n in cut], sizes + [0] * (parts - len(sizes)))


KNOWN = ["a2f7d39de7b68a8a", "f64d5212941744ae", "d187eb957a8d7fcf", "ef76c4af55e551b3"]

LIFE = """
import numpy
from reprise import witness as w
witness = w.Witness(versions=["numpy"])
for action in witness.actions():
    witness.step(1, loss=0.1, samples=[3]) if action["do"] == "train" else None
    if action["do"] == "exit":
        witness.exit(16, "as planned")
    if action["do"] in ("save", "load"):
        for _ in range(2):
            with witness.phase(action["do"] + ".begin", 1):
                witness.state("save", 1, [witness.tensor("w", [4], [([2], numpy.ones(2))])], [witness.object("cursor", 7), witness.object("x", judged=False, shard="0.2")])
"""


class Lives(unittest.TestCase):
    def live(self, plan, **env):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "plan").write_text(json.dumps(plan))
            given = dict(os.environ, RANK="1", WORLD_SIZE="2", REPRISE_LAYOUT='{"dp": 2}', REPRISE_SEED="5", REPRISE_PLAN=f"{folder}/plan",
                         REPRISE_CHECKPOINTS=folder, REPRISE_WITNESS=folder, PYTHONPATH=PACKAGE, **env)
            ended = subprocess.run([sys.executable, "-c", LIFE], env=given)
            files = {p.name: [json.loads(line) for line in p.read_text().splitlines()] for p in pathlib.Path(folder).glob("*.jsonl")}
            return ended.returncode, files

    def test_a_whole_life(self):
        code, files = self.live({"life": 2, "load": {"step": 4}, "actions": [{"do": "train"}, {"do": "save"}]})
        lines = files.pop("life2-rank1.jsonl")
        self.assertEqual((code, files), (0, {}))
        self.assertEqual([line["what"] for line in lines], ["start"] + ["phase", "state", "phase"] * 2 + ["step"] + ["phase", "state", "phase"] * 2 + ["done"])
        self.assertEqual(lines[0] | {"versions": 0}, {"what": "start", "life": 2, "rank": 1, "world": 2, "layout": {"dp": 2}, "seed": 5, "versions": 0, "stand_ins": []})
        self.assertEqual(lines[7], {"what": "step", "step": 1, "samples": [3], "loss": (0.1).hex()})
        state = lines[2]
        self.assertEqual(state["tensors"], [{"key": "w", "dtype": "float64", "shape": [4], "holders": 1, "boxes": [
            {"at": [2], "size": [2], "digest": f"{box('w', [4], [2], numpy.ones(2)):016x}"}]}])
        self.assertEqual([(o["key"], o.get("shard"), o["digest"] is None) for o in state["objects"]], [("cursor", None, False), ("x", "0.2", True)])

    def test_killed_in_a_phase(self):
        plan = {"life": 0, "load": None, "actions": [{"do": "train"}, {"do": "save"}], "kill": {"rank": 1, "phase": "save.begin", "occurrence": 2}}
        code, files = self.live(plan)
        self.assertEqual(code, -9)
        self.assertEqual([line["what"] for line in files["life0-rank1.jsonl"]], ["start", "step", "phase", "state", "phase", "phase"])
        plan["kill"]["rank"] = 0
        self.assertEqual(self.live(plan)[0], 0)

    def test_by_hand(self):
        """Without the driver's variables folder and life are arguments; no life is written twice."""
        with tempfile.TemporaryDirectory() as folder:
            script = ("from reprise.witness import Witness\n"
                      "own = Witness(%r, 1, layout={'dp': 3}, seed=4)\n"
                      "own.state('loaded', 2, [], [own.object('cursor', 7)])\n"
                      "own.done()\n" % f"{folder}/new")
            env = {name: value for name, value in os.environ.items() if not name.startswith("REPRISE_") and name not in ("RANK", "WORLD_SIZE")}
            run = lambda text, **more: subprocess.run([sys.executable, "-c", text], env=dict(env, PYTHONPATH=PACKAGE, **more), capture_output=True, text=True)
            self.assertEqual(run(script, RANK="2", WORLD_SIZE="3").returncode, 0)
            lines = [json.loads(line) for line in pathlib.Path(folder, "new/life1-rank2.jsonl").read_text().splitlines()]
            self.assertEqual([line["what"] for line in lines], ["start", "state", "done"])
            self.assertEqual({name: lines[0][name] for name in ("life", "rank", "world", "layout", "seed")},
                             {"life": 1, "rank": 2, "world": 3, "layout": {"dp": 3}, "seed": 4})
            self.assertIn("this life has run", run(script, RANK="2", WORLD_SIZE="3").stderr)
            self.assertEqual(len(pathlib.Path(folder, "new/life1-rank2.jsonl").read_text().splitlines()), 3)
            self.assertEqual(run("from reprise.witness import Witness\nprint(Witness(%r).layout)" % folder).stdout, "{'dp': 1}\n")
            self.assertIn("by hand, say where", run("from reprise.witness import Witness\nWitness()").stderr)

    def test_exit_as_planned(self):
        code, files = self.live({"life": 0, "load": None, "actions": [{"do": "exit"}, {"do": "train"}]})
        self.assertEqual((code, [line["what"] for line in files["life0-rank1.jsonl"]]), (16, ["start", "exit", "done"]))

    def test_values(self):
        code, files = self.live({"life": 0, "load": None, "actions": [{"do": "save"}]}, REPRISE_WITNESS_VALUES="v\nw")
        values = files["life0-rank1-values.jsonl"]
        self.assertEqual((code, len(values)), (0, 2))
        self.assertEqual((values[0]["key"], values[0]["at"], values[0]["bits"]), ("w", [2], ["3ff0000000000000"] * 2))

    def test_a_box_that_is_none(self):
        for shape, at, values in (([4], [3], numpy.ones(2)), ([4], [0], numpy.ones((1, 2))), ([4], [-1], numpy.ones(2))):
            self.assertRaises(ValueError, w.Witness.tensor, None, "w", shape, [(at, values)])
        two = [([0], numpy.ones(1)), ([1], numpy.ones(1, numpy.float32))]
        self.assertRaises(ValueError, w.Witness.tensor, None, "w", [2], two)

    def test_blank_and_nothing(self):
        told = w.Witness.tensor(None, "w", [4], [([0], numpy.ones(3)), ([3], numpy.ones(0))], blank=[([3], [1])])
        self.assertEqual(([b["at"] for b in told["boxes"]], told["blank"]), ([[0]], [{"at": [3], "size": [1]}]))
        self.assertEqual(w.Witness.tensor(None, "w", [4], [], dtype="int8")["boxes"], [])


if __name__ == "__main__":
    unittest.main()
