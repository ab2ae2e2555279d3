from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.datasets import DatasetError
from benchmarks.pairs.scorer import Pair
from benchmarks.papers.summary_pairs import learnable, of_citing, of_reference
from benchmarks.scisumm.collection import Scisumm, open_scisumm
from tests.benchmarks.scisumm_folder import N_CITING, TOPICS, write_scisumm


@pytest.fixture
def data(tmp_path: Path) -> Scisumm:
    return open_scisumm("cl2018train", write_scisumm(tmp_path / "data"))


def test_a_summary_belongs_to_its_paper_and_not_to_one_that_cites_it(data: Scisumm) -> None:
    pairs = of_reference(data, np.random.default_rng(0))
    assert [pair for pair in pairs if pair.is_match] == [Pair(f"sum:{topic}", topic, True) for topic in TOPICS]
    assert all(pair.second in data.citing[pair.first] for pair in pairs if not pair.is_match)
    assert [pair.is_match for pair in pairs] == [True, False] * len(TOPICS)


def test_a_summary_belongs_to_papers_that_cite_its_own_and_not_to_others(data: Scisumm) -> None:
    pairs = of_citing(data, np.random.default_rng(0))
    matches = {(pair.first, pair.second) for pair in pairs if pair.is_match}
    assert matches == {(query_id, doc_id) for query_id, own in data.citing.items() for doc_id in own}
    assert all((pair.first, pair.second) not in matches for pair in pairs if not pair.is_match)
    assert len(pairs) == 2 * len(TOPICS) * N_CITING


def test_what_is_asked_about_is_not_learned_from() -> None:
    pairs = [Pair("s", "a", True), Pair("s", "b", False), Pair("t", "c", True), Pair("t", "d", False)]
    assert learnable(pairs, {"b"}, 5) == pairs[2:]
    assert learnable(pairs, {"s"}, 5) == pairs[2:]
    assert learnable(pairs, set(), 1) == pairs[:2]
    with pytest.raises(DatasetError, match="none of 4 pairs of summaries and papers is of a topic that is not asked"):
        learnable(pairs, {"a", "d"}, 5)
