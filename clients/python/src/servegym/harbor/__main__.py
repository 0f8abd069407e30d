"""``python -m servegym.harbor FOLDER``: writes the Harbor tasks."""

import argparse
from pathlib import Path

from .write import TASKS, write_tasks


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m servegym.harbor", description="Write ServeGym's Harbor tasks.")
    parser.add_argument("folder", type=Path, help="where the tasks are written, each into a folder of its name")
    parser.add_argument("names", nargs="*", help=f"tasks (default: all: {', '.join(TASKS)})")
    parser.add_argument("--wheel", type=Path, help="wheel that the images install (default: this version from PyPI)")
    parser.add_argument("--requests", type=int, default=20_000, help="of each hidden trace of a policy (default: 20000)")
    parser.add_argument("--secret", help="64 hexadecimal digits that hidden traffic is drawn from (default: new ones for each task)")
    given = parser.parse_args()
    unknown = set(given.names) - set(TASKS)
    if unknown:
        parser.error(f"expected names of {', '.join(TASKS)}, got {', '.join(sorted(unknown))}")
    names = given.names or TASKS
    write_tasks(given.folder, names, wheel=given.wheel, requests=given.requests, secret=given.secret)
    print(f"Wrote {len(names)} tasks. Next: harbor run -p {given.folder} -a oracle")


if __name__ == "__main__":
    main()
