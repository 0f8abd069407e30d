"""Arrays made from observations of the server: their numbers, or the features of its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from .fields import Field

ObservationSpace = Literal["raw", "normalized", "features", "features_and_server"]


class ObservationEncoding:
    """A ``Box`` of float32 over the numbers of an observation, in the order of its schema.

    Choices, such as the task, are no numbers to learn from and are left out; a list gives a number for each entry, and an
    object one for each of its properties.

    Args:
        fields: those of the observation.
        normalize: bring each number for which the schema has a ``normalization`` to about 0 to 1 by it; the others, and
            all without this, are in their own units.

    Attributes:
        names: of the numbers.
        space: of one environment.

    Raises:
        ValueError: when they are to be normalized and the schema says for none of them how.
    """

    def __init__(self, fields: Sequence[Field], *, normalize: bool = False) -> None:
        self.names = [field.name for field in fields]
        scales = [field.scale if normalize else None for field in fields]
        if normalize and not any(scales):
            raise ValueError(
                "The schema has no normalization of its observations: leave observation_space='normalized' out, "
                "and use gymnasium.wrappers.NormalizeObservation"
            )
        self._logarithmic = np.array([scale is not None and scale.transform == "log1p" for scale in scales])
        self._divisors = np.array([1.0 if scale is None else scale.divisor for scale in scales])
        low = np.array([field.low for field in fields])
        high = np.array([field.high for field in fields])
        self.space = spaces.Box(self.scaled(low), self.scaled(high), dtype=np.float32)

    def encode(self, observations: np.ndarray, in_force: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        """Observations of n environments, of whose actions and past they show nothing."""
        del in_force, fresh
        return self.scaled(observations)

    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """Numbers in their own units, in the order of ``names``, as observations have them."""
        values = np.array(rows, dtype=np.float64)
        np.log1p(values, out=values, where=np.broadcast_to(self._logarithmic, values.shape))
        return (values / self._divisors).astype(np.float32)


_TRANSFORMS = {"log": np.log, "log1p": np.log1p, "log2": np.log2}
#: Features of the server itself, which are the same in every window.
_OF_SERVER = "server."


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
        kept = [each for each in specification if with_server or not each["of"].startswith(_OF_SERVER)]
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
        self._plus = given.get("plus", 0)
        self._over = columns[given["over"]][:2] if "over" in given else None
        self._over_plus = given.get("over_plus", 0)
        self._divisor = given.get("divisor", 1)
        self._transform = _TRANSFORMS.get(given.get("transform", ""), lambda value: value)
        self._memory = given.get("memory")
        self._weight = given.get("weight", 1)
        self._missing = given.get("missing", np.nan)
        self._average = np.zeros(0)
        self._last = np.zeros(0)
        self._windows = np.zeros(0)

    def next(self, tables: tuple[np.ndarray, np.ndarray], fresh: np.ndarray) -> np.ndarray:
        figure = tables[self._table][:, self._column]
        if self._values is not None:
            figure = self._values[figure.astype(np.int64)].astype(np.float64)
        if len(self._average) != len(figure):
            self._average, self._last, self._windows = (np.full(len(figure), np.nan) for _ in range(3))
        if self._memory == "kept":
            same = ~fresh & (self._last == figure)
            self._windows = np.where(same, self._windows + 1, 0)
            self._last = figure.copy()
            return np.log1p(self._windows)
        value = figure + self._plus if self._equals is None else (figure == self._equals).astype(np.float64)
        if self._over is not None:
            value = value / (tables[self._over[0]][:, self._over[1]] + self._over_plus)
        value = self._transform(value / self._divisor)
        if self._memory is None:
            return value
        if self._memory == "change":
            change = value - np.where(fresh, 0, self._last)
            self._last = value
            return change
        measured = figure != self._missing
        self._average[fresh] = np.nan
        first = np.isnan(self._average)
        average = np.where(first, value, self._average + self._weight * (value - self._average))
        self._average = np.where(measured, average, self._average)
        known = np.nan_to_num(self._average, nan=0.0)
        if self._memory == "average":
            return known
        return np.where(measured, value, known) - (0 if self._memory == "filled" else known)
