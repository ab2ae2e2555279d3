"""Peers: each compared with a plain loop over the vectors of our backbone, their chunks, stages, and the program."""

import gzip
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks.datasets import open_dataset, read_documents
from benchmarks.isolation import Percentiles
from benchmarks.peers import chunk_vectors as grouping
from benchmarks.peers import peer, stages
from benchmarks.peers.chunk_vectors import DEPTH, Chunker, deepened, grouped, summed
from benchmarks.peers.peer import PEERS, Entry, Peer, PeerConfig, check_packages, make_peer, peer_config, versions
from benchmarks.peers.stages import WARM_UP, build, search
from benchmarks.runs import Run, read_runs
from benchmarks.systems import Ranking, Settings
from benchmarks.tables.peers import PeerDetails
from benchmarks.tasks.peers import main
from engine.encoders.backbone import Backbone
from engine.encoders.encoder import Vectors
from engine.encoders.tokenizer import Tokenizer
from engine.encoders.trainable import MeanEncoder
from engine.errors import EncoderError, MissingExtra
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from tests.benchmarks.conftest import run_here
from tests.benchmarks.made_runs import error_of, run_program
from tests.encoders.tiny import encoded, tiny_smith
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
        return np.concatenate([encoded(backbone, [ids[first : first + 46]], 512) for first in range(0, len(ids), 46)])

    return {doc_id: one(ids) for doc_id, ids in token_ids.items()}


def made(name: str, config: PeerConfig) -> Peer:
    for package in PEERS[name].packages:
        pytest.importorskip(package)
    return make_peer(name, config)


def searched(peer: Peer, documents: list[Document], folder: Path, query: str, k: int = 100) -> Ranking:
    peer.build(iter(documents), folder)
    peer.open(folder)
    return peer.search(next(document for document in documents if document.doc_id == query), k)


SCORES: dict[str, Callable[[Vectors, Vectors], float]] = {
    **dict.fromkeys(("st-first-256", "st-first-512"), lambda query, target: query[0] @ target[0]),
    **dict.fromkeys(("st-chunks", "txtai", "lancedb"), lambda query, target: (query @ target.T).max()),
    "st-chunks-sum": lambda query, target: (query @ target.T).max(1).sum(),
}


@pytest.mark.parametrize("name", SCORES)
def test_scores_are_of_the_first_chunks_the_best_pair_of_chunks_or_their_sum(
    name: str, config: PeerConfig, documents: list[Document], chunks: dict[str, Vectors], tmp_path: Path
) -> None:
    peer = made(name, config)
    assert peer.settings.get("tokens") == (48 if "first" in name else None)  # of the BERT of the tests
    found = searched(peer, documents, tmp_path, "d3")
    expected = {doc_id: float(SCORES[name](chunks["d3"], chunks[doc_id])) for doc_id in TEXTS.keys() - {"d3"}}
    assert dict(found) == pytest.approx(expected, abs=2e-5)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


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


@pytest.mark.parametrize(("window_tokens", "max_tokens"), [(4096, 48), (16, 16)])
def test_a_chunk_is_no_longer_than_the_backbone_reads(config: PeerConfig, window_tokens: int, max_tokens: int) -> None:
    assert Chunker(replace(config, window_tokens=window_tokens)).max_tokens == max_tokens


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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Timetable, "now", 0.0)
    monkeypatch.setattr(stages, "time", SimpleNamespace(perf_counter=lambda: Timetable.now))


@pytest.mark.usefixtures("clock")
def test_loading_is_no_part_of_building(tmp_path: Path) -> None:
    built = build(Timetable, iter(DOCUMENTS.values()), tmp_path)
    assert (built.load_seconds, built.seconds, built.n_documents, built.reads) == (100, 10, 8, 7)
    assert built.settings == {"made": True, "built": True}  # as they are when it is built
    assert built.size_bytes == len("d0 d1 d2 d3 d4 d5 d6 d7")
    assert 0 < built.start_mib <= built.peak_mib


@pytest.mark.usefixtures("clock")
def test_a_warm_up_is_not_counted(tmp_path: Path) -> None:
    build(Timetable, iter(DOCUMENTS.values()), tmp_path)
    queries = {name: DOCUMENTS[name] for name in ("d1", "d2", "d3", "d4")}
    searched = search(Timetable, queries, 2, tmp_path)
    assert searched.open_seconds == 2
    times = [WARM_UP + number for number in (1, 2, 3, 4)]  # milliseconds
    assert searched.latency == Percentiles(sum(times) / 4, pytest.approx(6.85), pytest.approx(6.97))
    assert searched.rankings["d1"] == [("d0", 1.0), ("d2", 1.0)]


def read(folder: Path) -> dict[str, Run]:
    return {run.system: run for run in read_runs(folder)}


def measured(peers: str, folder: Path, bert_folder: Path, out: Path) -> tuple[str, dict[str, Run]]:
    """The output and the runs of peers of sentence-transformers, on a quick part."""
    pytest.importorskip("sentence_transformers")
    common = ["--encoder", bert_folder, "--dtype", "float32", "--threads", "1", "--out", out]
    done = run_program(main, folder, "--peers", peers, "--quick", *common)
    return done.output, read(out)


