"""Commands of the user, with values of an exchange."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from kdissect import read
from kdissect.exchange import Exchange
from kdissect.settings.commands import PLACEHOLDERS, WrongTemplateError, filled_in, names_in
from tests.cli.run import CAPTURES
from tests.kafka import Talk, request, response
from tests.present.captures import write_capture

JOINED = next(each for each in read(CAPTURES / "basic-kafka43.pcapng") if each.api == "JoinGroup")


def of_client(name: str, folder: Path) -> Exchange:
    """An exchange of a client with this id."""
    talk = Talk()
    talk.ask(request("Heartbeat", 0, 1, name, groupId="g", generationId=1, memberId="m"))
    talk.answer(response("Heartbeat", 0, 1, errorCode=0))
    return next(iter(read(write_capture(folder / "named.pcap", talk.close()))))


def test_placeholders_have_the_values_of_the_exchange() -> None:
    text = filled_in("groups --bootstrap-server {broker} --group {group} # {{api}}", JOINED)
    assert text == f"groups --bootstrap-server {JOINED.broker} --group {JOINED.groups[0]} # {{api}}"


def test_each_value_is_one_word_for_a_shell(tmp_path: Path) -> None:
    name = 'it\'s $(reboot); `x` "y" | z'
    text = filled_in("kcat -X client.id={client_id}", of_client(name, tmp_path))
    assert shlex.split(text) == ["kcat", "-X", f"client.id={name}"]


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2J", "a\u202eb", "a\x9bb", "a\u2028b"])
def test_no_command_gets_control_characters(name: str, tmp_path: Path) -> None:
    with pytest.raises(WrongTemplateError, match="the client_id has characters that cannot be shown"):
        filled_in("kcat {client_id}", of_client(name, tmp_path))


@pytest.mark.parametrize(
    "template",
    [
        *(
            "{client_id}",
            "groups --group {client_id}",
            "x -{client_id}",
            "x '' ''{client_id}",
            "x $A{client_id}",
        ),
        *("x -- y | z {client_id}", "x -- y\nz {client_id}", "x -- $(y {client_id})", "x '--y' {client_id}"),
    ],
)
def test_no_value_becomes_an_option(template: str, tmp_path: Path) -> None:
    with pytest.raises(WrongTemplateError, match="begins with -"):
        filled_in(template, of_client("--delete", tmp_path))


@pytest.mark.parametrize(
    "template",
    [
        *(
            "groups --group={client_id}",
            "kcat -X client.id={client_id}",
            "x -- {client_id}",
            "x -- y {client_id}",
        ),
        *(
            "x '--' {client_id}",
            "x | y -- {client_id}",
            "x 'a b'{client_id}",
            "x {number}{client_id}",
            "A={client_id} x",
        ),
    ],
)
def test_a_value_that_can_be_no_option_may_begin_as_one_does(template: str, tmp_path: Path) -> None:
    exchange = of_client("--de lete", tmp_path)
    text = filled_in(template, exchange)
    assert text == template.replace("{client_id}", "'--de lete'").replace("{number}", str(exchange.number))


@pytest.mark.parametrize(
    "template",
    [
        'echo "{topic}"',
        "echo '{group}'",
        "echo `x {group}`",
        "echo \\{group}",
        'sh -c "x {group}"',
        "cat <<E\n{group}",
    ],
)
def test_a_placeholder_in_quotes_is_refused(template: str) -> None:
    with pytest.raises(WrongTemplateError, match="is inside quotes"):
        list(names_in(template))


@pytest.mark.parametrize(
    "template", ["x 'a b' {group}", 'x "it\'s" {group}', "x \\' {group}", "x $(y {group})"]
)
def test_quotes_that_are_closed_before_it_do_not_matter(template: str) -> None:
    assert list(names_in(template)) == ["group"]


def test_what_an_exchange_lacks_is_said() -> None:
    with pytest.raises(WrongTemplateError, match="this exchange has no transactional_id"):
        filled_in("tx {transactional_id}", JOINED)


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_every_placeholder_is_known_where_templates_are_read(name: str) -> None:
    assert list(names_in(f"x {{{name}}} y")) == [name]


@pytest.mark.parametrize("template", ["{brokr}", "{broker!r}", "{broker:>9}", "{broker[0]}", "{}", "{", "}"])
def test_other_templates_are_refused(template: str) -> None:
    with pytest.raises(WrongTemplateError):
        list(names_in(template))


def test_a_placeholder_that_is_like_no_other_is_told_with_those_that_there_are() -> None:
    with pytest.raises(
        WrongTemplateError, match=r"no placeholder \{nosuch\}; there are \{broker\}, \{client\}, "
    ):
        list(names_in("kcat {nosuch}"))
