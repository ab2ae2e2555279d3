"""The public index: a life of searches and changes, and the first tries of a newcomer."""

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import longmatch
from engine.errors import DocumentError, EncoderError, IndexBusy, IndexDamaged, IndexMismatch, QueryError
from engine.index import Index as EngineIndex
from engine.search.request import parameters
from engine.store.catalog import has_log
from engine.store.writer import Writer
from engine.text.document import Document
from indexer.building.rewriting import partition
from tests.fakes import FakeEncoder

RECORDS: list[dict[str, Any]] = [
    {"id": "fox", "text": "The fox hunts at night.", "year": 2001, "tags": ["wild"]},
    {"id": "dog", "text": "A dog sleeps all day.", "year": 2002, "tags": ["tame"]},
    {"id": "cat", "text": "A cat sleeps at night.", "year": 2003},
]


@pytest.fixture
def index(tmp_path: Path) -> Iterator[longmatch.Index]:
    with longmatch.build(tmp_path / "x.lm", RECORDS, encoder=FakeEncoder()) as opened:
        yield opened


def test_a_query_may_be_a_text_a_file_a_dict_or_a_document(index: longmatch.Index, tmp_path: Path) -> None:
    text = "The fox hunts at night."
    (tmp_path / "query.txt").write_text(text)
    file = tmp_path / "query.txt"
    queries = [text, file, str(file), {"text": text}, Document("q", "t", text, ()), Document.from_text(text)]
    results = [index.search(query, with_itself=True) for query in queries]
    assert all(result[0].doc_id == "fox" for result in results)
    assert len({round(result[0].score, 6) for result in results}) == 1
    assert [result.query.source for result in results] == ["", str(file), str(file), "", "", ""]


def test_a_list_of_queries_gives_a_list_of_results(index: longmatch.Index) -> None:
    results = index.search(["The fox hunts", {"text": "A dog sleeps all"}], k=1)
    assert [result[0].doc_id for result in results] == ["fox", "dog"]
    assert index.search(("The fox hunts",))[0][0].doc_id == "fox"
    assert index.search([]) == []


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        (5, QueryError, "the query is int; search with a text, a path, a dict with 'text', a Document, or a list"),
        (None, QueryError, "the query is NoneType; search with"),
        (b"bytes", QueryError, "the query is bytes; search with"),
        ([["nested"]], QueryError, "the query is list; search with"),
        ("", DocumentError, "it holds no text"),
        (" \n ", DocumentError, "it holds no text"),
        ({}, DocumentError, "no field 'text' among []"),
        ("draft.pdf", QueryError, "draft.pdf names a file, and "),
        ("./folder", QueryError, "folder is a folder; search with one of its files"),
        (Path("draft.pdf"), QueryError, "draft.pdf names a file, and "),
        (Path("folder"), QueryError, "folder is a folder; search with one of its files"),
        (Path("many.jsonl"), DocumentError, "many.jsonl holds several documents, not one; pass one record"),
        (Path("none.jsonl"), DocumentError, "none.jsonl: it holds no text"),
        ("bad.pdf", DocumentError, "bad.pdf: "),
        ("notes.log", DocumentError, "notes.log: its format is not known by its name"),
    ],
)
def test_a_query_that_cannot_be_used_raises_an_error_with_the_reason(
    index: longmatch.Index,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: Any,  # noqa: ANN401
    error: type,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "many.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n')
    for name in ("none.jsonl", "bad.pdf", "notes.log"):
        (tmp_path / name).write_text("")
    with pytest.raises(error) as raised:
        index.search(query)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"without": "fix"}, "no document 'fix' among 3 in "),
        ({"where": {"year": {"=>": 1}}}, "filter {'year': {'=>': 1}}: '=>' at 'year' is not an operator"),
    ],
)
def test_an_argument_that_cannot_be_used_raises_an_error_with_the_reason(
    index: longmatch.Index, options: dict[str, Any], message: str
) -> None:
    for search in (index.search, index.search_id):
        with pytest.raises(QueryError) as raised:
            search("fox", **options)
        assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    ("without", "found"),
    [(None, {"fox", "dog", "cat"}), ((), {"fox", "dog", "cat"}), ("fox", {"dog", "cat"}), (["fox", "cat"], {"dog"})],
)
def test_named_documents_are_left_out(index: longmatch.Index, without: Any, found: set[str]) -> None:  # noqa: ANN401
    result = index.search("The fox A dog A cat sleeps", without=without)
    assert ({hit.doc_id for hit in result}, result.n_searched) == (found, len(found))
    assert index.search_id("dog", without=without).n_searched == len(found - {"dog"})


