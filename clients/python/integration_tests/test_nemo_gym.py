"""NeMo Gym from PyPI serves the sessions; the calls are those that its agents make for a model."""

import json
import subprocess
import sys
from unittest.mock import MagicMock

from fastapi.testclient import TestClient
from nemo_gym.base_resources_server import BaseResourcesServerConfig
from nemo_gym.openai_utils import NeMoGymResponseCreateParamsNonStreaming
from nemo_gym.server_utils import ServerClient

from servegym.nemo_gym_server import ServeGymResourcesServer, rows

SETTINGS = {
    **{"batch_cap": 64, "kv_budget_fraction": 0.5, "speculation_depth": 0, "quantization_tier": "FP16"},
    **{"prefill_decode_split": False, "priority_routing": False},
}
RESPONSE = {
    **{"id": "r", "created_at": 0.0, "model": "stand-in", "object": "response", "output": [], "parallel_tool_calls": False},
    **{"tool_choice": "auto", "tools": []},
}


def client() -> TestClient:
    config = BaseResourcesServerConfig(host="127.0.0.1", port=8080, entrypoint="", name="servegym")
    return TestClient(ServeGymResourcesServer(config=config, server_client=MagicMock(spec=ServerClient)).setup_webserver())


def test_a_session_is_seeded_operated_and_rewarded_by_its_grade() -> None:
    server, [row] = client(), rows(seeds=range(1))
    NeMoGymResponseCreateParamsNonStreaming.model_validate(row["responses_create_params"])
    assert server.post("/configure", json=SETTINGS).status_code == 409
    assert "two GPUs" in server.post("/seed_session", json=row).json()["told"]
    for _ in range(3):
        assert "Mean reward of 20 windows" in server.post("/configure", json={**SETTINGS, "windows": 20}).json()
    assert server.post("/configure", json={"batch_cap": "many"}).status_code == 422
    assert "The episode is done." in server.post("/observe", json={}).json()
    verified = server.post("/verify", json={**row, "response": RESPONSE})
    assert verified.status_code == 200, verified.text
    assert 0.1 < verified.json()["reward"] < 1


def test_the_dataset_has_an_episode_in_each_row(tmp_path) -> None:
    file = tmp_path / "rows.jsonl"
    subprocess.run([sys.executable, "-m", "servegym.nemo_gym_server", str(file)], check=True)
    found = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["seed"] for row in found] == list(range(100))
    NeMoGymResponseCreateParamsNonStreaming.model_validate(found[0]["responses_create_params"])


def test_sessions_of_two_rollouts_are_apart() -> None:
    one, other = client(), client()
    for each, seed in ((one, 0), (other, 1)):
        each.post("/seed_session", json={"seed": seed})
    one.post("/configure", json=SETTINGS)
    assert '"step_index": 0' in other.post("/observe", json={}).json() and '"step_index": 0' not in one.post("/observe", json={}).json()
