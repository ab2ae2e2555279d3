"""The retriever as a component in pipelines of the real Haystack."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("haystack")

from haystack import Pipeline
from haystack.components.joiners import DocumentJoiner

from longmatch.integrations import HaystackRetriever
from tests.public.integrations.conftest import QUERY

MODULE = "longmatch.integrations.haystack"


def test_run_gives_the_hits_as_documents(folder: Path, expected: list[tuple[str, float]]) -> None:
    documents = HaystackRetriever(folder, k=3).run(query=QUERY)["documents"]
    assert [(one.id, one.score) for one in documents] == expected
    assert [one.meta["rank"] for one in documents] == [1, 2, 3]
    assert "fox" in documents[0].content


def test_run_async_gives_the_documents_of_run(folder: Path) -> None:
    retriever = HaystackRetriever(folder, k=2)
    assert asyncio.run(retriever.run_async(QUERY)) == retriever.run(QUERY)


def pipeline(folder: Path) -> Pipeline:
    made = Pipeline()
    made.add_component("retriever", HaystackRetriever(folder, k=3, where="year >= 2001"))
    made.add_component("joiner", DocumentJoiner())
    made.connect("retriever.documents", "joiner.documents")
    return made


def test_a_pipeline_connects_the_retriever_and_passes_settings(folder: Path) -> None:
    found = pipeline(folder).run({"retriever": {"query": QUERY, "k": 1, "where": {"year": 2000}}})
    assert [one.id for one in found["joiner"]["documents"]] == ["fox"]


def test_a_saved_pipeline_gives_the_same_hits(folder: Path) -> None:
    made = pipeline(folder)
    loaded = Pipeline.loads(made.dumps(), allowed_modules=[MODULE])
    request = {"retriever": {"query": QUERY}}
    assert loaded.run(request) == made.run(request)
    assert made.to_dict()["components"]["retriever"]["init_parameters"] == {
        "index": str(folder),
        "k": 3,
        "where": "year >= 2001",
        "n_pairs": 3,
        "content": "passages",
    }


def test_an_asynchronous_pipeline_runs_the_retriever(folder: Path) -> None:
    made = Pipeline()
    made.add_component("retriever", HaystackRetriever(folder, k=1))
    found = asyncio.run(made.run_async({"retriever": {"query": QUERY}}))
    assert [one.id for one in found["retriever"]["documents"]] == ["fox"]


@pytest.mark.parametrize(
    ("name", "hint"), [("top_k", "did you mean k"), ("n_pair", "did you mean n_pairs"), ("xyz", "use one of index, k")]
)
def test_an_unknown_argument_is_refused_with_the_near_name(folder: Path, name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"has no argument '{name}'; {hint}"):
        HaystackRetriever(folder, **{name: 2})