def test_filters_may_be_dicts_or_texts(index: longmatch.Index) -> None:
    def found(where: Any) -> set[str]:  # noqa: ANN401
        return {hit.doc_id for hit in index.search("The fox A dog A cat sleeps", where=where)}

    assert found({}) == found(None) == {"fox", "dog", "cat"}
    assert found({"year": {">=": 2002}}) == found("year >= 2002") == {"dog", "cat"}
    assert found({"tags": ["wild", "none"]}) == {"fox"}
    assert found({"year": np.int64(2003)}) == {"cat"}


def test_new_documents_are_found_at_once(index: longmatch.Index) -> None:
    report = index.add([{"id": "owl", "text": "An owl hunts at night too."}, RECORDS[0]])
    assert (report.n_added, report.n_unchanged, index.report) == (1, 1, report)
    assert index.search("An owl hunts")[0].doc_id == "owl"
    assert list(index) == ["fox", "dog", "cat", "owl"]


def test_adding_replaces_nothing(index: longmatch.Index) -> None:
    with pytest.warns(UserWarning, match="doc_id 'fox' is in the index with another content; replace it: index.update"):
        report = index.add([{"id": "fox", "text": "Another fox."}, {"id": "owl", "text": "An owl."}])
    assert (report.n_added, report.n_replaced, len(report.failures)) == (1, 0, 1)
    assert index.document("fox").text == "The fox hunts at night."


def test_updating_replaces_and_adds_nothing(index: longmatch.Index) -> None:
    with pytest.warns(UserWarning, match="doc_id 'owl' is not in the index; add it: index.add") as warned:
        report = index.update([{"id": "fox", "text": "Another fox."}, {"id": "owl", "text": "An owl."}])
    assert Path(warned[0].filename).name == "test_index.py"
    assert (report.n_added, report.n_replaced) == (0, 1)
    assert index.document("fox").text == "Another fox."
    assert "owl" not in index


def test_updating_metadata_encodes_nothing(index: longmatch.Index) -> None:
    report = index.update(RECORDS[0] | {"year": 1999})
    assert (report.n_unchanged, report.n_encoded) == (1, 0)
    assert index.document("fox").metadata["year"] == 1999


def test_an_index_can_be_searched_after_a_failed_addition(index: longmatch.Index) -> None:
    with pytest.raises(DocumentError, match="none of 1 documents could be indexed; the first: fox: doc_id 'fox' is in"):
        index.add({"id": "fox", "text": "Another fox."})
    with pytest.raises(DocumentError, match="the source is int"):
        index.add(5)
    assert index.search("The fox hunts")[0].doc_id == "fox"


def test_a_removed_document_is_gone_at_once_but_nothing_where_one_doc_id_is_unknown(index: longmatch.Index) -> None:
    with pytest.raises(QueryError, match=r"no document 'fo' among 3 .* did you mean 'fox'"):
        index.remove(["dog", "fo"])
    with pytest.raises(QueryError, match=r"is Hit, no doc_id; of a hit or document, pass \.doc_id"):
        index.remove(index.search("dog")[:1])
    assert len(index) == 3
    assert index.remove("fox") == 1
    assert index.remove(["dog", "cat", "dog"]) == 2
    assert list(index) == []
    assert len(index.search("The fox hunts")) == 0


