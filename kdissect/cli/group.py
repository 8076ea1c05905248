"""Groups of commands. Without a command they print their help."""

from __future__ import annotations

import click


class HelpfulGroup(click.Group):
    """Makes ``kdissect schema`` the same as ``kdissect schema --help``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])
