#!/usr/bin/env python3
"""Writes tests/data/torch_<version>/spellings: pairs of objects that torch.save writes with different bytes.

    make_spellings.py OUT        OUT/torch_<version>/spellings/NAME.a.pt, NAME.b.pt and spellings.expected.json

Pairs of `same` are equal objects in two spellings. Pairs of `different` are objects that a careless comparison takes
for equal.
"""
import collections
import pathlib
import platform
import sys

sys.dont_write_bytecode = True

import numpy as np
import torch

from check_with_torch import as_json

OrderedDict = collections.OrderedDict


def same():
    rows = torch.arange(6.0).reshape(2, 3)
    cube = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    return {
        "set_order": ({8, 0, 16}, {16, 8, 0}),
        "set_of_texts": (set("abcdefgh"), set(reversed("abcdefgh")) | {"i"} - {"i"}),
        "frozenset_order": (frozenset([8, 0]), frozenset([0, 8])),
        "dict_order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        "counter_order": (collections.Counter("aab"), collections.Counter("baa")),
        "numpy_fortran": (cube, np.asfortranarray(cube)),
        "numpy_fortran_texts": (np.array([["a", "bc"], ["d", "e"]]), np.asfortranarray(np.array([["a", "bc"], ["d", "e"]]))),
        "numpy_fortran_objects": (np.array([[1, "x"], [None, 2]], dtype=object), np.asfortranarray(np.array([[1, "x"], [None, 2]], dtype=object))),
        "numpy_view": (cube[:, ::2, 1].copy(), cube[:, ::2, 1]),
        "tensor_transposed": (rows.t().contiguous(), rows.t()),
        "tensor_expanded": (rows[:1].expand(4, 3).contiguous(), rows[:1].expand(4, 3)),
        "tensor_of_a_larger_storage": (rows[1].clone(), rows[1]),
        "nan": (float("nan"), torch.tensor(float("nan"), dtype=torch.float64).item()),
    }


def different():
    tensor = torch.ones(2)
    named = torch.ones(2)
    named.note = "a"
    other = torch.ones(2)
    other.note = "b"
    trained = torch.nn.Parameter(tensor.clone())
    trained.note = "a"
    return {
        "ordered_dict_order": (OrderedDict(a=1, b=2), OrderedDict(b=2, a=1)),
        "ordered_dict_or_dict": (OrderedDict(a=1), {"a": 1}),
        "parameter_or_tensor": (torch.nn.Parameter(tensor.clone(), requires_grad=False), tensor.clone()),
        "parameter_frozen": (torch.nn.Parameter(tensor.clone()), torch.nn.Parameter(tensor.clone(), requires_grad=False)),
        "parameter_with_attribute": (trained, torch.nn.Parameter(tensor.clone())),
        "tensor_requires_grad": (tensor.clone().requires_grad_(), tensor.clone()),
        "tensor_with_attribute": (named, other),
        "tensor_or_numpy": (tensor.clone(), tensor.numpy()),
        "numbers": ([1, 0], [True, False]),
        "integer_or_float": (1, 1.0),
        "zeros": (0.0, -0.0),
        "numpy_zeros": (np.zeros(2), -np.zeros(2)),
        "numpy_dtype": (np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.uint32)),
        "numpy_shape": (np.zeros((2, 3)), np.zeros((3, 2))),
        "numpy_fortran_of_other_elements": (np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3, order="F")),
        "set_or_frozenset": ({1}, frozenset([1])),
        "list_or_tuple": ([1], (1,)),
    }


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve() / f"torch_{torch.__version__.split('+')[0]}" / "spellings"
    folder.mkdir(parents=True, exist_ok=True)
    pairs = {"same": same(), "different": different()}
    for rows in pairs.values():
        for name, sides in rows.items():
            for side, value in zip("ab", sides):
                torch.save(value, folder / f"{name}.{side}.pt")
    expected = {"torch": torch.__version__, "python": platform.python_version(), "numpy": np.__version__,
                **{verdict: sorted(rows) for verdict, rows in pairs.items()}}
    (folder.parent / "spellings.expected.json").write_text(as_json(expected) + "\n")
    print(f"{folder.name}: {sum(map(len, pairs.values()))} pairs")


if __name__ == "__main__":
    main()
