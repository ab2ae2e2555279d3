"""Each peer, through its own library, compared with a plain loop over the same vectors of our backbone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.peers.peer import PEERS, Peer, PeerConfig, make_peer
from benchmarks.systems import Ranking
from engine.encoders.backbone import Backbone
from engine.encoders.encoder import Vectors
from engine.search.request import Request
from engine.text.document import Document
from tests.fakes import make_document

_WORDS = (
    "the quick brown fox jumps over a lazy dog old river house light dark model finds every vector long search".split()
)
# Every word is one token, so that chunks end after exactly 46 tokens.
_RNG = np.random.default_rng(0)
TEXTS = {f"d{number}": " ".join(_RNG.choice(_WORDS, int(_RNG.integers(5, 120)))) for number in range(12)}


@pytest.fixture
def documents() -> list[Document]:
    return [make_document(doc_id, text) for doc_id, text in TEXTS.items()]


@pytest.fixture(scope="session")
def backbone(bert_folder: Path) -> Backbone:
    return Backbone(bert_folder, device="cpu", dtype=torch.float32)


@pytest.fixture
def token_ids(backbone: Backbone) -> dict[str, list[int]]:
    """All token ids of each document, without special tokens."""
    found = backbone.tokenizer.tokenize(list(TEXTS.values()))
    return {doc_id: ids for doc_id, (ids, _) in zip(TEXTS, found, strict=True)}


@pytest.fixture
def chunks(token_ids: dict[str, list[int]], backbone: Backbone) -> dict[str, Vectors]:
    """(n, D) vectors of the chunks of 46 tokens of each document, encoded one at a time."""

    def one(ids: list[int]) -> Vectors:
        return np.concatenate([backbone.encode([ids[first : first + 46]], 512) for first in range(0, len(ids), 46)])

    return {doc_id: one(ids) for doc_id, ids in token_ids.items()}


def made(name: str, config: PeerConfig) -> Peer:
    for package in PEERS[name].packages:
        pytest.importorskip(package)
    return make_peer(name, config)


def searched(peer: Peer, documents: list[Document], folder: Path, query: str, k: int = 100) -> Ranking:
    peer.build(iter(documents), folder)
    peer.open(folder)
    return peer.search(next(document for document in documents if document.doc_id == query), k)


def check(found: Ranking, expected: dict[str, float]) -> None:
    assert dict(found) == pytest.approx(expected, abs=2e-5)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


@pytest.mark.parametrize("name", ["st-first-256", "st-first-512"])
def test_first_tokens_are_those_the_model_reads(
    name: str, config: PeerConfig, documents: list[Document], chunks: dict[str, Vectors], tmp_path: Path
) -> None:
    peer = made(name, config)
    assert peer.settings["tokens"] == 48  # of the BERT of the tests
    expected = {doc_id: float(rows[0] @ chunks["d3"][0]) for doc_id, rows in chunks.items() if doc_id != "d3"}
    check(searched(peer, documents, tmp_path, "d3"), expected)


@pytest.mark.parametrize("name", ["st-chunks", "txtai", "lancedb", "st-chunks-sum"])
def test_a_chunk_index_gives_the_best_pair_of_chunks_or_their_sum(
    name: str, config: PeerConfig, documents: list[Document], chunks: dict[str, Vectors], tmp_path: Path
) -> None:
    expected = {}
    for doc_id in TEXTS.keys() - {"d3"}:
        best = (chunks["d3"] @ chunks[doc_id].T).max(1)
        expected[doc_id] = float(best.sum() if name == "st-chunks-sum" else best.max())
    check(searched(made(name, config), documents, tmp_path, "d3"), expected)


def test_late_interaction_is_maxsim_over_tokens(
    config: PeerConfig, documents: list[Document], token_ids: dict[str, list[int]], backbone: Backbone, tmp_path: Path
) -> None:
    def tokens(doc_id: str) -> torch.Tensor:
        ids, mask = backbone.tokenizer.pad([token_ids[doc_id][:46]])
        with torch.no_grad():
            return torch.nn.functional.normalize(backbone.hidden_states(ids, mask)[0], dim=-1)

    query = tokens("d3")
    expected = {doc_id: float((query @ tokens(doc_id).T).amax(1).sum()) for doc_id in token_ids if doc_id != "d3"}
    found = searched(made("late-interaction", config), documents, tmp_path, "d3")
    assert dict(found) == pytest.approx(expected, rel=1e-3)  # kept in half precision


def test_longmatch_with_an_encoded_query_gives_the_scores_of_a_search_by_id(
    config: PeerConfig, documents: list[Document], tmp_path: Path
) -> None:
    from engine.index import Index

    found = searched(made("longmatch", config), documents, tmp_path, "d3", k=5)
    with Index.open(tmp_path / "index.lm") as index:
        expected = [(hit.doc_id, hit.score) for hit in index.search("d3", Request(k=5)).hits]
    assert [doc_id for doc_id, _ in found] == [doc_id for doc_id, _ in expected]
    np.testing.assert_allclose([score for _, score in found], [score for _, score in expected], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_every_peer_keeps_to_k_leaves_the_query_out_and_reads_back_what_it_wrote(
    name: str, config: PeerConfig, documents: list[Document], tmp_path: Path
) -> None:
    first = searched(made(name, config), documents, tmp_path, "d5", k=4)
    assert len(first) == 4
    assert "d5" not in dict(first)
    again = made(name, config)
    again.open(tmp_path)
    assert again.search(documents[5], 4) == first


def test_an_indexed_lancedb_table_gives_the_same_similarities(
    config: PeerConfig, documents: list[Document], chunks: dict[str, Vectors], tmp_path: Path
) -> None:
    lancedb_chunks = pytest.importorskip("benchmarks.peers.lancedb_chunks")
    many = [document for _ in range(40) for document in documents]
    found = searched(lancedb_chunks.LancedbChunks(config, scan_below=100), many, tmp_path, "d3", k=3)
    for doc_id, similarity in found:
        assert similarity == pytest.approx(float((chunks["d3"] @ chunks[doc_id].T).max()), abs=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["st-chunks", "st-chunks-sum", "txtai", "lancedb"])
def test_the_querys_own_chunks_take_no_place(
    name: str, config: PeerConfig, documents: list[Document], tmp_path: Path
) -> None:
    """All 256 nearest chunks of each of the query's are its own; every other document is found nevertheless."""
    own = make_document("own's", " ".join(["fox"] * (300 * 46)))
    found = searched(made(name, config), [*documents, own], tmp_path, "own's")
    assert {doc_id for doc_id, _ in found} == set(TEXTS)


def test_peers_record_how_many_tokens_they_read(config: PeerConfig) -> None:
    assert {name: made(name, config).reads for name in ("st-first-256", "st-chunks", "late-interaction")} == {
        "st-first-256": 46,
        "st-chunks": None,
        "late-interaction": 46,
    }
