"""README, docs and examples agree with the program: commands parse, transcripts and Python run, named files exist."""

import os
import re
import runpy
import shlex
import sys
from collections.abc import Iterable, Iterator
from doctest import ELLIPSIS, OutputChecker
from functools import cache
from pathlib import Path

import click
import pytest
from _pytest.mark import ParameterSet
from click.testing import CliRunner

import longmatch
from indexer.building.builder import build
from indexer.cli import main
from tests.commands import COMMANDS, parse
from tests.fakes import FakeEncoder, make_corpus
from tests.test_layers import imported_modules

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"^(?:\$ |\t\$\(BIN\)/|    )?longmatch ((?:[^\n\\]|\\\n)*)$", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NEEDED = {  # packages that the Python of a page needs
    "docs/how-to/exports.md": ("pyarrow",),
    "docs/how-to/integrations.md": ("langchain_core", "llama_index.core", "haystack"),
    "docs/how-to/plots.md": ("matplotlib",),
}
DATABASES = {  # pages on databases: packages, and the variable that names a server
    "docs/how-to/lancedb.md": (("pyarrow", "lancedb"), None),
    "docs/how-to/pgvector.md": (("pyarrow", "psycopg", "pgvector"), "DATABASE_URL"),
}
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([\w.-]*))?\)")


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def parameters(pages: Iterable[Path]) -> list[ParameterSet]:
    return [pytest.param(page, id=named(page)) for page in pages]


def commands(text: str) -> list[list[str]]:
    """The words of each `longmatch` command in a text, comments left out."""
    lines = [line.replace("\\\n", " ") for line in COMMAND.findall(text)]
    return [shlex.split(line, comments=True) for line in lines]


def blocks(text: str, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(text) if name == language]