@pytest.mark.slow
def test_many_documents_are_removed_together(tmp_path: Path) -> None:
    records = ({"id": number, "text": f"word{number}"} for number in range(1_500))
    with longmatch.build(tmp_path / "many.lm", records, encode="none") as index:
        assert index.remove(str(number) for number in range(1_400)) == 1_400
        assert list(index) == [str(number) for number in range(1_400, 1_500)]


def test_an_index_of_words_stays_without_vectors(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="encode is 'words'; it must be one of: none, later, all"):
        longmatch.build(tmp_path / "words.lm", RECORDS[:2], encode=cast("Any", "words"))
    with longmatch.build(tmp_path / "words.lm", RECORDS[:2], encode="none") as index:
        index.add(RECORDS[2:])
        assert not index.opened.snapshot.width
        assert index.search("cat")[0].doc_id == "cat"
        assert repr(index) == f"Index({str(tmp_path / 'words.lm')!r}, 3 documents, words alone)"


def test_the_log_is_empty_after_a_change(index: longmatch.Index) -> None:
    index.add({"id": "owl", "text": "An owl."})
    assert not has_log(index.path)
    index.remove("owl")
    assert not has_log(index.path)


def test_a_busy_index_refuses_changes_and_can_be_searched(index: longmatch.Index) -> None:
    with Writer(index.path):
        for change in (lambda: index.add({"id": "owl", "text": "An owl."}), lambda: index.remove("fox")):
            with pytest.raises(IndexBusy):
                change()
    assert index.search("The fox hunts")[0].doc_id == "fox"


def test_an_index_has_a_length_and_contains_its_doc_ids(index: longmatch.Index) -> None:
    assert (len(index), "fox" in index, "owl" in index, 5 in index) == (3, True, False, False)
    assert list(index) == ["fox", "dog", "cat"]
    assert repr(index) == f"Index({str(index.path)!r}, 3 documents, fake)"


def test_documents_without_vectors_are_counted(tmp_path: Path) -> None:
    with longmatch.build(tmp_path / "x.lm", RECORDS, encoder=FakeEncoder()) as index:
        index.add([{"id": "owl", "text": "An owl."}], encode="none")
        assert "4 documents, 1 without vectors yet, fake" in repr(index)


def test_a_closed_index_is_neither_searched_nor_refreshed(index: longmatch.Index) -> None:
    index.close()
    index.close()
    assert repr(index) == f"Index({str(index.path)!r}, closed)"
    with pytest.raises(QueryError, match=r"the index is closed; open it again: longmatch.open"):
        index.search("fox")
    index.close()
    with pytest.raises(QueryError, match="the index is closed"):
        index.refresh()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no.lm", "no.lm does not exist; make one: longmatch.build('no.lm', SOURCE)"),
        (".", ". holds no index; make one: longmatch.build('.', SOURCE)"),
        (5, "5 is not a path of an index; pass the folder first, for example 'papers.lm'"),
    ],
)
def test_a_path_without_an_index_is_not_opened(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    path: Any,  # noqa: ANN401
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IndexMismatch) as raised:
        longmatch.open(path)
    assert str(raised.value) == message


def test_an_encoder_is_checked_when_the_index_is_opened(built_folder: Path) -> None:
    with pytest.raises(IndexMismatch):
        longmatch.open(built_folder, encoder=FakeEncoder(fingerprint="0" * 32))
    with pytest.raises(EncoderError):
        longmatch.open(built_folder, encoder="no_such_folder/of_an_encoder")


def test_refresh_shows_what_another_process_committed(index: longmatch.Index, tmp_path: Path) -> None:
    with longmatch.open(tmp_path / "x.lm", encoder=FakeEncoder()) as reader:
        assert not reader.refresh()
        index.remove("cat")
        assert list(reader) == ["fox", "dog", "cat"]
        assert reader.refresh() and list(reader) == ["fox", "dog"]
        assert not reader.refresh()
        index.update([{"id": "dog", "text": "A dog sleeps all day.", "year": 2010}])
        assert reader.refresh() and reader.document("dog").metadata["year"] == 2010


