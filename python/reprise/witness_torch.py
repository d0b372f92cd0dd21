"""What a training job of PyTorch holds, told to a witness: keys and boxes come from the model and the optimizer.

    from reprise.witness_torch import tell_torch

    tell_torch(own, "save", step, model, optimizer, scheduler, loop={"train": {"step": step, "cursor": cursor}})

Nothing here looks at a state dict that is saved. Boxes are what each parameter's DTensor says of itself: where that may be
what is wrong, pass `place`, which computes them.
"""
import hashlib
import math

import torch
import torch.distributed as dist

from reprise.witness import elements
from reprise.wrappers import bare, unwrapped


def kept_buffers(model, ranks, overwritten):
    """Name and buffer of those that a state dict has, and how many ranks hold it. Those that DistributedDataParallel
    overwrites by its first rank's at each forward are that rank's alone."""
    overwritten = getattr(model, "broadcast_buffers", False) if overwritten is None else overwritten
    if overwritten and dist.get_rank(getattr(model, "process_group", None)) > 0:
        return
    for path, module in bare(model).named_modules():
        for name, buffer in module._buffers.items():
            if buffer is not None and name not in module._non_persistent_buffers_set:
                yield unwrapped(f"{path}.{name}".lstrip(".")), buffer, 1 if overwritten else ranks


def local_of(tensor):
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor.detach()


def box_of(tensor, ranks):
    """Shape of the whole, where this rank's part begins, and how many of `ranks` hold the same part.

    A DTensor is cut as it says, and its ranks outside the mesh are taken for copies; any other tensor is whole on each rank.
    """
    mesh = getattr(tensor, "device_mesh", None)
    if mesh is None:
        return list(tensor.shape), [0] * tensor.dim(), ranks
    (chunk,) = tensor.__create_chunk_list__()
    copies = math.prod(mesh.size(d) for d, placement in enumerate(tensor.placements) if placement.is_replicate())
    return list(tensor.shape), list(chunk.offsets), copies * (ranks // mesh.size())


def flattened(tree):
    """The leaves by key, as torch.distributed.checkpoint names them."""
    from torch.distributed.checkpoint._nested_dict import flatten_state_dict

    return flatten_state_dict(tree)[0]


def tell_torch(own, when, step, model, optimizer=None, scheduler=None, loop=None, place=None, ranks=None,
               prefixes=("model", "optim", "scheduler"), objects=(), overwritten=None):
    """Says what this rank holds: parameters, buffers, the optimizer's state and groups, the schedule, and `loop`.

    Args:
        own: the Witness.
        when: "save", "loaded" or "end".
        step: number of steps that are done.
        model: a module, also under fully_shard, tensor parallelism, DistributedDataParallel or torch.compile.
        optimizer: its keys are those of get_optimizer_state_dict: `optim.state.<parameter>.<kind>`.
        scheduler: anything with a state_dict.
        loop: a dict, nested as it is in the checkpoint, of what the training loop holds besides: counters, samplers.
        place: takes a parameter's name and the parameter; returns the shape of the whole, where this rank's part begins, and
            how many ranks hold that part; or None where DTensor is believed.
        ranks: how many ranks hold the parameters of this model, if not all: those of one pipeline stage.
        prefixes: keys under which the checkpoint has the model, the optimizer and the schedule.
        objects: more of what `own.object` returns.
        overwritten: whether each forward begins with the buffers of the first rank, which are then told by that rank alone. If
            None, as a DistributedDataParallel around the model does it.
    """
    if any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules()):
        raise ValueError("FullyShardedDataParallel flattens parameters, so their boxes are unknown; use fully_shard, or own.tensor")
    ranks, tensors, objects = ranks or own.world, [], list(objects)
    inside, parameters = bare(model), {}

    def tell(key, value, box):
        shape, at, holders = box
        local = local_of(value)
        name = str(local.dtype).removeprefix("torch.")
        tensors.append(own.tensor(key, shape, [(at, local)] if local.numel() else [], holders, dtype=name))

    def tell_tree(tree):
        for key, value in flattened(tree).items():
            if isinstance(value, torch.Tensor):
                tell(key, value, box_of(value, ranks))
            else:
                objects.append(own.object(key, value))

    def box_of_parameter(name, parameter):
        return (place and place(name, parameter)) or box_of(parameter, ranks)

    for name, parameter in inside.named_parameters(remove_duplicate=False):
        name = unwrapped(name)
        parameters.setdefault(parameter, name)
        tell(f"{prefixes[0]}.{name}", parameter, box_of_parameter(name, parameter))
    for name, buffer, holders in kept_buffers(model, ranks, overwritten):
        tell(f"{prefixes[0]}.{name}", buffer, box_of(buffer, holders))
    if optimizer is not None:
        for parameter, name in parameters.items():
            for kind, value in optimizer.state.get(parameter, {}).items():
                key, size = f"{prefixes[1]}.state.{name}.{kind}", getattr(value, "shape", None)
                if not isinstance(value, torch.Tensor):
                    objects.append(own.object(key, value))
                elif value.dim() and size in (parameter.shape, local_of(parameter).shape):
                    tell(key, value, box_of_parameter(name, parameter))
                else:
                    tell(key, value, box_of(value, ranks))
        if not all(p in parameters for group in optimizer.param_groups for p in group["params"]):
            raise ValueError("the optimizer has a parameter that the model does not have: pass all its models as one ModuleList")
        groups = [{**group, "params": [parameters[p] for p in group["params"]]} for group in optimizer.param_groups]
        tell_tree({prefixes[1]: {"param_groups": groups}})
    if scheduler is not None:
        tell_tree({prefixes[2]: scheduler.state_dict()})
    tell_tree(loop or {})
    own.state(when, step, tensors, objects)


def summed(number, weight=1.0):
    """A float64 summed over all ranks in the order of the ranks, so that it is the same on each."""
    number = float(number.detach() if isinstance(number, torch.Tensor) else number) * weight
    if not dist.is_initialized():
        return number
    mine = torch.tensor([number], dtype=torch.float64, device="cuda" if dist.get_backend() == "nccl" else "cpu")
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine)
    return sum(part.item() for part in parts)


def ids_of(batch):
    """A number for each sample of a batch, made of its content: for data whose samples have no number of their own."""
    found = [tensor for tensor in leaves_of(batch) if tensor.dim()]
    rows = range(len(found[0]) if found else 0)
    return [number_of([tensor[row] for tensor in found if len(tensor) == len(rows)]) for row in rows]


def leaves_of(batch):
    if isinstance(batch, torch.Tensor):
        yield batch
    elif hasattr(batch, "values") or isinstance(batch, (list, tuple)):
        for part in batch.values() if hasattr(batch, "values") else batch:
            yield from leaves_of(part)


def number_of(parts):
    content = hashlib.blake2b(digest_size=6)
    for part in parts:
        name, shape, _, raw = elements(part)
        content.update(f"{name}{shape}".encode() + raw.tobytes())
    return int.from_bytes(content.digest(), "little")
