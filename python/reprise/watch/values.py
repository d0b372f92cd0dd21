"""Values as text: ``=text`` is a plain value, ``#dtype[shape]:digest`` a tensor, ``#object:digest`` anything
else whose content can be read, and ``=<module.Class>`` what can't be, which says nothing of its content."""

from __future__ import annotations

import enum
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Iterator

from .digests import Digests, NotDense

SHOWN = 120  # longest text of a plain value; what is longer is told by its digest
DEEP = 12  # containers within containers
SCALARS = (type(None), bool, int, float, complex, str, bytes)


class Opaque(Exception):
    """What an object holds can't be read."""


class Values:
    """Args:
    digests: how bits are hashed.
    folders: absolute paths that differ from life to life, and what is told in their place.
    """

    def __init__(self, digests: Digests, folders: dict[str, str]) -> None:
        self._digests = digests
        self._folders = {path: name for path, name in folders.items() if path.strip(os.sep)}

    def told(self, value: Any) -> str:
        """The VALUE of anything."""
        if is_tensor(value):
            return self.tensor(value)
        if is_array(value):
            return self._array(value)
        try:
            plain = self._plain(value)
            if plain is not None:
                return "=" + plain if len(plain) <= SHOWN else self._hashed(plain)
            tree = json.dumps(self._tree(value, ()), sort_keys=True)
        except Opaque:
            return f"=<{type(value).__module__}.{type(value).__qualname__}>"
        if isinstance(value, (list, tuple, dict, set, frozenset)) and len(tree) <= SHOWN:
            return "=" + tree
        return self._hashed(tree)

    def leaves(self, value: Any) -> dict[str, str]:
        """The VALUE of each leaf under the path to it, such as "model.layer.weight"."""
        return {path: self.told(leaf) for path, leaf in walk(value)}

    def path(self, text: str) -> str:
        """A path or a text without the folders that differ from life to life."""
        for folder, name in self._folders.items():
            text = text.replace(folder, name)
        return text

    def tensor(self, tensor) -> str:
        shape = getattr(tensor, "_local_tensor", tensor).shape
        try:
            digest = self._digests.of_tensor(tensor)
        except NotDense as why:
            return str(why)
        except NotImplementedError:  # a kind of tensor that forbids reading
            return f"=<{type(tensor).__module__}.{type(tensor).__qualname__}>"
        return f"#{str(tensor.dtype).replace('torch.', '')}[{','.join(str(n) for n in shape)}]:{digest}"

    def _array(self, array) -> str:
        if array.dtype.hasobject:
            return self._hashed(json.dumps(self._tree(array.tolist(), ()), sort_keys=True))
        shape = ",".join(str(n) for n in array.shape)
        return f"#{array.dtype.name}[{shape}]:{self._digests.of_bytes(array.tobytes())}"

    def _hashed(self, text: str) -> str:
        return "#object:" + self._digests.of_bytes(text.encode("utf-8", "surrogatepass"))

    def _plain(self, value: Any):
        """The text of a scalar, of the name of a class or function, or None."""
        if isinstance(value, enum.Enum):
            return f"{type(value).__name__}.{value.name}"
        if isinstance(value, float):
            return float(value).hex()
        if isinstance(value, str):
            return repr(self.path(value))
        if isinstance(value, SCALARS):
            return repr(value)
        if isinstance(value, os.PathLike):
            return repr(self.path(os.fspath(value)))
        if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
            return f"{value.__module__}.{value.__qualname__}"
        if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device", "Size", "layout"):
            return str(value)
        return None

    def _tree(self, value: Any, above: tuple) -> Any:
        """A tree of JSON values. Throws Opaque."""
        if is_tensor(value):
            return self.tensor(value)
        if is_array(value):
            return self._array(value)
        plain = self._plain(value)
        if plain is not None:
            return plain
        if id(value) in above or len(above) > DEEP:
            raise Opaque
        above = (*above, id(value))
        if isinstance(value, Mapping):
            entries = [[self._tree(k, above), self._tree(v, above)] for k, v in list(value.items())]
            return {"dict": sorted(entries, key=json.dumps)}
        if isinstance(value, (list, tuple)):
            return [self._tree(part, above) for part in value]
        if isinstance(value, (set, frozenset)):
            return {"set": sorted((self._tree(part, above) for part in value), key=json.dumps)}
        if is_generator(value):
            return self.tensor(value.get_state())
        return {type(value).__qualname__: self._tree(attributes(value), above)}


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))


def is_generator(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Generator)


def attributes(value: Any) -> dict[str, Any]:
    """What an instance holds, without running a line of its class. Throws Opaque."""
    found: dict[str, Any] = {}
    try:
        found.update(object.__getattribute__(value, "__dict__"))
    except (AttributeError, TypeError):
        pass
    known = bool(found)
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            known = True
            try:
                found[name] = object.__getattribute__(value, name)
            except AttributeError:
                continue
    if not known and not hasattr(value, "__dict__"):
        raise Opaque
    return found


def walk(value: Any, path: str = "", above: tuple = ()) -> Iterator[tuple[str, Any]]:
    """Yields path and value of each leaf: dicts are entered, lists where they hold more than scalars, modules
    and optimizers, and the sharded tensors of torch and Megatron-Core, of which the local part is a leaf."""
    if id(value) in above:
        return
    inner = (*above, id(value))
    entries = parts(value) if len(above) <= DEEP else None
    if entries is None:
        yield path, value
        return
    for name, part in entries:
        yield from walk(part, f"{path}.{name}" if path else str(name), inner)


def parts(value: Any):
    """Name and value of what a container holds, or None for a leaf."""
    if is_tensor(value):
        return None
    if isinstance(value, Mapping):
        return list(value.items()) or None
    if isinstance(value, (list, tuple)):
        return list(enumerate(value)) if any(not isinstance(v, SCALARS) for v in value) else None
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        return [*value.named_parameters(), *value.named_buffers()]
    if torch is not None and isinstance(value, torch.optim.Optimizer):
        return list(value.state_dict().items())
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if kind == "megatron.core.dist_checkpointing.mapping.ShardedTensor":
        return [("@" + ",".join(str(n) for n in value.global_offset), value.data)]
    if kind == "megatron.core.dist_checkpointing.mapping.ShardedObject":
        return [("@" + ",".join(str(n) for n in value.global_offset), value.data)]
    if kind.endswith("sharded_tensor.api.ShardedTensor"):
        return [(f"@{i}", shard.tensor) for i, shard in enumerate(value.local_shards())]
    return None
