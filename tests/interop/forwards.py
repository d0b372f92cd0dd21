#!/usr/bin/env python3
"""Compares what a model of Megatron-Core computes with what transformers computes from its exported checkpoint.

    forwards.py --reprise PROGRAM [--only REGEX] [--keep DIR]

Megatron makes and saves small models over several ranks, and runs them on some tokens. `reprise export` writes each as a
directory, from which transformers computes the logits of the same tokens. They must agree within BOUND, and must not where a
rule means something else. Prints one line for each case; the last line counts the cases. Exits with 0 if none failed.
"""
import argparse
import contextlib
import json
import logging
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
sys.dont_write_bytecode = True
warnings.filterwarnings("ignore")
import torch

import gpt_models  # first: it puts something in the place of CUDA
import gloo_ranks
from content import Different, Reprise
from interop import print_versions, run_case

TREE = pathlib.Path(__file__).resolve().parents[2]
BOUND = 2e-5  # of the largest difference of two logits in float32; the largest logits are about 4
TP2, PP2, EP2 = ({"tp": 1, "pp": 1, "ep": 1} | one for one in ({"tp": 2}, {"pp": 2}, {"ep": 2}))
STACKED = {"chained_optim_avoid_prefix": True, "singleton_local_shards": False}
NUMBERED = STACKED | {"non_homogeneous_layers": True}
SINGLE = STACKED | {"singleton_local_shards": True}  # also numbers experts, and stores both halves of a gated layer apart


def on_ranks(layout, function, *arguments):
    """Calls the function on the ranks of a layout, and returns what the last stage returns."""
    ranks = layout["tp"] * layout["pp"] * layout["ep"]
    return next(one for one in gloo_ranks.run(ranks, function, *arguments) if one is not None)


def saved(folder, model, layout, metadata=STACKED, optimizer=False):
    """Saves a model of Megatron-Core. Returns its logits."""
    return on_ranks(layout, gpt_models.save, model, layout, metadata, folder, optimizer)


