"""Gymnasium's interfaces: to one environment, and to many that step together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .connection import Connection, HttpApi, masked_values
from .encodings import ActionEncoding, ActionSpace, FeatureEncoding, ObservationEncoding, ObservationSpace
from .fields import Field, fields_of, read_row
from .local_server import shared_server

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Seeds of the training traffic; those from 1,000,000 on are for validation and tests.
TRAINING_SEEDS = 1_000_000
#: Served on this machine when neither an environment nor a URL is given.
DEFAULT_ENVIRONMENT = "llmserve"


class ServedOptions(TypedDict, total=False):
    """Options of an environment, as :class:`ServeGymEnv` describes them."""

    url: str | None
    task_id: str | int | None
    action_space: ActionSpace
    observation_space: ObservationSpace
    reset_options: dict[str, Any] | None
    token: str | None
    timeout_s: float
    truncates: bool
    render_mode: str | None


class ServedSpaces:
    """A session of a server, and the encodings of its actions and observations."""

    metadata: dict[str, Any]

    def _open(
        self,
        environment: str | None,
        server_options: tuple[str, ...] = (),
        *,
        url: str | None = None,
        task_id: str | int | None = None,
        action_space: ActionSpace = "box",
        observation_space: ObservationSpace = "raw",
        reset_options: dict[str, Any] | None = None,
        token: str | None = None,
        timeout_s: float = 60.0,
        truncates: bool = True,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"Expected the render_mode None or one of {self.metadata['render_modes']}, got {render_mode!r}")
        self.render_mode = render_mode
        self._truncates = truncates
        address = url or shared_server(environment or DEFAULT_ENVIRONMENT, *server_options).url
        api = HttpApi(address, token=token, timeout_s=timeout_s)
        if url and environment:
            api.require_environment(environment)
        schema = api.get("schema")
        self._tasks = api.tasks()
        self._actions = ActionEncoding(fields_of(schema["action"]), action_space)
        fields = fields_of(schema["observation"], leave_texts=True)
        self._fields = tuple(field for field in fields if field.kind != "choice")
        self._observations = _observation_encoding(schema["observation"], self._fields, self._actions, observation_space)
        self._in_force: np.ndarray | None = None
        self._options = {**({} if task_id is None else {"task_id": task_id}), **(reset_options or {})}
        self._connection = Connection(address, token=token, timeout_s=timeout_s)

    @property
    def observation_names(self) -> list[str]:
        """Name of each number of an observation."""
        return self._observations.names

    @property
    def bins_in_force(self) -> np.ndarray:
        """Bins nearest to the action in force of each environment, shape ``(n, fields)``.

        Raises:
            ResetNeeded: before the first reset.
        """
        if self._in_force is None:
            raise ResetNeeded("There is no action in force yet; call reset first")
        return self._actions.bins(self._in_force)

    def _begin(self, observation: dict[str, Any], options: dict[str, Any], count: int) -> None:
        """Takes the default action of the task for the one in force, and holds the knobs that the task masks."""
        played = observation.get("task_id", options.get("task_id"))
        if played is None and self._tasks:
            played = self._tasks[0]["id"]
        task = next((each for each in self._tasks if str(each.get("id")) == str(played)), {})
        self._actions.hold(masked_values(task))
        given = task.get("default_action") or {}
        defaults = [_default(field, given) for field in self._actions.fields]
        self._default = np.array(defaults, dtype=np.float64)
        self._in_force = np.tile(self._default, (count, 1))

    def _seen(self, rows: np.ndarray, fresh: np.ndarray) -> np.ndarray:
        return self._observations.encode(rows, self._in_force, fresh)


def _default(field: Field, given: dict[str, Any]) -> float:
    value = given.get(field.name, field.default)
    return field.low if value is None else field.number(value)


def _observation_encoding(
    schema: dict[str, Any], fields: tuple[Field, ...], actions: ActionEncoding, kind: ObservationSpace
) -> FeatureEncoding | ObservationEncoding:
    if kind == "raw":
        return ObservationEncoding(fields)
    if kind not in ("features", "features_and_server"):
        raise ValueError(f"Expected the observation_space 'raw', 'features' or 'features_and_server', got {kind!r}")
    with_server = kind == "features_and_server"
    return FeatureEncoding(schema.get("features", []), fields, actions.fields, with_server=with_server)


class ServeGymEnv(ServedSpaces, gymnasium.Env[np.ndarray, Any]):
    """One episode after another over a WebSocket session.

    Episodes of ServeGym's own environments end by their time limit: they are truncated and never terminated, so that
    learners bootstrap from the last observation. ``info`` has what the server tells beside the observation. Knobs that the
    task masks stay at its default, whatever an action says.

    Args:
        environment: the one to play. Default ``llmserve``, or with a URL whichever the server has there.
        url: address of a running server. Without one, a server is started on this machine and shared by this process.
        task_id: the task of every reset. Default the server's first.
        action_space: ``box``, the default, ``bins`` or ``raw``, see :class:`ActionEncoding`.
        observation_space: ``raw`` numbers, the default; ``features``, from which ServeGym's own networks learn; or ``features_and_server``, for policies that run many servers.
        reset_options: further options of every reset, such as ``config`` or ``traffic``.
        token: sent as ``authorization: Bearer``.
        timeout_s: how long a reply may take, s. Default 60.
        truncates: whether an episode that is done has reached its time limit, as all of ServeGym's do, and has not ended.
            Default true.
        render_mode: ``ansi``, with which ``render`` gives the last observation as text, or none. The console at ``/web``
            shows episodes as pictures.

    Raises:
        WrongEnvironment: when the server has another environment than the given one at the URL.
        ServeGymError: when the server cannot be had, or refuses.
        ValueError: when the server has no scales, or no features, for such observations.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(self, environment: str | None = None, **options: Unpack[ServedOptions]) -> None:
        self._last: dict[str, Any] | None = None
        self._open(environment, **options)
        self.action_space = self._actions.space
        self.observation_space = self._observations.space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: of the traffic. Without one it is drawn from the training seeds, by the generator that the last given seed made.
            options: of this reset, over those of the environment: ``task_id``, and whatever the server takes.
        """
        super().reset(seed=seed)
        episode = int(self.np_random.integers(TRAINING_SEEDS)) if seed is None else seed
        chosen = {**self._options, **(options or {})}
        reply = self._connection.request("reset", {**chosen, "seed": episode})
        self._begin(reply["observation"], chosen, 1)
        return self._seen_in(reply, fresh=True), {"seed": episode, **_info(reply)}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Plays the next window."""
        rows = self._actions.rows(self._actions.batch(action))
        reply = self._connection.request("step", self._actions.action(rows[0]))
        self._in_force = rows
        done = bool(reply["done"])
        observation = self._seen_in(reply)
        reward = float(reply["reward"] or 0.0)
        return observation, reward, done and not self._truncates, done and self._truncates, _info(reply)

    def _seen_in(self, reply: dict[str, Any], *, fresh: bool = False) -> np.ndarray:
        self._last = reply["observation"]
        row = np.array([read_row(self._fields, self._last)])
        return self._seen(row, np.array([fresh]))[0]

    def render(self) -> str | None:  # type: ignore[override]
        """The last observation, a field a line. Raises ResetNeeded before the first reset."""
        if self.render_mode is None:
            return None
        if self._last is None:
            raise ResetNeeded("There is nothing to render yet; call reset first")
        return "\n".join(f"{name}: {value}" for name, value in self._last.items())

    def close(self) -> None:
        """Ends the session; a server that this process has started goes on until the process ends."""
        self._connection.close()


