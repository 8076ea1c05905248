"""Which exchanges are marked, and what was written about them, by their numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


class Marks:
    """Marks and comments."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        """Of the marked exchanges."""
        self._before_all: set[int] | None = None
        """Those that were marked before :meth:`toggle_all` marked others."""
        self.comments: dict[int, str] = {}
        """What was written here; never empty."""
        self.unsaved: set[int] = set()
        """Exchanges with a comment that was written or changed since it was saved."""
        self._captured: dict[int, str] = {}
        """What the capture itself says of the exchanges' packets."""

    def toggle(self, number: int) -> bool:
        """Mark an exchange, or take its mark away; gives whether it is marked now."""
        self.numbers ^= {number}
        return number in self.numbers

    def toggle_all(self, numbers: Collection[int]) -> bool:
        """Mark exchanges, or take their marks away if all of them have one; gives whether they are marked
        now. Right after they were marked so, the marks are again those of before."""
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
        """What was written here about an exchange."""
        return self.comments.get(number)

    def comment(self, number: int) -> str | None:
        """What was written about an exchange, here and in the capture."""
        said = [text for text in (self.comments.get(number), self._captured.get(number)) if text]
        return "  ".join(said) or None

    def set_comment(self, number: int, text: str) -> None:
        """Write about an exchange; no text takes the comment away."""
        if text == self.comments.get(number, ""):
            return
        if text:
            self.comments[number] = text
            self.unsaved.add(number)
        else:
            del self.comments[number]
            self.unsaved.discard(number)

    def saved(self, comments: Mapping[int, str], numbers: Iterable[int]) -> None:
        """These comments were saved with exchanges of these numbers."""
        self.unsaved -= {each for each in numbers if comments.get(each) == self.comments.get(each)}

    def found(self, comments: Iterable[tuple[int, str]]) -> None:
        """The capture says this of exchanges."""
        self._captured.update(comments)

    def next(self, number: int) -> int | None:
        """The next exchange after one with a mark or a comment, beginning anew after the last."""
        there = sorted(self.numbers | self.comments.keys() | self._captured.keys())
        return next((each for each in there if each > number), there[0] if there else None)

    def sign(self, number: int) -> str:
        """``★`` for a mark, ``✎`` for a comment, nothing for neither."""
        if number in self.numbers:
            return "★"
        return "✎" if number in self.comments or number in self._captured else ""
