"""How an observation of the server becomes an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from .fields import Field, read_row


class ObservationEncoding:
    """A ``Box`` of float32 over the numbers of an observation, in the order of its schema and in their own units.

    Choices, such as the task, are no numbers to learn from and are left out; a list gives a number for each entry.

    Args:
        fields: those of the observation.

    Attributes:
        names: of the numbers.
        space: of one environment.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._numbers = tuple(field for field in fields if field.kind != "choice")
        self.names = [field.name for field in self._numbers]
        low = np.array([field.low for field in self._numbers], dtype=np.float32)
        high = np.array([field.high for field in self._numbers], dtype=np.float32)
        self.space = spaces.Box(low, high, dtype=np.float32)

    def array(self, observation: dict[str, Any]) -> np.ndarray:
        """The array of one observation."""
        return np.array(read_row(self._numbers, observation), dtype=np.float32)

    def columns(self, layout: Sequence[str]) -> np.ndarray:
        """Where the numbers stand in rows of this layout, which the server names."""
        return np.array([layout.index(name) for name in self.names])
