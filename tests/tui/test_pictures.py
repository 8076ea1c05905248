"""The pictures of the documentation show what the screens show.

``python -m tests.tui.test_pictures`` draws them anew.
"""

from __future__ import annotations

import asyncio
import re
from html import unescape
from pathlib import Path

import pytest

from tests.cli.run import CAPTURES, ROOT
from tests.tui.snapshots import app_of, press, running

FOLDER = ROOT / "tests" / "golden" / "pictures"
PICTURES = {
    "exchanges": ("errors.pcapng", ("e", "e", "enter", "down", "down")),
    "findings": ("incidents/member-killed.pcapng.gz", ("9",)),
    "groups": ("consumer-group-kip848.pcapng", ("4", "down")),
    "records": ("basic-kafka43.pcapng", ("7", "down", "down", "down", "enter")),
    "ladder": ("share-group-kafka43.pcapng", ("L",)),
}
SIZE = (120, 36)
_WEB_FONT = re.compile(r"@font-face \{.*?\}", re.S)
"""Names an address on the web: a picture of packets must not tell anybody that it is looked at."""


async def drawn(capture: str, keys: tuple[str, ...]) -> str:
    """The screen after these keys, as an SVG."""
    app = app_of(CAPTURES / capture)
    async with running(app, *SIZE) as pilot:
        for key in keys:  # each one when the one before it has done all of its work
            await press(pilot, key)
        return _WEB_FONT.sub("", app.export_screenshot()).replace("Fira Code", "monospace")


def texts(svg: str) -> list[str]:
    """What is written in a picture, in order."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    return [unescape(text).replace("\xa0", " ").rstrip() for text in found]


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_the_screen(name: str) -> None:
    stored = (FOLDER / f"{name}.svg").read_text()
    assert texts(stored) == texts(asyncio.run(drawn(*PICTURES[name])))


@pytest.mark.parametrize("name", PICTURES)
def test_the_documentation_shows_it_and_nobody_is_told(name: str) -> None:
    path = FOLDER / f"{name}.svg"
    documents = (ROOT / "README.md").read_text() + (ROOT / "kdissect/help/screens.md").read_text()
    assert str(path.relative_to(ROOT)) in documents
    assert not re.search(r"https?://(?!www\.w3\.org|www\.textualize\.io)", path.read_text())


def test_every_picture_is_drawn_by_a_line_here() -> None:
    assert {path.stem for path in Path(FOLDER).glob("*.svg")} == set(PICTURES)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, made_of in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(asyncio.run(drawn(*made_of)))
