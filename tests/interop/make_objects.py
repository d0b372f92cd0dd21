#!/usr/bin/env python3
"""Writes tests/data/torch_<version>/objects: one small torch.save file for each kind of object, for the pickle reader.

    make_objects.py OUT          OUT/torch_<version>/objects/NAME.pt and objects.expected.json

Also writes the `.metadata` of the fixture `fsdp2_uneven` in the same folder, in pickle protocols 2 to 5. If
megatron-core is installed, also writes a file with its rerun enums and named tuples.
"""
import argparse
import collections
import io
import os
import pathlib
import pickle
import platform
import random
import sys
import types

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.dont_write_bytecode = True

import numpy as np
import torch

from check_with_torch import as_json, as_text


def foreign_class():
    """Returns a class of some training script. The reader must preserve it as it is and never import it."""
    class Schedule:
        def __init__(self):
            self.warmup, self.history = 10, [0.1, 0.2]

        def __repr__(self):
            return f"Schedule({self.warmup}, {self.history})"
    Schedule.__module__, Schedule.__qualname__ = "example_training.schedule", "Schedule"
    module = types.ModuleType("example_training.schedule")
    module.Schedule = Schedule
    sys.modules["example_training"] = types.ModuleType("example_training")
    sys.modules["example_training.schedule"] = module
    return Schedule()


def rerun_objects():
    try:
        from megatron.core import rerun_state_machine as m
    except ImportError:
        return {}
    call = m.Call(m.Caller("rejecting loss nan", 2), 7)
    return {"rerun_objects": {
        "call": call, "caller": call.caller, "diagnostics": list(m.RerunDiagnostic), "modes": list(m.RerunMode),
        "states": list(m.RerunState), "status": list(m.RerunValidationStatus)}}


def objects():
    numpy_state, python_state = np.random.RandomState(5).get_state(), random.Random(5).getstate()
    counts = collections.defaultdict(int, a=1)
    rows = {
        "int": 5, "int_negative": -1, "int_65536": 65536, "int_2_31": 1 << 31, "int_huge": 1 << 2100, "float": -0.1, "float_nan": float("nan"),
        "str": "text", "str_unicode": "ключ ✓", "str_surrogate": "\udcff", "none": None, "true": True, "bytes": b"\x00\x01\xff", "bytes_empty": b"",
        "bytearray": bytearray(b"abc"), "complex": 1 - 2j, "tuple_of_4": (1, 2, 3, 4), "nested": {"a": [1, {"b": (None, True)}], 3: "three", (1, 2): {}},
        "shared": [shared := [1, 2], shared], "set": {3}, "frozenset": frozenset((3,)), "slice_range": (slice(1, 2), range(3)),
        "ordered_dict": collections.OrderedDict(b=1, a=2), "defaultdict": counts, "counter": collections.Counter("aab"), "deque": collections.deque([1, 2], 3),
        "namespace": argparse.Namespace(lr=0.1, nested=argparse.Namespace(x=[1])), "simple_namespace": types.SimpleNamespace(a=1),
        "bytes_io": io.BytesIO(b"inside"), "path": pathlib.PurePosixPath("a/b"), "path_posix": pathlib.Path("/data/run"),
        "torch_size": torch.Size([2, 3]), "torch_dtype": [torch.bfloat16, torch.float8_e4m3fn], "torch_device": [torch.device("cpu"), torch.device("cuda", 1)],
        "torch_layout": torch.strided, "tensors": {"a": torch.arange(3), "b": (same := torch.ones(2, 2)), "c": same[0]}, "parameter": torch.nn.Parameter(torch.ones(2)),
        "state_dict": torch.nn.Linear(2, 1, dtype=torch.float64).state_dict(), "generator_state": torch.Generator().manual_seed(3).get_state()[:16].clone(),
        "numpy_scalars": [np.float32(1.5), np.int64(-2), np.bool_(True), np.float64(0.1)],
        "numpy_arrays": {"f4": np.arange(6, dtype=np.float32).reshape(2, 3), "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)), "u4": np.arange(2, dtype=np.uint32),
                         "bool": np.array([True, False]), "empty": np.empty((0, 2)), "strings": np.array(["a", "bc"]), "zero_dim": np.array(4.0)},
        "numpy_dtype": [np.dtype("float32"), np.dtype(">i4")], "numpy_random_state": numpy_state, "python_random_state": python_state,
        "foreign_class": foreign_class(),
    }
    return rows | rerun_objects()


def save_all(folder):
    rows = objects()
    for name, value in rows.items():
        torch.save(value, folder / f"{name}.pt")
    torch.save({"old": torch.arange(2), "n": 1}, folder / "legacy_stream.pt", _use_new_zipfile_serialization=False)
    rows["legacy_stream"] = {"old": torch.arange(2), "n": 1}
    return {k: {"type": type(v).__name__, "repr": as_text(v)} for k, v in sorted(rows.items())}


def repickle_metadata(folder):
    source = folder.parent / "fsdp2_uneven" / ".metadata"
    metadata = pickle.loads(source.read_bytes())
    for protocol in (2, 3, 4, 5):
        (folder / f"metadata_p{protocol}.bin").write_bytes(pickle.dumps(metadata, protocol=protocol))


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve() / f"torch_{torch.__version__.split('+')[0]}" / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    expected = {"torch": torch.__version__, "python": platform.python_version(), "numpy": np.__version__, "objects": save_all(folder)}
    (folder.parent / "objects.expected.json").write_text(as_json(expected) + "\n")
    if (folder.parent / "fsdp2_uneven" / ".metadata").exists():
        repickle_metadata(folder)
    print(f"{folder.name}: {len(expected['objects'])} objects")


if __name__ == "__main__":
    main()
