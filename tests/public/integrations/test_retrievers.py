"""The retrievers in the real LangChain, LlamaIndex and Haystack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from longmatch import integrations
from tests.public.integrations.conftest import QUERY

Hits = list[tuple[str, float, int, str]]  # doc_id, score, rank, text


def langchain_hits(folder: Path, *, is_async: bool, **settings: Any) -> Hits:  # noqa: ANN401
    retriever = integrations.LangChainRetriever(index=folder, **settings)
    found = asyncio.run(retriever.ainvoke(QUERY)) if is_async else retriever.invoke(QUERY)
    return [(one.id, one.metadata["score"], one.metadata["rank"], one.page_content) for one in found]


def llama_index_hits(folder: Path, *, is_async: bool, **settings: Any) -> Hits:  # noqa: ANN401
    retriever = integrations.LlamaIndexRetriever(folder, **settings)
    found = asyncio.run(retriever.aretrieve(QUERY)) if is_async else retriever.retrieve(QUERY)
    return [(one.node_id, one.score, one.metadata["rank"], one.text) for one in found]


def haystack_hits(folder: Path, *, is_async: bool, **settings: Any) -> Hits:  # noqa: ANN401
    retriever = integrations.HaystackRetriever(folder, **settings)
    found = asyncio.run(retriever.run_async(QUERY)) if is_async else retriever.run(query=QUERY)
    return [(one.id, one.score, one.meta["rank"], one.content) for one in found["documents"]]


def in_framework(module: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")


LANGCHAIN, LLAMA_INDEX, HAYSTACK = map(in_framework, ("langchain_core", "llama_index", "haystack"))
FRAMEWORKS = [
    pytest.param(langchain_hits, id="langchain", marks=LANGCHAIN),
    pytest.param(llama_index_hits, id="llama_index", marks=LLAMA_INDEX),
    pytest.param(haystack_hits, id="haystack", marks=HAYSTACK),
]


@pytest.mark.parametrize("hits_of", FRAMEWORKS)
def test_a_retriever_gives_the_hits_of_a_search(
    folder: Path, expected: list[tuple[str, float]], hits_of: Callable[..., Hits]
) -> None:
    hits = hits_of(folder, is_async=False, k=3)
    assert [hit[:3] for hit in hits] == [(*hit, rank) for rank, hit in enumerate(expected, start=1)]
    assert "fox" in hits[0][3]
    assert hits_of(folder, is_async=True, k=3) == hits
    assert hits_of(str(folder), is_async=False, k=1, where={"year": {">=": 2001}})[0][0] != "fox"


@pytest.mark.parametrize("hits_of", FRAMEWORKS)
@pytest.mark.parametrize(
    ("name", "hint"), [("top_k", "did you mean k"), ("n_pair", "did you mean n_pairs"), ("xyz", "use one of index, k")]
)
def test_an_unknown_argument_gets_a_near_name(folder: Path, hits_of: Callable[..., Hits], name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"has no argument '{name}'; {hint}"):
        hits_of(folder, is_async=False, **{name: 2})


@LANGCHAIN
def test_a_chain_of_langchain_holds_the_retriever(folder: Path) -> None:
    from langchain_core.runnables import RunnableLambda

    retriever = integrations.LangChainRetriever(index=folder, k=1)
    chain = retriever | RunnableLambda(lambda found: [one.id for one in found])
    assert chain.batch([QUERY] * 3) == [["fox"]] * 3
    retriever.k = 2
    assert len(retriever.invoke(QUERY)) == 2


@LLAMA_INDEX
def test_llama_index_reads_scores_and_keeps_section_pairs_out_of_prompts(folder: Path) -> None:
    from llama_index.core.postprocessor import SimilarityPostprocessor
    from llama_index.core.schema import MetadataMode

    nodes = integrations.LlamaIndexRetriever(folder, k=3).retrieve(QUERY)
    prompt = nodes[0].node.get_content(MetadataMode.LLM)
    assert "year: 2000" in prompt and "target_span" not in prompt
    assert nodes[0].metadata["pairs"][0]["target_span"]
    best = SimilarityPostprocessor(similarity_cutoff=nodes[0].score).postprocess_nodes(nodes)
    assert [node.node_id for node in best] == ["fox"]


@HAYSTACK
def test_a_pipeline_of_haystack_connects_saves_and_loads_the_retriever(folder: Path) -> None:
    from haystack import Pipeline
    from haystack.components.joiners import DocumentJoiner

    pipeline = Pipeline()
    pipeline.add_component("retriever", integrations.HaystackRetriever(folder, k=3, where="year >= 2001"))
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.connect("retriever.documents", "joiner.documents")
    one = {"retriever": {"query": QUERY, "k": 1, "where": {"year": 2000}}}
    for found in (pipeline.run(one), asyncio.run(pipeline.run_async(one))):
        assert [document.id for document in found["joiner"]["documents"]] == ["fox"]
    loaded = Pipeline.loads(pipeline.dumps(), allowed_modules=["longmatch.integrations.haystack"])
    every = {"retriever": {"query": QUERY}}
    assert loaded.run(every) == pipeline.run(every)
    settings = {"k": 3, "where": "year >= 2001", "n_pairs": 3, "content": "passages"}
    saved = pipeline.to_dict()["components"]["retriever"]["init_parameters"]
    assert saved == {"index": str(folder), **settings}
