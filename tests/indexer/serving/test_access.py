"""Requests without a token, from other sites, too large, too many or too slow are refused."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from engine.encoders.encoder import SegmentedDocument
from engine.text.document import Document
from indexer.serving.settings import ServerSettings
from tests.fakes import FakeEncoder
from tests.indexer.serving.clients import served, until

TOKEN = "a-token-of-32-characters-or-more"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def guarded(built_folder: Path) -> Iterator[TestClient]:
    with served(built_folder, ServerSettings(threads=1, token=TOKEN, max_bytes=1_000)) as client:
        yield client


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer wrong", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe4"]
)
def test_a_request_without_the_token_is_refused(guarded: TestClient, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header.encode("latin-1")}
    for path in ("/v1/documents", "/metrics", "/openapi.json", "/nothing"):
        response = guarded.get(path, headers=headers)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, "Bearer")
        assert response.json()["error"]["next"] == "send the header: Authorization: Bearer TOKEN"


def test_the_token_opens_the_api_and_health_needs_none(guarded: TestClient) -> None:
    assert guarded.get("/v1/documents", headers=BEARER).status_code == 200
    assert guarded.get("/v1/documents", headers=BEARER | {"Host": "search.example.org"}).status_code == 200
    assert guarded.get("/health").status_code == guarded.get("/ready").status_code == 200


@pytest.mark.slow
def test_a_body_over_the_limit_is_refused(guarded: TestClient) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b"a" * 100

    for body in (b"a" * 1_001, parts()):
        response = guarded.post("/v1/search", headers=BEARER, content=body)
        assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")
        assert "1,000 bytes" in response.json()["error"]["message"]


@pytest.mark.parametrize("headers", [{"Host": "example.org"}, {"Origin": "https://example.org"}, {"Origin": "null"}])
def test_without_a_token_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    response = client.get("/v1/documents", headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (403, "foreign_host")


class StuckEncoder(FakeEncoder):
    """Stops at the query that holds "stuck", until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.release = threading.Event()
        self.n_stuck = 0

    def segment(self, document: Document) -> SegmentedDocument:
        if "stuck" in document.text:
            self.n_stuck += 1
            assert self.release.wait(60)
        return super().segment(document)


def post(client: TestClient, text: str) -> int:
    return int(client.post("/v1/search", json={"text": text}).status_code)


def test_too_many_requests_are_refused_at_once(built_folder: Path) -> None:
    encoder, statuses = StuckEncoder(), list[int]()
    with served(built_folder, ServerSettings(threads=1, concurrency=1), encoder) as client:
        stuck = threading.Thread(target=lambda: statuses.append(post(client, "stuck")))
        stuck.start()
        until(lambda: encoder.n_stuck == 1)
        refused = client.post("/v1/search", json={"text": "one"})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
        assert refused.json()["error"]["code"] == "busy"
        encoder.release.set()
        stuck.join()
        assert statuses == [200] and post(client, "one") == 200


@pytest.mark.slow
def test_a_slow_request_keeps_its_place_after_the_timeout(built_folder: Path) -> None:
    encoder = StuckEncoder()
    with served(built_folder, ServerSettings(threads=1, concurrency=1, timeout=0.3), encoder) as client:
        response = client.post("/v1/search", json={"text": "stuck"})
        assert (response.status_code, response.json()["error"]["code"]) == (504, "timeout")
        assert post(client, "one") == 503
        encoder.release.set()
        until(lambda: post(client, "one") == 200)
