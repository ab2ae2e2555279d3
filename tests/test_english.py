"""Refused words are not in pages, help texts and messages."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from indexer.cli import main
from tests.commands import COMMANDS

ROOT = Path(__file__).parents[1]
INSTEAD = {
    "told": "printed, logged, reported",
    "tells": "prints, reports, shows",
    "anew": "again, or re-",
    "likewise": "also",
    "thereof": "the noun",
    "hears": "is called with",
    "asked": "queried, requested, required",
    "mend": "repair",
    "mended": "repaired",
    "by more than chance": "significantly",
    "held against": "compared with",
    "given up": "falls back to",
    "what it gave": "the result",
    "what came of": "the result of",
}
WORDS = re.compile(rf"\b(?:{'|'.join(map(re.escape, INSTEAD))})\b", re.IGNORECASE)
NAMED_COMMAND = re.compile(r"(?:`|: )longmatch ((?:upkeep )?[a-z]+)")
BARE_FRACTION = re.compile(r"(?<![\w.`*/-])\.\d{2,3}\b")  # .481 for 0.481
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *(ROOT / "docs").rglob("*.md")]
MODULES = [file for package in ("engine", "indexer", "longmatch") for file in (ROOT / package).rglob("*.py")]


def faults(text: str) -> list[str]:
    """Each refused word of a text, with what to write instead; code and drawn tables are left out."""
    prose = re.sub(r"```.*?```|`[^`\n]*`|<!-- results.*?<!-- /results -->", "", text, flags=re.DOTALL)
    found = [f"{word}: write {INSTEAD[word.lower()]}" for word in WORDS.findall(prose)]
    return found + [f"{number}: write 0{number}" for number in BARE_FRACTION.findall(prose)]


def messages(module: Path) -> Iterator[str]:
    """The texts of a module that people may see: strings of several words, docstrings left out."""
    tree = ast.parse(module.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in bare)
    for node in texts:
        if isinstance(node.value, str) and " " in node.value and not node.value.startswith("<style>"):
            yield node.value


def test_refused_words_are_found_with_what_to_write_instead() -> None:
    assert faults("It was told ANEW: .481") == [
        "told: write printed, logged, reported",
        "ANEW: write again, or re-",
        ".481: write 0.481",
    ]
    assert faults("`told`, 0.481 and v1.48\n```\nanew\n```") == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_in_plain_english(page: Path) -> None:
    assert faults(page.read_text()) == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_texts_are_in_plain_english(name: str) -> None:
    assert faults(COMMANDS[name].get_help(click.Context(COMMANDS[name], info_name=name))) == []


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_has_a_help_text_that_begins_a_sentence(name: str) -> None:
    options = [one for one in COMMANDS[name].params if isinstance(one, click.Option)]
    assert [
        one.opts[0] for one in options if not one.help or one.help.startswith(("Of ", "To ", "Who ", "Whose "))
    ] == []


def test_every_command_that_a_page_or_a_message_names_exists() -> None:
    named = {
        (str(file.relative_to(ROOT)), name)
        for file in [*PAGES, *MODULES, ROOT / "benchmarks" / "RESULTS.md"]
        for name in NAMED_COMMAND.findall(file.read_text())
    }
    assert {place for place, _ in named} >= {"README.md", "engine/errors.py"}
    assert {(place, name) for place, name in named if name not in {*COMMANDS, *main.commands}} == set()


def notes(module: Path) -> Iterator[str]:
    """The docstrings and comments of a module."""
    text = module.read_text()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    yield from (ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, documented))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    yield from (token.string for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.slow
@pytest.mark.parametrize("package", ["engine", "indexer", "longmatch", "benchmarks"])
def test_docstrings_and_comments_are_in_plain_english(package: str) -> None:
    modules = (ROOT / package).rglob("*.py")
    found = {f"{file.relative_to(ROOT)}: {text[:70]}": faults(text) for file in modules for text in notes(file)}
    assert {place: words for place, words in found.items() if words} == {}


@pytest.mark.slow
def test_messages_are_in_plain_english() -> None:
    found = {f"{file.relative_to(ROOT)}: {text[:70]}": faults(text) for file in MODULES for text in messages(file)}
    assert {place: words for place, words in found.items() if words} == {}
