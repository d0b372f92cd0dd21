#!/usr/bin/env python3
"""Writes checkpoints that belong together: make_changes.py tests/data

Makes changes_<torch version>/ with `a` and `b`, whose tensors differ in ways that have names, and runs of several generations. Each
tensor of b is made from one of a by the operation of torch that its key names. `run` is a training as torchtitan names its checkpoints, and
`megatron` one with Megatron-Core's model and optimizer state. Needs torch and megatron-core, and no GPU or network.
"""
import json
import os
import pathlib
import platform
import shutil
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


def numbers(*shape, dtype=torch.float32):
    return torch.randn(shape).to(dtype)


def rows(tensor, *parts):
    return torch.cat([tensor[begin:end] for begin, end in parts])


def pair():
    """Returns the tensors of a and of b."""
    torch.manual_seed(7)
    a, b = {}, {}

    def add(key, before, after):
        a[key], b[key] = before, after

    w = numbers(32, 8)
    order = [0, 2, 1, 3, 4, 5, 6, 7, 8, 15, 10, 11, 12, 13, 14, 9]
    add("rows.blocks", w, torch.cat([w[2 * i:2 * i + 2] for i in order]))
    w = numbers(12, 8)
    add("rows.unequal", w, rows(w, (9, 12), (5, 9), (0, 5)))
    w = numbers(10, 8)
    add("rows.reversed", w, w.flip(0))
    w = numbers(16, 8, dtype=torch.bfloat16)
    add("rows.halves", w, torch.cat(w.chunk(2)[::-1]))
    w = numbers(24, 8)
    add("rows.interleaved", w, w.view(3, 4, 2, 8).transpose(0, 1).reshape(24, 8).contiguous())
    w = numbers(16, 8)
    add("rows.some", w, torch.cat([w[8:12], w[4:8], w[0:4], numbers(4, 8)]))
    w = numbers(16, 8)
    w[3], w[12] = 0, 0  # an unused row in two places, as padding has
    add("rows.with_zeros", w, torch.cat([w[4:8], w[0:4], w[12:16], w[8:12]]))
    w = numbers(13, 8)
    add("rows.padded", w, torch.cat([w, numbers(3, 8)]))
    w = numbers(8, 12)
    add("columns.blocks", w, torch.cat([w[:, 8:], w[:, :4], w[:, 4:8]], dim=1))
    w = numbers(6, 4, 8)
    add("stacked.experts", w, w[[0, 4, 1, 5, 2, 3]].contiguous())
    w = numbers(3, 8, 4)
    add("stacked.rows", w, w[:, [0, 1, 4, 5, 2, 3, 6, 7]].contiguous())
    w = numbers(24)
    add("bias.blocks", w, rows(w, (0, 6), (12, 18), (6, 12), (18, 24)))
    for name, shape in {"oblong": (6, 10), "square": (8, 8), "stacked": (3, 4, 6)}.items():
        w = numbers(*shape)
        add(f"transposed.{name}", w, w.transpose(-1, -2).contiguous())
    for i, other in enumerate([0, 4, 1, 5, 2, 3]):
        a[f"experts.{i}.w1"] = numbers(4, 6)
        b[f"experts.{i}.w1"] = other
    for i in range(6):
        b[f"experts.{i}.w1"] = a[f"experts.{b[f'experts.{i}.w1']}.w1"]
    a["attention.q"], a["attention.k"] = numbers(8, 8), numbers(8, 8)
    b["attention.q"], b["attention.k"] = a["attention.k"], a["attention.q"]
    w = numbers(9, 8)
    for dtype in (torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.float8_e5m2):
        name = str(dtype).removeprefix("torch.")
        add(f"rounded.{name}", w, w.to(dtype).float())
        if dtype.itemsize == 2:
            add(f"converted.{name}", w, w.to(dtype))
            add(f"converted_back.{name}", w.to(dtype), w)
            add(f"widened.{name}", w.to(dtype), w.to(dtype).float())
    add("cut.bfloat16", w, (w.view(torch.int32) & -65536).view(torch.float32))
    w = numbers(16, 8)
    add("converted.rows", w, torch.cat(w.chunk(2)[::-1]).bfloat16())
    w = numbers(9, 8)
    add("scaled.twice", w, w * 2)
    add("scaled.tenth", w, w * 0.1)
    add("scaled.third", w, w / 3)
    add("scaled.bfloat16", w.bfloat16(), w.bfloat16() * 0.3)
    add("negated", w, -w)
    # No hint may be given for these.
    add("none.trained", w, w + 1e-3 * numbers(9, 8))
    add("none.noise", w, numbers(9, 8))
    add("none.zeroed", w, torch.zeros(9, 8))
    add("none.from_zeros", torch.zeros(9, 8), numbers(9, 8))
    add("none.zeros_to_ones", torch.zeros(9, 8), torch.ones(9, 8))
    add("none.ones_to_twos", torch.ones(8, 8), torch.full((8, 8), 2.0))
    add("none.tiny_to_zero", torch.full((9, 8), 1e-12) * torch.arange(1, 73).view(9, 8), torch.zeros(9, 8))
    add("none.row_zeroed", torch.cat([torch.zeros(1, 8), numbers(7, 8)]), None)
    b["none.row_zeroed"] = torch.cat([a["none.row_zeroed"][:5], torch.zeros(1, 8), a["none.row_zeroed"][6:]])
    add("none.step", torch.tensor(3.0), torch.tensor(6.0))
    add("none.bfloat16_bias", numbers(64, dtype=torch.bfloat16), numbers(64, dtype=torch.bfloat16))
    a["none.zeros_only_in_a"], b["none.zeros_only_in_b"] = torch.zeros(9, 8), torch.zeros(9, 8)
    # Only on one side.
    a["old.name"] = b["new.name"] = numbers(5, 8)
    a["old.kernel"] = numbers(5, 6)
    b["new.kernel"] = a["old.kernel"].t().contiguous()
    a["embedding"] = b["embedding"] = numbers(11, 8)
    a["head"] = a["embedding"]
    return a, b


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(7, 8)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(2))
        self.frozen = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.frozen.requires_grad_(False)

    def forward(self, x):
        x = self.embedding(x)
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.norm(self.frozen(x)).square().mean()


