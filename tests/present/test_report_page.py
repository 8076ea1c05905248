"""Reports as pages: whole, safe, small, and read again."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kdissect.analysis.catalogue import STATISTICS
from kdissect.analysis.fold import SECOND
from kdissect.insight.context import JudgingContext
from kdissect.insight.diff import differences
from kdissect.insight.judge import CaptureReport
from kdissect.insight.report_data import TABLES
from kdissect.present.diffs import summary
from kdissect.present.html.diff import diff_page
from kdissect.present.html.embedded import NoReportError, element, is_report, report_of
from kdissect.present.html.report import LARGEST, report_page
from kdissect.present.html.sheet import ReportOptions
from kdissect.present.html.svg import ticks
from tests.amount import times
from tests.present.reports import HOSTILE, MADE, hostile, hostile_report, report


class Elements(HTMLParser):
    """The elements of a page, its text, and whether each is closed."""

    VOID = ("meta", "input")

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID and not self.get_starttag_text().endswith("/>"):  # type: ignore[union-attr]
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.get_starttag_text().endswith("/>") or tag == (self.open or [""])[-1]:  # type: ignore[union-attr]
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


NAMES = (
    "basic-kafka43.pcapng",
    "errors.pcapng",
    "consumer-group-kip848.pcapng",
    "transactions-kafka39.pcapng",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_read_again(name: str) -> None:
    made = report(name)
    page = report_page(made, MADE)
    assert is_report(page[:1_000].encode())
    again = report_of(page)
    assert again.findings == made.findings
    assert again.not_judged == made.not_judged
    assert again.context == made.context
    assert list(again.tables) == list(made.tables) == list(TABLES)
    for text, rows in made.tables.items():
        for row, other in zip(rows[:150], again.tables[text], strict=False):
            assert list(other) == [column.name for column in STATISTICS[text.partition(",")[0]].columns]
            assert other == {
                column: pytest.approx(value, rel=1e-5) if isinstance(value, float) else value
                for column, value in row.items()
            }
    assert not [each for each in differences(made, again) if each.significant]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_and_asks_nothing_of_any_network(name: str) -> None:
    page = report_page(report(name), MADE)
    elements = Elements(page)
    for tag, attributes in elements.found:
        assert tag not in ("link", "iframe", "img", "object", "embed", "base", "form")
        assert not {"src", "action", "style"} & set(attributes)
        assert all(not each.startswith("on") for each in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(each["content"] for tag, each in elements.found if "http-equiv" in each)
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "url(" not in page
    ids = [each["id"] for _, each in elements.found if "id" in each]
    assert len(ids) == len(set(ids))
    links = {each["href"] for tag, each in elements.found if tag == "a"}
    assert {(each or "")[1:] for each in links} <= set(ids)


def test_panels_stand_in_their_order() -> None:
    page = report_page(report("consumer-group-kip848.pcapng"), MADE)
    found = re.findall(r'<section id="(\w+)"', page)
    wanted = [
        "findings",
        "timeline",
        "latency",
        "topics",
        "groups",
        "clients",
        "cluster",
        "security",
        "graph",
        "rest",
    ]
    assert found == wanted
    assert '<section id="transactions"' in report_page(report("transactions-kafka39.pcapng"), MADE)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_markup_gets_through(text: str) -> None:
    """The page has the elements that it has with harmless names as long, and no more."""
    made, harmless = hostile_report(text), re.sub(".", "n", text)
    page = report_page(made, ReportOptions((text,), (text,)))
    shape = [tag for tag, _ in Elements(page).found]
    assert shape == [tag for tag, _ in Elements(report_page(hostile_report(harmless), MADE)).found]
    assert all(each.isprintable() or each == "\n" for each in page)
    if "�" not in text and "\x00" not in text:
        assert report_of(page).findings == made.findings
    told = differences(report("basic-kafka43.pcapng"), made)
    plain = differences(report("basic-kafka43.pcapng"), hostile_report(harmless))
    pages = [diff_page(text, text, each, summary(each)) for each in (told, plain)]
    assert [tag for tag, _ in Elements(pages[0]).found] == [tag for tag, _ in Elements(pages[1]).found]


def test_a_report_of_very_much_is_small() -> None:
    """The tables give way; the page says so."""
    name = "t" * 249
    tables = {
        text: [
            hostile(STATISTICS[text.partition(",")[0]].columns, f"{name}{number}") for number in range(1_000)
        ]
        for text in TABLES
    }
    page = report_page(CaptureReport([], [], JudgingContext(0, 9 * SECOND, exchanges=9), tables), MADE)
    assert len(page.encode()) <= LARGEST
    assert "more rows are not in this report" in page


def test_an_empty_report() -> None:
    page = report_page(CaptureReport([], [], JudgingContext(), {text: [] for text in TABLES}), MADE)
    assert "No Kafka was found" in page
    assert report_of(page).tables == {text: [] for text in TABLES}


@settings(max_examples=times(40, 600), deadline=None)
@given(data=st.data())
def test_a_report_that_somebody_changed_is_refused(data: st.DataObject) -> None:
    """Even one that has a checksum of its own is refused, or can be compared."""
    page = report_page(report("basic-kafka43.pcapng"), MADE)
    start, end = (
        page.index("{", page.index('id="kdissect"')),
        page.rindex("</script>", 0, page.rindex("<script>")),
    )
    written = page[start:end]
    at = data.draw(st.integers(0, len(written) - 1))
    more = data.draw(
        st.sampled_from(["", '"', "[", "{}", "null", "-1e999", "9" * 30, "true", "\\ud800", "}"])
    )
    changed = written[:at] + more + written[at + data.draw(st.integers(1, 40)) :]
    assume(changed != written)
    with pytest.raises(NoReportError):
        report_of(page[:start] + changed + page[end:])
    try:
        found = report_of(element(changed))
    except NoReportError:
        return
    assert isinstance(differences(found, report("errors.pcapng")), list)


def test_a_number_that_no_column_can_hold_is_refused() -> None:
    made = report("errors.pcapng")
    number = "9" * 400
    text = report_page(made, MADE).partition('id="kdissect"')[2].partition(">")[2].partition("</script>")[0]
    changed = re.sub(r"(?<=,)\d+\.\d+(?=[,\]])", number, text)
    assert number in changed
    with pytest.raises(NoReportError):
        report_of(element(changed))


@pytest.mark.parametrize(
    ("most", "last"), [(0, 0), (1, 1), (7, 8), (99, 100), (0.03, 0.03), (12_345, 15_000)]
)
def test_ticks_reach_the_most(most: float, last: float) -> None:
    found = ticks(most)
    assert found[-1] == pytest.approx(last)
    assert len(found) <= 7
    assert ticks(3 << 20, 3, 1 << 20)[-1] == 3 << 20


def test_only_pages_of_reports_are_reports() -> None:
    assert not is_report(b"<!doctype html><html><head>")
    assert not is_report(Path(__file__).read_bytes()[:1_000])


def test_a_transaction_of_which_little_is_known_is_drawn_without_a_guess() -> None:
    row = dict.fromkeys(each.name for each in STATISTICS["transactions"].columns)
    known = {"transactional_id": "tx", "outcome": "unknown", "asked": "commit", "last_ns": SECOND}
    made = hostile_report("a")
    made.tables["transactions"] = [{**row, **known, "errors": [], "groups": [], "exchanges": []}]
    page = report_page(made, MADE)
    part = page[page.index('<section id="transactions"') :]
    part = part[: part.index("</section>")]
    assert 'data-tip="tx: unknown"' in part
    assert "0 records" not in part
    assert ">asked for<" in part
    assert ">commit<" in part
