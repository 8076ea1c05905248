"""Reports in a real browser: no violation of accessibility, no error, no request, readable without script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kdissect.insight.diff import differences
from kdissect.present.diffs import summary
from kdissect.present.html.diff import diff_page
from kdissect.present.html.report import report_page
from tests.browser import browsing, chromium, showing
from tests.present.reports import HOSTILE, MADE, hostile_report, report

pytest.importorskip("playwright")
pytestmark = pytest.mark.skipif(chromium() is None, reason="there is no Chromium")

NAME = "incidents/max-poll-exceeded.pcapng.gz"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages: a report, a report full of hostile names, a diff."""
    out = tmp_path_factory.mktemp("pages")
    one, other = report(NAME), report("errors.pcapng")
    (out / "report.html").write_text(report_page(one, MADE))
    (out / "hostile.html").write_text(report_page(hostile_report(" ".join(HOSTILE)), MADE))
    found = [each for each in differences(one, other) if each.significant]
    (out / "diff.html").write_text(diff_page("a", "b", found, summary(found)))
    return out


@pytest.mark.parametrize(
    ("name", "theme"), [("report", "light"), ("report", "dark"), ("diff", "light"), ("hostile", "dark")]
)
def test_no_rule_of_accessibility_is_violated(name: str, theme: str, folder: Path, browser: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    options = {"viewport": {"width": 1280, "height": 900}, "color_scheme": theme, "bypass_csp": True}
    with showing(browser, folder / f"{name}.html", **options) as (page, _):
        found = axe.run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:200], len(each["nodes"])) for each in found] == []


@pytest.mark.parametrize(
    ("name", "width"), [("report", 390), ("report", 1280), ("diff", 390), ("hostile", 390)]
)
def test_nothing_fails_is_asked_or_runs_over(name: str, width: int, folder: Path, browser: Any) -> None:
    size = {"width": width, "height": 900}
    with showing(browser, folder / f"{name}.html", viewport=size) as (page, said):
        page.mouse.move(width / 2, 400)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert said == []


def test_the_script_sorts_filters_and_changes_the_theme(folder: Path, browser: Any) -> None:
    with showing(browser, folder / "report.html", viewport={"width": 1280, "height": 900}) as (page, said):
        table = page.locator("table", has_text="Response times by API and version")
        head = table.locator("th button", has_text="count").first
        head.click()
        cells = table.locator("tbody tr td:nth-child(3)")
        counts = [int(each.replace(",", "")) for each in cells.all_inner_texts()]
        assert counts == sorted(counts)
        head.press("Enter")
        again = [int(each.replace(",", "")) for each in cells.all_inner_texts()]
        assert again == sorted(counts, reverse=True)
        page.locator("#severities input[value=critical]").uncheck()
        assert page.locator("[data-severity=critical]:visible").count() == 0
        assert page.locator("[data-severity=notice]:visible").count() > 0
        before = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.locator("#theme").click()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
        assert said == []


def test_all_can_be_read_without_the_script(folder: Path, browser: Any) -> None:
    with showing(browser, folder / "report.html", java_script_enabled=False) as (page, _):
        texts = page.locator("main").inner_text()
        assert "poll-interval-exceeded" in texts
        assert "Response times by API and version" in texts
        assert page.locator("svg").count() > 5
        assert page.locator("#theme").is_hidden()


def test_it_prints_on_paper(folder: Path, browser: Any) -> None:
    with showing(browser, folder / "report.html") as (page, _):
        paper = page.pdf(format="A4")
        page.emulate_media(media="print")
        assert page.locator("nav").is_hidden()
    assert paper.startswith(b"%PDF")
