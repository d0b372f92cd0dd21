#!/usr/bin/env python3
"""Writes small checkpoints in which each rank has its own files: make_rank_files.py tests/data

Makes torch_checkpointing_<version>/NAME and rank_files_<torch version>/NAME for each function below, and an expected.json in each
of the two folders with the whole tensors. Needs torch and torch_checkpointing, and no GPU or network.
"""
import importlib.metadata
import os
import pathlib
import pickle
import platform
import shutil
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")

import torch
import torch.distributed as dist

import check_with_torch
import gloo_ranks
from make_fixtures import arange

MAKERS = {"rank_files": {}, "torch_checkpointing": {}}


def checkpoint(folder):
    """Registers a function make(path) -> {key: whole tensor}."""
    def register(make):
        MAKERS[folder][make.__name__] = make
        return make
    return register


def whole():
    return {"w": arange(5, 6), "b": arange(7), "scale": torch.tensor(0.5), "rows": arange(3, 2)}


def parts(ranks):
    """Returns the tensors of whole(), cut over a mesh of two dimensions: also unevenly, with empty and strided shards."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("dp", "tp"))
    placements = {"w": [Shard(0), Shard(1)], "b": [Replicate(), Shard(0)], "scale": [Replicate(), Replicate()], "rows": [Shard(0), Shard(0)]}
    return {key: distribute_tensor(value, mesh, placements[key]) for key, value in whole().items()}


def fsdp2_tp(ranks):
    """A layer that tensor parallelism has cut, and FSDP2 then: its shards are strided."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
    torch.manual_seed(2)
    layer = torch.nn.Sequential(torch.nn.Linear(6, 8))
    values = {f"layer.{key}": value.detach().clone() for key, value in layer.state_dict().items()}
    mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(layer, mesh["tp"], {"0": ColwiseParallel()})
    fully_shard(layer, mesh=mesh["dp"])
    return {f"layer.{key}": value for key, value in layer.state_dict().items()}, values


def save_files(path, ranks, plain, rank):
    path.mkdir(exist_ok=True)
    model = parts(ranks)
    model |= fsdp2_tp(ranks)[0]
    if plain:
        model["flat_param"] = arange(4) + rank
    torch.save(model, path / f"model_world_size_{ranks}_rank_{rank}.pt")
    torch.save({"state": {0: {"exp_avg": parts(ranks)["w"], "step": torch.tensor(3.0)}}, "param_groups": [{"lr": 0.1, "params": [0]}]},
               path / f"optim_world_size_{ranks}_rank_{rank}.pt")
    torch.save({"lr_scheduler": {"last_epoch": 3}, "rng": torch.full((4,), rank, dtype=torch.uint8)},
               path / f"extra_state_world_size_{ranks}_rank_{rank}.pt")


def expected_of_files():
    torch.manual_seed(2)
    layer = torch.nn.Sequential(torch.nn.Linear(6, 8)).state_dict()
    return ({f"model.{key}": value for key, value in whole().items()} | {f"model.layer.{key}": value for key, value in layer.items()}
            | {"optim.state.0.exp_avg": whole()["w"]})


@checkpoint("rank_files")
def fsdp2(path):
    """As verl writes FSDP2: model, optimizer and extra state of each rank."""
    gloo_ranks.run(4, save_files, path, 4, False)
    return expected_of_files()


@checkpoint("rank_files")
def flat(path):
    """The same with a flat parameter, of which each rank has a part that says nothing of the whole."""
    gloo_ranks.run(2, save_files, path, 2, True)
    return expected_of_files()


def save_with_package(path, ranks, rank):
    import torch_checkpointing
    from torch_checkpointing.default_resharder import DefaultResharder
    from torch_checkpointing.metadata_manager import DefaultMetadataManager
    from torch_checkpointing.storage.filesystem import LocalFileSystemStorageConfig

    def gather(self, data, group):
        """The package gathers metadata by tensors on GPUs."""
        everywhere = [None] * ranks
        dist.all_gather_object(everywhere, data, group=group)
        return dict(enumerate(everywhere))

    DefaultMetadataManager._all_gather_pickled_data = gather
    config = torch_checkpointing.CheckpointManager.Config(
        items={key: torch_checkpointing.ItemSpec(resharder=DefaultResharder()) for key in ("model", "optimizer")},
        save=torch_checkpointing.SyncCheckpointSaverConfig(), storage_config=LocalFileSystemStorageConfig(use_direct_io=False))
    model = parts(ranks) | fsdp2_tp(ranks)[0] | {"plain": arange(2, 2), "name": "tiny"}
    config.build().save(path.name, {"model": model, "optimizer": {"state": {0: {"exp_avg": parts(ranks)["w"]}}, "groups": [{"lr": 0.1}]}, "step": 7})


def expected_of_package():
    torch.manual_seed(2)
    layer = torch.nn.Sequential(torch.nn.Linear(6, 8)).state_dict()
    return ({f"model.{key}": value for key, value in whole().items()} | {f"model.layer.{key}": value for key, value in layer.items()}
            | {"optimizer.state.0.exp_avg": whole()["w"], "model.plain": arange(2, 2)})


@checkpoint("torch_checkpointing")
def mesh(path):
    gloo_ranks.run(4, save_with_package, path, 4)
    return expected_of_package()


@checkpoint("torch_checkpointing")
def version_1(path):
    """The same, with the metadata of version 1.0, as the package still reads it."""
    shutil.copytree("mesh", path)
    metadata = pickle.loads((path / "metadata.pkl").read_bytes())
    flat, layouts = {}, {rank: {} for rank in range(metadata["world_size"])}
    for item, about in metadata["metadata"].items():
        for name, groups in about["nested_path_to_metadata"].items():
            flat[name.replace("[", f'["{item}"' + ("," if len(name) > 2 else ""), 1)] = groups
        for rank, layout in about["rank_to_layout_info"].items():
            layouts[rank][item] = layout
    old = {"metadata": flat, "rank_to_layout_info_mappings": layouts, "world_size": metadata["world_size"], "version": "1.0"}
    from torch_checkpointing import DistributedMetadata
    assert DistributedMetadata.from_dict(old) == DistributedMetadata.from_dict(metadata)
    (path / "metadata.pkl").write_bytes(pickle.dumps(old))
    return expected_of_package()


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    data = pathlib.Path(sys.argv[1]).resolve()
    torch_version = torch.__version__.split("+")[0]
    versions = {"rank_files": torch_version, "torch_checkpointing": importlib.metadata.version("torch_checkpointing")}
    for folder, makers in MAKERS.items():
        out = data / f"{folder}_{versions[folder]}"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        os.chdir(out)
        expected = {"torch": torch_version, "python": platform.python_version(), "checkpoints": {}}
        for name, make in makers.items():
            tensors = make(out / name)
            expected["checkpoints"][name] = {key: check_with_torch.content_of(value) for key, value in sorted(tensors.items())}
            print(f"{folder}/{name}: {len(tensors)} tensors")
        (out / "expected.json").write_text(check_with_torch.as_json(expected) + "\n")


if __name__ == "__main__":
    main()
