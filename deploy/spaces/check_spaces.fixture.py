"""Checks built Spaces with OpenEnv's own program and client. Prints a JSON object.

python check_spaces.py FOLDER STAGED SPACE=URL ...

FOLDER holds the built Spaces. What `openenv push` would upload of each goes to STAGED.
"""

import importlib
import json
import re
import sys
import urllib.request
from contextlib import redirect_stdout
from pathlib import Path

import yaml
from openenv.cli.__main__ import app
from openenv.cli._cli_utils import validate_env_structure
from openenv.cli.commands.push import _load_ignore_patterns, _prepare_staging_directory
from typer.testing import CliRunner

FOLDER, STAGED = (Path(argument) for argument in sys.argv[1:3])


def front_matter(text: str) -> dict[str, str]:
    head = text.split("---\n")[1]
    return dict(re.findall(r"^(\w+): (.+)$", head, re.MULTILINE))


def openenv_validate(space: str) -> dict:
    """The report of ``openenv validate`` on the folder, without building its image. In this process: it takes seconds to import."""
    options = ["--level", "static", "--skip-build", "--json"]
    return json.loads(CliRunner().invoke(app, ["validate", str(FOLDER / space), *options]).stdout)


def stage(space: str) -> None:
    """Leaves in STAGED what `openenv push` uploads."""
    patterns = _load_ignore_patterns(FOLDER / space, None)
    with redirect_stdout(sys.stderr):
        _prepare_staging_directory(FOLDER / space, space, STAGED / space, patterns)


def check(space: str, url: str) -> dict:
    stage(space)
    package = importlib.import_module(space)
    models = importlib.import_module(f"{space}.models")
    with urllib.request.urlopen(f"{url}/schema") as answer:
        published = json.load(answer)
    names = {
        part: next(each for each in vars(models).values() if getattr(each, "__name__", "") == published[part]["title"])
        for part in ("action", "observation", "state")
    }
    own = {part: model.model_json_schema()["properties"] for part, model in names.items()}
    probe = json.loads((FOLDER / space / "validation" / "runtime.json").read_text())
    action = names["action"](**probe["actions"][0])
    with getattr(package, package.__all__[0])(base_url=url).sync() as env:
        first = env.reset(seed=probe["reset"]["seed"], **probe["reset"]["options"])
        result = env.step(action)
        state = env.state()
    report = openenv_validate(space)
    readme = front_matter((FOLDER / space / "README.md").read_text())
    return {
        "manifest": yaml.safe_load((FOLDER / space / "openenv.yaml").read_text()),
        "warnings": validate_env_structure(FOLDER / space),
        "verdict": report.get("verdict") or report.get("passed"),
        "report": report,
        "sdk": readme["sdk"],
        "app_port": int(readme["app_port"]),
        "differences": {
            part: sorted(set(own[part]) ^ set(published[part]["properties"])) for part in ("action", "observation")
        },
        "unpublished_state": sorted(set(own["state"]) - set(published["state"]["properties"])),
        "first_reward": first.reward,
        "reward": result.reward,
        "step_count": state.step_count,
    }


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER))
    pairs = [argument.split("=", 1) for argument in sys.argv[3:]]
    print(json.dumps({space: check(space, url) for space, url in pairs}))
