"""What a rank holds of whole tensors: digests that add up over ranks, whatever the layout."""

from __future__ import annotations

import sys
from typing import Any, Callable, Iterable

from .digests import undisturbed

ROWS = 4096  # of inputs; of a larger batch none are told


def wholes(tensors: dict[str, Any]) -> dict[str, str]:
    """Returns ``dtype[shape of the whole]@parts:digest`` by name. A part is ``offset,..+size,..``, parts stand
    between bars. Digests of parts that don't overlap add up, modulo 2**64, to that of the whole. A tensor that is no
    DTensor is told as a whole of its own. What the engine can't read, or holds sums of parts, is left out."""
    from reprise.errors import Error
    from reprise.torch.digest import digests

    left = {name: tensor for name, tensor in tensors.items() if not is_partial(tensor)}
    while left:
        try:
            with undisturbed():
                found = digests(left)
        except ImportError:  # there is no engine, which the record says
            return {}
        except Error as error:
            if error.key not in left:
                raise
            del left[error.key]
            continue
        return {name: f"{form(left[name])}@{parts(left[name])}:{digest:016x}" for name, digest in found.items()}
    return {}


def is_partial(tensor) -> bool:
    """Whether ranks hold summands of its values."""
    return any(placement.is_partial() for placement in getattr(tensor, "placements", ()))


def form(tensor) -> str:
    return f"{str(tensor.dtype).replace('torch.', '')}[{numbers(tensor.size())}]"


def parts(tensor) -> str:
    """The boxes that this rank holds; nothing if it holds none."""
    from reprise.torch.describe import boxes_of

    return "|".join(f"{numbers(box.offsets)}+{numbers(box.sizes)}" for box in boxes_of(tensor))


def numbers(values: Iterable[int]) -> str:
    return ",".join(str(int(value)) for value in values)


def rows(inputs: list[Any], told: Callable) -> list[str]:
    """One text for each row of a batch: the digests, by `told`, of that row of each input that has as many rows as
    the first. Empty if there are no rows, or too many."""
    torch = sys.modules["torch"]
    tensors = [value if isinstance(value, torch.Tensor) else torch.as_tensor(value) for value in inputs]
    tensors = [getattr(tensor, "_local_tensor", tensor) for tensor in tensors]
    tensors = [tensor for tensor in tensors if tensor.dim() > 0]
    count = len(tensors[0]) if tensors else 0
    if count > ROWS:
        return []
    return [" ".join(told(tensor[i]) for tensor in tensors if len(tensor) == count) for i in range(count)]
