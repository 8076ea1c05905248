"""Examples in the documentation have the real output of their commands, and every command in it can be
called.

``python -m tests.test_readme`` writes the outputs again.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kdissect.cli.root import root

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, *sorted((ROOT / "kdissect" / "help").glob("*.md"))]
MOST_WORDS = 900
"""The most words of the README."""
EXAMPLE = re.compile(r"(<!-- run -->\n```console\n\$ (kdissect [^\n]*)\n)(.*?)(```\n)", re.S)
SHELL = re.compile(r"```sh\n(.*?)```", re.S)


def output_of(command: str) -> str:
    words = [sys.executable, "-m", *shlex.split(command)]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return run.stdout


def examples() -> list[tuple[str, str]]:
    """Commands, with their output in the documents."""
    return [(match[2], match[3]) for path in DOCUMENTS for match in EXAMPLE.finditer(path.read_text())]


def commands() -> Iterator[str]:
    """Every call of kdissect in a shell block of a document."""
    for path in DOCUMENTS:
        for block in SHELL.findall(path.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                for part in re.split(
                    r"\||&&", re.sub(r"'[^']*'", lambda quoted: quoted[0].replace("|", "¦"), line)
                ):
                    if found := re.match(
                        r"\s*(?:sudo )?(?:\S*/)?kdissect (?!\[)(.*)", part.partition("  #")[0]
                    ):
                        yield found[1]


@pytest.mark.parametrize(("command", "shown"), examples())
def test_an_example_prints_what_is_shown(command: str, shown: str) -> None:
    assert output_of(command) == shown


def test_there_are_examples() -> None:
    assert len(examples()) >= 8


@pytest.mark.parametrize("words", sorted(set(commands())))
def test_a_command_has_the_options_that_a_document_gives_it(words: str) -> None:
    command: click.Command = root
    context = click.Context(root, info_name="kdissect")
    rest = shlex.split(words)
    if rest[0] not in root.list_commands(context):
        rest.insert(0, "read")
    while isinstance(command, click.Group):
        found = command.get_command(context, rest.pop(0))
        assert found is not None
        command, context = found, click.Context(found, context)
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    given = {word.partition("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)}
    assert given <= known


def test_the_readme_is_short() -> None:
    assert len(README.read_text().split()) <= MOST_WORDS


if __name__ == "__main__":
    for document in DOCUMENTS:
        before = document.read_text()
        after = EXAMPLE.sub(lambda m: m[1] + output_of(m[2]) + m[4], before)
        document.write_text(after)