class Transformers:
    """A process that computes with transformers."""

    def __init__(self):
        program = pathlib.Path(__file__).with_name("transformers_logits.py")
        self.process = subprocess.Popen([sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def logits(self, folder):
        tokens, out = folder.with_suffix(".tokens"), folder.with_suffix(".logits")
        torch.save(gpt_models.tokens(), tokens)
        print(folder, tokens, out, sep="\t", file=self.process.stdin, flush=True)
        said = self.process.stdout.readline()
        if said != "\n":
            raise Different(f"transformers: {said.strip() or 'ended'}")
        return torch.load(out)


def largest_difference(ours, theirs):
    """Of the logits of tokens that both have; Megatron's also have those of the padding."""
    if theirs.shape[:2] != ours.shape[:2] or not gpt_models.VOCAB <= theirs.shape[2] <= ours.shape[2]:
        raise Different(f"logits of shape {list(theirs.shape)} for {list(ours.shape)}")
    return (ours[:, :, :theirs.shape[2]] - theirs).abs().max().item()


def compare(programs, folder, rules, ours, options=()):
    """Exports the checkpoint, and returns the largest difference of logits."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    told = json.loads(programs.reprise.must("export", folder / "ckpt", folder / "out", "--map", rules, *options, "--json"))
    if told["unsaid"]:
        raise Different(f"the checkpoint does not say {told['unsaid']}")
    return largest_difference(ours, programs.transformers.logits(folder / "out"))


def agrees(rules, model, layout, metadata=STACKED, optimizer=False, options=()):
    def check(programs, folder):
        ours = saved(folder / "ckpt", model, layout, metadata, optimizer)
        difference = compare(programs, folder, rules, ours, options)
        if not difference <= BOUND:
            raise Different(f"logits differ by {difference:.3g}")
        return ours.numel(), f"largest difference {difference:.1g} of logits up to {ours.abs().max():.1f}"
    return check


def returns(rules, model, layout, other, options=(), cut=()):
    """What was exported and imported again is the same, and Megatron-Core computes the same from it, on the ranks of `other`."""
    def check(programs, folder):
        ours = saved(folder / "ckpt", model, layout)
        must = programs.reprise.must
        must("export", folder / "ckpt", folder / "out", "--map", rules, *cut, "-q")
        told = json.loads(must("import", folder / "out", folder / "back", "--map", f"{rules}-import", "--megatron", *options, "--json"))
        if told["unsaid"]:
            raise Different(f"the configuration does not say {told['unsaid']}")
        must("diff", "--keys", r"\.(weight|bias)$", folder / "ckpt", folder / "back")
        theirs = on_ranks(other, gpt_models.loaded, model, other, folder / "back")
        difference = (ours - theirs).abs().max().item()
        if not difference <= BOUND:
            raise Different(f"logits differ by {difference:.3g}")
        return ours.numel(), f"the same tensors, largest difference of logits {difference:.1g}"
    return check


def differs(rules, model, layout, changes):
    """Each change of the rules' text, a pair (what stands there, what stands there then), makes a difference that is seen."""
    def check(programs, folder):
        ours = saved(folder / "ckpt", model, layout)
        text, seen = programs.reprise.must("maps", rules), []
        for old, new in changes:
            if old not in text:
                raise Different(f"the rules have no {old!r}")
            (folder / "changed.yaml").write_text(text.replace(old, new))
            seen.append(compare(programs, folder, folder / "changed.yaml", ours))
            if not seen[-1] > 10 * BOUND:
                raise Different(f"with {new!r} for {old!r} logits differ by {seen[-1]:.3g} alone")
        return ours.numel(), f"differences of at least {min(seen):.2g}"
    return check


def fixture(programs, folder):
    """The README's line, with its checkpoint."""
    source, rules = re.search(r"\$ reprise export (tests/data/\S+) \S+ --map (\w+)\n", (TREE / "README.md").read_text()).groups()
    programs.reprise.must("export", TREE / source, folder / "out", "--map", rules)
    ours = on_ranks(TP2, gpt_models.loaded, rules, TP2, next((TREE / source).glob("iter_*")))
    difference = largest_difference(ours, programs.transformers.logits(folder / "out"))
    if not difference <= BOUND:
        raise Different(f"logits differ by {difference:.3g}")
    return ours.numel(), f"largest difference {difference:.1g}"


GROUPED = "blocks: <groups>, shares: [<queries_per_group>, 1, 1]"
CASES = [
    ("README", fixture),
    ("llama tp2", agrees("llama", "llama", TP2, optimizer=True)),
    ("llama pp2", agrees("llama", "llama_tied", PP2)),
    ("llama tp2, one group for both ranks", agrees("llama", "llama_tied", TP2)),
    ("llama tp2, no groups, numbered layers", agrees("llama", "llama_no_groups", TP2, NUMBERED)),
    ("llama pp2, halves apart", agrees("llama", "llama", PP2, SINGLE)),
    ("llama tp2, vocabulary cut", agrees("llama", "llama", TP2, options=("--set", f"vocab={gpt_models.VOCAB}"))),
    ("mixtral ep2", agrees("mixtral", "mixtral", EP2)),
    ("mixtral tp2, numbered layers", agrees("mixtral", "mixtral", TP2, NUMBERED)),
    ("mixtral ep2, experts apart", agrees("mixtral", "mixtral", EP2, SINGLE)),
    ("gpt2 tp2", agrees("gpt2", "gpt2", TP2)),
    ("gpt2 pp2, exact GELU", agrees("gpt2", "gpt2_exact", PP2)),
    ("llama tp2, back as pp2", returns("llama", "llama", TP2, PP2)),
    ("llama tp2, back, vocabulary cut and padded", returns("llama", "llama", TP2, TP2, ("--set", "padded_vocab=104"), ("--set", f"vocab={gpt_models.VOCAB}"))),
    ("llama pp2, back as tp2, tied", returns("llama", "llama_tied", PP2, TP2)),
    ("mixtral ep2, back as tp2", returns("mixtral", "mixtral", EP2, TP2, ("--set", "mlp_norm=decoder.layers.mlp.linear_fc1.layer_norm_weight"))),
    ("gpt2 tp2, back as pp2", returns("gpt2", "gpt2", TP2, PP2)),
    ("llama, wrong rules", differs("llama", "llama", TP2, [
        (GROUPED, "shares: [<heads>, <groups>, <groups>]"),  # all queries, then all keys, then all values
        ("{1}.mlp.gate_proj.weight\n      - model.layers.{1}.mlp.up_proj.weight", "{1}.mlp.up_proj.weight\n      - model.layers.{1}.mlp.gate_proj.weight"),
        ("rope_theta: <rope_base>", "rope_theta: 10000"),
        ("rms_norm_eps: <epsilon>", "rms_norm_eps: 0.01")])),
    ("mixtral, wrong rules", differs("mixtral", "mixtral", EP2, [
        (GROUPED, "shares: [<heads>, <groups>, <groups>]"),
        ("{2}.w1.weight\n      - model.layers.{1}.block_sparse_moe.experts.{2}.w3.weight", "{2}.w3.weight\n      - model.layers.{1}.block_sparse_moe.experts.{2}.w1.weight"),
        ("num_experts_per_tok: <experts_per_token>", "num_experts_per_tok: 1")])),
    ("gpt2, wrong rules", differs("gpt2", "gpt2", TP2, [
        ("      - split: {dim: 0, blocks: <heads>, shares: [1, 1, 1]}\n      - join: {dim: 0}\n", ""),
        ("activation_function: <gelu>", "activation_function: gelu")])),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reprise", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--only", default="", help="a regular expression for names of cases")
    parser.add_argument("--keep", type=lambda path: pathlib.Path(path).resolve(), help="a directory for what is written")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print_versions(Reprise(options.reprise), ("torch", "megatron-core", "transformers", "safetensors"))
    counts = {"pass": 0, "FAIL": 0, "skip": 0}
    with contextlib.ExitStack() as stack:
        programs = types.SimpleNamespace(reprise=Reprise(options.reprise), transformers=stack.enter_context(Transformers()))
        root = options.keep or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for name, check in CASES:
            if not re.search(options.only, name):
                continue
            folder = root / re.sub(r"\W+", "_", name)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            verdict, words = run_case(check, programs, folder)
            counts[verdict] += 1
            print(f"{verdict:5} {name}: {words}", flush=True)
    print(f"{counts['pass']} passed, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] or not counts["pass"] else 0


if __name__ == "__main__":
    sys.exit(main())
