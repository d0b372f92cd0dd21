"""Ranks that reach each other over ``torch.distributed``: gloo groups of the engine's own, so that its
calls never mix with those of the training, and end after a deadline of their own.

They are not made by ``new_group``. It wants all ranks of the world, or names the group by how many groups
this rank has made, which is not the same on all.

A group whose call has failed is in a state that nobody knows: an answer may still come. So a fabric fails
once, and on all ranks: the rank where it happens says so in the store where the job has met, and the others
look there while they wait, and before each call. The next call of all opens another fabric, by the next
number."""

from __future__ import annotations

import copy
import ctypes
import datetime
import hashlib
import json
import os
import struct
import time
import weakref
from typing import Any, Callable, Optional, Sequence

import torch
import torch.distributed as dist

from reprise.errors import Error

_HEAD = 4096  # bytes that every member sends first: a length, and as much as fits
_INLINE = _HEAD - 8
_FEW = 8  # members or more for each that has more to send: then these broadcast it, one after another
_GRACE_SECONDS = 2.0  # that a wait goes on after its end was decided, since the others may be about to end it
_AGAIN_SECONDS = 60.0  # longest wait for the others after an error
_LISTEN_SECONDS = 0.5  # between two looks at the store
# Earlier releases (2.4 and 2.7 were tried) hold all calls of a group to the timeout with which it was made.
_CALLS_TAKE_NEW_TIMEOUT = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 11)
_PAUSE_SECONDS = (20e-6, 1e-3)  # shortest and longest between two looks at a call


class Used(Exception):
    """An earlier job of these ranks has used this number, in a store that outlived it."""


class Channel:
    """What ranks tell each other in the store where the job has met: who has come, and why a rank has left.
    ``number`` tells the fabrics of one name apart, which the ranks open one after another; ``again`` says that
    one has failed before."""

    def __init__(self, name: str, number: int, ranks: Sequence[int], again: bool) -> None:
        kind = hashlib.sha256(name.encode()).hexdigest()[:16]
        self.store = dist.PrefixStore(f"reprise/{kind}/{number}", dist.distributed_c10d._get_default_store())
        self.again = again
        self.ranks = list(ranks)
        self.rank = self.ranks.index(dist.get_rank())

    def is_used(self) -> bool:
        """True if all had met by this number before this rank has come: that was in an earlier world, whose store
        this one has."""
        try:
            everyone = self._store_of(range(len(self.ranks)))
            return everyone.check(["count"]) and everyone.add("count", 0) >= len(self.ranks)
        except RuntimeError:
            return False

    def left(self) -> Optional[Error]:
        """Returns why a rank has left, or None, also if the store is gone: it may end before the ranks do."""
        try:
            return _error_in(self.store.get("left")) if self.store.check(["left"]) else None
        except RuntimeError:
            return None

    def leave(self, failure: BaseException) -> Error:
        """Tells the others that this rank takes no part any more. Returns what all get to hear: the failure
        of the first that has left."""
        told = json.dumps(_told(failure, self.rank)).encode()
        try:
            return _error_in(self.store.compare_set("left", "", told.decode()))
        except RuntimeError:
            return _error_in(told)

    def meet(
        self, members: Sequence[int], seconds: float, interrupted: Callable[[], bool]
    ) -> dist.PrefixStore:
        """Waits until all members have come, once for each set of members. Returns a store of their own.
        Throws Used, DEADLINE with the ranks that are missing, INTERRUPTED, or why one has left."""
        store = self._store_of(members)
        store.set(f"here/{self.rank}", "")
        if store.add("count", 1) > len(members):
            raise Used
        ends, listens, pause = time.monotonic() + seconds, 0.0, 1e-3
        while store.add("count", 0) < len(members):
            now = time.monotonic()
            if interrupted():
                raise _interrupted(self.rank)
            if now > listens:
                listens = now + _LISTEN_SECONDS
                why = self.left()
                if why is not None:
                    raise why
            if now > ends:
                missing = [self.ranks[one] for one in members if not store.check([f"here/{one}"])]
                what = f"ranks {missing} did not come within {seconds:g} s; if they have ended, restart the job"
                raise Error("DEADLINE", what, rank=self.rank)
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return store

    def _store_of(self, members: Sequence[int]) -> dist.PrefixStore:
        return dist.PrefixStore(",".join(map(str, members)), self.store)


