"""Every frame is drawn that a terminal would show; other tests draw only what they look at."""

from __future__ import annotations

import asyncio

import pytest

from tests.amount import some
from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, running, screen_text, settle, shown_after


@pytest.mark.parametrize("name", some(["errors.pcapng", "incidents/member-killed.pcapng.gz"], 1))
def test_what_is_drawn_frame_by_frame_is_what_is_drawn_at_once(name: str) -> None:
    async def run() -> None:
        app = app_of(CAPTURES / name)
        async with running(app, drawn=True) as pilot:
            for page in list(app.pages):
                app.action_page(page)
                await settle(pilot)
                before = await shown_after(pilot, "down", "end", "up")
                app.screen.refresh(layout=True)
                await settle(pilot)
                assert screen_text(app) == before, page

    asyncio.run(run())
