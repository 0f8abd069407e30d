"""The package as it lies in the checkout, and one server a kind for all tests."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from servegym.local_server import shared_server  # noqa: E402

#: A task of llmserve whose precision and split are masked.
MASKED_TASK = Path(__file__).resolve().parents[3] / "packages/environments/examples/fixed-arrangement.ts"


@pytest.fixture(scope="session")
def llmserve_url() -> str:
    return shared_server("llmserve").url


@pytest.fixture(scope="session")
def masked_task_url() -> str:
    return shared_server("llmserve", "--task", str(MASKED_TASK)).url


@pytest.fixture(scope="session")
def fleet_url() -> str:
    return shared_server("fleet").url


@pytest.fixture(scope="session")
def inferencegym_url() -> str:
    return shared_server("inferencegym").url
