"""Forms of Megatron's optimizer: what a real optimizer saves in one form, rewritten, is what it saves in the other, and it loads that."""
import json
import os
import pathlib
import subprocess
import sys

from content import Different

MAKER = pathlib.Path(__file__).resolve().parent / "make_optimizer_forms.py"
FIXTURES = MAKER.parents[1] / "data/optimizer_forms_0.16.1"
FULL = "fully_reshardable"


def megatron(*words):
    ended = subprocess.run([sys.executable, "-W", "ignore", MAKER, *map(str, words)], capture_output=True, text=True, timeout=300)
    if ended.returncode:
        raise Different(f"megatron-core: {ended.stderr[-2000:]}")


def rewritten(reprise, source, folder):
    reprise.must("reshard", source, folder / "rewritten", "--optimizer", FULL)
    return folder / "rewritten"


def same(reprise, left, right, *options):
    """Compares all but what another release or layout says of itself. Returns the number of elements."""
    said = json.loads(reprise.must("diff", "--json", left, right, *options))
    return said["elements"]


def buckets(*layout):
    """dp_reshardable, rewritten, is what the same optimizer saves as fully_reshardable."""
    def check(reprise, folder):
        megatron(folder / "buckets", "dp_reshardable", *layout)
        megatron(folder / "full", FULL, *layout)
        elements = same(reprise, folder / "full", rewritten(reprise, folder / "buckets", folder))
        return elements, f"{elements} elements"
    return check


def loaded(form):
    """A job loads what was made of this form, and then saves the state; torch reads the bytes that `plan` said before."""
    def check(reprise, folder):
        made = rewritten(reprise, FIXTURES / form, folder)
        planned = json.loads(reprise.must("plan", "--json", "--ckpt", made, "--layout", "tp=1"))["ranks"][0]["files"]
        megatron(folder / "again", FULL, "norms=ones", f"from={made}")
        read = json.loads((folder / "again/reads.json").read_text())[0]
        if read != planned:
            raise Different(f"torch read {read}, and {planned} were planned")
        elements = same(reprise, FIXTURES / FULL, folder / "again", "--keys", r"^(embedding|decoder|output_layer|optimizer\.state)\.")
        return elements, f"{elements} elements, {sum(read.values())} bytes read as planned"
    return check


def cases():
    layouts = ("tp=2", "dp=2"), ("dp=2", "norms=ones"), ("dp=2", "ep=2", "moe=1")
    forms = "dp_reshardable", "fully_sharded_model_space"
    if os.environ.get("REPRISE_INTEROP_ALL", "") != "1":  # each takes half a minute; the weekly run has all
        layouts, forms = layouts[:1], ()
    return [*((f"Megatron's buckets become {FULL}, {' '.join(layout)}", buckets(*layout)) for layout in layouts),
            *((f"Megatron loads what was made of {form}", loaded(form)) for form in forms)]
