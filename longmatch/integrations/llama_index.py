"""A retriever for LlamaIndex. It needs llama-index-core, and is imported through `longmatch.integrations`."""

import asyncio

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from longmatch.integrations.retrieval import BULKY, Content, Retrieval, Source, refuse_unknown
from longmatch.sources import Where


class LlamaIndexRetriever(BaseRetriever):
    """Searches an index with the query string as a text of any length; `aretrieve` searches in a thread.

    A node is a hit: its text is the matching passages, its metadata have rank, status, pages and the section pairs
    with their spans. The section pairs stay out of prompts and embeddings.

    Example:
        ```python
        retriever = LlamaIndexRetriever("papers.lm", k=5)
        nodes = retriever.retrieve(draft)
        ```
    """

    def __init__(
        self,
        index: Source,
        *,
        k: int = 10,
        where: Where | None = None,
        n_pairs: int = 3,
        content: Content = "passages",
        **unknown: object,
    ) -> None:
        """Open the index; arguments and errors as in `longmatch.integrations.retrieval.Retrieval`."""
        refuse_unknown("LlamaIndexRetriever", unknown)
        super().__init__()
        self._retrieval = Retrieval(index, k=k, where=where, n_pairs=n_pairs, content=content)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(
                    id_=one.doc_id,
                    text=one.text,
                    metadata=one.metadata,
                    excluded_llm_metadata_keys=list(BULKY),
                    excluded_embed_metadata_keys=list(BULKY),
                ),
                score=one.score,
            )
            for one in self._retrieval.find(query_bundle.query_str)
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
