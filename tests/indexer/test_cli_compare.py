"""`longmatch compare`: two files, or a file and an indexed document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from indexer.cli import main
from tests.commands import run, succeed
from tests.strict_schema import check


def _text(first: str, second: str) -> str:
    bodies = [
        " ".join(f"the old {topic} runs over the dark {topic} and on" for _ in range(9)) for topic in (first, second)
    ]
    return f"# On the {first}\n\n{bodies[0]}.\n\n## On the {second}\n\n{bodies[1]}.\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    (folder / "a.md").write_text(_text("fox", "river"))
    (folder / "b.md").write_text(_text("river", "house"))
    (folder / "c.md").write_text(_text("bank", "dog"))
    return folder


@pytest.fixture(scope="module")
def built(files: Path, bert_folder: Path) -> Path:
    succeed("index", files / "x.lm", *sorted(files.glob("*.md")), "--encoder", bert_folder)
    return files / "x.lm"


def test_two_files_are_compared_without_an_index(files: Path, bert_folder: Path) -> None:
    table = succeed("compare", files / "a.md", files / "b.md", "--encoder", bert_folder, "--sections", "1")
    assert table.stdout.startswith("< On the fox  ") and "> On the river  " in table.stdout
    assert "On the river -> On the river" in table.stdout and "without an index there are no thresholds" in table.stdout
    assert max(map(len, table.stdout.splitlines())) <= 80


def test_changes_are_shown_in_every_format(files: Path, bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new.md").write_text((files / "a.md").read_text().replace("over the dark fox", "under it", 1))
    command = [files / "a.md", tmp_path / "new.md", "--encoder", bert_folder, "--changes"]
    assert "runs [-over the dark fox-]{+under it+} and on" in run("compare", *command).stdout
    (answer,) = check(json.loads(run("compare", *command, "--format", "json").stdout))["results"]
    ((start, end),) = [change["deleted"] for change in answer["changes"]]
    assert (files / "a.md").read_text()[start:end] == "over the dark fox"
    assert "<del>over the dark fox</del>" in run("compare", *command, "--format", "html").stdout


def test_weights_and_skipped_kinds_change_the_parts(files: Path, bert_folder: Path) -> None:
    command = [files / "a.md", files / "b.md", "--encoder", bert_folder, "--format", "json"]
    found = run("compare", *command, "--weight", "on the river=0", "--skip", "appendix")
    (answer,) = check(json.loads(found.stdout))["results"]
    parts = [part for part in answer["hits"][0]["parts"] if part["kind"] == "section_pair"]
    assert {part["query_section"]["heading"] for part in parts} == {"On the fox"}
    used = answer["provenance"]["parameters"]
    assert (used["weights"], used["skip"]) == ({"on the river": 0.0}, ["appendix"])
    wrong = run("compare", *command, "--weight", "on the dog=2")
    assert wrong.exit_code == 1 and "no section of" in wrong.stderr and "named 'on the dog'" in wrong.stderr


def test_json_has_the_parts(files: Path, bert_folder: Path) -> None:
    command = [files / "a.md", files / "b.md", "--encoder", bert_folder, "--format", "json"]
    (answer,) = check(json.loads(run("compare", *command).stdout))["results"]
    assert (answer["hits"][0]["id"], answer["query"]["id"]) == ("b.md", "a.md")


@pytest.mark.slow
def test_an_index_gives_the_score_of_a_search_also_to_standard_input(files: Path, built: Path) -> None:
    search = ["query", str(built), str(files / "a.md"), "--format", "json"]
    hits = json.loads(CliRunner().invoke(main, search).stdout)["results"][0]["hits"]
    expected = next(hit["score"] for hit in hits if hit["id"] == "b.md")
    for target in (["--id", "b.md"], [files / "b.md"]):
        found = run("compare", files / "a.md", *target, "--index", built, "--format", "json")
        assert json.loads(found.stdout)["results"][0]["hits"][0]["score"] == expected
    assert f"word statistics of {built}"[:30] in run("compare", files / "a.md", "--id", "b.md", "--index", built).stdout
    found = succeed("compare", "-", files / "b.md", "--index", built, stdin=_text("fox", "river"))
    assert found.stdout.startswith("< ")


def test_a_report_is_one_file_with_the_numbers_of_the_json(files: Path, built: Path, tmp_path: Path) -> None:
    command = [files / "a.md", files / "b.md", "--index", built, "--sections", "1", "--format"]
    (answer,) = json.loads(run("compare", *command, "json").stdout)["results"]
    succeed("compare", *command, "html", "-o", tmp_path / "x.html")
    page = (tmp_path / "x.html").read_text()
    for row in answer["hits"][0]["by_section"]["rows"]:
        assert f'<data value="{row["contribution"]}">{row["contribution"]:.4f}</data>' in page
    assert f"--index {built} --sections 1 --format html" in page
