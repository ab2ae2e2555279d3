"""The explanation of the model stands beside the parts of the score of a hit, never instead of them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from markupsafe import escape

import longmatch
from engine.encoders.encoder import Encoder
from engine.encoders.loading import load_encoder
from engine.errors import EncoderError, IndexMismatch
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import build
from indexer.cli import main
from tests.encoders.tiny import ENCODERS
from tests.fakes import FakeEncoder, make_document
from tests.strict_schema import check

TEXTS = {
    "fox": [("Fox", "The quick brown fox jumps over the lazy dog. " * 4), ("Model", "A model finds the vector. " * 3)],
    "river": [("River", "The old river bank was dark. " * 5), ("House", "Young house by the river. " * 4)],
    "search": [("Search", "Search finds every score of a query. " * 4), ("", "Red green light.")],
}
CORPUS = [make_document(name, sections, title=f"On {name}") for name, sections in TEXTS.items()]
QUERY = make_document(
    "draft", [("Beginning", "The brown fox runs by the river. " * 4), ("End", "One two three. " * 3)], source=""
)


@pytest.fixture(scope="module", params=["colde fixed", "smith fixed attention"])
def folder(request: pytest.FixtureRequest, bert_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("explained")
    ENCODERS[request.param](bert_folder).save_pretrained(made / "encoder")
    build(made / "x.lm", CORPUS, encoder=load_encoder(str(made / "encoder"), device="cpu"), encode="all")
    return made / "x.lm"


@pytest.fixture
def explained(folder: Path) -> Iterator[Index]:
    with Index.open(folder, device="cpu") as opened:
        yield opened


def test_hits_have_the_numbers_of_the_encoder_for_the_stored_texts(explained: Index) -> None:
    result = explained.search(QUERY, Request(k=2, explain="model"))
    targets = [document for hit in result for document in CORPUS if document.doc_id == hit.doc_id]
    for hit, expected in zip(result, explained.encoder.explain(QUERY, targets), strict=True):
        np.testing.assert_allclose(hit.model.pairs, expected.pairs, atol=1e-6)
        assert hit.model.target_chunks == expected.target_chunks


def test_an_explanation_of_the_model_changes_no_rank_score_or_part(explained: Index) -> None:
    plain, found = explained.search(QUERY), explained.search(QUERY, Request(explain="model"))
    assert all(hit.model is None for hit in plain)
    assert [replace(hit, model=None) for hit in found] == list(plain)


def test_an_indexed_document_is_explained_from_its_stored_text(explained: Index) -> None:
    (hit,) = explained.search("fox", Request(k=1, explain="model"))
    by_name = {document.doc_id: document for document in CORPUS}
    (expected,) = explained.encoder.explain(by_name["fox"], [by_name[hit.doc_id]])
    np.testing.assert_allclose(hit.model.pairs, expected.pairs, atol=1e-6)


def test_the_encoder_reads_the_hits_of_the_page_alone(explained: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[list[str]] = []
    own = explained.encoder.explain

    def seen(query: Document, targets: list[Document]) -> object:
        read.append([target.doc_id for target in targets])
        return own(query, targets)

    monkeypatch.setattr(explained.encoder, "explain", seen)
    (hit,) = explained.search(QUERY, Request(k=1, offset=1, explain="model"))
    assert read == [[hit.doc_id]]


def test_json_has_the_numbers_with_spans_and_follows_the_schema(explained: Index) -> None:
    result = explained.search(QUERY, Request(k=2, explain="model"))
    values = check(json.loads(json.dumps(result.to_dict())))
    assert values["provenance"]["parameters"]["explain"] == "model"
    for hit, given in zip(result, values["hits"], strict=True):
        model = given["model"]
        assert model["pairs"] == hit.model.pairs.tolist()
        assert sum(map(sum, model["pairs"])) == pytest.approx(model["total"], abs=1e-5)
        for side, document in (("query", QUERY), ("target", hit.document)):
            sections = model[f"{side}_sections"]
            assert [one["heading"] for one in sections] == [one.heading for one in document.sections]
            assert [(one["start"], one["end"]) for one in sections] == [(s.start, s.stop) for s in document.sections]
            by_section = [0.0] * len(sections)
            for chunk in model[f"{side}_chunks"]:
                by_section[chunk["section"]] += chunk["weight"]
                assert sections[chunk["section"]]["start"] <= chunk["start"] < chunk["end"] <= len(document.text)
            assert by_section == pytest.approx([one["weight"] for one in sections], abs=1e-6)
    assert "model" not in explained.search(QUERY, Request(k=1)).to_dict()["hits"][0]


def test_table_and_report_show_the_pairs_beside_the_evidence(explained: Index) -> None:
    result = explained.search(QUERY, Request(k=1, explain="model"))
    model = result[0].model
    i, j = np.unravel_index(int(model.pairs.argmax()), model.pairs.shape)
    heading = result[0].document.sections[int(j)].heading
    table, report = str(result), result.to_html()
    assert f"by the model alone ({model.encoder}): {model.total:.4f} over all section pairs" in table
    assert f"     {model.pairs.max():.4f}  {QUERY.sections[int(i)].heading} -> {heading}\n" in table + "\n"
    assert str(escape(model.note)) in report and f"{model.total:.4f}" in report
    plain = explained.search(QUERY, Request(k=1))
    assert "by the model" not in str(plain) and "By the model" not in plain.to_html()
    assert table.startswith(str(plain).partition("\n\n")[0])  # query and counts


def test_the_public_index_takes_the_argument(folder: Path) -> None:
    with longmatch.open(folder, device="cpu") as index:
        assert index.search(QUERY, k=1, explain="model")[0].model is not None
        assert index.search([QUERY], k=1, explain="model")[0][0].model is not None
        assert index.search_id("fox", k=1, explain="model")[0].model is not None
        assert index.search_id("fox", k=1)[0].model is None


def test_the_command_line_prints_and_writes_the_explanation(folder: Path) -> None:
    given = ["query", str(folder), "--id", "fox", "-k", "1", "--explain", "model"]
    shown = CliRunner().invoke(main, given, catch_exceptions=False)
    assert "by the model alone (" in shown.stdout
    written = CliRunner().invoke(main, [*given, "--format", "json"], catch_exceptions=False)
    assert check(json.loads(written.stdout)["results"][0])["hits"][0]["model"]["query_sections"][0]["heading"] == "Fox"


class Unread(FakeEncoder):
    """Refuses to encode."""

    def encode(self, documents: object) -> list[object]:  # type: ignore[override]
        raise AssertionError("a document was encoded before the request was refused")


def test_an_encoder_without_an_explanation_is_refused_before_it_encodes(built_folder: Path) -> None:
    encoder: Encoder = Unread()
    with Index.open(built_folder, encoder=encoder) as index:
        for search in (
            lambda: index.search(QUERY, Request(explain="model")),
            lambda: index.search("doc003", Request(explain="model")),
        ):
            with pytest.raises(EncoderError, match=r"^encoder 'fake' computes nothing by itself .* colde and smith do"):
                search()


def test_an_index_of_words_alone_has_no_encoder_to_explain(tmp_path: Path) -> None:
    build(tmp_path / "words.lm", CORPUS, encode="none")
    with Index.open(tmp_path / "words.lm") as index:
        with pytest.raises(IndexMismatch, match="holds words alone; add vectors: longmatch index"):
            index.search(QUERY, Request(explain="model"))
        assert len(index.search(QUERY, Request(k=1))) == 1
