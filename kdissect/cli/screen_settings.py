"""The settings of the screens, from the configuration and the options of ``tui`` and ``web``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from kdissect.cli.config import Config, Mistaken, load_config, place_of, refuse
from kdissect.cli.errors import Wrong
from kdissect.cli.payloads import usable_decoder
from kdissect.present.nearest import nearest
from kdissect.present.options import Options

_THEME = "KDISSECT_THEME"


def settings_of(
    theme: str | None,
    filter: str | None,
    show_secrets: bool,
    payloads: Mapping[str, Any],
    mistaken: Mistaken = refuse,
) -> tuple[Options, Config, str | None]:
    """The settings of the configuration, combined with the command line: options, the configuration, and the
    theme.

    :param payloads: the options of :func:`kdissect.cli.payloads.decoder_of`.
    :param mistaken: called with each mistake in the configuration.
    :raises Wrong: an option of the command line is not understood.
    """
    config = load_config(for_screens=True, mistaken=mistaken)
    options = Options(show_secrets=show_secrets, embedded=True, limits=config.limits)
    config, decoder = usable_decoder(payloads, config, mistaken)
    options = options._replace(shown_fields=config.shown_fields, payloads=decoder)
    config = _with_filters(config, options, mistaken)
    if filter is not None:
        wrong = _why_no_filter("-Y", filter, options)
        if wrong is not None:
            raise wrong
    return options, config, known_theme(theme, config, mistaken)


def known_theme(given: str | None, config: Config, mistaken: Mistaken = refuse) -> str | None:
    """The theme of the command line, else of the configuration.

    :raises Wrong: the command line names an unknown theme.
    """
    name = given or config.theme
    if name is not None:
        from kdissect.tui.colors import themes

        if name not in themes():
            hint = nearest(name, themes()) or f"; try {', '.join(sorted(themes()))}"
            if given:
                raise Wrong(f"--theme {name}: there is no such theme{hint}")
            place = _THEME if _THEME in os.environ else place_of("", "theme")
            mistaken(Wrong(f"{place}: theme {name}: there is no such theme{hint}"))
            return None
    return name


def _with_filters(config: Config, options: Options, mistaken: Mistaken) -> Config:
    """The configuration without invalid filters."""

    def is_one(table: str, name: str, text: str) -> bool:
        wrong = _why_no_filter(f"{table}: {name}", text, options)
        if wrong is not None:
            mistaken(Wrong(f"{place_of(table, name)}: {wrong.message}", wrong.below))
        return wrong is None

    named = {name: text for name, text in config.filters.items() if is_one("filters", name, text)}
    coloring = tuple(each for each in config.coloring if is_one("coloring", each.name, each.filter))
    return config._replace(filters=named, coloring=coloring)


def _why_no_filter(where: str, text: str, options: Options) -> Wrong | None:
    from kdissect.analysis.slow import Slowness
    from kdissect.filter.compiled import compile_filter
    from kdissect.filter.errors import FilterError

    try:
        compile_filter(text, options, Slowness())
    except FilterError as error:
        return Wrong(f"{where}: {error}", error.excerpt())
    return None


def in_lines(mistakes: Iterable[Wrong]) -> tuple[tuple[str, ...], ...]:
    """Mistakes in the form that the screens show."""
    return tuple((each.message, *each.below) for each in mistakes)
