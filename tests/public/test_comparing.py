"""`longmatch.compare` takes texts, files, dicts and documents, with and without an index."""

from __future__ import annotations

from pathlib import Path

import pytest

import longmatch
from engine.errors import QueryError
from tests.fakes import FakeEncoder

FOX = "The old fox hunts at night in the dark."
DOG = "The old fox sleeps at night by the house."


def test_texts_files_dicts_and_documents_are_compared(tmp_path: Path) -> None:
    file = tmp_path / "dog.txt"
    file.write_text(DOG)
    scores = {
        longmatch.compare(FOX, other, encoder=FakeEncoder())[0].score
        for other in (DOG, file, str(file), {"text": DOG}, longmatch.Document.from_text(DOG))
    }
    assert len(scores) == 1 and 0 < scores.pop() < 1


def test_weights_and_skipped_kinds_apply_to_a_comparison() -> None:
    query = {"sections": [{"heading": "Claims", "text": 40 * FOX}, {"heading": "Appendix", "text": 40 * DOG}]}
    found = longmatch.compare(query, DOG, encoder=FakeEncoder(), skip="appendix", weights={"claims": 3})
    assert {pair.query_section for pair in found[0].pairs} == {0}
    with pytest.raises(QueryError, match="the weights are list; pass a dict"):
        longmatch.compare(query, DOG, encoder=FakeEncoder(), weights=["claims"])  # type: ignore[arg-type]


def test_an_index_gives_the_score_of_its_search(tmp_path: Path) -> None:
    records = [{"id": "dog", "text": DOG}, {"id": "sea", "text": "The sea is deep and wide."}]
    with longmatch.build(tmp_path / "x.lm", records, encoder=FakeEncoder()) as index:
        expected = next(hit for hit in index.search(FOX) if hit.doc_id == "dog")
        found = longmatch.compare(FOX, index.document("dog"), index=index)
        assert found[0].score == expected.score and found[0].pairs == expected.pairs
        assert [str(one) for one in found[0].snippets(1)] == [str(one) for one in expected.snippets(1)]
        with pytest.raises(QueryError, match="exclude each other"):
            longmatch.compare(FOX, DOG, index=index, encoder=FakeEncoder())
