"""What README and Makefile tell is what the program has."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from indexer.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
TOLD = README + (ROOT / "Makefile").read_text()


def test_every_command_told_of_exists() -> None:
    told = set(re.findall(r"^(?:\| `)?(?:.*/)?longmatch ([a-z]+) ", TOLD, re.MULTILINE))
    assert told <= set(main.commands)


def test_every_command_is_in_the_table() -> None:
    assert set(re.findall(r"^\| `longmatch ([a-z]+)", README, re.MULTILINE)) == set(main.commands)


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_has_help_and_an_example(name: str) -> None:
    text = main.commands[name].get_help(click.Context(main.commands[name], info_name=name))
    assert "Example:" in text and f"longmatch {name}" in text


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_option_told_of_exists(name: str) -> None:
    options = {option for parameter in main.commands[name].params for option in parameter.opts}
    for line in re.findall(rf"longmatch {name} .*", TOLD):
        assert set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line.split("#")[0])) <= options | {"-m"}


def test_the_python_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "papers").mkdir()
    for name in ("eip-2718.md", "eip-3607.md"):
        (tmp_path / "papers" / name).write_text((ROOT / "demo/corpus/eips" / name).read_text())
    (tmp_path / "draft.md").write_text((ROOT / "demo/corpus/eips/eip-2930.md").read_text())
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    assert "Typed Transaction Envelope" in capsys.readouterr().out
