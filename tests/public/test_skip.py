"""Sections of the kinds that a search skips take no part in the score."""

from __future__ import annotations

from pathlib import Path

import pytest

import longmatch
from tests.text.test_section_kinds import BODY, CITED

OTHER = "Bees dance to show where flowers are. A colony counts on thousands of foragers. Honey keeps it alive. " * 4


def paper(name: str, body: str, references: str) -> dict[str, object]:
    sections = [{"heading": "1 Introduction", "text": body}, {"heading": "References", "text": references}]
    return {"id": name, "title": name, "sections": sections}


@pytest.fixture
def index(tmp_path: Path) -> longmatch.Index:
    papers = [paper("cites the same", OTHER, CITED), paper("says the same", BODY, "None. " * 9)]
    papers += [
        paper(f"other {n}", f"Report {n} on roads of county {n}. Asphalt number {n} is new.", "") for n in range(8)
    ]
    return longmatch.build(tmp_path / "x.lm", papers, encode="none", progress=False)


def test_references_of_a_query_take_no_part_in_the_score(index: longmatch.Index) -> None:
    query = paper("draft", BODY, CITED)
    before = {hit.doc_id: hit for hit in index.search(query)}
    after = {hit.doc_id: hit for hit in index.search(query, skip="references")}
    assert before["cites the same"].score > 0.1
    assert "cites the same" not in after or after["cites the same"].score < before["cites the same"].score / 4
    assert after["says the same"].score > before["says the same"].score
    for hit in after.values():
        assert sum(pair.contribution for pair in hit.pairs) == pytest.approx(hit.score, abs=1e-5)
        assert all(pair.query_section == 0 for pair in hit.pairs)


def test_pairs_with_references_come_after_those_of_the_body(index: longmatch.Index) -> None:
    result = index.search(paper("draft", BODY + " " + OTHER, CITED))
    (hit,) = [hit for hit in result if hit.doc_id == "cites the same"]
    sections = [(pair.query_section, pair.target_section) for pair in hit.pairs]
    assert sections[0] == (0, 0) and (1, 1) in sections
    by_strength = sorted(hit.pairs, key=lambda pair: -pair.contribution)
    assert by_strength[0].query_section == 1  # the references carry more
