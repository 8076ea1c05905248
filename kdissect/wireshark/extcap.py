"""The words of the extcap protocol, in which Wireshark asks a program for interfaces and their packets.

Wireshark's manual page extcap(4) describes it. Every answer is a line of ``word {name=value}…``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kdissect import __version__
from kdissect.present.sanitise import sanitise

PREFIX = "kdissect-"
"""The prefix of an interface's name in Wireshark's list."""
_HELP = "https://www.wireshark.org/docs/man-pages/extcap.html"

_LINK_TYPES = {
    1: ("EN10MB", "Ethernet"),
    276: ("LINUX_SLL2", "Linux cooked-mode capture v2"),
}


class Argument(NamedTuple):
    """An option that Wireshark offers for an interface."""

    option: str
    type: str
    """A word of the protocol: ``string``, ``boolean``, ``boolflag``, ``fileselect`` …"""
    display: str
    tooltip: str
    more: tuple[tuple[str, str], ...] = ()


ARGUMENTS = (
    Argument(
        "--comments",
        "boolean",
        "Say in comments what is known of each exchange",
        "The plug-in shows the comments as fields",
        (("default", "true"),),
    ),
    Argument(
        "--decode-as",
        "string",
        "Port that is Kafka's",
        "kdissect recognises Kafka on any port; this one counts whatever it carries",
        (("validation", r"^\d*$"),),
    ),
    Argument("--keylog", "fileselect", "TLS key log", "A file of SSLKEYLOGFILE", (("mustexist", "true"),)),
    Argument("--allow-root", "boolflag", "Decode as root", "Only if Wireshark itself runs as root"),
)


def interface_lines(interfaces: Iterable[tuple[str, str]]) -> Iterator[str]:
    """The answer to ``--extcap-interfaces``.

    :param interfaces: names, with what is known of each.
    """
    yield _line("extcap", version=__version__, help=_HELP, display="kdissect")
    for name, description in interfaces:
        known = f" ({description})" if description else ""
        yield _line("interface", value=PREFIX + name, display=f"Kafka on {name}{known}, by kdissect")


def link_type_line(link_type: int) -> str:
    """The answer to ``--extcap-dlts``."""
    name, display = _LINK_TYPES[link_type]
    return _line("dlt", number=str(link_type), name=name, display=display)


def argument_lines() -> Iterator[str]:
    """The answer to ``--extcap-config``."""
    for number, each in enumerate(ARGUMENTS):
        told = {"call": each.option, "display": each.display, "tooltip": each.tooltip, "type": each.type}
        yield _line("arg", number=str(number), **told, required="false", **dict(each.more))


def _line(word: str, **values: str) -> str:
    return f"{word} " + "".join(f"{{{name}={_value(value)}}}" for name, value in values.items())


def _value(text: str) -> str:
    """A value that cannot end itself or the line: the protocol has no escapes."""
    return sanitise(text, None).replace("{", "(").replace("}", ")")
