"""What people on call come for, and with how few keys they have it.

Each job begins where the screens begin. What is typed into a line counts as no key; the key that opens the
line and the one that ends it do.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from kdissect import read
from kdissect.help import page
from kdissect.settings.screens import Settings
from kdissect.settings.session import LastSession
from kdissect.tui.app import Kdissect
from kdissect.tui.pages.exchanges import ExchangesPage
from kdissect.tui.pages.problems import ProblemsPage
from tests.amount import some
from tests.cli.run import CAPTURES
from tests.shared import requires_shared, shared
from tests.tui.snapshots import app_of, press, running, screen_text, settle
from tests.tui.test_actions import command

INCIDENTS = CAPTURES / "incidents"
MOST_KEYS, MOST_FOR_WHY = 5, 3
TYPED = "type "


class Job(NamedTuple):
    """What is asked, the keys, and what then stands on the screen."""

    question: str
    capture: str
    keys: tuple[str, ...]
    shows: tuple[str, ...]
    most: int = MOST_KEYS


SHIPPED = (
    Job("the slowest request", "leader-killed", ("1", "s", "s"), ("by Latency, largest first",)),
    Job("all errors", "leader-killed", ("6",), ("NOT_COORDINATOR", "cut-frame")),
    Job("which client causes them", "leader-killed", ("6",), ("trade-reader",)),
    Job(
        "one consumer's rebalance",
        "member-killed",
        ("4", "left_square_bracket"),
        ("generation 2 → 3", "session-timeout", "fraud-2", "stood still"),
    ),
    Job(
        "a record by its key, and its bytes",
        "poison-pill",
        ("7", "slash", TYPED + 'record.key == "key-7"', "enter", "enter", "enter"),
        ("211 bytes at 103 to 314", "Record"),
    ),
    Job(
        "a client's topics and what it fetched last",
        "lag-grows",
        ("3", "g", "g", "g"),
        ("reader", "events", "648", "455"),
    ),
    Job(
        "who was the leader when this happened",
        "leader-killed",
        ("C",),
        ("leader-moved trades-0", "In sync", "the cluster at 11.006538"),
    ),
    Job("compare two brokers", "leader-killed", ("5", "g"), ("127.0.0.1:25001", "127.0.0.1:25002")),
    Job(
        "a request as a command",
        "poison-pill",
        ("1", "y", "5"),
        ("copied: kdissect client send",),
    ),
)
LAB = (
    Job(
        "why a produce failed",
        "producer-fenced/capture.pcapng",
        ("6", "i"),
        (
            "INVALID_PRODUCER_EPOCH (fatal)",
            "a newer one with its id took over",
            "shop-new began as producer 74",
        ),
        MOST_FOR_WHY,
    ),
    Job(
        "why a produce failed",
        "message-too-large/capture.pcapng",
        ("6", "i"),
        ("MESSAGE_TOO_LARGE (fatal)", "max.message.bytes"),
        MOST_FOR_WHY,
    ),
    Job(
        "why a produce failed",
        "invalid-timestamp/capture.pcapng",
        ("6", "i"),
        ("INVALID_TIMESTAMP (fatal)", "is too far from the broker's time", "tried to write 1 record"),
        MOST_FOR_WHY,
    ),
    Job(
        "why a produce failed",
        "transaction-timeout/capture.pcapng",
        ("6", "i"),
        ("INVALID_PRODUCER_EPOCH (fatal)", "or its transaction timed out", "its transactions may last 3,000"),
        MOST_FOR_WHY,
    ),
    Job(
        "a transaction that did not end well",
        "transaction-timeout/capture.pcapng",
        ("T",),
        ("◷ timed-out", "ended by the coordinator, after 3 s"),
        MOST_FOR_WHY,
    ),
    Job(
        "one consumer's rebalance",
        "max-poll-exceeded/capture.pcapng.gz",
        ("4", "left_square_bracket"),
        ("generation 5 → 6", "member-left by mailer-1: the consumer is being closed", "members 2 → 1"),
    ),
    Job(
        "one consumer's rebalance",
        "kip848-member-silent/capture.pcapng.gz",
        ("4", "left_square_bracket"),
        ("generation 5 → ?", "not finished", "member-left by feeder-c-2"),
    ),
    Job(
        "a transaction from begin to commit",
        "hanging-transaction/capture.pcapng.gz",
        ("T",),
        (
            "✓ committed after 14.1 s",
            "by EndTxn",
            "waited at tx-payments-0 for 14.1 s, 143 offsets behind",
        ),
        MOST_FOR_WHY,
    ),
    Job(
        "a transaction that did not end well",
        "producer-fenced/capture.pcapng",
        ("T",),
        ("⊘ fenced", "ended 3.819023 by InitProducerId of shop-new"),
        MOST_FOR_WHY,
    ),
)


async def done(pilot: Pilot[None], job: Job) -> str:
    """What stands on the screen after a job's keys."""
    for key in job.keys:
        if key.startswith(TYPED):
            pilot.app.screen.query_one(Input).value = key.removeprefix(TYPED)
            await settle(pilot)
        else:
            await press(pilot, key)
    return screen_text(pilot.app)


