"""``kdissect explain``: captures → what is wrong, why, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from kdissect.cli.completing import a_category, a_rule, a_severity, an_error
from kdissect.cli.filters import filter_options
from kdissect.cli.inputs import FILES, MORE_FILES, PORTS
from kdissect.cli.jobs import jobs_option
from kdissect.cli.output import OUTPUT_FILE, QUIET
from kdissect.cli.payloads import payload_options
from kdissect.cli.tls_keys import key_options
from kdissect.present.tables import FORMATS

F = TypeVar("F", bound=Callable[..., Any])

_HELP = """What is wrong, why, and what to do: findings, worst first.

Several FILEs are one capture. A folder means the captures in it. A FILE may also be a log directory of a
broker. A finding is printed below the finding that explains it. With -Y, kdissect judges only what the filter
selects.

\b
kdissect help explain         more on findings
kdissect explain --rule ID    what is known of a rule
kdissect fields rules         all rules
"""


def _listed(*names: str, **more: Any) -> Callable[[F], F]:
    """Make an option for names separated by commas. If it is given several times, the names are joined."""

    def joined(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> str | None:
        return ",".join(values) if values else None

    return click.option(*names, multiple=True, callback=joined, **more)


@click.command(help=_HELP)
@FILES
@MORE_FILES
@click.option(
    "-T", "form", type=click.Choice(("text", *FORMATS)), default="text", help="Format of the findings."
)
@click.option("--all", "all_of_them", is_flag=True, help="Print all findings, not only the worst 20.")
@click.option(
    "--severity",
    metavar="SEVERITY",
    shell_complete=a_severity,
    help="Print only findings of this severity or worse: critical, warning, notice, info.",
)
@_listed(
    "--category", metavar="NAME,…", shell_complete=a_category, help="Print only findings of these categories."
)
@_listed(
    "--id",
    "ids",
    metavar="ID,…",
    shell_complete=a_rule,
    help="Print only these findings. Patterns are allowed: 'rebalance-*'.",
)
@click.option(
    "--subject",
    metavar="NAME=VALUE",
    multiple=True,
    help="Print only findings about this subject: group=orders.",
)
@filter_options
@click.option(
    "--since", metavar="TIME", help="Judge only what begins at this time or later: +30s, 12:03:01 …"
)
@click.option("--until", metavar="TIME", help="Judge only what begins before this time.")
@click.option("--state", metavar="FILE", help="Add this capture to the counts of earlier ones in this file.")
@click.option("--deep", is_flag=True, help="Unpack all records and judge what is in them. Takes longer.")
@payload_options
@click.option("--not-judged", is_flag=True, help="Print what could not be judged, and why.")
@click.option(
    "--fail-on",
    metavar="SEVERITY",
    shell_complete=a_severity,
    help="Exit code 1 if a finding that is chosen has this severity or worse.",
)
@_listed(
    "--rule",
    "rule",
    metavar="ID,…",
    shell_complete=a_rule,
    help="Explain rules. Patterns are allowed: 'rebalance-*'. Needs no capture.",
)
@click.option(
    "--error",
    "error",
    metavar="NAME | CODE",
    shell_complete=an_error,
    help="Explain an error of Kafka. Needs no capture.",
)
@click.option(
    "--exchange",
    "exchange",
    type=int,
    metavar="NUMBER",
    help="Explain one exchange: why it was slow or failed, and what happened around it.",
)
@click.option("--group", "group", metavar="NAME", help="Tell the story of a group, line by line in time.")
@click.option("--topic", "topic", metavar="NAME", help="Tell the story of a topic.")
@click.option("--client", "client", metavar="NAME", help="Tell the story of a client, by its id or address.")
@click.option(
    "--transactional-id", "transactional_id", metavar="NAME", help="Tell the story of its transactions."
)
@click.option("--offset", "offset", metavar="TOPIC/PARTITION/OFFSET", help="Tell the story of a record.")
@PORTS
@key_options
@OUTPUT_FILE
@QUIET
@jobs_option
def command(**given: Any) -> int:
    """Explain captures."""
    # Each kind of explanation has its own modules, and most of them take longer to import than everything
    # above.
    from kdissect.cli.commands.explain.captures import Explanation
    from kdissect.cli.commands.explain.inputs import STORIES, asked_stories, is_of_logs, refuse_choice
    from kdissect.cli.errors import Wrong
    from kdissect.cli.inputs import captures_of

    if given["rule"] is not None:
        from kdissect.cli.commands.explain.pages import print_page

        return print_page(given)
    if given["error"] is not None:
        from kdissect.cli.commands.explain.pages import print_error

        return print_error(given)
    paths = (*given["more_files"], *given["files"])
    if not paths and given["state"] is not None:
        return Explanation(paths, given).run_state()
    if not paths:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    if is_of_logs(paths):
        from kdissect.cli.commands.explain.logs import explain_logs

        return explain_logs(paths, given)
    paths = captures_of(given)
    stories = asked_stories(given)
    if given["exchange"] is not None:
        if stories:
            raise Wrong("--exchange and a story option are given: give only one of them")
        from kdissect.cli.commands.explain.one_exchange import explain_exchange

        refuse_choice(given, "--exchange")
        return explain_exchange(paths, given)
    if stories:
        from kdissect.cli.commands.explain.stories import print_story

        refuse_choice(given, STORIES[stories[0]])
        return print_story(paths, given, stories[0])
    return Explanation(paths, given).run()
