"""German and Japanese indexes: the language is detected, and inflected or unspaced words are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import IndexMismatch
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.store.snapshot import IndexSnapshot
from indexer.building.builder import build
from indexer.building.corpus import read_corpus
from tests.fakes import FakeEncoder, make_document

TEXTS = Path(__file__).parent / "texts"
WORDS = Scoring(chunk_weight=0)


def built(tmp_path: Path, texts: str, **options: str) -> Path:
    folder = tmp_path / "x.lm"
    build(folder, read_corpus([str(TEXTS / f"{texts}.jsonl")]), encoder=FakeEncoder(), **options)  # type: ignore[arg-type]
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "query", "doc_id", "term"),
    [
        ("german", "Sklaven und Leibeigene: jede Form des Sklavenhandels", "german-04", "Sklavenhandel"),
        ("japanese", "奴隷売買は禁止する", "japanese-04", "奴隷"),
    ],
)
def test_words_find_the_article_in_its_language(
    tmp_path: Path, language: str, query: str, doc_id: str, term: str
) -> None:
    with Index.open(built(tmp_path, language), encoder=FakeEncoder()) as index:
        assert index.snapshot.language == language
        hit = index.search(make_document("q", query), Request(k=1, scoring=WORDS)).hits[0]
        assert hit.doc_id == doc_id
        assert any(term in part.term for part in hit.breakdown.terms)
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-6)


def test_a_given_language_is_kept_and_another_one_is_refused(tmp_path: Path) -> None:
    folder = built(tmp_path, "german", language="none")
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.language == "none"
    with pytest.raises(IndexMismatch, match="segments words by language 'none', not 'german'"):
        built(tmp_path, "german", language="german")