def in_fences(page: Path) -> str:
    return "\n".join(body for name, body in FENCE.findall(page.read_text()) if name in ("", "console"))


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read every path in a command as a file that exists, and as an index."""
    monkeypatch.setattr(click.Path, "convert", lambda *_: ROOT / "README.md")
    monkeypatch.setattr("indexer.cli.options.holds_index", lambda _: True)


COMMAND_PAGES = [page for page in PAGES if commands(in_fences(page))]


def test_the_readme_and_the_tutorial_have_commands() -> None:
    assert {"README.md", "docs/tutorial.md"} <= set(map(named, COMMAND_PAGES))


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("page", COMMAND_PAGES, ids=named)
def test_every_command_of_a_page_parses(page: Path) -> None:
    for words in commands(in_fences(page)):
        parse(words)


@pytest.mark.usefixtures("lenient")
def test_every_command_of_the_makefile_parses() -> None:
    found = commands((ROOT / "Makefile").read_text())
    assert {"index", "query"} <= {words[0] for words in found}
    for words in found:
        parse(words)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_an_example(name: str) -> None:
    text = COMMANDS[name].get_help(click.Context(COMMANDS[name], info_name=name))
    assert "Example:" in text and f"longmatch {name}" in text


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_example_of_a_command_parses(name: str) -> None:
    examples = commands((COMMANDS[name].help or "").replace("    longmatch", "longmatch"))
    assert examples
    for words in examples:
        parse(words)


@cache
def output_of(command: str) -> str:
    """The output of a command in the workspace; each runs once, so that pages share an index."""
    return CliRunner().invoke(main, shlex.split(command)).stdout


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the pages have it: the demo, `papers` with its index, and a draft."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "demo").symlink_to(ROOT / "demo")
    (folder / "papers").mkdir()
    for name in ("eip-2718.md", "eip-3607.md"):
        (folder / "papers" / name).symlink_to(ROOT / "demo/corpus/eips" / name)
    (folder / "draft.md").symlink_to(ROOT / "demo/corpus/eips/eip-2930.md")
    (folder / "draft.pdf").symlink_to(ROOT / "demo/queries/eip-7702.pdf")
    return folder


@pytest.fixture
def in_workspace(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(workspace)


def transcripts(page: Path) -> Iterator[tuple[str, str]]:
    """Each command after `$`, and the output below it."""
    for block in blocks(page.read_text(), "console"):
        for entry in block.split("$ longmatch ")[1:]:
            command, _, output = entry.partition("\n")
            yield command, output


@pytest.mark.slow
@pytest.mark.usefixtures("in_workspace", "usual_floor")
@pytest.mark.parametrize("page", parameters(page for page in PAGES if "$ longmatch" in page.read_text()))
def test_transcripts_are_what_the_program_prints(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for command, output in transcripts(page):
        printed = output_of(command)
        assert OutputChecker().check_output(output, printed, ELLIPSIS), f"longmatch {command}\n{printed}"


@pytest.mark.slow
@pytest.mark.usefixtures("in_workspace")
@pytest.mark.parametrize(
    "page", parameters(page for page in PAGES if "```python" in page.read_text() and named(page) not in DATABASES)
)
def test_the_python_of_a_page_runs(
    page: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in NEEDED.get(named(page), ()):
        pytest.importorskip(package)
    output_of("index demo.lm demo/corpus --encode none")
    output_of("index papers.lm papers --encode none")
    output_of("upkeep partition demo.lm demo.parts -p 4")
    names: dict[str, object] = {}
    for block in blocks(page.read_text(), "python"):
        exec(compile(block, named(page), "exec"), names)
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", DATABASES)
def test_the_commands_of_a_page_on_a_database_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    packages, server = DATABASES[page]
    for package in packages:
        pytest.importorskip(package)
    if server is not None and server not in os.environ:
        pytest.skip(f"{server} names no server")
    monkeypatch.chdir(tmp_path)
    build("papers.lm", make_corpus(6), encoder=FakeEncoder())
    text = (ROOT / page).read_text()
    for words in commands(in_fences(ROOT / page)):
        assert CliRunner().invoke(main, words).exit_code == 0
    for block in blocks(text, "python"):
        exec(compile(block, page, "exec"), {})
    assert make_corpus(6)[0].doc_id in capsys.readouterr().out


def test_the_sum_of_the_tutorial_is_that_of_its_transcript() -> None:
    text = (ROOT / "docs/tutorial.md").read_text()
    ((*parts, total),) = re.findall(r"([\d.]+) % \+ ([\d.]+) % is ([\d.]+) %", text)
    assert sum(map(float, parts)) == pytest.approx(float(total), abs=1e-9) and total == "100.0"
    assert all(re.search(rf"^ .*{number} %  ", text, re.MULTILINE) for number in parts)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "benchmarks").glob("**/*.md"))], ids=named)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target, anchor in LINK.findall(page.read_text()):
        file = (page.parent / target).resolve() if target else page
        assert file.exists(), f"{target} does not exist"
        generated = "reference" in file.parts
        assert not anchor or generated or anchor in anchors(file), f"{target} has no heading {anchor}"


def test_every_page_stands_in_the_navigation() -> None:
    listed = re.findall(r": ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))


def test_the_reference_names_every_public_name() -> None:
    page = (ROOT / "docs/reference/python.md").read_text()
    assert [name for name in longmatch.__all__ if not re.search(rf"^::: .*\b{name}$", page, re.MULTILINE)] == [
        "EngineError"
    ]
    assert "::: engine.errors" in page


PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
MOST_FILES = 8


def files_after(title: str) -> list[str]:
    """The files of the indented block below a line."""
    block = PAGE.split(f"{title}\n\n", 1)[1].split("\n\n", 1)[0]
    return re.findall(r"(?:engine|indexer)/[\w/]+\.py", block)


@pytest.mark.parametrize("title", ["A file into the index:", "A query to its hits:"])
def test_a_way_is_short_and_its_files_belong_together(title: str) -> None:
    files = files_after(title)
    assert 0 < len(files) <= MOST_FILES and all((ROOT / file).is_file() for file in files)
    names = {file.removesuffix(".py").replace("/", ".") for file in files}
    imports = {name: imported_modules(name.split(".")[0])[name] & names for name in names}
    imported = set().union(*imports.values())
    assert [name for name in names if not imports[name] and name not in imported] == []


def test_files_that_pages_and_workflows_name_exist() -> None:
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / ".github").rglob("*.yml"),
    ]
    named = re.compile(r"\b(?:engine|indexer|longmatch|benchmarks|tests)/[\w/]+\.py\b")
    gone = {
        f"{page.relative_to(ROOT)}: {file}"
        for page in pages
        for file in named.findall(page.read_text())
        if "NAME" not in file and not (ROOT / file).is_file()
    }
    assert gone == set()


NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@pytest.mark.parametrize("page", ["security", "storage"])
def test_the_tests_of_promises_exist(page: str) -> None:
    named = NAMED.findall((ROOT / "docs" / "explanation" / f"{page}.md").read_text())
    assert len(named) >= 8
    assert [one for one in named if f"def {one[1]}(" not in (ROOT / one[0]).read_text()] == []


EIPS = ROOT / "demo/corpus/eips"


def run(name: str, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of proposals that cite each other."""
    folder = tmp_path / "demo/corpus/eips"
    folder.mkdir(parents=True)
    for file in sorted(EIPS.glob("*.md")):
        (folder / file.name).symlink_to(file)
    (tmp_path / "demo/queries").symlink_to(ROOT / "demo/queries")
    return folder


def test_the_filter_example_counts_matching_documents(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("filter.py", monkeypatch, folder)
    printed = capsys.readouterr().out
    n_documents = len(list(folder.iterdir()))
    assert f"where None: {n_documents - 1} documents, certified" in printed
    assert "where {'number': {'>=': 2000, '<': 4000}}: 4 documents" in printed


@pytest.mark.slow
def test_the_notebook_example_prints_sums_of_parts_equal_to_scores(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    run("notebook.py", monkeypatch)
    *_, sums, scores = capsys.readouterr().out.splitlines()
    assert sums == scores and folder.exists()


@pytest.mark.slow
def test_the_training_example_saves_an_encoder(
    folder: Path, tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run("train_own.py", monkeypatch, folder, tmp_path / "own", "--encoder", bert_folder, "--steps", 2)
    assert " pairs\n" in capsys.readouterr().out
    assert any((tmp_path / "own/encoder").rglob("*.safetensors"))
