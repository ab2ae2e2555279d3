"""Folders, packages and devices that do not fit a training run are refused before anything is read."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pytest

from engine.errors import DocumentError, EncoderError, MissingExtra, TrainingError
from indexer.training.run import check_start, place_of, read_documents, read_with_pairs
from tests.fakes import make_corpus
from tests.indexer.training_corpus import write_corpus, write_documents


def test_a_new_folder_an_empty_one_and_that_of_a_run_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun" / "run").mkdir(parents=True)
    (tmp_path / "begun" / "README.md").touch()
    (tmp_path / "indexed" / "indexes").mkdir(parents=True)
    (tmp_path / "indexed" / ".gitattributes").touch()
    for name in ("new", "empty", "begun", "indexed"):
        check_start(tmp_path / name, "all-MiniLM-L6-v2", "cpu")


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").touch()
    message = (
        rf"^{tmp_path} holds corpus.jsonl, and no run to go on with; OUT, which comes first, must be a new folder$"
    )
    with pytest.raises(TrainingError, match=message):
        check_start(tmp_path, "all-MiniLM-L6-v2", "cpu")
    with pytest.raises(TrainingError, match=rf"^{tmp_path / 'corpus.jsonl'} is a file; name a folder for the encoder$"):
        check_start(tmp_path / "corpus.jsonl", "all-MiniLM-L6-v2", "cpu")


def test_the_encoder_itself_is_not_overwritten(tmp_path: Path) -> None:
    message = rf"^{tmp_path} is the encoder that training starts from; name another folder for the new one$"
    with pytest.raises(TrainingError, match=message):
        check_start(tmp_path, str(tmp_path / "." / ""), None)


def test_a_missing_package_is_an_error_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "accelerate", None)
    with pytest.raises(MissingExtra, match=r"^training needs accelerate; install it: pip install 'accelerate"):
        check_start(tmp_path / "new", "all-MiniLM-L6-v2", "cpu")


def test_a_missing_device_is_an_error_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(EncoderError, match=r"^device 'tpu' cannot be used \(.+\); see what there is: longmatch d"):
        check_start(tmp_path / "new", "all-MiniLM-L6-v2", "tpu")


def test_a_task_is_named_by_the_suffix_of_its_files(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "papers", suffix="_citation")
    assert place_of(f"{folder}:_citation") == (folder, "_citation")
    (corpus,) = read_with_pairs([f"{folder}:_citation"], label=None)
    assert corpus.name == "papers" and corpus.n_pairs == 28


def test_a_colon_in_the_name_of_a_folder_is_no_suffix(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "a:b")
    assert place_of(folder) == (folder, "")


def test_labels_stand_in_for_pairs(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "papers", has_pairs=False)
    (corpus,) = read_with_pairs([folder], label="topic")
    assert corpus.n_pairs == 28


@pytest.mark.parametrize("name", ["notes.jsonl", "notes.jsonl.gz"])
def test_documents_are_read_from_a_file(tmp_path: Path, name: str) -> None:
    file = write_documents(tmp_path / "notes.jsonl", make_corpus(5))
    if name.endswith(".gz"):
        (tmp_path / name).write_bytes(gzip.compress(file.read_bytes()))
    (corpus,) = read_documents([tmp_path / name])
    assert corpus.name == "notes" and list(corpus.documents) == [f"doc{n:03d}" for n in range(5)]
    assert corpus.trainable == list(corpus.documents) and not corpus.pairs and not corpus.valid


def test_documents_are_read_from_a_folder_of_any_files(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n\nThe old fox.\n")
    (tmp_path / "notes" / "b.txt").write_text("The young dog.\n")
    (tmp_path / "notes" / "c.pdf").write_bytes(b"no pdf at all")
    (corpus,) = read_documents([tmp_path / "notes"])
    assert list(corpus.documents) == ["a.md", "b.txt"] and corpus.n_unreadable == 1


@pytest.mark.slow
def test_files_of_one_document_are_one_corpus(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    files = [tmp_path / "notes" / name for name in ("a.md", "b.txt")]
    for file in files:
        file.write_text("The old fox.\n")
    lines = write_documents(tmp_path / "more.jsonl", make_corpus(3))
    corpora = read_documents([files[0], lines, files[1]])
    assert [(corpus.name, len(corpus.documents)) for corpus in corpora] == [("more", 3), ("notes", 2)]


def test_the_checksum_of_documents_is_that_of_their_text(tmp_path: Path) -> None:
    one, same = (write_documents(tmp_path / name / "x.jsonl", make_corpus(4)) for name in ("one", "same"))
    other = write_documents(tmp_path / "other" / "x.jsonl", make_corpus(4, seed=1))
    checksums = [read_documents([file])[0].checksum for file in (one, same, other)]
    assert checksums[0] == checksums[1] != checksums[2] and len(checksums[0]) == 12


def test_a_folder_of_the_benchmarks_keeps_its_judgments(tmp_path: Path) -> None:
    (corpus,) = read_documents([write_corpus(tmp_path / "papers")])
    assert set(corpus.valid) == {"doc000", "doc001"} == set(corpus.documents) - set(corpus.trainable)


def test_two_tasks_of_a_folder_have_two_names(tmp_path: Path) -> None:
    folder = write_corpus(write_corpus(tmp_path / "papers"), suffix="_citation")
    corpora = read_with_pairs([folder, f"{folder}:_citation"], label=None)
    assert [corpus.name for corpus in corpora] == ["papers", "papers_citation"]


@pytest.mark.parametrize(
    ("names", "label", "message"),
    [
        ("one/papers other/papers", None, "2 corpora have the name 'papers': {0} and {1}; name each once, or rename a"),
        ("mean", None, "a corpus cannot have the name 'mean', which stands for the mean of all; rename it"),
        (
            "papers",
            None,
            "{0} has no train_pairs.tsv, so no pairs to learn from; add that file, name a metadata field (--set "
            "label=FIELD), or learn from the documents alone: --objective docsplit",
        ),
        ("citing", None, "{0} has no train_pairs.tsv, so no pairs to learn from; name one of its tasks: {0}:_citation"),
        ("papers", "colour", "no two of 22 documents share a value of the metadata field 'colour'"),
        (
            "absent",
            None,
            "{0} does not exist; pairs are read from a folder with corpus.jsonl and train_pairs.tsv, and --objective "
            "docsplit learns from documents alone",
        ),
        ("papers/corpus.jsonl", None, "{0} is a file; pairs are read from a folder"),
    ],
)
def test_a_corpus_without_pairs_or_without_a_name_of_its_own_is_refused(
    tmp_path: Path, names: str, label: str | None, message: str
) -> None:
    paths = [tmp_path / name for name in names.split()]
    for folder in ("one/papers", "other/papers", "mean"):
        write_corpus(tmp_path / folder)
    write_corpus(tmp_path / "papers", has_pairs=False)
    write_corpus(tmp_path / "citing", suffix="_citation")
    with pytest.raises(TrainingError) as raised:
        read_with_pairs(paths, label=label)
    assert str(raised.value).startswith(message.format(*paths))


def test_a_corpus_without_pairs_is_read_where_none_are_needed(tmp_path: Path) -> None:
    folder = write_corpus(tmp_path / "papers", has_pairs=False)
    assert not read_with_pairs([folder], label=None, needs_pairs=False)[0].pairs


def test_documents_need_a_path_that_exists(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=f"^{tmp_path / 'absent'} does not exist and no file matches it"):
        read_documents([tmp_path / "absent"])
    with pytest.raises(TrainingError, match=r"^no corpus was named; name one folder at least$"):
        read_documents([])


def test_documents_that_cannot_be_read_are_no_corpus(tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_bytes(b"no pdf at all")
    message = rf"^{tmp_path / 'bad.pdf'} holds no readable document \(1 were not read\)$"
    with pytest.raises(TrainingError, match=message):
        read_documents([tmp_path / "bad.pdf"])
