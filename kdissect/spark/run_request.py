"""The request of runs that add to the same tables. It must be the same for all of them.

Rows of another capture point, with other columns or other options, would not fit the existing rows. Much of
the request is also part of the state that one run leaves for the next, and would not change there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from kdissect.spark.folders import small_files
from kdissect.spark.settings import TableSettings
from kdissect.spark.storage import join

FILE = "asked.json"
"""The file, in the folder of a stream or a query, with the request of its first start."""
_OF_A_RUN = ("keylog", "rsa_key", "progress", "tasks")
"""Settings that may differ from run to run: rows do not depend on them, or new secrets have come."""
_NAMES = {"ports": "-d", "topics": "topics", "limits": "limits", "shown_fields": "shown_fields"}
"""The user's names of settings that have another name as an option, or that come from the configuration."""
_MOST = 60
"""The most characters of a value in a message."""


def stored_request(tables: Sequence[str], by: Sequence[str], settings: TableSettings) -> dict[str, Any]:
    """The stored form of the request of a run: ``tables`` and ``by`` are lists, and ``options`` has settings
    as text, by name. Settings that may differ from run to run are left out.

    :param by: the columns by which tables are partitioned.
    """
    usual = TableSettings()
    kept = settings._replace(**{name: getattr(usual, name) for name in _OF_A_RUN})
    return {"tables": list(tables), "by": list(by), "options": kept.options()}


def difference(before: Mapping[str, Any], now: Mapping[str, Any], *, of_commands: bool = True) -> str | None:
    """The difference from the runs before, and the option to give; None if they are the same. The order of
    tables does not matter. Both requests are in the form of :func:`stored_request`.

    :param of_commands: whether to name options as commands have them, and not as the data source has them.
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


def is_stored_request(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a value has the form of :func:`stored_request`."""
    if not isinstance(value, dict):
        return False
    tables, by, options = (value.get(name) for name in ("tables", "by", "options"))
    words = [tables, by, list(options.values()) if isinstance(options, dict) else None]
    return all(isinstance(each, list) and all(isinstance(word, str) for word in each) for each in words)


def first(folder: str, now: Mapping[str, Any]) -> dict[str, Any]:
    """The request of the first start in this folder. If the folder has none, it is this one.

    :param now: a request in the form of :func:`stored_request`.
    :raises OSError: the file cannot be written or read, or is damaged.
    """
    files = small_files(folder)
    try:
        found: dict[str, Any] = json.loads(files.read(FILE))
        if is_stored_request(found):
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
