"""Plays this environment with a language model and prints one line at each start, step and end.

    [START] task=<task> env=<environment> model=<model>
    [STEP] step=<n> action=<json> reward=<0.00> done=<true|false> error=<message|null>
    [END] success=<true|false> steps=<n> score=<0.000> rewards=<r1,r2,...>

Becomes ``servegym evaluate llm --seed 0 --lines``, by Node and the source beside this file, by the program `servegym` on the PATH, or
by Docker in a container of LOCAL_IMAGE_NAME, which then holds the environment as well. The environment is otherwise at
ENV_URL (default http://localhost:{{port}}). The model is MODEL_NAME behind API_BASE_URL, with the key in HF_TOKEN (or
API_KEY, or OPENAI_API_KEY). Further variables:

    TASK_NAME          play this task only; default: every task of the environment
    SEED               seed of the traffic; default 0
    MAX_STEPS          most steps of a task; default: the episode, or 10 steps where it has no end
    MAX_CALLS          most steps of a task that the model is asked for; default 30. Between two the action stays
    ANSWER_TIMEOUT_S   longest wait for an answer; default 45
    TIME_BUDGET_S      after this many seconds the model is not asked any more; default 1020 of the 1200 allowed
    SUCCESS_SCORE      an episode with a higher score is a success; default 0.2, the score of the default configuration

An answer that is no valid action goes back to the model once; when no valid action comes of that, the last one stays
in force, which the step's `error` tells. The program fails when no answer at all was a valid action.
"""

import os
import shutil
import sys

from server.app import become

#: Options by the variables that set them, with defaults.
OPTIONS = {
    "TASK_NAME": ("--task", None),
    "SEED": ("--seed", "0"),
    "MAX_STEPS": ("--max-steps", None),
    "SUCCESS_SCORE": ("--lines", "0.2"),
}
LLM_OPTIONS = {
    "MAX_CALLS": ("max-calls", "30"),
    "ANSWER_TIMEOUT_S": ("answer-timeout", "45"),
    "TIME_BUDGET_S": ("time-budget", "1020"),
}


def variable(*names: str) -> str | None:
    """The first of the variables that is set and not empty."""
    return next((value for name in names if (value := os.environ.get(name))), None)


def main() -> None:
    os.environ["OPENAI_API_KEY"] = variable("HF_TOKEN", "API_KEY", "OPENAI_API_KEY") or "none"
    os.environ["OPENAI_BASE_URL"] = variable("API_BASE_URL") or "https://router.huggingface.co/v1"
    model = variable("MODEL_NAME") or "Qwen/Qwen2.5-72B-Instruct"
    arguments = ["evaluate", f"llm:{model}", "--env", "{{name}}"]
    for name, (option, default) in OPTIONS.items():
        value = variable(name) or default
        if value is not None:
            arguments += [option, value]
    asked = (f"{option}={variable(name) or default}" for name, (option, default) in LLM_OPTIONS.items())
    arguments += ["--llm", ",".join(asked)]
    image = variable("LOCAL_IMAGE_NAME", "IMAGE_NAME")
    if image is None:
        url = variable("ENV_URL") or "http://localhost:{{port}}"
        become(*arguments, "--url", url)
    docker = shutil.which("docker")
    if docker is None:
        sys.exit("Expected a program `docker` on the PATH to start LOCAL_IMAGE_NAME.")
    # The model may be on this machine.
    container = [docker, "run", "--rm", "--network", "host", "--env", "OPENAI_API_KEY", "--env", "OPENAI_BASE_URL", image]
    os.execv(docker, [*container, "node", "packages/servegym/src/main.ts", *arguments])


if __name__ == "__main__":
    main()
