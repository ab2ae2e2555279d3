"""The log of searches: a line for each, which results are checked against, and changes of which show."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import longmatch
from engine.errors import DocumentError, StorageError
from indexer.building.builder import build
from indexer.searches import SearchLog, line_of, read_log
from tests.commands import run, succeed
from tests.fakes import FakeEncoder, make_corpus

TEXT = "topic1word1 topic1word2 common1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    build(tmp_path / "x.lm", make_corpus(20), encoder=FakeEncoder(), encode="none")
    return tmp_path


def test_each_search_of_each_front_is_a_line(folder: Path) -> None:
    log, index = folder / "log.jsonl", folder / "x.lm"
    succeed("query", index, "--id", "doc001", "--text", TEXT, "--log", log, "-k", 3)
    succeed("query", index, "--text", TEXT, "--mode", "novelty", "--log", log)
    with longmatch.open(index, search_log=log) as opened:
        joint = opened.search_together([TEXT], unlike_ids=["doc003"], k=2)
        opened.add({"id": "doc999", "text": TEXT})
        opened.search(TEXT, k=1)
    entries = read_log(log)
    assert [*entries] == [1, 2, 3, 4, 5]
    assert [entries[number]["queries"][0]["id"] for number in (1, 2, 3)] == ["doc001", "text", "text"]
    assert [query["weight"] for query in entries[4]["queries"]] == [1, -0.5]
    assert [hit["score"] for hit in entries[4]["hits"]] == [hit.score for hit in joint]
    assert entries[2]["queries"][0]["text"] == TEXT and entries[1]["queries"][0]["text"] is None
    assert [entries[number]["index"]["n_documents"] for number in (4, 5)] == [20, 21]
    assert entries[5]["index"]["fingerprint"] != entries[4]["index"]["fingerprint"]


def test_a_server_logs_searches_of_the_api_and_of_the_page_and_no_others(folder: Path) -> None:
    pytest.importorskip("fastapi")
    from indexer.serving.settings import ServerSettings
    from tests.indexer.serving.clients import served

    log = folder / "log.jsonl"
    with served(folder / "x.lm", ServerSettings(log_file=log)) as client:
        reply = client.post("/v1/search", json={"text": TEXT, "k": 2}).json()
        assert client.post("/page/search", json={"doc_id": "doc002"}).status_code == 200
        assert client.post("/v1/search", json={"doc_id": "nowhere"}).status_code == 404
    entries = read_log(log)
    assert len(entries) == 2
    assert line_of(entries, reply["results"][0]) == 1


def test_replay_checks_a_result_against_its_line(folder: Path) -> None:
    log, result = folder / "log.jsonl", folder / "r.json"
    run("query", folder / "x.lm", "--id", "doc002", "--log", log)
    run("query", folder / "x.lm", "--text", TEXT, "--log", log, "--format", "json", "-o", result)
    found = run("replay", result, "--log", log)
    assert (found.exit_code, "line 2 is the search" in found.stderr) == (0, True), found.output
    values = json.loads(result.read_text())
    values["results"][0]["hits"][0]["score"] += 0.01
    (folder / "forged.json").write_text(json.dumps(values))
    forged = run("replay", folder / "forged.json", "--log", log)
    assert (forged.exit_code, "has no line with the result" in forged.output) == (1, True)
    first, second = log.read_bytes().splitlines(keepends=True)
    for changed in (second, first.replace(b"doc002", b"doc003") + second, second + first):
        log.write_bytes(changed)
        refused = run("replay", result, "--log", log)
        assert (refused.exit_code, "is not what was written" in refused.output) == (1, True)


def test_lines_of_many_threads_and_behind_a_torn_line_stay_a_chain(folder: Path) -> None:
    log = folder / "log.jsonl"
    with longmatch.open(folder / "x.lm") as index:
        result = index.search(TEXT * 5_000, k=1)  # a line longer than the tail that is read
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: SearchLog(log).add(result), range(24)))
        whole = log.read_bytes()
        log.write_bytes(whole[: -len(whole) // 30])
        SearchLog(log).add(index.search("topic2word2", k=1))
    assert [*read_log(log)] == [*range(1, 24), 25]
    log.write_bytes(whole.replace(b"doc", b"dog", 1))
    with pytest.raises(DocumentError, match="line 1 of"):
        read_log(log)


def test_a_search_that_cannot_be_logged_fails(folder: Path) -> None:
    (folder / "log.jsonl").mkdir()
    with (
        longmatch.open(folder / "x.lm", search_log=folder / "log.jsonl") as index,
        pytest.raises(StorageError, match=r"log\.jsonl"),
    ):
        index.search(TEXT)
