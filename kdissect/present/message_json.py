"""The requests and responses of exchanges as JSON text, for cells of tables.

For ordinary messages the text is made directly from their bytes. That is many times faster than decoding
their values first.
"""

from __future__ import annotations

from kdissect.exchange import Exchange
from kdissect.message import Message
from kdissect.model import DecodeError
from kdissect.present.body import side_object
from kdissect.present.message_text import MessageText
from kdissect.present.options import Options
from kdissect.protocol.json_form import RawText, dumps
from kdissect.protocol.json_text import JsonText


class MessageJson:
    """Makes the texts."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._text = JsonText()
        self._messages = MessageText(self._text, options._replace(as_text=True))

    def text(self, side: str, exchange: Exchange, _: Options) -> RawText | None:
        """The ``request`` or ``response`` of an exchange, as text of
        :func:`~kdissect.present.body.side_object`; None if it is missing."""
        message: Message | None = getattr(exchange, side)
        if message is None:
            return None
        if not (self._options.embedded or exchange.session_faults):
            try:
                self._messages.write(exchange, message, side == "response")
                return RawText(self._text.take().decode("ascii"))
            except DecodeError:
                self._text.cut(0)
        return RawText(dumps(side_object(exchange, side, self._options)))
