"""Plays this environment with a language model and prints one line at each start, step and end.

    [START] task=<task> env=<environment> model=<model>
    [STEP] step=<n> action=<json> reward=<0.00> done=<true|false> error=<message|null>
    [END] success=<true|false> steps=<n> score=<0.000> rewards=<r1,r2,...>

The environment is at ENV_URL (default http://localhost:7860), or in a container of LOCAL_IMAGE_NAME, which needs the
package openenv and Docker. The model is
MODEL_NAME behind API_BASE_URL, with the key in HF_TOKEN (or API_KEY, or OPENAI_API_KEY). Further variables:

    TASK_NAME          play this task only; default: every task of the environment
    SEED               seed of the traffic; default 0
    MAX_STEPS          most steps of a task; default 200 (10 where a task has no end)
    MAX_CALLS          most questions to the model for each task; default 30. Between two questions the action stays
    TIME_BUDGET_S      after this many seconds the model is not asked any more; default 1020 of the 1200 allowed
    SUCCESS_SCORE      the least score of a success; default 0.2, what the default configuration scores

An answer that is no action leaves the last one in force, which the step's `error` tells. The messages of other programs
go to standard error: standard output holds these lines only.
"""

import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
from typing import Any

from openai import APIStatusError, OpenAI, OpenAIError

API_BASE_URL = os.environ.get("API_BASE_URL") or "https://router.huggingface.co/v1"
MODEL_NAME = os.environ.get("MODEL_NAME") or "Qwen/Qwen2.5-72B-Instruct"
API_KEY = os.environ.get("HF_TOKEN") or os.environ.get("API_KEY") or os.environ.get("OPENAI_API_KEY") or "none"
ENV_URL = os.environ.get("ENV_URL") or "http://localhost:7860"
IMAGE = os.environ.get("LOCAL_IMAGE_NAME") or os.environ.get("IMAGE_NAME")
SEED = int(os.environ.get("SEED") or 0)
MAX_STEPS = int(os.environ.get("MAX_STEPS") or 0)
MAX_CALLS = int(os.environ.get("MAX_CALLS") or 30)
TIME_BUDGET_S = float(os.environ.get("TIME_BUDGET_S") or 1020)
SUCCESS_SCORE = float(os.environ.get("SUCCESS_SCORE") or 0.2)

HISTORY = 4
EPISODE_STEPS = 200
ENDLESS_STEPS = 10
ANSWER_TIMEOUT_S = 45

Json = dict[str, Any]


def one_line(text: object) -> str:
    return re.sub(r"\s+", " ", str(text)).strip()[:300]


def log_start(task: object, env: str) -> None:
    print(f"[START] task={task} env={env} model={MODEL_NAME}", flush=True)


def log_step(step: int, action: Json, reward: float, done: bool, error: str | None) -> None:
    text = json.dumps(action, separators=(",", ":"))
    print(
        f"[STEP] step={step} action={text} reward={reward:.2f} done={str(done).lower()} "
        f"error={one_line(error) if error else 'null'}",
        flush=True,
    )


def log_end(success: bool, rewards: list[float], score: float) -> None:
    listed = ",".join(f"{reward:.2f}" for reward in rewards)
    print(
        f"[END] success={str(success).lower()} steps={len(rewards)} score={score:.3f} rewards={listed}",
        flush=True,
    )


class Refusal(Exception):
    """What the environment's server said to a request that it did not accept."""


def exchange(url: str, body: Json | None = None) -> Any:
    """The JSON that the environment's server answers."""
    request = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise Refusal(f"{error.code} {error.read().decode(errors='replace')}") from None


class Environment:
    """A session of the environment's server over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.session: str | None = None

    def get(self, path: str) -> Any:
        return exchange(f"{self.url}/{path}")

    def reset(self, **options: Any) -> Json:
        result = exchange(f"{self.url}/reset", options)
        self.session = result["session_id"]
        return result

    def step(self, action: Json) -> Json:
        return exchange(f"{self.url}/step", {"action": action, "session_id": self.session})

    def grade(self) -> float:
        """The environment's grade, strictly between 0 and 1 also when it is printed with three decimals."""
        score = float(exchange(f"{self.url}/grader", {"session_id": self.session})["score"])
        return min(0.999, max(0.001, score))


