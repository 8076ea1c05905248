"""Shell completion of options and arguments that have no fixed choices.

click calls a function for each of them, with the beginning of the word. A word may hold several items (``-e
api,lat``, ``-z srt,bro``, a whole filter); the functions return whole words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from kdissect.present.columns import Table

Complete = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _beginning(incomplete: str, offered: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    """The offered items that begin with the word, ignoring case."""
    low = incomplete.lower()
    return [_item(text, meaning) for text, meaning in offered if text.lower().startswith(low)]


def _item(text: str, meaning: str) -> CompletionItem:
    from click.shell_completion import CompletionItem

    return CompletionItem(text, help=meaning)


def a_filter(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ``-Y``. If a path has only one continuation, the words after it are offered at once: a shell
    would treat a single word as finished."""
    from kdissect.filter.complete import complete

    inside = _names_inside(context)
    found = complete(incomplete, inside=inside)
    while len(found) == 1 and found[0].text.endswith("."):
        incomplete = incomplete[: found[0].start] + found[0].text
        found = complete(incomplete, inside=inside)
    return [_item(incomplete[: each.start] + each.text, each.meaning) for each in found]


def _names_inside(context: click.Context) -> dict[str, str]:
    """The names inside decoded values, by ``--schemas`` and ``--decode-as`` before the cursor, else by the
    configuration. No registry is asked for them."""
    from kdissect.cli.config import Config, load_config
    from kdissect.cli.errors import Wrong

    try:
        config = load_config()
    except Wrong:
        config = Config()
    folders = context.params.get("schemas") or config.schemas
    rules = [*context.params.get("payload_rules", ())]
    rules += [f"{topic}={form}" for topic, form in config.decode_as.items()]
    if not folders and not rules:
        return {}
    from kdissect.model import CaptureError
    from kdissect.payload.schemas import paths_of
    from kdissect.registry.folders import read_schemas
    from kdissect.registry.rules import rule_of

    try:
        schemas = read_schemas(folders)
    except CaptureError:
        return {}
    out = schemas.paths()
    for text in rules:
        try:
            rule = rule_of(text, schemas)
        except ValueError:
            continue
        if rule.message is not None or rule.reader is not None:
            out |= paths_of(rule.reader, rule.message)
    return out


def a_column_of(tables: Mapping[str, Table]) -> Complete:
    """Complete ``-e``: the columns of the table that ``-T`` names, or of the first table without ``-T``."""

    def found(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        name = str(context.params.get("form") or "").partition(".")[0]
        table = tables.get(name) or next(iter(tables.values()))
        return _columns(incomplete, ((column.name, column.meaning) for column in table.columns))

    return found


def a_form(lines: tuple[str, ...], tables: Iterable[str]) -> Complete:
    """Complete ``-T`` for tables with formats: ``ndjson``, ``records``, ``records.csv``."""

    def found(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from kdissect.present.tables import FORMATS

        table, dot, _rest = incomplete.partition(".")
        if dot:
            known = [f"{table}.{form}" for form in FORMATS] if table in tables else []
        else:
            known = [*lines, *FORMATS, *tables]
        return _beginning(incomplete, ((name, "") for name in known))

    return found


def a_rule(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ``--rule`` and ``--id``, which take several rules separated by commas."""
    from kdissect.insight.catalogue import RULES

    before, comma, _rest = incomplete.rpartition(",")
    return _beginning(incomplete, ((f"{before}{comma}{id}", each.page.what) for id, each in RULES.items()))


def a_severity(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a severity of findings."""
    from kdissect.insight.finding import SEVERITIES

    return _beginning(incomplete, ((name, "") for name in SEVERITIES))


def a_category(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete categories of rules, separated by commas."""
    from kdissect.insight.catalogue import RULES

    before, comma, _rest = incomplete.rpartition(",")
    names = dict.fromkeys(each.category for each in RULES.values())
    return _beginning(incomplete, ((f"{before}{comma}{name}", "") for name in names))


def an_error(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of one of Kafka's errors."""
    from kdissect.protocol.errors import errors

    return _beginning(incomplete, ((each.name, each.meaning) for each in errors().values()))


def a_column_of_statistics(
    context: click.Context, _: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete ``-e`` of ``stats``: the columns of the tables that ``-z`` names, else of all."""
    from kdissect.present.statistics import STATISTICS

    asked = [text.partition(",")[0] for text in context.params.get("tables") or ()]
    tables = [STATISTICS[name] for name in asked if name in STATISTICS] or STATISTICS.values()
    found = {column.name: column.meaning for table in tables for column in table.columns}
    return _columns(incomplete, found.items())


def _columns(incomplete: str, known: Iterable[tuple[str, str]]) -> list[CompletionItem]:
    """Complete the last of several columns, which are separated by commas."""
    before, comma, _ = incomplete.rpartition(",")
    return _beginning(incomplete, ((before + comma + name, meaning) for name, meaning in known))


def a_statistic(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ``-z``: a table, or a grouping of its rows."""
    from kdissect.analysis.catalogue import STATISTICS

    before, comma, _rest = incomplete.rpartition(",")
    if not comma:
        return _beginning(incomplete, ((name, "") for name in STATISTICS))
    asked = STATISTICS.get(before.partition(",")[0])
    left = [name for name in asked.groupings if name not in before.split(",")] if asked is not None else []
    return _beginning(incomplete, ((f"{before},{name}", "") for name in left))


def an_api(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of an API."""
    return _beginning(incomplete, _apis())


def a_message_class(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of an API or of another message class."""
    from kdissect.protocol import apis

    return _beginning(incomplete, [*_apis(), *((name, "") for name in apis.data_names())])


def _apis() -> list[tuple[str, str]]:
    from kdissect.protocol import apis

    return [(apis.api_name(key), f"API {key}") for key in apis.api_keys()]


def a_version(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a version of the API or class before it."""
    from kdissect.protocol import apis

    name = str(context.params.get("name") or context.params.get("api") or "")
    try:
        versions = (
            apis.data_versions(name) if name in apis.data_names() else apis.versions(apis.api_key(name))
        )
    except LookupError:
        return []
    return _beginning(incomplete, ((str(version), "") for version in reversed(versions)))


def a_table_of_fields(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the argument of ``kdissect fields``."""
    from kdissect.present.all_tables import ALL_TABLES

    return _beginning(
        incomplete,
        ((name, "") for name in (*ALL_TABLES, "filter", "faults", "errors", "rules", "aliases", "actions")),
    )
