"""The earlier responses of a broker on one connection → which of its errors are routine.

``errors.txt`` of :mod:`kdissect.protocol.errors` has the bound within which each error is a normal step of
the protocol. Only little must be remembered for that: the APIs that were answered without an error, and the
current runs of errors. Nothing is called routine without evidence. If the beginning of a run was not seen,
its bound does not count. Then the capture began in the middle of it, or bytes were lost before it.

All of this is about one connection, where the order is certain. So the result is the same if a capture is cut
into parts for several processes. A run over several connections begins again on each.
"""

from __future__ import annotations

from typing import Any

from kdissect.exchange import Exchange
from kdissect.message import Request, Response
from kdissect.names import METADATA_TOPIC
from kdissect.protocol.apis import FETCH
from kdissect.protocol.entities import COORDINATORS
from kdissect.protocol.errors import Bound, errors
from kdissect.protocol.survey import Survey
from kdissect.session.briefs import Brief

MOST_RUNS = 64
"""The largest number of runs remembered for a connection; further runs are not judged."""

OWN_TOPICS = frozenset(
    ("__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata")
) | {METADATA_TOPIC}
"""Kafka's own topics (``org.apache.kafka.common.internals.Topic``, and the topic of tiered storage)."""

_NONE: tuple[int, ...] = ()
_NOTHING: frozenset[object] = frozenset()
_NO_KEYS: set[int] = set()
"""Shared by all connections without refused APIs, because an empty set takes 230 bytes."""
_NOT_ASKED = object()
_bounds: dict[int, object] = {}
"""The bounds of the error codes seen so far."""

_RunKey = tuple[int, int, frozenset[object]]
"""Error code, API key, and the things that the request is about."""


class ErrorRun:
    """Consecutive responses with the same error."""

    __slots__ = ("count", "first_ns", "is_begun", "until")

    def __init__(self, first_ns: int, is_begun: bool, until: str | None) -> None:
        self.first_ns = first_ns
        self.is_begun = is_begun
        """Whether its beginning was seen."""
        self.until = until
        self.count = 0


class Expected:
    """Judges the errors of one connection.

    :param from_start: whether the connection was captured from its first byte.
    """

    __slots__ = ("_from_start", "_refused", "_runs", "_served")

    def __init__(self, from_start: bool = False) -> None:
        self._from_start = from_start
        self._served: set[int] = set()
        """The keys of APIs answered without an error since bytes were lost last."""
        self._refused = _NO_KEYS
        """The keys of APIs answered with an error since then."""
        self._runs: dict[_RunKey, ErrorRun] = {}

    def parts(self) -> tuple[Any, ...]:
        """All its values, for :func:`expected_of`."""
        # An empty set takes longer to pickle than ten numbers.
        return self._from_start, self._served or None, self._refused or None, self._runs or None

    def forget_all(self) -> None:
        """Forget everything, because bytes are missing whose content is unknown."""
        self._from_start = False
        self._served.clear()
        self._refused = _NO_KEYS
        for run in self._runs.values():
            run.is_begun = False

    def note_success(self, api_key: int) -> bool:
        """Take in a response without an error. Return False if :meth:`judge` must be called for it, because
        earlier errors may be over."""
        if self._runs:
            return False
        if api_key not in self._served:
            self._served.add(api_key)
        return True

    def judge(self, exchange: Exchange, asked: Request, response: Response) -> tuple[int, ...]:
        """The codes of the routine errors in a response. It must be called with every response, in order.

        :param exchange: the exchange of both messages.
        """
        codes = exchange.codes()
        if not codes and asked.api_key is not None and self.note_success(asked.api_key):
            return _NONE
        return self._judge(_AnsweredExchange(exchange, None), codes)

    def judge_brief(self, brief: Brief) -> tuple[int, ...]:
        """The routine codes of an exchange in brief whose answer was surveyed."""
        seen = brief.response_survey
        assert seen is not None
        return self._judge(_answered_in_brief(brief), [] if seen.errors is None else seen.errors)

    def _judge(self, told: _AnsweredExchange, codes: list[int]) -> tuple[int, ...]:
        found = codes if len(codes) < 2 else list(dict.fromkeys(codes))
        if self._runs:
            self._end_runs(told, found)
        out = []
        for code in found:
            bound = _bound_of(code)
            if bound is None or (bound.apis and told.api not in bound.apis):
                continue
            if self._is_within(code, bound, told):
                out.append(code)
        if told.api_key is not None:
            if not codes:
                self._served.add(told.api_key)
            elif self._refused:
                self._refused.add(told.api_key)
            else:
                self._refused = {told.api_key}
        return tuple(out)

    def _is_within(self, code: int, bound: Bound, told: _AnsweredExchange) -> bool:
        api_key, now_ns = told.api_key, told.answered_ns
        assert api_key is not None
        key = (code, api_key, told.subjects())
        run = self._runs.get(key)
        if run is None:
            if len(self._runs) >= MOST_RUNS:
                return False
            run = self._runs[key] = ErrorRun(now_ns, self._has_begun(api_key, bound), bound.until)
        run.count += 1
        if bound.times is not None and run.count > bound.times:
            return False
        if bound.within_ns is not None and now_ns - run.first_ns > bound.within_ns:
            return False
        if bound.without is not None and told.body().get(bound.without) != "":
            return False
        if bound.own_topics and not all(_names_own_topic(place) for place in told.places_of(code)):
            return False
        return bound.is_shown_alone or run.is_begun

    def _has_begun(self, api_key: int, bound: Bound) -> bool:
        """Whether the beginning of a run that begins now was seen."""
        served = api_key in self._served
        if bound.first:
            return self._from_start and not served and api_key not in self._refused
        return served if bound.served else served or self._from_start

    def _end_runs(self, told: _AnsweredExchange, codes: list[int]) -> None:
        """End the runs of its API whose error a response does not have. A response without errors also ends
        the runs that last until its API."""
        over: list[_RunKey] = []
        for key, run in self._runs.items():
            is_same = key[1] == told.api_key and key[0] not in codes
            if not is_same and (codes or run.until is None or run.until != told.api):
                continue
            about, theirs = told.subjects(), key[2]
            if about == theirs or (not is_same and about <= theirs):
                over.append(key)
        for key in over:
            del self._runs[key]