def _info(reply: dict[str, Any]) -> dict[str, Any]:
    return {**(reply.get("metadata") or {}), "observation": reply["observation"]}


class ServeGymVectorEnv(ServedSpaces, VectorEnv[np.ndarray, Any, np.ndarray]):
    """Environments of one server that are reset and stepped by one message, in binary frames of float32.

    It speaks ServeGym's vector extension, so that a step of all costs one round trip. When an episode has ended, the next
    step of its environment ignores the action and starts the next episode (``AutoresetMode.NEXT_STEP``). With the seed s
    and n environments, episode k of environment i has the seed s + k n + i.

    Args:
        num_envs: how many. Each takes a slot of the server's sessions.
        environment, url, task_id, action_space, observation_space, reset_options, token, timeout_s, truncates: as of :class:`ServeGymEnv`.

    Raises:
        WrongEnvironment, ServeGymError, ValueError: as of :class:`ServeGymEnv`, also when the server has too few sessions.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(
        self, num_envs: int = 1, environment: str | None = None, **options: Unpack[ServedOptions]
    ) -> None:
        self._open(environment, ("--max-sessions", str(max(1024, 2 * num_envs))), **options)
        self.num_envs = num_envs
        self.single_action_space = self._actions.space
        self.single_observation_space = self._observations.space
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self._action_columns: np.ndarray | None = None
        self._observation_columns = np.zeros(0, dtype=np.int64)
        self._ended = np.zeros(num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Starts an episode in all environments.

        Args:
            seed: of the first; environment i has ``seed + i``. Without one it is drawn from the training seeds.
            options: of these episodes and those that follow, over those of the environment.

        Raises:
            ValueError: when seeds are given one by one and do not follow each other.
        """
        super().reset(seed=None if isinstance(seed, list) else seed)
        base = int(self.np_random.integers(TRAINING_SEEDS)) if seed is None else _first_of(seed, self.num_envs)
        chosen = {**self._options, **(options or {})}
        data = self._connection.request(
            "vector_reset",
            {"count": self.num_envs, "seed": base, "format": "float32", "options": chosen},
        )
        self._begin(data["observations"][0], chosen, self.num_envs)
        self._ended[:] = False
        layout = data["layout"]
        self._action_columns = np.array([layout["action"].index(field.name) for field in self._actions.fields])
        self._observation_columns = np.array([layout["observation"].index(field.name) for field in self._fields])
        rows = np.array([read_row(self._fields, each) for each in data["observations"]])
        return self._seen(rows, ~self._ended), {"seed": np.arange(base, base + self.num_envs)}

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Plays the next window of each environment, or starts the next episode where one has ended.

        Raises:
            ResetNeeded: before the first reset.
            ValueError: when an action is outside its space.
        """
        if self._action_columns is None:
            raise ResetNeeded("There are no episodes yet; call reset first")
        rows = self._actions.rows(actions)
        ordered = np.empty_like(rows)
        ordered[:, self._action_columns] = rows
        numbers = self._connection.request_rows(ordered)
        count = self.num_envs
        table = numbers[2 * count :].reshape(count, -1)
        done = numbers[count : 2 * count] == 1
        never = np.zeros(count, dtype=np.bool_)
        terminated, truncated = (never, done) if self._truncates else (done, never)
        fresh = self._ended
        self._in_force = np.where(fresh[:, None], self._default, rows)
        self._ended = done
        observations = self._seen(table[:, self._observation_columns], fresh)
        return observations, numbers[:count].astype(np.float64), terminated, truncated, {}

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the session, and with it all environments."""
        self._connection.close()


def _first_of(seed: int | list[int | None], count: int) -> int:
    if isinstance(seed, int):
        return seed
    first = seed[0] if seed else None
    if first is None or seed != list(range(first, first + count)):
        raise ValueError(f"Expected a seed, or {count} that follow each other, got {seed}")
    return first
