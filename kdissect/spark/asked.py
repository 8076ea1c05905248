"""What runs that add to the same tables ask for. All of them must ask for the same.

Rows of another capture point, with other columns or other options, would not fit the rows that are there.
Much of it is also part of the state that one run hands to the next, and would not change there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from kdissect.spark.folders import small_files
from kdissect.spark.settings import TableSettings
from kdissect.spark.storage import join

FILE = "asked.json"
"""In the folder of a stream, or of a query: what its first start asked for."""
_OF_A_RUN = ("keylog", "rsa_key", "progress", "tasks")
"""The settings that may be others in each run: rows do not depend on them, or secrets have come."""
_NAMES = {"ports": "-d", "topics": "topics", "limits": "limits", "shown_fields": "shown_fields"}
"""What a user knows a setting by, where it is no option of that name, or comes from the configuration."""
_MOST = 60
"""Characters of a value that are told."""


def told(tables: Sequence[str], by: Sequence[str], settings: TableSettings) -> dict[str, Any]:
    """What a run asks for, as it is kept: ``tables`` and ``by`` are lists, and ``options`` has settings as
    text, by name. Those that may be others in each run are left out.

    :param by: the columns by which tables are partitioned.
    """
    usual = TableSettings()
    kept = settings._replace(**{name: getattr(usual, name) for name in _OF_A_RUN})
    return {"tables": list(tables), "by": list(by), "options": kept.options()}


def difference(before: Mapping[str, Any], now: Mapping[str, Any], *, of_commands: bool = True) -> str | None:
    """What differs from the runs before, and which option to give; None if nothing differs. Tables may come
    in another order. Both are as :func:`told` gives them.

    :param of_commands: whether options are told as those of commands, not of the data source.
    """
    if set(before["tables"]) != set(now["tables"]):
        return _line("--table", sorted(now["tables"]), sorted(before["tables"]))
    if before["by"] != now["by"]:
        return _line("--partition-by", now["by"], before["by"])
    old, new = before["options"], now["options"]
    for name in TableSettings._fields:
        if name not in _OF_A_RUN and old.get(name) != new.get(name):
            word = _NAMES.get(name, f"--{name.replace('_', '-')}") if of_commands else name
            return _line(word, _value(new.get(name)), _value(old.get(name)))
    return None


def is_told(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether it has the form that :func:`told` gives."""
    if not isinstance(value, dict):
        return False
    tables, by, options = (value.get(name) for name in ("tables", "by", "options"))
    words = [tables, by, list(options.values()) if isinstance(options, dict) else None]
    return all(isinstance(each, list) and all(isinstance(word, str) for word in each) for each in words)


def first(folder: str, now: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for when this folder was new, which is now if it tells nothing.

    :param now: as :func:`told` gives it.
    :raises OSError: it cannot be written or read, or is damaged.
    """
    files = small_files(folder)
    try:
        found: dict[str, Any] = json.loads(files.read(FILE))
        if is_told(found):
            return found
    except FileNotFoundError:
        files.write(FILE, json.dumps(now).encode())
        return dict(now)
    except ValueError:
        pass
    raise OSError(f"{join(folder, FILE)} is damaged")


def _line(name: str, now: Sequence[str], before: Sequence[str]) -> str:
    is_now = f"is {_short(now)}" if now else "is not given"
    return f"{name} {is_now}; give {_short(before)}" if before else f"{name} {is_now}; leave it out"


def _value(text: str | None) -> Sequence[str]:
    return [] if text is None else [text]


def _short(words: Sequence[str]) -> str:
    text = ", ".join(words)
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
