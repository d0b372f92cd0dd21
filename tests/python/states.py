"""State dicts to save, and the comparison of two."""
import io
import os

import torch

# So that other programs find these files, too.
BESIDE = dict(
    os.environ,
    PYTHONPATH=os.pathsep.join([os.environ.get("PYTHONPATH", ""), os.path.dirname(os.path.abspath(__file__))]),
)


class Plain:
    """An object that only its class can rebuild."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return type(other) is Plain and other.value == self.value


class Counter:
    """A Stateful object."""

    def __init__(self, count):
        self.count = count
        self.weights = torch.full((3,), float(count))
        self.loads = 0

    def state_dict(self):
        return {"count": self.count, "weights": self.weights}

    def load_state_dict(self, state):
        self.count = state["count"]
        self.loads += 1


def numbers(seed, *shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype.is_complex:
        return torch.randn(*shape, 2, generator=generator, dtype=torch.float64).view(torch.complex128)[..., 0].to(dtype)
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 100, shape, generator=generator).to(dtype)


def is_known(dtype):
    """True if this torch can save the type; some earlier ones have it and can't."""
    try:
        torch.save(torch.empty(1, dtype=dtype), io.BytesIO())
        return True
    except KeyError:
        return False


TYPES = [
    getattr(torch, name)
    for name in (
        "float64 float32 float16 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
        "float8_e8m0fnu int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool complex128 complex64 complex32"
    ).split()
    if hasattr(torch, name) and is_known(getattr(torch, name))
]


def every_kind(seed):
    """Each kind of tensor and of value, with contents of its own for each seed."""
    tied = numbers(seed + 1, 4, 4)
    return {
        "types": {str(t): numbers(seed + 2, 5, 3, dtype=t) for t in TYPES},
        "views": {
            "transposed": numbers(seed + 3, 4, 6).t(),
            "sliced": numbers(seed + 4, 8, 9)[1:7:2, ::3],
            "permuted": numbers(seed + 5, 2, 3, 4).permute(2, 0, 1),
            "channels_last": numbers(seed + 6, 2, 3, 4, 4).contiguous(memory_format=torch.channels_last),
            "conjugate": numbers(seed + 7, 3, 3, dtype=torch.complex64).conj(),
            "negative": numbers(seed + 8, 3, dtype=torch.complex64).conj().imag,
        },
        "tied": [tied, tied],
        "scalar": numbers(seed + 9),
        "empty": [torch.empty(0), torch.empty(0, 3), torch.empty(3, 0, 2)],
        "one": numbers(seed + 10, 1, 1, 1),
        "parameter": torch.nn.Parameter(numbers(seed + 11, 3, 2)),
        "many": numbers(seed + 12, 1, 2, 1, 2, 1, 2, 1, 2),
        "ten": numbers(seed + 17, 2, 1, 2, 1, 2, 1, 2, 3, 1, 2),
        "ten_apart": numbers(seed + 18, 3, 1, 2, 1, 2, 1, 2, 2, 1, 2).transpose(0, 2),
        "odd/key.with\u00fcnicode": numbers(seed + 13, 2),
        "nested": {"list": [numbers(seed + 14, 2), {"x": numbers(seed + 15, 2), "lr": seed / 7}], "deep": {"er": {"n": seed}}},
        "values": {
            "none": None,
            "text": f"seed {seed}",
            "list": [seed, 2.5, "x", None],
            "tuple": (seed, (1, 2)),
            "set": {seed, -1},
            "bytes": bytes([seed % 256, 0, 255]),
            "object": Plain([seed, {"a": torch.float32}]),
            "dtype": torch.bfloat16,
            "huge": 10**30 + seed,
            "in_tuple": (numbers(seed + 16, 2), seed),
        },
    }


def bits(tensor):
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return (tensor.dtype, tuple(tensor.shape), bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy()) if tensor.numel() else b"")


def differences(left, right, path=""):
    """Returns the paths at which two states differ; tensors are compared bit for bit."""
    if isinstance(left, dict) and isinstance(right, dict):
        if left.keys() != right.keys():
            return [f"{path}: keys {sorted(map(str, left.keys() ^ right.keys()))}"]
        return [d for key in left for d in differences(left[key], right[key], f"{path}.{key}")]
    if isinstance(left, (list, tuple)) and type(left) is type(right) and len(left) == len(right):
        return [d for i, (a, b) in enumerate(zip(left, right)) for d in differences(a, b, f"{path}.{i}")]
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        if hasattr(left, "to_local"):
            left, right = left.to_local(), right.to_local()
        return [] if bits(left) == bits(right) else [path]
    return [] if type(left) is type(right) and left == right else [f"{path}: {left!r}, {right!r}"]
