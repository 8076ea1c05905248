"""What the screens are set to, by the configuration and by the options of ``tui`` and ``web``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kdissect.cli.config import Config, config_path, load_config, place_of
from kdissect.cli.errors import Wrong
from kdissect.cli.payloads import decoder_of
from kdissect.present.nearest import nearest
from kdissect.present.options import Options


def settings_of(
    theme: str | None, filter: str | None, show_secrets: bool, payloads: Mapping[str, Any]
) -> tuple[Options, Config, str | None]:
    """What is configured for the screens, together with what is given on the command line: options, the
    configuration, and the theme.

    :param payloads: the options of :func:`kdissect.cli.payloads.decoder_of`.
    :raises Wrong: something in them is not understood.
    """
    config = load_config(for_screens=True)
    options = Options(show_secrets=show_secrets, embedded=True, limits=config.limits)
    options = options._replace(shown_fields=config.shown_fields, payloads=decoder_of(payloads, config))
    _require_filters(filter, config, options)
    return options, config, known_theme(theme, config)


def known_theme(given: str | None, config: Config) -> str | None:
    """The theme of the command line, else of the configuration.

    :raises Wrong: there is no such theme.
    """
    name = given or config.theme
    if name is not None:
        from kdissect.tui.colors import themes

        if name not in themes():
            hint = nearest(name, themes()) or f"; try {', '.join(sorted(themes()))}"
            where = f"--theme {name}" if given else f"{config_path()}: theme {name}"
            raise Wrong(f"{where}: there is no such theme{hint}")
    return name


def _require_filters(given: str | None, config: Config, options: Options) -> None:
    """See that the filter of the command line and those of the configuration are filters.

    :raises Wrong: one is none; the text tells where, and what was meant.
    """
    from kdissect.analysis.slow import Slowness
    from kdissect.filter.compiled import compile_filter
    from kdissect.filter.errors import FilterError

    named = [("filters", name, text) for name, text in config.filters.items()]
    named += [("coloring", each.name, each.filter) for each in config.coloring]
    for table, name, text in (*named, *([] if given is None else [("", "-Y", given)])):
        try:
            compile_filter(text, options, Slowness())
        except FilterError as error:
            where = f"{place_of(table, name)}: {table}: {name}" if table else name
            raise Wrong(f"{where}: {error}", error.excerpt()) from None
