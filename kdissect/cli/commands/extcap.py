"""``kdissect extcap``: the program that Wireshark asks for interfaces and their packets.

Wireshark asks about every interface when it starts, so this module imports little.
:mod:`kdissect.cli.wireshark_pipe` captures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from kdissect.cli.errors import Wrong
from kdissect.cli.exit_codes import DONE
from kdissect.cli.output import TextOutput, open_output
from kdissect.wireshark.extcap import PREFIX, argument_lines, interface_lines, link_type_line

_ETHERNET, _COOKED = 1, 276
"""The link types of one interface, and of all interfaces together (SLL2)."""


@click.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.option("--extcap-interfaces", "asks_interfaces", is_flag=True, help="List the interfaces.")
@click.option("--extcap-dlts", "asks_link_types", is_flag=True, help="Print the link types of the interface.")
@click.option("--extcap-config", "asks_arguments", is_flag=True, help="List its options.")
@click.option("--capture", "captures", is_flag=True, help="Capture.")
@click.option("--extcap-interface", "interface", metavar="NAME", help="The interface.")
@click.option("--extcap-version", metavar="VERSION", help="Wireshark's version.")
@click.option(
    "--extcap-capture-filter", "capture_filter", metavar="BPF", help="Capture only what it selects."
)
@click.option("--fifo", metavar="FILE", help="Where packets are written.")
@click.option("--comments", type=bool, default=True, help="Say in comments what is known of exchanges.")
@click.option("--decode-as", "port", metavar="PORT", help="The port whose traffic is Kafka's.")
@click.option("--keylog", "key_log", metavar="FILE", help="Secrets for TLS.")
@click.option("--allow-root", is_flag=True, help="Decode as root.")
@click.option("--extcap-control-in", metavar="FILE", help="Not used.")
@click.option("--extcap-control-out", metavar="FILE", help="Not used.")
def command(**given: Any) -> int:
    """Answer Wireshark in the extcap protocol. kdissect wireshark install connects the two."""
    if given["asks_interfaces"]:
        return _print(interface_lines(_interfaces()))
    if given["interface"] is None:
        raise Wrong("extcap is a command for Wireshark: kdissect wireshark install makes Wireshark use it")
    name = _known(given["interface"])
    if given["asks_link_types"]:
        return _print(iter((link_type_line(_COOKED if name == "any" else _ETHERNET),)))
    if given["asks_arguments"]:
        return _print(argument_lines())
    if given["captures"]:
        if given["fifo"] is None:
            raise Wrong("--capture needs --fifo FILE, to which it writes the packets")
        from kdissect.cli.wireshark_pipe import WiresharkPipe

        return WiresharkPipe(name, given).run()
    return _check_filter(name, given["capture_filter"])


def _print(lines: Iterator[str]) -> int:
    with open_output(None) as file:
        TextOutput(file).lines(lines)
    return DONE


def _interfaces() -> list[tuple[str, str]]:
    """The interfaces that can be captured from; empty without libpcap on systems where libpcap lists them."""
    from kdissect.live.rates import interfaces

    return [(each.name, each.description) for each in interfaces()]


def _known(text: str) -> str:
    """The interface that Wireshark names.

    :raises Wrong: there is no such interface.
    """
    name = text.removeprefix(PREFIX)
    if name == text or name not in {each for each, _ in _interfaces()}:
        raise Wrong(f"{text}: there is no such interface any more; refresh Wireshark's list (F5)")
    return name


def _check_filter(name: str, text: str | None) -> int:
    """Whether a capture filter is valid. Wireshark asks while the user types it."""
    if text:
        from kdissect.live.bpf import SNAP_LENGTH, program_of
        from kdissect.live.errors import BadFilterError

        try:
            program_of(text, _COOKED if name == "any" else _ETHERNET, SNAP_LENGTH, None)
        except BadFilterError as error:
            return _print(iter((str(error),)))
    return DONE