def object_in(text: str) -> Any:
    """The last JSON object in an answer; `None` when there is none."""
    found = None
    start = text.find("{")
    while start >= 0:
        try:
            found, end = json.JSONDecoder().raw_decode(text, start)
            start = text.find("{", end)
        except ValueError:
            start = text.find("{", start + 1)
    return found if isinstance(found, dict) else None


class Model:
    """Asks the model for an action, by JSON schema where its server knows that, else by words alone."""

    def __init__(self, schema: Json) -> None:
        self.client = OpenAI(base_url=API_BASE_URL, api_key=API_KEY, timeout=ANSWER_TIMEOUT_S, max_retries=1)
        strict = {**schema, "required": list(schema.get("properties", {})), "additionalProperties": False}
        named = {"name": "action", "schema": strict, "strict": True}
        self.format: Json | None = {"type": "json_schema", "json_schema": named}

    def ask(self, system: str, user: str) -> Any:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        while True:
            fields = {"response_format": self.format} if self.format else {}
            try:
                answer = self.client.chat.completions.create(model=MODEL_NAME, messages=messages, **fields)  # type: ignore[call-overload]
                return object_in(answer.choices[0].message.content or "")
            except APIStatusError as error:
                if self.format is None or error.status_code in (401, 403, 429):
                    raise
                self.format = None


def describe(fields: Json) -> str:
    lines = []
    for name, field in fields.items():
        values = field.get("enum")
        low, high = field.get("minimum"), field.get("maximum")
        span = f"one of {values}" if values else field.get("type", "value")
        if low is not None and high is not None and abs(high) < 2**53 - 1:
            span = f"{span}, {low} to {high}"
        lines.append(f"- {name} ({span}): {field.get('description', '')}")
    return "\n".join(lines)


def compact(value: Any) -> str:
    def rounded(each: Any) -> Any:
        if isinstance(each, float):
            return float(f"{each:.4g}")
        if isinstance(each, dict):
            return {key: rounded(item) for key, item in each.items() if key != "metadata"}
        return [rounded(item) for item in each] if isinstance(each, list) else each

    return json.dumps(rounded(value), separators=(",", ":"))


def default_action(task: Json, schema: Json) -> Json:
    """What is in force before the first answer: the task's default, else the schema's, else its lower bounds."""
    if isinstance(task.get("default_action"), dict):
        return task["default_action"]

    def least(field: Json) -> Any:
        if "default" in field:
            return field["default"]
        if field.get("enum"):
            return field["enum"][0]
        kinds = {"boolean": False, "integer": field.get("minimum", 0), "number": field.get("minimum", 0.0)}
        return kinds.get(field.get("type", ""), "")

    return {name: least(field) for name, field in schema.get("properties", {}).items()}


def without_metadata(schema: Json) -> Json:
    """A schema without the field that every OpenEnv schema has and no agent needs."""
    properties = {name: field for name, field in schema.get("properties", {}).items() if name != "metadata"}
    return {**schema, "properties": properties}


