"""The HTTP API gives the results of Python, and refuses bad requests with errors in JSON."""

import gzip
import io
import json
import tempfile
import zipfile
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.testclient import TestClient

from engine.errors import IndexMismatch
from engine.index import Index
from engine.readers import read_document
from engine.report.contract import envelope, result_schema
from engine.search.request import Mode, Request
from engine.text.document import Document
from indexer.serving.answers import refusal_of
from indexer.serving.settings import MAX_BYTES
from longmatch.sources import query_document

TEXT = "topic3word1 topic3word2 common1\n\nMETHODS\n\ntopic3word5 topic3word7 common4"
RECORD = {"title": "A draft", "sections": [{"heading": "Start", "text": "topic3word1 topic3word2 common1"}]}


def timeless(answer: dict[str, Any]) -> dict[str, Any]:
    """An envelope without what differs between two runs."""
    return answer | {
        "results": [one | {"seconds": 0, "provenance": provenance_without_time(one)} for one in answer["results"]]
    }


def provenance_without_time(result: dict[str, Any]) -> dict[str, Any] | None:
    """The provenance of a result without the time of its search; None where it has none."""
    return result["provenance"] and {name: value for name, value in result["provenance"].items() if name != "time"}


MARKDOWN = f"---\ntitle: On foxes\n---\n\n# Hunt\n\n{TEXT}\n\n# Den\n\n{TEXT}\n"


def found(client: TestClient, body: object, path: str = "/v1/search") -> dict[str, Any]:
    response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    jsonschema.validate(answer, result_schema())
    return timeless(answer)


def of_python(result: Any, n_pairs: int | None = 3) -> dict[str, Any]:  # noqa: ANN401
    values = json.loads(json.dumps(result.to_dict(n_pairs=n_pairs)))
    for one in (values["query"], *values["hits"]):
        one["source"] = Path(one["source"]).name
    values["provenance"]["index"]["path"] = Path(values["provenance"]["index"]["path"]).name
    return timeless(envelope([values]))


def refused(response: Any, status: int, code: str) -> str:  # noqa: ANN401
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    assert set(response.json()["error"]) == {"code", "message", "next"} and all(response.json()["error"].values())
    return str(response.json()["error"]["message"])


@pytest.mark.parametrize(
    ("body", "query"),
    [
        ({"text": TEXT}, Document.from_text(TEXT)),
        ({"text": MARKDOWN}, Document.from_text(MARKDOWN)),
        ({"document": RECORD}, query_document(RECORD)),
        ({"doc_id": "doc013"}, "doc013"),
    ],
)
def test_a_search_equals_that_of_python(
    client: TestClient, index: Index, body: dict[str, Any], query: Document | str
) -> None:
    assert found(client, body) == of_python(index.search(query))
    assert found(client, body | {"k": 2, "sections": None}) == of_python(index.search(query, Request(k=2)), None)


def test_no_response_names_a_folder_of_the_server(client: TestClient, index: Index) -> None:
    folder = str(Path(index.snapshot.folder).parent)
    bodies = [
        ("/v1/search", {"text": TEXT}),
        ("/v1/search", {"text": "one", "where": "colour = 1"}),
        ("/v1/search", {"doc_id": "doc003", "also": [{"text": TEXT}]}),
        ("/v1/compare", {"query": {"doc_id": "doc003"}, "target": {"text": TEXT}}),
    ]
    answers = [client.post(path, json=body).text for path, body in bodies]
    answers += [client.get(path).text for path in ("/v1/documents", "/v1/documents/doc003", "/health")]
    assert [answer for answer in answers if folder in answer] == []


@pytest.mark.parametrize("name", ["draft.md", "draft.md.gz", "../../etc/draft.md", "untitled draft.v2.md.gz"])
def test_a_search_with_a_file_equals_that_of_python(
    client: TestClient, index: Index, tmp_path: Path, name: str
) -> None:
    path = tmp_path / Path(name).name
    opening = "## Draft" if name.startswith("untitled") else "# Draft"
    content = f"{opening}\n\n{TEXT}".encode()
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    form = {"k": "3", "offset": "1", "where": '{"year": {">=": 2003}}', "without": ["doc003", "doc013"]}
    form |= {"weights": "draft=2, boilerplate=0.5", "diversify": "true"}
    response = client.post("/v1/search/file", files={"file": (name, path.read_bytes())}, data=form)
    document = replace(read_document(path), source=path.name)
    options: dict[str, Any] = {"k": 3, "offset": 1, "where": "`year` >= 2003", "without": ["doc003", "doc013"]}
    options |= {"weights": {"draft": 2.0, "boilerplate": 0.5}, "diversify": True}
    assert timeless(response.json()) == of_python(index.search(document, Request.of(**options)))


