"""The documentation that ships with the package: one Markdown page per topic.

The command line shows the pages (``kdissect help TOPIC``), and the screens show them under ``?``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

TOPICS = (
    *("read", "explain", "report", "filter", "stats", "screens", "live", "tls", "secrets", "scrub", "log"),
    *("bytes", "client", "spark", "wireshark"),
    *("damage", "speed", "python", "design"),
)
"""Names of the pages, in the order in which they are listed."""


_MARK = re.compile(r"<!-- (\w+) -->\n")
"""A line that is not shown. It marks an example that tests run, or the place of a table."""


def page(topic: str, tables: Mapping[str, Callable[[], str]] | None = None) -> str:
    """The page of a topic, as Markdown without pictures.

    :param tables: each makes a table, in Markdown, for the line ``<!-- NAME -->``.
    :raises LookupError: there is no such page.
    """
    if topic not in TOPICS:
        raise LookupError(topic)
    made = tables or {}
    text = _MARK.sub(lambda mark: made[mark[1]]() if mark[1] in made else "", _text(topic))
    return re.sub(r"\n{3,}", "\n\n", text)


@cache
def _text(topic: str) -> str:
    text = files(__name__).joinpath(f"{topic}.md").read_text("utf-8")
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("!["))


def title(topic: str) -> str:
    """The heading of a page.

    :raises LookupError: there is no such page.
    """
    return page(topic).partition("\n")[0].removeprefix("# ")
