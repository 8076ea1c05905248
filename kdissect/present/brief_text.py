"""Exchanges in brief → lines of NDJSON, from their numbers and bytes.

All columns of the table are written in its order, one after the other. The text between two values is made
once. The text that all lines of a connection share, or of an API in a version, is made once for each of them.
"""

from __future__ import annotations

from kdissect.analysis.waits import served_in_brief, waited_in_brief
from kdissect.model import DecodeError, Endpoint, endpoint_text
from kdissect.present.columns import EXCHANGES
from kdissect.present.message_text import MessageText
from kdissect.present.record_text import write_texts, write_value
from kdissect.protocol.entities import GROUP, TRANSACTIONAL_ID
from kdissect.protocol.errors import class_in, error_name, gravest
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.survey import Survey
from kdissect.session.briefs import NOT_KNOWN, Brief, PairLayout

_ORDER = (
    *("number", "connection", "client", "broker", "api_key", "api", "api_version", "correlation_id"),
    *("client_id", "principal", "request_packet", "response_packet", "request_start_ns", "request_time_ns"),
    *("response_start_ns", "response_time_ns", "latency_ns", "behind_ns", "behind_correlation_id"),
    *("network_ns", "throttle_ns", "served_ns", "wait_ns", "broker_ns", "request_transfer_ns"),
    *("response_transfer_ns", "think_ns", "request_size", "response_size", "missing", "inferred", "error"),
    *("error_class", "topics", "groups", "transactional_ids", "capture_point", "also_at", "between_ns"),
    *("faults", "request", "response"),
)
"""The columns, in the order in which :meth:`BriefText.write` writes them."""
assert tuple(column.name for column in EXCHANGES.columns) == _ORDER


def _before(name: str) -> bytes:
    """The text before the value of a column."""
    return f"{',' if _ORDER.index(name) else '{'}{dumps(name)}:".encode("ascii")


def _between(name: str, following: str) -> bytes:
    """The text between the values of two columns. The columns in between have no value here: if they had one,
    the exchange would have no brief form or no answer."""
    start, end = _ORDER.index(name) + 1, _ORDER.index(following)
    silent = [
        _before(each) + (b"[]" if each in ("also_at", "faults") else b"null") for each in _ORDER[start:end]
    ]
    return b"".join(silent) + _before(following)


_NUMBER = _before("number")
_CLIENT_ID = _before("client_id")
_PRINCIPAL = _before("principal")
_ASKED_PACKET = _before("request_packet")
_ANSWER_PACKET = _before("response_packet")
_ASKED_START = _before("request_start_ns")
_ASKED_START_ALONE = _between("request_packet", "request_start_ns")
_ASKED_TIME = _before("request_time_ns")
_ANSWER_START = _before("response_start_ns")
_ANSWER_TIME = _before("response_time_ns")
_LATENCY = _before("latency_ns")
_BEHIND = _before("behind_ns")
_BEHIND_ALONE = _between("request_time_ns", "behind_ns")
_BEHIND_ID = _before("behind_correlation_id")
_NETWORK = _before("network_ns")
_THROTTLE = _before("throttle_ns")
_SERVED = _before("served_ns")
_WAIT = _before("wait_ns")
_WORK = _before("broker_ns")
_ASKED_TRANSFER = _before("request_transfer_ns")
_ASKED_TRANSFER_ALONE = _between("throttle_ns", "request_transfer_ns")
_ANSWER_TRANSFER = _before("response_transfer_ns")
_THINK = _before("think_ns")
_THINK_ALONE = _between("request_transfer_ns", "think_ns")
_ASKED_SIZE = _before("request_size")
_ANSWER_SIZE = _before("response_size")
_MISSING = _before("missing")
_MISSING_ALONE = _between("request_size", "missing")
_ERROR = _between("missing", "error")
_NO_ERROR = _between("missing", "topics")
_ERROR_CLASS = _before("error_class")
_TOPICS = _before("topics")
_GROUPS = _before("groups")
_TRANSACTIONAL_IDS = _before("transactional_ids")
_REQUEST = _between("transactional_ids", "request")
_RESPONSE = _before("response")
_NO_RESPONSE = _RESPONSE + b"null"

_NOT_KNOWN = NOT_KNOWN
_MOST_KEPT = 4_096
"""The most texts of connections, or of errors, that are kept."""