@pytest.mark.parametrize("options", [{}, {"weights": {"1": 0.5}, "skip": ["appendix"]}])
def test_comparisons_are_those_of_python(client: TestClient, index: Index, options: dict[str, Any]) -> None:
    body = {"query": {"text": TEXT}, "target": {"doc_id": "doc003"}, **options}
    compared = index.compare(Document.from_text(TEXT), "doc003", Request(**options))
    assert found(client, body, "/v1/compare") == of_python(compared, n_pairs=None)


def test_two_files_are_compared_as_in_python(client: TestClient, index: Index, tmp_path: Path) -> None:
    files = {name: (f"{name}.txt", TEXT.replace("3", digit)) for name, digit in (("query", "3"), ("target", "4"))}
    response = client.post("/v1/compare/files", files=files)
    documents = []
    for name, text in files.values():
        (tmp_path / name).write_text(text)
        documents.append(replace(read_document(tmp_path / name), source=name))
    assert timeless(response.json()) == of_python(index.compare(*documents), n_pairs=None)


def test_documents_are_listed_in_pages_and_come_with_sections_and_text(client: TestClient, index: Index) -> None:
    whole = client.get("/v1/documents", params={"where": "family = 'odd'", "limit": 1000}).json()
    page = client.get("/v1/documents", params={"where": "family = 'odd'", "limit": 2, "offset": 3}).json()
    assert whole["n_documents"] == page["n_documents"] == 30
    assert page["documents"] == whole["documents"][3:5]
    assert [one["id"] for one in page["documents"]] == ["doc007", "doc009"]
    answer = client.get("/v1/documents/doc003").json()
    document = index.document("doc003")
    assert answer["text"] == document.text
    assert [(one["start"], one["end"]) for one in answer["sections"]] == [(s.start, s.stop) for s in document.sections]


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        (b"", 422, "invalid_request", "body: it is missing"),
        (b"{", 422, "invalid_request", "body.1: it is not JSON: Expecting property name enclosed in double quotes"),
        (b"[]", 422, "invalid_request",
         "body: it must be a JSON object, sent with Content-Type: application/json"),
        (b"[" * 40_000, 400, "bad_request", None),
        (b"{}", 422, "invalid_request", None),
        (b'{"text": "one", "doc_id": "doc003"}', 422, "invalid_request",
         "body: give one of text, document and doc_id, not text and doc_id"),
        (b'{"text": 3}', 422, "invalid_request", None),
        (b'{"text": "one", "k": 0}', 422, "invalid_request", "body.k: it must be greater than or equal to 1"),
        (b'{"text": "one", "k": NaN}', 422, "invalid_request", None),
        (b'{"text": "one", "k": true}', 422, "invalid_request", None),
        (b'{"text": "one", "k": 100000}', 422, "invalid_request", None),
        (b'{"text": "one", "k": 3, "mode": "novelty"}', 400, "bad_query", "k is for rankings of documents"),
        (b'{"text": "one", "mode": "x"}', 422, "invalid_request",
         "body.mode: it must be 'similar', 'containment' or 'novelty'"),
        (b'{"text": "one", "without": [""]}', 422, "invalid_request",
         "body.without.0: it must have at least 1 character"),
        (b'{"text": "\xff"}', 400, "bad_request",
         "the body is not JSON in UTF-8 without compression, or is nested too deeply, "
         "or has a number of too many digits"),
        (b'{"text": "one", "txt": 1}', 422, "invalid_request", "body.txt: there is no such field"),
        (b'{"text": "\\ud800"}', 422, "invalid_request", None),
        (b'{"doc_id": "\\ud800"}', 422, "invalid_request", None),
        (b'{"text": "one", "where": "title = \'\\ud800\'"}', 422, "invalid_request", None),
        (b'{"text": "one", "where": {"title": "\\ud800"}}', 400, "bad_request", None),
        (b'{"text": ""}', 422, "document_unreadable", None),
        (b'{"document": {"sections": []}}', 422, "document_unreadable", None),
        (b'{"text": "one", "where": {"year": NaN}}', 400, "bad_query", None),
        (b'{"text": "one", "where": "year >"}', 400, "bad_query", None),
        (b'{"text": "one", "where": "colour = 1"}', 400, "bad_query", None),
        (b'{"text": "one", "where": %s1%s}' % (b'{"$not": ' * 400, b"}" * 400), 400, "bad_query", None),
        (b'{"doc_id": "nothing"}', 404, "no_such_document", None),
        (b'{"text": "one", "without": ["nothing"]}', 404, "no_such_document", None),
    ],
)  # fmt: skip
def test_a_bad_search_is_refused_with_the_field_and_its_fault(
    client: TestClient, body: bytes, status: int, code: str, message: str | None
) -> None:
    response = client.post("/v1/search", content=body, headers={"content-type": "application/json"})
    assert refused(response, status, code) == message or message is None


