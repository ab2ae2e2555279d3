"""A component for Haystack. It needs haystack-ai, and is imported through `longmatch.integrations`."""

from __future__ import annotations

import asyncio
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from longmatch.integrations.retrieval import Content, Retrieval, Source, refuse_unknown
from longmatch.sources import Where


@component
class HaystackRetriever:
    """Searches an index with the query as a text of any length.

    Each document has the matching passages as `content`, and in `meta` rank, status, pages and the section pairs with
    their spans. A pipeline with this component can be saved and loaded.

    Example:
        ```python
        retriever = HaystackRetriever("papers.lm", k=5)
        documents = retriever.run(query=draft)["documents"]
        ```
    """

    def __init__(
        self,
        index: Source,
        k: int = 10,
        where: Where | None = None,
        n_pairs: int = 3,
        content: Content = "passages",
        **unknown: object,
    ) -> None:
        """Open the index; arguments and errors as in `longmatch.integrations.retrieval.Retrieval`."""
        refuse_unknown("HaystackRetriever", unknown)
        self._retrieval = Retrieval(index, k=k, where=where, n_pairs=n_pairs, content=content)

    @component.output_types(documents=list[Document])
    def run(self, query: str, k: int | None = None, where: Where | None = None) -> dict[str, list[Document]]:
        """Search; `k` and `where` replace those of the component."""
        found = self._retrieval.find(query, k=k, where=where)
        return {
            "documents": [
                Document(id=one.doc_id, content=one.text, meta=one.metadata, score=one.score) for one in found
            ]
        }

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, k: int | None = None, where: Where | None = None
    ) -> dict[str, list[Document]]:
        """Call `run` in a thread."""
        found: dict[str, list[Document]] = await asyncio.to_thread(self.run, query, k, where)
        return found

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values; the index is saved as its folder."""
        own = self._retrieval
        settings = {"k": own.k, "where": own.where, "n_pairs": own.n_pairs, "content": own.content}
        values: dict[str, Any] = default_to_dict(self, index=str(own.index.path), **settings)
        return values

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackRetriever:
        """The component that `to_dict` described; its index is opened."""
        made: HaystackRetriever = default_from_dict(cls, data)
        return made
