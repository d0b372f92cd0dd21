"""What this rank holds, by names that are the same in each life."""

from __future__ import annotations

import random
import sys
import types
import weakref
from typing import Any, Iterator, Optional

from ..wrappers import bare, unwrapped
from .search import Search
from .values import SCALARS, Values, attributes, is_generator, is_tensor, walk
from .wholes import wholes

LIGHT_TENSORS, LIGHT_ELEMENTS = 64, 1024


class Known:
    """Objects in the order in which they were met, as long as the script keeps them."""

    def __init__(self) -> None:
        self._met: list[weakref.ref] = []

    def meet(self, value: Any) -> None:
        if not any(ref() is value for ref in self._met):
            self._met.append(weakref.ref(value))

    def __iter__(self) -> Iterator[Any]:
        self._met = [ref for ref in self._met if ref() is not None]
        return iter([value for ref in self._met for value in [ref()] if value is not None])


class Held:
    """Meets what the script makes, and tells what it holds."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._roots, self._optimizers, self._schedules, self._scalers = Known(), Known(), Known(), Known()
        self._models: list[tuple[weakref.ref, str]] = []  # with the prefix of the names of what they hold
        self._found: dict[str, Any] = {}  # by name: weak references, or what can't be referred to weakly
        self._names: Optional[frozenset[str]] = None  # of what the first search found
        self._kept: list[Any] = []
        self.whole_search = True
        self.overwritten = False  # whether there are buffers that are nobody's state

    def trains(self, module) -> None:
        """The outermost module of a training forward."""
        self._roots.meet(module)

    def made(self, value: Any) -> None:
        """An optimizer, schedule or scaler."""
        torch = sys.modules["torch"]
        if isinstance(value, torch.optim.Optimizer):
            self._optimizers.meet(value)
        elif isinstance(value, torch.amp.GradScaler):
            self._scalers.meet(value)
        else:
            self._schedules.meet(value)

    def keep(self) -> None:
        """Keeps what there is now alive until the next call, or the end of the process: what the script drops
        after its last step is told at its end."""
        self._kept = []  # what was kept alone is no longer there
        found = (deref(value) for value in self._found.values())
        self._kept = [*self._roots, *self._optimizers, *self._schedules, *self._scalers, *found]

    def search(self, frame: types.FrameType) -> None:
        """Looks for what the functions that called `frame` hold."""
        search, found = Search(), {}
        for name, value in search.objects(frame):
            kind = self._kind(value)
            if kind:
                found.setdefault(f"{kind}.{name}", reference(value))
        # What the script made after its first step, such as a list of gradients, is no state that a resumed one
        # must have before its first.
        if self._names is None:
            self._names = frozenset(found)
        self._found = {name: value for name, value in found.items() if name in self._names}
        self.whole_search = search.whole

    def rates(self) -> list[str]:
        """The learning rates of all groups, as hex."""
        rates = [group.get("lr") for optimizer in self._optimizers for group in optimizer.param_groups]
        return [float(rate).hex() for rate in rates if rate is not None]

    def fields(self, light: bool = False, whole: bool = False) -> dict[str, Any]:
        """Returns NAME and VALUE of everything held; the light ones are plain values, random states and some
        small tensors. With `whole` also what is told of whole tensors."""
        told, tensors = self._told_and_tensors(light)
        told.update((name, self._values.tensor(tensor)) for name, tensor in tensors.items())
        return {"names": told, **({"wholes": wholes(tensors)} if whole else {})}

    def _told_and_tensors(self, light: bool) -> tuple[dict[str, str], dict[str, Any]]:
        told: dict[str, str] = {}
        tensors: list[tuple[str, Any]] = []
        of_parameter: dict[int, str] = {}
        for name, tensor in self._of_models():
            of_parameter.setdefault(id(tensor), name.split(".", 1)[1])
            tensors.append((name, tensor))
        for name, value in self._of_optimizers(of_parameter):
            if is_tensor(value):
                tensors.append((name, value))
            else:
                told[name] = self._values.told(value)
        if light:
            small = sorted((item for item in tensors if item[1].numel() <= LIGHT_ELEMENTS), key=lambda item: item[0])
            tensors = small[:LIGHT_TENSORS]
        told.update(self._of_schedules())
        told.update((f"rng.{name}", self._values.told(state)) for name, state in random_states())
        if not light:
            for name, value in self._of_found({place(tensor) for _, tensor in tensors}):
                if is_tensor(value):
                    tensors.append((name, value))
                else:
                    told[name] = value
        return told, dict(tensors)

    # ------------------------------------------------------------------------ models and optimizers

    def _of_models(self) -> Iterator[tuple[str, Any]]:
        self._name_models()
        seen: set[int] = set()
        followers = {id(bare(root)) for root in self._roots if follows_another_rank(root)}
        for ref, prefix in self._models:
            model = bare(ref())
            if model is None:
                continue
            buffers = list(model.named_buffers())
            if buffers and id(model) in followers:
                self.overwritten, buffers = True, []
            caches = not_stored(model) if buffers else set()
            for kind, named in (("param", model.named_parameters()), ("buffer", buffers)):
                for name, tensor in named:
                    if id(tensor) not in seen:
                        seen.add(id(tensor))
                        yield f"{'buffer-not-saved' if name in caches else kind}.{prefix}{unwrapped(name)}", tensor

    def _name_models(self) -> None:
        """The first model that trains has no prefix, the next ones that of their class. A name stays. A part of a
        model has none: it has no parameter that the model lacks."""
        self._models = [(ref, prefix) for ref, prefix in self._models if ref() is not None]
        trained = {id(p) for o in self._optimizers for group in o.param_groups for p in group["params"]}
        found = [deref(value) for name, value in self._found.items() if name.startswith("model.")]
        new: dict[int, tuple[Any, frozenset[int]]] = {}
        for model in [*self._roots, *found]:
            if model is not None and self._counts(model, trained):
                new[id(model)] = model, parameters(model)
        named = frozenset().union(*(parameters(ref()) for ref, _ in self._models))
        new = {key: one for key, one in new.items() if not one[1] <= named}
        for model, own in new.values():
            if not any(is_part(model, own, other, others) for other, others in new.values() if other is not model):
                taken = {prefix for _, prefix in self._models}
                prefix = next_name(type(bare(model)).__name__, taken) if taken else ""
                self._models.append((weakref.ref(model), prefix))

    def _counts(self, model, trained: set[int]) -> bool:
        """A module without parameters holds nothing; one of which nothing is trained is `other`."""
        return any(model is root for root in self._roots) or any(id(p) in trained for p in model.parameters())

    def _of_optimizers(self, of_parameter: dict[int, str]) -> Iterator[tuple[str, Any]]:
        taken: set[str] = set()
        for i, optimizer in enumerate(self._optimizers):
            grouped: set[int] = set()
            for g, group in enumerate(optimizer.param_groups):
                for key, value in group.items():
                    if key not in ("params", "param_names"):
                        for path, leaf in walk(value, str(key)):
                            yield f"group.{i}.{g}.{path}", leaf
                for j, parameter in enumerate(group["params"]):
                    grouped.add(id(parameter))
                    name = of_parameter.get(id(parameter))
                    if name is None:
                        name = f"{i}.{g}.{j}"  # such as Megatron's main parameters, which no module has
                        yield f"optim.{name}.param", parameter
                    name = name if name not in taken else f"{name}#{i}"
                    taken.add(name)
                    if optimizer.state.get(parameter):
                        yield from walk(optimizer.state[parameter], f"optim.{name}")
            for key, value in list(optimizer.state.items()):
                if id(key) not in grouped and not is_tensor(key):
                    yield from walk(value, f"optim.{i}.{key}")

    # ------------------------------------------------------------------------ the rest

    def _of_schedules(self) -> Iterator[tuple[str, str]]:
        taken: set[str] = set()
        for schedule in self._schedules:
            prefix = next_name(type(schedule).__name__, taken)
            taken.add(prefix)
            for key, value in attributes(schedule).items():
                # Functions and other schedules are no state of this one; the flag is set within a call alone.
                if key in ("optimizer", "_schedulers", "_get_lr_called_within_step") or callable(value):
                    continue
                for path, leaf in walk(value, f"sched.{prefix}{key}"):
                    if not callable(leaf) and type(leaf) is not object:
                        yield path, self._values.told(leaf)
        taken = set()
        for scaler in self._scalers:
            if scaler.is_enabled():
                prefix = next_name(type(scaler).__name__, taken)
                taken.add(prefix)
                for key, value in scaler.state_dict().items():
                    yield f"scaler.{prefix}{key}", self._values.told(value)

    def _kind(self, value: Any) -> str:
        """The kind of an object that was found, or ""."""
        torch, kind = sys.modules["torch"], type(value)
        if issubclass(kind, torch.nn.Module):
            return "" if issubclass(kind, torch.fx.GraphModule) else "model"  # torch.compile's have others' tensors
        if issubclass(kind, torch.optim.Optimizer):
            if "param_groups" in attributes(value) and "state" in attributes(value):
                self._optimizers.meet(value)
            return ""
        if issubclass(kind, torch.optim.lr_scheduler.LRScheduler):
            self._schedules.meet(value)
            return ""
        if issubclass(kind, torch.amp.GradScaler):
            self._scalers.meet(value)
            return ""
        if issubclass(kind, generators()):
            return "gen"
        data = torch.utils.data
        if issubclass(kind, data.Sampler):
            return "sampler"
        if issubclass(kind, (data.DataLoader, data.Dataset)):
            return "loader"
        if issubclass(kind, (dict, list)):
            return "copies" if self._copies(value) else ""
        if callable(getattr(kind, "state_dict", None)) and callable(getattr(kind, "load_state_dict", None)):
            return "object"
        return ""

    def _copies(self, value: Any) -> bool:
        """Whether it holds a tensor in the shape of each of several parameters: a moving average of weights, say."""
        parts = list(value.values()) if isinstance(value, dict) else value
        if not parts or len(parts) > 100_000 or not all(is_tensor(part) for part in parts):
            return False
        shapes = [tuple(part.shape) for part in parts]
        if shapes == [tuple(p.shape) for root in self._roots for p in root.parameters() if p.requires_grad]:
            return True
        return any(shapes == [tuple(t.shape) for t in stored(root)] for root in self._roots)

    def _of_found(self, told: set) -> Iterator[tuple[str, Any]]:
        """Values, and tensors themselves. Those that models and optimizers have are not told again."""
        names = {id(ref()) for ref, _ in self._models}
        inside = {id(part) for ref, _ in self._models if ref() is not None for part in ref().modules()}
        for entry, ref in self._found.items():
            kind, _, name = entry.partition(".")
            value = deref(ref)
            if value is None or id(value) in names or id(value) in inside:
                continue
            if kind == "gen":
                yield f"gen.{name}", self._values.told(state_of(value))
                continue
            for path, leaf in self._leaves(kind, value):
                full = f"{name}.{path}".strip(".")
                if not is_tensor(leaf):
                    yield named(soft(kind), full), self._values.told(leaf)
                elif kind not in ("sampler", "loader") and place(leaf) not in told:
                    told.add(place(leaf))
                    hard = "attr" if leaf.dim() == 0 else "ema" if "ema" in full.lower() else "other"
                    yield named(hard, full), leaf

    def _leaves(self, kind: str, value: Any) -> Iterator[tuple[str, Any]]:
        if kind == "model":
            inner = [(ref(), prefix) for ref, prefix in self._models]
            if not any(part is model for part in value.modules() for model, _ in inner):
                yield from value.named_parameters()
                yield from value.named_buffers()
            return
        if kind == "copies":
            yield from walk(value)
            return
        for key, part in attributes(value).items():
            if is_tensor(part) or isinstance(part, SCALARS):
                yield str(key), part
            elif isinstance(part, (dict, list, tuple)) and kind == "object" and len(part) <= 100_000:
                for path, leaf in walk(part, str(key)):
                    if is_tensor(leaf) or isinstance(leaf, (*SCALARS, list, tuple)):
                        yield path, leaf


def soft(kind: str) -> str:
    return kind if kind in ("sampler", "loader") else "attr"


def named(kind: str, name: str) -> str:
    return name if name.startswith(kind + ".") else f"{kind}.{name}"


def reference(value: Any) -> Any:
    try:
        return weakref.ref(value)
    except TypeError:
        return value


def deref(value: Any) -> Any:
    return value() if isinstance(value, weakref.ref) else value


def place(tensor) -> tuple:
    """Where the bits are: equal for two tensors that share them."""
    local = getattr(tensor, "_local_tensor", tensor)
    try:
        return local.data_ptr() or id(tensor), tuple(local.shape)
    except (RuntimeError, NotImplementedError):
        return id(tensor), ()


def stored(model) -> list[Any]:
    """The tensors of its state dict, which is not asked for: that may be collective, or run hooks of the script's."""
    caches, found = not_stored(bare(model)), []
    for prefix, module in bare(model).named_modules(remove_duplicate=False):
        own = [*module._parameters.items(), *module._buffers.items()]
        found += [t for name, t in own if t is not None and f"{prefix}.{name}".strip(".") not in caches]
    return found


