"""`/v1/index` and `/v1/values` describe the index, its fields and their values, for people who write filters."""

from __future__ import annotations

import jsonschema
from starlette.testclient import TestClient

from indexer.serving.settings import MAX_BYTES


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


def test_values_of_a_field_come_with_their_documents(client: TestClient) -> None:
    found = client.get("/v1/values", params={"field": "tags", "containing": "N"}).json()
    assert found == {"field": "tags", "values": [{"value": f"n{one}", "documents": 20} for one in range(3)]}


def test_an_unknown_field_has_no_values(client: TestClient) -> None:
    assert client.get("/v1/values", params={"field": "nothing"}).json() == {"field": "nothing", "values": []}


def test_both_responses_follow_the_openapi_schema(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    for path, name in (("/v1/index", "index"), ("/v1/values?field=year", "values")):
        schema = {"$ref": f"#/components/schemas/{name}", "components": description["components"]}
        jsonschema.validate(client.get(path).json(), schema)
