"""The retriever in the real LangChain."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("langchain_core")

from langchain_core.runnables import RunnableLambda

from engine.errors import QueryError
from longmatch.integrations import LangChainRetriever
from tests.public.integrations.conftest import QUERY


def test_invoke_gives_the_hits_as_documents(folder: Path, expected: list[tuple[str, float]]) -> None:
    documents = LangChainRetriever(index=folder, k=3).invoke(QUERY)
    assert [(one.id, one.metadata["score"]) for one in documents] == expected
    assert [one.metadata["rank"] for one in documents] == [1, 2, 3]
    assert "fox" in documents[0].page_content


def test_ainvoke_and_batch_give_the_documents_of_invoke(folder: Path) -> None:
    retriever = LangChainRetriever(index=str(folder), k=2, where={"year": {">=": 2001}})
    found = retriever.invoke(QUERY)
    assert asyncio.run(retriever.ainvoke(QUERY)) == found
    assert retriever.batch([QUERY] * 3) == [found] * 3
    assert [one.metadata["year"] > 2000 for one in found] == [True, True]


def test_a_chain_holds_the_retriever(folder: Path) -> None:
    chain = LangChainRetriever(index=folder, k=1) | RunnableLambda(lambda found: [one.id for one in found])
    assert chain.invoke(QUERY) == ["fox"]


def test_settings_can_be_changed(folder: Path) -> None:
    retriever = LangChainRetriever(index=folder)
    retriever.k = 1
    assert len(retriever.invoke(QUERY)) == 1


def test_a_wrong_filter_raises_an_error_of_longmatch(folder: Path) -> None:
    with pytest.raises(QueryError, match="no document has the field 'yaer'; did you mean 'year'"):
        LangChainRetriever(index=folder, where="yaer > 1").invoke(QUERY)


@pytest.mark.parametrize(
    ("name", "hint"), [("top_k", "did you mean k"), ("n_pair", "did you mean n_pairs"), ("xyz", "use one of index, k")]
)
def test_an_unknown_argument_is_refused_with_the_near_name(folder: Path, name: str, hint: str) -> None:
    with pytest.raises(TypeError, match=f"has no argument '{name}'; {hint}"):
        LangChainRetriever(index=folder, **{name: 2})