def not_stored(model) -> set[str]:
    """The names of buffers that are no part of its state dict, such as caches."""
    modules = model.named_modules(remove_duplicate=False)
    return {f"{prefix}.{name}".strip(".") for prefix, module in modules for name in module._non_persistent_buffers_set}


def follows_another_rank(model) -> bool:
    """Whether each forward of a DistributedDataParallel begins by taking the buffers of its first rank. What this
    rank has in them between two forwards is then nobody's state."""
    torch = sys.modules["torch"]
    if not isinstance(model, torch.nn.parallel.DistributedDataParallel) or not model.broadcast_buffers:
        return False
    return bool(model.process_group.rank() != 0)


def next_name(name: str, taken: set[str]) -> str:
    """`name.`, or `name#2.` and so on where it is taken."""
    number, found = 1, f"{name}."
    while found in taken:
        number += 1
        found = f"{name}#{number}."
    return found


def parameters(model) -> frozenset[int]:
    return frozenset(id(parameter) for parameter in model.parameters())


def is_part(model, own: frozenset[int], other, others: frozenset[int]) -> bool:
    """Whether a model is a part of another one, or has the same parameters and is within it."""
    return own < others or (own == others and any(model is part for part in other.modules()))


def generators() -> tuple[type, ...]:
    """The classes of what makes random numbers, as far as they are imported."""
    numpy = sys.modules.get("numpy")
    more = () if numpy is None else (numpy.random.Generator, numpy.random.RandomState)
    return (sys.modules["torch"].Generator, random.Random, *more)


def state_of(generator: Any) -> Any:
    if is_generator(generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return generator.getstate()
    state: Optional[Any] = getattr(generator, "bit_generator", None)
    return state.state if state is not None else generator.get_state()


def random_states() -> Iterator[tuple[str, Any]]:
    """Reads them; none is advanced."""
    torch = sys.modules["torch"]
    yield "torch", torch.get_rng_state()
    yield "python", random.getstate()
    if "numpy" in sys.modules:
        name, words, *rest = sys.modules["numpy"].random.get_state()
        yield "numpy", [name, words.tobytes(), *rest]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        yield "cuda", torch.cuda.get_rng_state()
    megatron = sys.modules.get("megatron.core.tensor_parallel.random")
    tracker = getattr(megatron, "_CUDA_RNG_STATE_TRACKER", None)
    for name, state in (getattr(tracker, "states_", None) or {}).items():
        yield f"megatron.{name}", state
