"""The MCP server, called by the client of the real library: in memory, and as the command that clients start."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

import longmatch
from engine.index import Index
from engine.search.request import Request
from engine.text.document import Document

pytest.importorskip("mcp")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from indexer.mcp import mcp_server

ROOT = Path(__file__).parents[3]
ValueT = TypeVar("ValueT")


def with_client(server: object, use: Callable[[Client], Awaitable[ValueT]]) -> ValueT:
    async def run() -> ValueT:
        async with Client(server) as client:
            return await use(client)

    return asyncio.run(run())


def test_tools_have_bounds_give_the_hits_and_errors_with_the_next_step(index: Index) -> None:
    expected = [(hit.doc_id, hit.score) for hit in index.search("doc003", Request(k=3))]

    async def use(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert sorted(tools) == ["describe_index", "read_document", "search_similar", "search_text"]
        assert all(tool.description and tool.annotations.read_only_hint for tool in tools.values())
        k = tools["search_text"].input_schema["properties"]["k"]
        assert (k["minimum"], k["maximum"], k["default"]) == (1, 50, 5)
        assert tools["search_text"].input_schema["required"] == ["text"]
        found = (await client.call_tool("search_similar", {"doc_id": "doc003", "k": 3})).structured_content
        assert [(hit["doc_id"], hit["score"]) for hit in found["hits"]] == expected
        failed = await client.call_tool("read_document", {"doc_id": "nope"})
        assert failed.is_error
        folder = index.snapshot.folder.name
        message = f"no document 'nope' among 60 in {folder}; list them: longmatch show {folder} --documents"
        assert failed.content[0].text.endswith(message)

    with_client(mcp_server(index), use)


@pytest.mark.slow
def test_the_command_serves_standard_input_and_output(tmp_path: Path, corpus: list[Document]) -> None:
    longmatch.build(tmp_path / "words.lm", corpus[:10], encode="none", progress=False)
    (tmp_path / "drafts").mkdir()
    (tmp_path / "drafts/draft.md").write_text(corpus[3].text)
    arguments = ["-m", "longmatch", "mcp", str(tmp_path / "words.lm"), "--files", str(tmp_path / "drafts")]
    parameters = StdioServerParameters(command=sys.executable, args=arguments, cwd=str(ROOT))

    async def use(client: Client) -> None:
        about = (await client.call_tool("describe_index", {})).structured_content
        assert about["documents"] == 10
        found = (await client.call_tool("search_file", {"path": "draft.md", "k": 1})).structured_content
        assert [hit["doc_id"] for hit in found["hits"]] == ["doc003"]

    with_client(stdio_client(parameters), use)
