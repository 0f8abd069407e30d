"""Drives a server with the clients of the `openenv` package.

Reads requests from standard input, a JSON object a line: `{"do": NAME, "with": ARGUMENTS}`. Answers each with a line,
`{"result": ...}` or `{"error": TRACEBACK}`. One process serves all tests because the package takes seconds to import.
"""

import asyncio
import json
import sys
import traceback

from openenv.core import GenericEnvClient


def play_episode(url, options, action):
    """Plays one whole episode with the synchronous client."""
    with GenericEnvClient(base_url=url) as env:
        result = env.reset(**options)
        first = {"observation": result.observation, "reward": result.reward, "done": result.done}
        rewards = []
        while not result.done:
            result = env.step(action)
            rewards.append(result.reward)
        return {"first": first, "rewards": rewards, "last": result.observation, "state": env.state()}


def play_sessions(url, task_id, seeds, action):
    """Plays an episode for each seed with the asynchronous client, all at once, a step in each in turn."""

    async def play():
        clients = [GenericEnvClient(base_url=url) for _ in seeds]
        await asyncio.gather(*(client.connect() for client in clients))
        results = await asyncio.gather(
            *(client.reset(task_id=task_id, seed=seed) for client, seed in zip(clients, seeds))
        )
        rewards = [[] for _ in seeds]
        while not all(result.done for result in results):
            results = await asyncio.gather(*(client.step(action) for client in clients))
            for own, result in zip(rewards, results):
                own.append(result.reward)
        states = await asyncio.gather(*(client.state() for client in clients))
        await asyncio.gather(*(client.close() for client in clients))
        return [{"rewards": own, "state": state} for own, state in zip(rewards, states)]

    return asyncio.run(play())


def recover_from(url, bad_action, good_action):
    """Sends an action that the environment cannot take, then a good one."""
    with GenericEnvClient(base_url=url) as env:
        env.reset()
        try:
            env.step(bad_action)
            error = None
        except RuntimeError as raised:
            error = str(raised)
        return {"error": error, "reward": env.step(good_action).reward}


DEEDS = {deed.__name__: deed for deed in (play_episode, play_sessions, recover_from)}

for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = {"result": DEEDS[request["do"]](**request["with"])}
    except Exception:
        answer = {"error": traceback.format_exc()}
    print(json.dumps(answer), flush=True)
