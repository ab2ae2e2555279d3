"""The retriever in the real LlamaIndex."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.schema import MetadataMode, QueryBundle

from longmatch.integrations import LlamaIndexRetriever
from tests.public.integrations.conftest import QUERY


def test_retrieve_gives_the_hits_as_nodes(folder: Path, expected: list[tuple[str, float]]) -> None:
    nodes = LlamaIndexRetriever(folder, k=3).retrieve(QUERY)
    assert [(node.node_id, node.score) for node in nodes] == expected
    assert [node.metadata["rank"] for node in nodes] == [1, 2, 3]


def test_aretrieve_gives_the_nodes_of_retrieve(folder: Path) -> None:
    retriever = LlamaIndexRetriever(folder, k=2)
    found, later = retriever.retrieve(QUERY), asyncio.run(retriever.aretrieve(QueryBundle(QUERY)))
    assert [(node.node_id, node.score, node.text) for node in later] == [
        (node.node_id, node.score, node.text) for node in found
    ]


def test_section_pairs_stay_out_of_prompts(folder: Path) -> None:
    (node,) = LlamaIndexRetriever(folder, k=1).retrieve(QUERY)
    prompt = node.node.get_content(MetadataMode.LLM)
    assert "year: 2000" in prompt and "target_span" not in prompt
    assert node.metadata["pairs"][0]["target_span"]


def test_a_postprocessor_reads_the_score(folder: Path) -> None:
    nodes = LlamaIndexRetriever(folder, k=3).retrieve(QUERY)
    kept = SimilarityPostprocessor(similarity_cutoff=nodes[0].score).postprocess_nodes(nodes)
    assert [node.node_id for node in kept] == ["fox"]


@pytest.mark.parametrize(
    ("name", "hint"), [("top_k", "did you mean k"), ("n_pair", "did you mean n_pairs"), ("xyz", "use one of index, k")]
)
def test_an_unknown_argument_is_refused_with_the_near_name(folder: Path, name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"has no argument '{name}'; {hint}"):
        LlamaIndexRetriever(folder, **{name: 2})
