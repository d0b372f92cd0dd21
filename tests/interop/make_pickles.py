#!/usr/bin/env python3
"""Composes pickles by hand and asks Python for each if it loads: make_pickles.py > tests/data/vectors/pickles.tsv

Each line has a name, the pickle in hexadecimal digits, and 'loads' or the error. Tests hold what Reprise says against it.
"""
import pickle
import struct
import sys


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<I", len(data)) + data


def name(path):
    module, _, last = path.rpartition(".")
    return b"c" + module.encode() + b"\n" + last.encode() + b"\n"


def number(value):
    return b"K" + bytes([value]) if 0 <= value < 256 else pickle.dumps(value, 2)[2:-1]


def call(path, *arguments):
    return name(path) + b"(" + b"".join(arguments) + b"tR"


def new(path, state=b""):
    return name(path) + b")\x81" + (state + b"b" if state else b"")


def data(value):
    return b"C" + bytes([len(value)]) + value


DCP = "torch.distributed.checkpoint.metadata."
CHUNK = new(DCP + "ChunkStorageMetadata", b"}" + text("offsets") + b")s")
INDEX = name(DCP + "MetadataIndex") + b")\x81"

ROWS = {
    # What a constructor refuses.
    "range with step 0": call("builtins.range", number(0), number(5), number(0)),
    "range of text": call("builtins.range", text("5")),
    "range of nothing": call("builtins.range"),
    "range of four": call("builtins.range", *[number(1)] * 4),
    "range": call("builtins.range", number(0), number(5), number(2)),
    "slice of nothing": call("builtins.slice"),
    "int of letters": call("builtins.int", text("zz")),
    "int of a float's text": call("builtins.int", text("1.5")),
    "int of None": call("builtins.int", b"N"),
    "int of text": call("builtins.int", text(" -1_000 ")),
    "int of two underscores": call("builtins.int", text("1__0")),
    "float of letters": call("builtins.float", text("1.5x")),
    "float of text": call("builtins.float", text(" 1e400 ")),
    "float of nan": call("builtins.float", text("nan")),
    "float of a list": call("builtins.float", b"]"),
    "complex of a list": call("builtins.complex", b"]"),
    "complex": call("builtins.complex", number(1), number(2)),
    "bool of two": call("builtins.bool", b"N", b"N"),
    "bytes of text": call("builtins.bytes", text("a")),
    "bytes of a negative": call("builtins.bytes", number(-1)),
    "bytearray of None": call("builtins.bytearray", b"N"),
    "bytearray in latin-1": call("builtins.bytearray", text("\xff"), text("latin-1")),
    "set of a number": call("builtins.set", number(3)),
    "frozenset of two": call("builtins.frozenset", b"]", b"]"),
    "list of a number": call("builtins.list", number(3)),
    "dict of a number": call("builtins.dict", number(3)),
    "tuple of None": call("builtins.tuple", b"N"),
    "deque of a number": call("collections.deque", number(3)),
    "deque of a negative length": call("collections.deque", b"]", number(-1)),
    "deque": call("collections.deque", b"]", number(3)),
    "Counter of a number": call("collections.Counter", number(3)),
    "defaultdict of a number": call("collections.defaultdict", number(3)),
    "defaultdict of a class": call("collections.defaultdict", name("builtins.list")),
    "set of a list": call("builtins.set", b"]]a"),
    "set of a tuple with a list": call("builtins.set", b"]" + number(3) + b"\x86"),
    "frozenset of a tuple with a list": call("builtins.frozenset", number(3) + b"]" + b"\x86"),
    "frozenset of a tuple": call("builtins.frozenset", number(3) + b"N" + b"\x86"),
    "tensor of nothing": call("torch._utils._rebuild_tensor_v2"),
    "parameter of one": call("torch._utils._rebuild_parameter", b"N"),
    "parameter with state of three": call("torch._utils._rebuild_parameter_with_state", b"N", b"\x89", b"N"),
    "tensor of a type of nothing": call("torch._tensor._rebuild_from_type_v2"),
    "timedelta too long": call("datetime.timedelta", number(1 << 31)),
    "timedelta that carries": call("datetime.timedelta", number(999999999), number(86400)),
    "timedelta": call("datetime.timedelta", number(-999999999), number(0), number(0)),
    "timezone of a number": call("datetime.timezone", number(3)),
    "timezone of a day": call("datetime.timezone", call("datetime.timedelta", number(1))),
    "timezone": call("datetime.timezone", call("datetime.timedelta", number(0), number(3600))),
    "date of month 13": call("datetime.date", data(bytes([7, 234, 13, 1]))),
    "date of day 30 of February": call("datetime.date", number(2026), number(2), number(30)),
    "date": call("datetime.date", data(bytes([7, 234, 2, 3]))),
    "date in latin1": call("datetime.date", call("_codecs.encode", text("\x07\xea\x02\x03"), text("latin1"))),
    "datetime cut short": call("datetime.datetime", data(bytes(9))),
    "datetime of a bad zone": call("datetime.datetime", data(bytes([7, 234, 2, 3, 4, 5, 6, 0, 0, 7])), number(1)),
    "time of hour 24": call("datetime.time", data(bytes([24, 0, 0, 0, 0, 0]))),
    "encode beyond latin1": call("_codecs.encode", text("€"), text("latin1")),
    "device of nothing": call("torch.device"),
    "device 01": call("torch.device", text("cuda:01")),
    "device of a negative": call("torch.device", text("cuda"), number(-1)),
    "device": call("torch.device", text("cuda"), number(3)),
    "device that is unknown": call("torch.device", text("nosuch")),
    "layout that is unknown": call("torch.serialization._get_layout", text("torch.nosuch")),
    "Size of text": call("torch.Size", text("3")),
    "Size": call("torch.Size", number(3) + b"\x85"),
    "a dtype that is called": call("torch.float32"),
    "a dtype that is made": name("torch.float32") + b")\x81",
    "a function that is made": name("copyreg._reconstructor") + b")\x81",
    "numpy dtype zz": call("numpy.dtype", text("zz")),
    "numpy dtype": call("numpy.dtype", text("f4"), b"\x89", b"\x88") + b"(" + number(3) + text("<") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb",
    "numpy dtype of a bad order": call("numpy.dtype", text("f4"), b"\x89", b"\x88") + b"(" + number(3) + text("x") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb",
    "random state of an unknown generator": call("numpy.random._pickle.__randomstate_ctor", text("nosuch")),
    "signal 9999": call("signal.Signals", number(9999)),
    "signal 15": call("signal.Signals", number(15)),
    "UUID without a number": new("uuid.UUID", b"}"),
    "UUID": new("uuid.UUID", b"}" + text("int") + number(3) + b"s"),
    "BytesIO of text": new("_io.BytesIO", b"(" + text("a") + number(0) + b"Nt"),
    "BytesIO at a negative": new("_io.BytesIO", b"(" + data(b"a") + number(-1) + b"Nt"),
    "BytesIO": new("_io.BytesIO", b"(" + data(b"a") + number(0) + b"Nt"),
    "reconstructor of one": call("copyreg._reconstructor", text("x")),
    "reconstructor of texts": call("copyreg._reconstructor", text("x"), text("y"), b"N"),
    "reconstructor": call("copyreg._reconstructor", name("argparse.Namespace"), name("builtins.object"), b"N") + b"}b",
    "a key that is a namespace": b"}" + new("argparse.Namespace") + b"Ns",
    "a set of a bytearray": b"\x8f(" + call("builtins.bytearray") + b"\x90",
    "a set of a numpy array": b"\x8f(" + call("numpy._core.multiarray._reconstruct", name("numpy.ndarray"), number(0) + b"\x85", data(b"b")) + b"\x90",
    # What Python loads, however unusual.
    "two values left": number(1) + number(2),
    "a mark left": b"(" + number(2),
    "PROTO inside": b"\x80\x02" + number(2),
    "another PROTO inside": b"\x80\x04" + number(2),
    "PROTO that is unknown": b"\x80\x09" + number(2),
    "memo with a gap": number(1) + b"r" + struct.pack("<I", 5000) + b"0j" + struct.pack("<I", 5000),
    "memo with two gaps": number(1) + b"r" + struct.pack("<I", 9000) + b"r" + struct.pack("<I", 7000) + b"\x940h\x02",
    "OBJ without arguments": b"(" + name("collections.OrderedDict") + b"o",
    "OBJ with arguments": b"(" + name("builtins.range") + number(3) + b"o",
    "OBJ with arguments that are refused": b"(" + name("builtins.range") + text("3") + b"o",
    "OBJ of nothing": b"(o",
    "OBJ of a number": b"(" + number(3) + b"o",
    "INST without arguments": b"(icollections\nOrderedDict\n",
    "INST with arguments": b"(" + text("a") + b"ipathlib\nPurePosixPath\n",
    "INST of a function": b"(" + text("a") + text("latin1") + b"i_codecs\nencode\n",
    "INST without a mark": b"icollections\nOrderedDict\n",
    "EXT1": b"\x82\x01",
    "BUILD of a record": new("argparse.Namespace", b"}" + text("a") + number(1) + b"s"),
    "POP of the mark": number(1) + b"(0",
    "an empty FRAME": b"\x95" + struct.pack("<Q", 0) + number(1),
    "a FRAME beyond the end": b"\x95" + struct.pack("<Q", 99) + number(1),
    "DUP": number(1) + b"2\x86",
    "INT": b"I12\n",
    "UNICODE": b"Va\n",
    "LIST": b"(" + number(1) + b"l",
    "GET of text": number(1) + b"p7\n0g7\n",
    # Objects of .metadata.
    "metadata: a write item of an unknown type": call("torch.distributed.checkpoint.planner.WriteItemType", number(130)),
    "metadata: a write item's type": call("torch.distributed.checkpoint.planner.WriteItemType", number(2)),
    "metadata: an unknown memory format": call(DCP + "_MEM_FORMAT_ENCODING", number(9)),
    "metadata: a key that is a chunk": b"}" + CHUNK + b"Ns",
    "metadata: a key that is an index without fqn": b"}" + INDEX + b"Ns",
    "metadata: a key that is an index of a list": b"}" + INDEX + b"}" + text("fqn") + b"]sbNs",
    "metadata: a key that is an index": b"}" + INDEX + b"}" + text("fqn") + text("a") + b"sbNs",
    "metadata: properties of four fields": new(DCP + "TensorProperties", b"(" + name("torch.float32") + b"NNNt"),
    "metadata: properties without a format": new(DCP + "TensorProperties", b"(" + name("torch.float32") + b"NN" + number(0) + b"Nt"),
    "metadata: properties": new(DCP + "TensorProperties", b"(" + name("torch.float32") + b"NN" + call(DCP + "_MEM_FORMAT_ENCODING", number(0)) + b"Nt"),
}


def pickled(body):
    return b"\x80\x02" + body + b"."


def answer(body):
    try:
        pickle.loads(pickled(body))
        return "loads"
    except Exception as error:
        return type(error).__name__


def lines():
    return [f"{name}\t{pickled(body).hex()}\t{answer(body)}" for name, body in ROWS.items()]


if __name__ == "__main__":
    sys.stdout.write("\n".join(lines()) + "\n")
