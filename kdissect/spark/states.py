"""States of a stream, which are carried from batch to batch (:mod:`kdissect.spark.stream_state`), in files.

Each batch and capture point has a state in a file of its own. A repeated batch reads and writes the same as
the first time. States are pickled, and loading a pickle can run code. So they are loaded only from files and
folders that belong to the user and that nobody else may write to. In an object store that is unknown, so a
state there is signed with a key that only the user has. The line before the pickle has its format, the
version and the build of kdissect that made it, and its digest.

Only the same build loads the pickle. For others there are two ways:

    trail    The line has the spans of files that the state comes from, and whether TLS secrets were given
             beside them. Without secrets, the same state is made again from the files, if they are there.
    ending   Between the line and the pickle is the ending of the state (:mod:`kdissect.spark.ending`), in
             JSON. With ``--drain``, another build writes it as rows, and connections begin again.
             States of format 4 get theirs from :mod:`kdissect.spark.old_states`. Those of formats 5 to 7
             have none, but the release that wrote them can drain.

A state is drained when all that was open has been written as rows. What is left are plain values in JSON,
which any release of kdissect reads:

    7/NAME.state            what the batch 7 left
    7/draining/NAME.state   the same drained, while rows are written
    7/drained/NAME.state    the same when they all are there: it counts in place of the first
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import pickle
import re
import secrets
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import kdissect
from kdissect.limits import Limits
from kdissect.settings.recent import state_folder
from kdissect.spark import ending, old_states
from kdissect.spark.build import build
from kdissect.spark.ending import Ending
from kdissect.spark.folders import UntrustedError, small_files
from kdissect.spark.storage import join
from kdissect.spark.stream_state import Carried, Drained, Trail

FORMAT = 8
_DRAINED_FORM = 1
_DRAINING, _DRAINED = "draining", "drained"
_SUFFIX = ".state"
_KEY_BYTES = 32
_ANEW = "Begin new tables in another folder"
"""The advice where a state is lost."""
_HEAD = ("format", "kdissect", "point", "bytes", "sha256")
"""Fields of the line before the pickle …"""
_ABOUT = (_DRAINED, "trail", "has_secrets", "ending")
_LATER = ("build", "signed", *_ABOUT)
"""… and fields that older releases did not write."""
_SIGNED = ("format", "kdissect", "build", "point", "sha256", "trail")
"""Fields that a signature covers …"""
_SIGNED_SINCE_7 = (_DRAINED, "has_secrets", "bytes")
"""… those that it also covers since format 7, with the number of the batch …"""
_SIGNED_SINCE_8 = ("ending",)
"""… and since format 8."""


class StateError(Exception):
    """A state cannot be used; the text is one line with the path and what to do."""


class OtherBuildError(StateError):
    """Another build of kdissect wrote it.

    :param path: the state.
    :param maker: the build that wrote it, in words.
    :param trail: the spans to make the state again, if that is possible.
    :param has_secrets: whether TLS secrets were given; None if unknown.
    :param what_to_do: what the user can do, in words.
    :param why: why it cannot be made again, if that is not obvious.
    """

    def __init__(
        self,
        path: str,
        maker: str,
        trail: Trail | None,
        has_secrets: bool | None,
        what_to_do: str,
        why: str = "",
    ) -> None:
        super().__init__(f"{path} was made by {maker}{why}: {what_to_do}")
        self.trail = trail
        self.has_secrets = has_secrets
        self._told = path, maker, trail, has_secrets, what_to_do

    def because(self, why: str) -> OtherBuildError:
        """The same error, with the reason why the state cannot be made again."""
        return OtherBuildError(*self._told, f", and cannot be made again, because {why}")


class States:
    """The folder of a stream's states.

    :param folder: on this machine, or a URI.
    :param key: the key that signs states. It is needed if it is unknown who may write to them.
    :param ends_others: whether a state of another build may be ended, if it cannot be made again.
    :param how_to_end: how the user says so, in words.
    """

    def __init__(
        self,
        folder: str,
        key: bytes | None = None,
        *,
        ends_others: bool = False,
        how_to_end: str = "give the same command once with --drain",
    ) -> None:
        self.folder = folder
        self.ends_others = ends_others
        self._how_to_end = how_to_end
        self._files = small_files(folder)
        self._key = key

    def prepare(self) -> None:
        """Make the folder, or check that it belongs to the user.

        :raises StateError: it does not, or cannot be made.
        """
        try:
            self._files.prepare()
        except OSError as error:
            why = error.strerror or str(error).strip().partition("\n")[0]
            raise StateError(f"{self.folder}: {why}") from None
        self._refuse_others()

    def points(self) -> list[str]:
        """The capture points that have a state, in the order of their names.

        :raises StateError: a state is damaged.
        """
        return sorted({self._head(each)["point"] for each in self._all()})

    def bytes_read(self) -> int:
        """The bytes that were read of the files that still exist, of all capture points.

        :raises StateError: a state is damaged.
        """
        latest: dict[str, _StateFile] = {}
        for each in sorted(self._all()):
            latest[each.base] = each
        return sum(self._head(each)["bytes"] for each in latest.values())

    def last_batch(self) -> int | None:
        """The latest batch that left a state."""
        return max((each.batch for each in self._all()), default=None)

    def last_of(self, point: str, before: int) -> int:
        """The latest batch before another one that left a state of a capture point; otherwise 0."""
        found = self._latest(point, before)
        return 0 if found is None else found.batch

    def load(self, point: str, batch: int) -> Carried | Drained | None:
        """The state that batches before this one left of a capture point; None if there was no such batch.

        :raises OtherBuildError: another build of kdissect wrote it.
        :raises StateError: it is damaged, not signed with this key, or not the user's own.
        """
        found = self._latest(point, batch)
        if found is None:
            return None
        path = join(self.folder, found.name)
        head = self._trusted_head(found, point)
        if _is_of_others(head):
            # The old form does not sign whether secrets were given.
            is_told = self._key is None or not _is_before_7(head)
            has_secrets = head["has_secrets"] if is_told else None
            what_to_do = self._what_to_do({found: head})
            raise OtherBuildError(path, _maker(head), head["trail"], has_secrets, what_to_do)
        data = self._data(found, head)
        if head["drained"] is not None:
            try:
                return ending.drained_of(json.loads(data))
            except (ValueError, TypeError, KeyError):
                raise StateError(f"{path} is damaged: it holds no drained state") from None
        carried = pickle.loads(memoryview(data)[_ending_bytes(head) :])  # it is ours, see above
        assert isinstance(carried, Carried)
        return carried

    def ending(self, point: str, batch: int, limits: Limits) -> tuple[Ending, str] | None:
        """The ending of a state of another build, and which build that is, in words. None if this build
        cannot drain the state.

        :param batch: the state is that of the batches before this one.
        :param limits: for decoding messages.
        :raises StateError: the state is damaged, not signed with this key, or not the user's own.
        """
        found = self._latest(point, batch)
        if found is None:
            return None
        head = self._trusted_head(found, point)
        if not _has_ending(head):
            return None
        data = self._data(found, head)
        try:
            is_old = head["format"] == old_states.FORMAT
            plain = old_states.old_ending(data) if is_old else data[: _ending_bytes(head)]
            return ending.read(plain, limits), _maker(head)
        except (old_states.OldStateError, ValueError) as error:
            path = join(self.folder, found.name)
            raise StateError(f"{path} is damaged, or of an unknown form: {error}") from None

    def of_others(self, batch: int) -> list[str]:
        """The capture points whose state before this batch another version of kdissect made.

        :raises StateError: a state is damaged.
        """
        return [head["point"] for head in self._heads_of_others(self.points(), batch).values()]

    def can_end(self, points: Iterable[str], batch: int) -> bool:
        """Whether all states of other builds that these capture points have before this batch may be ended,
        and are not damaged.

        :raises StateError: a state is damaged.
        """
        heads = self._heads_of_others(points, batch)
        if not self.ends_others or not all(map(_has_ending, heads.values())):
            return False
        return all(self._is_whole(each, head) for each, head in heads.items())

    def what_to_do(self, points: Iterable[str], batch: int) -> str:
        """What the user can do if the states of these capture points cannot be made again, in words.

        :raises StateError: a state is damaged.
        """
        return self._what_to_do(self._heads_of_others(points, batch))

    def save(self, point: str, batch: int, carried: Carried) -> None:
        """Keep the state of a batch. It replaces the state of an earlier try of the batch.

        :raises OSError: it cannot be written.
        """
        pickled = pickle.dumps(carried, pickle.HIGHEST_PROTOCOL)
        plain = ending.ending_of(carried, pickled)
        about = {
            "trail": carried.trail,
            "has_secrets": carried.has_secrets,
            "ending": [ending.FORM, len(plain)],
        }
        name = _StateFile(batch, "", _base_of(point))
        self._write(name, point, carried.bytes_read, plain + pickled, about)

    def drain(self, point: str, batch: int, drained: Drained) -> None:
        """Keep a drained state. It counts after :meth:`end_drain`.

        :raises OSError: it cannot be written.
        """
        data = json.dumps(drained._asdict()).encode()
        size = sum(drained.sizes.values())
        name = _StateFile(batch, _DRAINING, _base_of(point))
        self._write(name, point, size, data, {_DRAINED: _DRAINED_FORM, "has_secrets": False})

    def end_drain(self, batch: int) -> None:
        """Let the drained states count from now on, because everything that was open is written."""
        self._files.move(f"{batch}/{_DRAINING}", f"{batch}/{_DRAINED}")

    def is_drained(self, batch: int) -> bool:
        """Whether a batch left nothing open."""
        return any(each.batch == batch and each.kind == _DRAINED for each in self._all())

    def is_draining(self, batch: int) -> bool:
        """Whether a drain after a batch has begun and has not ended."""
        return any(each.batch == batch and each.kind == _DRAINING for each in self._listed())

    def _write(self, each: _StateFile, point: str, size: int, data: bytes, about: dict[str, Any]) -> None:
        """:param about: further fields of the first line."""
        head = {
            "format": FORMAT,
            "kdissect": kdissect.__version__,
            "build": build(),
            "point": point,
            "bytes": size,
            "sha256": hashlib.sha256(data).hexdigest(),
            **dict.fromkeys(_ABOUT),
            **about,
        }
        if self._key is not None:
            head["signed"] = self._signature(head, each.batch)
        self._files.write(each.name, json.dumps(head).encode() + b"\n" + data)

    def _is_signed(self, head: dict[str, Any], batch: int) -> bool:
        return hmac.compare_digest(self._signature(head, batch), str(head["signed"]))

    def _signature(self, head: dict[str, Any], batch: int) -> str:
        """The signature of the digest of a state, and of the facts that identify it. The format is covered,
        too, so that no new state can pass for an old one."""
        told = [head[name] for name in _SIGNED]
        if not _is_before_7(head):
            told += [batch, *(head[name] for name in _SIGNED_SINCE_7)]
        if head["format"] not in range(8):
            told += [head[name] for name in _SIGNED_SINCE_8]
        assert self._key is not None
        return hmac.digest(self._key, json.dumps(told).encode(), "sha256").hex()

    def forget(self) -> None:
        """Remove states that no later batch needs. The latest two of each capture point stay, because a
        repeat of the latest batch reads the older one again. Unfinished files of killed runs are removed too.
        """
        found = self._listed()
        for base in {each.base for each in found}:
            own = [each for each in found if each.base == base and each.kind != _DRAINING]
            kept = set(sorted({each.batch for each in own})[-2:])
            for each in own:
                if each.batch not in kept:
                    self._files.remove(each.name)
        for batch in {each.batch for each in found if each.kind == _DRAINING}:
            # On other file systems some files may have been moved before it died. They must not count after
            # the others are removed.
            self._files.remove(f"{batch}/{_DRAINED}")
            self._files.remove(f"{batch}/{_DRAINING}")
        self._files.tidy()

    def _listed(self) -> list[_StateFile]:
        names = map(_STATE_FILE.fullmatch, self._files.names())
        return [_StateFile(int(found[1]), found[2] or "", found[3]) for found in names if found]

    def _all(self) -> list[_StateFile]:
        """The states of all capture points, without those of an unfinished drain."""
        found = self._listed()
        # On other file systems files are moved one by one.
        halves = {each.batch for each in found if each.kind == _DRAINING}
        whole = (each for each in found if each.kind != _DRAINING)
        return [each for each in whole if not each.kind or each.batch not in halves]

    def _latest(self, point: str, before: int | None) -> _StateFile | None:
        """The latest state of a capture point from the batches before ``before``."""
        found = [each for each in self._all() if each.base == _base_of(point)]
        if before is not None:
            found = [each for each in found if each.batch < before]
        return max(found, default=None)

    def _head(self, each: _StateFile) -> dict[str, Any]:
        path = join(self.folder, each.name)
        try:
            head: dict[str, Any] = json.loads(self._files.first_line(each.name))
            return {**{name: head[name] for name in _HEAD}, **{name: head.get(name) for name in _LATER}}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StateError(f"{path} is not the state of a stream: {error}") from None

    def _heads_of_others(self, points: Iterable[str], batch: int) -> dict[_StateFile, dict[str, Any]]:
        latest = [self._latest(point, batch) for point in points]
        heads = {each: self._head(each) for each in latest if each is not None}
        return {each: head for each, head in heads.items() if _is_of_others(head)}

    def _what_to_do(self, heads: Mapping[_StateFile, dict[str, Any]]) -> str:
        for each, head in heads.items():
            if not self._is_whole(each, head):
                path = join(self.folder, each.name)
                return f"{path} is damaged, so no build can drain it. {_ANEW}"
        if all(map(_has_ending, heads.values())):
            return f"to go on without it, {self._how_to_end}"
        return "run the build that wrote it once with --drain, then this one"

    def _trusted_head(self, each: _StateFile, point: str) -> dict[str, Any]:
        """The first line of a state, after the checks that protect its user.

        :raises StateError: it is damaged, not signed with this key, or not the user's own.
        """
        self._refuse_others()
        self._refuse_others(each.name)
        path = join(self.folder, each.name)
        head = self._head(each)
        if self._key is not None and not self._is_signed(head, each.batch):
            raise StateError(
                f"{path} was not signed with this key, so anybody may have written it: give the key of the"
                " machine that wrote it with --state-key"
            )
        if self._key is not None and head["drained"] is not None and _is_before_7(head):
            raise StateError(
                f"{path} says that it is drained; its old form does not sign that: start a new stream with"
                " another --checkpoint and --out"
            )
        if head["point"] != point:
            raise StateError(f"{path} is damaged: it is the state of another capture point")
        return head

    def _data(self, each: _StateFile, head: dict[str, Any]) -> bytes:
        """What follows the first line.

        :raises StateError: it is damaged.
        """
        data = self._files.read(each.name).partition(b"\n")[2]
        if hashlib.sha256(data).hexdigest() != head["sha256"]:
            path = join(self.folder, each.name)
            raise StateError(f"{path} is damaged: its digest does not fit. {_ANEW}")
        return data

    def _is_whole(self, each: _StateFile, head: dict[str, Any]) -> bool:
        """Whether what follows the first line is not damaged."""
        try:
            self._data(each, head)
        except StateError:
            return False
        return True

    def _refuse_others(self, name: str = "") -> None:
        try:
            self._files.refuse_others(name)
        except UntrustedError as error:
            raise StateError(str(error)) from None


class _StateFile(NamedTuple):
    """The name of the file of a state. A drained state sorts after the state that it replaces."""

    batch: int
    kind: str
    """``drained``, ``draining``, or empty."""
    base: str

    @property
    def name(self) -> str:
        """The name relative to the folder of states."""
        return "/".join(filter(None, (str(self.batch), self.kind, self.base)))


_STATE_FILE = re.compile(rf"([0-9]+)/(?:({_DRAINING}|{_DRAINED})/)?([^/]+{re.escape(_SUFFIX)})")


def state_key(path: str | None, environment: Mapping[str, str] = os.environ) -> bytes:
    """The key that signs this user's states on other file systems.

    :param path: the file with it; None for the user's own, which is made if it is missing.
    :raises StateError: the file cannot be read, or other users can read it.
    """
    file = Path(path) if path is not None else state_folder(environment) / "spark.key"
    try:
        if path is None and not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial = file.with_name(f"{file.name}.{os.getpid()}")
            partial.touch(mode=0o600)
            partial.write_bytes(secrets.token_hex(32).encode() + b"\n")
            with suppress(FileExistsError):
                os.link(partial, file)
            partial.unlink()
        if os.name == "posix" and os.stat(file).st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise StateError(f"{file}: others can read it, and sign states with it: chmod 600 {file}")
        key = file.read_bytes().strip()
    except OSError as error:
        raise StateError(f"{file}: the key of states cannot be read: {error.strerror}") from None
    if len(key) < _KEY_BYTES:
        raise StateError(f"{file}: a key has {_KEY_BYTES} bytes or more")
    return key


def _base_of(point: str) -> str:
    """The base name of the states of a capture point."""
    return hashlib.sha256(point.encode("utf-8", "surrogateescape")).hexdigest()[:24] + _SUFFIX


def _is_before_7(head: dict[str, Any]) -> bool:
    """Whether a state's signature leaves out the fields of :data:`_SIGNED_SINCE_7`."""
    return head["format"] in range(7)


def _is_of_others(head: dict[str, Any]) -> bool:
    """Whether this release cannot load a state. All releases can load drained states."""
    if head["drained"] is not None:
        return bool(head["drained"] != _DRAINED_FORM)
    maker = head["format"], head["kdissect"], head["build"]
    return maker != (FORMAT, kdissect.__version__, build())


def _has_ending(head: dict[str, Any]) -> bool:
    """Whether this release can drain a state that it cannot load."""
    if head["format"] == old_states.FORMAT:
        return head["drained"] is None
    return isinstance(head["ending"], list) and head["ending"][:1] == [ending.FORM]


def _ending_bytes(head: dict[str, Any]) -> int:
    """The size of the ending of a state, which precedes the pickle."""
    return 0 if head["ending"] is None else int(head["ending"][1])


def _maker(head: dict[str, Any]) -> str:
    """The version that made a state that this release cannot load, in words."""
    if head["kdissect"] == kdissect.__version__:
        return f"another build of kdissect {kdissect.__version__}"
    return f"kdissect {head['kdissect']}, this is {kdissect.__version__}"
