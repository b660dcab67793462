"""Dataclasses that are read from a document: each field says where in the document its value stands."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, Callable, Dict, Mapping, Type, TypeVar, Union, get_args, get_origin, get_type_hints

Document = Mapping[str, Any]

_Read = TypeVar("_Read", bound="FromDocument")
_Take = Callable[[Any], Any]


class FromDocument:
    """A dataclass of which a field has the value of the document's member of its name, or at the path with which it is
    annotated: `seconds_low: Annotated[float, "time.interval_s.0"]`; the path "" is the whole document. A function may stand
    in the path's place, which gets the document. Where null stands on the way, the value is None. Where a member is missing,
    it is the field's default, or None if the path ends with "?". Values become what the field's type says: objects and lists
    of objects dataclasses, and amounts, which documents hold as texts, numbers.
    """

    @classmethod
    def from_document(cls: Type[_Read], document: Any) -> _Read:
        """Reads a document of the program, or a part of it."""
        return cls(**{name: take(document) for name, take in _takers(cls).items()})


_KNOWN: Dict[type, Dict[str, _Take]] = {}


def _takers(cls: Any) -> Dict[str, _Take]:
    """What finds the value of each field in a document."""
    if cls not in _KNOWN:
        hints = get_type_hints(cls, include_extras=True)
        _KNOWN[cls] = {entry.name: _taker(entry, hints[entry.name]) for entry in fields(cls)}
    return _KNOWN[cls]


def _taker(entry: Field[Any], kind: Any) -> _Take:
    place: Any = entry.name
    if get_origin(kind) is Annotated:
        kind, place = get_args(kind)
    convert = _converter(kind)
    if callable(place):
        return lambda document: convert(place(document))
    otherwise = None if entry.default is MISSING else entry.default
    may_lack = place.endswith("?") or entry.default is not MISSING
    keys = [int(key) if key.isdigit() else key for key in place.rstrip("?").split(".") if key]

    def take(value: Any) -> Any:
        for key in keys:
            if value is None:
                return None
            if may_lack and isinstance(key, str) and key not in value:
                return otherwise
            value = value[key]
        return convert(value)

    return take


def _converter(kind: Any) -> _Take:
    """What makes a value of this type of what JSON holds."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Union:  # Optional
        convert = _converter(parts[0])
        return lambda value: None if value is None else convert(value)
    if origin is list:
        convert = _converter(parts[0])
        return lambda values: [convert(value) for value in values]
    if isinstance(kind, type) and issubclass(kind, FromDocument):
        return kind.from_document
    return (lambda value: float(value) if isinstance(value, str) else value) if kind is float else lambda value: value
