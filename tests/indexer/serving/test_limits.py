"""Requests of too much work are refused by a stated limit, work ends at the deadline, and memory stays flat."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.errors import step
from engine.index import Index
from engine.text.document import Document
from indexer.serving import answers
from indexer.serving.bodies import Parameters
from indexer.serving.settings import MOST_CHARS, MOST_SECTIONS, ServerSettings
from tests.fakes import FakeEncoder
from tests.indexer.serving.clients import served, until
from tests.indexer.serving.test_access import running

WORDS = " ".join(f"topic{number % 12}word{number % 7} common{number % 9}" for number in range(100))


def of_sections(n: int, text: str = WORDS) -> dict[str, Any]:
    return {"sections": [{"heading": f"Part {number}", "text": text} for number in range(n)]}


REFUSED: dict[str, tuple[str, dict[str, Any], int, str, str]] = {
    "sections of JSON": ("search", {"document": of_sections(MOST_SECTIONS + 1, "a")}, 422, "invalid_request", "2000"),
    "text": ("search", {"text": "word " * (MOST_CHARS // 5 + 1)}, 413, "too_much_text", "the limit is 4,000,000"),
    "values": ("search", {"document": {"sections": [{}] * 50_001}}, 413, "too_many_values", "the limit is 50,000"),
    "words in pairs of sections": (
        "compare",
        {"query": {"document": of_sections(600)}, "target": {"document": of_sections(600)}},
        413,
        "too_much_work",
        "the limit is 67,108,864",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_request_over_a_limit_names_it_and_the_next_step(client: TestClient, name: str) -> None:
    path, body, status, code, limit = REFUSED[name]
    response = client.post(f"/v1/{path}", json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"], limit in error["message"]) == (status, code, True), response.text[:400]
    assert error["next"]


def test_a_file_of_too_many_sections_is_refused(client: TestClient) -> None:
    words = [" ".join(f"own{number}word{at}" for at in range(60)) for number in range(MOST_SECTIONS + 1)]
    text = "".join(f"# Own{number}\n\n{part}\n\n" for number, part in enumerate(words))
    response = client.post("/v1/search/file", files={"file": ("a.md", text)})
    message = "sections of a.md: 2,001, the limit is 2,000"
    assert (response.status_code, response.json()["error"]["message"]) == (413, message)


def test_a_reply_over_the_limit_is_refused(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_REPLY_BYTES", 100_000)
    response = client.post("/v1/search", json={"text": WORDS, "k": 50})
    assert (response.status_code, response.json()["error"]["code"]) == (413, "reply_too_large")
    assert client.post("/v1/search", json={"text": WORDS, "k": 1}).status_code == 200


def endless() -> bytes:
    """Work that only a step can end."""
    while True:
        step()
        time.sleep(0.01)  # threads that search meanwhile need the interpreter


def post_all(client: TestClient, n: int, body: dict[str, Any]) -> Callable[[], list[int]]:
    statuses: list[int] = []
    posts = [
        threading.Thread(target=lambda: statuses.append(client.post("/v1/search", json=body).status_code))
        for _ in range(n)
    ]
    for post in posts:
        post.start()

    def joined() -> list[int]:
        for post in posts:
            post.join()
        return statuses

    return joined


def test_deadlines_end_work_and_large_requests_leave_threads(
    built_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = answers.search

    def search(index: Index, query: Document, parameters: Parameters) -> bytes:
        return endless() if len(query.text) > len(WORDS) else whole(index, query, parameters)

    monkeypatch.setattr(answers, "search", search)
    large = {"text": "word " * 60_000}
    with served(built_folder, ServerSettings(threads=4, concurrency=16, timeout=4)) as client:
        joined = post_all(client, 6, large)
        until(lambda: b"requests_admitted 6" in client.get("/metrics").content)
        assert client.post("/v1/search", json={"text": WORDS}).status_code == 200
        assert joined() == [504] * 6
        until(lambda: b"requests_admitted 0" in client.get("/metrics").content)


def test_a_request_that_waits_for_its_vectors_leaves_its_thread_to_others(built_folder: Path) -> None:
    class Held(FakeEncoder):
        def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
            assert len(documents[0].document.text) < len(WORDS) or released.wait(60)
            return super().encode_segmented(documents)

    released = threading.Event()
    with served(built_folder, ServerSettings(threads=1), Held()) as client:
        joined = post_all(client, 2, {"text": WORDS})
        try:
            until(lambda: b"requests_admitted 2" in client.get("/metrics").content)
            assert client.get("/v1/documents/doc003").status_code == 200
        finally:
            released.set()
        assert joined() == [200, 200]


def test_no_type_is_guessed_and_readiness_says_nothing_of_documents(client: TestClient) -> None:
    for path in ("/", "/ready", "/metrics", "/v1/documents", "/nothing", "/assets/icon.svg"):
        assert client.get(path).headers["x-content-type-options"] == "nosniff"


@pytest.mark.slow
def test_idle_connections_do_not_block_others(words_folder: Path) -> None:
    with running(words_folder) as (_, port):
        idle = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(600)]
        try:
            assert posted(port, SHORT) == 200
        finally:
            for one in idle:
                one.close()


SHORT = json.dumps({"text": WORDS, "k": 1}).encode()


def posted(port: int, body: bytes, path: str = "/v1/search") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        return response.status
    except ConnectionError:  # refused before the whole body was sent
        return 503
    finally:
        connection.close()


def memory(process_id: int, field: str) -> int:
    """A value of the memory of a process, in kB."""
    (line,) = (line for line in Path(f"/proc/{process_id}/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1])


@pytest.mark.slow
def test_thirty_hostile_clients_at_most_double_the_memory(words_folder: Path) -> None:
    requests = {name: (path, body) for name, (path, body, *_) in REFUSED.items()}
    requests["many pairs"] = ("search", {"document": of_sections(2_000), "k": 50, "sections": None})
    requests["few"] = ("compare", {"query": {"text": WORDS}, "target": {"text": WORDS}})
    bodies = [(name, f"/v1/{path}", json.dumps(body).encode()) for name, (path, body) in requests.items()]
    statuses: set[tuple[str, int]] = set()
    with running(words_folder, "--threads", "4") as (process, port):
        assert posted(port, SHORT) == 200
        idle = memory(process.pid, "VmRSS")

        def client(number: int) -> None:
            name, path, body = bodies[number % len(bodies)]
            answers = (posted(port, body, path) for _ in range(50))  # told to come back, a client does
            statuses.add((name, next((status for status in answers if status != 503), 503)))

        clients = [threading.Thread(target=client, args=(number,)) for number in range(30)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        peak = memory(process.pid, "VmHWM")
        expected = {(name, status) for name, (_, _, status, *_) in REFUSED.items()} | {("few", 200)}
        assert {one for one in statuses if one[1] != 503} - {("many pairs", 413)} == expected
        assert posted(port, SHORT) == 200
    assert peak <= 2 * idle, (idle, peak)  # once it was 22 GB
