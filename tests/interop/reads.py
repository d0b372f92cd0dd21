"""torch writes; Reprise reads and reshards twice; torch reads again."""
import os

import torch

import cases_torch
import check_with_torch
import gloo_ranks
import make_fixtures
from content import Content, Different, first_difference, resharded, same_bits, tree


# In earlier versions, full_tensor() of strided shards of uneven rows gives other rows than torch itself saves and
# loads.
WHOLE_OF_STRIDED = tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 10)


def save(function, ranks, folder, name="saved"):
    """Runs a save on its ranks. Returns the whole tensors that the ranks passed to torch."""
    truth = {}
    for mine in reversed(gloo_ranks.run(ranks, function, name)):  # rank 0's value counts if several ranks have a key
        truth.update(mine or {})
    return truth


def must_know_all(truth, content):
    """Requires that the truth has every tensor. Otherwise torch's reading would be compared with nothing."""
    unknown = content.tensors.keys() - truth.keys()
    if unknown or not truth:
        raise Different(f"the case does not say what is in {sorted(unknown)[:4]}")


def counted(content, values):
    """Returns the amount compared, and a description of it."""
    count = len(content.objects) + (content.common is not None)
    opaque = f" ({count - values} as bytes)" if values < count else ""
    return content.elements(), f"{len(content.tensors)} tensors, {content.elements():,} elements, {count} objects{opaque}"


def read_and_round(function, ranks, inner="."):
    """Requires that Reprise and torch read the same after torch's save and after each of two reshards."""
    def check(reprise, folder):
        truth = save(function, ranks, folder)
        if not (folder / "saved" / inner / ".metadata").exists():
            return ranks_keep_their_own(reprise, folder, folder / "saved" / inner, ranks)
        original = Content(folder / "saved" / inner)
        if WHOLE_OF_STRIDED or function.__name__ != "fsdp2_tp_strided":
            must_know_all(truth, original)
            original.must_hold(truth)
        values = reprise.agrees_with(original)
        resharded(reprise, original.directory, folder / "by_rows", "--ranks", 3, "--writers", 2)
        resharded(reprise, folder / "by_rows", folder / "again", "--ranks", 5, "--writers", 1)
        for name in ("by_rows", "again"):
            copy = Content(folder / name)
            copy.must_equal(original, name)
            if copy.object_digests != original.object_digests:
                raise Different(f"{name}: objects are not copied byte for byte")
        return counted(original, values)
    return check


def ranks_keep_their_own(reprise, folder, saved, ranks):
    """Each rank has metadata of its own. A reshard to as many ranks preserves it; a reshard to other ranks needs an option that tells whose values to use."""
    resharded(reprise, saved, folder / "kept", "--ranks", ranks)
    before, after = (check_with_torch.read_checkpoint(d) for d in (saved, folder / "kept"))
    if [(rank, tree(mine)) for rank, mine in before[1]] != [(rank, tree(mine)) for rank, mine in after[1]]:
        raise Different("a rank's own objects are not what torch reads for it afterwards")
    status, _, error = reprise.call("reshard", "--ranks", ranks + 1, saved, folder / "refused")
    if status != 2 or "--per-rank" not in error:
        raise Different(f"a reshard to other ranks: exit {status}: {error.strip()[-400:]}")
    reprise.must("reshard", "--quiet", "--ranks", ranks + 1, "--per-rank", "first", saved, folder / "first")
    original, first = Content(saved), Content(folder / "first")
    first.must_equal(original, "first")
    return counted(first, reprise.agrees_with(first))


