"""Prints the reference of a Python package as Markdown: the names of `__all__` with signatures and docstrings.

Reads the sources and imports nothing, so that it needs no package.
"""

import ast
import re
import sys
from pathlib import Path

#: Modules whose names are not in `__all__`: they need a library that not everybody has.
EXTRA_MODULES = ("evolve", "stable_baselines3", "trl")


def text_of(docstring: str | None) -> str:
    """A docstring as Markdown: roles and literals of reStructuredText become code spans."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", docstring or "")
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def signature(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    decorators = "".join(f"@{ast.unparse(each)}\n" for each in function.decorator_list)
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"{decorators}def {function.name}({ast.unparse(function.args)}){returns}"


def is_public(name: str) -> bool:
    return not name.startswith("_") or name == "__init__"


def describe(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [f"### {node.name}", fenced(signature(node)), text_of(ast.get_docstring(node))]
    if not isinstance(node, ast.ClassDef):
        return []
    bases = ", ".join(ast.unparse(each) for each in node.bases)
    fields = [ast.unparse(each) for each in node.body if isinstance(each, ast.AnnAssign)]
    head = f"class {node.name}({bases})" if bases else f"class {node.name}"
    declaration = "\n    ".join([f"{head}:" if fields else head, *fields])
    parts = [f"### {node.name}", fenced(declaration), text_of(ast.get_docstring(node))]
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and is_public(method.name):
            parts += [fenced(signature(method)), text_of(ast.get_docstring(method))]
    return parts


def fenced(text: str) -> str:
    return f"```python\n{text}\n```"


def names_of(module: ast.Module) -> dict[str, ast.AST]:
    return {node.name: node for node in module.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def page(package: Path) -> str:
    index = ast.parse((package / "__init__.py").read_text("utf8"))
    sources = {
        alias.name: node.module
        for node in index.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    [listed] = [
        ast.literal_eval(node.value)
        for node in index.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    parts = ["# Python: servegym", text_of(ast.get_docstring(index)), "## servegym"]
    for name in sorted(listed, key=str.lower):
        module = package / f"{sources.get(name, '__init__')}.py"
        parts += describe(names_of(ast.parse(module.read_text("utf8")))[name])
    for module in EXTRA_MODULES:
        tree = ast.parse((package / f"{module}.py").read_text("utf8"))
        parts += [f"## servegym.{module}", text_of(ast.get_docstring(tree))]
        for name, node in names_of(tree).items():
            if is_public(name):
                parts += describe(node)
    return "\n\n".join(part for part in parts if part) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(Path(sys.argv[1])))
