"""``kdissect explain``: captures → what is wrong, why, and what to do."""

from __future__ import annotations

from typing import Any

import click

from kdissect.cli.completing import a_category, a_rule, a_severity, an_error
from kdissect.cli.filters import filter_options
from kdissect.cli.jobs import jobs_option
from kdissect.cli.tls_keys import key_options
from kdissect.present.tables import FORMATS

_HELP = """What is wrong, why, and what to do: findings, worst first.

Several FILEs are one capture; a FILE may be a log directory of a broker, too. A finding that another one
explains stands below that one. With -Y FILTER only what the filter shows is judged.

kdissect help explain tells more; kdissect explain --rule ID prints what is known of a rule.
"""


@click.command(help=_HELP)
@click.argument("files", nargs=-1, metavar="FILE… | -")
@click.option("-r", "more_files", multiple=True, metavar="FILE", help="A capture, as tshark has it.")
@click.option("-T", "form", type=click.Choice(("text", *FORMATS)), default="text", help="How findings print.")
@click.option("--all", "all_of_them", is_flag=True, help="All findings; else the worst 20.")
@click.option(
    "--severity",
    metavar="SEVERITY",
    shell_complete=a_severity,
    help="Only findings that are so grave, or graver: critical, warning, notice, info.",
)
@click.option(
    "--category", metavar="NAME,…", shell_complete=a_category, help="Only findings of these categories."
)
@click.option(
    "--id", "ids", metavar="ID,…", shell_complete=a_rule, help="Only these; 'rebalance-*' is a pattern."
)
@click.option("--subject", metavar="NAME=VALUE", multiple=True, help="Only of this subject: group=orders.")
@filter_options
@click.option("--since", metavar="TIME", help="Judge only what begins then, or later: +30s, 12:03:01 …")
@click.option("--until", metavar="TIME", help="Judge only what begins before that.")
@click.option(
    "--state", metavar="FILE", help="Add to what was counted of earlier captures, and keep it there."
)
@click.option("--not-judged", is_flag=True, help="Rows of what could not be judged, and why.")
@click.option(
    "--fail-on",
    metavar="SEVERITY",
    shell_complete=a_severity,
    help="Exit code 1 if a finding is so grave, or graver.",
)
@click.option("--rule", "rule", metavar="ID", shell_complete=a_rule, help="The page of a rule; no capture.")
@click.option(
    "--error",
    "error",
    metavar="NAME | CODE",
    shell_complete=an_error,
    help="What an error of Kafka's means and what causes it; no capture.",
)
@click.option(
    "--exchange",
    "exchange",
    type=int,
    metavar="NUMBER",
    help="Why this one took so long or failed, what happened beside it, what led to it and followed.",
)
@click.option("--group", "group", metavar="NAME", help="The story of a group, as lines in time.")
@click.option("--topic", "topic", metavar="NAME", help="The story of a topic.")
@click.option("--client", "client", metavar="NAME", help="The story of a client: its id or address.")
@click.option("--transactional-id", "transactional_id", metavar="NAME", help="The story of its transactions.")
@click.option("--offset", "offset", metavar="TOPIC/PARTITION/OFFSET", help="The story of a record.")
@click.option("-d", "decode_as", multiple=True, metavar="tcp.port==N,kafka", help="Take a port for Kafka's.")
@key_options
@click.option(
    "-o", "output", metavar="FILE", help="Write there instead of stdout; a file of that name is replaced."
)
@click.option("-q", "--quiet", is_flag=True, help="No progress and no line on what was judged.")
@jobs_option
def command(**given: Any) -> int:
    """Explain captures."""
    from kdissect.cli.commands.explain.captures import Judging
    from kdissect.cli.commands.explain.logs import explain_logs, is_of_logs
    from kdissect.cli.commands.explain.one_exchange import explain_exchange
    from kdissect.cli.commands.explain.pages import print_error, print_page
    from kdissect.cli.commands.explain.stories import asked_stories, tell_story
    from kdissect.cli.errors import Wrong

    if given["rule"] is not None:
        return print_page(given["rule"])
    if given["error"] is not None:
        return print_error(given["error"], given["form"])
    paths = (*given["more_files"], *given["files"])
    if not paths and given["state"] is not None:
        return Judging(paths, given).run_state()
    if not paths:
        raise click.UsageError(
            "no capture is given: name a file, or - for standard input", click.get_current_context()
        )
    if is_of_logs(paths):
        return explain_logs(paths, given)
    stories = asked_stories(given)
    if given["exchange"] is not None:
        if stories:
            raise Wrong("--exchange and a story: ask for one")
        return explain_exchange(paths, given)
    if stories:
        return tell_story(paths, given, stories[0])
    return Judging(paths, given).run()
