"""Settings as plain JSON, and back: how a run is told from another, and how a checkpoint describes itself.

Settings are frozen dataclasses, and each class has an explicit name, its *kind*. What a run is, is its kind and the
fields that differ from their defaults: a new option leaves every earlier run what it was, and so does a new name for
a class. A note beside the weights holds all fields, so that it also stays right when a default changes.
"""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from typing import Any

KINDS: dict[str, type] = {}


class UnknownSettings(ValueError):
    """Settings that no class here understands."""


def of_kind(name: str) -> Callable[[type], type]:
    """Class decorator: the name by which settings of a frozen dataclass are written and found again.

    Raises ValueError for a name that another class has.
    """

    def register(cls: type) -> type:
        if (other := KINDS.get(name)) and (other.__module__, other.__qualname__) != (
            cls.__module__,
            cls.__qualname__,
        ):
            raise ValueError(f"the kind {name!r} is {other.__qualname__}; give {cls.__qualname__} another name")
        cls.kind, KINDS[name] = name, cls
        return cls

    return register


def remark(default: Any = dataclasses.MISSING) -> Any:
    """A field that says something about the settings and decides nothing: it is no part of what they are."""
    return dataclasses.field(default=default, metadata={"decides": False})


def to_json(value: Any) -> Any:
    """Settings as plain JSON values: a dataclass becomes its kind and every field that decides the outcome."""
    return _plain(value, with_defaults=True)


def identity(value: Any) -> str:
    """Sixteen hexadecimal digits that change with any setting, but not with an option that is left at its default."""
    content = json.dumps(_plain(value, with_defaults=False), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def from_json(plain: Any) -> Any:
    """The settings that `to_json` wrote; fields that it did not know yet have their defaults.

    Raises UnknownSettings for a kind, or a field, that no class here has.
    """
    if isinstance(plain, list):
        return tuple(map(from_json, plain))
    if not isinstance(plain, dict):
        return plain
    name, fields = plain["kind"], {key: from_json(value) for key, value in plain.items() if key != "kind"}
    if name not in KINDS:
        raise UnknownSettings(f"no settings of the kind {name!r} are known here: import the module that defines them")
    if unknown := set(fields) - {field.name for field in dataclasses.fields(KINDS[name])}:
        raise UnknownSettings(f"settings of the kind {name!r} have no {', '.join(sorted(unknown))}")
    return KINDS[name](**fields)


def _plain(value, with_defaults):
    if isinstance(value, tuple):
        return [_plain(each, with_defaults) for each in value]
    if not dataclasses.is_dataclass(value):
        return value
    if "kind" not in vars(type(value)):  # that of a parent would make two settings one
        raise TypeError(f"{type(value).__qualname__} has no kind: decorate it with @of_kind(NAME)")
    decide = [field for field in dataclasses.fields(value) if field.metadata.get("decides", True)]
    kept = [field for field in decide if with_defaults or getattr(value, field.name) != _default(field)]
    return {"kind": value.kind} | {field.name: _plain(getattr(value, field.name), with_defaults) for field in kept}


def _default(field):
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
