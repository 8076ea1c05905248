"""Secrets by name: what is put in comes out, within the bound; the oldest go."""

from __future__ import annotations

import pickle
import tracemalloc
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kdissect.limits import DEFAULTS
from kdissect.tls.secret_store import LABELS, MASTER, NAME_COST, RELIEF, RememberedSecrets

TOLD = st.lists(st.tuples(st.binary(max_size=2), st.sampled_from(LABELS), st.binary(max_size=300)))


def name(number: int) -> bytes:
    return number.to_bytes(32, "big")


@given(TOLD)
def test_it_is_a_dict_of_dicts(told: list[tuple[bytes, str, bytes]]) -> None:
    plain: dict[bytes, dict[str, bytes]] = {}
    made = RememberedSecrets(1 << 30)
    for each, label, secret in told:
        is_new = plain.setdefault(each, {}).get(label) != secret
        plain[each][label] = secret
        assert made.add(each, label, secret) == is_new
    stored: RememberedSecrets = pickle.loads(pickle.dumps(made))
    assert len(made) == len(stored) == len(plain)
    for each, secrets in plain.items():
        assert list(made.of(each).items()) == list(secrets.items())
        assert stored.of(each) == secrets
    assert made.of(b"unknown") == {}


def test_of_more_than_the_limit_the_oldest_are_forgotten() -> None:
    room = 800
    made = RememberedSecrets(room * (NAME_COST + 3 + 48))
    for number in range(3 * room):
        made.add(name(number), MASTER, bytes(48))
        assert len(made) <= room
        assert made.of(name(number))
    assert made.forgotten + len(made) == 3 * room
    assert len(made) >= room - room // RELIEF
    assert not any(made.of(name(number)) for number in range(made.forgotten))
    assert all(made.of(name(number)) for number in range(made.forgotten, 3 * room))


def test_a_secret_that_alone_is_too_much_is_not_kept() -> None:
    made = RememberedSecrets(NAME_COST + 100)
    assert made.add(name(1), MASTER, bytes(200))
    assert (len(made), made.forgotten) == (0, 1)
    assert made.add(name(2), MASTER, bytes(48))
    assert len(made) == 1


def test_what_changes_again_and_again_takes_no_more() -> None:
    made = RememberedSecrets(10 * (NAME_COST + 100))
    for number in range(10_000):
        made.add(name(number % 3), MASTER, bytes(number % 60))
    assert (len(made), made.forgotten) == (3, 0)


def test_they_take_what_the_limit_counts() -> None:
    randomly, count = Random(1), 100_000
    made = RememberedSecrets(DEFAULTS.secret_bytes)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(count):
        made.add(randomly.randbytes(32), MASTER, randomly.randbytes(48))
    took = (tracemalloc.get_traced_memory()[0] - before) / count
    tracemalloc.stop()
    assert 0.75 * (NAME_COST + 51) < took < 1.15 * (NAME_COST + 51)
