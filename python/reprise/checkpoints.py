"""Questions about stored checkpoints, answered by the program ``reprise``. Nothing of torch is imported here.

    from reprise import checkpoints

    checkpoints.verify("run/step-100").good                          # is it whole?
    checkpoints.diff("run/step-100", "copy").good                    # is it the same?
    checkpoints.export("run/step-100", "hf", map="llama", set={"vocab": 32000})

Each call runs the verb of its name, and takes that verb's options as keywords: ``reprise diff --keys A --keys B
--no-checksums`` is ``diff(a, b, keys=["A", "B"], no_checksums=True)``. ``reprise VERB --help`` lists them. The answer
is what ``--json`` prints.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Union

from . import program
from .errors import Error

__all__ = ["Answer", "diff", "digest", "expect", "export", "import_", "inspect", "match",
           "plan", "reshard", "scan", "seal", "trend", "verify", "verify_all", "which"]

Path = Union[str, "os.PathLike[str]"]


class Answer(dict):  # type: ignore[type-arg]
    """What a verb printed as JSON.

    Attributes:
        code: exit code: 0 is yes, 1 is no, 2 means that something could not be read, and 3 that something was not
            looked at.
        good: True if the code is 0. Only then everything was looked at, and nothing was found.
    """

    def __init__(self, document: dict[str, Any], code: int) -> None:
        super().__init__(document)
        self.code = code

    @property
    def good(self) -> bool:
        return self.code == 0

    def __reduce__(self):
        return Answer, (dict(self), self.code)


def inspect(checkpoint: Path, **options: Any) -> Answer:
    """Returns what is in a checkpoint: its tensors, objects, files. With ``digest=True`` also the ``digest`` of
    each tensor, as ``digest()`` returns it but in hexadecimal; with ``sha256=True`` the SHA-256 of its bytes.

    ``answer["written_by"]`` and ``answer["readable_by"]`` have the releases of torch and Megatron-Core, as far as the
    form of the checkpoint shows them.

    Throws Error if it can't be opened.
    """
    return _answer("inspect", [checkpoint], options)


def verify(checkpoint: Path, **options: Any) -> Answer:
    """Returns whether a checkpoint is whole, and what is wrong with it: ``answer["findings"]``, ``answer["verdict"]``.

    With ``health=True`` also of its numbers, and with ``against=OLDER`` compared with an older checkpoint.

    Throws Error if it can't be opened. ``all=True`` is that of ``verify_all``.
    """
    if options.get("all"):
        return verify_all(checkpoint, **{name: value for name, value in options.items() if name != "all"})
    answer = _answer("verify", [checkpoint], options)
    return Answer(answer["checkpoints"][0], answer.code)


def verify_all(root: Path, **options: Any) -> Answer:
    """Returns whether each checkpoint below a directory is whole: ``answer["checkpoints"]``.

    ``answer["roots"][0]`` says from which one a program would resume (``["resume"]``), and what else lies there
    (``["beside"]``). What can't be read is in ``answer["unread"]``. Throws Error if there is no such directory.
    """
    return _answer("verify", [root], {**options, "all": True}, partly=True)


def diff(left: Path, right: Path, **options: Any) -> Answer:
    """Returns whether two checkpoints hold the same content, whatever their layouts, and what differs.

    ``tensor["source"]`` says where values come from that differ; ``sort="change"`` puts what changed most first. Throws
    Error if one can't be opened. What is damaged within is ``answer["damage"]``.
    """
    return _answer("diff", [left, right], options)


def digest(checkpoint: Path, **options: Any) -> dict[str, int]:
    """Returns the digest of each tensor, as ``reprise.torch.digest.digests`` computes them. Throws Error for damage."""
    answer = _answer("digest", [checkpoint], options)
    if answer.code == 2:
        raise Error("CHECKSUM", f"{os.fspath(checkpoint)} does not have its checksums")
    return {tensor["key"]: int(tensor["digest"], 16) for tensor in answer.get("tensors", [])}


def seal(checkpoint: Path, **options: Any) -> Answer:
    """Writes digests of the checkpoint to ``reprise-seal.json`` in it, or to ``out``. Not good if another one is there."""
    return _answer("seal", [checkpoint], options)


def plan(checkpoint: Path, layout: str, **options: Any) -> Answer:
    """Returns what each rank of a layout such as ``"tp=8,pp=4"`` holds and reads: ``answer["ranks"]``, in bytes.

    ``answer["amplification"]`` is what torch reads by what the ranks ask for. With ``rank=5`` that of one rank, with
    ``memory=True, host_memory="2TB"`` also how many ranks fit: ``answer["readers"]``. Not good if some tensors can't be
    loaded under this layout: ``answer["left_out"]``. Throws Error if the checkpoint can't be opened or cut so.
    """
    if "rank" in options:
        options.setdefault("files", True)
    return _answer("plan", [], {"ckpt": os.fspath(checkpoint), "layout": layout, **options})


def reshard(source: Path, target: Path, **options: Any) -> Answer:
    """Writes the same content under another sharding, with ``for_="torch-2.14"`` for a release, or a list of them.

    Throws Error if nothing was written, such as for a release that can't read it in any form.
    """
    return _answer("reshard", [source, target], options)


def export(source: Path, target: Path, **options: Any) -> Answer:
    """Writes the tensors as safetensors, or as ``to`` says, and proves that nothing changed.

    Throws Error if nothing was written.
    """
    return _answer("export", [source, target], options)


def import_(source: Path, target: Path, **options: Any) -> Answer:
    """Writes the tensors as a ``torch_dist`` checkpoint, with the same proof. Throws Error if nothing was written."""
    return _answer("import", [source, target], options)


def which(root: Path, **options: Any) -> Answer:
    """Returns from which checkpoint of a directory each program would resume: ``answer["points"]``.

    With ``for_="torchtitan"`` that of one program. Throws Error if no checkpoint there has a program's names.
    """
    return _answer("which", [root], options)


def trend(*checkpoints: Path, **options: Any) -> Answer:
    """Returns whether each checkpoint of a run moved on from the one before: ``answer["checkpoints"]``, ``["findings"]``.

    Takes the directory of a run, or two checkpoints or more in their order. Throws Error if there are none.
    """
    if not checkpoints:
        raise Error("USAGE", "trend takes the directory of a run, or two checkpoints or more")
    return _answer("trend", list(checkpoints), options)


def expect(state: Any) -> dict[str, dict[str, Any]]:
    """Returns the keys that a program will ask for, each with its shape and dtype, for ``match``.

    ``state`` is a module, which may be on torch's meta device, or a state dict, nested or not, or the
    ``sharded_state_dict()`` of Megatron-Core, of which what is not sharded is left out. Shapes are those of whole
    tensors, in elements. What is no tensor has an entry without shape.
    """
    keys: dict[str, dict[str, Any]] = {}
    sharded: dict[str, dict[str, Any]] = {}
    _expect_below("", state.state_dict() if hasattr(state, "state_dict") else state, keys, sharded)
    return sharded or keys  # Megatron keeps what is not sharded in the common state


def _expect_below(
    name: str, value: Any, keys: dict[str, dict[str, Any]], sharded: dict[str, dict[str, Any]]
) -> None:
    if hasattr(value, "build") and hasattr(value, "merge_fn"):  # one that Megatron makes tensors of when it saves
        value = value.build()
    parts = value.items() if isinstance(value, dict) else enumerate(value) if _holds_tensors(value) else None
    if parts is not None:
        for part, content in parts:
            _expect_below(f"{name}.{part}" if name else str(part), content, keys, sharded)
        return
    shape = getattr(value, "global_shape", getattr(value, "shape", None))
    dtype = getattr(value, "dtype", None)
    is_tensor = shape is not None and dtype is not None
    entry = {"shape": list(shape), "dtype": str(dtype).split(".")[-1]} if is_tensor else {}
    if hasattr(value, "global_shape") and hasattr(value, "key"):
        sharded[value.key] = entry
    else:
        keys[name] = entry


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and any(
        hasattr(one, "dtype") or isinstance(one, (dict, list, tuple)) for one in value
    )


def match(checkpoint: Path, expect: Any, **options: Any) -> Answer:
    """Returns whether a checkpoint has the keys, shapes and dtypes that a program will ask for, and which it has not.

    ``expect`` is a list as ``checkpoints.expect`` returns it, or the path of one as JSON. ``answer["missing"]``,
    ``["unexpected"]``, ``["shape"]`` and ``["dtype"]`` have what differs. Throws Error if one can't be opened.
    """
    if isinstance(expect, (str, os.PathLike)):
        return _answer("match", [checkpoint], {**options, "expect": os.fspath(expect)})
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "keys.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(expect, out)
        return _answer("match", [checkpoint], {**options, "expect": file})


def scan(path: Path, **options: Any) -> Answer:
    """Returns what loading the pickles of a file, or of all files below a directory, would import: ``answer["files"]``.

    Nothing is loaded. Good means that each name is known or allowed (``allow=["my.package.Config"]``). Throws Error if
    there is no such file.
    """
    return _answer("scan", [path], options)


def _answer(verb: str, paths: list[Path], options: dict[str, Any], partly: bool = False) -> Answer:
    ended = program.run([verb, "--json", *program.words(options), "--", *[os.fspath(path) for path in paths]])
    try:
        document = json.loads(ended.screen)
    except ValueError:
        raise Error("USAGE" if ended.code == 2 else "UNKNOWN", _reason(ended), what=_reason(ended)) from None
    unread = [] if partly else document.get("unread", [])
    errors = [document["error"]] if "error" in document else [one["error"] for one in unread]
    if errors:
        place = {name: errors[0][name] for name in ("rank", "key", "file", "offset")}
        raise Error(errors[0]["code"], errors[0]["message"], what=_reason(ended), **place)
    return Answer(document, ended.code)


def _reason(ended: program.Ended) -> str:
    return ended.complaint.strip() or f"reprise ended with {ended.code} and said nothing"
