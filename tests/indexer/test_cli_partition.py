"""The commands on a partitioned index print what they print for one index."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import run, succeed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, papers: Path) -> Path:
    """`one.lm`, and the same in three partitions; only to be copied."""
    folder = tmp_path_factory.mktemp("cli-partitions")
    succeed("index", folder / "one.lm", papers, "--encode", "none")
    succeed("upkeep", "partition", folder / "one.lm", folder / "x.parts", "-p", "3")
    return folder


@pytest.fixture
def parts(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "x.parts", tmp_path / "x.parts"))


def plain(printed: str) -> object:
    """JSON without what differs from run to run."""
    values = [json.loads(line) for line in printed.splitlines()]
    for value in values:
        if isinstance(value, dict):
            value.pop("seconds", None), value.pop("provenance", None)
    return values


def test_partition_prints_the_counts_of_each_partition(made: Path, tmp_path: Path) -> None:
    result = succeed("upkeep", "partition", made / "one.lm", tmp_path / "y.parts", "-p", "2")
    counts = [int(line.split()[2]) for line in result.stdout.splitlines()]
    assert sum(counts) == 16
    assert result.stdout.startswith(f"partition 0: {counts[0]} documents, 0 chunks\n")
    again = run("upkeep", "partition", made / "one.lm", tmp_path / "y.parts", "-p", "2")
    assert again.exit_code == 1
    assert "is there already; name a new folder" in again.stderr


@pytest.mark.parametrize(
    "command",
    [
        "query {x} --id fox/0.md --offset 2 --where number>=2 --format jsonl",
        "query {x} --text old,river,through,dark,light --without river/1.md -k 20 --format jsonl",
        "show {x} --fields --json",
        "show {x} fox/0.md --json",
        "show {x} --failures --json",
    ],
)
def test_commands_print_what_they_print_for_one_index(made: Path, command: str) -> None:
    printed = [run(*command.format(x=made / name).split()) for name in ("one.lm", "x.parts")]
    assert [result.exit_code for result in printed] == [0, 0]
    assert plain(printed[1].stdout) == plain(printed[0].stdout) != []


def test_show_has_a_line_for_each_partition(made: Path) -> None:
    assert "partitions   3, each with its own generation" in run("show", made / "x.parts").stdout
    facts = json.loads(run("show", made / "x.parts", "--json").stdout)
    assert [part["folder"] for part in facts["partitions"]] == ["0000.lm", "0001.lm", "0002.lm"]
    n_documents = sum(part["documents"] for part in facts["partitions"])
    assert n_documents == facts["n_documents"] == len(facts["documents"]) == 16


def test_queries_and_dry_runs_know_the_files_of_partitions(made: Path, papers: Path, bert_folder: Path) -> None:
    result = succeed("query", made / "x.parts", papers / "fox" / "0.md", "-k", "1")
    assert "left out: fox/0.md" in result.stderr
    assert "15 searched, certified" in result.stdout
    result = succeed("index", made / "x.parts", papers, "--dry-run", "--encoder", bert_folder, "--json")
    assert json.loads(result.stdout)["n_unchanged"] == 16


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
    listed = [row["doc_id"] for row in json.loads(run("show", parts, "--documents", "--json").stdout)]
    assert len(listed) == 14 and "fox/0.md" not in listed


@pytest.mark.slow
def test_an_index_keeps_to_a_dtype_and_a_copy_without_vectors_leaves_it(bert_folder: Path, tmp_path: Path) -> None:
    folder, copy, text = tmp_path / "x.lm", tmp_path / "copy.lm", tmp_path / "fox.txt"
    text.write_text("the fox and the dog. " * 9)
    model = shutil.copytree(bert_folder, tmp_path / "model")

    def encoder_after(index: Path, *arguments: str | Path) -> object:
        succeed("index", index, *arguments)
        return json.loads(run("show", index, "--json").stdout)["encoder"]["name"]

    assert encoder_after(folder, text, "--encode", "all", "--encoder", model, "--dtype", "int8") == f"{model}:int8"
    assert encoder_after(folder, text) == f"{model}:int8"
    refused = run("index", folder, "--encoder", model, "--dtype", "float32")
    assert refused.exit_code == 1 and f"upkeep partition {folder} NEW -p 1 --words" in refused.stderr
    succeed("upkeep", "partition", folder, copy, "-p", "1", "--words")
    assert encoder_after(copy, "--encoder", model, "--dtype", "float32") == str(model)
