"""Requests and responses → JSON, straight from their bytes: header and body."""

from __future__ import annotations

from collections.abc import Iterator

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.present.body import context_of
from kdissect.present.options import Options
from kdissect.present.record_set_text import RecordSets, unusual
from kdissect.present.redact import asked_of, hidden_fields, verdicts
from kdissect.protocol.cursor import Cursor
from kdissect.protocol.json_form import dumps
from kdissect.protocol.json_plan import way_of
from kdissect.protocol.json_text import JsonText
from kdissect.protocol.json_walk import Walk
from kdissect.protocol.layout import Layout
from kdissect.protocol.quirks import tail_quirk
from kdissect.protocol.schema import REMAINDER, Struct
from kdissect.session.briefs import Brief

_TAIL = f"{dumps(REMAINDER)}:".encode("ascii")


class MessageText:
    """Writes messages.

    :param out: the text that they are added to.
    """

    def __init__(self, out: JsonText, options: Options) -> None:
        self._out = out
        self._options = options
        self._records = RecordSets(options)
        self._judge = SecretJudge(options)
        self._walk = Walk(Cursor(b"", 0, None, options.limits), out)
        self._ways: dict[Struct, Ways] = {}
        """The ways used so far, by the struct of the body."""

    def write(self, exchange: Exchange, message: Message, is_response: bool) -> None:
        """Write a request or response of an exchange.

        :raises DecodeError: the message must be written from its values.
        """
        options, payload = self._options, message.frame.payload
        struct = message.body_struct()
        if struct is None or message.limits is not options.limits or message.header_faults:
            raise unusual()
        if is_response and struct.name == "ApiVersionsResponse":
            struct = message._candidates(struct)[0]
        ways = self._ways.get(struct)
        if ways is None:
            ways = self._ways[struct] = Ways(message, struct, options)
        judge: SecretJudge | None = None
        if ways.hidden is not None and ways.hidden.maybe:
            judge = self._judge
            judge.begin(exchange, message, struct, ways.hidden.maybe)
        self._write(payload, 0, message.body_start, len(payload), ways, is_response, judge)

    def write_in_brief(self, brief: Brief, known: Layout, is_response: bool) -> None:
        """Write the request or response of an exchange in brief.

        :raises DecodeError: the row must be made from the whole exchange.
        """
        struct = known.struct
        if struct is None or brief.limits is not self._options.limits:
            raise unusual()
        ways = self._ways.get(struct)
        if ways is None:
            message = brief.response() if is_response else brief.request()
            ways = self._ways[struct] = Ways(message, struct, self._options)
        if ways.hidden is not None and ways.hidden.maybe:
            raise unusual()
        if is_response:
            data, start, body, end = (
                brief.response_data,
                brief.response_start,
                brief.response_body,
                brief.response_end,
            )
        else:
            data, start, body, end = (
                brief.request_data,
                brief.request_start,
                brief.request_body,
                brief.request_end,
            )
        assert data is not None
        self._write(data, start, body, end, ways, is_response, None)

    def _write(
        self,
        data: bytes,
        start: int,
        body: int,
        end: int,
        ways: Ways,
        is_response: bool,
        judge: SecretJudge | None,
    ) -> None:
        """Write a message.

        :param data: bytes that contain it from ``start`` to ``end``, with its body from ``body`` on.
        :param judge: decides on secrets, if they depend on other values.
        :raises DecodeError: the message must be written from its values.
        """
        out, walk = self._out, self._walk
        out.put(b'{"header":')
        walk.begin(data, start, end)
        walk.write(ways.header)
        if walk.cursor.position != body:
            raise unusual()
        out.put(b',"body":')
        self._records.may_end_early = is_response
        walk.records = self._records
        walk.judge = judge
        begun = out.size()
        walk.write(ways.body)
        if walk.cursor.position != walk.cursor.end:
            self._write_tail(data, walk.cursor.position, end, ways, begun)
        out.put(b"}")

    def _write_tail(self, data: bytes, start: int, end: int, ways: Ways, begun: int) -> None:
        """Add the bytes after a body, if they are a known deviation of some programs.

        :param begun: where the body begins in the text.
        :raises DecodeError: they are not.
        """
        if not ways.tail or data[start:end] != ways.tail:
            raise unusual()
        out = self._out
        out.cut(out.size() - 1)  # the closing brace
        if out.size() > begun + 1:
            out.put(b",")
        out.put(_TAIL)
        out.base64(data, start, end - start)
        out.put(ways.after_tail)


class Ways:
    """The ways to write the header and the body of a message."""

    __slots__ = ("after_tail", "body", "header", "hidden", "tail")

    def __init__(self, message: Message, struct: Struct, options: Options) -> None:
        header = message.header_struct()
        assert header is not None
        self.header = way_of(header)
        self.hidden = None if options.show_secrets else hidden_fields(struct.name, options.shown_fields)
        self.body = way_of(struct, self.hidden)
        self.tail = self.after_tail = b""
        """The bytes that may follow the body, and the text after them."""
        assert message.api_key is not None
        quirk = tail_quirk(message.api_key, struct.version, message.kind)
        if quirk is not None:
            self.tail, self.after_tail = quirk.tail, f'}},"quirk":{dumps(quirk.text)}'.encode("ascii")


class SecretJudge:
    """Decides on secrets by other values of their message, which it decodes for that."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._about: tuple[Exchange, Message, Struct, frozenset[str]] | None = None
        self._verdicts: Iterator[bool] | None = None

    def begin(self, exchange: Exchange, message: Message, struct: Struct, maybe: frozenset[str]) -> None:
        """Begin with another message.

        :param maybe: names of the fields that may be secrets.
        """
        self._about = exchange, message, struct, maybe
        self._verdicts = None

    def hides(self) -> bool:
        """Whether the next value that may be a secret is one.

        :raises DecodeError: the message does not have the expected form.
        """
        if self._verdicts is None:
            assert self._about is not None
            exchange, message, struct, maybe = self._about
            body = message.decoded()
            if not body.is_exact or body.struct is not struct:
                raise unusual()
            asked = asked_of(struct.name, context_of(exchange, message, self._options))
            self._verdicts = verdicts(struct, body.values, maybe, asked)
        found = next(self._verdicts, None)
        if found is None:
            raise unusual()
        return found
