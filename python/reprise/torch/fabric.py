"""Ranks that reach each other over ``torch.distributed``: gloo groups of the engine's own, so that its
calls never mix with those of the training, and end after a deadline of their own.

They are not made by ``new_group``. It wants all ranks of the world, or names the group by how many groups
this rank has made, which is not the same on all."""

from __future__ import annotations

import collections
import datetime
import json
import struct
import time
from typing import Callable, Optional, Sequence

import torch
import torch.distributed as dist

from reprise.errors import Error

_HEAD = 4096  # bytes that every member sends first: a length, and as much as fits
_INLINE = _HEAD - 8
_GIVE_UP_SECONDS = 2.0  # that an interrupted wait goes on, since the others may be about to end it
_PAUSE_SECONDS = (20e-6, 1e-3)  # shortest and longest between two looks at a call


_made: collections.Counter[str] = collections.Counter()  # groups by purpose and ranks; members count alike


def _store() -> dist.Store:
    """Returns the store where the ranks of this job have met."""
    return dist.distributed_c10d._get_default_store()


class TorchFabric:
    """Collective over ``ranks`` of the world. ``interrupted`` is asked while this rank waits. Fabrics of one
    ``purpose`` are made in the same order on all ranks."""

    def __init__(
        self,
        ranks: Sequence[int],
        deadline_seconds: float,
        interrupted: Callable[[], bool],
        purpose: str,
    ) -> None:
        self._ranks = list(ranks)
        self._purpose = purpose
        self._timeout = datetime.timedelta(seconds=deadline_seconds)
        self._interrupted = interrupted
        self._groups: dict[tuple[int, ...], dist.ProcessGroupGloo] = {}
        self._unfinished: list = []  # calls that were given up; torch still writes to their memory
        self.rank = self._ranks.index(dist.get_rank())
        self.size = len(self._ranks)
        self._everyone = tuple(range(self.size))
        self._group_of(self._everyone)

    def gather(self, members: Sequence[int], mine: bytes) -> list[bytes]:
        """Returns the bytes of all members, which differ in length. Members are ranks of the group. Throws
        PEER_FAILED, DEADLINE, or INTERRUPTED if this rank is to stop."""
        group = self._group_of(tuple(members))
        head = struct.pack("<q", len(mine)) + mine[:_INLINE]
        heads = self._all_gather(group, head, _HEAD, len(members))
        lengths = [struct.unpack_from("<q", part)[0] for part in heads]
        rest = max(lengths) - _INLINE
        if rest <= 0:
            return [part[8 : 8 + length] for part, length in zip(heads, lengths)]
        tails = self._all_gather(group, mine[_INLINE:], rest, len(members))
        return [
            part[8:][:length] + tail[: max(0, length - _INLINE)]
            for part, tail, length in zip(heads, tails, lengths)
        ]

    def agree(self, failure: Optional[BaseException]) -> None:
        """Throws on all ranks if one has a failure: an Error with its rank, or on the rank itself what it
        was."""
        told = b"" if failure is None else json.dumps(_told(failure, self.rank)).encode()
        answers = self.gather(self._everyone, told)
        if failure is not None:
            raise failure
        first = next((answer for answer in answers if answer), None)
        if first is not None:
            raise Error(**json.loads(first))

    def close(self) -> None:
        """Ends the groups while the interpreter is whole. Not those of a call that was given up: their
        threads would be waited for."""
        if not self._unfinished:
            self._groups.clear()

    def _group_of(self, members: tuple[int, ...]) -> dist.ProcessGroupGloo:
        """Collective over the members at the first call."""
        group = self._groups.get(members)
        if group is None:
            name = f"{self._purpose}/" + ",".join(str(self._ranks[member]) for member in members)
            _made[name] += 1
            store = dist.PrefixStore(f"reprise/{name}/{_made[name]}", _store())
            group = dist.ProcessGroupGloo(
                store, members.index(self.rank), len(members), timeout=self._timeout
            )
            self._groups[members] = group
        return group

    def _all_gather(self, group: dist.ProcessGroupGloo, mine: bytes, size: int, count: int) -> list[bytes]:
        own = torch.zeros(size, dtype=torch.uint8, device="cpu")
        if mine:
            own[: len(mine)] = torch.frombuffer(bytearray(mine), dtype=torch.uint8)
        all_ = [torch.empty(size, dtype=torch.uint8, device="cpu") for _ in range(count)]
        try:
            call = group.allgather([all_], [own])  # type: ignore[attr-defined]
            if not self._ends(call):
                self._unfinished.append((call, own, all_))
                what = "this rank was told to stop while it waited for the others"
                raise Error("INTERRUPTED", what, rank=self.rank)
            call.wait()  # throws what went wrong
        except RuntimeError as error:
            raise error if isinstance(error, Error) else self._error_of(error)
        return [part.numpy().tobytes() for part in all_]

    def _error_of(self, error: RuntimeError) -> Error:
        line = " ".join(f"{type(error).__name__}: {error}".split())
        late = "timed out" in line.lower() or "timeout" in line.lower()
        return Error("DEADLINE" if late else "PEER_FAILED", f"all_gather: {line}", rank=self.rank)

    def _ends(self, call: dist.Work) -> bool:
        """Waits for a call. False if this rank was told to stop, and the call has not ended since."""
        pause, longest = _PAUSE_SECONDS
        gives_up: Optional[float] = None
        while not call.is_completed():
            if self._interrupted():
                now = time.monotonic()
                gives_up = gives_up or now + _GIVE_UP_SECONDS
                if now > gives_up:
                    return False
            time.sleep(pause)
            pause = min(2 * pause, longest)
        return True


def _told(failure: BaseException, rank: int) -> dict:
    if isinstance(failure, Error):
        return {
            "code": failure.code,
            "message": failure.message,
            "key": failure.key,
            "file": failure.file,
            "offset": failure.offset,
            "rank": rank,
            "what": f"{failure} [rank {rank}]",
        }
    message = f"rank {rank} could not describe its state: {type(failure).__name__}: {failure}"
    return {"code": "PEER_FAILED", "message": message, "rank": rank}
