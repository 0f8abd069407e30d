"""Knobs that a task masks: they stay at its default action."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import ServerError
from .http_api import HttpApi


def tasks_of(api: HttpApi) -> list[dict[str, Any]]:
    """The tasks of a server; none where it does not list any."""
    try:
        tasks: list[dict[str, Any]] = api.get("tasks").get("tasks", [])
    except ServerError:
        return []
    return tasks


def masked_values(tasks: Sequence[dict[str, Any]], task_id: str | int | None) -> dict[str, Any]:
    """The knobs that a task masks, by name, with the values at which they stay."""
    task = next((each for each in tasks if str(each.get("id")) == str(task_id)), {})
    standard = task.get("default_action") or {}
    return {name: standard[name] for name in task.get("masked_actions") or [] if name in standard}