def end_of(job: Job, path: Path, size: tuple[int, int] = (120, 40)) -> str:
    async def run() -> str:
        async with running(app_of(path, home=None), *size) as pilot:
            return " ".join((await done(pilot, job)).split())

    return asyncio.run(run())


def check(job: Job, path: Path) -> None:
    assert sum(not key.startswith(TYPED) for key in job.keys) <= job.most
    text = end_of(job, path)
    for part in job.shows:
        assert part in text, (job.question, part, text)


@pytest.mark.parametrize("job", SHIPPED, ids=lambda job: job.question)
def test_a_job_takes_few_keys(job: Job) -> None:
    check(job, INCIDENTS / f"{job.capture}.pcapng.gz")


@requires_shared
@pytest.mark.parametrize(
    "job", some(LAB, 4, LAB[0], *LAB[6:8]), ids=lambda job: f"{job.question}: {job.capture.partition('/')[0]}"
)
def test_why_something_failed_takes_fewer(job: Job) -> None:
    check(job, shared(f"testdata/incidents/{job.capture}"))


@pytest.mark.parametrize(
    "job", some(SHIPPED[1:], 2, SHIPPED[3], SHIPPED[5], SHIPPED[7]), ids=lambda job: job.question
)
def test_a_small_terminal_shows_as_much(job: Job) -> None:
    text = end_of(job, INCIDENTS / f"{job.capture}.pcapng.gz", (80, 24))
    assert [part for part in job.shows if part not in text] == []
    if job.question == "one consumer's rebalance":
        assert "members 3 → 2 · 2 partitions moved" in text


def test_the_slowest_is_the_first_of_the_list() -> None:
    path = INCIDENTS / "leader-killed.pcapng.gz"
    slowest = max(each.latency_ns or 0 for each in read(path))

    async def run() -> None:
        async with running(app_of(path, home=None)) as pilot:
            await press(pilot, *SHIPPED[0].keys)
            app = pilot.app
            assert isinstance(app, Kdissect)
            exchanges = app.screen
            assert isinstance(exchanges, ExchangesPage)
            place = exchanges.chosen_place()
            assert place is not None
            assert app.index.value("latency_ns", place) == slowest

    asyncio.run(run())


AS_LEFT = LastSession(
    sort=("latency_ns", True), groupings=(("topics", "partition"), ("latency", "client")), orders=()
)


@pytest.mark.parametrize(
    ("typed", "shows"),
    [
        ("slowest", "slowest: 20 rows"),
        ("lag", "1,089"),
        ("positions", "by client (g:"),
        ("srt", "p99"),
    ],
)
def test_a_word_leads_there_however_the_screens_were_left(typed: str, shows: str) -> None:
    async def run() -> None:
        app = app_of(INCIDENTS / "lag-grows.pcapng.gz", home=None, settings=Settings(before=AS_LEFT))
        async with running(app) as pilot:
            await command(pilot, typed)
            assert shows in screen_text(app)

    assert f"`:{typed}`" in page("screens")
    asyncio.run(run())


def test_the_story_of_a_produce_that_failed_is_told_where_other_errors_are_above_it() -> None:
    async def run() -> None:
        async with running(app_of(CAPTURES / "errors.pcapng", home=None)) as pilot:
            await press(pilot, "6")
            problems = pilot.app.screen
            assert isinstance(problems, ProblemsPage)
            apis = [problems.rows.row(at)["api"] for at in range(len(problems.rows))]
            assert apis.index("Produce") > 0
            await press(pilot, *["down"] * apis.index("Produce"), "i")
            assert " Produce of producer-1 → " in screen_text(pilot.app)

    assert "if other errors are above it, press `↓` before `i`" in page("screens")
    asyncio.run(run())


SUBSET = ("slash", TYPED + "number <= 20", "enter", "w", "enter", TYPED, "enter")


def test_a_subset_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "some.pcapng"
    job = Job("a subset", "poison-pill", (*SUBSET[:5], TYPED + str(path), *SUBSET[6:]), ())
    check(job, INCIDENTS / "poison-pill.pcapng.gz")
    assert len(list(read(path))) == 20


_NAMES = {"slash": "/", "left_square_bracket": "[", "enter": "Enter"}


@pytest.mark.parametrize(
    "keys", sorted({*(job.keys for job in (*SHIPPED, *LAB)), SUBSET}), ids=lambda keys: " ".join(keys)[:20]
)
def test_the_help_has_the_keys(keys: tuple[str, ...]) -> None:
    wanted = [_NAMES.get(key, key) for key in keys if not key.startswith(TYPED)]
    table = page("screens").partition("| question | keys |")[2].partition("\n\n")[0]
    rows = (line.split(" | ")[1] for line in table.splitlines() if " | " in line)
    parts = (re.findall("`([^`]*)`", row) for row in rows)
    assert wanted in [[key for part in row if " == " not in part for key in part.split()] for row in parts]
