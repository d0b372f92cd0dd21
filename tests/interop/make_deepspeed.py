#!/usr/bin/env python3
"""Writes a small checkpoint in DeepSpeed's universal form: make_deepspeed.py tests/data

Trains two steps with ZeRO stage 1 on the CPU, converts with DeepSpeed's ds_to_universal, and makes deepspeed_<version>/universal
and deepspeed_<version>/expected.json with what torch.load reads. Needs torch, deepspeed and a C++ compiler, and no GPU or network.
"""
import importlib.metadata
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

os.environ.update(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", DS_ACCELERATOR="cpu", MASTER_ADDR="127.0.0.1", MASTER_PORT="29755", RANK="0",
                  WORLD_SIZE="1", LOCAL_RANK="0")
sys.dont_write_bytecode = True

import torch
import torch.distributed as dist

import check_with_torch


def train(path):
    """Saves with an engine of one rank, whose batches are drawn from a fixed seed."""
    import deepspeed
    dist.init_process_group("gloo", rank=0, world_size=1)
    torch.manual_seed(4)
    model = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 2))
    config = {"train_micro_batch_size_per_gpu": 1, "optimizer": {"type": "Adam", "params": {"lr": 1e-3, "torch_adam": True}},
              "zero_optimization": {"stage": 1}, "bf16": {"enabled": True}}
    engine = deepspeed.initialize(model=model, model_parameters=model.parameters(), dist_init_required=False, config=config)[0]
    for _ in range(2):
        engine.backward(engine(torch.randn(3, 6, dtype=torch.bfloat16)).float().sum())
        engine.step()
    engine.save_checkpoint(str(path), tag="global_step2")


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    version = importlib.metadata.version("deepspeed")
    out = pathlib.Path(sys.argv[1]).resolve() / f"deepspeed_{version}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        train(pathlib.Path(scratch))
        import deepspeed.checkpoint.ds_to_universal as converter
        subprocess.run([sys.executable, converter.__file__, "--input_folder", f"{scratch}/global_step2", "--output_folder", str(out / "universal"),
                        "--inject_missing_state"], check=True)
    (out / "latest_universal").unlink(missing_ok=True)
    expected = {"torch": torch.__version__.split("+")[0], "python": platform.python_version(), "tensors": {}}
    for file in sorted((out / "universal/zero").glob("*/*.pt")):
        value = torch.load(file, weights_only=False)
        tensor = value["param"] if isinstance(value, dict) else value
        expected["tensors"][f"{file.parent.name}.{file.stem}"] = check_with_torch.content_of(tensor)
    model = torch.load(out / "universal/mp_rank_00_model_states.pt", weights_only=False)
    expected["tensors"] |= {f"mp_rank_00.module.{key}": check_with_torch.content_of(value) for key, value in model["module"].items()}
    (out / "expected.json").write_text(check_with_torch.as_json(expected) + "\n")
    print(f"{len(expected['tensors'])} tensors")


if __name__ == "__main__":
    main()
