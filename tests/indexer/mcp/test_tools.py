"""What the tools for a language model return, and what they refuse."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import indexer.mcp as module
from engine.errors import EngineError
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from indexer.mcp import Tools
from indexer.reading.reader import DocumentReader


@pytest.fixture
def files(tmp_path: Path, corpus: list[Document]) -> Path:
    (tmp_path / "drafts").mkdir()
    (tmp_path / "drafts/draft.md").write_text(f"# A draft\n\n{corpus[3].text}")
    (tmp_path / "secret.md").write_text("# A secret\n\ncommon1")
    (tmp_path / "drafts/link.md").symlink_to(tmp_path / "secret.md")
    return tmp_path / "drafts"


@pytest.fixture
def tools(index: Index, files: Path) -> Iterator[Tools]:
    with DocumentReader() as reader:
        yield Tools(index, reader, files)


def test_hits_of_a_text_are_those_of_a_search(tools: Tools, index: Index) -> None:
    text = "topic3word1 topic3word2 common1 topic3word9"
    expected = index.search(Document.from_text(text), Request(k=4))
    found = tools.search_text(text, 2, k=4)
    assert [(hit["doc_id"], hit["score"]) for hit in found["hits"]] == [(hit.doc_id, hit.score) for hit in expected]
    assert (found["status"], found["documents_searched"]) == ("certified", 60)


def test_contributions_of_a_hit_sum_to_its_score(tools: Tools) -> None:
    for n_pairs in (0, 1, 100):
        for hit in tools.search_similar("doc003", n_pairs, k=5)["hits"]:
            listed = sum(pair["contribution"] for pair in hit["section_pairs"])
            assert listed + hit["other_contributions"] == pytest.approx(hit["score"], abs=1e-5)


def test_a_section_of_a_hit_can_be_read(tools: Tools, index: Index) -> None:
    hit = tools.search_similar("doc003", 3, k=1)["hits"][0]
    pair = hit["section_pairs"][0]
    read = tools.read_document(hit["doc_id"], pair["section"])
    assert read["heading"] == pair["heading"]
    assert pair["sentence"] in " ".join(read["text"].split())
    section = index.document(hit["doc_id"]).sections[pair["section"] - 1]
    assert read["text"] == index.document(hit["doc_id"]).text[section.start : section.stop]


def test_a_document_lists_its_sections_and_no_other_is_read(tools: Tools, corpus: list[Document]) -> None:
    read = tools.read_document("doc003")
    assert [section["heading"] for section in read["sections"]] == ["part one", "part two", "part three"]
    assert sum(section["characters"] for section in read["sections"]) == len(corpus[3].text)
    assert read["metadata"] == corpus[3].metadata
    with pytest.raises(EngineError, match="'doc003' has sections 1 to 3, not 4"):
        tools.read_document("doc003", 4)
    with pytest.raises(EngineError, match="start is -1; give 0"):
        tools.read_document("doc003", 1, -1)


def test_parts_of_a_long_section_join_to_it(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tools.read_document("doc003", 1)["text"]
    monkeypatch.setattr(module, "MOST_CHARACTERS", 50)
    text, start = "", 0
    while start is not None:
        part = tools.read_document("doc003", 1, start)
        text, start = text + part["text"], part["next_start"]
    assert text == whole and len(whole) > 100


def test_a_file_can_be_the_query_where_there_is_a_folder(tools: Tools, index: Index, corpus: list[Document]) -> None:
    found = tools.search_file("draft.md", 3, k=1)
    assert found["query"] == "A draft" and found["hits"][0]["doc_id"] == "doc003"
    with pytest.raises(EngineError, match="start the server with --files FOLDER"):
        Tools(index, DocumentReader()).search_file("draft.md", 3)


@pytest.mark.parametrize("path", ["../secret.md", "link.md", "/etc/hostname", "no.md", ".", "\0", "a" * 5_000])
def test_files_outside_of_the_folder_are_refused(tools: Tools, path: str) -> None:
    with pytest.raises(EngineError, match="below drafts; name one relative to that folder"):
        tools.search_file(path, 3)


def test_fields_for_filters_are_listed(tools: Tools) -> None:
    about = tools.describe_index()
    assert (about["name"], about["documents"]) == ("corpus.lm", 60)
    assert {"name": "topic", "types": ("number",), "n_documents": 60, "examples": (0, 9)} in about["fields"]
