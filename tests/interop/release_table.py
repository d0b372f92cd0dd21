#!/usr/bin/env python3
"""Which release reads what which release wrote, by the real packages: ./dev interop --table --write makes docs/releases.md with it.

    release_table.py write FOLDER              this interpreter's torch and megatron-core write FOLDER/torch-X/CASE and FOLDER/mcore-Y/CASE
    release_table.py reshard FOLDER PROGRAM RELEASE...     'reprise reshard --for' of all of these, for each release, below FOLDER/for-RELEASE
    release_table.py read FOLDER ANSWER        they read all of them: a JSON file of what they say
    release_table.py page FOLDER PROGRAM PAGE ANSWER...    makes the page, and fails if `reprise inspect` foretold another reader

Uses no GPU, and no network but loopback. A case is read if torch or Megatron loads it into zeros and every element has
the value that its key and position give it; what can't be read is told in the words of the package.
"""
import argparse
import datetime
import importlib.metadata
import json
import multiprocessing
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import warnings
import zlib

warnings.filterwarnings("ignore")
NEEDS = {  # cases that a release can't write, with the first one that can
    "torch": {"unsigned": (2, 6), "ranks": (2, 9), "float8_e8m0fnu": (2, 7), "float4_e2m1fn_x2": (2, 8)},
    "mcore": {"object": (0, 9)},  # 0.8.0 takes an argument of torch 2.4's planner for another
}
TORCH_CASES = ("plain", "unsigned", "ranks", "float8_e8m0fnu", "float4_e2m1fn_x2")
MCORE_CASES = ("model", "object", "optimizer")
FIRST_FULL_OPTIMIZER = (0, 15)  # until then Megatron cuts an optimizer's state out of a flattened tensor
FLATTENED = "fully_sharded_model_space"
ITERATION = 10


def version(package):
    return importlib.metadata.version(package)


def minor(text):
    return tuple(int(n) for n in re.findall(r"\d+", text)[:2])


def name(package, text):
    return f"{package}-{'.'.join(str(n) for n in minor(text))}"


def patterned(torch, key, shape, dtype):
    """The values that a tensor of this key has: a function of key and position alone."""
    count = 1
    for n in shape:
        count *= n
    numbers = (torch.arange(count) * 7 + zlib.crc32(key.encode())) % 127
    if str(dtype).split(".")[1].startswith("float4") or "e8m0" in str(dtype):
        return numbers.to(torch.uint8).view(dtype).reshape(shape)
    return (numbers.to(torch.float64) / 8).to(dtype).reshape(shape)


def same(torch, left, right):
    plain = [t.detach().contiguous().view(torch.uint8) if t.dim() else t.detach().reshape(1).view(torch.uint8) for t in (left, right)]
    return left.dtype == right.dtype and left.shape == right.shape and torch.equal(*plain)


# ---------------------------------------------------------------------------------------------- torch


def blank_of(torch, value):
    """Zeros like a tensor, also of a type for which torch has no zeros."""
    if value.dim() == 0:
        return torch.zeros_like(value)
    return torch.zeros(value.numel() * value.element_size(), dtype=torch.uint8).view(value.dtype).reshape(value.shape)


def torch_state(torch, case, blank=False):
    shapes = {"model.weight": ((6, 4), "float32"), "model.half": ((3, 5), "bfloat16"), "steps": ((), "int64"), "transposed": ((5, 3), "float32")}
    if case == "unsigned":
        shapes = {"uint16": ((5, 3), "uint16"), "uint32": ((7,), "uint32"), "uint64": ((2, 2), "uint64")}
    elif case.startswith("float"):
        shapes = {"numbers": ((4, 6), case)}
    state = {}
    for key, (shape, dtype) in shapes.items():
        value = patterned(torch, key, shape, getattr(torch, dtype))
        if key == "transposed":
            value = patterned(torch, key, shape, getattr(torch, dtype)).t().contiguous().t()
        state[key] = blank_of(torch, value) if blank else value
    return state


def torch_write(case, path, rank):
    import torch
    import torch.distributed.checkpoint as dcp
    state = torch_state(torch, case)
    if case == "plain":
        state |= {"note": "kept", "groups": [{"lr": 3e-4, "betas": (0.9, 0.95)}]}
    if case == "ranks":
        dcp.save(state, checkpoint_id=path, use_collectives=False)
    else:
        dcp.save(state, checkpoint_id=path)


def torch_read(case, path, rank):
    import torch
    import torch.distributed.checkpoint as dcp
    state = torch_state(torch, case, blank=True)
    dcp.load(state, checkpoint_id=path)
    for key, value in torch_state(torch, case).items():
        if not same(torch, state[key], value):
            return f"reads other values of {key}"
    return "same"


# ---------------------------------------------------------------------------------------------- megatron-core


