"""No name, title or text of a document reaches a terminal, a log or a file as anything but text."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from tests.commands import run, succeed

CLI = Path(__file__).parents[2] / "indexer" / "cli"
NAME = "fox\nError: forged\x1b]0;title\x07.md"
TEXT = "# A fox\x1b[31m\ufffe in\u202e red\n\nThe quick fox\x9b runs over the hill\x07 and the old house.\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "papers").mkdir()
    (folder / "papers" / NAME).write_text(TEXT)
    (folder / "papers" / "plain.md").write_text("# Plain\n\nThe quick fox runs over the house.\n")
    (folder / "papers" / NAME.replace(".md", ".pdf")).write_text("no PDF")
    done = run("index", folder / "x.lm", folder / "papers", "--encode", "none")
    assert done.exit_code == 3
    assert controls(done.output) == set() and "\nError:" not in done.output
    return folder


def controls(text: str) -> set[str]:
    """The characters of a text that a terminal would obey."""
    unsafe = {character for character in text if unicodedata.category(character) in ("Cc", "Cs")} - {"\n", "\t"}
    return unsafe | {"\u202e"} & set(text)


@pytest.mark.parametrize(
    "words",
    [
        ["show", "{x}", "--documents"],
        ["show", "{x}", "--failures"],
        ["show", "{x}", "--documents", "--json"],
        ["show", "{x}", NAME],
        ["show", "{x}", NAME, "--json"],
        ["show", "{x}", "absent\x1b[31m\nError: forged"],
        ["show", "{x}", NAME, "--section", "no\nError: forged\x1b"],
        ["show", "no\nError: forged\x1b.lm"],
        ["remove", "{x}", "absent\nError: forged\x1b"],
        ["index", "{x}", "/no/such\nError: forged\x1b"],
        ["upkeep", "verify", "no\nError: forged\x1b.lm"],
        ["no\nError: forged\x1b"],
        ["--no\nError: forged\x1b"],
        *(["query", "{x}", "--id", "plain.md", "--format", form] for form in ("table", "csv", "trec", "json", "jsonl")),
    ],
    ids=lambda words: " ".join(words).encode("unicode_escape").decode()[:40],
)
def test_no_command_prints_what_a_terminal_obeys(folder: Path, words: list[str]) -> None:
    done = run(*(word.format(x=folder / "x.lm") for word in words))
    assert controls(done.output) == set()
    errors = [line for line in done.stderr.splitlines() if line.startswith("Error:")]
    assert len(errors) == (1 if done.exit_code in (1, 2) else 0)


def test_a_log_of_json_lines_has_one_line_for_each_failure(folder: Path, tmp_path: Path) -> None:
    done = run("--log-json", "index", tmp_path / "y.lm", folder / "papers", "--encode", "none")
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["message"] for line in lines if line["level"] == "error"] == []
    assert sum(line["message"].startswith("failed: ") for line in lines) == 1
    assert controls(done.stderr) == set()


def test_the_exact_text_reaches_a_file_but_not_a_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("show", folder / "x.lm", NAME, "--text").stdout.endswith("hill\x07 and the old house.\n\n")
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    shown = run("show", folder / "x.lm", NAME, "--text").stdout
    assert controls(shown) == set() and "hill\ufffd and" in shown


def test_a_chart_as_a_word_file_takes_any_text(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("docx")
    out = tmp_path / "chart.docx"
    succeed("chart", folder / "x.lm", folder / "papers" / NAME, "--format", "docx", "-o", out)
    assert out.stat().st_size > 1000


def test_commands_print_by_the_functions_that_make_text_safe() -> None:
    direct = {file.name for file in CLI.glob("*.py") if "click.echo(" in file.read_text()}
    assert direct == {"terminal.py"}
