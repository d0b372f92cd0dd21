"""Flips bits of a small checkpoint. Where `reprise verify` still accepts it, torch and Python's zipfile must read the same as Reprise."""
import io
import os
import pathlib
import pickle
import subprocess
import zipfile
import zlib

import torch
import torch.distributed.checkpoint as dcp

from content import Different, Skipped, dtype_name, raw, tree

SECONDS_MAX = 240


def hexed(key):
    return key.encode("utf-8", "surrogatepass").hex()


def zip_records(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for info in archive.infolist():
            if info.CRC == 0:
                del info.CRC  # torch writes 0 if checksums are switched off; then nothing is compared
        return {info.filename: archive.read(info) for info in archive.infolist()}


def torch_value(data):
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=False)


def tensor_words(key, tensor):
    dims = "".join(f"{n}," for n in tensor.shape)
    return f"T {hexed(key)} {dtype_name(tensor)} {dims} {zlib.crc32(raw(tensor))};"


class Truth:
    """Knows the content of the undamaged files, and reads damaged files with torch."""

    def __init__(self, folder):
        self.folder = folder
        self.files = {p.name: p.read_bytes() for p in folder.iterdir()}
        metadata = pickle.loads(self.files[".metadata"])
        self.items = [(info.relative_path, info.offset, info.offset + info.length) for info in metadata.storage_data.values()]
        self.items += [("common.pt", 0, len(self.files["common.pt"]))]
        self.known = {item: self.read(self.files[item[0]][item[1]:item[2]]) for item in self.items}
        self.objects = {i.fqn: tree(torch_value(self.files[s.relative_path][s.offset:s.offset + s.length]))
                        for i, s in metadata.storage_data.items() if not hasattr(metadata.state_dict_metadata[i.fqn], "chunks")}

    @staticmethod
    def read(data):
        """Returns the bytes of each record as zipfile reads them, and the value as torch reads it."""
        return zip_records(data), tree(torch_value(data))

    def payload_reads_as_before(self, file, data, at):
        hit = [item for item in self.items if item[0] == file and item[1] <= at < item[2]]
        return all(self.read(data[item[1]:item[2]]) == self.known[item] for item in hit)

    def account(self, folder):
        """Describes what torch.distributed.checkpoint loads, in the form of tests/hostile/flip_survivors_test.cpp."""
        reader = dcp.FileSystemReader(folder)
        metadata = reader.read_metadata()
        state = {}
        for key, entry in metadata.state_dict_metadata.items():
            state[key] = torch.zeros(entry.size, dtype=entry.properties.dtype) if hasattr(entry, "chunks") else None
        dcp.load(state, storage_reader=reader, no_dist=True)
        tensors = sorted(k for k, v in metadata.state_dict_metadata.items() if hasattr(v, "chunks"))
        objects = sorted(state.keys() - set(tensors))
        line = "".join(tensor_words(k, state[k]) for k in sorted(tensors, key=lambda k: k.encode("utf-8", "surrogatepass")))
        for key in objects:
            same = [known for known, value in self.objects.items() if value == tree(state[key])]
            line += f"O {hexed(key)} {hexed(same[0]) if same else 'other'};"
        return line + "C same"


def make(folder):
    state = {"layers": {"weight": torch.arange(6, dtype=torch.float32).reshape(2, 3)}, "step": torch.tensor(7),
             "schedule": {"lr": 0.125, "names": ["a", None]}}
    os.makedirs(folder)
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    torch.save({"iteration": 7, "args": {"lr": 0.125}}, folder / "common.pt")
    (folder / "metadata.json").write_text('{"sharded_backend": "torch_dist", "sharded_backend_version": 1, '
                                          '"common_backend": "torch", "common_backend_version": 1}')


def survivors(reprise, folder, answer, seconds=SECONDS_MAX, **options):
    program = pathlib.Path(reprise.program).with_name("test_hostile")
    if not program.exists():
        raise Skipped(f"not run: {program} is not built")
    environment = {**os.environ, "REPRISE_FLIPS_OF": str(folder), "REPRISE_FLIPS_OUT": str(answer),
                   **{f"REPRISE_FLIPS_{name.upper()}": str(value) for name, value in options.items()}}
    done = subprocess.run([program, "--gtest_filter=FlipSurvivors.*", "--gtest_brief=1"], env=environment, capture_output=True, text=True,
                          timeout=seconds, cwd=folder)  # the folder of an earlier case may be gone
    if done.returncode != 0:
        raise Different(done.stdout[-1500:] + done.stderr[-500:])
    rows = [line.split("\t") for line in answer.read_text().splitlines()]
    return rows[0][2], rows[1:-1], rows[-1]


def flips_that_verify_passes(reprise, folder):
    """For each flipped bit that verify accepts, two other readers must read the same as Reprise."""
    checkpoint = folder / "saved"
    make(checkpoint)
    truth = Truth(checkpoint)
    undamaged, rows, (_, tried, survived) = survivors(reprise, checkpoint, folder / "survivors.txt")
    if truth.account(checkpoint) != undamaged:
        raise Different(f"undamaged: {truth.account(checkpoint)} | {undamaged}")
    if int(tried) != 8 * sum(map(len, truth.files.values())):
        raise Different(f"{tried} bits were tried of {8 * sum(map(len, truth.files.values()))}")
    wrong = []
    for file, bit, account, _ in rows:
        at, mask = int(bit) // 8, 1 << int(bit) % 8
        data = bytearray(truth.files[file])
        data[at] ^= mask
        try:
            if file == ".metadata":
                (checkpoint / file).write_bytes(data)
                read = truth.account(checkpoint)
                same = read == account
            elif file == "metadata.json":
                same, read = account == undamaged, ""
            else:
                same, read = account == undamaged and truth.payload_reads_as_before(file, bytes(data), at), "other bytes"
        except Exception as error:
            same, read = False, f"{type(error).__name__}: {error}"
        if not same:
            wrong.append(f"{file} byte {at} bit {int(bit) % 8}: {read[:200]} | {account[:200]}")
    (checkpoint / ".metadata").write_bytes(truth.files[".metadata"])
    if wrong:
        raise Different(f"{len(wrong)} of {survived} flips that verify calls whole are refused or read otherwise:\n" + "\n".join(wrong[:40]))
    return len(rows), f"{int(tried):,} bits flipped, {len(rows):,} of them whole by verify and read alike by torch and zipfile"


def cases():
    yield "flipped bits that verify passes", flips_that_verify_passes
