"""What a fold read lately: most answers are equal to one shortly before, and need not be read again."""

from __future__ import annotations

from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(dict[K, V]):
    """Values that can be made again at any time, by a key. If it is full, it forgets all of them.

    Pickled and copied it is empty.

    :param most: the number of values that it keeps.
    """

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: K, value: V) -> V:
        """Keep a value, and return it."""
        if len(self) >= self._most:
            self.clear()
        self[key] = value
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return Recent, (self._most,)