def expected_of(parts: tuple[Any, ...]) -> Expected:
    """The judge with these :meth:`~Expected.parts`."""
    made = Expected.__new__(Expected)
    made._from_start, served, refused, runs = parts
    made._served = set() if served is None else served
    made._refused = _NO_KEYS if refused is None else refused
    made._runs = {} if runs is None else runs
    return made


class _AnsweredExchange:
    """An exchange to judge, whole or in brief."""

    __slots__ = ("_brief", "_exchange", "_subjects", "answered_ns", "api", "api_key")

    def __init__(self, exchange: Exchange | None, brief: Brief | None) -> None:
        """One of the two must be given."""
        self._exchange = exchange
        self._brief = brief
        self._subjects: frozenset[object] | None = None
        self.api: str | None
        self.api_key: int | None
        self.answered_ns: int
        """The time of the answer's last byte."""
        if brief is not None:
            self.api, self.api_key, self.answered_ns = brief.form.name, brief.form.key, brief.response_ns
        elif exchange is not None and exchange.request is not None and exchange.response is not None:
            self.api, self.api_key = exchange.api, exchange.request.api_key
            self.answered_ns = exchange.response.frame.last_ns

    def subjects(self) -> frozenset[object]:
        """Groups, transactional ids and the fetch session of the request."""
        if self._subjects is None:
            asked = None if self._brief is None else self._brief.survey_request()
            if asked is None:
                self._subjects = _subjects(self._whole())
            else:
                assert self._brief is not None
                self._subjects = _subjects_in_brief(self._brief.form.key, asked, self._brief.response_survey)
        return self._subjects

    def body(self) -> dict[str, Any]:
        """The body of the request."""
        asked = self._whole().request
        assert asked is not None
        return asked.body()

    def places_of(self, code: int) -> list[tuple[dict[str, Any], ...]]:
        """The structs with an error code, as in :meth:`Exchange.error_codes`."""
        return [place for each, place in self._whole().error_codes() if each == code]

    def _whole(self) -> Exchange:
        if self._exchange is None:
            assert self._brief is not None
            self._exchange = self._brief.exchange()
        return self._exchange


def _answered_in_brief(brief: Brief) -> _AnsweredExchange:
    """``_AnsweredExchange(None, brief)``, set attribute by attribute: compiled, that is several times
    faster."""
    told = _AnsweredExchange.__new__(_AnsweredExchange)
    told._exchange, told._brief, told._subjects = None, brief, None
    told.api, told.api_key, told.answered_ns = brief.form.name, brief.form.key, brief.response_ns
    return told


def _bound_of(code: int) -> Bound | None:
    """The bound within which an error is routine; None if it never is."""
    found = _bounds.get(code, _NOT_ASKED)
    if found is _NOT_ASKED:
        known = errors().get(code)
        found = _bounds[code] = None if known is None else known.bound
    return found  # type: ignore[return-value]  # it was asked for


def _subjects(exchange: Exchange) -> frozenset[object]:
    """Groups, transactional ids and the fetch session of a request."""
    about: set[object] = {*exchange.groups, *exchange.transactional_ids}
    asked = exchange.request
    if asked is not None and asked.api_key == FETCH:
        seen = asked.survey()
        session_id = asked.body().get("sessionId") if seen is None else seen.session_id
        if session_id:
            about.add(session_id)
    return frozenset(about)


def _subjects_in_brief(api_key: int, asked: Survey, answered: Survey | None) -> frozenset[object]:
    """Groups, transactional ids and the fetch session, by the surveys of both messages."""
    about: set[object] | None = _named_in(asked, asked, None)
    if answered is not None:
        about = _named_in(answered, asked, about)
    session_id = asked.session_id if api_key == FETCH else 0
    if about is None:
        return _NOTHING if session_id == 0 else frozenset((session_id,))
    if session_id:
        about.add(session_id)
    return frozenset(about)


def _named_in(seen: Survey, asked: Survey, about: set[object] | None) -> set[object] | None:
    """Add the names in a message to ``about``."""
    if seen.groups is None and seen.transactional_ids is None and seen.keys is None:
        return about
    found: set[object] = set() if about is None else about
    if seen.groups is not None:
        found.update(seen.groups)
    if seen.transactional_ids is not None:
        found.update(seen.transactional_ids)
    if seen.keys is not None and asked.coordinator_type in COORDINATORS:
        found.update(seen.keys)
    return found


def _names_own_topic(ancestors: tuple[dict[str, Any], ...]) -> bool:
    return ancestors[-1].get("name") in OWN_TOPICS
