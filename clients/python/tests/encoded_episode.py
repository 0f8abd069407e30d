"""Prints what learners in Python are shown of episodes: an array of features for the reset and for each action.

Reads a list of {"environment", "task_id", "seed", "actions": rows of bins} from the standard input.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import numpy as np  # noqa: E402

from servegym import ServeGymEnv, ServeGymVectorEnv  # noqa: E402



def shown(episode: dict) -> dict:
    options = {"task_id": episode["task_id"], "action_space": "bins", "observation_space": "features_and_server"}
    single = ServeGymEnv(episode["environment"], **options)
    vector = ServeGymVectorEnv(2, episode["environment"], **options)
    result = {
        "names": single.observation_names,
        "single": [single.reset(seed=episode["seed"])[0].tolist()],
        "vector": [vector.reset(seed=episode["seed"])[0][0].tolist()],
    }
    for action in episode["actions"]:
        result["single"].append(single.step(np.array(action))[0].tolist())
        result["vector"].append(vector.step(np.array([action, action]))[0][0].tolist())
    single.close()
    vector.close()
    return result


print(json.dumps([shown(episode) for episode in json.load(sys.stdin)]))
