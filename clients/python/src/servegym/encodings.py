"""Between an agent's arrays and the server's numbers: actions, and observations as numbers or as the features of the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from .fields import Field, read_object

ActionSpace = Literal["box", "bins", "raw"]

#: Bins of a wide number for which the schema has none.
BINS = 16
#: A positive integer range at least so wide, as a ratio, is laid out logarithmically.
LOGARITHMIC_RATIO = 64


class ActionEncoding:
    """An action space over the fields of an action schema.

    - ``box``: a ``Box(-1, 1)`` with a number for each field, as Stable-Baselines3 and CleanRL like it. Numbers span their
      range, wide positive integers (1 to 512) on a logarithmic scale; booleans are true above 0; choices are equal parts.
    - ``bins``: a ``MultiDiscrete`` with an index for each field, into the ``bins`` of the schema, which ServeGym's own training
      has too; where it has none, numbers with more than 16 values are cut into 16.
    - ``raw``: a ``Dict`` with the field's own values: ``Discrete`` for integers, booleans and choices, ``Box`` for numbers.

    Args:
        fields: those of the action.
        kind: one of the three.

    Attributes:
        space: of one environment.

    Raises:
        ValueError: when a number has no range, or the kind is none of the three.
    """

    space: spaces.Space[Any]

    def __init__(self, fields: Sequence[Field], kind: ActionSpace = "box") -> None:
        self.fields = tuple(fields)
        self.kind = kind
        for field in self.fields:
            if not np.isfinite([field.low, field.high]).all():
                raise ValueError(f"The action field {field.name!r} has no range, from {field.low} to {field.high}")
        width = len(self.fields)
        self._levels = [_levels(field) for field in self.fields]
        if kind == "box":
            self.space = spaces.Box(-1.0, 1.0, (width,), np.float32)
        elif kind == "bins":
            self.space = spaces.MultiDiscrete([len(levels) for levels in self._levels])
        elif kind == "raw":
            self.space = spaces.Dict({field.name: _space(field) for field in self.fields})
        else:
            raise ValueError(f"Expected the action_space 'box', 'bins' or 'raw', got {kind!r}")
        self._low = np.array([field.low for field in self.fields])
        self._high = np.array([field.high for field in self.fields])
        self._is_whole = np.array([field.kind != "number" for field in self.fields])
        self._is_logarithmic = np.array([_is_logarithmic(field) for field in self.fields])
        self._held: list[tuple[int, float]] = []

    def hold(self, values: Mapping[str, Any]) -> None:
        """Keeps fields at values of theirs from now on, whatever an action says; the space stays as it is."""
        columns = {field.name: column for column, field in enumerate(self.fields)}
        held = [(columns[name], value) for name, value in values.items() if name in columns]
        self._held = [(column, self.fields[column].number(value)) for column, value in held]

    def rows(self, actions: Any) -> np.ndarray:
        """The numbers of the server for the actions of n environments, shape ``(n, fields)``; held fields have theirs.

        Args:
            actions: of shape ``(n, fields)``, or for ``raw`` a mapping of arrays of length n.

        Raises:
            ValueError: when an action is outside its space; nothing is clipped.
        """
        rows = self._rows(actions)
        for column, number in self._held:
            rows[:, column] = number
        return rows

    def bins(self, rows: np.ndarray) -> np.ndarray:
        """Indexes of the bins nearest to rows of numbers, shape ``(n, fields)``."""
        nearest = []
        for column, (field, levels) in enumerate(zip(self.fields, self._levels, strict=True)):
            values, places = (np.log(each) if field.bins_by_ratio else each for each in (rows[:, column], levels))
            nearest.append(np.abs(places - values[:, None]).argmin(1))
        return np.stack(nearest, 1)

    def _rows(self, actions: Any) -> np.ndarray:
        if self.kind == "raw":
            return np.stack([np.asarray(actions[field.name], dtype=np.float64).reshape(-1) for field in self.fields], 1)
        table = np.asarray(actions)
        if table.ndim != 2 or table.shape[1] != len(self.fields):
            raise ValueError(f"Expected actions of shape (n, {len(self.fields)}), got {table.shape}")
        if self.kind == "bins":
            return self._rows_of_indexes(table)
        if not (np.abs(table) <= 1).all():
            raise ValueError(f"Expected actions from -1 to 1, got {table[~(np.abs(table) <= 1)][:4].tolist()}; clip them")
        share = (table.astype(np.float64) + 1) / 2
        linear = self._low + share * (self._high - self._low)
        low, high = (np.where(self._is_logarithmic, bound, 1.0) for bound in (self._low, self._high))
        values = np.where(self._is_logarithmic, low * (high / low) ** share, linear)
        # Equal parts for the whole ones: rounding would halve those at the ends.
        parts = np.minimum(np.floor(self._low + share * (self._high - self._low + 1)), self._high)
        return np.where(self._is_whole, np.where(self._is_logarithmic, np.rint(values), parts), values)

    def batch(self, action: Any) -> Any:
        """The action of one environment as the actions of n = 1. Raises ValueError where it is not one."""
        names = [field.name for field in self.fields]
        if self.kind == "raw":
            if not isinstance(action, Mapping) or set(action) != set(names):
                raise ValueError(f"Expected a dict with {', '.join(names)}, as env.action_space.sample() gives, got {action!r}")
            return {name: np.asarray([value]) for name, value in action.items()}
        if np.shape(action) != (len(names),):
            one = f"an array of {len(names)} numbers, one each for {', '.join(names)}, as env.action_space.sample() gives"
            raise ValueError(f"Expected {one}, got {action!r}")
        return np.asarray(action)[None]

    def action(self, row: np.ndarray) -> dict[str, Any]:
        """A row of numbers as the server takes it."""
        return read_object(self.fields, row.tolist())

    def _rows_of_indexes(self, table: np.ndarray) -> np.ndarray:
        rows = np.empty(table.shape)
        for column, levels in enumerate(self._levels):
            indexes = table[:, column].astype(np.int64)
            if not ((indexes >= 0) & (indexes < len(levels))).all():
                name = self.fields[column].name
                raise ValueError(f"Expected an index from 0 to {len(levels) - 1} of {name!r}, got {indexes.tolist()[:4]}")
            rows[:, column] = levels[indexes]
        return rows


def _is_logarithmic(field: Field) -> bool:
    return field.kind == "integer" and field.low > 0 and field.high / field.low >= LOGARITHMIC_RATIO


def _levels(field: Field) -> np.ndarray:
    if field.bins:
        return np.array(field.bins)
    if field.kind != "number" and field.high - field.low < BINS:
        return np.arange(field.low, field.high + 1)
    if _is_logarithmic(field):
        return np.unique(np.rint(np.geomspace(field.low, field.high, BINS)))
    levels = np.linspace(field.low, field.high, BINS)
    return levels if field.kind == "number" else np.unique(np.rint(levels))


def _space(field: Field) -> spaces.Space[Any]:
    if field.kind == "number":
        return spaces.Box(field.low, field.high, (), np.float64)
    return spaces.Discrete(int(field.high - field.low) + 1, start=int(field.low))


ObservationSpace = Literal["raw", "features", "features_and_server"]


class ObservationEncoding:
    """A ``Box`` of float32 over the numbers of an observation, in the order of its schema.

    Choices, such as the task, are no numbers to learn from and are left out; a list gives a number for each entry, and an
    object one for each of its properties.

    Args:
        fields: those of the observation.

    Attributes:
        names: of the numbers.
        space: of one environment.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self.names = [field.name for field in fields]
        low = np.array([field.low for field in fields], np.float32)
        high = np.array([field.high for field in fields], np.float32)
        self.space = spaces.Box(low, high, dtype=np.float32)

    def encode(self, observations: np.ndarray, in_force: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """Observations of n environments, of whose actions and past they show nothing."""
        del in_force, fresh
        return np.asarray(observations, dtype=np.float32)


_TRANSFORMS = {"log": np.log, "log1p": np.log1p, "log2": np.log2}
#: Features that compare servers: the server itself, and windows in its units.
_OF_SERVER = ("server.", "relative.")


class FeatureEncoding:
    """Features of n episodes side by side, computed as the server's own learners do.

    Each feature is a figure of the observation, or of the action in force, by an optional formula, and may remember the
    episode; ``packages/environments/src/feature.ts`` describes the parts.

    Args:
        specification: the ``features`` of the observation's schema.
        observation, action: fields of the schema, in the order of the rows.
        with_server: keep the features that describe the server, for policies that run many.

    Attributes:
        names: of the features.
        space: of one environment.

    Raises:
        ValueError: when the schema has no features.
    """

    def __init__(
        self,
        specification: Sequence[Mapping[str, Any]],
        observation: Sequence[Field],
        action: Sequence[Field],
        *,
        with_server: bool = False,
    ) -> None:
        if not specification:
            raise ValueError("The schema has no features of its observations: leave observation_space out")
        columns = {field.name: (0, column, field) for column, field in enumerate(observation)}
        columns.update({f"action.{field.name}": (1, column, field) for column, field in enumerate(action)})
        kept = [
            each
            for each in specification
            if (not each.get("one_server") if with_server else not each["of"].startswith(_OF_SERVER))
        ]
        self._features = [_Feature(each, columns) for each in kept]
        self.names = [each["name"] for each in kept]
        self.space = spaces.Box(-np.inf, np.inf, (len(kept),), np.float32)

    def encode(self, observations: np.ndarray, in_force: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """The features of a step, shape ``(n, features)``.

        Args:
            observations: numbers in their own units, shape ``(n, fields)``.
            in_force: numbers of the actions in force, shape ``(n, fields)``.
            fresh: which episodes begin here, and forget.
        """
        tables = (np.asarray(observations, np.float64), np.asarray(in_force, np.float64))
        return np.stack([feature.next(tables, fresh) for feature in self._features], 1).astype(np.float32)


class _Feature:
    def __init__(self, given: Mapping[str, Any], columns: Mapping[str, tuple[int, int, Field]]) -> None:
        self._table, self._column, field = columns[given["of"]]
        # Of a choice, rows have the index; texts stay one.
        self._values = np.array(field.values) if field.kind == "choice" and not isinstance(field.values[0], str) else None
        equals = given.get("equals")
        self._equals = equals if equals is None or self._values is not None else field.number(equals)
        self._over = columns[given["over"]][:2] if "over" in given else None
        self._transform = _TRANSFORMS.get(given.get("transform", ""), lambda value: value)
        self._given = {"plus": 0, "over_plus": 0, "divisor": 1, "memory": None, "weight": 1, "missing": np.nan, **given}
        self._average = self._last = self._windows = np.zeros(0)

    def next(self, tables: tuple[np.ndarray, np.ndarray], fresh: np.ndarray) -> np.ndarray:
        figure = tables[self._table][:, self._column]
        if self._values is not None:
            figure = self._values[figure.astype(np.int64)].astype(np.float64)
        if len(self._average) != len(figure):
            self._average, self._last, self._windows = (np.full(len(figure), np.nan) for _ in range(3))
        given, memory = self._given, self._given["memory"]
        if memory == "kept":
            same = ~fresh & (self._last == figure)
            self._windows = np.where(same, self._windows + 1, 0)
            self._last = figure.copy()
            return np.log1p(self._windows)
        value = figure + given["plus"] if self._equals is None else (figure == self._equals).astype(np.float64)
        if self._over is not None:
            value = value / (tables[self._over[0]][:, self._over[1]] + given["over_plus"])
        value = self._transform(value / given["divisor"])
        if memory is None:
            return value
        if memory == "change":
            change = value - np.where(fresh, 0, self._last)
            self._last = value
            return change
        measured = figure != given["missing"]
        self._average[fresh] = np.nan
        first = np.isnan(self._average)
        average = np.where(first, value, self._average + given["weight"] * (value - self._average))
        self._average = np.where(measured, average, self._average)
        known = np.nan_to_num(self._average, nan=0.0)
        if memory == "average":
            return known
        return np.where(measured, value, known) - (0 if memory == "filled" else known)