class Player:
    """Plays the tasks of one environment."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.name = env.get("metadata").get("name", "environment")
        schemas = env.get("schema")
        self.action_schema = without_metadata(schemas["action"])
        self.observation_fields: Json = without_metadata(schemas["observation"]).get("properties", {})
        tasks = env.get("tasks")
        self.tasks: list[Json] = tasks.get("tasks", []) if isinstance(tasks, dict) else tasks
        self.model = Model(self.action_schema)
        self.deadline = time.monotonic() + TIME_BUDGET_S

    def play(self, task: Json | None) -> None:
        label = task["id"] if task else self.name
        rewards: list[float] = []
        actions: list[Json] = []
        score, is_over = 0.0, False
        log_start(label, self.name)
        try:
            is_over = self.play_steps(task or {}, rewards, actions)
            score = self.env.grade() if task else mean(rewards)
        except Exception as error:  # the lines have to end whatever happens
            print(f"{label}: {type(error).__name__}: {error}", file=sys.stderr)
        log_end((is_over or not task) and score >= SUCCESS_SCORE, rewards, score)

    def play_steps(self, task: Json, rewards: list[float], actions: list[Json]) -> bool:
        """Fills `rewards` and `actions`. Answers whether the episode came to its end."""
        options = {"task_id": task["id"]} if task else {}
        result = self.env.reset(seed=SEED, **options)
        most = MAX_STEPS or (EPISODE_STEPS if task else ENDLESS_STEPS)
        planned = task.get("windows") or task.get("episode_length") or most
        every = max(1, -(-min(most, planned) // MAX_CALLS))
        action = default_action(task, self.action_schema)
        system = self.system_prompt(task)
        history: list[str] = []
        while not result["done"] and len(rewards) < most:
            error = None
            observation = result["observation"]
            if len(rewards) % every == 0 and time.monotonic() < self.deadline:
                action, error = self.choose(system, history, observation, action)
            try:
                result = self.env.step(action)
            except Refusal as refusal:
                if not actions or actions[-1] == action:
                    log_step(len(rewards) + 1, action, 0.0, False, str(refusal))
                    raise
                error = f"{one_line(refusal)[:200]}; last action kept"
                action = actions[-1]
                result = self.env.step(action)
            reward = float(result["reward"] or 0.0)
            rewards.append(reward)
            actions.append(action)
            history.append(f"observed {compact(observation)}, set {compact(action)}, which earned {reward:.3f}")
            log_step(len(rewards), action, reward, bool(result["done"]), error)
        return bool(result["done"])

    def choose(self, system: str, history: list[str], observation: Json, action: Json) -> tuple[Json, str | None]:
        """The model's action, or the one in force and why it stays."""
        user = "\n".join(
            [*history[-HISTORY:], f"Now: observed {compact(observation)}. In force: {compact(action)}. Set the action."]
        )
        try:
            answer = self.model.ask(system, user)
        except OpenAIError as error:
            return action, f"no answer: {type(error).__name__}; last action kept"
        wanted = set(self.action_schema.get("properties", {}))
        if answer is None or not wanted <= set(answer):
            return action, "invalid answer; last action kept"
        return answer, None

    def system_prompt(self, task: Json) -> str:
        parts = [
            "You control an environment step by step. Your goal is the largest sum of rewards.",
            f"Task: {json.dumps(task)}" if task else "",
            f"Observation:\n{describe(self.observation_fields)}",
            f"Action, all fields required:\n{describe(self.action_schema.get('properties', {}))}",
            "Answer with the action as one JSON object and nothing else.",
        ]
        return "\n\n".join(part for part in parts if part)


def mean(rewards: list[float]) -> float:
    """The score where the environment has no grader."""
    return sum(rewards) / len(rewards) if rewards else 0.0


def main() -> None:
    provider: Any = None
    try:
        url = ENV_URL
        if IMAGE:
            from openenv.core.containers.runtime import LocalDockerProvider

            provider = LocalDockerProvider()
            url = provider.start_container(IMAGE)
            provider.wait_for_ready(url)
        player = Player(Environment(url))
        wanted = os.environ.get("TASK_NAME")
        tasks = [task for task in player.tasks if not wanted or str(task["id"]) == wanted]
        if wanted and not tasks:
            raise ValueError(f"expected TASK_NAME to be one of {[task['id'] for task in player.tasks]}, got {wanted}")
        for task in tasks or [None]:
            player.play(task)
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        log_start(os.environ.get("TASK_NAME") or "all", "unknown")
        log_end(False, [], 0.0)
        raise SystemExit(1) from None
    finally:
        if provider is not None:
            provider.stop_container()


if __name__ == "__main__":
    main()
