"""Every front makes the same search from the same parameters: Python, command, HTTP, page, MCP and replay."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, get_type_hints

import click
import pytest
from click.testing import CliRunner

import longmatch
from engine.index import Index
from engine.replay import replay
from engine.search.request import Mode, Request, parameters
from indexer.cli import main
from longmatch.index import SearchOptions

pytest.importorskip("mcp")
pytest.importorskip("fastapi")

from mcp.client import Client
from starlette.testclient import TestClient

from indexer.mcp import mcp_server
from indexer.serving.app import create_app
from indexer.serving.bodies import CompareBody, SearchBody
from indexer.serving.service import Service
from indexer.serving.settings import ServerSettings

TOPICS = ("fox", "dog", "cat", "owl", "hen", "elk", "eel", "bee")
QUERY = "fox.md"
VALUES: dict[str, Any] = {
    "k": 2,
    "offset": 1,
    "where": "year >= 2003",
    "before": "2006-06-01",
    "without": ["dog.md"],
    "with_itself": True,
    "skip": ["references"],
    "weights": {"habits": 2.5},
    "mode": "containment",
    "diversify": True,
    "one_per": "family",
    "min_pair": 0.02,
    "least": 0.01,
    "exact": True,
    "candidates": 3,
    "encode_tokens": 50,
    "explain": "model",
}
Front: TypeAlias = Callable[["Fronts", dict[str, Any]], list[tuple[str, float]]]
Hits: TypeAlias = list[tuple[str, float]]


def text_of(number: int, topic: str) -> str:
    others = " ".join(f"The {TOPICS[(number + step) % 8]} runs and rests." for step in range(1, 5))
    return (
        f"---\nyear: {2000 + number}\nfamily: f{number // 3}\n---\n"
        f"# The old {topic}\n\nA {topic} runs.\n\n## Habits\n\n{others}\n\n"
        f"## References\n\n[1] Smith, J. (2001). On the {topic}. Journal, 3(2), 1-9.\n"
    )


class Fronts:
    """An index of files, and the ways to search it with one of them."""

    def __init__(self, folder: Path) -> None:
        self.corpus = folder / "corpus"
        self.corpus.mkdir()
        for number, topic in enumerate(TOPICS):
            (self.corpus / f"{topic}.md").write_text(text_of(number, topic))
        self.draft = folder / "draft.md"
        self.draft.write_text(text_of(0, "fox"))
        self.folder = folder / "x.lm"
        longmatch.build(self.folder, self.corpus, encode="none").close()
        self.index = Index.open(self.folder)
        self.service = Service(self.folder, ServerSettings(threads=1))
        self.client = TestClient(create_app(self.service), base_url="http://127.0.0.1")

    def python(self, values: dict[str, Any]) -> Hits:
        with longmatch.open(self.folder) as index:
            return [(hit.doc_id, hit.score) for hit in index.search(self.draft, **values)]

    def command(self, values: dict[str, Any]) -> Hits:
        arguments = ["query", str(self.folder), str(self.draft), "--format", "json"]
        result = CliRunner().invoke(main, [*arguments, *typed(values)])
        if result.exit_code:
            raise longmatch.EngineError(result.stderr)
        return hits_of(json.loads(result.stdout)["results"][0])

    def http(self, values: dict[str, Any]) -> Hits:
        answer = self.client.post("/v1/search", json={"doc_id": QUERY, **values}).json()
        if "error" in answer:
            raise longmatch.EngineError(answer["error"]["message"])
        return hits_of(answer["results"][0])

    def http_file(self, values: dict[str, Any]) -> Hits:
        fields = {name: json.dumps(one) if isinstance(one, dict) else one for name, one in values.items()}
        files = {"file": ("draft.md", self.draft.read_bytes())}
        answer = self.client.post("/v1/search/file", data=fields, files=files).json()
        if "error" in answer:
            raise longmatch.EngineError(answer["error"]["message"])
        return hits_of(answer["results"][0])

    def page(self, values: dict[str, Any]) -> Hits:
        lines = self.client.post("/page/search", json={"doc_id": QUERY, **values}).text.splitlines()
        pieces = [json.loads(line) for line in lines]
        if refused := [piece["error"]["message"] for piece in pieces if "error" in piece]:
            raise longmatch.EngineError(refused[0])
        names = next(piece["hits"] for piece in pieces if piece.get("piece") == "facts")
        scores = dict(self.expected(values))
        return [(name, scores[name]) for name in names]

    def mcp(self, values: dict[str, Any]) -> Hits:
        async def call() -> Any:  # noqa: ANN401
            async with Client(mcp_server(self.folder, files=self.draft.parent)) as client:
                asked = {"path": "draft.md", "k": 10, **values}
                return (await client.call_tool("search_file", asked)).structured_content

        return [(hit["doc_id"], hit["score"]) for hit in asyncio.run(call())["hits"]]

    def replayed(self, values: dict[str, Any]) -> Hits:
        result = self.index.search(QUERY, Request.of(**values))
        recorded = json.loads(json.dumps(result.to_dict()))
        assert replay(self.index, recorded, None).is_equal
        return hits_of(recorded)

    def expected(self, values: dict[str, Any]) -> Hits:
        return [(hit.doc_id, hit.score) for hit in self.index.search(QUERY, Request.of(**values))]


def hits_of(result: Mapping[str, Any]) -> Hits:
    return [(hit["id"], hit["score"]) for hit in result["hits"]]


def typed(values: Mapping[str, Any]) -> list[str]:
    """Parameters as the options of a command."""
    options = {one.name: one for one in main.commands["query"].params if isinstance(one, click.Option)}
    words: list[str] = []
    for name, value in values.items():
        if options[name].is_flag:
            words.append(options[name].opts[-1])
        elif isinstance(value, dict):
            words += [options[name].opts[-1], ",".join(f"{key}={weight}" for key, weight in value.items())]
        else:
            for one in value if isinstance(value, list) else [value]:
                words += [options[name].opts[-1], str(one)]
    return words


@pytest.fixture(scope="module")
def fronts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronts]:
    made = Fronts(tmp_path_factory.mktemp("fronts"))
    with made.client:
        made.service.live.load()
        yield made
    made.index.close()


FRONTS: list[Front] = [
    Fronts.python,
    Fronts.command,
    Fronts.http,
    Fronts.http_file,
    Fronts.page,
    Fronts.mcp,
    Fronts.replayed,
]
NOT_OF_MCP = ("mode", "explain")


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
@pytest.mark.parametrize("name", [None, *VALUES])
def test_every_front_makes_the_same_search(fronts: Fronts, front: Front, name: str | None) -> None:
    if front is Fronts.mcp and name in NOT_OF_MCP:
        return
    values = {} if name is None else {name: VALUES[name]}
    if name == "explain":
        with pytest.raises(longmatch.EngineError, match="words alone"):
            front(fronts, values)
        return
    expected = fronts.expected(values)
    assert front(fronts, values) == expected
    names = [doc_id for doc_id, _ in expected]
    assert (QUERY in names) == (name == "with_itself") and len(names) > 1


def test_the_values_above_cover_every_field_change_the_request_and_python_spells_them_out() -> None:
    assert list(VALUES) == [one.name for one in parameters() if not one.about.is_constant]
    default = Request()
    for name, value in VALUES.items():
        assert getattr(Request.of(**{name: value}), name) != getattr(default, name)
    fields = {one.name for one in parameters()}
    assert set(get_type_hints(SearchOptions)) == fields


def test_bodies_and_tools_have_the_fields_and_defaults(fronts: Fronts) -> None:
    body, default = SearchBody(text="x"), Request().recorded()
    assert {name: getattr(body, name) for name in VALUES} == {name: default[name] for name in VALUES}
    assert {"skip", "weights"} < set(CompareBody.model_fields)

    async def schema() -> Any:  # noqa: ANN401
        async with Client(mcp_server(fronts.index)) as client:
            tools = {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}
            return tools["search_similar"]

    properties = asyncio.run(schema())
    assert set(properties) == {"doc_id", *VALUES, "section_pairs"} - set(NOT_OF_MCP)
    defaults = {name: one["default"] for name, one in properties.items() if name in VALUES}
    assert defaults == {name: default[name] for name in defaults} | {"k": 5}


def test_novelty_leaves_copies_out_and_is_replayed_by_its_record(fronts: Fronts) -> None:
    request = Request(mode=Mode.NOVELTY)
    novelty = fronts.index.search(QUERY, request)
    assert QUERY not in {hit.doc_id for hit in novelty}
    kept = fronts.index.search(QUERY, Request(mode=Mode.NOVELTY, with_itself=True))
    assert {hit.doc_id for hit in kept} == {QUERY}
    assert novelty.provenance is not None and Request.of(**novelty.provenance.parameters) == request


def test_every_front_names_the_copies_that_it_leaves_out(fronts: Fronts) -> None:
    with longmatch.open(fronts.folder) as index:
        assert index.search(fronts.draft).copies == (QUERY,)
    printed = CliRunner().invoke(main, ["query", str(fronts.folder), str(fronts.draft)])
    assert f"left out: {QUERY}; same content as the query" in printed.stderr
    for path, find in (("/v1/search/file", copies_of_http), ("/page/search/file", copies_of_page)):
        files = {"file": ("draft.md", fronts.draft.read_bytes())}
        assert find(fronts.client.post(path, files=files).text) == [QUERY]


def copies_of_http(text: str) -> object:
    return json.loads(text)["results"][0]["copies"]


def copies_of_page(text: str) -> object:
    pieces = [json.loads(line) for line in text.splitlines()]
    return next(piece["left_out"] for piece in pieces if piece.get("piece") == "facts")
