"""Differences between two results: ranks, scores, and the section pairs behind them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from engine.index import Index
from engine.replay import Cause, compare_results, differences_text
from engine.search.request import Request
from engine.text.document import Document


@pytest.fixture
def values(index: Index, corpus: list[Document]) -> dict[str, Any]:
    return index.search(corpus[3], Request(k=3)).to_dict()


def test_a_result_equals_itself_listed_in_full_or_not(index: Index, corpus: list[Document]) -> None:
    result = index.search(corpus[3], Request(k=3))
    for n_pairs in (0, 1, None):
        found = compare_results(result.to_dict(n_pairs=n_pairs), result.to_dict(n_pairs=None))
        assert found.is_equal and found.reasons == ()
    assert differences_text(found) == f"equal: {corpus[3].title}: 3 hits with the same ranks, scores and parts"


def test_the_section_pair_that_changed_is_the_cause(values: dict[str, Any]) -> None:
    other = copy.deepcopy(values)
    part = other["hits"][1]["parts"][0]
    before = part["contribution"]
    part["contribution"] += 0.01
    other["hits"][1]["score"] += 0.01
    (change,) = compare_results(values, other).changes
    names = [part[f"{side}_section"]["heading"] for side in ("query", "target")]
    assert (change.doc_id, change.rank_before, change.rank_after) == (other["hits"][1]["id"], 2, 2)
    assert change.causes == (Cause(names[0], names[1], before, pytest.approx(before + 0.01)),)


def test_pairs_that_were_not_listed_are_compared_as_a_sum(index: Index, corpus: list[Document]) -> None:
    result = index.search(corpus[3], Request(k=1))
    other = result.to_dict()
    other["hits"][0]["parts"][1]["contribution"] += 0.02
    (change,) = compare_results(result.to_dict(n_pairs=1), other).changes
    (cause,) = change.causes
    assert (cause.query_section, cause.after - cause.before) == ("", pytest.approx(0.02))
    assert "+0.0200  other section pairs" in differences_text(compare_results(result.to_dict(n_pairs=1), other))


def test_unlisted_sections_of_the_same_heading_are_no_difference(index: Index, corpus: list[Document]) -> None:
    result = index.search(corpus[3], Request(k=2))
    short, full = result.to_dict(n_pairs=1), result.to_dict()
    for values in (short, full):
        for part in (part for hit in values["hits"] for part in hit["parts"] if part["query_section"]):
            part["query_section"]["heading"] = part["target_section"]["heading"] = "Same"
    assert compare_results(short, full).is_equal


def test_hits_that_came_and_went_are_named_with_their_sections(values: dict[str, Any]) -> None:
    other = copy.deepcopy(values)
    gone = other["hits"].pop(1)
    other["hits"][1]["rank"] = 2
    found = compare_results(values, other, is_there=lambda doc_id: doc_id != gone["id"])
    moved, removed = found.changes
    assert (moved.rank_before, moved.rank_after, moved.note) == (3, 2, "same score, moved by other hits")
    assert (removed.doc_id, removed.rank_after, removed.note) == (gone["id"], None, "removed from the index")
    assert removed.causes[0].before == max(part["contribution"] for part in gone["parts"])
    added = compare_results(other, values, was_there=lambda doc_id: False).changes
    assert [change.note for change in added if change.rank_before is None] == ["added to the index"]


def test_changed_content_and_surroundings_are_named(values: dict[str, Any], tmp_path: Path) -> None:
    other = copy.deepcopy(values)
    other["hits"][0] |= {"content": "0" * 64, "score": 0.5}
    other["query"]["content"] = "0" * 64
    other["reference"] = 7
    other["provenance"]["encoder"]["fingerprint"] = "e" * 32
    other["provenance"]["index"] |= {"generation": 9, "n_documents": 61, "fingerprint": "d" * 32}
    other["provenance"]["parameters"]["k"] = 4
    found = compare_results(values, other)
    assert found.changes[0].note == "content changed"
    assert found.reasons == (
        "the query has another content",
        f"reference: {values['reference']}, now 7",
        f"encoder: fake ({'f' * 12}), now fake ({'e' * 12})",
        "documents: 60, now 61",
        "generation: 1, now 9",
        f"index: fingerprint {values['provenance']['index']['fingerprint'][:12]}, now {'d' * 12}",
        "k: 3, now 4",
    )
