"""``kdissect schema``: the known Kafka messages, and the import of others from a kafka-clients jar."""

from __future__ import annotations

import re
from pathlib import Path

import click

from kdissect.cli.completing import a_message_class, a_version
from kdissect.cli.errors import Unreadable, Wrong, complain
from kdissect.cli.group import HelpfulGroup
from kdissect.cli.output import TextOutput, open_output
from kdissect.present.nearest import nearest
from kdissect.present.schemas import (
    APIS,
    CLASSES,
    api_lines,
    class_lines,
    struct_object,
    versions_text,
)
from kdissect.present.tables import json_line
from kdissect.present.writers import table_writer
from kdissect.protocol import apis
from kdissect.protocol.describe import describe
from kdissect.protocol.library import user_folder
from kdissect.protocol.schema import Struct, data_struct, message_struct
from kdissect.wording import plural

MOST_HALVES = 10
"""The most names in the line about APIs without their request or response. A jar may have thousands."""


@click.group(cls=HelpfulGroup)
def command() -> None:
    """Kafka's messages, field by field."""


_form = click.option("-T", "form", type=click.Choice(("text", "ndjson", "csv", "tsv")), default="text")


@command.command("list")
@click.option(
    "--all", "classes", is_flag=True, help="List the other message classes instead: headers, records …"
)
@_form
def list_apis(classes: bool, form: str) -> None:
    """Every API with its versions."""
    with open_output(None) as file:
        if form == "text":
            output = TextOutput(file)
            for line in class_lines() if classes else api_lines():
                output.line(line)
            return
        writer = table_writer(form, CLASSES if classes else APIS, file)
        for row in apis.data_names() if classes else map(apis.api_summary, apis.api_keys()):
            writer.write(row)
        writer.close()


@command.command()
@click.argument("name", metavar="API | KEY | CLASS", shell_complete=a_message_class)
@click.argument("version", type=int, required=False, shell_complete=a_version)
@click.option(
    "-k",
    "--kind",
    type=click.Choice(("request", "response")),
    help="Show only the request, or only the response.",
)
@click.option("-T", "form", type=click.Choice(("text", "ndjson")), default="text")
def show(name: str, version: int | None, kind: str | None, form: str) -> None:
    """Print the fields of an API's messages, or of another message class, in one version.

    The default is the newest version.
    """
    structs = _structs(name, version, kind)
    with open_output(None) as file:
        if form == "ndjson":
            for struct in structs:
                file.write(json_line(struct_object(struct)))
            return
        output = TextOutput(file)
        for at, struct in enumerate(structs):
            if at:
                output.line("")
            for line in describe(struct):
                output.line(line)


def _structs(name: str, version: int | None, kind: str | None) -> list[Struct]:
    word = re.fullmatch(r"(\w+?)(Request|Response)", name, re.IGNORECASE)
    name = next((each for each in apis.data_names() if each.lower() == name.lower()), name)
    if name in apis.data_names():
        return [data_struct(name, _version(name, version, apis.data_versions(name)))]
    try:
        key = int(name) if name.isdecimal() else apis.api_key(word[1] if word else name)
        versions = apis.versions(key)
    except LookupError:
        known = [*map(apis.api_name, apis.api_keys()), *apis.data_names()]
        raise Wrong(f"there is no API or message class {name!r}{nearest(name, known)}") from None
    if word and kind is None:
        kind = word[2].lower()
    chosen = _version(apis.api_name(key), version, versions)
    kinds = [kind] if kind else ["request", "response"]
    try:
        return [message_struct(key, chosen, each) for each in kinds]
    except LookupError as error:
        raise Wrong(str(error.args[0])) from None


def _version(name: str, version: int | None, versions: range) -> int:
    if version is None:
        return versions[-1]
    if version not in versions:
        raise Wrong(f"{name} has no version {version}; there are {versions_text(versions)}")
    return version


@command.command("import")
@click.argument("source", metavar="JAR | FOLDER")
@click.option("--release", metavar="X.Y.Z", help="Kafka release, if the source does not say it.")
@click.option(
    "--to", "target", metavar="FOLDER", help="Folder to write to, instead of the user's definitions."
)
@click.option(
    "--vendor",
    metavar="NAME",
    help="Vendor of the definitions, if not Kafka. They are added beside Kafka's own.",
)
def import_definitions(source: str, release: str | None, target: str | None, vendor: str | None) -> None:
    """Take in Kafka's own definitions from a kafka-clients jar or a folder of its JSON files.

    kdissect merges them with its own. If both define a version, the newer release counts.
    """
    from zipfile import BadZipFile

    from kdissect.protocol import importing

    if release is not None and not re.fullmatch(r"\d+(\.\d+)+", release):
        raise Wrong(f"--release {release}: a Kafka release is needed, such as 4.1.0")
    if vendor is not None and not re.fullmatch(r"[A-Za-z0-9][\w-]{0,39}", vendor, re.ASCII):
        raise Wrong(f"--vendor {vendor!r}: letters, digits and hyphens, 40 at most")
    folder = Path(target) if target else user_folder()
    try:
        name = None if vendor is None else vendor.lower()
        done = importing.import_definitions(Path(source), folder, release, vendor=name)
    except BadZipFile:
        raise Unreadable(f"{source}: is a damaged jar") from None
    except OSError as error:
        raise Unreadable(f"{error.filename or source}: {error.strerror or error}") from None
    except ValueError as error:
        raise Unreadable(str(error)) from None
    whose = vendor or "Kafka"
    new = f"{plural(len(done.written), 'file')} written to {folder}" if done.written else "nothing new"
    click.echo(
        f"{whose} {done.release}: {plural(done.classes, 'message class', 'message classes')} read, {new}"
    )
    if done.kafkas:
        others = plural(done.kafkas, "message class", "message classes")
        complain(f"left out, because Kafka has them too: {others}")
    if done.halves:
        more = len(done.halves) - MOST_HALVES
        names = ", ".join(done.halves[:MOST_HALVES]) + (f" and {more:,} more" if more > 0 else "")
        complain(f"left out, because the request or the response is missing: {names}")
