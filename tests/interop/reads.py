"""torch writes: Reprise reads, reshards twice, and torch reads again."""
import os

import torch

import cases_torch
import gloo_ranks
import make_fixtures
from content import Content, Different, resharded


def save(function, ranks, folder, name="saved"):
    """Runs a save on its ranks; returns the whole tensors that its rank 0 handed to torch."""
    os.chdir(folder)
    return gloo_ranks.run(ranks, function, name)[0] or {}


def counted(content, values):
    count = len(content.objects) + (content.common is not None)
    opaque = f" ({count - values} as bytes)" if values < count else ""
    return f"{len(content.tensors)} tensors, {content.elements():,} elements, {count} objects{opaque}"


def read_and_round(function, ranks):
    """torch writes, Reprise agrees with what torch loads; twice around, through two other shardings, torch loads the same."""
    def check(reprise, folder):
        truth = save(function, ranks, folder)
        original = Content(folder / "saved")
        original.must_hold(truth)
        values = reprise.agrees_with(original)
        resharded(reprise, folder / "saved", folder / "by_rows", "--ranks", 3, "--writers", 2)
        resharded(reprise, folder / "by_rows", folder / "again", "--ranks", 5, "--writers", 1)
        for name in ("by_rows", "again"):
            Content(folder / name).must_equal(original, name)
        return counted(original, values)
    return check


def flipped_bit_is_seen(reprise, folder):
    """The comparison itself: one bit of one element, and all of it must notice."""
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
        pass  # a torch that checks the archive's checksums refuses it
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
    return "seen by torch's reading, inspect, verify and diff"


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
    return f"{key} {list(index)}"


def cases():
    rows = make_fixtures.FIXTURES | cases_torch.CASES
    for name, (function, ranks) in rows.items():
        yield f"torch writes {name}", read_and_round(function, ranks)
    yield "a flipped bit", flipped_bit_is_seen
    yield "a changed element", changed_content_is_seen
