"""Settings for all tests."""

from __future__ import annotations

import gc
import importlib
import os
import signal
from collections import OrderedDict
from collections.abc import Generator, Iterable
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling

from kdissect.leaves import PURE
from kdissect.system import HANGING_UP, give_way
from tests.amount import AGAIN_VARIABLE, VARIABLE, times

# This must come before kdissect reads them: the tests use the definitions of this checkout and no
# configuration, and not the user's.
_NOWHERE = str(Path(__file__).parent / "no-user-data")
_OURS = (PURE, VARIABLE, AGAIN_VARIABLE)
for _name in [name for name in os.environ if name.startswith("KDISSECT_") and name not in _OURS]:
    del os.environ[_name]
os.environ["KDISSECT_DATA_HOME"] = os.environ["XDG_CONFIG_HOME"] = _NOWHERE

# A shell starts background processes with Ctrl-C ignored, and `nohup` with the hang-up ignored too. Processes
# of the tests would inherit that, and tests of these signals would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _number in HANGING_UP:
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)

# The time of an example depends on how busy the machine is. Speed has tests of its own.
settings.register_profile(
    "kdissect",
    deadline=None,
    max_examples=times(25, 100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kdissect")


SPARK = "tests/spark"
OWN_CLUSTER = "tests/spark/test_archive.py"
"""A file that does not use the Java of Spark's other tests."""
SLOW = (
    OWN_CLUSTER,
    *("tests/tui/", "tests/live/", "tests/client/", "tests/jobs/", "tests/benchmarks/", "tests/compiled/"),
    *("tests/cli/commands/test_live", "tests/tls/test_openssl", "tests/test_english"),
)
"""Files with few, slow tests. Most of these tests wait for something."""
LONGEST = (
    OWN_CLUSTER,
    *("tests/tui/test_terminal.py", "tests/live/test_windows.py", "tests/tui/test_screens.py"),
    *("tests/cli/commands/test_live.py", "tests/benchmarks/test_screens.py", "tests/tui/test_first_time.py"),
    *("tests/tui/test_resizing.py", "tests/tui/test_range_of_time.py", "tests/jobs/"),
)
"""The slowest files. They begin first, because otherwise all processes would wait for one of them at the
end. Tests of jobs fork their process, which takes longer with more memory: they begin before it grows."""


class OneSpark(LoadFileScheduling):  # type: ignore[misc]
    """Runs the tests of a file in one process, so that shared data is made once. All tests of Spark run in
    the first process, because each process that needs Spark starts its own Java.

    The other files alternate: one that waits and one that computes, so that the processors are always busy.
    By default, files with few tests come last, and then all processes would wait in the last minutes.
    """

    workqueue: OrderedDict[str, Any]
    is_in_turns = False

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return SPARK if file.startswith(f"{SPARK}/") and file != OWN_CLUSTER else file

    def _assign_work_unit(self, node: Any) -> None:
        if not self.is_in_turns:
            self.is_in_turns = True
            self.workqueue = OrderedDict((file, self.workqueue[file]) for file in in_turns(self.workqueue))
        super()._assign_work_unit(node)


def in_turns(files: Iterable[str]) -> list[str]:
    """The files in the order in which processes get them."""
    given = list(files)
    slow = sorted(
        (each for each in given if each.startswith(SLOW)), key=lambda each: not each.startswith(LONGEST)
    )
    rest = [each for each in given if each != SPARK and each not in slow]
    turns = chain.from_iterable(zip_longest(slow, rest))
    return [each for each in given if each == SPARK] + [each for each in turns if each is not None]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSpark:
    return OneSpark(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Three more than there are processors, because tests of screens, live captures and Spark wait for
    something. xdist's own variable tells another number."""
    return int(os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS", "0")) or (os.cpu_count() or 1) + 3


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    """Collect tests without garbage collection. It takes a third of the time, and finds next to nothing."""
    gc.disable()
    try:
        if hasattr(session.config, "workerinput"):
            _import_others_first(session.config)
        return (yield)
    finally:
        gc.enable()


def _import_others_first(config: Any) -> None:
    """Import different test files first in each process, if several collect the same tests.

    Rewriting the asserts of all files takes about 20 s of processor time. In the same order, each process
    would do that for every file. In different orders, each process finds that others have done most of them.
    """
    count, number = config.workerinput["workercount"], int(config.workerinput["workerid"].removeprefix("gw"))
    top = config.rootpath
    given = [top / arg.partition("::")[0] for arg in config.args]
    inside = (path.rglob("test_*.py") if path.is_dir() else [path] for path in given)
    files = sorted(set(chain.from_iterable(inside)))
    for file in files[len(files) * number // count : len(files) * (number + 1) // count]:
        with suppress(Exception, pytest.skip.Exception):  # collecting the file reports the error
            importlib.import_module(".".join(file.relative_to(top).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Keep collected tests and their imports out of garbage collection: they stay to the end. This saves a
    tenth of a run."""
    _keep_what_there_is()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, Any, Any]:
    """Keep objects that a file leaves for others out of garbage collection too, such as decoded captures.
    Otherwise each full run of the collector would take longer than the last."""
    result = yield
    is_last = nextitem is None or nextitem.path != item.path
    if is_last and (any(gc.get_count()[1:]) or gc.get_threshold() != _LOOK_AFTER):
        _keep_what_there_is()
    return result


_LOOK_AFTER = 20_000, 20, 20


def _keep_what_there_is() -> None:
    """Make the collector ignore all existing objects, and run over others as rarely as before. Tests of
    screens may have made it run twenty times as often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_LOOK_AFTER)


_has_given_way = False


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give Spark's tests precedence if several processes run tests. They are one long chain that waits for
    Java, and the other tests fill the time around it."""
    global _has_given_way  # noqa: PLW0603
    if not _has_given_way and hasattr(item.config, "workerinput") and not item.nodeid.startswith(SPARK):
        _has_given_way = True
        give_way()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden texts anew")


@pytest.fixture(autouse=True, scope="session")
def _long_form_is_chosen() -> None:
    """Remove our variables, which the workers have read. kdissect would complain about them."""
    for name in (VARIABLE, AGAIN_VARIABLE):
        os.environ.pop(name, None)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether to write golden texts instead of comparing them."""
    return bool(request.config.getoption("--update-golden"))
