"""Arrays made from observations of the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

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