class BriefText:
    """Writes lines.

    :param out: the text that they are added to.
    :param messages: writes their messages to it.
    """

    def __init__(self, out: JsonText, messages: MessageText) -> None:
        self._out = out
        self._messages = messages
        self._form: PairLayout | None = None
        """API and version of the last exchange."""
        self._told = b""
        """The text of its line for API and version."""
        self._forms: dict[PairLayout, bytes] = {}
        """The texts for API and version, by API and version."""
        self._connections: dict[int, tuple[tuple[Endpoint, Endpoint], bytes]] = {}
        """The ends of connections, and the texts of their lines."""
        self._errors: dict[tuple[int, tuple[int, ...], tuple[int, ...]], bytes] = {}
        """The texts for errors, by the first error, all errors, and the routine ones among them."""

    def write(self, brief: Brief) -> bool:
        """Add a line. Return False, and add nothing, if the line needs the whole exchange."""
        out = self._out
        begun = out.size()
        has_answer = brief.response_data is not None
        try:
            self._start(brief)
            out.put(_ASKED_PACKET)
            out.number(brief.request_packet)
            if has_answer:
                out.put(_ANSWER_PACKET)
                out.number(brief.response_packet)
            out.put(_ASKED_START if has_answer else _ASKED_START_ALONE)
            out.number(brief.request_first_ns)
            out.put(_ASKED_TIME)
            out.number(brief.request_ns)
            if has_answer:
                out.put(_ANSWER_START)
                out.number(brief.response_first_ns)
                out.put(_ANSWER_TIME)
                out.number(brief.response_ns)
                out.put(_LATENCY)
                out.number(brief.response_first_ns - brief.request_ns)
            self._times(brief, has_answer)
            out.put(_ASKED_SIZE)
            out.number(brief.request_end - brief.request_start)
            if has_answer:
                out.put(_ANSWER_SIZE)
                out.number(brief.response_end - brief.response_start)
            out.put(_MISSING if has_answer else _MISSING_ALONE)
            write_value(out, brief.missing)
            self._names(brief)
            out.put(_REQUEST)
            self._messages.write_in_brief(brief, brief.form.request, False)
            if has_answer:
                out.put(_RESPONSE)
                self._messages.write_in_brief(brief, brief.form.response, True)
            else:
                out.put(_NO_RESPONSE)
        except DecodeError:
            out.cut(begun)
            return False
        out.put(b"}\n")
        return True

    def _start(self, brief: Brief) -> None:
        """Write the columns up to the API: who sends which request to whom."""
        out = self._out
        out.put(_NUMBER)
        out.number(brief.number)
        known = self._connections.get(brief.connection)
        told = self._connection(brief) if known is None or known[0] is not brief.ends else known[1]
        out.put(told)
        if brief.form is not self._form:
            self._form, self._told = brief.form, self._api(brief.form)
        out.put(self._told)
        out.number(brief.correlation_id)
        out.put(_CLIENT_ID)
        write_value(out, brief.client_id)
        out.put(_PRINCIPAL)
        write_value(out, brief.principal)

    def _connection(self, brief: Brief) -> bytes:
        """The text that all lines of a connection share."""
        client, broker = brief.ends
        row = {
            "connection": brief.connection,
            "client": endpoint_text(client),
            "broker": endpoint_text(broker),
        }
        told = b"," + dumps(row)[1:-1].encode("ascii")
        if len(self._connections) >= _MOST_KEPT:
            self._connections.clear()
        self._connections[brief.connection] = brief.ends, told
        return told

    def _api(self, form: PairLayout) -> bytes:
        """The text that all lines of an API in a version share."""
        told = self._forms.get(form)
        if told is None:
            row = {"api_key": form.key, "api": form.name, "api_version": form.version}
            told = b"," + dumps(row)[1:-1].encode("ascii") + _before("correlation_id")
            self._forms[form] = told
        return told

    def _times(self, brief: Brief, has_answer: bool) -> None:
        """Write the computed times."""
        out = self._out
        out.put(_BEHIND if has_answer else _BEHIND_ALONE)
        _write_known(out, brief.behind_ns)
        out.put(_BEHIND_ID)
        if brief.is_behind:
            out.number(brief.behind_id)
        else:
            out.put(b"null")
        out.put(_NETWORK)
        _write_known(out, brief.network_ns)
        out.put(_THROTTLE)
        _write_known(out, brief.throttle_ns)
        if has_answer:
            self._served(brief)
        out.put(_ASKED_TRANSFER if has_answer else _ASKED_TRANSFER_ALONE)
        out.number(brief.request_ns - brief.request_first_ns)
        if has_answer:
            out.put(_ANSWER_TRANSFER)
            out.number(brief.response_ns - brief.response_first_ns)
        out.put(_THINK if has_answer else _THINK_ALONE)
        _write_known(out, brief.think_ns)

    def _served(self, brief: Brief) -> None:
        """Write the time that the broker took, the wait that the client asked for, and the broker's work."""
        out = self._out
        is_known = brief.behind_ns >= 0 and brief.throttle_ns >= 0
        served = served_in_brief(brief) if is_known else 0
        waited = waited_in_brief(brief) if is_known else _NOT_KNOWN
        out.put(_SERVED)
        if is_known:
            out.number(served)
        else:
            out.put(b"null")
        out.put(_WAIT)
        wait = min(served, waited) if waited > 0 else 0
        if waited != _NOT_KNOWN:
            out.number(wait)
            out.put(_WORK)
            out.number(served - wait)
        else:
            out.put(b"null")
            out.put(_WORK)
            out.put(b"null")

    def _names(self, brief: Brief) -> None:
        """Write the errors, and the names in the messages."""
        out, seen = self._out, brief.response_survey
        if seen is None or not seen.error:
            out.put(_NO_ERROR)
        else:
            out.put(self._error(seen, brief.routine))
        write_texts(out, brief.topics())
        out.put(_GROUPS)
        write_texts(out, brief.named(GROUP))
        out.put(_TRANSACTIONAL_IDS)
        write_texts(out, brief.named(TRANSACTIONAL_ID))

    def _error(self, seen: Survey, routine: tuple[int, ...]) -> bytes:
        """The text for the errors of an answer, up to its topics.

        :param routine: the codes that are routine in this answer.
        """
        codes = () if seen.errors is None else tuple(seen.errors)
        key = seen.error, codes, routine
        told = self._errors.get(key)
        if told is None:
            gravest_of = gravest([class_in(code, routine) for code in codes])
            name = dumps(error_name(seen.error)).encode("ascii")
            told = _ERROR + name + _ERROR_CLASS + dumps(gravest_of).encode("ascii") + _TOPICS
            if len(self._errors) >= _MOST_KEPT:
                self._errors.clear()
            self._errors[key] = told
        return told


def _write_known(out: JsonText, number: int) -> None:
    """Write a number of a brief, which may be :data:`~kdissect.session.briefs.NOT_KNOWN`."""
    if number < 0:
        out.put(b"null")
    else:
        out.number(number)
