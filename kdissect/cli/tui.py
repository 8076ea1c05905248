"""``kdissect tui``: captures on the screen."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from importlib.util import find_spec
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

import click

from kdissect.cli import DONE, root
from kdissect.cli.completing import a_filter
from kdissect.cli.config import Config, config_path, load_config
from kdissect.cli.errors import Wrong
from kdissect.cli.read import ports_of
from kdissect.cli.reading import packets_of
from kdissect.present.nearest import nearest
from kdissect.present.options import Options

if TYPE_CHECKING:
    from kdissect.tui.feed.decoder import Feed


@click.command()
@click.argument("files", nargs=-1, metavar="[FILE… | -]")
@click.option("-r", "more_files", multiple=True, metavar="FILE", help="A capture, as tshark has it.")
@click.option(
    "-Y", "filter", metavar="FILTER", shell_complete=a_filter, help="Begin with this display filter."
)
@click.option("-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="Take a port for Kafka's.")
@click.option("--theme", metavar="NAME", help="Colours: textual-dark, textual-light, nord, ansi-dark …")
@click.option("--show-secrets", is_flag=True, help="Passwords, tokens and keys as they were sent.")
def command(
    files: tuple[str, ...],
    more_files: tuple[str, ...],
    filter: str | None,
    decode_as: tuple[str, ...],
    theme: str | None,
    show_secrets: bool,
) -> int:
    """Look through captures on the screen: the list of exchanges, each as a tree and as bytes.

    Several FILEs are one capture; - is standard input, the keys come from the terminal then. Without a FILE
    the captures opened last are listed. Decoding goes on beside the screen; ? shows the keys. It needs
    kdissect[tui].
    """
    paths = (*more_files, *files)
    if "-" in paths and len(paths) > 1:
        raise Wrong("the screens take standard input (-) alone, without other files")
    require_packages()
    _require_screen(paths)
    config = load_config()
    options = Options(show_secrets=show_secrets, embedded=True, limits=config.limits)
    chosen_theme = _known_theme(theme, config)
    _require_filters(filter, config, options)
    if paths and paths != ("-",):
        packets_of(paths, config.limits).close()

    from kdissect.tui.app import Kdissect
    from kdissect.tui.recent import remember, state_folder
    from kdissect.tui.remembered import Remembered
    from kdissect.tui.settings import Settings

    with ExitStack() as stack:
        opener = _Opener(stack, config, config.ports | ports_of(decode_as))
        if paths == ("-",):
            feed: Feed | None = opener.standard_input()
        elif paths:
            feed = opener.files(paths)
            remember(paths)
        else:
            feed = None
        folder = state_folder()
        app = Kdissect(
            feed,
            options,
            Settings(config.time, chosen_theme, config.columns, config.keymap, filter or "", config.slow_ms),
            remembered=Remembered(folder / "filters", config_path().parent / "filters.toml", config.filters),
            opener=opener.chosen,
        )
        # What helps to start processes takes over our stderr, which is none while the screens are on.
        resource_tracker.ensure_running()
        app.run()
    return app.return_code or DONE


class _Opener:
    """Begins to decode captures. They are let go of when ``stack`` ends."""

    def __init__(self, stack: ExitStack, config: Config, ports: frozenset[int]) -> None:
        self._stack, self._config, self._ports = stack, config, ports

    def files(self, paths: tuple[str, ...]) -> Feed:
        """Captures in files."""
        from kdissect.tui.feed.decoder import Decoder, Source

        decoder = Decoder(Source(paths, self._config.limits, self._ports, dict(self._config.topics)))
        self._stack.callback(decoder.close)
        return decoder

    def standard_input(self) -> Feed:
        """A capture that is piped in."""
        from kdissect.tui.feed.decoder import Decoder, Source
        from kdissect.tui.feed.piped import Piped
        from kdissect.tui.terminal import keyboard_for_stdin

        piped = Piped(keyboard_for_stdin())
        self._stack.callback(piped.close)
        limits, topics = self._config.limits, dict(self._config.topics)
        decoder = Decoder(Source((piped.pipe,), limits, self._ports, topics, is_live=True))
        self._stack.callback(decoder.close)
        decoder.source = decoder.source._replace(paths=(piped.kept,))
        return decoder

    def chosen(self, path: str) -> Feed:
        """A capture that was chosen on the screen.

        :raises CaptureError: it cannot be read.
        """
        from kdissect.capture.files import read_packets
        from kdissect.tui.recent import remember

        read_packets((path,), self._config.limits).close()
        remember((path,))
        return self.files((path,))


def require_packages() -> None:
    """See that what the screens need is installed.

    :raises Wrong: it is not.
    """
    missing = [module for module in root.NEEDED if find_spec(module) is None]
    if missing:
        raise Wrong(f"the screens need {' and '.join(missing)}: pip install 'kdissect[tui]'")


def _require_screen(paths: tuple[str, ...]) -> None:
    """See that there is something to draw on and to read keys from. In a browser there is: who serves it has
    set Textual's driver.

    :raises Wrong: there is not.
    """
    if os.environ.get("TEXTUAL_DRIVER"):
        return
    streams = [sys.stdin, sys.stdout, sys.stderr]
    if paths == ("-",):
        del streams[0]
        if sys.stdin.isatty():
            raise Wrong("- is standard input, and nothing is piped into it")
    if not all(stream.isatty() for stream in streams):
        raise Wrong("the screens need a terminal; kdissect read prints to anything")
    if os.environ.get("TERM") in root.NO_SCREENS:
        raise Wrong(f"the screens cannot draw on TERM={os.environ['TERM']}; kdissect read prints to anything")


def _known_theme(given: str | None, config: Config) -> str | None:
    """The theme of the command line, else of the configuration.

    :raises Wrong: there is no such theme.
    """
    name = given or config.theme
    if name is not None:
        from kdissect.tui.settings import themes

        if name not in themes():
            hint = nearest(name, themes()) or f"; try {', '.join(sorted(themes()))}"
            where = f"--theme {name}" if given else f"{config_path()}: theme {name}"
            raise Wrong(f"{where}: there is no such theme{hint}")
    return name


def _require_filters(given: str | None, config: Config, options: Options) -> None:
    """See that the filter of the command line and those of the configuration are filters.

    :raises Wrong: one is none; the text tells where, and what was meant.
    """
    from kdissect.filter.compiled import compile_filter
    from kdissect.filter.errors import FilterError

    named = {f"{config_path()}: filters: {name}": text for name, text in config.filters.items()}
    for where, text in (named if given is None else {**named, "-Y": given}).items():
        try:
            compile_filter(text, options)
        except FilterError as error:
            raise Wrong(f"{where}: {error}", error.excerpt()) from None
