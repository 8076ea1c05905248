"""Finds our sentences that a tired engineer would read twice.

    python -m tests.english            what is found, line by line
    python -m tests.english --counts   how much is found, place by place

It examines the README, the help pages, the output of ``--help`` and the pages of rules and errors. It also
examines the texts of ``kdissect fields``, and the docstrings and messages of each package.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import cleandoc
from itertools import chain
from pathlib import Path

import click

from tests.cli.run import spawn

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 25
"""The most words of a sentence. Text in backticks counts as one word."""

PATTERNS = {
    "as far as": r"\bas far as\b",
    "of more …": r"\bof more\b",
    "is none": r"\b(is|are|was|were) none\b",
    "is no X of": r"\bthere (is|are) (no|none) of\b",
    "told": r"\bwhat (it|they|kdissect) (is|are) told\b",
    "that were asked for left out": r"\bthat (was|were) asked for,? left out\b",
    "written for, never run": r"\b(written for|never run) (both|there|them)\b|\bby us\b",
    "of which": r"\b(of|from|beside|below) which (a|an|the|it|they|each|one|no)\b",
    "inverted": r"\b(nor|never|not only|only then|so|seldom|rarely|hardly) (is|are|does|do|did|was|were|has"
    r"|have|can|will) (it|they|the|a|an|there|this|that|these|kdissect)\b",
    "begins with Of": r"^of [a-z ]{2,40}, (those|the ones|the newest|the oldest|only|it|they|kdissect)\b"
    r"|(?-i:^Of )",
    "Whoever": r"(?-i:^(Who|Whoever|Whatever|Whose)\b)(?!.*\?$)",
    "What … is": r"(?-i:^What\b)(?!.*\?$)(\S+\s+){8,}",
    "for (because)": r", for (it|they|he|she|there|nobody|nothing|none|we|who)\b",
    "old words": r"\b(whereof|wherein|thereof|therein|therefrom|whereby|lest|hitherto|thus|hence|be it)\b",
    "none but": r"\b(none|nothing|nobody|no one|all|everything) but\b(?! the)",
    "it is … that": r"\bit is (to|by|from|in|at|of) (it|them|him|these|this|those) that\b",
    "the one that it": r"\bthat (it|they) (is|are|was|were) (asked|told|given|made) (of|for|to)\b",
}
"""Patterns of sentences that read like a riddle, or back to front."""

OF_USERS = {
    "is no X": r"(?<!there )\b(is|are) no (?!longer\b|more\b)[a-z]",
    "goes with": r"\bgo(es)? with\b",
    "tells": r"\btells? (how|whether|of|which)\b|\bnot (told|tell)\b|\btold (apart|of|first|last)\b",
    "stands": r"\bstands? (in|alone|there|here|before|behind|where)\b",
    "comes about": r"\b(come|came|comes) (about|to light|of)\b",
    "taken for": r"\btaken? for\b|\btakes? \S+ for Kafka",
    "took no longer": r"\bare no longer \(|\btook no longer\b",
    "anew": r"\banew\b",
    "mend": r"\bmend",
    "not whole": r"\bnot whole\b",
    "line of time": r"\blines? of time\b",
    "where (if)": r"\b(null|none) (where|for lack)\b",
}
"""Words in an unusual sense. They are searched in texts for users, and not in docstrings."""

_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in PATTERNS.items()}
_OF_USERS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in OF_USERS.items()}
_TELLERS = {
    "Wrong",
    "complain",
    "UsageError",
    "BadParameter",
    "echo",
    "warn",
    "warning",
    "Fault",
    "fault",
} | {
    "finding",
    "say",
}
"""Functions and exceptions that take a message for users, beside all raised exceptions."""

_CODE = re.compile(r"``[^`]+``|`[^`\n]+`")
_END = re.compile(r"(?<=[.!?…])[)\]\"'*]*\s+")
_SHORT = re.compile(r"\b(e\.g|i\.e|etc|vs|approx|cf)\.", re.IGNORECASE)
_POINT = re.compile(r"\n\s*(?:[-*•]|\d+\.|:\w[^:\n]*:) ")
_ROW = re.compile(r"\n(?! {4})")
"""The start of a row of a table in the help of click: a backspace above the table marks it."""


@dataclass(frozen=True)
class Text:
    """A text and its place: the group in which its findings are counted, and a name in that group."""

    place: str
    where: str
    text: str
    is_for_users: bool = False
    """Whether it is for users who have never seen the code: a message, an option, a column, a rule."""


@dataclass(frozen=True)
class Found:
    """A sentence, and why it is hard to read."""

    text: Text
    sentence: str
    why: str


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text of paragraphs, lists and tables, each on one line, code as one word."""
    for paragraph in re.split(r"\n\s*\n", "\n" + text):
        for part in (_ROW if "\b" in paragraph else _POINT).split(paragraph):
            line = " ".join(_CODE.sub("X", part).replace("\b", "").split())
            for each in _END.split(_SHORT.sub(r"\1", line)):
                if each:
                    yield each


def words(sentence: str) -> int:
    """The number of words in a sentence."""
    return sum(any(map(str.isalnum, word)) for word in sentence.split())


def found(text: Text) -> Iterator[Found]:
    """The sentences of a text that are hard to read."""
    for sentence in sentences(text.text):
        if (count := words(sentence)) > LONGEST:
            yield Found(text, sentence, f"{count} words")
        for name, pattern in (_PATTERNS | (_OF_USERS if text.is_for_users else {})).items():
            if pattern.search(sentence):
                yield Found(text, sentence, name)


