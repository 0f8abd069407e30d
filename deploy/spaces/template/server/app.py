"""Starts the environment server, which is a program of Node."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn


def become(*arguments: str) -> NoReturn:
    """Replaces this process by ``servegym``: the installed source beside this folder, or the program on the path."""
    source = Path(__file__).resolve().parent.parent / "servegym"
    program = source / "packages" / "servegym" / "src" / "main.ts"
    node = shutil.which("node")
    servegym = shutil.which("servegym")
    if (source / "node_modules").exists() and node:
        os.execv(node, [node, str(program), *arguments])
    if servegym:
        os.execv(servegym, [servegym, *arguments])
    sys.exit(
        "Expected a program `servegym` on the PATH, or Node 22.18 and the source in `servegym/` with its packages. "
        "Run `npm ci --omit=dev` in `servegym/`."
    )


def main() -> None:
    """Becomes ``servegym serve``."""
    os.environ.setdefault("SERVEGYM_ENV", "{{name}}")
    os.environ.setdefault("PORT", "{{port}}")
    become("serve", *sys.argv[1:])


if __name__ == "__main__":
    main()
