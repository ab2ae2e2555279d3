"""Several documents as one query: the sum of weighted scores, the same from long and short lists, in every front."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import longmatch
from engine.errors import QueryError
from engine.index import Index
from engine.result import Status
from engine.search import joint
from engine.search.request import Request
from indexer.building.builder import build
from indexer.building.rewriting import partition
from indexer.cli import main
from tests.fakes import FakeEncoder, make_corpus, make_document
from tests.strict_schema import TOLERANCE, VALIDATOR

N = 60
LIKE, UNLIKE = ["doc001", "doc006"], ["doc003"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("joint") / "x.lm"
    build(folder, make_corpus(N), encoder=FakeEncoder(), encode="all", factory="Flat")
    partition(folder, folder.with_name("p.lm"), 3)
    return folder


def expected(index: Index, like: list[str], unlike: list[str]) -> list[tuple[str, float]]:
    """The ranking from the scores of all documents for each query document alone."""
    totals = dict.fromkeys(set(index.snapshot.doc_ids()) - {*like, *unlike}, 0.0)
    for names, weight in ((like, 1 / len(like)), (unlike, -joint.UNLIKE / max(1, len(unlike)))):
        for name in names:
            for hit in index.search(name, Request(k=2 * N, exact=True)):
                if hit.doc_id in totals:
                    totals[hit.doc_id] += weight * hit.score
    found = [(doc_id, score) for doc_id, score in totals.items() if score > TOLERANCE]
    return sorted(found, key=lambda pair: (-round(pair[1], 6), pair[0]))


@pytest.mark.parametrize("unlike", [[], UNLIKE], ids=["like", "and unlike"])
@pytest.mark.parametrize("n_listed", [2, 200])
@pytest.mark.parametrize("name", ["x.lm", "p.lm"])
def test_the_best_sums_of_weighted_scores_are_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, n_listed: int, unlike: list[str]
) -> None:
    monkeypatch.setattr(joint, "_N_LISTED", n_listed)
    with Index.open(folder.with_name(name), encoder=FakeEncoder()) as index:
        best = expected(index, LIKE, unlike)
        for offset, k in ((0, 1), (3, 4), (0, 2 * N)):
            result = index.search_together(LIKE, unlike, Request(k=k, offset=offset))
            assert [hit.doc_id for hit in result] == [doc_id for doc_id, _ in best[offset : offset + k]]
            assert [hit.score for hit in result] == pytest.approx([score for _, score in best[offset : offset + k]])
            assert [hit.rank for hit in result] == [*range(offset + 1, offset + 1 + len(result))]
            assert result.status is Status.CERTIFIED


def test_one_document_gives_its_own_scores_floor_and_copies(folder: Path) -> None:
    with Index.open(folder, encoder=FakeEncoder()) as index:
        alone, result = index.search("doc001"), index.search_together(["doc001"])
        assert [(hit.doc_id, hit.score) for hit in result] == [(hit.doc_id, hit.score) for hit in alone]
        assert (result.floor, result.nothing_stands_out) == (alone.floor, alone.nothing_stands_out)
        copy = index.document("doc002")
        assert index.search_together([copy, "doc001"]).copies == ("doc002",)
        least = index.search_together(LIKE, request=Request(k=N, least="auto"))
        assert least.floor is not None
        assert [hit.score for hit in least] == [
            hit.score for hit in index.search_together(LIKE, request=Request(k=N)) if hit.score >= least.floor.p99
        ]
        assert index.search_together(["doc001"], ["absent absent"][:0], Request(where="topic = 99")).hits == ()


def test_results_fit_the_schema_and_contributions_sum(folder: Path) -> None:
    with longmatch.open(folder, encoder=FakeEncoder()) as index:
        text = make_document("a", "topic1word1 topic1word2 topic1word3 common1")
        result = index.search_together([text], ids=["doc005"], unlike_ids=["doc003"], k=5)
        check(result.to_dict(n_pairs=2))
        assert "unlike  " in str(result)
        assert index.search_together(text, ids="doc005", unlike_ids="doc003", k=5).scores == result.scores
        for wrong in ({"mode": "novelty"}, {"diversify": True}, {"explain": "model"}):
            with pytest.raises(QueryError, match="is for one document"):
                index.search_together(ids=["doc005", "doc001"], **wrong)  # type: ignore[arg-type]
        with pytest.raises(QueryError, match="no document to be like"):
            index.search_together(unlike_ids=["doc003"])


def check(value: dict[str, Any]) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(value)] == []
    assert value["hits"]
    for hit in value["hits"]:
        assert sum(part["contribution"] for part in hit["by_query"]) == pytest.approx(hit["score"], abs=TOLERANCE)
        for part, query in zip(hit["by_query"], value["queries"], strict=True):
            assert part["contribution"] == pytest.approx(query["weight"] * part["hit"]["score"])
            parts = sum(one["contribution"] for one in part["hit"]["parts"])
            assert parts == pytest.approx(part["hit"]["score"], abs=TOLERANCE)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words") / "x.lm"
    build(folder, make_corpus(20), encoder=FakeEncoder(), encode="none")
    return folder


def test_the_command_takes_ids_texts_and_files_with_signs(words: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> Any:  # noqa: ANN401
        return CliRunner().invoke(main, ["query", str(words), *arguments])

    (tmp_path / "own.md").write_text("# Own\n\ntopic3word1 topic3word2 common1\n")
    named = [
        "--id",
        "doc001",
        "--text",
        "topic1word1 topic1word4",
        "--not",
        "doc003",
        "--not",
        str(tmp_path / "own.md"),
    ]
    found = run(*named, "--format", "json", "-k", "4")
    (value,) = json.loads(found.stdout)["results"]
    check(value)
    assert [query["weight"] for query in value["queries"]] == [0.5, 0.5, -0.25, -0.25]
    assert run(*named, "-k", "1", "-o", str(tmp_path / "a.txt")).exit_code == 0
    assert "unlike  Own" in (tmp_path / "a.txt").read_text()
    assert len(json.loads(run("--id", "doc001", "--id", "doc002", "--format", "json").stdout)["results"]) == 2
    for wrong, message, status in (
        (["--not", "doc003"], "no query", 2),
        (["--id", "doc001", "--not", "nowhere"], "neither a document of", 1),
        (["--id", "doc001", "--together", "--format", "csv"], "table, json, jsonl", 2),
        (["--id", "doc001", "--together", "--matrix"], "--matrix is for one document", 2),
        (["nowhere.md", "--id", "doc001", "--together"], "No such file", 1),
    ):
        refused = run(*wrong)
        assert (refused.exit_code, message in refused.output) == (status, True), refused.output


def test_a_server_takes_several_documents(words: Path) -> None:
    pytest.importorskip("fastapi")
    from tests.indexer.serving.clients import served

    with served(words) as client:
        body = {"doc_id": "doc001", "also": [{"text": "topic1word1"}], "unlike": [{"doc_id": "doc003"}], "k": 3}
        reply = client.post("/v1/search", json=body)
        (value,) = reply.json()["results"]
        check(value)
        assert value["queries"][0]["provenance"]["index"]["path"] == words.name
        assert client.post("/v1/search", json=body | {"matrix": True}).status_code == 400
        assert client.post("/v1/search", json=body | {"unlike": [{"doc_id": "nowhere"}]}).status_code == 404
