"""The functions that save and load, one kind after the other, and how each is told."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Iterator

from .imports import AfterImport
from .moves import Moves


def wrap(owner: Any, name: str, around: Callable) -> None:
    """Replaces owner.name by what is around it, where owner has it."""
    real = getattr(owner, name, None)
    if callable(real):
        setattr(owner, name, around(real))


def wrap_all(owners: list, name: str, around: Callable) -> None:
    """The same for a function that several modules have: all get the same one."""
    real = getattr(owners[0], name, None)
    if callable(real):
        made = around(real)
        for owner in owners:
            if getattr(owner, name, None) is real:
                setattr(owner, name, made)


def watch_formats(after_import: AfterImport, moves: Moves, guarded: Callable) -> None:
    """Wraps each kind when it was imported; torch's own is wrapped by watch_torch."""
    for module, patch in (
        ("torch.distributed.checkpoint", watch_dcp),
        ("safetensors.torch", watch_safetensors),
        ("megatron.core.dist_checkpointing", watch_megatron),
        ("reprise.torch", watch_reprise),
        ("reprise.megatron", watch_reprise_megatron),
    ):
        after_import.call(module, guarded(lambda loaded, patch=patch: patch(loaded, moves)))


def watch_torch(torch, moves: Moves) -> None:
    owners = [torch, torch.serialization]
    wrap_all(owners, "save", moves.saving("torch.save", lambda obj, f, *a, **k: f, lambda obj, *a, **k: obj))
    wrap_all(owners, "load", moves.loading("torch.load", lambda f, *a, **k: f, lambda result, *a, **k: result))


def watch_dcp(dcp, moves: Moves) -> None:
    saver = sys.modules["torch.distributed.checkpoint.state_dict_saver"]
    loader = sys.modules["torch.distributed.checkpoint.state_dict_loader"]
    for name, later in (("save", False), ("async_save", True), ("save_state_dict", False)):
        around = moves.saving(f"dcp.{name}", dcp_place, first_of("state_dict"), late=True, asynchronous=later, keys=dcp_keys)
        wrap_all([saver, dcp], name, around)
    for name in ("load", "load_state_dict"):
        around = moves.loading(
            f"dcp.{name}", dcp_place, lambda result, *a, **k: first_of("state_dict")(*a, **k), late=True
        )
        wrap_all([loader, dcp], name, around)

    # Within: objects with a state_dict have given theirs, which only torch may ask for.
    def handed_over(real):
        def call(state_dict, *args, **kwargs):
            result = real(state_dict, *args, **kwargs)
            tell(moves, result)
            return result

        return call

    def filled(real):
        def call(*args, **kwargs):
            result = real(*args, **kwargs)
            tell(moves, first_of("state_dict")(*args, **kwargs))
            return result

        return call

    wrap(saver, "_stateful_to_state_dict", handed_over)
    wrap(loader, "_load_state_dict", filled)


def tell(moves: Moves, state: Any) -> None:
    move = moves.current()
    if move is not None and move.late:
        moves.guarded(move.tell)(state)


def watch_safetensors(safetensors, moves: Moves) -> None:
    place = second_of("filename")
    wrap(safetensors, "save_file", moves.saving("safetensors.save_file", place, first_of("tensors")))
    wrap(safetensors, "load_file", moves.loading("safetensors.load_file", first_of("filename"), lambda r, *a, **k: r))


def watch_megatron(dist_checkpointing, moves: Moves) -> None:
    owners = [sys.modules["megatron.core.dist_checkpointing.serialization"], dist_checkpointing]
    state, place = first_of("sharded_state_dict"), second_of("checkpoint_dir")
    around = moves.saving("dist_checkpointing.save", place, state, asynchronous=is_asynchronous, keys=megatron_keys)
    wrap_all(owners, "save", around)
    wrap_all(owners, "load", moves.loading("dist_checkpointing.load", place, lambda result, *a, **k: result))


def watch_reprise(reprise, moves: Moves) -> None:
    owners = [reprise, sys.modules["reprise.torch.saving"], sys.modules["reprise.torch.loading"]]
    state, place = first_of("state_dict"), second_of("path")
    wrap(owners[1].Saving, "finish", moves.finishing)
    wrap_all([owners[1], reprise], "save", moves.saving("reprise.torch.save", place, state))
    wrap_all([owners[1], reprise], "begin_save", moves.saving("reprise.torch.begin_save", place, state, asynchronous=True))
    wrap_all([owners[2], reprise], "load", moves.loading("reprise.torch.load", place, lambda r, *a, **k: state(*a, **k)))


def watch_reprise_megatron(megatron, moves: Moves) -> None:
    state, place = first_of("sharded_state_dict"), second_of("checkpoint_dir")
    wrap(megatron, "save", moves.saving("reprise.megatron.save", place, state, asynchronous=is_asynchronous, keys=megatron_keys))
    wrap(megatron, "begin_save", moves.saving("reprise.megatron.begin_save", place, state, asynchronous=True, keys=megatron_keys))
    wrap(megatron, "load", moves.loading("reprise.megatron.load", place, lambda result, *a, **k: result))


def megatron_keys(state: Any, *args, **kwargs) -> set[str]:
    """The keys of the sharded tensors and objects in what is handed to Megatron-Core. Plain values are stored
    elsewhere, and what a factory will make is not known yet."""
    mapping = sys.modules["megatron.core.dist_checkpointing.mapping"]
    return {part.key for part in sharded(state, (mapping.ShardedTensor, mapping.ShardedObject))}


def sharded(value: Any, kinds: tuple) -> Iterator[Any]:
    """The parts of these kinds within dicts and lists."""
    if isinstance(value, kinds):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from sharded(part, kinds)


def dcp_keys(state: Any, *args, planner: Any = None, **kwargs) -> set[str]:
    """The keys that torch's own planner makes; none if the call has another planner."""
    dcp = sys.modules["torch.distributed.checkpoint"]
    planner = next((arg for arg in args if isinstance(arg, dcp.SavePlanner)), planner)
    if planner is not None and (type(planner) is not dcp.DefaultSavePlanner or not planner.flatten_state_dict):
        return set()
    from torch.distributed.checkpoint._nested_dict import flatten_state_dict

    return set(flatten_state_dict(state)[0])


def is_asynchronous(*args, **kwargs) -> bool:
    """Whether a call of Megatron-Core's save returns before the save is complete."""
    return bool(kwargs.get("async_sharded_save", args[5] if len(args) > 5 else False))


def first_of(name: str) -> Callable:
    """A function that returns the argument of this name, which is the first."""
    return lambda *args, **kwargs: args[0] if args else kwargs.get(name)


def second_of(name: str) -> Callable:
    return lambda *args, **kwargs: args[1] if len(args) > 1 else kwargs.get(name)


def dcp_place(*args, **kwargs) -> Any:
    """Where torch's distributed checkpoint is: its id, or the path of its writer or reader."""
    for given in (kwargs.get("checkpoint_id"), kwargs.get("storage_writer"), kwargs.get("storage_reader"), *args[1:]):
        path = given if isinstance(given, (str, os.PathLike)) else getattr(given, "path", None)
        if isinstance(path, (str, os.PathLike)):
            return path
    return None