def not_compiled(*arguments, **named):
    raise RuntimeError("nothing is compiled here")


def results_queue(mp_mode=None):
    """Replaces Megatron's own function, which starts a fresh Python and takes longer than everything else."""
    global _QUEUE
    if _QUEUE is None:
        _QUEUE = multiprocessing.get_context("fork").Manager().Queue()
    return _QUEUE


_QUEUE = None


def megatron():
    import torch
    if not torch.cuda.is_available():  # Megatron waits for the GPU before it copies, and counts failures in a tensor there
        torch.cuda.synchronize = lambda device=None: None
        torch.cuda.current_device = lambda: "cpu"
    import torch.utils.cpp_extension
    torch.utils.cpp_extension.load_inline = not_compiled  # 0.15 compiles for the GPU when it is imported
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor
    from megatron.core.dist_checkpointing.strategies import filesystem_async
    filesystem_async._get_write_results_queue = filesystem_async.get_write_results_queue = results_queue
    return torch, dist_checkpointing, ShardedObject, ShardedTensor


def mcore_state(case, kind, blank=False):
    """Returns the state dict of a case, or zeros in its place. `kind` says in which form the optimizer's state is stored."""
    torch, checkpointing, ShardedObject, ShardedTensor = megatron()
    fill = (lambda value: torch.zeros_like(value)) if blank else (lambda value: value)
    weight = fill(patterned(torch, "layers.weight", (6, 4), torch.bfloat16))
    state = {"model": {"weight": ShardedTensor.from_rank_offsets("layers.weight", weight)}}
    if case == "optimizer":
        key = "optimizer.state.exp_avg.layers.weight"
        moment = fill(patterned(torch, key, (6, 4), torch.float32))
        if kind == FLATTENED:
            state["optimizer"] = {"exp_avg": ShardedTensor(key, moment.flatten(), moment.dtype, (6, 4), (6, 4), (0, 0), (1, 1), flattened_range=slice(0, 24))}
        else:
            state["optimizer"] = {"exp_avg": ShardedTensor.from_rank_offsets(key, moment)}
    elif case == "object":
        state["object"] = ShardedObject("rng_state", [{"seed": 0 if blank else 1234}], (1, 1), (0, 0))
    if not blank:
        state |= {"iteration": ITERATION, "checkpoint_version": 3.0, "args": argparse.Namespace(tensor_model_parallel_size=1, pipeline_model_parallel_size=1, hidden_size=4)}
    return state


def options(function, **wanted):
    import inspect
    known = inspect.signature(function).parameters
    return {name: value for name, value in wanted.items() if name in known}


def mcore_write(case, path, rank):
    checkpointing = megatron()[1]
    pathlib.Path(path).mkdir()
    kind = FLATTENED if minor(version("megatron-core")) < FIRST_FULL_OPTIMIZER else "fully_reshardable"
    checkpointing.save(mcore_state(case, kind), path, **options(checkpointing.save, async_strategy="mcore", content_metadata={"distrib_optim_sharding_type": kind}))


def mcore_read(case, path, rank):
    torch, checkpointing, _, _ = megatron()
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # the arguments are an object of argparse
    kind = FLATTENED  # what releases ask for if the checkpoint says nothing; later ones ask as it says
    if hasattr(checkpointing, "load_content_metadata"):
        kind = (checkpointing.load_content_metadata(path) or {}).get("distrib_optim_sharding_type", kind)
    state = checkpointing.load(mcore_state(case, kind, blank=True), path)
    if state.get("iteration") != ITERATION:
        return f"reads the iteration {state.get('iteration')}"
    for key, value in {"layers.weight": state["model"]["weight"], "optimizer.state.exp_avg.layers.weight": state.get("optimizer", {}).get("exp_avg")}.items():
        wanted = patterned(torch, key, (6, 4), torch.float32 if key.startswith("optimizer") else torch.bfloat16)
        if value is not None and not same(torch, value.reshape(6, 4), wanted):
            return f"reads other values of {key}"
    if case == "object" and state["object"] != [{"seed": 1234}]:
        return f"reads the object {state['object']}"
    return "same"


# ---------------------------------------------------------------------------------------------- the four steps


def in_a_process(function, case, path):
    """Calls function(case, path, rank) as the one rank of a job. Returns what it returns, or the error's last line."""
    import gloo_ranks
    try:
        return gloo_ranks.run(1, function_of_one_rank, function, case, str(path))[0]
    except RuntimeError as error:
        lines = [line for line in str(error).strip().splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)]
        return re.sub(r"/\S*/site-packages/", "", (lines or str(error).strip().splitlines())[-1])[:300]


def function_of_one_rank(function, case, path, rank):
    import torch.distributed as dist
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        return function(case, path, rank)


