"""``explain FILE --group G`` and the like: the story of one subject, as lines in time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from kdissect.analysis.story import (
    Offset,
    Story,
    of_client,
    of_group,
    of_offset,
    of_topic,
    of_transactional_id,
)
from kdissect.analysis.whole import WholeFold
from kdissect.cli.commands.explain.inputs import STORIES
from kdissect.cli.config import load_config
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import DONE
from kdissect.cli.formats import check_writable, writer_of
from kdissect.cli.output import TextOutput, inputs_of, open_output
from kdissect.cli.reading import reading_of
from kdissect.exchange import Exchange
from kdissect.insight.finding import FindingSubject
from kdissect.insight.judge import Judge
from kdissect.limits import Limits
from kdissect.present.nearest import nearest
from kdissect.present.options import Options
from kdissect.present.stories import STORY, about_lines, story_lines


class _StoryKind(NamedTuple):
    """A kind of story."""

    begin: Callable[[Any, Limits], Story]
    part: str
    """The field of a finding's subject that must match."""


KINDS = {
    "group": _StoryKind(of_group, "group"),
    "topic": _StoryKind(of_topic, "topic"),
    "client": _StoryKind(of_client, "client_id"),
    "transactional_id": _StoryKind(of_transactional_id, "transactional_id"),
    "offset": _StoryKind(of_offset, "topic"),
}
"""The kinds, by the name of the option's value."""


def print_story(paths: tuple[str, ...], given: dict[str, Any], kind_name: str) -> int:
    """Print the story."""
    kind, name = KINDS[kind_name], given[kind_name]
    config = load_config()
    options = Options(limits=config.limits, shown_fields=config.shown_fields)
    asked = _offset(name) if kind_name == "offset" else name
    check_writable(given["form"], given["output"])
    story, whole = kind.begin(asked, config.limits), WholeFold(lambda: Judge(config.limits))
    with reading_of(given, paths, config, options) as reading:
        reading.open()
        for event in reading:
            whole.feed(event)
            if isinstance(event, Exchange):
                story.feed(event)
        whole.finish()
        lines = story.lines_in_order()
        if not lines:
            raise Wrong(f"{STORIES[kind_name]} {name}: {_nothing(kind_name, name, story)}")
        with open_output(given["output"], inputs_of(given)) as file:
            if given["form"] == "text":
                output = TextOutput(file, given["output"])
                found = whole.counted.judged(config.thresholds, config.ignored).findings
                about = [each for each in found if _is_about(each.subject, kind_name, asked)]
                output.lines(about_lines(about))
                if about:
                    output.line("")
                output.lines(story_lines(lines, reading.first_ns))
            else:
                writer = writer_of(given["form"], STORY, file, options)
                for line in lines:
                    writer.write(line)
                writer.close()
        if story.left_out:
            complain(
                f"{STORIES[kind_name]}: {story.left_out:,} more lines are left out: kdissect read -Y FILTER "
                "shows the exchanges"
            )
        return reading.exit_code(False, False, True) if reading.is_damaged else DONE


def _offset(text: str) -> Offset:
    found = re.fullmatch(r"(.+)/(\d{1,9})/(\d{1,18})", text)
    if found is None:
        raise Wrong(f"--offset {text}: the form is TOPIC/PARTITION/OFFSET, orders/0/1234")
    return Offset(found[1], int(found[2]), int(found[3]))


def _nothing(kind: str, name: str, story: Story) -> str:
    """Why there is no story."""
    if not story.names:
        return f"there is no {kind.replace('_', ' ')} in the capture"
    if kind == "offset":
        place = name.rpartition("/")[0]
        if place in story.names:
            near = story.nearest()
            hint = "" if near is None else f"; the nearest is {near}"
            return f"no record of {place} with that offset is in the capture{hint}"
        return f"no records of {place} are in the capture{_hint(place, story)}"
    return f"it is not in the capture{_hint(name, story)}"


_MOST_NAMED = 5
_ADDRESS = re.compile(r"[\d.]+(:\d+)?|\[.*\](:\d+)?")


def _hint(name: str, story: Story) -> str:
    known = sorted(story.names, key=lambda each: (_ADDRESS.fullmatch(each) is not None, each))  # ids first
    told = ", ".join(known[:_MOST_NAMED])
    more = ", …" if len(known) > _MOST_NAMED else ""
    return nearest(name, known) or f"; there {'is' if len(known) == 1 else 'are'} {told}{more}"


def _is_about(subject: FindingSubject, kind: str, asked: Any) -> bool:
    if kind == "offset":
        return (subject.topic, subject.partition) == (asked.topic, asked.partition)
    if kind == "client":
        return asked in (subject.client, subject.client_id, (subject.client or "").rpartition(":")[0])
    return bool(getattr(subject, KINDS[kind].part) == asked)
