"""Values as text: what is equal is told equally, and what differs in a bit is told apart."""
import unittest
from unittest import mock

import torch
from reprise.watch import digests as module
from reprise.watch.digests import ENGINE, HASHLIB, Digests
from reprise.watch.values import Values


def both():
    """The digests of the engine, and those without its library."""
    with mock.patch.object(module, "Engine", side_effect=ImportError("no library")), mock.patch("sys.stderr"):
        without = Digests()
        without.prepare()
    return [Digests(), without]


class Tensors(unittest.TestCase):
    def test_the_engine_makes_them_where_it_is(self):
        engine, without = both()
        engine.prepare()
        self.assertEqual((engine.by, without.by, without.why), (ENGINE, HASHLIB, "no library"))

    def test_each_kind_of_tensor_and_each_bit_of_it(self):
        base = torch.arange(1, 25, dtype=torch.float32)
        for digest in both():
            told = Values(digest, {}).told
            for dtype in (torch.float32, torch.bfloat16, torch.uint8, torch.int64, torch.complex128, torch.bool, torch.float8_e4m3fn):
                tensor = base.to(dtype).reshape(4, 6)
                with self.subTest(dtype=dtype, by=digest.by):
                    self.assertRegex(told(tensor), rf"^#{str(dtype)[6:]}\[4,6\]:[0-9a-f]{{16}}$")
                    self.assertEqual(told(tensor), told(tensor.t().contiguous().t()))
                    self.assertEqual(told(tensor), told(torch.nn.Parameter(tensor, requires_grad=False)))
                    bits = tensor.clone().reshape(-1).view(torch.uint8)
                    for byte in range(bits.numel()):
                        changed = bits.clone()
                        changed[byte] ^= 1
                        self.assertNotEqual(told(changed.view(dtype).reshape(4, 6)), told(tensor))

    def test_sizes_that_are_no_multiple_of_a_word(self):
        for digest in both():
            told = Values(digest, {}).told
            seen = {told(torch.zeros(n, dtype=torch.uint8)).split(":")[1] for n in range(20)}
            self.assertEqual(len(seen), 20, digest.by)
            self.assertNotEqual(told(torch.tensor([1, 2])), told(torch.tensor([2, 1])))

    def test_pieces_of_a_tensor_add_up(self):
        data = torch.arange(1003, dtype=torch.uint8)
        engine = module.Engine()
        whole = engine.of([(data.data_ptr(), 0, 1003)], 1003)
        parts = [(data.data_ptr() + a, a, b) for a, b in ((0, 64), (64, 512), (512, 1003))]
        self.assertEqual(engine.of(parts, 1003), whole)

    def test_what_has_no_bits_and_what_has_them_elsewhere(self):
        told = Values(Digests(), {}).told
        self.assertEqual(told(torch.empty(3, device="meta")), "=meta")
        sparse = torch.eye(3).to_sparse()
        self.assertNotEqual(told(sparse), told((2 * torch.eye(3)).to_sparse()))
        self.assertEqual(told(torch.tensor([1 + 2j]).conj()), told(torch.tensor([1 - 2j])))

    def test_reading_advances_no_random_state(self):
        before = torch.get_rng_state()
        Values(Digests(), {}).told([torch.ones(3), before, {"a": 1}])
        self.assertTrue(torch.equal(before, torch.get_rng_state()))


class Plain(unittest.TestCase):
    def test_values(self):
        values = Values(Digests(), {"/run/a": "."})
        for value, text in (
            (1, "=1"), (True, "=True"), (None, "=None"), (0.1, "=0x1.999999999999ap-4"), ("x", "='x'"), (b"x", "=b'x'"),
            ("/run/a/out", "='./out'"), (torch.float32, "=torch.float32"), (dict, "=builtins.dict"), ([1, 2.0], '=["1", "0x1.0000000000000p+1"]'),
        ):  # fmt: skip
            self.assertEqual(values.told(value), text)
        self.assertRegex(values.told("x" * 1000), "^#object:[0-9a-f]{16}$")
        self.assertEqual(values.told({1: 2, 3: 4}), values.told({3: 4, 1: 2}))
        self.assertEqual(values.told(object()), "=<builtins.object>")

    def test_objects_by_what_they_hold(self):
        class Point:
            def __init__(self, x):
                self.x = x

        told = Values(Digests(), {}).told
        self.assertEqual(told(Point([1, torch.ones(2)])), told(Point([1, torch.ones(2)])))
        self.assertNotEqual(told(Point(1)), told(Point(2)))
        circle = []
        circle.append(circle)
        self.assertEqual(told(circle), "=<builtins.list>")

    def test_leaves(self):
        leaves = Values(Digests(), {}).leaves({"a": [torch.ones(1), {"b": 2}], "c": [1, 2], "m": torch.nn.Linear(1, 1), "e": {}})
        self.assertEqual(sorted(leaves), ["a.0", "a.1.b", "c", "e", "m.bias", "m.weight"])


if __name__ == "__main__":
    unittest.main()