def packages():
    """The packages of this interpreter: name of the release, cases, writer and reader of each."""
    import torch.distributed.checkpoint  # noqa: F401  as Megatron below, once for all ranks that are forked
    yield name("torch", version("torch")), TORCH_CASES, torch_write, torch_read
    megatron()
    yield name("mcore", version("megatron-core")), MCORE_CASES, mcore_write, mcore_read


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    for release, cases, writer, _ in packages():
        (folder / release).mkdir()
        for case in cases:
            if minor(release) < NEEDS[release.split("-")[0]].get(case, (0, 0)):
                continue
            said = in_a_process(writer, case, f"{release}/{case}")  # relative, since the path is stored
            print(f"{release} writes {case}: {said or 'done'}", flush=True)
            if said:
                raise SystemExit(1)


def read(folder, answer):
    found = {"python": platform.python_version(), "torch": version("torch"), "megatron-core": None, "read": {}}
    os.chdir(folder)
    for release, cases, _, reader in packages():
        if release.startswith("mcore"):
            found["megatron-core"] = version("megatron-core")
        rows = found["read"][release] = {}
        for path in sorted(folder.glob(f"{release.split('-')[0]}-*/*")) + sorted(folder.glob(f"for-{release}/{release.split('-')[0]}-*/*")):
            path = path.relative_to(folder)
            rows[str(path)] = said = in_a_process(reader, path.name, path)
            print(f"{release} reads {path}: {said}", flush=True)
    (folder / answer).write_text(json.dumps(found, indent=1) + "\n")


def reprise(program, *words):
    return subprocess.run([str(program), *map(str, words)], capture_output=True, text=True, timeout=120)


def reshard(folder, program, releases):
    """Lets Reprise write what each release reads, of all that was written. What it refuses is told in its words."""
    said = {}
    for release in releases:
        for path in sorted(folder.glob(f"{release.split('-')[0]}-*/*")):
            out = folder / f"for-{release}" / path.relative_to(folder)
            out.parent.mkdir(parents=True, exist_ok=True)
            done = reprise(program, "reshard", path, out, "--for", release, "--quiet", "--ranks", 2)
            if done.returncode not in (0, 2) or (done.returncode == 0) != out.exists():
                raise SystemExit(f"reshard {path} --for {release} ended with {done.returncode}: {done.stderr}")
            same = done.returncode == 2 or reprise(program, "diff", path, out, "--accept", "layout-bound").returncode == 0
            words = re.sub(r" *\[[^]]*\]$", "", done.stderr.strip().removeprefix("reprise reshard: ").splitlines()[0]) if done.returncode else "written"
            said[str(out.relative_to(folder))] = words if same else "written with other content"
            print(f"reprise reshard --for {release} of {path.relative_to(folder)}: {words}", flush=True)
    (folder / "resharded.json").write_text(json.dumps(said, indent=1) + "\n")


def foretold(program, path, release, torch):
    """Whether `reprise inspect` says that this release, with this torch, reads the checkpoint."""
    told = json.loads(reprise(program, "inspect", "--json", path).stdout)["readable_by"]
    spans = {one["program"]: one for one in told}
    for package, number in (("torch", torch), ("megatron-core", release if release.startswith("mcore") else "")):
        span = spans.get(package)
        if not number:
            continue
        if span is None or span["none"] or (span["first"] and minor(number) < minor(span["first"])) or (span["last"] and minor(number) > minor(span["last"])):
            return False
    return True


