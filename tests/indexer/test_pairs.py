"""Pairs of an index: every pair once, both directions exact."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

import longmatch
from engine.errors import QueryError
from engine.index import Index
from engine.result import DocumentPair, Pairs
from engine.search.request import Request
from engine.text.document import Document
from indexer.pairs import PairSettings, find_pairs
from tests.commands import succeed
from tests.fakes import FakeEncoder, few_first_vectors, make_corpus, make_document

CORPUS = make_corpus(40)


def near_copy(doc_id: str, document: Document) -> Document:
    """A copy with every eighth word replaced, and its sections in another order."""
    words = [word if place % 8 else f"new{place}" for place, word in enumerate(document.text.split())]
    half = len(words) // 2
    return make_document(doc_id, [("end", " ".join(words[half:])), ("start", " ".join(words[:half]))])


DOCUMENTS = [*CORPUS, near_copy("a copy", CORPUS[7]), near_copy("b copy", CORPUS[7]), near_copy("z copy", CORPUS[21])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pairs") / "x.lm"
    longmatch.build(made, DOCUMENTS, encode="none", progress=False).close()
    return made


@pytest.fixture
def words(folder: Path) -> Iterator[Index]:
    with Index.open(folder) as opened:
        yield opened


def pairs_by_hand(index: Index, settings: PairSettings) -> list[tuple[str, str, float, float]]:
    """The rule, by a search with each document."""
    scores: dict[tuple[str, str], float] = {}
    found: set[tuple[str, str]] = set()
    for name in index.snapshot.doc_ids():
        result = index.search(name, Request(k=index.n_documents, mode=settings.mode, where=settings.where, exact=True))
        scores |= {(name, hit.doc_id): hit.score for hit in result}
        found |= {(name, hit.doc_id) for hit in result[: settings.top] if hit.score >= settings.least}
    pairs = {(min(pair), max(pair)) for pair in found}
    if settings.where is not None:
        allowed = {hit.doc_id for hit in index.search(CORPUS[0], Request(k=index.n_documents, where=settings.where))}
        pairs = {pair for pair in pairs if set(pair) <= allowed}
    rows = [(*pair, scores.get(pair, 0.0), scores.get((pair[1], pair[0]), 0.0)) for pair in pairs]
    return sorted(rows, key=lambda row: (-max(row[2:]), row[:2]))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["similar", "containment"])
@pytest.mark.parametrize("where", [None, "family = 'odd'"])
def test_pairs_follow_the_rule(words: Index, mode: str, where: str | None) -> None:
    settings = PairSettings(least=0.2, top=2, mode=mode, where=where)
    found = find_pairs(words, settings)
    expected = pairs_by_hand(words, settings)
    assert [(one.first, one.second, one.forward, one.backward) for one in found] == expected
    assert found.is_certified and found.by_words


@pytest.mark.slow
def test_pairs_of_vectors_follow_the_rule(index: Index) -> None:
    settings = PairSettings(least=0.25, top=3)
    found = find_pairs(index, settings)
    assert [(one.first, one.second, one.forward, one.backward) for one in found] == pairs_by_hand(index, settings)
    assert not found.by_words


def test_documents_without_vectors_are_not_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few_first_vectors(monkeypatch)
    longmatch.build(tmp_path / "x.lm", CORPUS, encoder=FakeEncoder(), encode="later", progress=False).close()
    logged: list[str] = []
    with Index.open(tmp_path / "x.lm", encoder=FakeEncoder()) as opened:
        n_encoded = int(opened.snapshot.has_vectors.sum())
        found = find_pairs(opened, PairSettings(least=0.2), log=logged.append)
        assert int(opened.snapshot.has_vectors.sum()) == n_encoded < 40
    assert found.by_words and not found.is_certified
    command = f"longmatch index {tmp_path / 'x.lm'}"
    assert logged == [f"some documents have no vectors: pairs are scored by words alone; add them: {command}"]


def test_postings_give_the_pairs_of_a_scan(words: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    import engine.search.candidates as candidates_module

    scanned = find_pairs(words, PairSettings(least=0.3))
    monkeypatch.setattr(candidates_module, "SCAN_BELOW_DOCUMENTS", 3)
    found = find_pairs(words, PairSettings(least=0.3))
    assert found.pairs == scanned.pairs


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"least": 0.0}, "least is 0; a pair needs a score above 0"),
        ({"least": 1.5}, "least is 1.5"),
        ({"top": 0}, "top is 0; it must be at least 1"),
        ({"mode": "novelty"}, "mode is 'novelty'"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        PairSettings(**settings)  # type: ignore[arg-type]


def test_clusters_below_the_score_of_pairs_are_refused() -> None:
    pairs = Pairs(
        (DocumentPair("a", "b", 0.6, 0.2), DocumentPair("b", "c", 0.3, 0.4)), 3, 0.4, 1, "similar", True, True, 0
    )
    assert [len(one.members) for one in pairs.clusters()] == [3]
    assert [len(one.members) for one in pairs.clusters(0.5)] == [2]
    with pytest.raises(QueryError, match=r"clusters from a score of 0\.2 need pairs from there; they begin at 0\.4"):
        pairs.clusters(0.2)


THIRTY = make_corpus(30)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pairs") / "x.lm"
    copies = [make_document(f"copy {n}", THIRTY[n].text, title=f"=copy of {n}") for n in (7, 21)]
    longmatch.build(made, [*THIRTY, *copies], encode="none", progress=False).close()
    return made


def test_pairs_and_clusters_are_csv(copied: Path, tmp_path: Path) -> None:
    result = succeed("pairs", copied, "--least", "0.8", "--clusters", tmp_path / "clusters.csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["first"], row["second"], row["first_title"]) for row in rows] == [
        ("copy 21", "doc021", "'=copy of 21"),
        ("copy 7", "doc007", "'=copy of 7"),
    ]
    assert all(float(row["score"]) == max(float(row["forward"]), float(row["backward"])) > 0.9 for row in rows)
    assert "2 pairs among 32 documents, certified, by words alone; 2 clusters of 4 documents" in result.stderr
    clusters = list(csv.DictReader(io.StringIO((tmp_path / "clusters.csv").read_text())))
    assert [(row["cluster"], row["size"], row["doc_id"]) for row in clusters] == [
        ("1", "2", "copy 21"),
        ("1", "2", "doc021"),
        ("2", "2", "copy 7"),
        ("2", "2", "doc007"),
    ]


def test_pairs_are_rows(copied: Path) -> None:
    with longmatch.open(copied) as index:
        pairs = index.pairs(least=0.8)
    assert [row[:2] for row in pairs.rows()] == [("copy 21", "doc021"), ("copy 7", "doc007")]
    assert repr(pairs) == "Pairs(2 pairs of 32 documents, score at least 0.8)"
