"""The effects of ``live`` beside its rows: when rows begin and end, files around triggers, metrics."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.completing import a_filter
from kdissect.cli.config import load_config
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.filters import compiled
from kdissect.cli.reading import Reading
from kdissect.dissect import Event
from kdissect.durations import duration_ns
from kdissect.exchange import Exchange
from kdissect.filter.computed import OF_FINDINGS
from kdissect.insight.evidence import EvidenceIndex, sign_of
from kdissect.live.journal import Status
from kdissect.live.metrics import Metrics, address_of
from kdissect.live.triggers import CaptureTrigger
from kdissect.present.options import Options
from kdissect.wording import how_to_install

if TYPE_CHECKING:
    from kdissect.cli.commands.live.findings import LiveFindings

_OPTIONS = (
    click.option(
        "--start-on",
        metavar="FILTER",
        shell_complete=a_filter,
        help="Begin with the first exchange that this display filter selects.",
    ),
    click.option(
        "--stop-on",
        metavar="FILTER",
        shell_complete=a_filter,
        help="End with the first exchange that this display filter selects.",
    ),
    click.option(
        "--trigger",
        metavar="FILTER",
        shell_complete=a_filter,
        help="Write to -w only the packets around exchanges that this display filter selects.",
    ),
    click.option(
        "--before",
        default="30s",
        show_default=True,
        metavar="TIME",
        help="With --trigger: how long before them.",
    ),
    click.option(
        "--after",
        default="10s",
        show_default=True,
        metavar="TIME",
        help="With --trigger: how long after them.",
    ),
    click.option(
        "--prometheus",
        metavar="[ADDRESS]:PORT",
        help="Serve metrics at this address, without a password. They contain names of clients "
        "and topics. Without ADDRESS only this machine can read them. Needs kdissect[metrics].",
    ),
)


def condition_options(function: click.decorators.FC) -> click.decorators.FC:
    """The options of :class:`Conditions`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


class Conditions:
    """The conditions that the options of a command set.

    :raises Wrong: a filter or a time is wrong, or something is missing.
    """

    def __init__(self, given: dict[str, Any], options: Options) -> None:
        self._start_on = compiled(given["start_on"], options, "--start-on")
        self._stop_on = compiled(given["stop_on"], options, "--stop-on")
        evidence = EvidenceIndex()  # stays empty: findings are matched on their own
        self._triggers = compiled(given["trigger"], options, "--trigger", evidence)
        self._on_findings = self._triggers is not None and self._triggers.evidence is not None
        if self._triggers is not None and self._on_findings and not self._triggers.fields <= {*OF_FINDINGS}:
            raise Wrong(
                "--trigger: a filter on findings may use only finding and finding.severity, as in "
                "finding.severity == critical"
            )
        self._findings: LiveFindings | None = None
        self._limits = options.limits
        self._before_ns = _duration(given["before"], "--before")
        self._after_ns = _duration(given["after"], "--after")
        self._path: str | None = given["packets_to"]
        self._serve = _address(given["prometheus"])
        self._trigger: CaptureTrigger | None = None
        self._metrics: Metrics | None = None
        if self._triggers is not None and self._path is None:
            raise Wrong("--trigger writes packets: give -w FILE too")

    @property
    def has_trigger(self) -> bool:
        """Whether packets are written only around the moments of a trigger."""
        return self._triggers is not None

    def begin(self, stack: ExitStack, reading: Reading, status: Callable[[], Status]) -> None:
        """Prepare, before the first packet is read. Resources that must be closed later are put on the stack.

        :raises Wrong: metrics cannot be served.
        """
        if self._triggers is not None and self._path is not None:
            self._trigger = CaptureTrigger(
                self._path, reading.interfaces, self._before_ns, self._after_ns, _announce_file
            )
            stack.callback(self._trigger.close)
            reading.keep = self._trigger.packet
        if self._on_findings or self._serve is not None:
            # All rules of findings: they are two fifths of what the command would load.
            from kdissect.cli.commands.live.findings import LiveFindings

            config = load_config()
            self._findings = LiveFindings(
                self._limits, lambda judge: judge.judged(config.thresholds, config.ignored).findings
            )
        if self._serve is not None:
            stack.callback(self._served(*self._serve, status))

    def _served(self, address: str, port: int, status: Callable[[], Status]) -> Callable[[], None]:
        try:
            self._metrics = Metrics(status, limits=self._limits)
            stop = self._metrics.serve(address, port)
        except ImportError:
            raise Wrong(f"--prometheus needs prometheus-client: {how_to_install('metrics')}") from None
        except OSError as error:
            raise Wrong(f"--prometheus {address}:{port}: {error.strerror or error}") from None
        complain(
            f"--prometheus: {address} port {port} has no password: everybody who reaches it reads the metrics"
        )
        return stop

    def events(self, events: Iterable[Event]) -> Generator[Event]:
        """The events that are shown. The others are counted and examined, too."""
        started = self._start_on is None
        for event in events:
            if self._metrics is not None:
                self._metrics.feed(event)
            if self._findings is not None:
                self._judge(self._findings, event)
            if not isinstance(event, Exchange):
                if started:
                    yield event
                continue
            if (
                self._trigger is not None
                and self._triggers is not None
                and not self._on_findings
                and self._triggers.matches(event)
            ):
                self._trigger.hit()
            if not started and self._start_on is not None:
                started = self._start_on.matches(event)
            if not started:
                continue
            yield event
            if self._stop_on is not None and self._stop_on.matches(event):
                return

    def _judge(self, findings: LiveFindings, event: Event) -> None:
        """Report findings that the events so far show for the first time."""
        triggers = self._triggers if self._on_findings else None
        for new in findings.feed(event):
            if triggers is not None and self._trigger is not None and triggers.matches_finding(sign_of(new)):
                self._trigger.hit()
        if self._metrics is not None and findings.is_new:
            self._metrics.know(findings.current)


def _announce_file(path: str) -> None:
    complain(f"--trigger: writing {path}")


def _duration(text: str, option: str) -> int:
    try:
        return duration_ns(text)
    except ValueError as error:
        raise Wrong(f"{option} {error}") from None


def _address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    try:
        return address_of(text)
    except ValueError as error:
        raise Wrong(f"--prometheus {error}") from None
