from __future__ import annotations

from io import BytesIO
from typing import Any, cast

from kdissect.cli.jobs import Outlet
from kdissect.cli.listed_rows import ListedRows
from kdissect.present.form import Clock


class Joining:
    """A printer that writes the rows of other processes to its file."""

    state = None

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet

    def join(self, columns: Any) -> None:
        self._outlet.write(b"joined")


def test_joined_rows_are_no_output_of_the_batch_that_is_being_made() -> None:
    file = BytesIO()
    outlet = Outlet(file)
    printer = cast(Any, Joining(outlet))
    rows = ListedRows(cast(Any, None), printer, outlet, False, Clock("r"), None, None)
    made: list[Any] = []
    outlet.to = made.append
    rows.write(cast(Any, object()))
    assert file.getvalue() == b"joined"
    outlet.write(b"made")
    assert made == [b"made"]
