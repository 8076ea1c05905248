"""A request or response → the object in the columns ``request`` and ``response``.

    {"header": {…}, "body": {…}}                        in the form of Kafka's own JSON converters
    {"header": {…}, "body": null, "opaque": reason}     where API or version is unknown
    {"header": {…}, "body": {…}, "quirk": what it is}   where it differs as its writer is known to

Bytes that no field accounts for are the body's ``_remainder``. Secrets are ``"<redacted>"``. If the user
wants it, decoded record batches and decoded embedded bytes are added.
"""

from __future__ import annotations

from typing import Any

from kdissect.embedded.decoded import Context, Embedded, Render
from kdissect.embedded.fields import NO_CONTEXT, decode_field
from kdissect.exchange import Exchange
from kdissect.message import SASL_TOKEN, Message, Token, is_slice
from kdissect.names import NO_NAMES, Names
from kdissect.present.batches import batch_objects
from kdissect.present.decoded import topic_of
from kdissect.present.options import PLAIN, Options
from kdissect.present.redact import answers_secrets, asked_of, is_metadata_topic, is_secret, may_hold_secrets
from kdissect.present.secret_names import REDACTED, contains_secret_name
from kdissect.protocol import apis
from kdissect.protocol.json_form import SIZE_SUFFIX, Hook, base64_text, to_json
from kdissect.protocol.schema import REMAINDER, UNKNOWN_TAGS, Field, Struct


def side_object(exchange: Exchange, side: str, options: Options = PLAIN) -> dict[str, Any] | None:
    """The ``request`` or ``response`` of an exchange; None if it is missing."""
    message: Message | None = getattr(exchange, side)
    if message is None:
        return None
    return message_object(message, options, context_of(exchange, message, options), exchange.topic_names)


def context_of(exchange: Exchange, message: Message, options: Options) -> Context:
    """The facts of its exchange that are needed to show a message. For a response that is the request, if the
    request determines what is embedded in the response, or which of its values are secrets.
    """
    request = exchange.request
    if request is None or message is request or message.api_key is None:
        return NO_CONTEXT
    if not options.embedded and not answers_secrets(apis.api_name(message.api_key) + "Response"):
        return NO_CONTEXT
    return Context(request.body(), is_whole=is_whole(request))


def is_whole(message: Message) -> bool:
    """Whether all bytes of a message are known. Missing bytes cannot be judged."""
    body = message.decoded()
    return not (message.is_cut or body.faults or body.remainder or body.struct is None)


def message_object(
    message: Message, options: Options = PLAIN, context: Context = NO_CONTEXT, names: Names = NO_NAMES
) -> dict[str, Any]:
    """A message in its JSON form.

    :param context: the request, which may determine what is embedded in a response.
    :param names: the names of topic ids.
    """
    if isinstance(message, Token):
        return {"header": {}, "body": _token_body(message, options)}
    header = message.header_struct()
    out: dict[str, Any] = {"header": to_json(header, message.header()) if header is not None else {}}
    body = message.decoded()
    if body.struct is None:
        out["body"] = None
        out["opaque"] = body.opaque
    else:
        out["body"] = values_object(body.struct, body.values, body.remainder, options, context, names)
        if body.quirk is not None:
            out["quirk"] = body.quirk
    return out


def values_object(
    struct: Struct,
    values: dict[str, Any],
    remainder: bytes = b"",
    options: Options = PLAIN,
    context: Context = NO_CONTEXT,
    names: Names = NO_NAMES,
) -> dict[str, Any]:
    """Decoded values of any message class, and the remaining bytes, in their JSON form."""
    out = to_json(struct, values, _hook(struct.name, options, context, names))
    hide = may_hold_secrets(struct.name) and not options.show_secrets
    if hide:
        _hide_unknown(out)
    if remainder:
        is_hidden = hide or (not options.show_secrets and contains_secret_name(remainder))
        out[REMAINDER] = REDACTED if is_hidden else base64_text(remainder)
    return out


def embedded_object(part: Embedded | None, options: Options = PLAIN) -> dict[str, Any] | None:
    """Embedded bytes in their JSON form."""
    if part is None:
        return None
    if part.struct is None and part.remainder and may_hold_secrets(part.name) and not options.show_secrets:
        return {REMAINDER: REDACTED}
    return part.json(_render(options))


def _render(options: Options) -> Render:
    def render(struct: Struct, values: dict[str, Any], remainder: bytes, context: Context) -> dict[str, Any]:
        return values_object(struct, values, remainder, options, context)

    return render


def _hide_unknown(value: Any) -> None:
    """Hide unknown tagged fields of a message with secrets, because they may be secrets too."""
    if isinstance(value, list):
        for item in value:
            _hide_unknown(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name == UNKNOWN_TAGS:
                for tagged in item:
                    tagged["data"] = REDACTED
            else:
                _hide_unknown(item)


def _token_body(token: Token, options: Options) -> dict[str, Any]:
    data = token.body()["authBytes"]
    hidden = not options.show_secrets and is_secret(SASL_TOKEN, "authBytes", (token.body(),), data)
    return {"authBytes": REDACTED if hidden else base64_text(data)}


def _hook(message: str, options: Options, context: Context, names: Names) -> Hook | None:
    """The function that writes the fields whose form is not Kafka's; None if there are no such fields."""
    redacts = not options.show_secrets and may_hold_secrets(message)
    if not (redacts or options.records or options.embedded):
        return None
    context = context._replace(limits=options.limits)
    asked = asked_of(message, context)

    def hook(
        ancestors: list[dict[str, Any]], _: Struct, field: Field, value: Any, out: dict[str, Any]
    ) -> bool:
        name = field.name
        if field.type == "records":
            if not options.records or value is None or is_slice(name, ancestors[-1]):
                return False
            out[name + SIZE_SUFFIX] = len(value)
            topic = "" if options.payloads is None else topic_of(tuple(ancestors), names)
            out[name] = batch_objects(value, options, is_metadata_topic(ancestors), topic)
            return True
        hidden = redacts and is_secret(message, name, ancestors, value, options.shown_fields, asked)
        found = decode_field(message, ancestors, name, value, context) if options.embedded else None
        if hidden:
            out[name] = REDACTED
        elif found is not None:
            out[name] = base64_text(value)
        if found is not None:
            out[name + "Decoded"] = found.json(_render(options))
        return hidden or found is not None

    return hook
