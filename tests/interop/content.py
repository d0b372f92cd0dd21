"""The content of a checkpoint, as torch reads it and as Reprise reports it, and functions that compare the two."""
import copyreg
import hashlib
import json
import math
import pathlib
import pickle
import struct
import subprocess

import numpy as np
import torch

import check_with_torch


class Different(Exception):
    """Raised if two descriptions of the same content disagree."""


class Skipped(Exception):
    """Raised if something that a case needs is missing."""


def raw(tensor):
    return check_with_torch.tensor_bytes(tensor)


def dtype_name(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and raw(a) == raw(b)


# ------------------------------------------------------------------------------------------- objects


def full_name(thing):
    name = getattr(thing, "__qualname__", None) or thing.__name__
    return f"{pickle.whichmodule(thing, name)}.{name}"


def reduced(value):
    """Returns what pickle would write for an instance: the call that makes the instance, and its state."""
    if isinstance(value, np.ndarray):
        value = value.copy(order="C")  # Reprise reports every array in row-major order
    by_table = copyreg.dispatch_table.get(type(value))
    parts = by_table(value) if by_table else value.__reduce_ex__(2)
    if isinstance(parts, str):
        return {"name": f"{pickle.whichmodule(value, parts)}.{parts}"}
    call, arguments, state, items, entries = (tuple(parts) + (None,) * 3)[:5]
    new = call is copyreg.__newobj__
    if new:
        call, arguments = arguments[0], arguments[1:]
    return {"object": {
        "type": full_name(call), "new": new, "args": [tree(a) for a in arguments],
        "state": [] if state is None else [tree(state)], "items": [tree(i) for i in items or ()],
        "entries": [[tree(k), tree(v)] for k, v in entries or ()]}}


def tensor_tree(value):
    grad = {"requires_grad": True} if value.requires_grad else {}
    return {"tensor": {"dtype": dtype_name(value), "shape": list(value.shape), "sha256": hashlib.sha256(raw(value)).hexdigest()} | grad}


def tree(value):
    """Returns a Python value in the form that `reprise inspect --json --values` writes."""
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if kind is int:
        return value if -(1 << 63) <= value < 1 << 63 else {"int": str(value)}
    if kind is float:
        return {"float": struct.pack(">d", value).hex()}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is list:
        return [tree(v) for v in value]
    if kind is tuple:
        return {"tuple": [tree(v) for v in value]}
    if kind in (set, frozenset):
        return {kind.__name__: sorted((tree(v) for v in value), key=json.dumps)}
    if kind is dict:
        return {"dict": [[tree(k), tree(v)] for k, v in value.items()]}
    if kind is torch.Tensor and not vars(value):
        return tensor_tree(value)
    if isinstance(value, torch.Tensor) and not isinstance(value, torch.nn.Parameter):
        return {"object": {"type": "torch._tensor._rebuild_from_type_v2", "new": False, "state": [], "items": [], "entries": [],
                           "args": [tree(kind), tensor_tree(value), tree(vars(value))]}}
    if isinstance(value, type) or kind.__name__ in ("function", "builtin_function_or_method"):
        return {"name": full_name(value)}
    return reduced(value)


def settled(node):
    """Returns Reprise's tree with one spelling for values that have several: integers in decimal, sets in order."""
    if isinstance(node, list):
        return [settled(n) for n in node]
    if not isinstance(node, dict):
        return node
    if "int" in node:
        return {"int": str(int.from_bytes(bytes.fromhex(node["int"]), "little", signed=True))}
    for name in ("set", "frozenset"):
        if name in node:
            return {name: sorted((settled(n) for n in node[name]), key=json.dumps)}
    return {k: settled(v) for k, v in node.items()}


def first_difference(a, b, path=""):
    if type(a) is type(b) is dict and a.keys() == b.keys():
        return next((d for k in a if (d := first_difference(a[k], b[k], f"{path}.{k}"))), None)
    if type(a) is type(b) is list and len(a) == len(b):
        return next((d for i in range(len(a)) if (d := first_difference(a[i], b[i], f"{path}[{i}]"))), None)
    return None if type(a) is type(b) and a == b else f"at {path or 'the top'}: {str(a)[:200]} | {str(b)[:200]}"


# ------------------------------------------------------------------------------------------- torch


def object_digests(directory, metadata):
    """Returns the SHA-256 of each object's item, which is read directly from its file."""
    digests = {}
    for index, info in metadata.storage_data.items():
        if not hasattr(metadata.state_dict_metadata[index.fqn], "chunks"):
            with open(directory / info.relative_path, "rb") as file:
                file.seek(info.offset)
                digests[index.fqn] = hashlib.sha256(file.read(info.length)).hexdigest()
    return digests


class Content:
    """The whole tensors and the objects of a checkpoint, as torch loads them."""

    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.tensors, by_rank, _ = check_with_torch.read_checkpoint(self.directory)
        self.objects = {}
        for _, mine in reversed(by_rank):  # without rank coordination the lowest rank's values count
            self.objects.update(mine)
        self.object_digests = {}
        for _, metadata in reversed(check_with_torch.read_metadata(self.directory)):
            self.object_digests.update(object_digests(self.directory, metadata))
        common = self.directory / "common.pt"
        self.common = torch.load(common, map_location="cpu", weights_only=False) if common.exists() else None

    def elements(self):
        return sum(t.numel() for t in self.tensors.values())

    def must_equal(self, other, what, wanted=lambda key: True):
        """Requires that both have the same keys, bits and values, whatever their chunks are."""
        for mine, theirs, same in ((self.tensors, other.tensors, same_bits),
                                   (self.objects, other.objects, lambda a, b: tree(a) == tree(b))):
            keys, other_keys = ({k for k in side if wanted(k)} for side in (mine, theirs))
            if keys != other_keys:
                raise Different(f"{what}: keys of one side only: {sorted(keys ^ other_keys)[:4]}")
            for key in sorted(keys):
                if not same(mine[key], theirs[key]):
                    raise Different(f"{what}: {key!r} differs")
        if wanted("common_state") and tree(self.common) != tree(other.common):
            raise Different(f"{what}: the common state differs")

    def must_hold(self, truth):
        """Requires that the tensors of `truth` are here unchanged. `truth` has the whole tensors that were passed to torch, by key."""
        for key, tensor in truth.items():
            if key not in self.tensors:
                raise Different(f"torch lost {key!r}")
            if not same_bits(self.tensors[key], tensor):
                raise Different(f"torch reads {key!r} not as it was saved")


# ------------------------------------------------------------------------------------------- Reprise


class Reprise:
    def __init__(self, program):
        self.program = str(program)

    def call(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout, done.stderr

    def must(self, *arguments):
        status, out, error = self.call(*arguments)
        if status != 0:
            raise Different(f"reprise {' '.join(map(str, arguments))}: exit {status}: {(error or out).strip()[-600:]}")
        return out

    def inspect(self, directory):
        return json.loads(self.must("inspect", "--json", "--sha256", "--values", directory))

    def agrees_with(self, content):
        """Requires that `verify` accepts the checkpoint, and that each tensor's hash and each object's tree
        match what torch loads. Returns the number of objects that were compared as values."""
        report = json.loads(self.must("verify", "--json", content.directory))["checkpoints"][0]
        if not report["whole"] or report["warnings"]:
            raise Different(f"verify: {report['findings'][:2]}")
        said = self.inspect(content.directory)
        self.tensors_agree(content, {t["key"]: t for t in said["tensors"]})
        return self.objects_agree(content, {o["key"]: o for o in said["objects"]}, said.get("common"))

    @staticmethod
    def tensors_agree(content, said):
        if said.keys() != content.tensors.keys():
            raise Different(f"tensors that only one sees: {sorted(said.keys() ^ content.tensors.keys())[:4]}")
        for key, tensor in content.tensors.items():
            form = (dtype_name(tensor), list(tensor.shape))
            if (said[key]["dtype"], said[key]["shape"]) != form:
                raise Different(f"{key!r}: {said[key]['dtype']} {said[key]['shape']}, torch {form}")
            if said[key]["sha256"] != hashlib.sha256(raw(tensor)).hexdigest():
                raise Different(f"{key!r}: Reprise reads other elements than torch")

    @staticmethod
    def objects_agree(content, said, common):
        if said.keys() != content.objects.keys():
            raise Different(f"objects that only one sees: {sorted(said.keys() ^ content.objects.keys())[:4]}")
        pairs = [(key, said[key], value) for key, value in content.objects.items()]
        if content.common is not None:
            pairs.append(("common.pt", common or {}, content.common))
        compared = 0
        for key, answer, value in pairs:
            if key in said and answer["sha256"] != content.object_digests[key]:
                raise Different(f"{key!r}: Reprise reads other bytes than those that .metadata names")
            if "value" not in answer:  # the object has names that Reprise does not interpret
                if "opaque" not in answer:
                    raise Different(f"{key!r}: Reprise says nothing of it")
                continue
            difference = first_difference(settled(answer["value"]), tree(value))
            if difference:
                raise Different(f"{key!r}: {difference}")
            compared += 1
        return compared


def resharded(reprise, source, target, *options):
    """Reshards, and lets Reprise itself check that the content did not change."""
    reprise.must("reshard", "--quiet", *options, source, target)
    reprise.must("verify", target)
    status, out, error = reprise.call("diff", "--quiet", source, target)
    if status != 0:
        raise Different(f"diff of a reshard with {options}: exit {status}: {(out or error).strip()[-400:]}")


def region(shape, offset):
    return tuple(slice(o, o + n) for o, n in zip(offset, shape))


def part_of(whole, shape, offset):
    """Returns the part of `whole` that a rank holds. A rank that holds nothing may claim any offset."""
    if math.prod(shape) == 0:
        return torch.empty(shape, dtype=whole.dtype)
    return whole[region(shape, offset)]