def test_an_error_names_no_folder_of_the_server() -> None:
    error = IndexMismatch("/data/x.lm holds words alone; add vectors: longmatch index /data/x.lm")
    refusal = refusal_of(error, Path("/data/x.lm"))
    assert (refusal.message, refusal.next_step) == ("the index holds words alone", "add vectors: longmatch index INDEX")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("POST", "/v1/search/file", 422, "invalid_request"),
        ("GET", "/v1/documents/nothing", 404, "no_such_document"),
        ("GET", "/v1/documents/..%2F..%2Fetc%2Fpasswd", 404, "no_such_document"),
        ("GET", "/v1/documents?limit=-1", 422, "invalid_request"),
        ("GET", "/v2/search", 404, "no_such_path"),
        ("DELETE", "/v1/documents", 405, "method_not_allowed"),
    ],
)
def test_bad_requests_are_refused_with_errors_in_json(
    client: TestClient, method: str, path: str, status: int, code: str
) -> None:
    headers = {"content-type": "application/json"}
    refused(
        client.request(method, path, content=b"no form" if method == "POST" else b"", headers=headers), status, code
    )


def bomb() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b" " * 64 * 2**20)
    return data.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("bomb.txt.gz", gzip.compress(b"a " * 32 * 2**20, 1)),
        ("bomb.docx", bomb()),
        ("cut.pdf", b"%PDF-1.7\n"),
        ("two.jsonl", b'{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n'),
        ("", b""),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(client: TestClient, name: str, data: bytes) -> None:
    response = client.post("/v1/search/file", files={"file": (name or "\0", data)})
    message = refused(response, 422, "document_unreadable")
    assert tempfile.gettempdir() not in message and "longmatch-" not in message


def test_health_readiness_and_metrics(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "alive"}
    assert client.get("/ready").json() == {"status": "ready"}
    client.get("/v1/documents/doc003")
    text = client.get("/metrics").text
    assert "longmatch_documents 60.0" in text
    assert 'path="/v1/documents/{doc_id:path}"' in text


def test_openapi_holds_the_contract(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    schemas = description["components"]["schemas"]
    assert schemas["hit"]["required"] == result_schema()["$defs"]["hit"]["required"]
    content = description["paths"]["/v1/search"]["post"]["responses"]["200"]["content"]
    assert content["application/json"]["schema"] == {"$ref": "#/components/schemas/envelope"}
    text = json.dumps(description)
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert all(reduce(lambda part, key: part[key], name.split("/"), schemas) for name in names)
    assert "#/$defs/" not in text
    weights = schemas["SearchBody"]["properties"]["weights"]
    assert (weights["maxProperties"], "maxLength" in weights) == (1000, False)


def test_novelty_is_that_of_python(client: TestClient, index: Index) -> None:
    answer = client.post("/v1/search", json={"text": TEXT, "mode": "novelty", "sections": 2}).json()
    jsonschema.validate(answer, result_schema())
    expected = index.search(Document.from_text(TEXT), Request(mode=Mode.NOVELTY)).to_dict(n_pairs=2)
    shown = [(one["novelty"], one["hit"] and one["hit"]["id"]) for one in answer["results"][0]["sections"]]
    assert shown == [(one["novelty"], one["hit"] and one["hit"]["id"]) for one in expected["sections"]]
    assert str(Path(index.snapshot.folder).parent) not in json.dumps(answer)


def test_an_index_is_described_with_its_fields(client: TestClient) -> None:
    found = client.get("/v1/index").json()
    fields = {one["name"]: one for one in found.pop("fields")}
    assert found == {
        "name": "corpus.lm",
        "documents": 60,
        "documents_with_vectors": 60,
        "encoder": "fake",
        "language": "none",
        "max_bytes": MAX_BYTES,
    }
    assert fields["year"] == {"name": "year", "types": ["number"], "n_documents": 60, "examples": [2000, 2024]}
    assert sorted(fields) == ["family", "tags", "topic", "year"]


def test_values_of_a_field_come_with_their_documents_and_of_an_unknown_one_not(client: TestClient) -> None:
    found = client.get("/v1/values", params={"field": "tags", "containing": "N"}).json()
    assert found == {"field": "tags", "values": [{"value": f"n{one}", "documents": 20} for one in range(3)]}
    assert client.get("/v1/values", params={"field": "nothing"}).json() == {"field": "nothing", "values": []}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/index", "index"),
        ("/v1/values?field=year", "values"),
        ("/v1/documents?limit=2", "documents"),
        ("/v1/documents/doc003", "document"),
    ],
)
def test_responses_follow_the_openapi_schema(client: TestClient, path: str, name: str) -> None:
    description = client.get("/openapi.json").json()
    schema = {"$ref": f"#/components/schemas/{name}", "components": description["components"]}
    jsonschema.validate(client.get(path).json(), schema)