class TorchFabric:
    """Collective over the ranks of a channel. ``interrupted`` is asked while this rank waits.

    Attributes:
        failure: why it can't be used any more, or None.
        patience_seconds: longest wait in one call, if that is less than the deadline.
    """

    def __init__(self, channel: Channel, deadline_seconds: float, interrupted: Callable[[], bool]) -> None:
        self.channel = channel
        self.failure: Optional[Error] = None
        self.patience_seconds: Optional[float] = None
        self._seconds = deadline_seconds
        self._interrupted = interrupted
        self._groups: dict[tuple[int, ...], dist.ProcessGroupGloo] = {}
        self._unfinished: list = []  # calls that were given up; torch still writes to their memory
        self.rank = channel.rank
        self.size = len(channel.ranks)
        self._everyone = tuple(range(self.size))
        _fabrics.add(self)
        self._group_of(self._everyone)

    def gather(
        self, members: Sequence[int], mine: bytes, failure: Optional[BaseException] = None
    ) -> list[bytes]:
        """Returns the bytes of all members, which differ in length. Members are ranks of the group. Throws
        PEER_FAILED, DEADLINE, INTERRUPTED if this rank is to stop, or why another rank has left; then all later
        calls throw the same. The others hear of the failure that this rank has already, or of what is thrown."""
        if self.failure is not None:
            raise copy.copy(self.failure)
        try:
            return self._gather(tuple(members), mine)
        except BaseException as error:
            raise self.leave(failure or error) from error

    def agree(self, failure: Optional[Exception]) -> None:
        """Throws on all ranks if one has a failure: an Error with its rank, or on the rank itself what it was. That
        one waits for the others no longer than a minute: they may be in a call of their own, that it is not in."""
        told = b"" if failure is None else json.dumps(_told(failure, self.rank)).encode()
        patience = self.patience_seconds
        if failure is not None:
            self.patience_seconds = min(_AGAIN_SECONDS, patience or _AGAIN_SECONDS)
        try:
            answers = self.gather(self._everyone, told, failure)
        except Exception as error:
            if failure is None:
                raise
            raise failure from error
        finally:
            self.patience_seconds = patience
        if failure is not None:
            raise failure
        first = next((answer for answer in answers if answer), None)
        if first is not None:
            self.failure = self.channel.left()  # the one with the failure may not have waited for this rank
            raise _error_in(first)

    def leave(self, failure: BaseException) -> Error:
        """Ends the fabric on all ranks. Returns what this rank is to throw: its own failure if that is more than
        that it waited in vain."""
        said = self.failure
        if said is None:
            said = self.channel.leave(failure)
            if isinstance(failure, Error) and failure.code not in ("PEER_FAILED", "DEADLINE"):
                said = failure
            self.failure = said
        return copy.copy(said)

    def close(self) -> None:
        """Ends the groups while the interpreter is whole."""
        if self._unfinished:  # whose threads would be waited for, and whose memory is still written
            _keep_forever(self._groups)
            _keep_forever(self._unfinished)
        self._groups, self._unfinished = {}, []
        self.failure = self.failure or Error("USAGE", "this job was closed", rank=self.rank)

    def _gather(self, members: tuple[int, ...], mine: bytes) -> list[bytes]:
        group = self._group_of(members)
        head = struct.pack("<q", len(mine)) + mine[:_INLINE]
        heads = self._all_gather(group, head, _HEAD, len(members))
        lengths = [struct.unpack_from("<q", part)[0] for part in heads]
        answers = [part[8 : 8 + length] for part, length in zip(heads, lengths)]
        long = [place for place, length in enumerate(lengths) if length > _INLINE]
        if len(long) > 1 and _FEW * len(long) > len(members):
            tails = self._all_gather(group, mine[_INLINE:], max(lengths) - _INLINE, len(members))
            for place in long:
                answers[place] += tails[place][: lengths[place] - _INLINE]
        else:  # in a gather, each would have room for as many bytes of all
            for place in long:
                is_own = members[place] == self.rank
                content = _tensor_of(mine) if is_own else _room_for(lengths[place])
                self._broadcast(group, content, place)
                answers[place] = mine if is_own else _bytes_of(content)
        return answers

    def _group_of(self, members: tuple[int, ...]) -> dist.ProcessGroupGloo:
        """Collective over the members at the first call."""
        group = self._groups.get(members)
        if group is None:
            again = members == self._everyone and self.channel.again
            seconds = min(self._seconds, _AGAIN_SECONDS) if again else self._seconds
            try:
                store = self.channel.meet(members, seconds, self._interrupted)
                # It can't be interrupted, and one that has come may have left again.
                most = _AGAIN_SECONDS if _CALLS_TAKE_NEW_TIMEOUT else self._seconds
                timeout = datetime.timedelta(seconds=min(self._seconds, most))
                group = dist.ProcessGroupGloo(store, members.index(self.rank), len(members), timeout=timeout)
                group._set_default_timeout(datetime.timedelta(seconds=self._seconds))  # type: ignore[attr-defined]
            except RuntimeError as error:
                raise self._error_of("the ranks could not meet; if one has ended, restart the job", error)
            self._groups[members] = group
        return group

    def _all_gather(self, group: dist.ProcessGroupGloo, mine: bytes, size: int, count: int) -> list[bytes]:
        own = _tensor_of(mine.ljust(size, b"\0"))
        all_ = [_room_for(size) for _ in range(count)]
        self._finish("all_gather", lambda: group.allgather([all_], [own]), (own, all_))  # type: ignore[attr-defined]
        return [_bytes_of(part) for part in all_]

    def _broadcast(self, group: dist.ProcessGroupGloo, content: torch.Tensor, root: int) -> None:
        options = dist.BroadcastOptions()
        options.rootRank, options.rootTensor = root, 0
        self._finish("broadcast", lambda: group.broadcast([content], options), content)  # type: ignore[attr-defined]

    def _finish(self, name: str, begin: Callable[[], dist.Work], memory: Any) -> None:
        try:
            call = begin()
            why = self._wait(call)
            if why is not None:
                self._unfinished.append((call, memory))
                raise why
            call.wait()  # throws what went wrong
        except RuntimeError as error:
            raise self._error_of(name, error)

    def _error_of(self, what: str, error: RuntimeError) -> Error:
        if isinstance(error, Error):
            return error
        line = " ".join(f"{type(error).__name__}: {error}".split())
        late = "timed out" in line.lower() or "timeout" in line.lower()
        return Error("DEADLINE" if late else "PEER_FAILED", f"{what}: {line}", rank=self.rank)

    def _wait(self, call: dist.Work) -> Optional[Error]:
        """Waits for a call. Returns why it was given up, if it was."""
        pause, longest = _PAUSE_SECONDS
        began = time.monotonic()
        listens = began + _LISTEN_SECONDS
        why: Optional[Error] = None
        gives_up = 0.0
        while not call.is_completed():
            now = time.monotonic()
            if why is not None:
                if now > gives_up:
                    return why
            elif self._interrupted():
                why = _interrupted(self.rank)
            elif self.patience_seconds is not None and now > began + self.patience_seconds:
                what = f"the other ranks did not come within {self.patience_seconds:g} s"
                why = Error("DEADLINE", what, rank=self.rank)
            elif now > listens:
                listens = now + _LISTEN_SECONDS
                why = self.channel.left()
            if why is not None and gives_up == 0:
                gives_up = now + _GRACE_SECONDS
            time.sleep(pause)
            pause = min(2 * pause, longest)
        return None


def _room_for(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, device="cpu")


def _tensor_of(content: bytes) -> torch.Tensor:
    tensor = _room_for(len(content))
    ctypes.memmove(tensor.data_ptr(), content, len(content))
    return tensor


def _bytes_of(tensor: torch.Tensor) -> bytes:
    return ctypes.string_at(tensor.data_ptr(), tensor.numel())  # torch does not bring numpy along


def _interrupted(rank: int) -> Error:
    return Error("INTERRUPTED", f"rank {rank} was told to stop while it waited for the others", rank=rank)


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
    message = f"rank {rank} has failed: {type(failure).__name__}: {failure}"
    return {"code": "PEER_FAILED", "message": message, "rank": rank}


def _error_in(told: bytes) -> Error:
    return Error(**json.loads(told))


_fabrics: weakref.WeakSet[TorchFabric] = weakref.WeakSet()


def _keep_forever(what: Any) -> None:
    """Sees to it that this is never destroyed, not even when the interpreter ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(what))


def _keep_all() -> None:
    for fabric in _fabrics:
        _keep_forever(fabric._groups)


# A forked child must not end its parent's groups: it shares their sockets, and doesn't have their threads.
os.register_at_fork(after_in_child=_keep_all)
