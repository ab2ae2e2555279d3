"""Retrieval: the systems, the task, and the model of a public board."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.datasets import Dataset, open_dataset, read_qrels, read_queries
from benchmarks.fetching import aila_casedocs
from benchmarks.lexical import BM25, K1, B, LexicalSystem, TfIdf
from benchmarks.pairs.scorers import bm25_scorer, tfidf_scorer
from benchmarks.pairs.scoring import Budget, Fit, Pair, PairScorer
from benchmarks.runs import read_runs
from benchmarks.systems import BuildCost, DocumentCosine, Evidence, Ranking, Settings, training_pairs
from benchmarks.tasks.board import SearchModel
from benchmarks.tasks.retrieval import ALL_SYSTEMS, Trial, main, measure, open_trial
from engine.index import Index
from engine.machine import Origin
from engine.search.request import Request
from engine.text.document import Document
from tests.benchmarks.made_runs import error_of, run_program
from tests.fakes import make_document


def test_document_vectors_rank_by_cosine_without_the_query(index: Index, corpus: list[Document]) -> None:
    ranking = DocumentCosine(index, "fake").search(corpus[7], k=20)
    doc_ids, vectors = index.document_vectors()
    cosines = dict(zip(doc_ids, (vectors @ vectors[doc_ids.index("doc007")]).tolist(), strict=True))
    best = sorted(cosines.keys() - {"doc007"}, key=cosines.__getitem__, reverse=True)[:20]
    assert ranking == [(doc_id, pytest.approx(cosines[doc_id])) for doc_id in best]


@pytest.mark.parametrize("exact", [False, True])
def test_a_search_is_exact_where_it_is_set(
    index: Index, corpus: list[Document], exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Request] = []
    search = index.search
    monkeypatch.setattr(index, "search", lambda query, request: requests.append(request) or search(query, request))
    assert len(Evidence(index, "fake", exact=exact).search(corpus[7], k=5)) == 5
    assert [request.exact for request in requests] == [exact]


def test_parts_of_the_score_are_systems_of_their_own(index: Index, corpus: list[Document]) -> None:
    for name, parts in (("words", {"words", "pairs"}), ("chunks", {"chunks"})):
        system = Evidence(index, "fake@0", name=name)
        assert (system.name, system.encoder) == (name, "fake@0" if name == "chunks" else "")
        for hit in system.hits(corpus[7], k=5):
            assert {kind for kind, added in hit.breakdown.components.items() if added} <= parts


@pytest.mark.parametrize("system", [DocumentCosine, Evidence])
def test_only_a_query_outside_the_corpus_is_encoded(
    index: Index, corpus: list[Document], system: type[DocumentCosine | Evidence]
) -> None:
    ranker = system(index, "fake")
    (first, score), *others = ranker.search(corpus[7], k=5)
    assert first != "doc007" and score > others[0][1]
    assert index.encoder.batches == []
    (first, _), *_ = ranker.search(replace(corpus[7], doc_id="draft"), k=3)
    assert (first, len(index.encoder.batches)) == ("doc007", 1)
    # A query that only shares an id with a document is searched by its own text.
    found = [doc_id for doc_id, _ in ranker.search(replace(corpus[7], doc_id="doc008"), k=59)]
    assert found[0] == "doc007" and "doc008" not in found


def test_an_encoded_query_scores_as_its_stored_copy(index: Index, corpus: list[Document]) -> None:
    system = DocumentCosine(index, "fake")
    stored, encoded = (dict(system.search(query, k=60)) for query in (corpus[7], replace(corpus[7], doc_id="draft")))
    np.testing.assert_allclose([stored[doc_id] for doc_id in stored], [encoded[doc_id] for doc_id in stored], atol=1e-6)


def test_the_bundled_encoder_learned_from_four_corpora() -> None:
    assert training_pairs("longmatch-minilm") == {
        "rfc": 20613,
        "wikipedia_seealso": 3622,
        "clscisumm": 1950,
        "proposals": 3139,
    }


def test_a_folder_without_our_model_card_has_no_training_pairs(tmp_path: Path) -> None:
    assert training_pairs(str(tmp_path)) == {}
    (tmp_path / "README.md").write_text("# A model\n\n| corpus | documents | pairs |\n| a | 1 | 2 |\n")
    assert training_pairs(str(tmp_path)) == {}


@pytest.fixture
def trial(dataset: Dataset, origin: Origin) -> Trial:
    qrels = read_qrels(dataset, "test")
    return Trial(dataset, "test", qrels, read_queries(dataset, qrels), 100, origin)


class Fixed:
    name, encoder = "evidence", "mean@0f"
    settings: Settings = {"exact": True}  # noqa: RUF012

    def search(self, query: Document, k: int) -> Ranking:
        targets = {"cat": ("kitten", "dog", "rocket")}.get(query.doc_id, ("kitten", "rocket", "cat"))
        return [(target, 1 - rank / 4) for rank, target in enumerate(targets)][:k]


def test_a_system_is_measured_query_by_query(trial: Trial) -> None:
    run, rankings = measure(Fixed(), BuildCost(1.5, 30), trial)
    assert [doc_id for doc_id, _ in rankings["cat"]] == ["kitten", "dog", "rocket"]
    assert [doc_id for doc_id, _ in run.cases[0].ranking] == ["kitten", "rocket", "cat"]
    assert run.case_ids == ["dog", "cat"]
    assert run.values("nDCG@10") == [0.5, 1.0]
    means = {"nDCG@10": 0.75, "Recall@10": 1.0, "Recall@100": 1.0, "MRR@10": 0.6667, "MAP@100": 0.6667}
    assert {name: run.mean(name) for name in run.measures} == means
    assert (run.name, run.encoder, run.fit_seconds) == ("pets-evidence-mean-exact-test", "mean@0f", 1.5)


def test_cases_hold_the_words_of_queries_and_of_relevant_targets(dataset: Dataset, origin: Origin) -> None:
    # Title and heading are words of the text.
    facts = open_trial(dataset, "test", 100, origin).facts
    assert facts == {"dog": {"words": 12, "target_words": 12}, "cat": {"words": 12, "target_words": (11 + 12) / 2}}


def test_the_command_writes_runs_here_and_in_the_format_of_trec(folder: Path, tmp_path: Path) -> None:
    places = ["--out", tmp_path / "out", "--run-out", tmp_path / "runs"]
    done = run_program(main, folder, "--systems", "bm25", *places)
    (run,) = read_runs(tmp_path / "out")
    assert "| pets (2) | bm25 |  | 1.000 [1.000, 1.000] | 1.000 | 1.000 | 1.000 |  |  |" in done.output
    assert run.origin.command == "python -m benchmarks run retrieval pets --systems bm25 --run-out runs"
    lines = (tmp_path / "runs" / "pets-bm25-test.trec").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["dog"] * 3 + ["cat"] * 3
    assert lines[3].split()[1:4] == ["Q0", "kitten", "1"]
    judgments = (tmp_path / "runs" / "pets-test.qrels").read_text()
    assert judgments == "dog 0 cat 1\ncat 0 kitten 2\ncat 0 dog 1\n"


def test_mistakes_are_reported_in_one_line(folder: Path) -> None:
    unknown = error_of(main, folder, "--systems", "bm24")
    assert unknown.endswith(f"'bm24' is not one of {', '.join(ALL_SYSTEMS)}")
    absent = error_of(main, folder, "--systems", "bm25", "--split", "dev")
    assert absent.startswith("Error: dataset pets has no split 'dev'")


def test_judged_targets_that_are_not_in_the_corpus_are_reported(folder: Path) -> None:
    with (folder / "qrels.tsv").open("a") as file:
        file.write("cat\tlion\t1\n")
    done = run_program(main, folder, "--systems", "bm25", "--out", folder)
    assert "pets: 1 relevant targets are not in corpus.jsonl.gz, the first is 'lion'" in done.stderr


def test_a_quick_run_measures_every_system(folder: Path, bert_folder: Path, tmp_path: Path) -> None:
    places = ["--work", tmp_path / "work", "--out", tmp_path / "out"]
    run_program(main, folder, "--quick", "--encoder", bert_folder, *places)
    written = read_runs(tmp_path / "out")
    assert [run.name for run in written] == [
        f"pets_quick-{name}-test" for name in ("bm25", "chunks-bert", "document-bert", "evidence-bert", "words")
    ]
    assert all("--quick" in run.origin.command for run in written)


def test_words_alone_need_no_encoder(folder: Path, tmp_path: Path) -> None:
    run_program(main, folder, "--systems", "words", "--work", tmp_path / "work", "--out", tmp_path / "out")
    (run,) = read_runs(tmp_path / "out")
    assert (run.name, run.encoder, run.n_tokens) == ("pets-words-test", "", 0)
    (made,) = (tmp_path / "work").glob("*-words.lm")
    with Index.open(made) as index:
        assert index.snapshot.width == 0 and index.snapshot.n_chunks == 0


FILES = {
    "C1": b"The appeal is allowed. ",
    "C2": b"The appeal is dismissed.",
    "C10": b"Bail is granted.",
    "Query_doc.txt": b"AILA_Q1||The appellant was a clerk.\nAILA_Q2||He asked for bail.\n",
    "relevance_judgments_priorcases.txt": b"AILA_Q1 Q0 C2 0\nAILA_Q1 Q0 C1 1\nAILA_Q2 Q0 C10 1\n",
}


def test_decisions_with_a_positive_judgment_are_the_corpus() -> None:
    facts = aila_casedocs.facts(FILES)
    assert facts.ids == ["C1", "C10"] and facts.splits == {"splits.json": {"test": ["AILA_Q1", "AILA_Q2"]}}
    assert facts.judgments["qrels.tsv"]["AILA_Q1"] == {"1": ["C1"]}
    first, _ = aila_casedocs.queries(facts, FILES)
    assert (first["id"], first["sections"]) == ("AILA_Q1", [{"heading": "", "text": "The appellant was a clerk."}])
    assert [one["id"] for one in aila_casedocs.documents(facts, FILES)] == ["C1", "C10"]


def test_a_system_answers_as_a_search_model_of_mteb(folder: Path) -> None:
    dataset = open_dataset(str(folder))
    queries = {query_id: Document(query_id, "", "", ()) for query_id in read_qrels(dataset, "test")}
    found = SearchModel(Fixed(), queries).search([{"id": "cat", "text": "ignored"}], top_k=1, task_metadata=None)
    assert found == {"cat": {"kitten": 1.0}}


class Scored(LexicalSystem):
    """Documents a to e with scores."""

    def scores(self, query: Document) -> NDArray[np.float64]:
        return np.array([1.0, 3.0, 2.0, 2.0, 0.0])


@pytest.mark.parametrize(
    ("own", "k", "expected"),
    [("a", 3, ["b", "c", "d"]), ("b", 2, ["c", "d"]), ("new", 9, ["b", "c", "d", "a"])],
    ids=["equal ones in their order", "without the query", "without those of score 0"],
)
def test_the_best_come_first(own: str, k: int, expected: list[str]) -> None:
    system = Scored({})
    list(system.texts(make_document(doc_id, "") for doc_id in "abcde"))
    assert [doc_id for doc_id, _ in system.search(make_document(own, ""), k)] == expected


TEXTS = {"one": "zebra zebra lion", "two": "zebra lion lion tiger", "three": "tiger bear", "four": "wolf"}
LEXICAL_CORPUS = [make_document(doc_id, text) for doc_id, text in TEXTS.items()]


def n_texts_with(word: str) -> int:
    return sum(word in text.split() for text in TEXTS.values())


def bm25_by_hand(query: str, target: str) -> float:
    """Lucene's BM25, one word of the query at a time; the four texts are 2.5 words long on average."""
    score, bag = 0.0, target.split()
    for word in query.split():
        df, tf = n_texts_with(word), bag.count(word)
        idf = math.log(1 + (4 - df + 0.5) / (df + 0.5))
        score += idf * tf / (tf + K1 * (1 - B + B * len(bag) / 2.5))
    return score


