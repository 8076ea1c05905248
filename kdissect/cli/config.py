"""The configuration: a TOML file, then ``KDISSECT_*`` of the environment, then flags; later wins.

An example, with the flag and the variable of each key:

    # $KDISSECT_CONFIG, else $XDG_CONFIG_HOME/kdissect/config.toml, else ~/.config/kdissect/config.toml
    columns = ["number", "api", "latency_ns"]    # -e, and on the screen   KDISSECT_COLUMNS=number,api
                                                 # for the screen fields too: "joinGroup.request.groupId"
    ports = [29092]                              # -d tcp.port==29092,kafka    KDISSECT_PORTS=29092
    color = "auto"                               # --color                KDISSECT_COLOR
    time = "r"                                   # -t                     KDISSECT_TIME
    slow_ms = 200                                # what --slow is, or "4s" KDISSECT_SLOW_MS
    theme = "nord"                               # --theme                KDISSECT_THEME
    page = "exchanges"                           # the first screen       KDISSECT_PAGE
    [topics]                                     # names of topic ids that no capture tells
    "lVhqmGaYRoKUVMnTbJRSXA" = "orders"
    [filters]                                    # display filters by name, for the screens
    slow = "latency > 100ms and not api == Fetch"
    [coloring.billing]                           # rows in a colour, for the screens; the first rule wins
    filter = 'client_id == "billing"'
    color = "green"                              # green, cyan, blue, magenta, grey
    [commands]                                   # copied with values of the exchange (y on the screen)
    group = "kafka-consumer-groups.sh --bootstrap-server {broker} --describe --group {group}"
    [keymap]                                     # keys of actions (kdissect fields actions)
    next-error = "n"
    save = "ctrl+s f2"
    [limits]                                     # how much is taken in       KDISSECT_LIMITS_FRAME_BYTES
    frame_bytes = 104857600
    [secrets]                                    # imported definitions: shown although the name says secret
    show = ["MoonRequest.tokenId", "Moon", "saltSize"]
    schemas = ["/etc/kdissect/schemas"]          # --schemas
    [decode_as]                                  # --decode-as, by topic
    "orders*" = "avro:/etc/kdissect/order.avsc"
    [registry]                                   # for --registry, which alone decides whether it is asked
    url = "https://registry.example:8081"        # whom user, password and token are for
    user = "reader"                              #                         KDISSECT_REGISTRY_USER
    password = "…"                               # keep the file 0600      KDISSECT_REGISTRY_PASSWORD
    ca = "/etc/ssl/private-ca.pem"               # --registry-ca
    timeout_s = 10
    [findings]                                   # of explain: rules that are not run
    ignore = ["far-away", "version-*"]
    [findings.rebalance-long]                    # from where on it is a finding (kdissect explain --rule ID)
    stopped_s = 10
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from kdissect.cli.errors import Wrong, complain
from kdissect.cli.output import COLOURS
from kdissect.durations import DURATIONS, duration_ns
from kdissect.leaves import PURE
from kdissect.limits import DEFAULTS, LARGEST, Limits
from kdissect.present.form import TIMES
from kdissect.present.nearest import nearest
from kdissect.settings.coloring import COLORS, ColoringRule
from kdissect.settings.places import PAGES
from kdissect.settings.rules import UnknownRuleError, refuse_unknown

KEYS = (
    *("columns", "ports", "color", "time", "slow_ms", "theme", "page", "topics", "filters", "keymap"),
    *("coloring", "commands", "limits", "secrets", "findings", "schemas", "decode_as", "registry"),
)
_OF_SCREENS = ("theme", "page", "filters", "coloring", "commands", "keymap")
"""Settings of the screens. Mistakes in them do not matter to commands without screens."""
_FROM_ENVIRONMENT = ("columns", "ports", "color", "time", "slow_ms", "theme", "page")
REGISTRY_VARIABLES = ("KDISSECT_REGISTRY_USER", "KDISSECT_REGISTRY_PASSWORD", "KDISSECT_REGISTRY_TOKEN")
SECRET_VARIABLES = (
    *("KDISSECT_PASSWORD", "KDISSECT_TOKEN", "KDISSECT_TLS_KEY_PASSWORD"),
    *REGISTRY_VARIABLES,
)
"""Variables with secrets for a broker or a registry; no other code reads them."""
_OTHER_VARIABLES = ("KDISSECT_CONFIG", "KDISSECT_DATA_HOME", "KDISSECT_DEBUG", PURE, *SECRET_VARIABLES)
_SETTING_VARIABLES = {f"KDISSECT_{key.upper()}": key for key in _FROM_ENVIRONMENT}
_LIMIT_VARIABLES = {f"KDISSECT_LIMITS_{name.upper()}": name for name in Limits._fields}
_KNOWN_VARIABLES = (*_SETTING_VARIABLES, *_LIMIT_VARIABLES, *_OTHER_VARIABLES)


class Config(NamedTuple):
    """The settings of the configuration."""

    columns: tuple[str, ...] = ()
    """Columns, as tables name them."""
    ports: frozenset[int] = frozenset()
    color: str = "auto"
    time: str = "r"
    slow_ms: int | None = None
    """Exchanges that take longer are slow; None for exchanges that take longer than nearly all of their
    API."""
    theme: str | None = None
    topics: Mapping[str, str] = {}
    filters: Mapping[str, str] = {}
    """Display filters, by name."""
    keymap: Mapping[str, str] = {}
    """Keys, by action."""
    limits: Limits = DEFAULTS
    list_columns: tuple[str, ...] = ()
    """:attr:`columns` for the list on the screen, which has some columns of its own."""
    shown_fields: frozenset[str] = frozenset()
    """Fields and classes of imported definitions that are shown although their names suggest a secret."""
    thresholds: Mapping[str, Mapping[str, float]] = {}
    """Thresholds of rules, by the ids of the rules."""
    ignored: tuple[str, ...] = ()
    """Rules that are not run, by id or pattern."""
    schemas: tuple[str, ...] = ()
    """Folders of schemas."""
    decode_as: Mapping[str, str] = {}
    """Formats of values, by patterns of topics."""
    registry: Mapping[str, Any] = {}
    """Settings of the registry, by the names of :class:`kdissect.registry.credentials.Configured`."""
    page: str | None = None
    """The first screen; None for the usual one."""
    commands: Mapping[str, str] = {}
    """Templates of commands, by name."""
    coloring: tuple[ColoringRule, ...] = ()
    """Rules that colour rows on the screen, in the order in which they are tried."""


def is_public(variable: str) -> bool:
    """Whether the value of a variable may be shown: it is a known setting and no secret. An unknown variable
    may be a misspelt secret."""
    return variable in _KNOWN_VARIABLES and variable not in SECRET_VARIABLES


def config_path(environment: Mapping[str, str] = os.environ) -> Path:
    """The path of the configuration file, whether or not the file exists."""
    if environment.get("KDISSECT_CONFIG"):
        return Path(environment["KDISSECT_CONFIG"])
    home = environment.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "kdissect" / "config.toml"


Mistaken = Callable[[Wrong], None]
"""Called with a mistake in the configuration; the text names file, line and nearest key. If it raises
nothing, the setting keeps its default."""


def refuse(mistake: Wrong) -> None:
    """End the command with a mistake.

    :raises Wrong: always.
    """
    raise mistake


def load_config(
    environment: Mapping[str, str] = os.environ, *, for_screens: bool = False, mistaken: Mistaken = refuse
) -> Config:
    """Read file and environment.

    :param for_screens: whether to read the settings of the screens too; otherwise mistakes in them are
        ignored.
    :param mistaken: called with each mistake.
    """
    config = _from_file(config_path(environment), environment, for_screens, mistaken)
    return _from_environment(config, environment, mistaken)


def saved_filters(environment: Mapping[str, str] = os.environ) -> Mapping[str, str]:
    """The named filters: those of the configuration, and those that the screens saved. Mistakes in settings
    of the screens are ignored here."""
    from kdissect.settings.remembered import Remembered

    path = config_path(environment)
    own: Mapping[str, str] = {}
    with suppress(Wrong):
        own = _from_file(path, environment, for_screens=True, mistaken=refuse).filters
    return Remembered(named_file=path.parent / "filters.toml", named=own).named


def _from_file(path: Path, environment: Mapping[str, str], for_screens: bool, mistaken: Mistaken) -> Config:
    try:
        text, found = _read(path)
    except FileNotFoundError:
        if environment.get("KDISSECT_CONFIG"):
            mistaken(Wrong(f"{path}: there is no such file, but KDISSECT_CONFIG names it"))
        return Config()
    except Wrong as wrong:
        mistaken(wrong)
        return Config()
    config = Config()
    for key, value in found.items():
        if key in _OF_SCREENS and not for_screens:
            continue
        left = value
        while left is not None:
            try:
                config = _set(config, key, left)
                break
            except _WrongKeyError as bad:
                table = key if bad.key != key else ""
                mistaken(Wrong(f"{path}:{_line_of(text, bad.key, table, bad.inside)}: {bad}"))
                left = _without(left, bad.inside or bad.key)
    return config


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of the file, and its settings.

    :raises FileNotFoundError: there is no such file.
    :raises Wrong: it cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise Wrong(f"{path}: cannot be read: {error}") from None
    try:
        import tomllib

        return text, tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or Python's own about a number of thousands of digits
        raise Wrong(f"{path}: {error}") from None


def _without(value: Any, key: str) -> dict[str, Any] | None:
    """A table without an entry; None if it has no such entry."""
    if not isinstance(value, dict) or key not in value:
        return None
    return {name: each for name, each in value.items() if name != key}


class _WrongKeyError(Exception):
    """A mistake in a key or its value."""

    def __init__(self, key: str, reason: str, inside: str | None = None) -> None:
        super().__init__(reason)
        self.key = key
        self.inside = inside
        """The table that contains the key, if there are several such tables."""


def place_of(table: str, name: str, environment: Mapping[str, str] = os.environ) -> str:
    """File and line of a name in a table of the configuration, for messages about mistakes."""
    path = config_path(environment)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # the file has changed since it was read
        return str(path)
    return f"{path}:{_line_of(text, name, table)}"


def _line_of(text: str, key: str, table: str = "", inside: str | None = None) -> int:
    """The line of a key, which TOML's reader does not give.

    :param table: the table; the key comes after its first mention.
    :param inside: the table inside that one that has the key.
    """
    lines = text.splitlines()
    start = 0
    for name in filter(None, (table, inside and f"{table}.{inside}")):
        head = re.compile(rf"^\s*\[?\s*{re.escape(name)}\b")
        start = next((at for at, line in enumerate(lines) if head.match(line)), start)
    before = rf"(\[\s*([^\]=]*\.\s*)?|{re.escape(table)}\s*\.\s*)?"
    pattern = re.compile(rf"""^\s*{before}["']?{re.escape(key)}["']?\s*[=\].]""")
    return next((at for at, line in enumerate(lines, 1) if at > start and pattern.match(line)), 1)


def _set(config: Config, key: str, value: Any) -> Config:
    if key not in KEYS:
        raise _WrongKeyError(key, f"there is no key {key!r}{nearest(key, KEYS)}")
    if key == "columns":
        from kdissect.settings.list_columns import printed

        names = _columns(value)
        return config._replace(columns=printed(value), list_columns=names)
    if key == "ports":
        if not isinstance(value, list) or not all(_is_port(port) for port in value):
            raise _WrongKeyError(key, "ports: a list of port numbers is needed")
        return config._replace(ports=frozenset(value))
    if key == "color":
        if value not in COLOURS:
            raise _WrongKeyError(key, f"color: one of {', '.join(COLOURS)} is needed")
        return config._replace(color=value)
    if key == "time":
        if value not in TIMES:
            raise _WrongKeyError(key, f"time: one of {', '.join(TIMES)} is needed")
        return config._replace(time=value)
    if key == "slow_ms":
        return config._replace(slow_ms=_milliseconds(value))
    if key == "theme":
        if not isinstance(value, str):
            raise _WrongKeyError(key, "theme: a name is needed, as text")
        return config._replace(theme=value)
    if key == "page":
        if value not in PAGES:
            raise _WrongKeyError(key, f"page: one of {', '.join(PAGES)} is needed")
        return config._replace(page=value)
    if key == "schemas":
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise _WrongKeyError(key, "schemas: a list of folders is needed")
        return config._replace(schemas=tuple(value))
    if not isinstance(value, dict):
        raise _WrongKeyError(key, f"{key}: a table is needed")
    if key == "decode_as":
        return config._replace(decode_as=_texts(key, value, "forms are needed, as text"))
    if key == "registry":
        return config._replace(registry=_registry(value))
    if key == "topics":
        return config._replace(topics=_texts(key, value, "names are needed, as text"))
    if key == "filters":
        return config._replace(filters=_texts(key, value, "filters are needed, as text"))
    if key == "coloring":
        return config._replace(coloring=tuple(_coloring_rules(value)))
    if key == "commands":
        return config._replace(commands=_commands(value))
    if key == "keymap":
        return config._replace(keymap=_keymap(value))
    if key == "secrets":
        return config._replace(shown_fields=_shown_fields(value))
    if key == "findings":
        return _findings(config, value)
    for name, number in value.items():
        config = config._replace(limits=_limit(config.limits, name, number))
    return config


def _milliseconds(value: Any) -> int:
    """A whole number of milliseconds, or a span of time as text: ``"4s"``."""
    if isinstance(value, str):
        try:
            span = duration_ns(value, "ms")
        except ValueError as error:
            raise _WrongKeyError("slow_ms", f"slow_ms: {error}") from None
        value = span // DURATIONS["ms"]
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _WrongKeyError("slow_ms", "slow_ms: a whole number above 0 is needed")
    return value


def _shown_fields(table: dict[str, Any]) -> frozenset[str]:
    for name in table:
        if name != "show":
            raise _WrongKeyError(name, f"there is no key {name!r} of secrets{nearest(name, ('show',))}")
    names = table.get("show", [])
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise _WrongKeyError("show", "show: a list of names is needed, such as MoonRequest.token")
    for name in names:
        if not re.fullmatch(r"[A-Za-z]\w*(\.[A-Za-z]\w*)?", name):
            raise _WrongKeyError(
                "show",
                f"show: {name!r} names neither a class nor a field of a class, such as MoonRequest.token",
            )
    return frozenset(names)


def _findings(config: Config, table: dict[str, Any]) -> Config:
    ignored = table.get("ignore", [])
    thresholds = {id: value for id, value in table.items() if id != "ignore"}
    if not isinstance(ignored, list) or not all(isinstance(each, str) for each in ignored):
        raise _WrongKeyError("ignore", "ignore: a list of ids is needed, such as rebalance-long")
    try:
        refuse_unknown(thresholds, ignored)
    except UnknownRuleError as error:
        raise _WrongKeyError(error.key, str(error), error.rule) from None
    numbers = {
        id: {name: float(number) for name, number in value.items()} for id, value in thresholds.items()
    }
    return config._replace(thresholds=numbers, ignored=tuple(ignored))


def _columns(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _WrongKeyError("columns", "columns: a list of names is needed")
    from kdissect.settings.list_columns import listed

    try:
        return tuple(listed(value))
    except LookupError as error:
        raise _WrongKeyError("columns", str(error.args[0])) from None


_OF_REGISTRY = ("url", "user", "password", "token", "ca", "timeout_s")
_LONGEST_TIMEOUT_S = 600


def _registry(table: dict[str, Any]) -> dict[str, Any]:
    """Read the settings of the registry. Messages about mistakes have no values, because any of them may
    contain a password."""
    for name, value in table.items():
        if name not in _OF_REGISTRY:
            raise _WrongKeyError(name, f"there is no key {name!r} of registry{nearest(name, _OF_REGISTRY)}")
        if name != "timeout_s":
            if not isinstance(value, str) or not value:
                raise _WrongKeyError(name, f"{name}: a text is needed")
        elif isinstance(value, bool) or not isinstance(value, int | float):
            raise _WrongKeyError(name, "timeout_s: a number of seconds is needed")
        elif not 0 < value <= _LONGEST_TIMEOUT_S:
            raise _WrongKeyError(
                name, f"timeout_s: a number of seconds above 0 and up to {_LONGEST_TIMEOUT_S} is needed"
            )
    if "url" in table:
        from kdissect.registry.remote import place_of

        try:
            place_of(table["url"])
        except ValueError as error:
            raise _WrongKeyError("url", f"url: {error}") from None
    elif {"user", "password", "token"} & set(table):
        raise _WrongKeyError(
            "registry", "registry: url is needed too, because user and token are for one registry"
        )
    return table


def _texts(key: str, table: dict[str, Any], needed: str) -> dict[str, str]:
    for name, value in table.items():
        if not isinstance(value, str):
            raise _WrongKeyError(name, f"{key}: {needed}")
    return table


def _commands(table: dict[str, Any]) -> dict[str, str]:
    from kdissect.settings.commands import WrongTemplateError, names_in

    for name, template in _texts("commands", table, "commands are needed, as text").items():
        try:
            list(names_in(template))
        except WrongTemplateError as error:
            raise _WrongKeyError(name, f"commands: {name}: {error}") from None
    return table


def _coloring_rules(table: dict[str, Any]) -> Iterator[ColoringRule]:
    for name, rule in table.items():
        if not isinstance(rule, dict):
            raise _WrongKeyError(name, f"coloring: {name}: a table with filter and color is needed")
        for key in rule:
            if key not in _OF_COLORING:
                hint = nearest(key, _OF_COLORING)
                raise _WrongKeyError(key, f"there is no key {key!r} of a coloring rule{hint}", name)
        filter, color = (rule.get(key) for key in _OF_COLORING)
        if not isinstance(filter, str) or not filter.strip():
            raise _WrongKeyError(name, f"coloring: {name}: filter is needed, a display filter as text")
        if color not in COLORS:
            what = "color is needed" if color is None else f"there is no color {color!r}"
            raise _WrongKeyError(name, f"coloring: {name}: {what}; use one of {', '.join(COLORS)}")
        yield ColoringRule(name, filter, color)


_OF_COLORING = ("filter", "color")


def _keymap(table: dict[str, Any]) -> dict[str, str]:
    from kdissect.settings.actions import IDS
    from kdissect.settings.key_names import clash, key_name

    for name, keys in table.items():
        if name not in IDS:
            raise _WrongKeyError(name, f"keymap: there is no action {name!r}{nearest(name, IDS)}")
        if not isinstance(keys, str) or not keys.split():
            raise _WrongKeyError(name, f"{name}: keys are needed, as text, with blanks between")
        for key in keys.split():
            if key_name(key) is None:
                raise _WrongKeyError(name, f"{name}: there is no key {key!r}")
    found = clash(table)
    if found is not None:
        name, other, key = found
        raise _WrongKeyError(name, f"{name}: {other} has the key {key} too; give {other} another key")
    return table


def _limit(limits: Limits, name: str, number: Any) -> Limits:
    if name not in Limits._fields:
        raise _WrongKeyError(name, f"there is no limit {name!r}{nearest(name, Limits._fields)}")
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= LARGEST:
        raise _WrongKeyError(name, f"{name}: a whole number from 1 to {LARGEST:,} is needed")
    return limits._replace(**{name: number})


def _is_port(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 65_536


def _from_environment(config: Config, environment: Mapping[str, str], mistaken: Mistaken) -> Config:
    variables, limits = _SETTING_VARIABLES, _LIMIT_VARIABLES
    for variable, text in environment.items():
        if not variable.startswith("KDISSECT_") or variable in _OTHER_VARIABLES:
            continue
        try:
            if variable in variables:
                config = _set(config, variables[variable], _value(variables[variable], text))
            elif variable in limits:
                config = config._replace(limits=_limit(config.limits, limits[variable], _number(text)))
            else:
                complain(f"there is no variable {variable}{nearest(variable, _KNOWN_VARIABLES)}")
        except _WrongKeyError as bad:
            mistaken(Wrong(f"{variable}: {bad}"))
    return config


def _value(key: str, text: str) -> Any:
    if key not in ("columns", "ports"):
        return text
    words = [word for word in re.split(r"[,\s]+", text) if word]
    if key == "ports":
        return [_number(word) for word in words]
    return words


def _number(text: str) -> int | str:
    """A number, if the text is one. Python itself refuses numbers of thousands of digits."""
    return int(text) if text.isdecimal() and len(text) <= len(str(LARGEST)) else text
