"""Arrays made from observations of the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from .fields import Field, read_row


class ObservationEncoding:
    """A ``Box`` of float32 over the numbers of an observation, in the order of its schema.

    Choices, such as the task, are no numbers to learn from and are left out; a list gives a number for each entry.

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
        self._numbers = tuple(field for field in fields if field.kind != "choice")
        self.names = [field.name for field in self._numbers]
        scales = [field.scale if normalize else None for field in self._numbers]
        if normalize and not any(scales):
            raise ValueError(
                "The schema has no normalization of its observations: leave normalize=True out, "
                "and use gymnasium.wrappers.NormalizeObservation"
            )
        self._logarithmic = np.array([scale is not None and scale.transform == "log1p" for scale in scales])
        self._divisors = np.array([1.0 if scale is None else scale.divisor for scale in scales])
        low = np.array([field.low for field in self._numbers])
        high = np.array([field.high for field in self._numbers])
        self.space = spaces.Box(self.scaled(low), self.scaled(high), dtype=np.float32)

    def array(self, observation: dict[str, Any]) -> np.ndarray:
        """The array of one observation."""
        return self.scaled(np.array(read_row(self._numbers, observation)))

    def scaled(self, rows: np.ndarray) -> np.ndarray:
        """Numbers in their own units, in the order of ``names``, as observations have them."""
        values = np.array(rows, dtype=np.float64)
        np.log1p(values, out=values, where=np.broadcast_to(self._logarithmic, values.shape))
        return (values / self._divisors).astype(np.float32)

    def columns(self, layout: Sequence[str]) -> np.ndarray:
        """Columns of the numbers in rows of this layout, which the server names."""
        return np.array([layout.index(name) for name in self.names])
