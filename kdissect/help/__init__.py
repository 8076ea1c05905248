"""The documentation that ships with the package: one Markdown page per topic.

The command line shows the pages (``kdissect help TOPIC``), and the screens show them under ``?``.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

TOPICS = (
    *("read", "explain", "report", "filter", "stats", "screens", "live", "tls", "secrets", "scrub", "log"),
    *("bytes", "client", "spark", "wireshark"),
    *("damage", "speed", "python", "design"),
)
"""Names of the pages, in the order in which they are listed."""


@cache
def page(topic: str) -> str:
    """The page of a topic, as Markdown without pictures.

    :raises LookupError: there is no such page.
    """
    if topic not in TOPICS:
        raise LookupError(topic)
    text = files(__name__).joinpath(f"{topic}.md").read_text("utf-8")
    text = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(("<!--", "![")))
    return re.sub(r"\n{3,}", "\n\n", text)


def title(topic: str) -> str:
    """The heading of a page.

    :raises LookupError: there is no such page.
    """
    return page(topic).partition("\n")[0].removeprefix("# ")
