"""A key that turns names and bytes into others of the same form and length, different ones into different
ones.

Names go through a Feistel network over their characters, as in FF1 (NIST SP 800-38G), with another function
in its rounds. So two names never become the same token, however short they are. A name becomes the same token
in every file that is scrubbed with the key. Names that stay as they are (:mod:`kdissect.scrub.allowed`) are
skipped: no other name becomes one of them.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import shake_256
from itertools import groupby
from string import ascii_letters, digits

from kdissect.scrub.allowed import KEPT_NAMES, kept_end

KEY_BYTES = 32
LONGEST = 1_000
"""The most characters of a name that go through the network together, because the work grows with their
square. A longer name is cut into pieces of this length, and each becomes a token."""
_ROUNDS = 10
_SLACK_BYTES = 16
"""The number of bytes by which a number is longer than the range that it is reduced to, so that all
remainders are equally likely."""

_NAME = ascii_letters + digits + "._-"
"""The characters of Kafka's names."""
_SIGNS = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in _NAME)
_CONTROLS = "".join(chr(code) for code in (*range(0x20), 0x7F))


class _Letters:
    """Characters that may replace each other: all have the same length in UTF-8."""

    def __init__(self, first: int, count: int, text: str = "") -> None:
        self.count = count or len(text)
        self._first, self._text = first, text

    def place(self, letter: str) -> int:
        """The index of a character."""
        return self._text.index(letter) if self._text else ord(letter) - self._first

    def letter(self, place: int) -> str:
        """The character at an index."""
        return self._text[place] if self._text else chr(self._first + place)


_SETS = (
    # The sixth group is bytes that are no UTF-8 (PEP 383).
    _Letters(0, 0, _NAME),
    _Letters(0, 0, _SIGNS),
    _Letters(0, 0, _CONTROLS),
    _Letters(0x80, 0x800 - 0x80),
    _Letters(0x800, 0xD800 - 0x800),
    _Letters(0xDC80, 0x80),
    _Letters(0xE000, 0x10000 - 0xE000),
    _Letters(0x10000, 0x110000 - 0x10000),
)


def _set_of(letter: str) -> int:
    code = ord(letter)
    if code < 0x80:
        return 0 if letter in _NAME else 1 if letter in _SIGNS else 2
    ends = (0x800, 0xD800, 0xE000, 0x10000, 0x110000)
    return 3 + next(place for place, end in enumerate(ends) if code < end)


class Permutation:
    """The replacements of a key.

    :param key: of :data:`KEY_BYTES`.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.name = lru_cache(maxsize=65_536)(self._name)
        """``name(text)``: the token of a name, with the same length in UTF-8."""

    def bits(self, what: bytes, data: bytes) -> int:
        """A byte that depends on the key, the purpose and these bytes."""
        return self._made(what, data, 1)[0]

    def data(self, data: bytes) -> bytes:
        """Other bytes of the same length."""
        middle = len(data) // 2
        halves = [data[:middle], data[middle:]]
        head = b"bytes" + len(data).to_bytes(4, "big")
        for turn in range(_ROUNDS):
            side = turn & 1
            made = self._made(head + bytes((turn,)), halves[1 - side], len(halves[side]))
            halves[side] = _mixed(halves[side], made)
        return halves[0] + halves[1]

    def _name(self, text: str) -> str:
        if text in KEPT_NAMES:
            return text
        end = kept_end(text)
        begin = text[: len(text) - len(end)]
        found = self._permuted(begin, end)
        while (found + end) in KEPT_NAMES or (not end and kept_end(found)):
            found = self._permuted(found, end)  # the cycle leads to another name, or to the first
        return found + end

    def _permuted(self, text: str, end: str) -> str:
        places = range(0, len(text), LONGEST)
        return "".join(self._permuted_part(text[at : at + LONGEST], end) for at in places)

    def _permuted_part(self, text: str, end: str) -> str:
        sets = [_set_of(letter) for letter in text]
        middle = len(text) // 2
        halves = [_number(text[:middle], sets[:middle]), _number(text[middle:], sets[middle:])]
        sizes = [_size(sets[:middle]), _size(sets[middle:])]
        form = ",".join(f"{each}x{len(list(run))}" for each, run in groupby(sets))
        head = f"name {form} {end}".encode() + b"\0"
        for turn in range(_ROUNDS):
            side = turn & 1
            other = halves[1 - side]
            size = sizes[side]
            width = (size.bit_length() + 7) // 8 + _SLACK_BYTES
            said = other.to_bytes((sizes[1 - side].bit_length() + 7) // 8 + 1, "big")
            made = int.from_bytes(self._made(head + bytes((turn,)), said, width), "big")
            halves[side] = (halves[side] + made) % size
        return _text(halves[0], sets[:middle]) + _text(halves[1], sets[middle:])

    def _made(self, what: bytes, data: bytes, size: int) -> bytes:
        """Bytes that only the owner of the key can make: SHAKE256 of the key and the purpose."""
        return shake_256(self._key + len(what).to_bytes(2, "big") + what + data).digest(size)


def _mixed(data: bytes, mask: bytes) -> bytes:
    return (int.from_bytes(data, "big") ^ int.from_bytes(mask, "big")).to_bytes(len(data), "big")


def _size(sets: list[int]) -> int:
    size = 1
    for each in sets:
        size *= _SETS[each].count
    return size


def _number(text: str, sets: list[int]) -> int:
    number = 0
    for letter, each in zip(text, sets, strict=True):
        number = number * _SETS[each].count + _SETS[each].place(letter)
    return number


def _text(number: int, sets: list[int]) -> str:
    out = []
    for each in reversed(sets):
        number, place = divmod(number, _SETS[each].count)
        out.append(_SETS[each].letter(place))
    return "".join(reversed(out))
