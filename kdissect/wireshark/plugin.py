"""The plug-in: a post-dissector in Lua, which reads comments and has their columns."""

from __future__ import annotations

from importlib.resources import files

from kdissect.present.comments import COMMENT_TABLE

_PLACE = "--@COLUMNS@\n"


def plugin_text() -> str:
    """The plug-in, as Lua."""
    text = files(__package__).joinpath("postdissector.lua").read_text("utf-8")
    columns = (
        f"    {{{_lua(each.name)}, {_lua(each.type)}, {_lua(each.meaning)}}},\n"
        for each in COMMENT_TABLE.columns
    )
    return text.replace(_PLACE, "".join(columns))


def _lua(text: str) -> str:
    """A text as a Lua string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
