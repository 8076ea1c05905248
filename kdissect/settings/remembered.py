"""Filters that are kept from one run to the next: used ones and named ones.

Used filters are in a file in the state folder, one on each line, the newest last, readable by the user only.
It does not store filters on fields with secrets, or filters that were used while secrets are shown, because
they may contain a secret. Named filters come from ``[filters]`` of the configuration and from
``filters.toml`` beside it. The screens write only the second file, so that the user's own file is not
rewritten.
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from kdissect.filter.compiled import Filter
from kdissect.filter.field import plain
from kdissect.filter.syntax import LONGEST
from kdissect.present.redact import secret_fields
from kdissect.present.secret_names import suggests_secret

MOST_USED = 200
MOST_BYTES = 1 << 20
"""The most bytes that are read of either file."""


class Remembered:
    """The kept filters. Without files they are forgotten at the end.

    :param used_file: the file for used filters.
    :param named_file: the file for filters that are named on the screens.
    :param named: the named filters of the configuration.
    """

    def __init__(
        self,
        used_file: Path | None = None,
        named_file: Path | None = None,
        named: Mapping[str, str] = {},
    ) -> None:
        self._used_file, self._named_file = used_file, named_file
        self.used = _lines(used_file)
        """The used filters, the newest last."""
        self._own = _table(named_file)
        self._given = dict(named)

    @property
    def named(self) -> dict[str, str]:
        """The filters by name."""
        return self._own | self._given

    def use(self, chosen: Filter) -> None:
        """Remember a used filter."""
        self.used = [*(text for text in self.used if text != chosen.text), chosen.text][-MOST_USED:]
        if self._used_file is not None and not _may_tell_a_secret(chosen):
            kept = [*(text for text in _lines(self._used_file) if text != chosen.text), chosen.text]
            lines = "".join(text + "\n" for text in kept[-MOST_USED:])
            with suppress(OSError):  # a folder without write access must not prevent filtering
                _write(self._used_file, lines)

    def may_keep(self, chosen: Filter) -> bool:
        """Whether the user wrote this filter and it contains no secret."""
        return chosen.text in self.used and not _may_tell_a_secret(chosen)

    def save(self, name: str, chosen: Filter) -> None:
        """Give a filter a name. A filter of the configuration with the same name has precedence.

        :raises OSError: the file cannot be written.
        """
        self._own = {**_table(self._named_file), **self._own, name: chosen.text}
        if self._named_file is not None:
            lines = (f"{_toml(each)} = {_toml(text)}\n" for each, text in sorted(self._own.items()))
            _write(self._named_file, "# Filters that were saved with Ctrl-s.\n" + "".join(lines))


def _may_tell_a_secret(chosen: Filter) -> bool:
    return chosen.options.show_secrets or asks_for_a_secret(chosen)


def asks_for_a_secret(chosen: Filter) -> bool:
    """Whether a filter uses a field with hidden values, so that it may contain a secret."""
    asked = (name.rpartition(".")[2] for name in chosen.fields if "." in name)
    secret = frozenset(map(plain, secret_fields()))
    return any(plain(field) in secret or suggests_secret(field) for field in asked)


def _read(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        with open(path, "rb") as file:
            return file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _lines(path: Path | None) -> list[str]:
    lines = (line for line in _read(path).split("\n") if line.strip() and line.isprintable())
    return [line for line in lines if len(line) <= LONGEST][-MOST_USED:]


def _table(path: Path | None) -> dict[str, str]:
    try:
        found = tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError:
        return {}
    return {name: text for name, text in found.items() if isinstance(text, str)}


def _toml(text: str) -> str:
    """A basic string of TOML: the same as in JSON, except that DEL is escaped too."""
    valid = text.encode("utf-8", "replace").decode("utf-8")
    return json.dumps(valid, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write(path: Path, text: str) -> None:
    """Write a file that only the user can read, completely or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".kdissect-")  # with mode 600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        with suppress(OSError):
            os.unlink(name)
        raise
