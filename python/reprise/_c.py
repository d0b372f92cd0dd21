"""The engine's C interface (``reprise/c.h``) by ctypes. Calls release the interpreter's lock."""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path

from .errors import Error

ABI_VERSION = 3
LIBRARY_NAME = "libreprise_c.so"
ANY_COPY = -1

ALONE, CALLBACKS = 0, 1
DEVICE, HOST = 0, 1
WHEN_QUEUED = 1
CHECKSUMS = {"crc32": 0, "none": 1, "crc32+sha256": 2}
READ_BACK = {"before_older_goes": 0, "always": 1, "never": 2}
PLANNED = ("fresh", "replanned", "reused")
RAISE_ALL, RAISE_UNEXPECTED, RETURN_UNEXPECTED, RETURN_ALL = 0, 1, 5, 6

Interrupted = ctypes.CFUNCTYPE(c_int32, c_void_p)
AllGather = ctypes.CFUNCTYPE(
    c_int32, c_void_p, POINTER(c_int32), c_size_t, c_void_p, c_size_t, c_void_p
)
Put = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_char_p)
Get = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, POINTER(c_char_p))
Texts = POINTER(c_char_p)


class Sized(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class ErrorView(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("code", c_int32),
        ("rank", c_int32),
        ("offset", c_int64),
        ("key", c_char_p),
        ("file", c_char_p),
        ("message", c_char_p),
        ("what", c_char_p),
    ]


class JobOptions(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("root", c_char_p),
        ("deadline_ns", c_int64),
        ("threads", c_int32),
        ("device", c_int32),
        ("fabric", c_int32),
        ("rank", c_int32),
        ("size", c_int32),
        ("unused", c_int32),
        ("context", c_void_p),
        ("interrupted", Interrupted),
        ("all_gather", AllGather),
        ("address", c_char_p),
        ("job_name", c_char_p),
        ("bind", c_char_p),
        ("meet_deadline_ns", c_int64),
        ("put", Put),
        ("get", Get),
        ("cuda_library", c_char_p),
    ]


class SaveOptions(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("directory", c_char_p),
        ("step", c_int64),
        ("has_step", c_int32),
        ("checksums", c_int32),
        ("step_names", c_char_p),
        ("keep", c_int32),
        ("refuse_existing", c_int32),
        ("staging_bytes", c_uint64),
        ("batch_bytes", c_uint64),
        ("returns", c_int32),
        ("read_back", c_int32),
        ("structure", c_char_p),
        ("refuse_unequal", c_int32),
        ("compare_tensors", c_int32),
        ("stream", c_void_p),
    ]


class UnequalCopy(ctypes.Structure):
    _fields_ = [
        ("key", c_char_p),
        ("offset", POINTER(c_int64)),
        ("ndim", c_size_t),
        ("holders", POINTER(c_int32)),
        ("holder_count", c_size_t),
        ("writer", c_int32),
        ("unused", c_int32),
    ]


class SaveResult(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("directory", c_char_p),
        ("bytes", c_uint64),
        ("tensors", c_uint64),
        ("objects", c_uint64),
        ("staging_bytes", c_uint64),
        ("bound_staging", c_uint64),
        ("bound_empty", c_uint64),
        ("plan_signature", c_uint64),
        ("planned", c_int32),
        ("waited_for_staging", c_int32),
        ("unequal", POINTER(UnequalCopy)),
        ("unequal_count", c_size_t),
        ("log", Texts),
        ("log_count", c_size_t),
    ]


class LoadOptions(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("directory", c_char_p),
        ("step_names", c_char_p),
        ("excused", Texts),
        ("excused_count", c_size_t),
        ("strictness", c_int32),
        ("verify_checksums", c_int32),
        ("newest_whole", c_int32),
        ("read_once", c_int32),
        ("if_any", c_int32),
        ("unused", c_int32),
        ("staging_bytes", c_uint64),
        ("stream", c_void_p),
    ]


class LoadResult(Sized):
    _fields_ = [
        ("struct_size", c_size_t),
        ("found", c_int32),
        ("has_step", c_int32),
        ("step", c_int64),
        ("directory", c_char_p),
        ("tensors", c_uint64),
        ("objects", c_uint64),
        ("elements", c_uint64),
        ("bytes_read", c_uint64),
        ("bytes_for_all", c_uint64),
        ("bytes_needed", c_uint64),
        ("peak_staging", c_uint64),
        ("bound_staging", c_uint64),
        ("bound_empty", c_uint64),
        ("metadata_bytes", c_uint64),
        ("records_verified", c_uint64),
        ("not_stored", Texts),
        ("not_stored_count", c_size_t),
        ("not_requested", Texts),
        ("not_requested_count", c_size_t),
        ("excused", Texts),
        ("excused_count", c_size_t),
        ("fell_back_from", Texts),
        ("fell_back_from_count", c_size_t),
        ("damaged", POINTER(c_int64)),
        ("damaged_count", c_size_t),
        ("log", Texts),
        ("log_count", c_size_t),
    ]


_HANDLE = POINTER(c_void_p)
_PACKED = [c_void_p, c_void_p, c_size_t, c_char_p, c_size_t]
# Name: result (None: nothing; int: a status) and arguments.
_CALLS = {
    "rp_abi_version": (c_int32, []),
    "rp_version": (c_char_p, []),
    "rp_code_name": (c_char_p, [c_int32]),
    "rp_last_error": (POINTER(ErrorView), []),
    "rp_gathered_put": (c_int32, [c_void_p, c_size_t, c_char_p, c_size_t]),
    "rp_gathered_fail": (c_int32, [c_void_p, c_int32, c_char_p]),
    "rp_job_open": (c_int32, [POINTER(JobOptions), _HANDLE]),
    "rp_job_use_device": (c_int32, [c_void_p, c_int32]),
    "rp_job_free": (None, [c_void_p]),
    "rp_state_new": (c_int32, [_HANDLE]),
    "rp_state_free": (None, [c_void_p]),
    "rp_dtype": (c_int32, [c_char_p, POINTER(c_int32)]),
    "rp_state_add_packed": (c_int32, _PACKED),
    "rp_state_set_paths": (c_int32, _PACKED),
    "rp_state_add_bytes": (c_int32, [c_void_p, c_char_p, c_char_p, c_size_t, c_int32]),
    "rp_state_bytes": (c_int32, [c_void_p, c_char_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "rp_state_allow_other_shape": (c_int32, [c_void_p, c_char_p]),
    "rp_state_set_common": (c_int32, [c_void_p, c_char_p, c_size_t]),
    "rp_state_common": (c_int32, [c_void_p, POINTER(c_void_p), POINTER(c_size_t)]),
    "rp_state_digests": (c_int32, [c_void_p, c_void_p, c_void_p, POINTER(c_uint64), c_size_t]),
    "rp_begin_save": (c_int32, [c_void_p, c_void_p, POINTER(SaveOptions), _HANDLE]),
    "rp_save_all": (c_int32, [c_void_p, c_void_p, POINTER(SaveOptions), _HANDLE]),
    "rp_save_wait_for_staging": (c_int32, [c_void_p]),
    "rp_save_poll": (c_int32, [c_void_p, POINTER(c_int32)]),
    "rp_save_finish": (c_int32, [c_void_p, POINTER(SaveResult)]),
    "rp_save_free": (None, [c_void_p]),
    "rp_load_all": (
        c_int32,
        [c_void_p, c_void_p, POINTER(LoadOptions), _HANDLE, POINTER(LoadResult)],
    ),
    "rp_load_free": (None, [c_void_p]),
}


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """Returns the engine's library: the file that REPRISE_LIBRARY names, or the one beside this package.
    Throws ImportError if it is not there, or too old for this package."""
    path = os.environ.get("REPRISE_LIBRARY") or str(Path(__file__).parent / LIBRARY_NAME)
    try:
        loaded = ctypes.CDLL(path)
        for name, (result, arguments) in _CALLS.items():
            call = getattr(loaded, name)
            call.restype, call.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"the engine's library can't be loaded: {error}. The package is {Path(__file__).parent}; "
            "the wheel reprise-ckpt has the library in it, and REPRISE_LIBRARY names another"
        ) from error
    if loaded.rp_abi_version() < ABI_VERSION:
        raise ImportError(
            f"{path} has version {loaded.rp_abi_version()} of the C interface, "
            f"and this package needs {ABI_VERSION}"
        )
    return loaded


@functools.lru_cache(maxsize=None)
def numbers() -> dict[str, int]:
    """Returns the numbers of errors by their names."""
    names = {number: _text(library().rp_code_name(number)) for number in range(1, 256)}
    return {name: number for number, name in names.items() if not name.startswith("UNKNOWN_")}


def _text(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def last_error() -> Error:
    """Returns the error of this thread's last failed call."""
    view = library().rp_last_error().contents
    return Error(
        _text(library().rp_code_name(view.code)),
        _text(view.message),
        rank=view.rank if view.rank >= 0 else None,
        key=_text(view.key),
        file=_text(view.file),
        offset=view.offset if view.offset >= 0 else None,
        what=_text(view.what),
    )


def check(status: int) -> None:
    """Throws the error that a call returned."""
    if status != 0:
        raise last_error()


def texts(pointers, count: int) -> tuple[str, ...]:
    return tuple(_text(pointers[i]) for i in range(count))
