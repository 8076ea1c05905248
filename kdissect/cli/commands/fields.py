"""``kdissect fields``: the columns of every table, their types, aliases and meanings; the kinds of faults;
the rules of explain; the actions of the screens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from kdissect.cli.completing import a_table_of_fields
from kdissect.cli.errors import Wrong
from kdissect.cli.output import TextOutput, open_output
from kdissect.faults import KINDS
from kdissect.filter import wireshark
from kdissect.filter.computed import MACROS
from kdissect.filter.field import FieldKind
from kdissect.filter.fields import names, own_fields
from kdissect.filter.paths import OLD_NAMES
from kdissect.present.all_tables import ALL_TABLES
from kdissect.present.columns import EXCHANGES, Table
from kdissect.present.nearest import nearest
from kdissect.present.tables import json_line
from kdissect.protocol import apis
from kdissect.protocol.errors import errors
from kdissect.settings.actions import actions_of
from kdissect.settings.list_columns import OWN
from kdissect.settings.places import PLACES

_LIST, _FILTER = "list", "filter"


@click.command()
@click.argument(
    "pattern",
    required=False,
    metavar="[TABLE | filter | list | faults | errors | rules | aliases | actions | WORD]",
    shell_complete=a_table_of_fields,
)
@click.option("-T", "form", type=click.Choice(("text", "ndjson")), default="text")
def command(pattern: str | None, form: str) -> None:
    """List columns: of all tables, of one table, or all that have a given word in their name or meaning.

    \b
    kdissect fields filter    fields of display filters that are neither columns nor Kafka's fields
    kdissect fields list      columns that only the list on the screen has
    kdissect fields faults    the kinds of faults
    kdissect fields errors    Kafka's error codes: what they mean, how grave they are, when they are routine
    kdissect fields rules     the rules of explain, with the severity and the meaning of their findings
    kdissect fields aliases   other names of columns and APIs
    kdissect fields actions   actions of the screens and their keys, for [keymap] in the configuration
    """
    rows = list(_rows(pattern))
    if not rows and pattern:
        words = [*ALL_TABLES, *(word for table in ALL_TABLES.values() for word in table.words()), *names()]
        raise Wrong(f"no column has {pattern!r} in its name or meaning{nearest(pattern, words)}")
    with open_output(None) as file:
        if form == "ndjson":
            for row in rows:
                file.write(json_line(row))
            return
        output = TextOutput(file)
        table = None
        for row in rows:
            if row["table"] != table:
                if table is not None:
                    output.line("")
                table = row["table"]
                output.line(table)
            also = f" (also {', '.join(row['aliases'])})" if row["aliases"] else ""
            output.line(f"  {row['name']:<26} {row['type']:<9} {row['meaning']}{also}")


def _rows(pattern: str | None) -> Iterator[dict[str, Any]]:
    if pattern == "aliases":
        yield from _alias_rows()
        return
    if pattern == "errors":
        yield from _error_rows()
        return
    if pattern == "rules":
        yield from _rule_rows()
        return
    if pattern == "actions":
        yield from _action_rows()
        return
    for name, table in ALL_TABLES.items():
        if pattern == _FILTER:
            break  # a table has a column of that name
        is_meant = pattern in (None, name, name.removeprefix("stats "))
        yield from _table_rows(name, table, None if is_meant else pattern)
    yield from _list_rows(pattern)
    yield from _filter_rows(pattern)
    for kind, (layer, meaning) in KINDS.items():
        if pattern in (None, "faults") or _has(pattern, kind, layer, meaning):
            yield {"table": "kinds of faults", "name": kind, "type": layer, "meaning": meaning, "aliases": []}


def _error_rows() -> Iterator[dict[str, Any]]:
    """Kafka's error codes."""
    for error in errors().values():
        if error.error_class:
            bound = f" Routine: {error.bound.words()}." if error.bound is not None else ""
            yield {
                "table": "Kafka's errors",
                "name": error.name,
                "type": error.error_class,
                "meaning": f"{error.code}: {error.meaning}{bound}",
                "aliases": [],
            }


def _rule_rows() -> Iterator[dict[str, Any]]:
    """The rules of ``explain``, by category."""
    from kdissect.insight.catalogue import RULES  # the import takes long, and no other function here needs it

    for rule in sorted(RULES.values(), key=lambda each: each.category):  # a category keeps its order
        yield {
            "table": f"rules: {rule.category}",
            "name": rule.id,
            "type": rule.severity,
            "meaning": rule.page.what.partition("\n")[0],
            "aliases": [],
        }


def _action_rows() -> Iterator[dict[str, Any]]:
    for place, heading in PLACES.items():
        for action in actions_of(place):
            yield {
                "table": f"actions: {heading.lower()}",
                "name": action.id,
                "type": action.keys,
                "meaning": action.help,
                "aliases": [],
            }


def _table_rows(name: str, table: Table, word: str | None) -> Iterator[dict[str, Any]]:
    if word in ALL_TABLES:
        return
    for column in table.columns:
        if word is None or _has(word, column.name, column.meaning, *column.aliases):
            yield {
                "table": name,
                "name": column.name,
                "type": column.type,
                "meaning": column.meaning,
                "aliases": list(column.aliases),
            }


def _list_rows(word: str | None) -> Iterator[dict[str, Any]]:
    """Columns that only the list on the screen has."""
    for name, (columns, meaning) in OWN.items():
        if word in (None, _LIST) or _has(word, name, meaning):
            instead = f"has {', '.join(columns)} instead" if columns else "does not have it"
            meaning = f"{meaning}; only for columns in the configuration; -e {instead}"
            yield {"table": _LIST, "name": name, "type": "string", "meaning": meaning, "aliases": []}


def _filter_rows(word: str | None) -> Iterator[dict[str, Any]]:
    """The fields of filters that are no columns."""
    columns = {column.name for column in EXCHANGES.columns if column.name != "faults"}
    rows = [(field.name, field.kind.name.lower(), field.meaning, field.aliases) for field in own_fields()]
    rows += [(name, FieldKind.FLAG.name.lower(), meaning, ()) for name, (_, meaning) in MACROS.items()]
    for name, kind, meaning, aliases in rows:
        if name not in columns and (word in (None, _FILTER) or _has(word, name, meaning, *aliases)):
            yield {
                "table": "filter",
                "name": name,
                "type": kind,
                "meaning": meaning,
                "aliases": list(aliases),
            }


def _alias_rows() -> Iterator[dict[str, Any]]:
    for name, table in ALL_TABLES.items():
        yield from (row for row in _table_rows(name, table, None) if row["aliases"])
    for key in apis.api_keys():
        row = apis.api_summary(key)
        if row.also:
            meaning = "older name of the API" if len(row.also) == 1 else "older names of the API"
            yield {
                "table": "APIs",
                "name": row.name,
                "type": "",
                "meaning": meaning,
                "aliases": list(row.also),
            }
    for (api, side), renamed in OLD_NAMES.items():
        for old, new in renamed.items():
            yield {
                "table": "Kafka's fields",
                "name": f"{api[0].lower()}{api[1:]}.{side}.{new}",
                "type": "",
                "meaning": "older name of the field, after the API",
                "aliases": [old],
            }

    for name, meaning in wireshark.names():
        yield {"table": "Wireshark's fields", "name": name, "type": "", "meaning": meaning, "aliases": []}


def _has(word: str | None, *texts: str) -> bool:
    return word is not None and word not in ALL_TABLES and any(word.lower() in text.lower() for text in texts)
