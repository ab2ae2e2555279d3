"""A minimum per section pair moves small pairs into the rest, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from tests.strict_schema import check


@pytest.mark.slow
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 59), least=st.sampled_from([0.001, 0.02, 0.05, 1.0]))
def test_small_pairs_are_one_part_of_the_sum(index: Index, corpus: list[Document], number: int, least: float) -> None:
    plain = index.search(corpus[number], Request(k=6, with_itself=True))
    found = index.search(corpus[number], Request(k=6, min_pair=least, with_itself=True))
    assert [(hit.doc_id, hit.score) for hit in found] == [(hit.doc_id, hit.score) for hit in plain]
    check(found.to_dict())
    check(found.to_dict(n_pairs=1))
    for hit, whole in zip(found, plain, strict=True):
        assert list(hit.pairs) == [pair for pair in whole.pairs if pair.contribution >= least]
        small = [pair for pair in whole.pairs if pair.contribution < least]
        assert hit.breakdown.n_pairs == len(whole.pairs)
        assert (hit.breakdown.small is None) == (not small)
        if hit.breakdown.small is not None:
            assert hit.breakdown.small.contribution == pytest.approx(sum(pair.contribution for pair in small))
            assert hit.breakdown.small.words == pytest.approx(sum(pair.words for pair in small))
        assert hit.breakdown.score == pytest.approx(hit.score, abs=1e-5)


@pytest.mark.parametrize("least", [0.05, 1.0])
def test_views_show_the_share_of_small_pairs(index: Index, corpus: list[Document], least: float) -> None:
    result = index.search(corpus[3], Request(k=1, min_pair=least, without="doc003", with_itself=True))
    (small,) = [one for one in result.to_dict()["hits"][0]["by_section"]["rest"] if one["kind"] == "small"]
    for view in (str(result), result.to_html(), result._repr_html_()):
        assert "small section pairs" in view and f"{100 * small['share']:.1f} %" in view
