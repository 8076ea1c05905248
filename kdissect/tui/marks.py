"""The marked exchanges and the user's comments, by the numbers of exchanges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


class Marks:
    """Marks and comments."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        """The numbers of the marked exchanges."""
        self._before_all: set[int] | None = None
        """The marked exchanges before the last :meth:`toggle_all`."""
        self.comments: dict[int, str] = {}
        """The user's comments; never empty."""
        self.unsaved: set[int] = set()
        """Exchanges with a comment that was written or changed since the last save."""
        self._captured: dict[int, str] = {}
        """The comments in the capture on the exchanges' packets."""

    def toggle(self, number: int) -> bool:
        """Mark an exchange, or remove its mark; return whether it is marked now."""
        self.numbers ^= {number}
        return number in self.numbers

    def toggle_all(self, numbers: Collection[int]) -> bool:
        """Mark exchanges, or remove their marks if all have one; return whether they are marked now. A second
        call right after the first restores the earlier marks."""
        before, self._before_all = self._before_all, None
        if self.numbers.issuperset(numbers):
            if before is not None and before | set(numbers) == self.numbers:
                self.numbers = before
            else:
                self.numbers.difference_update(numbers)
            return False
        self._before_all = set(self.numbers)
        self.numbers.update(numbers)
        return True

    def filter(self) -> str:
        """The filter that shows the marked exchanges; empty without any."""
        runs: list[list[int]] = []
        for number in sorted(self.numbers):
            if runs and runs[-1][-1] == number - 1:
                runs[-1][1:] = [number]
            else:
                runs.append([number])
        texts = ((", " if run[-1] == run[0] + 1 else "..").join(map(str, run)) for run in runs)
        return f"number in {{{', '.join(texts)}}}" if runs else ""

    def own(self, number: int) -> str | None:
        """The user's comment on an exchange."""
        return self.comments.get(number)

    def comment(self, number: int) -> str | None:
        """The comments on an exchange, the user's and the capture's."""
        said = [text for text in (self.comments.get(number), self._captured.get(number)) if text]
        return "  ".join(said) or None

    def set_comment(self, number: int, text: str) -> None:
        """Set the user's comment on an exchange; an empty text removes it."""
        if text == self.comments.get(number, ""):
            return
        if text:
            self.comments[number] = text
            self.unsaved.add(number)
        else:
            del self.comments[number]
            self.unsaved.discard(number)

    def note_saved(self, comments: Mapping[int, str], numbers: Iterable[int]) -> None:
        """Note that these comments were saved with exchanges of these numbers."""
        self.unsaved -= {each for each in numbers if comments.get(each) == self.comments.get(each)}

    def note_found(self, comments: Iterable[tuple[int, str]]) -> None:
        """Note comments in the capture on exchanges."""
        self._captured.update(comments)

    def next(self, number: int) -> int | None:
        """The next exchange after one with a mark or a comment; after the last comes the first."""
        there = sorted(self.numbers | self.comments.keys() | self._captured.keys())
        return next((each for each in there if each > number), there[0] if there else None)

    def sign(self, number: int) -> str:
        """``★`` for a mark, ``✎`` for a comment, empty without either."""
        if number in self.numbers:
            return "★"
        return "✎" if number in self.comments or number in self._captured else ""
