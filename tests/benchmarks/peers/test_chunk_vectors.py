"""Chunks of peers, their best matches, and stages of a measurement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.isolation import Percentiles
from benchmarks.peers import chunk_vectors as grouping
from benchmarks.peers import stages
from benchmarks.peers.chunk_vectors import DEPTH, Chunker, deepened, grouped, summed
from benchmarks.peers.peer import PeerConfig
from benchmarks.peers.stages import WARM_UP, build, search
from benchmarks.systems import Ranking, Settings
from engine.encoders.tokenizer import Tokenizer
from engine.text.document import Document
from tests.fakes import make_document


def n_tokens(config: PeerConfig, text: str) -> int:
    ((ids, _),) = Tokenizer(config.backbone).tokenize([text])
    return len(ids)


def test_chunks_lie_one_after_another_and_all_but_the_last_are_full(config: PeerConfig) -> None:
    text = " ".join(["dog", "fox.", "house"] * 15)
    chunks = Chunker(replace(config, window_tokens=11)).cut(text)
    assert " ".join(chunks).replace(" ", "") == text.replace(" ", "")
    tokens = [n_tokens(config, chunk) for chunk in chunks]
    assert set(tokens[:-1]) == {9}  # 11 with [CLS] and [SEP]
    assert 0 < tokens[-1] <= 9


def test_only_a_word_that_is_longer_than_a_window_is_cut(config: PeerConfig) -> None:
    text = " ".join(["xylophone", "dog"] * 6)  # nine tokens, and one
    assert Chunker(replace(config, window_tokens=14)).cut(text) == ["xylophone dog"] * 6
    assert Chunker(replace(config, window_tokens=5)).cut("qqqqqqqq") == ["qqq", "qqq", "qq"]


def test_a_chunk_is_no_longer_than_the_backbone_reads(config: PeerConfig) -> None:
    assert Chunker(replace(config, window_tokens=4096)).max_tokens == 48
    assert Chunker(replace(config, window_tokens=16)).max_tokens == 16


LISTS = [[("a", 0.9), ("b", 0.8), ("a", 0.7)], [("b", 0.6), ("c", 0.95)], []]


def test_a_target_has_the_score_of_its_best_pair_and_the_query_is_left_out_before_the_cut() -> None:
    assert grouped(LISTS, "", 10) == [("c", 0.95), ("a", 0.9), ("b", 0.8)]
    assert grouped(LISTS, "c", 1) == [("a", 0.9)]
    assert grouped([[("a", -0.2), ("a", -0.1)]], "", 1) == [("a", -0.1)]


def test_more_chunks_are_requested_until_there_are_enough_documents() -> None:
    depths: list[int] = []

    def nearest(depth: int) -> list[Ranking]:
        """Every 300 chunks another document comes, after 100 chunks of the query."""
        depths.append(depth)
        return [[("own" if place < 100 else f"d{(place - 100) // 300}", -place / 1e4) for place in range(depth)]]

    assert [doc_id for doc_id, _ in deepened(nearest, "own", 3, n_own=100, n_chunks=9000)] == ["d0", "d1", "d2"]
    assert depths == [DEPTH + 100, 4 * DEPTH + 100]
    depths.clear()
    assert len(deepened(nearest, "own", 50, n_own=100, n_chunks=2000)) == 7  # all that there are
    assert depths == [356, 1124, 2000]


def test_a_sum_equals_the_equation_whatever_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    queries, chunks = rng.standard_normal((3, 4)), rng.standard_normal((20, 4))
    starts = np.array([0, 1, 8, 9, 15])
    documents = np.split(chunks, starts[1:])
    expected = [sum(max(query @ chunk for chunk in own) for query in queries) for own in documents]
    for block in (1, 6, 8192):
        monkeypatch.setattr(grouping, "_BLOCK_CHUNKS", block)
        np.testing.assert_allclose(summed(queries, chunks, starts), expected)


DOCUMENTS = {f"d{number}": make_document(f"d{number}", f"word{number}") for number in range(8)}


class Timetable:
    """A peer on a clock of its own: making it takes 100 s, building 10, opening 2, the n-th search n ms."""

    name = "timetable"
    encoder = "none@0"
    keeps_text = False
    reads = 7

    def __init__(self) -> None:
        self.settings: Settings = {"made": True}
        self.n_searches = 0
        Timetable.now += 100

    now = 0.0

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        (folder / "kept").write_text(" ".join(document.doc_id for document in documents))
        self.settings["built"] = True
        Timetable.now += 10

    def open(self, folder: Path) -> None:
        self._doc_ids = (folder / "kept").read_text().split()
        Timetable.now += 2

    def search(self, query: Document, k: int) -> Ranking:
        self.n_searches += 1
        Timetable.now += self.n_searches / 1000
        return [(doc_id, 1.0) for doc_id in self._doc_ids if doc_id != query.doc_id][:k]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Timetable, "now", 0.0)
    monkeypatch.setattr(stages, "time", SimpleNamespace(perf_counter=lambda: Timetable.now))


def test_loading_is_no_part_of_building(tmp_path: Path) -> None:
    built = build(Timetable, iter(DOCUMENTS.values()), tmp_path)
    assert (built.load_seconds, built.seconds, built.n_documents, built.reads) == (100, 10, 8, 7)
    assert built.settings == {"made": True, "built": True}  # as they are when it is built
    assert built.size_bytes == len("d0 d1 d2 d3 d4 d5 d6 d7")
    assert 0 < built.start_mib <= built.peak_mib


def test_a_warm_up_is_not_counted(tmp_path: Path) -> None:
    build(Timetable, iter(DOCUMENTS.values()), tmp_path)
    queries = {name: DOCUMENTS[name] for name in ("d1", "d2", "d3", "d4")}
    searched = search(Timetable, queries, 2, tmp_path)
    assert searched.open_seconds == 2
    times = [WARM_UP + number for number in (1, 2, 3, 4)]  # milliseconds
    assert searched.latency == Percentiles(sum(times) / 4, pytest.approx(6.85), pytest.approx(6.97))
    assert searched.rankings["d1"] == [("d0", 1.0), ("d2", 1.0)]
