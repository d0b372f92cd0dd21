"""torch and Megatron-Core load a checkpoint on several ranks, under another sharding, into memory with other content.

These functions are for gloo_ranks.run. `contents` are the expected contents of the checkpoints. Each function returns the number
of elements that a rank compared.
"""
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from content import Different, part_of, same_bits, tree


def other_memory(shape, dtype):
    count = torch.empty(shape, dtype=dtype, device="meta").numel()
    size = torch.empty(0, dtype=dtype).element_size()
    return torch.full((count * size,), 0x5A, dtype=torch.uint8).view(dtype).reshape(shape)


def compare(content, how, key, local, offset):
    if not same_bits(local, part_of(content.tensors[key], tuple(local.shape), offset)):
        raise Different(f"{content.directory.name}: {how} reads other bits of {key!r} at {list(offset)}")
    return local.numel()


def placements_of(number, dims, mesh_dims):
    """Returns placements that differ from tensor to tensor: shards of either dimension, of both, of one twice, and replicas."""
    kinds = [Replicate(), *(Shard(d) for d in range(dims))]
    return [kinds[(number // len(kinds) ** m + m + 1) % len(kinds)] for m in range(mesh_dims)]


def into_dtensors(contents, mesh_shape, rank):
    mesh = init_device_mesh("cpu", mesh_shape)
    compared = 0
    for content in contents:
        state, offsets = {key: None for key in content.objects}, {}
        for number, (key, whole) in enumerate(content.tensors.items()):
            placements = placements_of(number, whole.dim(), len(mesh_shape))
            shape, offsets[key] = compute_local_shape_and_global_offset(whole.shape, mesh, placements)
            local = other_memory(shape, whole.dtype)
            state[key] = DTensor.from_local(local, mesh, placements, run_check=False, shape=whole.shape, stride=whole.stride())
        dcp.load(state, checkpoint_id=str(content.directory))
        for key, offset in offsets.items():
            compared += compare(content, f"dcp.load into {state[key].placements}", key, state[key].to_local(), offset)
        for key, value in content.objects.items():
            if tree(state[key]) != tree(value):
                raise Different(f"{content.directory.name}: dcp.load gives another object for {key!r}")
    return compared


def cut(shape, number, rank, ranks):
    """Cuts one dimension, which differs from tensor to tensor, into uneven pieces. Returns None if no dimension is long enough."""
    long = [d for d in range(len(shape)) if shape[d] >= ranks]
    if not long or number % 7 == 6:
        return None
    axis = long[number % len(long)]
    ends = [shape[axis] * (r * r) // (ranks * ranks) for r in range(ranks + 1)]
    ends = [max(end, r) for r, end in enumerate(ends)]
    extent, offset = list(shape), [0] * len(shape)
    extent[axis], offset[axis] = ends[rank + 1] - ends[rank], ends[rank]
    return tuple(extent), tuple(offset)


def into_mcore(contents, rank):
    """Calls dist_checkpointing.load for unevenly cut ShardedTensors, all objects, and the common state."""
    import make_mcore_fixtures  # replaces CUDA calls where there is no GPU
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor
    assert make_mcore_fixtures
    ranks, compared = dist.get_world_size(), 0
    for content in contents:
        tensors, offsets = {}, {}
        for number, (key, whole) in enumerate(content.tensors.items()):
            extent, offsets[key] = cut(whole.shape, number, rank, ranks) or (tuple(whole.shape), (0,) * whole.dim())
            replica = 0 if extent != tuple(whole.shape) else rank
            tensors[key] = ShardedTensor(key, other_memory(extent, whole.dtype), whole.dtype, extent, tuple(whole.shape), offsets[key], None, replica)
        objects = {key: ShardedObject.empty_from_unique_key(key, replica_id=rank) for key in content.objects}
        loaded = dist_checkpointing.load({"tensors of the test": tensors, "objects of the test": objects}, str(content.directory))
        for key, offset in offsets.items():
            compared += compare(content, "dist_checkpointing.load", key, loaded["tensors of the test"][key], offset)
        for key, (value,) in content.objects.items():  # Megatron stores each object in a list of one
            if tree(loaded["objects of the test"][key]) != tree(value):
                raise Different(f"{content.directory.name}: dist_checkpointing.load gives another object for {key!r}")
        for key, value in (content.common or {}).items():
            if tree(loaded[key]) != tree(value):
                raise Different(f"{content.directory.name}: dist_checkpointing.load gives another {key!r} of the common state")
    return compared
