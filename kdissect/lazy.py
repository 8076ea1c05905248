"""Modules and values that are imported or made at first use, because most runs do not need them and should
start fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Made(Mapping[K, V]):
    """Values by key, each made at first use.

    :param keys: all keys, in order.
    :param make: makes the value of a key.
    """

    def __init__(self, keys: Iterable[K], make: Callable[[K], V]) -> None:
        self._keys = dict.fromkeys(keys)
        self._make = make
        self._made: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        if key not in self._made:
            if key not in self._keys:
                raise KeyError(key)
            self._made[key] = self._make(key)
        return self._made[key]

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class Later:
    """A module that is imported at first use. Its attributes are those of the module.

        if TYPE_CHECKING:
            import zstandard
        else:
            zstandard = Later("zstandard")

    :param part: a module of the package ``name`` with the needed attributes. It is loaded without the rest of
        the package if possible.
    :raises ImportError: the module cannot be imported when an attribute is used.
    """

    def __init__(self, name: str, part: str | None = None) -> None:
        self._name = name
        self._part = part

    def __getattr__(self, name: str) -> Any:
        """Import an attribute at its first use, and keep it here."""
        package, part = self.__dict__["_name"], self.__dict__["_part"]
        module = None if part is None else _alone(package, part)
        if not hasattr(module, name):
            module = import_module(package)
        found = getattr(module, name)
        setattr(self, name, found)
        return found


def _alone(package: str, part: str) -> ModuleType | None:
    """A module of a package, loaded without its package. None if it does not exist, or has another form."""
    name = f"{package}.{part}"
    if name in sys.modules:
        return sys.modules[name]
    try:
        whole = find_spec(package)
        spec = None if whole is None else PathFinder.find_spec(name, whole.submodule_search_locations)
        if spec is None or spec.loader is None:
            return None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except (ImportError, ValueError):  # importing the package will report the error
        return None
    sys.modules[name] = module
    return module
