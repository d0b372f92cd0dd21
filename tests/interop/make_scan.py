#!/usr/bin/env python3
"""Makes tests/data/scan_3.11.7: pickles and files of torch.save, harmless and hostile, for `reprise scan`.

    make_scan.py OUT

expected.json has for each file the names that Python's own unpickler asks for, with those of all pickles in the
file, until it ends or fails. None of them is imported: find_class returns a stand-in. The hostile files call nothing
worse than os.system("true").
"""

import _compat_pickle
import collections
import copyreg
import io
import json
import os
import pathlib
import pickle
import platform
import struct
import sys
import zipfile

import numpy
import torch


class Runs:
    """Runs a command when it is loaded."""

    def __reduce__(self):
        return os.system, ("true",)


class Own:
    def __init__(self):
        self.value = 1


class StandIn:
    """What find_class returns: it takes any arguments, state and items."""

    def __init__(self, *args, **keywords):
        pass

    def __call__(self, *args, **keywords):
        return StandIn()

    def __setstate__(self, state):
        pass

    def append(self, item):
        pass

    def extend(self, items):
        pass

    def __setitem__(self, key, value):
        pass

    def __hash__(self):
        return 1


class Asked(pickle._Unpickler):
    """Notes each name that the pickle asks for, by the name that it has in Python 3."""

    def __init__(self, file, names):
        super().__init__(file)
        self.proto = 0
        self.names = names

    def find_class(self, module, name):
        if self.proto < 3:
            module, name = _compat_pickle.NAME_MAPPING.get((module, name), (module, name))
            module = _compat_pickle.IMPORT_MAPPING.get(module, module)
        self.names.append(f"{module}.{name}")
        return StandIn()

    def persistent_load(self, pid):
        return StandIn()


def asked(data):
    names = []
    file = io.BytesIO(data)
    while file.tell() < len(data):
        try:
            Asked(file, names).load()
        except Exception:  # the pickle breaks off, or what follows is none
            break
    return names


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def short(value):
    return b"\x8c" + bytes([len(value)]) + value.encode()


def pickles():
    """Returns the bytes of each file that is a pickle."""
    files = {}
    for protocol in range(6):
        files[f"runs_p{protocol}.pkl"] = pickle.dumps(Runs(), protocol)
        nested = {"model": [1, (2, {"deep": [Runs(), Runs()]})], "step": 3}
        files[f"nested_p{protocol}.pkl"] = pickle.dumps(nested, protocol)
        harmless = {
            "array": numpy.arange(6).reshape(2, 3),
            "scalar": numpy.float32(2.5),
            "order": collections.OrderedDict(a=1, b=[True, None, 2.5, -3, 10**30, "naïve", b"\xff\x00"]),
            "words": {"x", "y"},
            "path": pathlib.PurePosixPath("/a/b"),
        }
        files[f"harmless_p{protocol}.pkl"] = pickle.dumps(harmless, protocol)
    files["own.pkl"] = pickle.dumps(Own())
    files["own_p0.pkl"] = pickle.dumps(Own(), 0)
    files["two_in_a_row.pkl"] = pickle.dumps({"step": 1}) + pickle.dumps(Runs())
    files["cut_after_name.pkl"] = b"\x80\x04" + short("os") + short("system") + b"\x93" + short("tr")[:3]
    files["cut.pkl"] = pickle.dumps(list(range(300)))[:-40]
    files["inst.pkl"] = b"(S'true'\nios\nsystem\n."
    files["obj.pkl"] = b"(cos\nsystem\nS'true'\no."
    files["no_protocol.pkl"] = b"cos\nsystem\n(S'true'\ntR."
    files["after_a_pop.pkl"] = b"N0cos\nsystem\n(S'true'\ntR."
    files["memo.pkl"] = (
        b"\x80\x04" + short("system") + b"\x940" + short("os") + b"\x940" + b"h\x01h\x00\x93" + short("true") + b"\x85R."
    )
    files["memo_text.pkl"] = b"S'system'\np7\n0S'os'\np3\n0g3\ng7\n\x93(S'true'\ntR."
    files["dup.pkl"] = b"\x80\x04" + short("os") + b"20" + short("system") + b"\x93" + short("true") + b"\x85R."
    files["dotted.pkl"] = b"\x80\x04" + short("torch.nn") + short("modules.module.os.system") + b"\x93."
    files["python2.pkl"] = b"\x80\x02c__builtin__\neval\n" + text("1") + b"\x85R."
    files["reduce.pkl"] = b"\x80\x04" + short("functools") + short("reduce") + b"\x93."
    files["getattr.pkl"] = (
        b"\x80\x02cbuiltins\ngetattr\nctorch\nTensor\n" + text("__init__") + b"\x86R."
    )
    files["getattr_handed_on.pkl"] = (
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cbuiltins\ngetattr\nctorch\nTensor\nctorch\nTensor\n"
        + text("__init__") + b"\x86}tR."
    )
    files["computed.pkl"] = (
        b"\x80\x04" + short("builtins") + short("str") + b"\x93" + short("os") + b"\x85R" + short("system") + b"\x93."
    )
    files["escaped.pkl"] = b"S'o\\x73'\nS'system'\n\x93."
    files["changes_a_class.pkl"] = b"\x80\x04" + short("collections") + short("OrderedDict") + b"\x93N}" + short("x") + b"K\x01s\x86b."
    copyreg.add_extension("posix", "system", 77)
    files["extension.pkl"] = pickle.dumps(Runs(), 2)
    copyreg.remove_extension("posix", "system", 77)
    files["outside.pkl"] = b"Psomething\n."
    files["long_name.pkl"] = b"c" + b"m" * 5000 + b"\nsystem\n."
    files["no_pickle.pkl"] = b'{"weights": [1, 2, 3]}\n'
    files["empty.pkl"] = b""
    files["trailing.pkl"] = pickle.dumps({"step": 1}) + b"\xfe\xfe\xfe\xfe"
    files["as_text.py"] = b"import os\nfrom os import system\nclass A:\n    pass\n"
    return files