def run(root):
    """A training that saves each second step as torchtitan names its checkpoints: model, optimizer and step."""
    torch.manual_seed(5)
    net = Net()
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-2)
    for step in range(1, 7):
        optimizer.zero_grad()
        net(torch.randint(7, (4, 5))).backward()
        optimizer.step()
        if step % 2 == 0:
            model, state = get_state_dict(net, optimizer)
            dcp.save({"model": model, "optimizer": state, "train_state": {"step": torch.tensor(step)}}, checkpoint_id=root / f"step-{step}")


def warm_up(root):
    """A training whose learning rate is 0 for its first three steps, saved at each step from the second."""
    torch.manual_seed(6)
    net = Net()
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, (step - 2) / 4))
    for step in range(1, 5):
        optimizer.zero_grad()
        net(torch.randint(7, (4, 5))).backward()
        optimizer.step()
        schedule.step()
        if step > 1:
            model, state = get_state_dict(net, optimizer)
            dcp.save({"model": model, "optimizer": state, "train_state": {"step": torch.tensor(step)}}, checkpoint_id=root / f"step-{step}")


def run_of_megatron(root):
    """A training of a small GPT in bfloat16, with copies in float32, saved each 10 iterations as Megatron does."""
    import cases_mcore
    import make_mcore_fixtures as fixtures
    import torch.distributed as dist
    from megatron.core import dist_checkpointing, parallel_state
    from megatron.core.dist_checkpointing.optimizer import get_param_id_to_sharded_param_map, make_sharded_optimizer_tensor, optim_state_to_sharding_state
    layout = {"tp": 1, "pp": 1}
    dist.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{root}.store")
    parallel_state.initialize_model_parallel(1, 1)
    torch.manual_seed(9)
    model = fixtures.gpt(layout)
    parameters = list(model.parameters())
    masters = [torch.nn.Parameter(p.detach().float()) for p in parameters]
    optimizer = torch.optim.AdamW(masters, lr=1e-3)
    for iteration in (10, 20, 30):
        for _ in range(10):
            for p in masters:
                p.grad = torch.randn_like(p)
            optimizer.step()
        with torch.no_grad():
            for p, master in zip(parameters, masters):
                p.copy_(master)
        model_state = model.sharded_state_dict()
        state = optimizer.state_dict()
        state["state"] = {i: {key: value for key, value in one.items() if key != "step"} for i, one in state["state"].items()}
        sharded = get_param_id_to_sharded_param_map(model_state, parameters)
        optim_state_to_sharding_state(state, sharded, exclude_keys="step")
        state["param_groups"][0]["step"] = iteration
        state = {"optimizer": state, "fp32_from_fp16_params": [
            [make_sharded_optimizer_tensor(sharded[i], p, "optimizer.state.fp32_param") for i, p in enumerate(masters)]]}
        folder = root / f"iter_{iteration:07d}"
        folder.mkdir(parents=True)
        everything = {"args": fixtures.arguments(layout), "checkpoint_version": 3.0, "iteration": iteration, "model": model_state, "optimizer": state}
        fixtures.apply_factories(everything)
        dist_checkpointing.save(everything, str(folder), **cases_mcore.OWN_WRITER)
    (root / "latest_checkpointed_iteration.txt").write_text("30")
    pathlib.Path(f"{root}.store").unlink(missing_ok=True)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    out = pathlib.Path(sys.argv[1]).resolve() / f"changes_{torch.__version__.split('+')[0]}"
    shutil.rmtree(out, ignore_errors=True)
    a, b = pair()
    dcp.save(a, checkpoint_id=out / "a")
    dcp.save(b, checkpoint_id=out / "b")
    run(out / "run")
    warm_up(out / "warm_up")
    run_of_megatron(out / "megatron")
    import megatron.core
    made = {"torch": torch.__version__, "python": platform.python_version(), "megatron_core": megatron.core.__version__,
            "tensors": {key: [list(value.shape), str(value.dtype)] for key, value in sorted(a.items())}}
    (out / "expected.json").write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
