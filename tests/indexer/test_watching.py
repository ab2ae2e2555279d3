"""Standing questions: hits are printed once, again when their documents change, and never lost."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import longmatch
from engine.errors import DocumentError
from tests import commands
from tests.commands import succeed
from tests.strict_schema import check

Run = Callable[..., Result]
QUERY = "the fox runs over the old hill and the fox jumps through the dark light of the river. "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "corpus").mkdir()
    for number in range(30):
        (tmp_path / "corpus" / f"other{number:02d}.md").write_text(f"# Other {number}\n\n{_other(number)}\n")
    (tmp_path / "corpus" / "fox0.md").write_text(f"# Fox 0\n\n{QUERY * 3}\n")
    (tmp_path / "draft.md").write_text(f"# Draft\n\n{QUERY * 2}\n")
    _index(tmp_path)
    return tmp_path


def _other(number: int) -> str:
    return " ".join(f"word{number}of{at} about topic{(number * at) % 7}." for at in range(40))


def _index(folder: Path) -> None:
    succeed("index", folder / "x.lm", folder / "corpus", "--encode", "none")


@pytest.fixture
def run(folder: Path) -> Run:
    def watch(*arguments: str) -> Result:
        named = arguments or (folder / "draft.md",)
        return commands.run("watch", folder / "x.lm", *named, "--state", folder / "s.json", "--format", "jsonl")

    return watch


def hits(result: Result) -> list[list[str]]:
    return [[hit["id"] for hit in check(json.loads(line))["hits"]] for line in result.stdout.splitlines()]


def test_a_hit_is_printed_once_and_again_when_its_document_changes(folder: Path, run: Run) -> None:
    first, second = run(), run()
    assert (hits(first), first.exit_code) == ([["fox0.md"]], 0)
    assert (second.stdout, second.exit_code) == ("", 4)
    (folder / "corpus" / "fox1.md").write_text(f"# Fox 1\n\n{QUERY * 2} A river.\n")
    (folder / "corpus" / "fox0.md").write_text(f"# Fox 0\n\n{QUERY * 4} Changed.\n")
    (folder / "corpus" / "other01.md").write_text(f"# Other 1\n\n{_other(1)} Changed.\n")
    _index(folder)
    third = run()
    assert sorted(hits(third)[0]) == ["fox0.md", "fox1.md"]
    assert json.loads(third.stdout)["changed"] == ["fox0.md"]
    assert run().exit_code == 4
    text = commands.run("watch", folder / "x.lm", "--text", QUERY * 2, "--state", folder / "s.json")
    assert "fox1.md" in text.stdout
    with longmatch.open(folder / "x.lm") as index:
        assert list(index.watch(folder / "draft.md", folder / "s.json")) == []
        assert [hit.doc_id for hit in index.watch(QUERY, folder / "s.json", k=1)] == ["fox0.md"]
        assert [hit.doc_id for hit in index.watch(QUERY, folder / "s.json")] == ["fox1.md"]


def test_a_run_that_dies_while_it_prints_loses_nothing(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("indexer.cli.formats.print_answers", killed)
        assert run().exit_code == 130
    assert not list(folder.glob("s.json*"))
    assert hits(run()) == [["fox0.md"]]


def test_a_full_disk_is_that_of_the_state_and_nothing_is_printed(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("indexer.searches.os.fsync", full)
    failed = run()
    assert (failed.exit_code, failed.stdout) == (1, "")
    assert "s.json: No space left on device; free some space" in failed.stderr and not list(folder.glob("s.json*"))


def test_questions_are_kept_apart_and_failures_reported(folder: Path, run: Run) -> None:
    draft = str(folder / "draft.md")
    assert run(str(folder / "nowhere.md")).exit_code == 1 and not (folder / "s.json").exists()
    found = run(draft, str(folder / "nowhere.md"), "--id", "fox0.md", "--text", QUERY)
    assert (found.exit_code, "nowhere.md: No such file" in found.stderr) == (3, True)
    assert hits(found) == [["fox0.md"], ["fox0.md"]]  # of the text and of the draft; fox0.md itself has none
    assert run(draft, "--id", "fox0.md", "--text", QUERY).exit_code == 4
    assert run(str(folder / "nowhere.md")).exit_code == 1


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 100_000,
        "{}",
        '{"schema": "longmatch-watch/1", "index": "/other.lm", "queries": {}}',
        '{"schema": "longmatch-watch/1", "index": "/other.lm", "queries": {"id a": 5}}',
    ],
    ids=range(5),
)
def test_another_state_is_refused(folder: Path, run: Run, content: str) -> None:
    (folder / "s.json").write_text(content)
    refused = run()
    assert (refused.exit_code, "name another file" in refused.output) == (1, True)
    assert (folder / "s.json").read_text() == content
    with longmatch.open(folder / "x.lm") as index, pytest.raises(DocumentError, match="name another file"):
        index.watch(QUERY, folder / "s.json")


def test_a_pipe_is_no_state(folder: Path, run: Run) -> None:
    os.mkfifo(folder / "s.json")
    refused = run()
    assert (refused.exit_code, "name another file" in refused.output) == (1, True)
