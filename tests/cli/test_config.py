from __future__ import annotations

from pathlib import Path

import pytest

from kdissect.cli.config import Config, config_path, load_config
from kdissect.cli.errors import Wrong
from kdissect.cli.screen_settings import settings_of
from kdissect.limits import DEFAULTS
from tests.amount import some
from tests.cli.run import CAPTURES, ask_no_tshark, run


def load(tmp_path: Path, text: str, **environment: str) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return load_config({"KDISSECT_CONFIG": str(path), **environment}, for_screens=True)


def test_without_a_file_everything_has_its_default(tmp_path: Path) -> None:
    assert load_config({"XDG_CONFIG_HOME": str(tmp_path)}) == Config()


def test_where_the_file_is(tmp_path: Path) -> None:
    assert config_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/kdissect/config.toml")
    assert config_path({"KDISSECT_CONFIG": "/y"}) == Path("/y")


def test_every_key(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        """
        columns = ["number", "api"]
        ports = [29092]
        color = "never"
        time = "u"
        slow_ms = 250
        theme = "nord"
        page = "groups"
        [topics]
        "lVhqmGaYRoKUVMnTbJRSXA" = "orders"
        [filters]
        slow = "latency > 1s"
        [keymap]
        save = "ctrl-s f2"
        [limits]
        frame_bytes = 1000
        [secrets]
        show = ["Moon", "MoonRequest.token"]
        """,
    )
    topics = {"lVhqmGaYRoKUVMnTbJRSXA": "orders"}
    limits = DEFAULTS._replace(frame_bytes=1000)
    ports, keys = frozenset({29092}), {"save": "ctrl-s f2"}
    filters = {"slow": "latency > 1s"}
    columns = ("number", "api")
    shown = frozenset({"Moon", "MoonRequest.token"})
    assert found == Config(
        columns,
        ports,
        "never",
        "u",
        250,
        "nord",
        topics,
        filters,
        keys,
        limits,
        columns,
        shown,
        page="groups",
    )


def test_columns_of_the_list_alone_are_printed_as_what_they_stand_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    text = 'columns = ["number", "who", "what", "latency", "sizes", "info"]'
    found = load(tmp_path, text)
    assert found.list_columns == ("number", "who", "what", "latency_ns", "sizes", "info")
    monkeypatch.setenv("KDISSECT_CONFIG", str(tmp_path / "config.toml"))
    heading = run(capsysbinary, CAPTURES / "errors.pcapng", "-T", "csv").lines[0]
    assert heading == (
        '"number","client_id","client","api","api_version","latency_ns","request_size","response_size",'
        '"error","missing","faults","topics"'
    )
    ran = run(capsysbinary, "read", CAPTURES / "errors.pcapng", "-e", "joinGroup.request.groupId")
    assert ran.err == "kdissect: -e: joinGroup.request.groupId is a column of the screens only\n"
    ran = run(capsysbinary, "read", CAPTURES / "errors.pcapng", "-e", "number,who")
    assert (ran.code, ran.out) == (2, b"")
    assert ran.err == "kdissect: -e: who is a column of the screens only; use -e client_id,client\n"


def test_fields_are_columns_of_the_list_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    found = load(tmp_path, 'columns = ["number", "joinGroup.request.groupId", "api"]')
    assert found.columns == ("number", "api")
    assert found.list_columns == ("number", "joinGroup.request.groupId", "api")
    monkeypatch.setenv("KDISSECT_COLUMNS", "joinGroup.request.gropId")
    ran = run(capsysbinary, "read", CAPTURES / "errors.pcapng")
    reason = "JoinGroup has no field gropId; did you mean groupId?"
    assert (ran.code, ran.err) == (2, f"kdissect: KDISSECT_COLUMNS: {reason}\n")


