"""Pages in a real browser: Chromium, without a window.

    pip install '.[browser]'
    python -m tests.browser FOLDER     pictures: two widths, both themes, with and without the script
    pytest tests/browser               what must hold; skipped without a browser

The browser is the one that ``KDISSECT_CHROMIUM`` names, or the system's.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDTHS = (390, 1280)
THEMES = ("light", "dark")


def chromium() -> str | None:
    """Where the browser is; None where there is none."""
    for name in (os.environ.get("KDISSECT_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name) if name else None
        if found:
            return found
    return None


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser that reaches no network."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu"] if os.geteuid() == 0 else ["--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=options)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def showing(browser: Any, path: Path, **options: Any) -> Iterator[tuple[Any, list[str]]]:
    """A page, and what went wrong or was asked of anybody beside the file itself."""
    context = browser.new_context(offline=True, **options)
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: said.append(request.url) if request.url != path.as_uri() else None)
    try:
        page.goto(path.as_uri())
        yield page, said
    finally:
        context.close()