class Page:
    """The tables, and a numbered list of the reasons why something is not read."""

    def __init__(self, folder, answers, resharded):
        self.folder, self.answers, self.resharded = folder, answers, resharded
        self.reasons, self.lines = [], []
        self.releases = {kind: sorted({r for a in answers for r in a["read"] if r.startswith(kind)}, key=minor) for kind in ("torch", "mcore")}

    def reason(self, words):
        for kind, general in ((r"'?((torch|mcore)-[\d.]+/)?\w+/(\.metadata|__0\.metadata|common\.pt)'?", r"\3"), (r"(UNSUPPORTED: )(torch|mcore)-[\d.]+ (?=can't)", r"\1the release "),
                              (r": mcore-[\d.]+ (?=needs|can)", ": the release "), (r" \[Errno 2\]|This file can still be loaded.*|megatron\.core\.dist_checkpointing\.core\.", "")):
            words = re.sub(kind, general, words)
        words = words.replace("|", "\\|").strip()
        if words not in self.reasons:
            self.reasons.append(words)
        return self.reasons.index(words) + 1

    def said(self, reader, path):
        return next(a["read"][reader] for a in self.answers if reader in a["read"]).get(path)

    def cell(self, reader, paths):
        """What of these paths this release reads: {case: path}."""
        unread = {case: self.said(reader, path) for case, path in paths.items() if self.said(reader, path) != "same"}
        if not paths:
            return "–"
        if not unread:
            return "all"
        each = self.by_reason({case: why or "nothing was written" for case, why in unread.items()})
        return f"none: {each}" if len(unread) == len(paths) else f"not {each}"

    def by_reason(self, unread):
        """Names cases with the number of their reason; those of one reason stand together."""
        groups = {}
        for case, why in unread.items():
            groups.setdefault(self.reason(why), []).append(case)
        return "; ".join(f"{', '.join(cases)} [{number}]" for number, cases in groups.items())

    def table(self, kind, title, cell):
        columns = self.releases[kind]
        self.lines += ["", f"| {title} | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
        for writer in columns:
            self.lines.append(f"| {writer} | " + " | ".join(cell(writer, reader) for reader in columns) + " |")

    def cases(self, folder):
        return {path.name: str(path.relative_to(self.folder)) for path in sorted(folder.glob("*")) if path.is_dir()}

    def of_packages(self, writer, reader):
        return self.cell(reader, self.cases(self.folder / writer))

    def of_reprise(self, writer, reader):
        told = {path.split("/")[-1]: words for path, words in self.resharded.items() if path.startswith(f"for-{reader}/{writer}/")}
        refused = {case: words for case, words in told.items() if words != "written"}
        read = self.cell(reader, {case: f"for-{reader}/{writer}/{case}" for case in told if case not in refused})
        return read + (f", but refused: {self.by_reason(refused)}" if refused else "")


def page(folder, program, out, answers):
    made = Page(folder, answers, json.loads((folder / "resharded.json").read_text()))
    text = INTRODUCTION.format(date=datetime.date.today().isoformat(), answers=sum(len(rows) for a in answers for rows in a["read"].values()))
    made.lines += ["", "| release | torch | megatron-core | Python |", "|---|---|---|---|"]
    for answer in sorted(answers, key=lambda a: minor(a["torch"])):
        made.lines.append(f"| {', '.join(answer['read'])} | {answer['torch']} | {answer['megatron-core']} | {answer['python']} |")
    made.lines += ["", "## What packages read of each other"]
    made.table("torch", "writer, reader", made.of_packages)
    made.table("mcore", "writer, reader", made.of_packages)
    made.lines += ["", "## What they read of `reprise reshard --for`", "", "Each row is what that release wrote, and each column what Reprise made of it for this release."]
    made.table("torch", "source, `--for`", made.of_reprise)
    made.table("mcore", "source, `--for`", made.of_reprise)
    made.lines += ["", "## Reasons", ""] + [f"{n + 1}. {words}" for n, words in enumerate(made.reasons)]
    out.write_text(text + "\n".join(made.lines) + "\n")
    wrong = []
    for answer in answers:
        for reader, rows in answer["read"].items():
            for path, said in rows.items():
                if (said == "same") != foretold(program, folder / path, reader, answer["torch"]):
                    wrong.append(f"{reader} reads {path}: {said}; inspect says otherwise")
    wrong += [f"{path}: {words}" for path, words in made.resharded.items() if words == "written with other content"]
    print("\n".join(wrong) or f"inspect foretold all {sum(len(rows) for a in answers for rows in a['read'].values())} answers")
    return 1 if wrong else 0


INTRODUCTION = """# Releases: who reads what whom wrote

`./dev interop --table --write` made this page on {date} with the real packages, on one rank without a GPU. A case is
read if every element and value came back:

| case | what was saved |
|---|---|
| `plain` | tensors of common types, a transposed one among them, and nested values |
| `unsigned`, `float8_e8m0fnu`, `float4_e2m1fn_x2` | elements of these types |
| `ranks` | the same as `plain`, with `use_collectives=False` |
| `model`, `object` | a tensor, arguments and iteration; a sharded object, too, which megatron-core 0.8.0 can't save with torch 2.4.1 |
| `optimizer` | a moment beside the tensor, in the form of the release: flattened ranges before 0.15, whole tensors (`fully_reshardable`) since. It is composed of Megatron's own `ShardedTensor`, without an optimizer |

Each release of megatron-core ran with the torch of its row. A cell names what is not read, with a number under
[reasons](#reasons). `reprise inspect` predicted all {answers} answers.
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("write", "reshard", "read", "page"))
    parser.add_argument("folder", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("rest", nargs="*")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    if given.step == "write":
        write(given.folder)
    elif given.step == "reshard":
        reshard(given.folder, given.rest[0], given.rest[1:])
    elif given.step == "read":
        read(given.folder, pathlib.Path(given.rest[0]).resolve())
    else:
        return page(given.folder, given.rest[0], pathlib.Path(given.rest[1]), [json.loads(pathlib.Path(path).read_text()) for path in given.rest[2:]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
