from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import fetch
from benchmarks.datasets import open_dataset, read_documents, read_qrels, read_queries
from benchmarks.fetching import sources as recorded
from benchmarks.fetching.sources import (
    CorpusDocument,
    Files,
    Recipe,
    Recorded,
    Source,
    corpus_document,
    record,
    source_digest,
    write_recorded,
)
from benchmarks.formats.trec import write_json_lines

TEXTS = {"a": "alpha beta", "b": "gamma", "c": "delta", "d": "epsilon"}


def key(name: str) -> str:
    return name.rpartition("/")[2].removesuffix(".txt") if name.endswith(".txt") else ""


def documents(facts: Recorded, files: Files) -> Iterator[CorpusDocument]:
    for doc_id in facts.ids:
        if doc_id in files:
            yield corpus_document(doc_id, doc_id.upper(), iter([("", files[doc_id].decode())]), {})


RECIPE = Recipe("proposals", (Source("texts.tar.gz", "http://127.0.0.1:9/texts", ("texts*",)),), key, bool, documents)


def archive(path: Path, texts: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as packed:
        for name, text in texts.items():
            member = tarfile.TarInfo(f"top/{name}.txt")
            member.size = len(text)
            packed.addfile(member, io.BytesIO(text.encode()))


@pytest.fixture
def downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the source of a corpus of four documents, whose facts take the place of the shipped ones."""
    monkeypatch.setattr(recorded, "FOLDER", tmp_path)
    monkeypatch.setitem(fetch.RECIPES, "proposals", RECIPE)
    first = tmp_path / "first" / "proposals"
    first.mkdir(parents=True)
    judged = [("a", "b", 2), ("a", "c", 1), ("c", "a", 1), ("d", "c", 1)]
    (first / "qrels.tsv").write_text(recorded.HEADER + "".join(f"{q}\t{t}\t{r}\n" for q, t, r in judged))
    (first / "splits.json").write_text(json.dumps({"train": ["a", "d"], "test": ["c"]}, indent=1) + "\n")
    ids = Recorded(list(TEXTS), [], {}, {}, [], {}, {}, "")
    write_json_lines(
        first / "corpus.jsonl.gz", list(documents(ids, {name: text.encode() for name, text in TEXTS.items()}))
    )
    source = source_digest({name: text.encode() for name, text in TEXTS.items()})
    write_recorded("proposals", record(first, source=source))
    folder = tmp_path / "downloads"
    folder.mkdir()
    archive(folder / "texts.tar.gz", {**TEXTS, "other": "not of the corpus"})
    return folder


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(fetch.main, [str(argument) for argument in arguments])
    return done.exit_code, done.output


def test_the_same_sources_give_the_recorded_corpus_byte_for_byte(downloads: Path, tmp_path: Path) -> None:
    code, output = run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert code == 0
    assert "Equal to the recorded corpus: 4 of 4 (100.0%)\nSource files: as recorded\n" in output
    assert "This copy is the recorded corpus" in output
    for name in ("corpus.jsonl.gz", "qrels.tsv", "splits.json"):
        assert (tmp_path / "new/proposals" / name).read_bytes() == (tmp_path / "first/proposals" / name).read_bytes()
    dataset = open_dataset("proposals", tmp_path / "new")
    assert [document.doc_id for document in read_documents(dataset)] == list(TEXTS)
    assert read_qrels(dataset, "test") == {"c": {"a": 1}}
    assert list(read_queries(dataset, ["c"])) == ["c"]


def test_a_target_that_is_a_query_of_test_is_no_training_pair(downloads: Path, tmp_path: Path) -> None:
    run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert (tmp_path / "new/proposals/train_pairs.tsv").read_text() == recorded.HEADER + "a\tb\t2\n"
    assert fetch.train_pairs({"a": {"1": ["b"]}}, {"train": [], "test": ["a"]}) == []


def test_other_sources_are_reported_document_by_document(downloads: Path, tmp_path: Path) -> None:
    archive(downloads / "texts.tar.gz", {"a": "changed", "b": "gamma", "c": "delta"})
    code, output = run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert code == 0
    for line in (
        "proposals: 3 documents",
        "Equal to the recorded corpus: 2 of 4 (50.0%)",
        "Different text: 1 (a)",
        "Not in the sources: 1 (d)",
        "Source files: not the recorded ones",
        "differ from the published ones in the third digit",
    ):
        assert line in output
    assert (tmp_path / "new/proposals/qrels.tsv").read_text().splitlines()[1:] == ["a\tb\t2", "a\tc\t1", "c\ta\t1"]
    assert json.loads((tmp_path / "new/proposals/splits.json").read_text()) == {"train": ["a"], "test": ["c"]}


def test_the_error_for_a_missing_source_lists_what_to_download_by_hand(downloads: Path, tmp_path: Path) -> None:
    (downloads / "texts.tar.gz").unlink()
    code, output = run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert code == 1
    assert f"Error: {downloads} holds no texts.tar.gz\nDownload by hand:\n  http://127.0.0.1:9/texts\n" in output
    assert f"as {downloads / 'texts.tar.gz'}" in output
    assert f"python -m benchmarks fetch proposals --to {tmp_path / 'new'} --from {downloads}" in output
    assert not (tmp_path / "new").exists()
    code, output = run("proposals", "--to", tmp_path / "new", "--downloads", tmp_path / "empty")
    assert code == 1
    assert "http://127.0.0.1:9/texts could not be downloaded" in output and "Download by hand:" in output


def test_a_source_without_documents_and_a_folder_with_a_corpus_are_refused(downloads: Path, tmp_path: Path) -> None:
    code, output = run("proposals", "--to", tmp_path / "first", "--from", downloads)
    assert (code, "holds a corpus already; pass another --to" in output) == (1, True)
    archive(downloads / "texts.tar.gz", {"other": "x"})
    code, output = run("proposals", "--to", tmp_path / "new", "--from", downloads)
    assert (code, "no document of proposals is inside" in output) == (1, True)
