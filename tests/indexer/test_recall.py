"""The measured recall is that of single searches, and the chosen nprobe is the least that is enough."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import indexer.generation.generations as recall_module
from engine.errors import RecallTooLow
from engine.index import Index
from engine.scoring.evidence import Scoring
from engine.search.partition import Selection
from engine.search.query import stored_queries
from engine.search.request import Request
from engine.search.searcher import Searcher
from engine.store.snapshot import IndexSnapshot, OpenGeneration
from indexer.building.builder import build
from indexer.generation.generations import RECALL_TARGET, RecallSample, tune
from tests.fakes import FakeEncoder, make_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recall") / "x.lm"
    build(folder, make_corpus(150), encoder=FakeEncoder(), factory="IVF32,Flat", recall_floor=0.0)
    return folder


@pytest.fixture
def candidate(folder: Path) -> Iterator[OpenGeneration]:
    with IndexSnapshot(folder) as snapshot:
        assert snapshot.generation is not None
        yield snapshot.generation


@pytest.fixture
def by_lists_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither words nor document vectors name candidates, so that a poor list costs a hit."""
    chunks = partial(Scoring, word_weight=0, pair_weight=0)
    monkeypatch.setattr("engine.search.searcher.Scoring", chunks)
    monkeypatch.setattr("engine.search.partition.TIERS", ((10, 14),))


def sample_of(folder: Path, n_queries: int = 20) -> RecallSample:
    return RecallSample(IndexSnapshot(folder), np.random.default_rng(0), n_queries=n_queries)


@pytest.mark.slow
@pytest.mark.parametrize("nprobe", [1, 4, 32])
def test_recall_is_that_of_searches_one_by_one(folder: Path, candidate: OpenGeneration, nprobe: int) -> None:
    candidate.ann.nprobe = nprobe
    with Index.open(folder, encoder=FakeEncoder()) as index:
        names = index.snapshot.doc_ids()
        chosen = np.sort(np.random.default_rng(0).choice(150, 20, replace=False))
        index.snapshot.generation.ann.nprobe = nprobe
        shares = []
        for name in (names[position] for position in chosen):
            exact, found = (
                {hit.doc_id for hit in index.search(name, Request(exact=one)).hits} for one in (True, False)
            )
            shares.append(len(exact & found) / len(exact))
    assert sample_of(folder).recall(candidate) == pytest.approx(np.mean(shares))


def test_one_pass_for_many_queries_ranks_as_exact_searches_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.search.searcher.PASS_CHUNKS", 60)  # a pass for every six queries or so
    with Index.open(folder, encoder=FakeEncoder()) as index:
        names = index.snapshot.doc_ids()
        places = np.arange(0, len(names), 7)
        queries = [*zip(places.tolist(), stored_queries(index.snapshot, places), strict=True)]
        together = Searcher(index.snapshot, scan_chunks=200).tops(queries, Selection(exact=True), k=10)
        for place, (positions, _) in zip(places, together, strict=True):
            alone = [hit.doc_id for hit in index.search(names[place], Request(exact=True)).hits]
            assert [names[position] for position in positions] == alone


@pytest.mark.slow
@pytest.mark.usefixtures("by_lists_alone")
def test_the_least_nprobe_is_found_between_two_powers(folder: Path, candidate: OpenGeneration) -> None:
    sample, logged = sample_of(folder), list[str]()
    recall = tune(sample, candidate, 0.5, logged.append, first_nprobe=1)
    chosen = candidate.ann.nprobe
    assert recall == sample.recall(candidate) >= RECALL_TARGET
    candidate.ann.nprobe = chosen - max(1, chosen // 8)
    assert sample.recall(candidate) < RECALL_TARGET
    tried = [int(line.split()[1].rstrip(":")) for line in logged]
    assert tried[:3] == [1, 2, 4] and len(tried) < 10


@pytest.mark.slow
@pytest.mark.usefixtures("by_lists_alone")
def test_a_recall_within_the_slack_of_the_target_is_accepted(folder: Path, candidate: OpenGeneration) -> None:
    sample = sample_of(folder)
    tune(sample, candidate, 0.5, lambda _: None, first_nprobe=1)
    enough = candidate.ann.nprobe
    candidate.ann.nprobe = enough // 2
    missing = RECALL_TARGET - sample.recall(candidate)
    assert missing > 0
    for slack, nprobe in ((missing + 1e-6, enough // 2), (0.0, enough)):
        tune(sample, candidate, 0.5, lambda _: None, enough // 2, slack)
        assert candidate.ann.nprobe == nprobe


def test_where_no_nprobe_reaches_the_target_the_least_of_the_best_is_kept(
    folder: Path, candidate: OpenGeneration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "RECALL_TARGET", 1.5)
    logged: list[str] = []
    recall = tune(sample_of(folder), candidate, 0.5, logged.append, first_nprobe=1)
    recalls = {int(line.split()[1].rstrip(":")): float(line.split("recall@10 ")[1].split()[0]) for line in logged}
    assert candidate.ann.nprobe == min(one for one, found in recalls.items() if found >= max(recalls.values()) - 0.001)
    assert recall == pytest.approx(recalls[candidate.ann.nprobe], abs=0.0005)


def test_two_doublings_that_bring_nothing_end_the_search(
    folder: Path, candidate: OpenGeneration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall_module, "RECALL_TARGET", 1.5)
    monkeypatch.setattr(recall_module, "_NO_GAIN", 1.0)
    logged: list[str] = []
    tune(sample_of(folder), candidate, 0.1, logged.append, first_nprobe=2)
    assert [line.split()[1] for line in logged] == ["2:", "4:", "8:"]
    assert candidate.ann.nprobe == 2


def test_a_floor_out_of_reach_is_refused_after_all_lists(folder: Path, candidate: OpenGeneration) -> None:
    logged: list[str] = []
    with pytest.raises(RecallTooLow, match=r"under the floor of 1\.5; nothing was published"):
        tune(sample_of(folder), candidate, 1.5, logged.append)
    assert logged[-1].startswith("nprobe 32: document recall@10 1.000 over 20 queries")
