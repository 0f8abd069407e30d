"""``python -m servegym.harbor.blind``: takes the solutions out of an installed package, for the container of an agent.

Afterwards the package has no best known policies and no Harbor tasks. The scores of ``servegym policy evaluate`` are then gains over the
default, in units of 0.1 % of the price of all requests.
"""

import json
import shutil
from pathlib import Path

from .write import policies

if __name__ == "__main__":
    folder = policies()
    if "_server" not in folder.parts:
        raise SystemExit(f"error: expected the server that an installed package carries, got {folder}: a checkout stays as it is")
    suites = folder / "suites.json"
    data = json.loads(suites.read_text())
    for suite in data["suites"].values():
        suite["references"]["best"] = suite["references"]["default"]
    suites.write_text(json.dumps(data))
    (folder / "anchors.json").write_text("{}")
    shutil.rmtree(folder / "examples")
    shutil.rmtree(Path(__file__).parent)