def flipped_bit_is_seen(reprise, folder):
    """Tests the comparison itself: every part of it must notice one flipped bit."""
    save(*make_fixtures.FIXTURES["same_content_a"], folder)
    original = Content(folder / "saved")
    resharded(reprise, folder / "saved", folder / "copy", "--ranks", 2)
    row = next(t for t in reprise.inspect(folder / "copy")["tensors"] if t["key"] == "embedding")
    chunk = row["chunks"][0]
    path = folder / "copy" / chunk["file"]
    data = bytearray(path.read_bytes())
    elements = original.tensors["embedding"].numpy().tobytes()[:64]
    at = data.index(elements, chunk["file_offset"])
    data[at + 13] ^= 0x10
    path.write_bytes(data)
    unseen = []
    damaged = None
    try:
        damaged = Content(folder / "copy")
    except Exception:
        pass  # torch may refuse it because of the archive's checksums
    for what, check in {
        "Content.must_equal": lambda: damaged and damaged.must_equal(original, "copy"),
        "Reprise.tensors_agree": lambda: reprise.tensors_agree(original, {t["key"]: t for t in reprise.inspect(folder / "copy")["tensors"]}),
        "reprise verify": lambda: reprise.must("verify", folder / "copy"),
        "reprise diff": lambda: reprise.must("diff", folder / "saved", folder / "copy"),
        "reprise diff --no-checksums": lambda: reprise.must("diff", "--no-checksums", folder / "saved", folder / "copy"),
    }.items():
        try:
            check()
            if damaged is not None or what != "Content.must_equal":
                unseen.append(what)
        except Different:
            pass
    if unseen:
        raise Different(f"a flipped bit goes by: {', '.join(unseen)}")
    return len(original.tensors), "seen by torch's reading, inspect, verify and diff"


def other_bytes_of_an_object_are_seen(reprise, folder):
    """Tests the comparison itself: it must notice if Reprise reports another hash of an object's bytes, opaque or not."""
    save(*cases_torch.CASES["containers"], folder)
    original = Content(folder / "saved")
    said = {o["key"]: o for o in reprise.inspect(original.directory)["objects"]}
    opaque = next(k for k, o in said.items() if "opaque" in o)
    for key in (opaque, next(k for k, o in said.items() if "value" in o)):
        wrong = said | {key: said[key] | {"sha256": said[key]["sha256"][::-1]}}
        try:
            reprise.objects_agree(original, wrong, None)
        except Different:
            continue
        raise Different(f"another hash of {key!r} goes by")
    return 2, f"seen, {opaque!r} opaque"


def changed_content_is_seen(reprise, folder):
    """`diff` names the one element in which two checkpoints of different shardings differ."""
    save(*make_fixtures.FIXTURES["same_content_a"], folder, "a")
    save(*make_fixtures.FIXTURES["same_content_b"], folder, "b")
    save(*make_fixtures.FIXTURES["different_content"], folder, "c")
    reprise.must("diff", "a", "b")
    import json
    status, out, _ = reprise.call("diff", "--json", "a", "c")
    found = [(t["key"], t["first_difference"]["index"]) for t in json.loads(out)["tensors"] if t["verdict"] == "different"]
    key, index, _ = make_fixtures.CHANGE
    if status != 1 or found != [(key, list(index))]:
        raise Different(f"exit {status}, {found}")
    return len(found), f"{key} {list(index)}"