def archives(out):
    """Writes the files of torch.save."""
    state = {"weight": torch.arange(6.0).reshape(2, 3), "step": 7}
    torch.save(state, out / "harmless.pt")
    torch.save({"state": state, "hook": Runs()}, out / "runs.pt")
    torch.save(state, out / "harmless_before_1_6.pt", _use_new_zipfile_serialization=False)
    torch.save([state, Runs()], out / "runs_before_1_6.pt", _use_new_zipfile_serialization=False)
    for name, record, content in [
        ("hidden_record.pt", "notes.txt", pickle.dumps(Runs(), 4)),
        ("hidden_text.pt", "extra/readme.md", b"cos\nsystem\n(S'true'\ntR."),
        ("hidden_far.pt", "extra/blob", pickle.dumps(["x" * 70_000, Runs()], 4)),
        ("second_pickle.pt", "other.pkl", pickle.dumps(Runs(), 2)),
        ("garbled_pickle.pt", "other.pkl", b"no pickle"),
    ]:
        torch.save(state, out / name)
        with zipfile.ZipFile(out / name, "a", zipfile.ZIP_STORED) as archive:
            archive.writestr(f"{name.removesuffix('.pt')}/{record}", content)
    parts = [out / "harmless.pt", out / "runs.pt", out / "harmless.pt"]
    (out / "in_a_row.distcp").write_bytes(b"".join(part.read_bytes() for part in parts))
    (out / "rest_before.distcp").write_bytes(b"\x01\x02\x03\x04" + parts[0].read_bytes())


def expected(file):
    data = file.read_bytes()
    if file.name == "in_a_row.distcp":
        return expected(file.parent / "runs.pt")
    if not zipfile.is_zipfile(file):
        return asked(data)
    names = []
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            content = archive.read(info)
            if info.filename.endswith(".pkl") or "system" in content.decode("latin1"):
                names += asked(content)
    return names


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True)
    for name, data in pickles().items():
        (out / name).write_bytes(data)
    archives(out)
    answers = {file.name: sorted(set(expected(file))) for file in sorted(out.iterdir())}
    made = {"torch": torch.__version__, "python": platform.python_version(), "files": answers}
    (out / "expected.json").write_text(json.dumps(made, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
