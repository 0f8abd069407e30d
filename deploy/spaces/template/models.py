"""Action, observation and state of the environment, as its server publishes them under ``/schema``."""

from typing import Any, Literal

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


{{action_model}}

{{observation_model}}

{{state_model}}
