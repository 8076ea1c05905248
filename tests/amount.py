"""How much is tried: enough for every change, or everything.

    KDISSECT_LONG=1 pytest -n auto                      every capture, every form and size, many random cases
    KDISSECT_LONG=1 pytest tests/spark                  the same, of the tests with Spark only; by default a
                                                        minute of two processors is theirs
    KDISSECT_AGAIN=1 KDISSECT_PURE=1 pytest FILES…      the sources, after all was tried with what is compiled

Some long runs are commands of their own: ``mutate``, ``compose``, ``loss``, ``soak`` and ``malicious`` in
``tests.acceptance``; ``tests.tls.mutate``, ``tests.live.soak``, ``tests.fuzz``; ``long`` in ``tests.jobs``,
``tests.parts``, ``tests.spark`` and ``tests.client``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")

VARIABLE = "KDISSECT_LONG"
LONG = os.environ.get(VARIABLE, "") not in ("", "0")
"""Whether to try everything."""

AGAIN_VARIABLE = "KDISSECT_AGAIN"
AGAIN = not LONG and os.environ.get(AGAIN_VARIABLE, "") not in ("", "0")
"""Whether the same cases were just tried with compiled modules. The sources take several times as long. So of
several cases that use the same code, fewer are enough."""

only_long = pytest.mark.skipif(not LONG, reason=f"{VARIABLE}=1 tries this")
"""A test that takes long. A shorter test also fails if the code is broken."""


patient = pytest.mark.timeout(0 if LONG else 300)
"""A test whose long form takes minutes, or many minutes on a busy machine."""


def times(short: int, long: int) -> int:
    """The number of random cases."""
    return long if LONG else -(-short // 2) if AGAIN else short


def some(cases: Iterable[Case], most: int, *always: Case) -> list[Case]:
    """At most ``most`` of the cases, spread evenly over them, and those that are always tried.

    A test uses it for cases that are the same to the code under test. It names the cases that differ.
    """
    every = list(cases)
    wanted = max(0, (-(-most // 2) if AGAIN else most) - len(always))
    rest = [each for each in every if each not in always]
    if LONG or len(rest) <= wanted:
        return every
    places = {place * len(rest) // wanted for place in range(wanted)}
    chosen = [*always, *(rest[place] for place in sorted(places))]
    return [each for each in every if each in chosen]


def fewer_again(cases: Iterable[Case], most: int, *always: Case) -> list[Case]:
    """All of the cases; if all were just tried, at most ``most``, as in :func:`some`."""
    return some(cases, 2 * most, *always) if AGAIN else list(cases)


def each_of(
    cases: Callable[[], Iterable[Case]], name: Callable[[Case], str] = str
) -> Callable[[Callable[[Case], None]], Callable[[], None]]:
    """One test for many cases, each of which takes less than pytest does for a test: some milliseconds in
    every one of its processes. It reports all failures, by their names.

    :param cases: returns the cases when the test runs; each process imports it.
    """

    def of_check(check: Callable[[Case], None]) -> Callable[[], None]:
        def test() -> None:
            count, failed = 0, []
            for case in cases():
                count += 1
                try:
                    check(case)
                except Exception as error:
                    error.add_note(f"the case is {name(case)}")
                    failed.append(error)
            assert count, "there are cases"
            if failed:
                raise ExceptionGroup(f"{len(failed)} of {count} cases fail", failed)

        test.__name__, test.__qualname__, test.__doc__ = check.__name__, check.__qualname__, check.__doc__
        test.__module__ = check.__module__
        return test

    return of_check
