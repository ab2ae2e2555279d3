"""The commands on a partitioned index print what they print for one index."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from indexer.cli import main
from tests.commands import run

TOPICS = ("fox", "dog", "river", "house")


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("papers")
    for topic in TOPICS:
        (folder / topic).mkdir()
        for number in range(4):
            body = f"the {topic} runs over the old {topic} and jumps through the dark light number {number}. " * 9
            front = f"---\ntopic: {topic}\nnumber: {number}\n---\n"
            (folder / topic / f"{number}.md").write_text(
                f"{front}# The {topic} {number}\n\n{body}\n\n## More\n\n{body}"
            )
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, papers: Path) -> Path:
    """`one.lm`, and the same in three partitions; only to be copied."""
    folder = tmp_path_factory.mktemp("cli-partitions")
    for command in (
        ["index", folder / "one.lm", papers, "--encode", "none"],
        ["upkeep", "partition", folder / "one.lm", folder / "x.parts", "-p", "3"],
    ):
        result = CliRunner().invoke(main, [str(word) for word in command])
        assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def one(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "one.lm", tmp_path / "one.lm"))


@pytest.fixture
def parts(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "x.parts", tmp_path / "x.parts"))


def results(printed: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in json.loads(line).items() if name not in ("seconds", "provenance")}
        for line in printed.splitlines()
    ]


def test_partition_prints_the_counts_of_each_partition(made: Path, tmp_path: Path) -> None:
    result = run("upkeep", "partition", made / "one.lm", tmp_path / "y.parts", "-p", "2")
    assert result.exit_code == 0
    counts = [int(line.split()[2]) for line in result.stdout.splitlines()]
    assert sum(counts) == 16
    assert result.stdout.startswith(f"partition 0: {counts[0]} documents, 0 chunks\n")
    again = run("upkeep", "partition", made / "one.lm", tmp_path / "y.parts", "-p", "2")
    assert again.exit_code == 1
    assert "is there already; name a new folder" in again.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["--id", "fox/0.md", "-k", "3"],
        ["--id", "fox/0.md", "--offset", "2", "--where", "number >= 2"],
        ["--text", "the old river runs through the dark light", "--without", "river/1.md", "-k", "20"],
    ],
)
def test_query_prints_the_results_of_one_index(one: Path, parts: Path, options: list[str]) -> None:
    printed = [run("query", folder, *options, "--format", "jsonl") for folder in (one, parts)]
    assert [result.exit_code for result in printed] == [0, 0]
    assert results(printed[1].stdout) == results(printed[0].stdout) != []


def test_a_query_file_that_is_indexed_is_left_out(parts: Path, papers: Path) -> None:
    result = run("query", parts, papers / "fox" / "0.md", "-k", "1")
    assert result.exit_code == 0
    assert "left out: fox/0.md" in result.stderr
    assert "15 searched, certified" in result.stdout


def test_the_error_names_a_field_that_no_partition_has(parts: Path) -> None:
    result = run("query", parts, "--id", "fox/0.md", "--where", "nummer > 1")
    assert result.exit_code == 1
    assert "no document has the field 'nummer'; did you mean 'number'?" in result.stderr


@pytest.mark.parametrize("command", [["show", "--fields", "--json"], ["show", "fox/0.md"], ["show", "--failures"]])
def test_show_prints_what_it_prints_for_one_index(one: Path, parts: Path, command: list[str]) -> None:
    printed = [run(command[0], folder, *command[1:]).stdout for folder in (one, parts)]
    assert printed[1] == printed[0] != ""


def test_show_has_a_line_for_each_partition(parts: Path) -> None:
    printed = run("show", parts).stdout
    assert "partitions   3, each with its own generation" in printed
    facts = json.loads(run("show", parts, "--json").stdout)
    assert [one["folder"] for one in facts["partitions"]] == ["0000.lm", "0001.lm", "0002.lm"]
    assert sum(one["documents"] for one in facts["partitions"]) == facts["documents"] == 16


def test_show_lists_the_documents_of_all_partitions(parts: Path) -> None:
    listed = json.loads(run("show", parts, "--documents", "--json").stdout)
    assert sorted(one["doc_id"] for one in listed) == sorted(f"{topic}/{n}.md" for topic in TOPICS for n in range(4))


def test_compare_takes_thresholds_from_the_shared_reference(one: Path, parts: Path, papers: Path) -> None:
    files = papers / "fox" / "0.md", papers / "dog" / "1.md"
    printed = [run("compare", *files, "--index", folder, "--format", "json") for folder in (one, parts)]
    scores = [json.loads(result.stdout)["results"][0]["hits"][0]["score"] for result in printed]
    assert scores[1] == scores[0] > 0


@pytest.mark.slow
def test_a_new_document_of_a_changed_corpus_is_found_and_a_deleted_one_is_pruned(
    parts: Path, papers: Path, tmp_path: Path
) -> None:
    changed = Path(shutil.copytree(papers, tmp_path / "papers"))
    unchanged = run("index", parts, papers, "--encode", "none")
    assert unchanged.stdout.startswith("0 added, 0 replaced, 16 unchanged, 0 removed, 0 failed")
    (changed / "fox" / "0.md").unlink()
    (changed / "cat.md").write_text("# The cat\n\nA cat runs over the old house.\n")
    result = run("index", parts, changed, "--encode", "none", "--prune")
    assert result.stdout.startswith("1 added, 0 replaced, 15 unchanged, 1 removed, 0 failed")
    assert "cat.md" in run("query", parts, "--text", "a cat over a house", "-k", "1").stdout
    listed = [one["doc_id"] for one in json.loads(run("show", parts, "--documents", "--json").stdout)]
    assert len(listed) == 16 and "fox/0.md" not in listed


@pytest.mark.slow
def test_upkeep_commands_work_on_partitions(parts: Path) -> None:
    assert run("remove", parts, "fox/0.md", "dog/1.md").stdout == "2 removed\n"
    absent = run("remove", parts, "fox/0.md")
    assert absent.exit_code == 1
    assert "no document 'fox/0.md'" in absent.stderr
    assert "shards of" in run("upkeep", "compact", parts).stdout
    assert run("upkeep", "rebase", parts).stdout == "reference 2: 0 of 14 documents, 0 chunks\n"
    assert run("upkeep", "verify", parts).stdout == "no damage found\n"
    assert run("upkeep", "repair", parts).stdout == "no damage found\n"
    assert json.loads(run("show", parts, "--json").stdout)["documents"] == 14


def test_a_dry_run_plans_for_partitions(parts: Path, papers: Path, bert_folder: Path) -> None:
    result = run("index", parts, papers, "--dry-run", "--encoder", bert_folder, "--json")
    assert result.exit_code == 0, result.output
    plan = json.loads(result.stdout)
    assert plan["n_unchanged"] == 16


def test_python_opens_partitions(parts: Path, one: Path) -> None:
    import longmatch

    with longmatch.open(parts) as opened, longmatch.open(one) as whole:
        assert len(opened) == len(whole) == 16
        assert sorted(opened) == sorted(whole)
        assert "fox/0.md" in opened
        assert repr(opened) == f"Index({str(parts)!r}, 16 documents, words alone)"
        found, expected = (index.search("the old river in the dark", k=5) for index in (opened, whole))
        assert [(hit.doc_id, hit.score) for hit in found] == [(hit.doc_id, hit.score) for hit in expected]
        assert opened.document("fox/1.md").text == whole.document("fox/1.md").text
        opened.add([{"id": "cat", "text": "A cat runs over the old house."}])
        assert opened.remove(["cat", "fox/2.md"]) == 2
        assert len(opened) == 15
