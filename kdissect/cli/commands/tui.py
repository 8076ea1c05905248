"""``kdissect tui``: captures on the screen."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import ExitStack
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

import click

from kdissect.cli.capturing import (
    capturing_options,
    live_in_own_home,
    opened,
    silence_of,
    spool_size_of,
    started,
)
from kdissect.cli.completing import a_filter
from kdissect.cli.config import Config, config_path
from kdissect.cli.errors import Wrong, complain
from kdissect.cli.exit_codes import DONE
from kdissect.cli.inputs import MORE_FILES, PORTS, listed, packets_of, ports_of
from kdissect.cli.payloads import payload_options
from kdissect.cli.screen_settings import in_lines, settings_of
from kdissect.cli.terminals import can_draw_screens, heed_terminals_without_colours
from kdissect.cli.tls_keys import Keys, key_options, keys_of
from kdissect.model import CaptureError

if TYPE_CHECKING:
    from kdissect.feed.batches import Feed
    from kdissect.feed.live import Live
    from kdissect.feed.source import ScreenSource
    from kdissect.live.rates import Rates

KEPT_BYTES = 2 << 30
"""The most bytes of packets of a live capture that are kept, so that they can be saved."""


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE… | -]")
@MORE_FILES
@click.option(
    "-Y", "filter", metavar="FILTER", shell_complete=a_filter, help="Start with this display filter."
)
@capturing_options
@click.option("--follow", is_flag=True, help="Wait for more: files that grow, folders with rotated files.")
@PORTS
@key_options
@payload_options
@click.option("--theme", metavar="NAME", help="Colours: textual-dark, textual-light, nord, ansi-dark …")
@click.option("--fresh", is_flag=True, help="Start without the saved session, and keep it for the next time.")
@click.option("--show-secrets", is_flag=True, help="Show passwords, tokens and keys.")
@click.option("--compared-as", default="", hidden=True)
def command(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    filter: str | None,
    decode_as: tuple[str, ...],
    key_logs: tuple[str, ...],
    rsa_keys: tuple[str, ...],
    theme: str | None,
    show_secrets: bool,
    fresh: bool,
    follow: bool,
    compared_as: str,
    **capturing: Any,
) -> int:
    """Look through captures on the screen: the list of exchanges, each as a tree and as bytes.

    Several FILEs are one capture; - is standard input. Without a FILE, the start screen lists the captures
    opened last, and the interfaces. The key ? shows all keys.
    """
    paths = (*more_files, *files)
    if paths and capturing["interfaces"]:
        raise Wrong("the screens show files, or interfaces (-i), not both")
    if follow and (not paths or "-" in paths):
        raise Wrong("--follow works with files and folders only")
    if "-" in paths and len(paths) > 1:
        raise Wrong("the screens take standard input (-) alone, without other files")
    if not paths:
        live_in_own_home()
    mistakes: list[Wrong] = []
    options, config, chosen_theme = settings_of(theme, filter, show_secrets, capturing, mistakes.append)
    is_live = follow or paths == ("-",) or bool(capturing["interfaces"])
    keys = {"key_logs": key_logs, "rsa_keys": rsa_keys}
    if paths and not is_live:
        paths = listed(paths)
        packets_of(paths, config.limits).close()
    _require_screen(paths)
    heed_terminals_without_colours()

    from kdissect.settings.recent import remember, state_folder

    with ExitStack() as stack:
        ports = config.ports | ports_of(decode_as)
        known = keys_of(keys, config.limits, growing=is_live)
        opener = _CaptureOpener(stack, config, ports, keys, known, capturing)
        if capturing["interfaces"]:
            feed: Feed | None = opener.live(capturing)
        elif paths == ("-",):
            feed = opener.standard_input()
        elif follow:
            feed = opener.files(paths, follows=True)
        elif paths:
            feed = opener.files(paths)
            remember(paths)
        else:
            feed = None
        # Decoding has begun. Importing the screens takes half a second, and a tenth more if the garbage
        # collector runs meanwhile.
        from kdissect.system.heap import keep_what_there_is, uncollected

        with uncollected():
            from kdissect.settings import session
            from kdissect.settings.remembered import Remembered
            from kdissect.settings.screens import Rules, Settings
            from kdissect.tui.app import Kdissect

            keep_what_there_is()

        folder = state_folder()
        left = folder / "screens.json"
        is_first = not left.exists()
        app = Kdissect(
            feed,
            options,
            Settings(
                config.time,
                chosen_theme,
                config.list_columns,
                config.keymap,
                filter or "",
                config.slow_ms,
                Rules(config.thresholds, config.ignored),
                "exchanges" if compared_as else config.page,
                session.LastSession() if fresh else session.load(left),
                is_first,
                config.commands,
                config.coloring,
                compared_as,
                in_lines(mistakes),
            ),
            remembered=Remembered(folder / "filters", config_path().parent / "filters.toml", config.filters),
            opener=opener,
            rates=_rates(),
        )
        # The helper process for starting processes inherits our stderr, which does not exist while the
        # screens are on.
        if sys.platform != "win32":  # Windows has no such helper
            resource_tracker.ensure_running()
        app.run()
        if not fresh:
            session.save(left, app.session)
        elif is_first:  # so that the hint for first use appears once
            session.save(left, session.LastSession())
    return app.return_code or DONE


def _close(feed: Live) -> None:
    feed.close()
    if feed.left is not None:
        complain(f"not all packets were decoded; the captured packets are in {feed.left}")


def _rates() -> Rates | None:
    """The rates of interfaces; None if nothing can be captured."""
    if _is_in_browser():
        return None
    from kdissect.live.rates import Rates

    return Rates()


@click.command(add_help_option=False)
@capturing_options
def _typed(**_: Any) -> None:
    """The options that can be typed on the start screen."""


class _CaptureOpener:
    """Begins to decode captures, and closes them when ``stack`` ends.

    :param options: ``--keylog`` and ``--rsa-key``.
    :param keys: their secrets.
    :param capturing: the options of the command line, which also apply to captures that are chosen on the
        screen.
    """

    def __init__(
        self,
        stack: ExitStack,
        config: Config,
        ports: frozenset[int],
        options: dict[str, Any],
        keys: Keys,
        capturing: dict[str, Any],
    ) -> None:
        self._stack, self._config, self._ports = stack, config, ports
        self._options, self._keys, self._capturing = options, keys, capturing

    def _source(self, paths: tuple[str, ...], keys: Keys, **given: Any) -> ScreenSource:
        from kdissect.feed.source import ScreenSource
        from kdissect.source import Input

        what = Input(paths, self._config.limits, self._ports, dict(self._config.topics))
        given |= {"secrets": keys.secrets, "key_logs": keys.growing, "key_log_paths": keys.paths}
        return ScreenSource(what, **given)

    def files(self, paths: tuple[str, ...], follows: bool = False) -> Feed:
        """Captures in files, which may grow."""
        from kdissect.feed.decoder import Decoder

        decoder = Decoder(self._source(paths, self._keys, is_live=follows, follows=follows))
        self._stack.callback(decoder.close)
        return decoder

    def live(self, capturing: dict[str, Any]) -> Feed:
        """The live capture of interfaces."""
        from kdissect.feed.live import Live
        from kdissect.live.session import CaptureSession

        size = spool_size_of(capturing["spool_size"], KEPT_BYTES)
        found = opened(capturing)
        session = started(found, lambda: CaptureSession(found.openers, size=size))
        self._stack.callback(session.close)
        keys = keys_of(self._options, self._config.limits, growing=True)
        source = self._source(tuple(capturing["interfaces"]), keys, is_live=True, spool=session.folder)
        feed = Live(source, session, silence_of(capturing, found))
        self._stack.callback(_close, feed)
        return feed

    def standard_input(self) -> Feed:
        """A capture that is piped in."""
        if sys.platform != "win32":
            from kdissect.feed.decoder import Decoder
            from kdissect.feed.piped import Piped
            from kdissect.system.terminal import keyboard_for_stdin

            piped = Piped(keyboard_for_stdin())
            self._stack.callback(piped.close)
            scratch = os.path.dirname(piped.pipe)
            decoder = Decoder(self._source((piped.pipe,), self._keys, is_live=True, scratch=scratch))
            self._stack.callback(decoder.close)
            kept = decoder.source.input._replace(paths=(piped.kept,))
            decoder.source = decoder.source._replace(input=kept)
            return decoder
        raise Wrong(
            "on Windows the screens cannot read standard input: write it to a file, and give --follow"
        )

    def file(self, path: str) -> Feed:
        """As :class:`kdissect.tui.host.Opener` defines it."""
        from kdissect.capture.files import read_packets
        from kdissect.settings.recent import remember

        read_packets((path,), self._config.limits).close()
        remember((path,))
        return self.files((path,))

    def interfaces(self, words: str) -> Feed:
        """As :class:`kdissect.tui.host.Opener` defines it."""
        from kdissect.live.external import is_external

        given = {name: value for name, value in self._capturing.items() if name != "interfaces"}
        if _is_in_browser():
            raise CaptureError("the screens in a browser cannot capture: use kdissect tui")
        try:
            context = _typed.make_context("-i", shlex.split(words), default_map=given)
            capturing = {**given, **context.params}
            for name in filter(is_external, capturing["interfaces"]):
                raise Wrong(f"{name} may ask for a password: kdissect tui -i {name}")
            return self.live(capturing)
        except click.ClickException as error:
            raise CaptureError(error.format_message()) from None
        except ValueError as error:
            raise CaptureError(f"{words}: {error}") from None


def _is_in_browser() -> bool:
    """Whether the screens are drawn elsewhere: a server for browsers has set Textual's driver."""
    return bool(os.environ.get("TEXTUAL_DRIVER"))


def _require_screen(paths: tuple[str, ...]) -> None:
    """Check that there is a terminal to draw on and to read keys from, as there is in a browser.

    :raises Wrong: there is none.
    """
    if _is_in_browser():
        return
    streams = [sys.stdin, sys.stdout, sys.stderr]
    if paths == ("-",):
        del streams[0]
        if sys.stdin.isatty():
            raise Wrong("- is standard input, and nothing is piped into it")
    if not all(stream.isatty() for stream in streams):
        raise Wrong("the screens need a terminal; kdissect read prints to anything")
    if not can_draw_screens():
        term = os.environ["TERM"]
        raise Wrong(
            f"the screens cannot draw on TERM={term}: set what the terminal is (TERM=xterm-256color);"
            " kdissect read prints to anything"
        )