@pytest.mark.slow
def test_ours_is_measured_alone_in_processes_of_its_own(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    """A part of the corpus, without the packages of other peers."""
    common = ["--encoder", bert_folder, "--dtype", "float32", "--threads", "1", "--out", tmp_path / "out"]
    done = run_program(main, folder, "--peers", "longmatch", "--documents=20", *common)
    (one,) = read(tmp_path / "out").values()
    assert (one.name, len(one.cases)) == ("pets_20documents-longmatch-bert-float32-threads1-k100-test", 2)
    assert "| pets_20documents, test (2) | longmatch* |" in done.output


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch, restored_settings: None) -> None:
    monkeypatch.setattr("benchmarks.peers.stages.run_fresh", run_here)


@pytest.mark.usefixtures("in_this_process")
def test_peers_are_built_and_searched(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    _, runs = measured("st-first-256,st-chunks", folder, bert_folder, tmp_path / "out")
    assert list(runs) == ["st-chunks@256", "st-first-256"]
    assert [one.settings.get("window_tokens") for one in runs.values()] == [48, None]
    details = [one.details_as(PeerDetails) for one in runs.values()]
    for own in details:
        assert (own.threads, own.dtype, own.n_documents) == (1, "float32", 4)
        assert 0 < own.latency.p50_ms <= own.latency.p99_ms
        assert own.index_bytes > 0
        assert own.start_mib <= own.build_peak_mib
    n_tokens = [
        len(Tokenizer(bert_folder).tokenize([document.text])[0][0])
        for document in read_documents(open_dataset(str(folder)))
    ]
    assert max(n_tokens) > 46  # that the BERT of the tests reads at once
    read_of_each = [np.mean(n_tokens), np.minimum(n_tokens, 46).mean()]
    assert [own.tokens_per_document for own in details] == pytest.approx(read_of_each, abs=0.05)
    command = runs["st-first-256"].origin.command
    assert command.startswith("python -m benchmarks study peers ")
    assert "--out" not in command and "--encoder bert" in command


@pytest.mark.usefixtures("in_this_process")
def test_both_aggregates_search_the_files_of_one_build(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    corpus = folder / "corpus.jsonl.gz"
    longer = gzip.decompress(corpus.read_bytes()).replace(b"A dog barks", b"A cat sleeps near the rocket. A dog barks")
    corpus.write_bytes(gzip.compress(longer))  # a query of two chunks
    output, runs = measured("st-chunks,st-chunks-sum", folder, bert_folder, tmp_path / "out")
    assert output.count(" builds\n") == 1
    best, summed = runs["st-chunks@256"], runs["st-chunks-sum@256"]
    assert best.fit_seconds == summed.fit_seconds and best.cases != summed.cases
    assert (best.settings["aggregate"], summed.settings["aggregate"]) == ("max", "sum")
    assert "depth" in best.settings and "depth" not in summed.settings


def test_a_failed_peer_is_reported_and_writes_no_run(
    folder: Path, bert_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise MissingExtra("the peer", "no-such-package", "peers")

    monkeypatch.setattr("benchmarks.tasks.peers.check_packages", lambda _: None)
    monkeypatch.setattr("benchmarks.tasks.peers.build_in_process", fail)
    options = ["--quick", "--encoder", bert_folder, "--out", tmp_path / "out", "--peers", "longmatch"]
    assert "1 of 1 failed; to measure those alone again: --peers longmatch" in error_of(main, folder, *options)
    assert read(tmp_path / "out") == {}


def test_mistakes_are_reported_in_one_line(folder: Path, tmp_path: Path) -> None:
    unknown = error_of(main, folder, "--peers", "longmatch,elastic")
    assert "'elastic' is not one of longmatch, st-first-256" in unknown
    assert "--documents does not go with --quick" in error_of(main, folder, "--documents", "20", "--quick")
    nowhere = error_of(main, tmp_path / "nowhere", "--peers", "longmatch", "--encoder", "no/such/encoder")
    assert nowhere.startswith("Error: ")


def test_the_error_for_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Entry("nowhere", "Nothing", {"no_such_module": "no-such-package"})
    monkeypatch.setattr(peer, "PEERS", {**PEERS, "absent": absent})
    with pytest.raises(MissingExtra, match=r"the peer absent needs no-such-package; .*pip install "):
        check_packages(["longmatch", "absent"])


def test_versions_are_those_of_the_distributions() -> None:
    assert versions("longmatch") == {}
    pytest.importorskip("sentence_transformers")
    assert set(versions("st-chunks")) == {"sentence-transformers"}


def test_a_backbone_is_shared_as_it_is(bert_folder: Path) -> None:
    config = peer_config(str(bert_folder), dtype="float32", threads=2)
    assert (config.backbone, config.pooling, config.max_tokens, config.threads) == (bert_folder, "mean", 48, 2)
    assert (config.dtype, config.n_special, config.width) == ("float32", 2, 32)
    assert config.label.startswith("bert@")


def test_a_saved_mean_encoder_is_shared_with_its_pooling(mean_encoder: MeanEncoder, tmp_path: Path) -> None:
    mean_encoder.save_pretrained(tmp_path / "saved")
    assert peer_config(str(tmp_path / "saved"), dtype="same", threads=1).pooling == "mean"


def test_layers_that_no_peer_has_are_refused(bert_folder: Path, tmp_path: Path) -> None:
    tiny_smith(bert_folder).save_pretrained(tmp_path / "smith")
    with pytest.raises(EncoderError, match="is of the kind 'smith', whose layers no peer can load; peers share"):
        peer_config(str(tmp_path / "smith"), dtype="same", threads=1)