def test_refresh_follows_partitions(index: longmatch.Index, tmp_path: Path) -> None:
    partition(tmp_path / "x.lm", tmp_path / "parts.lm", 2)
    with longmatch.open(tmp_path / "parts.lm", encoder=FakeEncoder()) as reader:
        assert not reader.refresh()
        with longmatch.open(tmp_path / "parts.lm", encoder=FakeEncoder()) as writer:
            writer.update(RECORDS[1] | {"year": 2010})  # as many documents and chunks as before
        assert reader.refresh() and reader.document("dog").metadata["year"] == 2010


def test_refresh_keeps_the_old_state_where_the_new_one_cannot_be_opened(index: longmatch.Index, tmp_path: Path) -> None:
    with longmatch.open(tmp_path / "x.lm", encoder=FakeEncoder()) as reader:
        index.remove("cat")
        index.close()
        (tmp_path / "damaged").write_bytes(b"garbage" * 1000)
        (tmp_path / "damaged").replace(tmp_path / "x.lm" / "catalog.sqlite")
        with pytest.raises(IndexDamaged, match=r"catalog\.sqlite"):
            reader.refresh()
        assert list(reader) == ["fox", "dog", "cat"]


_EIPS = Path(__file__).resolve().parents[2] / "demo/corpus/eips"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven documents, indexed by words, and another one to search with."""
    folder = tmp_path_factory.mktemp("tries")
    (folder / "papers").mkdir()
    for paper in sorted(_EIPS.glob("*.md")):
        shutil.copy(paper, folder / "papers")
    shutil.move(folder / "papers/eip-2930.md", folder / "draft.md")
    longmatch.build(folder / "papers.lm", folder / "papers", encode="none")
    return folder


ROOT = Path(__file__).parents[2]
HEAVY = ("numpy", "torch", "faiss", "sqlalchemy", "click", "engine")


def run(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_importing_loads_nothing_heavy() -> None:
    assert run("-c", f"import sys, longmatch; print([name for name in {HEAVY} if name in sys.modules])") == "[]\n"


@pytest.mark.slow
def test_opening_and_searching_by_id_loads_neither_torch_nor_writers(built_folder: Path) -> None:
    code = f"import sys, longmatch; longmatch.open({str(built_folder)!r}).search_id('doc003'); "
    assert (
        run("-c", code + "print({'torch', 'sqlalchemy', 'indexer.building.builder'} & set(sys.modules))") == "set()\n"
    )


def test_python_m_longmatch_is_the_command() -> None:
    assert run("-m", "longmatch", "--version").startswith("longmatch, version")


PUBLIC = [longmatch.Index.open, longmatch.Index.search, longmatch.Index.add, longmatch.Index.remove, longmatch.build]


def described(function: Callable[..., object]) -> dict[str, str]:
    """The first line of what a docstring says on each argument."""
    arguments = re.search(r"Args:\n(.*?)(?:\n\n|\Z)", inspect.getdoc(function) or "", re.DOTALL)
    return dict(re.findall(r"^ {4}(\w+): (.*)$", arguments.group(1), re.MULTILINE)) if arguments else {}


def named(function: Callable[..., object]) -> list[str]:
    """The arguments of a function; in place of `options` those that a search has."""
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "options")]
    takes_options = "options" in inspect.signature(function).parameters
    return names + [one.name for one in parameters() if takes_options]


@pytest.mark.parametrize("function", PUBLIC, ids=lambda function: function.__qualname__)
def test_every_argument_is_described_in_order(function: Callable[..., object]) -> None:
    assert list(described(function)) == named(function)


def test_no_description_is_written_twice() -> None:
    repeated = described(longmatch.Index.open).items() & described(EngineIndex.open).items()
    assert {argument for argument, _ in repeated} <= {"path"}
