from __future__ import annotations

import gzip
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import click
import numpy as np
import pytest
import torch
from click.testing import CliRunner
from scipy.sparse import csr_matrix

from benchmarks.datasets import DatasetError
from benchmarks.frozen import document_layers, reranking, second_stage, term_vectors
from benchmarks.frozen.candidates import Candidates, RankedCorpus
from benchmarks.frozen.corpora import FrozenCorpus, Whitening
from benchmarks.frozen.document_layers import BASE, LayersRecord, layers_table
from benchmarks.frozen.layers import LAYERS, MAX_CHUNKS
from benchmarks.frozen.rerankers import RERANKERS, Pairs
from benchmarks.frozen.second_stage import SecondStageRecord, second_stage_table
from benchmarks.frozen.term_vectors import TermVectorsRecord, term_vectors_table
from benchmarks.frozen.terms import WIDTH as TERM_WIDTH
from benchmarks.frozen.terms import TermCorpus, TermWeights, principal, term_counts, train_weights
from benchmarks.frozen.training import OBJECTIVES, document_vectors, sections_batch, train
from benchmarks.records import read_records
from engine.encoders.backbone.tokenizer import Tokenizer
from tests.fakes import make_corpus

WIDTH = 16


def corpus_of(name: str, *, n_documents: int = 60, seed: int = 0) -> FrozenCorpus:
    """Documents of one topic each; every second row of the chunks is about it, the others are noise."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(3, 2 * MAX_CHUNKS, n_documents)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    topics = draw.standard_normal((n_documents // 2, WIDTH)).repeat(2, axis=0)
    rows = topics.repeat(lengths, axis=0) + draw.standard_normal((starts[-1], WIDTH))
    rows[1::2] = 4 * draw.standard_normal((len(rows[1::2]), WIDTH))
    pairs = {place: {place + 1: 1} for place in range(0, 40, 2)}
    ids = [f"{name}{place}" for place in range(n_documents)]
    return FrozenCorpus(
        name=name,
        ids=ids,
        chunks=(rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float16),
        starts=starts,
        trainable=np.arange(40),
        pairs=pairs,
        related=pairs,
        ranked={
            place: (np.array([place + 1, *range(20, 30)]), np.linspace(0.9, 0.1, 11, dtype=np.float32))
            for place in pairs
        },
        qrels={ids[place]: {ids[place + 1]: 1} for place in range(40, n_documents, 2)},
    )


@pytest.fixture(scope="module")
def corpora() -> list[FrozenCorpus]:
    return [corpus_of("a", seed=1), corpus_of("b", seed=2)]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_adds_nothing_before_training_and_reads_no_padding(name: str) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name](WIDTH).eval()
    chunks = torch.nn.functional.normalize(torch.randn(2, 5, WIDTH), dim=-1)
    mask = torch.tensor([[True] * 5, [True, True, True, False, False]])
    torch.testing.assert_close(layer(chunks, mask), torch.zeros(2, WIDTH), rtol=0, atol=1e-6)
    for weight in layer.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    alone = layer(chunks[1:, :3], mask[1:, :3])
    torch.testing.assert_close(layer(chunks, mask)[1:], alone, rtol=1e-4, atol=1e-5)
    assert alone.abs().max() > 1e-3


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_training_lowers_each_loss(objective: str, corpora: list[FrozenCorpus]) -> None:
    trained = train("smith", objective, corpora, steps=60, rate=3e-3, seed=0)
    assert trained.last_loss < trained.first_loss - 0.05
    assert trained.n_documents > 60


def test_vectors_before_training_are_the_means_of_all_chunks(corpora: list[FrozenCorpus]) -> None:
    unseen = corpus_of("c", seed=3)
    assert np.diff(unseen.starts).max() > MAX_CHUNKS
    vectors = document_vectors(train("gate", "pairs", corpora, steps=1, rate=1e-9, seed=0).layer, unseen)
    np.testing.assert_allclose(vectors, unseen.means, atol=1e-5)


def test_hard_negatives_are_neither_related_nor_held_out(corpora: list[FrozenCorpus]) -> None:
    for query, near in corpora[0].hard.items():
        assert len(near) == 20 and near.max() < 40
        assert query not in near and not set(near.tolist()) & set(corpora[0].related[query])


def test_parts_of_sections_do_not_overlap(corpora: list[FrozenCorpus]) -> None:
    spans = sections_batch(corpora[0], np.random.default_rng(0)).spans
    half = len(spans) // 2
    assert half > 10
    for (start, end), (first, last) in zip(spans[:half], spans[half:], strict=True):
        assert start < end and first < last and (end <= first or last <= start)
    short = FrozenCorpus("short", ["a"], np.ones((2, 4), np.float16), np.array([0, 2]), np.array([0]), {}, {}, {}, {})
    with pytest.raises(DatasetError, match="no document of short has three chunks"):
        sections_batch(short, np.random.default_rng(0))


def test_whitening_evens_out_the_variance() -> None:
    vectors = np.random.default_rng(0).standard_normal((4000, 3)) * [1, 4, 0.2] + [5, 0, 0]
    of = Whitening.of(vectors.astype(np.float32), 0.5)
    turned = (vectors - of.mean) @ of.matrix
    assert np.ptp(np.log(turned.std(axis=0))) < 0.5 * np.ptp(np.log(vectors.std(axis=0)))
    np.testing.assert_allclose(np.linalg.norm(of(vectors.astype(np.float32)), axis=1), 1, rtol=1e-5)


def test_terms_are_counted_in_whole_texts(bert_folder: Path) -> None:
    tokenizer = Tokenizer(bert_folder)
    ((ids, _),) = tokenizer.tokenize(["fox dog fox"])
    counts = term_counts(["fox dog fox", *["dog"] * 70, ""], tokenizer)
    assert counts.shape == (72, tokenizer.vocabulary_size)
    assert (counts[0, ids[0]], counts[0, ids[1]], counts[70, ids[1]], counts[71].sum()) == (2, 1, 1, 0)


def with_terms(corpus: FrozenCorpus, *, seed: int, times: int = 1) -> TermCorpus:
    """Chunks that say nothing; in each document four terms of its topic, some times, and 40 of 200 others."""
    draw = np.random.default_rng(seed)
    counts = np.zeros((len(corpus.ids), 400), np.float32)
    for place, own in enumerate(counts):
        own[draw.permutation(200)[:40]] = draw.integers(1, 9, 40)
        own[200 + 4 * (place // 2) : 204 + 4 * (place // 2)] = times
    chunks = draw.standard_normal(corpus.chunks.shape)
    noise = (chunks / np.linalg.norm(chunks, axis=1, keepdims=True)).astype(np.float16)
    return TermCorpus(replace(corpus, chunks=noise), csr_matrix(counts))


def test_projections_keep_the_cosines_of_weighted_counts(corpora: list[FrozenCorpus]) -> None:
    here, other = (with_terms(corpus, seed=seed) for seed, corpus in enumerate(corpora))
    weights = TermWeights.of([other], seed=0)
    having = np.asarray((other.counts > 0).sum(axis=0))[0]
    counts = here.counts.toarray()
    exact = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * np.log(61 / (having + 1)).clip(1e-3)
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    found = weights.all_vectors(here)
    assert found.shape == (60, TERM_WIDTH)
    np.testing.assert_allclose(found @ found.T, exact @ exact.T, atol=0.16)
    assert np.abs(found @ found.T - exact @ exact.T).mean() < 1.2 * TERM_WIDTH**-0.5


def test_terms_find_what_the_mean_of_noise_does_not(corpora: list[FrozenCorpus]) -> None:
    here, other = (with_terms(corpus, seed=seed, times=30) for seed, corpus in enumerate(corpora))
    joined = TermWeights.of([other], seed=0).document_vectors(here)
    assert joined.shape == (60, WIDTH + TERM_WIDTH)
    assert np.mean(here.frozen.ndcg(joined)) > np.mean(here.frozen.ndcg(here.means)) + 0.1
    assert principal(joined, WIDTH).shape == (60, WIDTH)


def test_training_weights_lowers_the_loss_and_raises_topical_terms(corpora: list[FrozenCorpus]) -> None:
    given = [with_terms(corpus, seed=seed) for seed, corpus in enumerate(corpora)]
    trained = train_weights(given, steps=60, rate=0.03, seed=0)
    assert trained.last_loss < trained.first_loss - 0.05 and trained.n_documents > 60
    change = trained.weights.logarithms.detach() - TermWeights.of(given, seed=0).logarithms
    assert change[200:280].mean() > change[:200].mean() + 0.05


@pytest.mark.slow
def test_the_studies_write_records_and_their_tables(
    tmp_path: Path, bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, documents in (("one", make_corpus(60)[:30]), ("two", make_corpus(60)[30:])):
        folder = tmp_path / name
        folder.mkdir()
        with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
            for document in documents:
                file.write(json.dumps({"id": document.doc_id, "text": document.text * 9}) + "\n")
        ids = [document.doc_id for document in documents]
        rows = "".join(f"{one}\t{other}\t1\n" for one, other in pairwise(ids))
        for file_name in ("qrels.tsv", "train_pairs.tsv"):
            (folder / file_name).write_text("query_id\tdoc_id\trelevance\n" + rows)
        (folder / "splits.json").write_text(json.dumps({"train": ids[:20], "valid": ids[20:25], "test": ids[25:29]}))
    monkeypatch.setattr(document_layers, "ATTEMPTS", (("linear", "pairs", 1e-3), ("gate", "ranking", 1e-3)))
    options = ["--encoder", str(bert_folder), "--work", str(tmp_path / "work"), "--steps", "3"]
    arguments = [str(tmp_path / "one"), str(tmp_path / "two"), *options]
    of_layers = _run(document_layers.main, [*arguments, "--out", str(tmp_path / "layers")])
    of_terms = _run(term_vectors.main, [*arguments, "--out", str(tmp_path / "terms")])
    of_stage = _run(second_stage.main, [*arguments, "--depth", "8", "--out", str(tmp_path / "stage")])
    (layers,), (stage,) = read_records(tmp_path / "layers"), read_records(tmp_path / "stage")
    assert isinstance(layers, LayersRecord) and isinstance(stage, SecondStageRecord)
    assert layers_table([layers]) in of_layers and second_stage_table([stage]) in of_stage
    (terms,) = read_records(tmp_path / "terms")
    assert isinstance(terms, TermVectorsRecord) and term_vectors_table([terms]) in of_terms
    assert len({row.name for row in terms.rows}) == 6 and {row.corpus for row in terms.rows} == {"one", "two"}
    assert {(row.corpus, row.name) for row in layers.rows} >= {("one", BASE), ("two", "gate, ranking")}
    assert {row.name for row in stage.rows} == {"joint score", "at best", *RERANKERS}
    for rows in (layers.rows, terms.rows, stage.rows):
        assert all(len(row.per_query) == 5 for row in rows)
    values = {row.name: np.array(row.per_query) for row in stage.rows if row.corpus == "one"}
    assert np.all(values["at best"] >= values["joint score"])


def _run(program: click.Command, arguments: list[str]) -> str:
    done = CliRunner().invoke(program, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


@pytest.fixture(scope="module")
def ranked(corpora: list[FrozenCorpus]) -> list[RankedCorpus]:
    """Five candidates for each query; the relevant one is last but one, and has the nearest chunks."""

    def candidates(query: int) -> Candidates:
        places = np.array([(query + 4) % 40, (query + 6) % 40, (query + 8) % 40, query + 1, (query + 10) % 40])
        scores = np.linspace(0.5, 0.46, 5, dtype=np.float32)
        components = np.tile(scores[:, None], 4)
        return Candidates(query, places, scores, components, (places == query + 1).astype(np.float32))

    return [
        RankedCorpus(one, [candidates(query) for query in one.pairs], [candidates(query) for query in range(40, 60, 2)])
        for one in corpora
    ]


@pytest.mark.parametrize("name", RERANKERS)
def test_a_reranker_adds_nothing_before_training_and_reads_no_padding(name: str, ranked: list[RankedCorpus]) -> None:
    torch.manual_seed(0)
    network = RERANKERS[name](WIDTH).eval()
    pairs = reranking.pairs_of(ranked[0].vectors, ranked[0].train[0])
    assert not pairs.mask.all()
    torch.testing.assert_close(network(pairs), torch.zeros(5))
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    shortest = int(pairs.mask.sum(1).argmin())
    n_chunks = int(pairs.mask[shortest].sum())
    alone = Pairs(
        pairs.query,
        pairs.targets[[shortest], :n_chunks],
        pairs.mask[[shortest], :n_chunks],
        pairs.means[[0, shortest + 1]],
        pairs.scores[[shortest]],
        pairs.components[[shortest]],
    )
    torch.testing.assert_close(network(pairs)[[shortest]], network(alone), rtol=1e-4, atol=1e-5)
    assert network(alone).abs().max() > 1e-3


def test_a_trained_reranker_puts_the_nearest_candidate_first(ranked: list[RankedCorpus]) -> None:
    trained = reranking.train("kernels", ranked[:1], steps=60, seed=0)
    assert trained.last_loss < trained.first_loss
    before = np.mean(ranked[1].ndcg([one.scores for one in ranked[1].measured]))
    after = np.mean(ranked[1].ndcg(reranking.scored(trained, ranked[1])))
    assert after > before + 0.1


def test_one_dataset_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(document_layers.main, [str(tmp_path)])
    assert done.exit_code and "one dataset alone leaves nothing to train on" in f"{done.output}{done.exception}"


def test_every_name_is_looked_up_before_the_first_corpus_is_read(tmp_path: Path) -> None:
    for name in ("corpus.jsonl.gz", "qrels.tsv", "splits.json"):
        (tmp_path / name).touch()  # an empty corpus, which is an error where a study reads it
    done = CliRunner().invoke(document_layers.main, [str(tmp_path), "nowhere"])
    assert done.exit_code and "'nowhere' is neither a folder nor one of" in f"{done.output}{done.exception}"