@pytest.mark.parametrize(
    "text",
    some(
        [
            "theme = 1",
            "page = 1",
            '[keymap]\nsav = "x"',
            '[keymap]\nsave = "e"',
            "[filters]\nx = 1",
            "[coloring]\nx = 1",
            "keymap = 1",
        ],
        3,
    ),
)
def test_what_is_wrong_with_settings_of_the_screens_does_not_stop_other_commands(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    with pytest.raises(Wrong):
        load(tmp_path, text)
    monkeypatch.setenv("KDISSECT_CONFIG", str(tmp_path / "config.toml"))
    ran = run(capsysbinary, "read", CAPTURES / "errors.pcapng", "-c", "1")
    assert (ran.code, ran.err) == (0, "")
    ask_no_tshark(monkeypatch)
    assert b"config.toml:" in run(capsysbinary, "doctor").out


MISTAKEN = """
theme = "nope"
pgae = "exchanges"
schemas = ["/nowhere"]
[filters]
good = "latency > 1s"
slow = "latncy > 1s"
[keymap]
save = "e"
help = "f2"
[coloring.late]
filter = "latency > 1s"
colour = "grey"
[decode_as]
"orders*" = "avro:/nowhere.avsc"
plain = "json"
[limits]
frame_bytes = -1
layers = 9
[findings.rebalance-long]
stoped_s = 10
"""


def test_the_screens_are_told_each_mistake_and_use_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(MISTAKEN)
    monkeypatch.setenv("KDISSECT_CONFIG", str(path))
    monkeypatch.setenv("KDISSECT_PORTS", "x")
    mistakes: list[Wrong] = []
    options, found, theme = settings_of(None, None, False, {}, mistakes.append)
    told = [each.message.removeprefix(f"{path}:") for each in mistakes]
    assert [text.partition(" ")[0] for text in told] == [
        *("3:", "9:", "13:", "18:", "21:", "KDISSECT_PORTS:", "4:", "15:", "7:", "2:"),
    ]
    assert "did you mean page?" in told[0]
    assert "there is no such theme" in told[-1]
    assert mistakes[-2].below == ("latncy > 1s", "^~~~~~")
    assert theme is None
    assert found.filters == {"good": "latency > 1s"}
    assert found.keymap == {"help": "f2"}
    assert found.decode_as == {"plain": "json"}
    assert found.limits == DEFAULTS._replace(layers=9)
    assert (found.coloring, found.schemas, found.thresholds, found.ports) == ((), (), {}, frozenset())
    assert options.payloads is not None


def test_a_mistake_in_one_finding_leaves_the_same_threshold_of_another(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[findings.hot-partition]\ntimes = 9\n[findings.hot-broker]\ntimes = -1\n")
    mistakes: list[Wrong] = []
    found = load_config({"KDISSECT_CONFIG": str(path)}, for_screens=True, mistaken=mistakes.append)
    assert [each.message for each in mistakes] == [f"{path}:4: times: a number above 0 is needed"]
    assert found.thresholds == {"hot-partition": {"times": 9.0}}


@pytest.mark.parametrize("text", ["[", "x = " + "9" * 5_000])
def test_a_file_that_cannot_be_read_leaves_the_defaults_to_the_screens(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    mistakes: list[Wrong] = []
    for where in (path, tmp_path / "none.toml"):
        found = load_config({"KDISSECT_CONFIG": str(where)}, for_screens=True, mistaken=mistakes.append)
        assert found == Config()
    assert [each.message.partition(": ")[0] for each in mistakes] == [str(path), str(tmp_path / "none.toml")]


def test_mistakes_of_the_command_line_stop_the_screens(tmp_path: Path) -> None:
    mistakes: list[Wrong] = []
    for payloads, filter, theme in (
        ({"payload_rules": ("x=avro:/nowhere",)}, None, None),
        ({}, "latncy > 1s", None),
        ({}, None, "nope"),
    ):
        with pytest.raises(Wrong):
            settings_of(theme, filter, False, payloads, mistakes.append)
    assert not mistakes


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    found = load(
        tmp_path,
        'columns = ["api"]\n[limits]\nframe_bytes = 1000\nlayers = 9',
        KDISSECT_COLUMNS="number, latency",
        KDISSECT_PORTS="1,2",
        KDISSECT_SLOW_MS="300",
        KDISSECT_LIMITS_FRAME_BYTES="2000",
    )
    assert found.columns == ("number", "latency")
    assert found.ports == {1, 2}
    assert found.slow_ms == 300
    assert (found.limits.frame_bytes, found.limits.layers) == (2000, 9)


def test_what_is_slow_is_a_number_of_milliseconds_or_a_span_of_time(tmp_path: Path) -> None:
    assert load(tmp_path, 'slow_ms = "4s"').slow_ms == 4_000
    assert load(tmp_path, "", KDISSECT_SLOW_MS="1.5 s").slow_ms == 1_500


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ('time = "u"\ncolums = []', 2, "did you mean columns?"),
        ('columns = ["nmber"]', 1, "did you mean number?"),
        ("columns = 1", 1, "a list of names"),
        ("ports = [70000]", 1, "port"),
        ('color = "blue"', 1, "auto, always, never"),
        ('time = "x"', 1, "a, r, d, e, u"),
        ("topics = 1", 1, "table"),
        ("[limits]\n\nframe_byts = 1", 3, "did you mean frame_bytes?"),
        ("[limits]\nframe_bytes = 0", 2, "from 1 to 9,223,372,036,854,775,807"),
        ("[limits]\nframe_bytes = 9223372036854775808", 2, "from 1 to 9,223,372,036,854,775,807"),
        ("[topics]\nx = 1", 2, "names"),
        ("slow_ms = 0", 1, "above 0"),
        ('slow_ms = "4 y"', 1, "the form is a number"),
        ("theme = 1", 1, "a name"),
        ('page = "errors"', 1, "page: one of exchanges, connections"),
        ("[secrets]\nhide = 1", 2, "there is no key 'hide'"),
        ("[secrets]\nshow = 1", 2, "a list of names"),
        ('[secrets]\n\nshow = ["a b"]', 3, "names neither a class nor a field"),
        ("[filters]\nx = 1", 2, "as text"),
        ('[findings]\nignore = ["mesage-too-large"]', 2, "did you mean message-too-large?"),
        ('[findings]\nignore = "x"', 2, "a list of ids is needed"),
        ("[findings.tiny-batch]\nrecords = 1", 1, "did you mean tiny-batches?"),
        ("[findings.tiny-batches]\nrecord = 1", 2, "did you mean records?"),
        (
            "[findings.mid-stream]\nrecords = 1",
            2,
            "there is no threshold 'records' of mid-stream; it has none",
        ),
        ("[findings.tiny-batches]\nrecords = true", 2, "a number is needed"),
        ("[findings.tiny-batches]\nrecords = nan", 2, "a number is needed"),
        ("[findings.tiny-batches]\nrecords = 0", 2, "a number above 0 is needed"),
        ("[findings.tiny-batches]\nrecords = -1", 2, "a number above 0 is needed"),
        ('[commands]\nx = "kcat {brokr}"', 2, "did you mean broker?"),
        ('[commands]\nx = "kcat {broker"', 2, "two braces {{ stand for one"),
        ('[commands]\nx = "kcat {broker.port}"', 2, "there is no placeholder {broker.port}"),
        ("[commands]\nx = 1", 2, "commands are needed, as text"),
        ("[coloring]\nx = 1", 2, "a table with filter and color is needed"),
        ('[coloring.x]\nfiltre = "api == Fetch"', 2, "did you mean filter?"),
        ('[coloring.x]\ncolor = "green"', 1, "filter is needed"),
        ('[coloring.x]\nfilter = "slow"\ncolor = "red"', 1, "one of green, cyan, blue, magenta, grey"),
        (
            '[filters]\nx = "slow"\n[coloring.ax]\nfilter = "slow"\ncolor = "grey"\n[coloring.x]',
            6,
            "filter is",
        ),
        ('[keymap]\nsav = "x"', 2, "did you mean save?"),
        ('[keymap]\nsave = "hyper-x"', 2, "there is no key 'hyper-x'"),
        ('[keymap]\nsave = ""', 2, "keys are needed"),
        ('[keymap]\n\nsave = "e"', 3, "next-error has the key e too"),
    ],
)
def test_what_is_wrong_names_file_line_and_nearest_key(
    text: str, line: int, part: str, tmp_path: Path
) -> None:
    with pytest.raises(Wrong) as error:
        load(tmp_path, text)
    assert error.value.message.startswith(f"{tmp_path}/config.toml:{line}: ")
    assert part in error.value.message


@pytest.mark.parametrize("text", ["x = ", "\xff", "slow_ms = " + "9" * 5_000])
def test_a_file_that_is_no_toml(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(Wrong, match=str(path)):
        load_config({"KDISSECT_CONFIG": str(path)})


def test_variables_that_are_read_elsewhere_are_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    load(tmp_path, "", KDISSECT_PURE="1", KDISSECT_DEBUG="1", KDISSECT_PASSWORD="secret")
    assert capsys.readouterr().err == ""


def test_a_wrong_variable_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Wrong, match="KDISSECT_PORTS: "):
        load(tmp_path, "", KDISSECT_PORTS="x")
    with pytest.raises(Wrong, match="KDISSECT_LIMITS_LAYERS: layers: a whole number"):
        load(tmp_path, "", KDISSECT_LIMITS_LAYERS="9" * 5_000)
    load(tmp_path, "", KDISSECT_COLUMN="number")
    assert "did you mean KDISSECT_COLUMNS?" in capsys.readouterr().err


def test_flags_win_over_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text('columns = ["number"]\ncolor = "always"')
    monkeypatch.setenv("KDISSECT_CONFIG", str(path))
    capture = CAPTURES / "errors.pcapng"
    assert run(capsysbinary, capture, "-T", "csv").lines[0] == '"number"'
    assert run(capsysbinary, capture, "-T", "csv", "-e", "api").lines[0] == '"api"'
    assert b"\x1b" in run(capsysbinary, capture).out
    assert b"\x1b" not in run(capsysbinary, capture, "--color", "never").out


def test_a_wrong_configuration_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text("colums = []")
    monkeypatch.setenv("KDISSECT_CONFIG", str(path))
    ran = run(capsysbinary, CAPTURES / "errors.pcapng")
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, b"", 1)
