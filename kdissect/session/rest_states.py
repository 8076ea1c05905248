"""A connection ↔ bytes, within a process. Import it only where connections rest: it takes milliseconds."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any

from kdissect.session.briefs import PairLayout
from kdissect.session.conversation import Conversation
from kdissect.session.quick import PairLayouts


def packed(conversation: Conversation, places: Mapping[int, int]) -> bytes:
    """The state of a connection.

    :param places: the places of objects that are not copied, by their ids.
    """
    file = BytesIO()
    _RestPickler(file, places).dump(conversation)
    return file.getvalue()


def unpacked(state: bytes, shared: Sequence[object], forms: PairLayouts | None) -> Conversation:
    """The connection with this state.

    :param shared: the objects that were not copied, by their places.
    :param forms: has the layouts of exchanges, which were not copied either.
    """
    found: Conversation = _RestUnpickler(BytesIO(state), shared, forms).load()
    return found


class _RestPickler(pickle.Pickler):
    """Names shared objects instead of copying them."""

    def __init__(self, file: BytesIO, places: Mapping[int, int]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._places = places

    def persistent_id(self, thing: Any) -> int | tuple[int, int] | None:
        if isinstance(thing, PairLayout):
            return thing.key, thing.version
        return self._places.get(id(thing))


class _RestUnpickler(pickle.Unpickler):
    """Finds shared objects by their names."""

    def __init__(self, file: BytesIO, shared: Sequence[object], forms: PairLayouts | None) -> None:
        super().__init__(file)
        self._shared = shared
        self._forms = forms

    def persistent_load(self, name: int | tuple[int, int]) -> object:
        if isinstance(name, int):
            return self._shared[name]
        assert self._forms is not None
        return self._forms.find(*name)