def fsdp2_loaded(path, mesh_shape, tensor_parallel, rank):
    """Returns the whole tensors of a trained model and its optimizer after overwriting them and loading them with dcp.load."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
    from torch.distributed.device_mesh import init_device_mesh
    mesh = init_device_mesh("cpu", mesh_shape, mesh_dim_names=("dp", "tp")[:len(mesh_shape)])
    model, optimizer = make_fixtures.trained_fsdp2(mesh["dp"] if tensor_parallel else mesh, mesh["tp"] if tensor_parallel else None)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
            for value in optimizer.state[parameter].values():
                value.add_(1)
    model_state, optimizer_state = get_state_dict(model, optimizer)
    state = {"model": model_state, "optim": optimizer_state, "train_state": {"step": 0, "tokens": 0}}
    dcp.load(state, checkpoint_id=path)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    model_state, optimizer_state = get_state_dict(model, optimizer)
    whole = make_fixtures.full_tensors("model.", model_state) | make_fixtures.full_tensors("optim.state.", optimizer_state["state"])
    return {k: v.detach().clone() for k, v in whole.items()}, state["train_state"]


def fsdp2_goes_on(reprise, folder):
    """fully_shard on 4 ranks saves, and Reprise reshards. Models on 2 and 3 ranks, and on 2 x 2 with replicas or tensor parallelism, load the result."""
    truth = save(*make_fixtures.FIXTURES["fsdp2_model"], folder)
    resharded(reprise, folder / "saved", folder / "again", "--ranks", 3)
    places = (((2,), False), ((3,), False), ((2, 2), False), ((2, 2), True))[:None if WHOLE_OF_STRIDED else 3]
    for shape, tensor_parallel in places:
        ranks = shape[0] * (shape[1] if len(shape) > 1 else 1)
        for loaded, train_state in gloo_ranks.run(ranks, fsdp2_loaded, "again", shape, tensor_parallel):
            wrong = [k for k in truth if not same_bits(loaded[k], truth[k])]
            if wrong or loaded.keys() != truth.keys() or train_state != {"step": 2, "tokens": 1 << 33}:
                raise Different(f"on {shape}{' with tensor parallelism' if tensor_parallel else ''}: {wrong[:3]} {train_state}")
    return len(truth), f"{len(truth)} tensors in {len(places)} models"


def mcore_goes_on(source, layouts, load):
    """Megatron saves, and Reprise reshards. Under each layout Megatron loads the same from both, into memory with other content."""
    def check(reprise, folder):
        save(*source, folder)
        original = next((folder / "saved").glob("iter_*"), folder / "saved")
        resharded(reprise, original, folder / "again", "--ranks", 3, "--split", "layers=0:2", "--writers", 2)
        compared = 0
        for ranks, *arguments in layouts:
            both = [gloo_ranks.run(ranks, load, path, *arguments) for path in (original, folder / "again")]
            for rank, (one, other) in enumerate(zip(*both)):
                difference = first_difference(tree(one), tree(other))
                if difference:
                    raise Different(f"{arguments} rank {rank}: {difference}")
                here = str(tree(one)).count("sha256")
                if not here:
                    raise Different(f"{arguments} rank {rank}: no tensor was loaded")
                compared += here
        return compared, f"{compared} tensors under {len(layouts)} layouts"
    return check


def mcore_cases():
    import cases_mcore
    for name, (function, ranks) in cases_mcore.CASES.items():
        inner = f"iter_{cases_mcore.fixtures.ITERATION:07d}" if name in ("gpt_tp2_pp2", "gpt_dp2", "buckets") else "."
        yield f"Megatron writes {name}", read_and_round(function, ranks, inner)
    layouts = [(2, {"tp": 1, "pp": 1}), (2, {"tp": 2, "pp": 1}), (2, {"tp": 1, "pp": 2}), (4, {"tp": 2, "pp": 2})]
    yield "Megatron goes on with gpt_tp2_pp2", mcore_goes_on(cases_mcore.CASES["gpt_tp2_pp2"], layouts, cases_mcore.gpt_loaded)
    yield "Megatron goes on with every_kind", mcore_goes_on(cases_mcore.CASES["every_kind"], [(3,)], cases_mcore.every_kind_loaded)


def cases():
    rows = {k: v for k, v in make_fixtures.FIXTURES.items() if not k.startswith("mcore_")} | cases_torch.CASES
    for name, (function, ranks) in rows.items():
        yield f"torch writes {name}", read_and_round(function, ranks)
    yield "torch goes on with fsdp2_model", fsdp2_goes_on
    yield "a flipped bit", flipped_bit_is_seen
    yield "other bytes of an object", other_bytes_of_an_object_are_seen
    yield "a changed element", changed_content_is_seen
