"""The numbers, booleans and choices that an action or an observation is made of, read from a server's schema."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

#: What stands beside an observation on the wire, and in its schema.
BESIDE = ("done", "reward", "metadata")


@dataclass(frozen=True)
class Field:
    """One number of a row.

    Attributes:
        name: its key; of an entry of a list, ``list.0``, of a nested object, ``outer.inner``.
        kind: how the number is meant.
        low, high: its range, infinite where the schema has no bound. Of a choice, the range of its index.
        values: what the indexes of a choice stand for.
        default: what the schema fills in, or ``None``.
        bins: its ``bins``, as numbers: values that learners choose from.
        bins_by_ratio: whether the nearest bin is that of the nearest logarithm.
    """

    name: str
    kind: Literal["integer", "number", "boolean", "choice"]
    low: float
    high: float
    values: tuple[Any, ...] = ()
    default: Any = None
    bins: tuple[float, ...] = ()
    bins_by_ratio: bool = False

    @property
    def path(self) -> list[str]:
        """The keys from the outside in."""
        return self.name.split(".")

    def value(self, number: float) -> Any:
        """The object's value for a number of a row."""
        if self.kind == "choice":
            return self.values[int(number)]
        if self.kind == "boolean":
            return bool(number)
        return int(number) if self.kind == "integer" else float(number)

    def number(self, value: Any) -> float:
        """The number of a row that stands for a value of the object."""
        if self.kind != "choice":
            return float(value)
        return float(self.values.index(value)) if value in self.values else math.nan


def fields_of(schema: dict[str, Any], *, leave_texts: bool = False) -> tuple[Field, ...]:
    """The fields of an action or observation schema, in its order.

    Args:
        leave_texts: leave out free text, such as the name of a task, which is nothing to learn from.

    Raises:
        ValueError: naming a property that is no number, boolean, choice, or object or fixed list of them.
    """
    properties = schema.get("properties", {})
    names = [name for name in properties if name not in BESIDE]
    if leave_texts:
        names = [name for name in names if properties[name].get("type") != "string" or "enum" in properties[name]]
    return tuple(field for name in names for field in _fields(name, properties[name]))


def read_object(fields: Sequence[Field], row: Sequence[float]) -> dict[str, Any]:
    """The object that a row of numbers stands for. Of nested parts, it knows lists."""
    result: dict[str, Any] = {}
    for field, number in zip(fields, row, strict=True):
        key, *inner = field.path
        if inner:
            result.setdefault(key, []).append(field.value(number))
        else:
            result[key] = field.value(number)
    return result


def read_row(fields: Sequence[Field], value: dict[str, Any]) -> list[float]:
    """The row of numbers that stands for an object."""
    row = []
    for field in fields:
        part: Any = value
        for key in field.path:
            part = part[int(key)] if isinstance(part, list) else part[key]
        row.append(field.number(part))
    return row


def _fields(name: str, schema: dict[str, Any]) -> list[Field]:
    fields = _unbinned(name, schema)
    if "bins" not in schema:
        return fields
    (field,) = fields
    bins = tuple(field.number(value) for value in schema["bins"])
    return [replace(field, bins=bins, bins_by_ratio=schema.get("bins_by") == "ratio")]


def _unbinned(name: str, schema: dict[str, Any]) -> list[Field]:
    default = schema.get("default")
    values = tuple(schema["enum"]) if "enum" in schema else (schema["const"],) if "const" in schema else ()
    if values:
        return [Field(name, "choice", 0, len(values) - 1, values, default)]
    type_ = schema.get("type")
    if type_ == "boolean":
        return [Field(name, "boolean", 0, 1, (), default)]
    if type_ in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf))
        high = schema.get("maximum", schema.get("exclusiveMaximum", math.inf))
        kind: Literal["integer", "number"] = "integer" if type_ == "integer" else "number"
        # Zod bounds integers by the largest safe one, which is no bound.
        return [Field(name, kind, _bound(low), _bound(high), (), default)]
    if type_ == "array":
        items = schema.get("prefixItems") or [schema.get("items", {})] * schema.get("minItems", 0)
        if items and schema.get("maxItems", len(items)) == len(items):
            return [field for index, item in enumerate(items) for field in _fields(f"{name}.{index}", item)]
    if type_ == "object":
        inner = schema.get("properties", {})
        return [field for key, each in inner.items() for field in _fields(f"{name}.{key}", each)]
    raise ValueError(f"The property {name!r} is no number, boolean, choice, or object or list of them: {schema}")


def _bound(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= 2**53 - 1 else float(value)
