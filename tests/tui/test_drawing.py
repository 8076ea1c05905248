"""Every frame is drawn that a terminal would show; other tests draw only what they look at."""

from __future__ import annotations

import asyncio

import pytest

from tests.cli.run import CAPTURES
from tests.tui.snapshots import app_of, press, screen_text, settle


@pytest.mark.parametrize("name", ["errors.pcapng", "incidents/member-killed.pcapng.gz"])
def test_what_is_drawn_frame_by_frame_is_what_is_drawn_at_once(name: str) -> None:
    async def run() -> None:
        app = app_of(CAPTURES / name)
        async with app.run_test(size=(120, 40)) as pilot:
            await settle(pilot)
            for page in list(app.pages):
                app.action_page(page)
                await settle(pilot)
                before = await press(pilot, "down", "end", "up")
                app.screen.refresh(layout=True)
                await settle(pilot)
                assert screen_text(app) == before, page
        app.feed.close()

    asyncio.run(run())
