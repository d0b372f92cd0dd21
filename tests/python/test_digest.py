"""Digests of tensors, compared with those of reprise.witness, which computes them with numpy."""
import threading
import unittest
from unittest import mock

import torch
try:
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh
except ImportError:  # before torch 2.5
    from torch.distributed._tensor import Shard, distribute_tensor, init_device_mesh

import reprise
from reprise import witness
from reprise.torch.digest import digests
from reprise.torch.describe import Parts
from ranks import run
from states import every_kind, numbers


def by_numpy(key, tensor, shape=None, at=None):
    """The digest of a box, by the definition in docs/trainers.md alone."""
    with mock.patch.object(witness, "FAST", None):
        dtype, size, width, raw = witness.elements(tensor.detach().resolve_conj().resolve_neg())
        return witness.digest(key, dtype, list(shape or size), list(at or [0] * len(size)), size, raw, width)


def tensors_in(value, path=""):
    if isinstance(value, dict):
        return {k: t for key, one in value.items() for k, t in tensors_in(one, f"{path}.{key}").items()}
    if isinstance(value, (list, tuple)):
        return tensors_in(dict(enumerate(value)), path)
    return {path: value} if isinstance(value, torch.Tensor) else {}


def of_parts(rank, ranks):
    mesh = init_device_mesh("cpu", (ranks,))
    whole = numbers(3, 7, 5)
    return [digests({"w": distribute_tensor(whole, mesh, [Shard(dim)])})["w"] for dim in (0, 1)]


class Digests(unittest.TestCase):
    def test_every_kind_of_tensor(self):
        tensors = tensors_in(every_kind(1))
        self.assertGreater(len(tensors), 15)
        found = digests(tensors)
        self.assertEqual(list(found), list(tensors))
        self.assertEqual(found, {key: by_numpy(key, tensor) for key, tensor in tensors.items()})

    def test_the_vector_of_the_documentation(self):
        self.assertEqual(digests({"model.w": torch.tensor([[1.0, 2], [3, 4]])}), {"model.w": 0xA2F7D39DE7B68A8A})

    def test_more_elements_than_are_copied_at_once(self):
        whole = numbers(2, 700, 3, 101)
        for tensor in (whole, whole.transpose(0, 2), whole[::2, 1:, ::3], whole.to(torch.int8)):
            self.assertEqual(digests({"w": tensor})["w"], by_numpy("w", tensor))

    def test_one_bit_and_one_place(self):
        tensor, others = numbers(5, 300, 300), []
        others.append(tensor.clone())
        others[-1].view(torch.int32)[299, 299] ^= 1
        others.append(tensor.clone())
        others[-1][0, 0], others[-1][299, 299] = tensor[299, 299], tensor[0, 0]
        others += [tensor.view(torch.int32), tensor.reshape(150, 600)[:, :]]
        found = [digests({"w": one})["w"] for one in (tensor, *others)]
        self.assertEqual(len(set(found)), 4)
        self.assertEqual(found[0], found[4])  # the index is that in the flattened tensor
        self.assertNotEqual(found[0], digests({"v": tensor})["v"])

    def test_digests_of_parts_add_up(self):
        whole = numbers(3, 7, 5)
        parts = run(2, of_parts)
        self.assertEqual([sum(one) % 2**64 for one in zip(*parts)], [by_numpy("w", whole)] * 2)
        boxes = [(torch.Size([0, 0]), whole[:2]), (torch.Size([2, 0]), whole[2:])]
        self.assertEqual(digests({"w": Parts(whole.dtype, whole.shape, boxes)})["w"], by_numpy("w", whole))

    def test_nothing(self):
        self.assertEqual(digests({}), {})
        self.assertEqual(digests({"a": torch.empty(0, 3), "b": torch.tensor(1)})["a"], 0)

    def test_what_has_no_memory_is_refused_by_its_key(self):
        with self.assertRaises(reprise.Error) as caught:
            digests({"good": numbers(1, 2), "sparse": numbers(1, 3, 3).to_sparse()})
        self.assertEqual((caught.exception.code, caught.exception.key), ("UNSUPPORTED", "sparse"))

    def test_other_threads_run_meanwhile(self):
        tensor, begun, turns = torch.zeros(100_000_000, dtype=torch.uint8), threading.Event(), []

        def hash_it():
            begun.set()
            digests({"w": tensor})
            turns.append(None)

        thread = threading.Thread(target=hash_it)
        thread.start()
        begun.wait()
        counted = 0
        while not turns:
            counted += 1
        thread.join()
        self.assertGreater(counted, 1000)


if __name__ == "__main__":
    unittest.main()
