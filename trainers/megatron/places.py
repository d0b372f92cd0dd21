"""Which part of which tensor a rank of a Megatron job holds: from its layout, its rank and the modules' parameters alone."""
import math
import re

import torch

from reprise.witness import split

EXPERTS = 4
EXPERT = re.compile(r"mlp\.experts\.local_experts\.(\d+)\.(.*)")
LAYER = re.compile(r"decoder\.layers\.(\d+)\.(.*)")
# Under `decoder.layers.N.` a norm that a projection follows has that projection's name in a checkpoint.
RENAMED = {"input_layernorm": "self_attention.linear_qkv.layer_norm", "pre_mlp_layernorm": "mlp.linear_fc1.layer_norm"}
# The dimension that tensor parallelism cuts, by the end of the name; all else is whole on each rank.
CUT = {"word_embeddings.weight": 0, "output_layer.weight": 0, "linear_qkv.weight": 0, "linear_proj.weight": 1, "linear_fc1.weight": 0, "linear_fc2.weight": 1}


class Place:
    """Ranks in the order tp, dp, pp: tensor parallelism innermost."""

    def __init__(self, layout, rank, world):
        self.tp, self.pp, self.dp, self.ep = (layout.get(axis, 1) for axis in ("tp", "pp", "dp", "ep"))
        if self.tp * self.pp * self.dp != world or self.dp % self.ep:
            raise ValueError(f"{layout} is not {world} ranks")
        self.rank, self.in_tp, self.in_dp, self.in_pp = rank, rank % self.tp, rank // self.tp % self.dp, rank // self.tp // self.dp
        self.in_ep = self.in_dp % self.ep

    def key_of(self, name, layers):
        """The key of a module's part in a checkpoint, its place in the axes of layers and experts, and their extents."""
        match = LAYER.fullmatch(name)
        if not match:
            return name, [], []
        layer, rest = self.in_pp * (layers // self.pp) + int(match[1]), match[2]
        expert = EXPERT.fullmatch(rest)
        if expert:
            each = EXPERTS // self.ep
            return f"decoder.layers.mlp.experts.experts.{expert[2]}", [layer, self.in_ep * each + int(expert[1])], [layers, EXPERTS]
        module, _, kind = rest.rpartition(".")
        return f"decoder.layers.{RENAMED[module]}_{kind}" if module in RENAMED else f"decoder.layers.{rest}", [layer], [layers]


class Tensor:
    """A parameter of this rank: its key and shape in a checkpoint, and where the parts of what it holds are.

    Layers, and the experts of a layer, are places along axes of their own before the parameter's: `lead`.
    """

    def __init__(self, name, parameter, place, layers, vocab):
        self.parameter, self.place = parameter, place
        self.key, self.lead, extents = place.key_of(name, layers)
        self.halves = 2 if name.endswith("linear_fc1.weight") else 1
        self.cut = next((dim for end, dim in CUT.items() if name.endswith(end)), None)
        local = list(parameter.shape)
        if self.cut is not None:
            local[self.cut] *= place.tp
        self.shape = extents + local
        self.holders = place.dp // (place.ep if len(self.lead) == 2 else 1) * (place.tp if self.cut is None else 1)

    def size_of(self, part):
        return [1] * len(self.lead) + list(part.shape)

    def pieces(self, values):
        """(at, view of values): one piece, or two where a gated layer's weight is two halves that are cut one by one."""
        values, found = values.detach(), []
        if self.cut is None:
            return [(self.lead + [0] * values.dim(), values)]
        for half, part in enumerate(values.chunk(self.halves, self.cut)):
            at = [0] * values.dim()
            whole = self.shape[len(self.lead) + self.cut] // self.halves
            at[self.cut] = half * whole + split(whole, self.place.tp, self.place.in_tp)[0]
            found.append((self.lead + at, part))
        return found

    def told(self, values):
        return [(at, part.reshape(self.size_of(part))) for at, part in self.pieces(values)]

    def all(self, optimizer):
        """(key, shape, pieces, holders) of the parameter and of what the optimizer keeps for it."""
        yield self.key, self.shape, self.told(self.parameter), self.holders
        for inner in getattr(optimizer, "chained_optimizers", [optimizer]):
            for kind, values in inner.optimizer.state.get(self.parameter, {}).items():
                if kind != "step":
                    yield f"optimizer.state.{kind}.{self.key}", self.shape, self.told(values), self.holders

    def squares(self):
        """The squares of the gradient that this rank holds, summed."""
        gradient = self.parameter.main_grad if self.parameter.grad is None else self.parameter.grad
        return gradient.double().square().sum().item()


def tensors_of(model, place, layers, vocab):
    return [Tensor(name, parameter, place, layers, vocab) for name, parameter in model.named_parameters()]


def extra_states(model, place, layers):
    """(key, shard) of the objects that the layers' linear modules keep beside their weights."""
    for name, module in model.named_modules():
        if type(module).get_extra_state is not torch.nn.Module.get_extra_state and name.startswith("decoder."):
            key, lead, extents = place.key_of(f"{name}._extra_state", layers)
            yield key, ".".join(map(str, lead)) + "_" + ".".join(map(str, extents))


def bucket(model, place):
    """The stretches of this rank in the bucket that the distributed optimizer cuts over the replicas: stretches, length, blank.

    The bucket has the parameters in reverse order, each from a multiple of 64 on; it is filled up to a multiple of the
    replicas and of 128, and each replica has an equal stretch. The elements between parameters are nobody's: `blank`.
    A stretch is a parameter, its begin in the bucket, and the range of the bucket that is this rank's.
    """
    end, spans, blank = 0, [], []
    for parameter in reversed(list(model.parameters())):
        begin = -(-end // 64) * 64
        if begin > end:
            blank.append(([end], [begin - end]))
        end = begin + parameter.numel()
        spans.append((parameter, begin, end))
    unit = math.lcm(place.dp, 128)
    each = -(-end // unit) * unit // place.dp
    mine = [(p, begin, max(begin, each * place.in_dp), min(stop, each * (place.in_dp + 1))) for p, begin, stop in spans]
    return [stretch for stretch in mine if stretch[2] < stretch[3]], end, blank


def bucket_tensors(model, optimizer, place):
    """What the distributed optimizer keeps: (key, shape, pieces, blank)."""
    found, (stretches, length, blank) = {}, bucket(model, place)
    for parameter, _, first, last in stretches:
        group, order = optimizer.model_param_group_index_map[parameter]
        main = optimizer.optimizer.param_groups[group]["params"][order]
        for kind, values in {"param": main, **optimizer.optimizer.state[main]}.items():
            if kind != "step":
                if values.numel() != last - first:
                    raise ValueError(f"{kind} has {values.numel()} elements, not those from {first} to {last}")
                found.setdefault(kind, []).append(([first], values.detach().reshape(-1)))
    prefix = f"optimizer.distributed.dp_group_idx_{place.in_tp + place.tp * place.in_pp}.gbuf_idx_0.dtype_(torch.float32, torch.float32).bucket_idx_0."
    return [(prefix + kind, [length], pieces, blank) for kind, pieces in found.items()]


def bucket_squares(model, place, tensors):
    """The squares of the gradients in this rank's stretches, summed; the rest of its gradients is summed nowhere."""
    copies = {id(t.parameter): place.tp if t.cut is None else 1 for t in tensors}
    return sum(p.main_grad.reshape(-1)[first - begin:last - begin].double().square().sum().item() / copies[id(p)] for p, begin, first, last in bucket(model, place)[0])


def bucket_objects(place):
    """(key, shard) of the objects beside the bucket."""
    for name in ("optimizer", "per_bucket_numel", "per_bucket_numel_unpadded"):
        yield f"optimizer.distributed.dp_group_idx_{place.in_tp + place.tp * place.in_pp}.{name}", "0_1"
