"""Starts the environment server, which is a program of Node."""

import os
import shutil
import sys
from pathlib import Path

PORT = "7860"


def main() -> None:
    """Becomes ``servegym serve``: that of the source beside this folder, or the one on the path."""
    os.environ.setdefault("SERVEGYM_ENV", "llmserve")
    os.environ.setdefault("PORT", PORT)
    source = Path(__file__).resolve().parent.parent / "servegym"
    program = source / "packages" / "servegym" / "src" / "main.ts"
    node = shutil.which("node")
    servegym = shutil.which("servegym")
    if program.exists() and node:
        os.execv(node, [node, str(program), "serve", *sys.argv[1:]])
    if servegym:
        os.execv(servegym, [servegym, "serve", *sys.argv[1:]])
    sys.exit("Expected `node` and the source in `servegym/`, or a program `servegym` on the PATH; neither is here.")


if __name__ == "__main__":
    main()
