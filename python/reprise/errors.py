"""The one exception of the engine."""

from __future__ import annotations

from typing import Optional


class Error(RuntimeError):
    """What went wrong, and where. All ranks of a job get the same one.

    ``str(error)`` is one line: code, message, and the place as far as it is known.

    Attributes:
        code: kind of error, such as "NOT_FOUND", "CHECKSUM", "PEER_FAILED"; "UNKNOWN_<number>" for
            one that this package does not know.
        message: a sentence without code and place.
        rank: rank where it happened, or None.
        key: key of the tensor or object, or "".
        file: path of the file, or "".
        offset: byte offset in the file, or None.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        rank: Optional[int] = None,
        key: str = "",
        file: str = "",
        offset: Optional[int] = None,
        what: str = "",
    ) -> None:
        super().__init__(what or f"{code}: {message}" + (f" [key {key}]" if key else ""))
        self.code = code
        self.message = message
        self.rank = rank
        self.key = key
        self.file = file
        self.offset = offset

    def __reduce__(self):  # so that it survives a pickle, such as of a worker's result
        return _rebuilt, (type(self), str(self), dict(self.__dict__))


def _rebuilt(kind, what, fields):
    error = kind(fields["code"], fields["message"], what=what)
    error.__dict__.update(fields)
    return error