def cosine_by_hand(query: str, target: str) -> float:
    def vector(text: str) -> dict[str, float]:
        words = text.split()
        raw = {word: (1 + math.log(words.count(word))) * (1 + math.log(5 / (1 + n_texts_with(word)))) for word in words}
        return {word: value / math.hypot(*raw.values()) for word, value in raw.items()}

    other = vector(target)
    return sum(value * other.get(word, 0) for word, value in vector(query).items())


@pytest.mark.parametrize(("system", "by_hand"), [(BM25, bm25_by_hand), (TfIdf, cosine_by_hand)])
@pytest.mark.parametrize("query_id", [*TEXTS, "draft"])
@pytest.mark.parametrize("text", [*TEXTS.values(), "zebra tiger", "the of and", "giraffe"])
def test_lexical_scores_equal_the_equation_and_only_the_query_itself_is_left_out(
    system: type[BM25 | TfIdf], by_hand: Callable[[str, str], float], query_id: str, text: str
) -> None:
    pytest.importorskip("sklearn")
    ranking = system().fit(LEXICAL_CORPUS).search(make_document(query_id, text), k=10)
    scores = {doc_id: by_hand(text, target) for doc_id, target in TEXTS.items() if doc_id != query_id}
    expected = {doc_id: score for doc_id, score in scores.items() if score}
    assert dict(ranking) == pytest.approx(expected, abs=1e-6)
    assert [score for _, score in ranking] == sorted((score for _, score in ranking), reverse=True)


def test_words_of_bm25_are_stems() -> None:
    bm25 = BM25().fit(LEXICAL_CORPUS)
    assert bm25.search(make_document("q", "Zebras, tiger"), 9) == bm25.search(make_document("q", "zebra tiger"), 9)


def share_of_the_query(query: str, target: str) -> float:
    return bm25_by_hand(query, target) / bm25_by_hand(query, query)


@pytest.mark.parametrize(("scorer", "by_hand"), [(bm25_scorer(), share_of_the_query), (tfidf_scorer(), cosine_by_hand)])
def test_pairs_are_scored_by_the_share_of_the_score_of_the_query_with_itself(
    scorer: PairScorer, by_hand: Callable[[str, str], float]
) -> None:
    pytest.importorskip("sklearn")
    learned = scorer.learn(Fit({document.doc_id: document for document in LEXICAL_CORPUS}, [], [], Budget(0, 0), 0))
    pairs = [Pair(query, target, True) for query in TEXTS for target in TEXTS]
    expected = [by_hand(TEXTS[pair.first], TEXTS[pair.second]) for pair in pairs]
    np.testing.assert_allclose(learned.score(pairs), expected, atol=1e-6)
    assert tfidf_scorer().settings == TfIdf().settings