# -- the texts


def texts() -> Iterator[Text]:
    """Every text that is examined."""
    yield from chain(_documents(), _options(), _rules(), _errors(), _fields(), _sources())


def _documents() -> Iterator[Text]:
    pages = sorted((ROOT / "kdissect" / "help").glob("*.md"))
    for path in [ROOT / "README.md", *pages, ROOT / "CHANGELOG.md"]:
        place = "help pages" if path.parent.name == "help" else path.name
        text = re.sub(r"```.*?```", "\n\n", path.read_text("utf-8"), flags=re.S)
        text = re.sub(r"<!--.*?-->|!\[[^\]]*\]\([^)]*\)", "", text)
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
        for line in re.findall(r"(?m)^\|.*\|$", text):
            for cell in line.strip("|").split("|"):
                yield Text(place, path.name, cell)
        text = re.sub(r"(?m)^(\|.*\||#.*)$", "\n", text)
        yield Text(place, path.name, text)


def _options() -> Iterator[Text]:
    """The output of ``--help`` of every command."""
    from kdissect.analysis.catalogue import STATISTICS
    from kdissect.cli.root import COMMANDS, root

    yield from (Text("--help", f"stats -z {name}", each.about) for name, each in STATISTICS.items())
    yield from (Text("--help", name, meaning) for name, meaning in COMMANDS.items())
    waiting: list[tuple[str, click.Command]] = [("kdissect", root)]
    while waiting:
        name, command = waiting.pop()
        for text in (command.help, command.epilog, command.short_help):
            yield Text("--help", name, cleandoc(text or ""))
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                yield Text("--help", f"{name} {parameter.opts[0]}", parameter.help or "")
        if isinstance(command, click.Group):
            context = click.Context(command)
            below = {each: command.get_command(context, each) for each in command.list_commands(context)}
            waiting += [(f"{name} {each}", found) for each, found in below.items() if found is not None]


def _rules() -> Iterator[Text]:
    """The pages of rules."""
    for path in sorted((ROOT / "kdissect" / "insight" / "pages").glob("*.txt")):
        text = re.sub(r"(?m)^(configs|sources|see):.*$", "", path.read_text("utf-8"))
        yield Text("pages of rules", path.stem, re.sub(r"(?m)^(  )?\w+:\s", "\n\n", text), True)


def _errors() -> Iterator[Text]:
    """The pages of errors: causes, and what to do."""
    path = ROOT / "kdissect" / "insight" / "errors.txt"
    for line in re.findall(r"(?m)^[A-Z_]+ \|.*$", path.read_text("utf-8")):
        name, *parts = line.split(" | ")
        yield from (Text("pages of errors", name, text, True) for part in parts for text in part.split("; "))


def _fields() -> Iterator[Text]:
    """The texts of ``kdissect fields``."""
    for pattern in ([], ["errors"], ["actions"]):
        for row in map(json.loads, spawn("fields", *pattern, "-T", "ndjson").lines):
            yield Text("kdissect fields", f"{row['table']} {row['name']}", row["meaning"], True)


_DESCRIBED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
_WITH_TEXT = *_DESCRIBED, ast.Raise, ast.Call
"""The parts of sources that may have a text: a twentieth of all."""


def _sources() -> Iterator[Text]:
    """Docstrings of public names, and messages, by package."""
    for path in sorted((ROOT / "kdissect").rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        place = "/".join(parts[:2]) if len(parts) > 2 else "kdissect"
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, _WITH_TEXT):
                continue
            where = f"{'/'.join(parts)}:{getattr(node, 'lineno', 1)}"
            yield from (Text(place, where, text) for text in _docstring(node))
            yield from (Text(place, where, text, True) for text in _messages(node))


def _docstring(node: ast.AST) -> Iterator[str]:
    if isinstance(node, _DESCRIBED):
        name = getattr(node, "name", "")
        if not name.startswith("_") and (text := ast.get_docstring(node)):
            yield _without_blocks(text)


def _without_blocks(text: str) -> str:
    """A docstring without its indented code."""
    return re.sub(r"(?m)^ {4,}\S.*$", "", re.sub(r"(?m)^(:\w[^\n]*)\n {4,}", r"\1 ", text))


def _messages(node: ast.AST) -> Iterator[str]:
    """The texts that a user reads when this is raised or called."""
    call = node.exc if isinstance(node, ast.Raise) else node
    if isinstance(call, ast.Call):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if isinstance(node, ast.Raise) or name in _TELLERS:
            yield from filter(None, map(_string, call.args))


def _string(node: ast.AST) -> str:
    """A string in the code, with X in place of its inserted values."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_string(part) or "X" for part in parts)
        case ast.BinOp(left=left, right=right):
            return _string(left) + _string(right)
    return ""


def counts() -> dict[str, int]:
    """The number of findings in each place."""
    result: dict[str, int] = {}
    for text in texts():
        result[text.place] = result.get(text.place, 0) + sum(1 for _ in found(text))
    return result


def main(arguments: list[str]) -> None:
    """Print the findings."""
    if arguments == ["--counts"]:
        for place, count in counts().items():
            print(f"{count:5}  {place}")  # noqa: T201
        return
    for text in texts():
        if not arguments or text.place in arguments:
            for each in found(text):
                print(f"{each.text.place} · {each.text.where}: {each.why}: {each.sentence}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
