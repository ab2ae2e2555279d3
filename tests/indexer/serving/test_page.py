"""The page without a browser: its files, and the lines of its searches."""

import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from starlette.testclient import TestClient

from engine.encoders.encoder import EncodedDocument, SegmentedDocument
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document
from indexer.building.builder import build
from indexer.serving.settings import ServerSettings
from tests.fakes import FakeEncoder, make_corpus
from tests.indexer.serving.clients import served

TEXT = "topic3word1 topic3word2 common1\n\nMETHODS\n\ntopic3word5 topic3word7 common4"
OUTSIDE = re.compile(r"""(?:src|href)\s*=\s*["']?(?:https?:|//)|@import|url\(["']?(?:https?:|//)""")
TOKEN = "a-token-of-32-characters-or-more"


def lines(client: TestClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    response = client.post("/page/search", json=body)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/x-ndjson"), response.text
    return [json.loads(line) for line in response.text.splitlines()]


def pieces(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [one for one in found if one.get("piece") == kind]


def numbers(html: str) -> list[float]:
    return [float(one.get("value")) for one in lxml.html.fragment_fromstring(html, "div").iter("data")]


def assets(client: TestClient) -> list[str]:
    html = client.get("/").text
    named = re.findall(r'(?:href|src)="(assets/[^"]+)"', html)
    imported = [re.findall(r'from "\./([\w.]+)"', client.get(name).text) for name in named if name.endswith(".js")]
    return sorted({*named, *(f"assets/{one}" for names in imported for one in names)})


def test_every_file_of_the_page_is_served_with_a_strict_policy(client: TestClient) -> None:
    found = assets(client)
    assert len(found) == 10
    for path in ("", *found):
        response = client.get(path)
        policy = response.headers["content-security-policy"]
        assert response.status_code == 200, path
        assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
        assert not OUTSIDE.search(response.text)


def test_the_page_and_its_files_need_no_token_and_searches_do(built_folder: Path) -> None:
    with served(built_folder, ServerSettings(threads=1, token=TOKEN)) as client:
        assert {client.get(path).status_code for path in ("/", *assets(client))} == {200}
        for path in ("/v1/index", "/v1/values?field=year", "/assets"):
            assert client.get(path).status_code == 401, path
        assert client.post("/page/search", json={"text": TEXT}).json()["error"]["code"] == "no_token"


def test_the_pieces_have_the_numbers_of_python_and_of_the_report(client: TestClient, index: Index) -> None:
    expected = index.search(Document.from_text(TEXT), Request(k=3, offset=1, where="year >= 2003", skip=["references"]))
    options = {"text": TEXT, "k": 3, "offset": 1, "where": {"year": {">=": 2003}}, "skip": ["references"]}
    found = lines(client, options)
    shown = [one["html"] for one in pieces(found, "hit")]
    (facts,) = pieces(found, "facts")
    assert facts["hits"] == [hit.doc_id for hit in expected]
    for html, hit in zip(shown, expected.to_dict(n_pairs=10)["hits"], strict=True):
        element = lxml.html.fragment_fromstring(html)
        contributions = element.xpath(".//table[@class='contributions']//tbody//tr/td[4]/data/@value")
        shares = hit["by_section"]
        rest = [sum(one["contribution"] for one in shares["rest"])] if shares["rest"] else []
        assert [float(one) for one in contributions] == [*(row["contribution"] for row in shares["rows"]), *rest]
        assert numbers(html)[0] == hit["score"]
    (report,) = pieces(lines(client, options | {"report": True}), "report")
    articles = lxml.html.document_fromstring(report["html"]).xpath("//article")
    of_report = [[float(one.get("value")) for one in article.iter("data")] for article in articles]
    assert of_report == [numbers(html) for html in shown]


def test_pieces_are_those_of_the_report_and_name_no_folder(client: TestClient, built_folder: Path) -> None:
    kinds = [one["piece"] for one in lines(client, {"doc_id": "doc003", "k": 2}) if "piece" in one]
    assert kinds == ["facts", "head", "hit", "hit", "tail"]
    for report in (False, True):
        found = lines(client, {"doc_id": "doc003", "k": 2, "report": report})
        assert str(built_folder.parent) not in json.dumps(found)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"doc_id": "nothing"}, 404, "the index holds no document 'nothing'"),
        ({"text": TEXT, "where": "year >="}, 400, "filter"),
        ({"text": " "}, 422, "text"),
        ({"text": TEXT, "k": 0}, 422, "k"),
    ],
)
def test_an_early_error_has_its_http_status(
    client: TestClient, body: dict[str, Any], status: int, message: str
) -> None:
    response = client.post("/page/search", json=body)
    response_lines = response.text.splitlines()
    assert message in json.loads(response_lines[-1])["error"]["message"]
    assert response.status_code in (status, 200) and (response.status_code == 200) == (len(response_lines) > 1)


class SteppedEncoder(FakeEncoder):
    """Encodes one more chunk each time that its progress is read."""

    def __init__(self) -> None:
        super().__init__()
        self.is_stepped = False
        self._looks = threading.Semaphore(0)
        self._n_read = 0

    @property
    def n_read(self) -> int:
        self._looks.release()
        return self._n_read

    def encode_segmented(self, documents: Sequence[SegmentedDocument]) -> list[EncodedDocument]:
        for _ in [chunk for one in documents for chunk in one.chunks]:
            if self.is_stepped:
                assert self._looks.acquire(timeout=60)
            self._n_read += 1
        return super().encode_segmented(documents)


@pytest.mark.slow
def test_progress_counts_the_tokens_that_are_encoded(tmp_path: Path) -> None:
    encoder = SteppedEncoder()
    build(tmp_path / "x.lm", make_corpus(20), encoder=encoder, language="english")
    build(tmp_path / "x.lm", make_corpus(40), encode="none")
    with served(tmp_path / "x.lm", ServerSettings(threads=1), encoder) as client:
        encoder.is_stepped = True
        found = lines(client, {"text": TEXT * 20, "k": 1, "candidates": 2})
    for subject in ("query", "candidates"):
        shown = [one for one in found if one.get("subject") == subject]
        (total,) = {one["tokens_total"] for one in shown}
        done = [one["tokens_done"] for one in shown]
        assert done == sorted(set(done)) and len(done) > 2 and done[-1] <= total
