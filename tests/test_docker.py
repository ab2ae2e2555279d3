"""What can be checked of the container files without Docker: names, versions, commands, and hadolint."""

import configparser
import fnmatch
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from engine import __version__
from indexer.cli import main

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
TARGETS = ("cpu", "gpu")


def steps(instruction: str) -> list[str]:
    """The arguments of an instruction wherever it stands, continued lines joined."""
    joined = DOCKERFILE.replace("\\\n", " ")
    return re.findall(rf"^{instruction} (.*)$", joined, re.MULTILINE)


@pytest.fixture(scope="module")
def project() -> configparser.ConfigParser:
    found = configparser.ConfigParser()
    found.read(ROOT / "setup.cfg")
    return found


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    return found


def copied() -> set[str]:
    """Files and folders of the project that the image is built from."""
    return {name for step in steps("COPY") if not step.startswith("--from") for name in step.split()[:-1]}


def is_ignored(name: str) -> bool:
    """Whether .dockerignore keeps a file or folder at the top out: the last line that fits decides."""
    lines = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    fitting = [line for line in lines if fnmatch.fnmatch(name, line.removeprefix("!"))]
    return bool(fitting) and not fitting[-1].startswith("!")


def test_every_copied_name_exists_and_holds_the_packages(project: configparser.ConfigParser) -> None:
    assert len(copied()) == 8
    assert [name for name in copied() if not (ROOT / name).exists() or is_ignored(name)] == []
    assert all(map(is_ignored, (".git", ".venv", "tests", "benchmarks", "demo", "papers.lm", "docs", "Makefile")))
    packages = project["options"]["packages"].split()
    assert {name.partition(".")[0] for name in packages} <= copied()
    needed = {project["metadata"]["long_description"].removeprefix("file: "), project["metadata"]["license_files"]}
    assert needed <= copied()


def test_versions_are_those_of_the_project_and_python_one_that_it_supports(
    project: configparser.ConfigParser, services: dict[str, dict[str, Any]]
) -> None:
    assert f'image.version="{__version__}"' in DOCKERFILE
    assert f"docker build -t longmatch:{__version__} ." in DOCKERFILE
    assert services["longmatch"]["image"] == f"longmatch:{__version__}"
    assert services["longmatch-gpu"]["image"] == f"longmatch:{__version__}-gpu"
    assert f'image.licenses="{project["metadata"]["license"]}"' in DOCKERFILE
    (python,) = re.findall(r"^ARG PYTHON=(.*)$", DOCKERFILE, re.MULTILINE)
    assert f"Programming Language :: Python :: {python}" in project["metadata"]["classifiers"]


@pytest.mark.parametrize("target", TARGETS)
def test_extras_exist_and_faiss_is_that_of_the_target(project: configparser.ConfigParser, target: str) -> None:
    (extras,) = [match for match in re.findall(r"'\.\[(.*)\]'", DOCKERFILE) if target in match.split(",")]
    assert set(extras.split(",")) <= set(project["options.extras_require"])
    assert len(set(extras.split(",")) & {"cpu", "gpu"}) == 1


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_is_copied_from_its_builder(target: str) -> None:
    stage = DOCKERFILE.partition(f"FROM runtime AS {target}\n")[2].partition("\nFROM ")[0]
    assert f"COPY --from=builder-{target} /opt/longmatch /opt/longmatch" in stage
    assert f"FROM builder AS builder-{target}\n" in DOCKERFILE


def test_the_last_stage_runs_the_command_without_root(project: configparser.ConfigParser) -> None:
    assert steps("ENTRYPOINT") == ['["longmatch"]']
    assert "longmatch = longmatch.__main__:main" in project["options.entry_points"]["console_scripts"]
    assert steps("USER") == ["1000"]
    assert steps("FROM")[-1] == "runtime AS cpu"


def test_services_run_commands_that_parse(services: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda *_: ROOT)
    monkeypatch.setattr("indexer.cli.options.holds_index", lambda _: True)
    port = steps("EXPOSE")[0]
    for name, service in services.items():
        command, *arguments = service["command"]
        context = main.commands[command].make_context(command, list(arguments))
        assert str(context.params["port"]) == port and context.params["host"] == "0.0.0.0"
        assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
        assert service["build"]["target"] == ("gpu" if name.endswith("gpu") else "cpu")
        assert any(f"127.0.0.1:{port}/ready" in word for word in service["healthcheck"]["test"])
        # Addresses that other machines reach need a token, see indexer/serving/settings.py.
        assert service["environment"]["LONGMATCH_TOKEN"].startswith("${LONGMATCH_TOKEN:?")


def test_commands_of_the_page_parse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(click.Path, "convert", lambda *_: ROOT)
    monkeypatch.setattr("indexer.cli.options.holds_index", lambda _: True)
    page = (ROOT / "docs/how-to/docker.md").read_text()
    for line in re.findall(r"docker build .*", DOCKERFILE + page):
        words = shlex.split(line)
        assert "--target" not in words or words[words.index("--target") + 1] in TARGETS
    found = re.findall(rf"longmatch:{re.escape(__version__)}(?:-gpu)? (\w.*)$", page, re.MULTILINE)
    assert [line.split()[0] for line in found] == ["index", "query", "mcp"]
    for line in found:
        command, *arguments = shlex.split(line)
        main.commands[command].make_context(command, arguments)


def hadolint() -> str | None:
    return shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")


@pytest.mark.skipif(hadolint() is None, reason="hadolint is not installed")
def test_hadolint_finds_nothing() -> None:
    program = hadolint()
    assert program is not None
    run = subprocess.run([program, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")
