"""A mistake of a user of the data source, in one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from kdissect.model import CaptureError
from kdissect.spark.states import StateError


@contextmanager
def in_one_line() -> Iterator[None]:
    """Show errors in options, captures or states to the user without a stack. PySpark's workers end after an
    error, so the setting here affects this error only.

    :raises CaptureError: the error is about captures.
    :raises ValueError: it is about anything else; the text is the same.
    """
    try:
        yield
    except (LookupError, ValueError, OSError, CaptureError, StateError) as error:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        kind = CaptureError if isinstance(error, CaptureError) else ValueError
        words = error if isinstance(error, OSError) else (error.args[0] if error.args else error)
        raise kind(str(words)) from None
