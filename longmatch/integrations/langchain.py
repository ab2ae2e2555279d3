"""A retriever for LangChain. It needs langchain-core, and is imported through `longmatch.integrations`."""

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from longmatch.integrations.retrieval import Content, Retrieval, refuse_unknown
from longmatch.sources import Where


class LangChainRetriever(BaseRetriever):
    """Searches an index with the input as a text of any length; `ainvoke` and `abatch` search in threads.

    Each document has the matching passages as `page_content`, and in `metadata` score, rank, status, pages and the
    section pairs with their spans.

    Example:
        ```python
        retriever = LangChainRetriever(index="papers.lm", k=5)
        documents = retriever.invoke(draft)
        ```
    """

    index: Any  # a folder, or an opened `longmatch.Index`
    k: int = 10
    where: Where | None = None
    n_pairs: int = 3
    content: Content = "passages"
    _retrieval: Retrieval = PrivateAttr()

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        """Refuse unknown arguments, which the base class would ignore."""
        refuse_unknown("LangChainRetriever", settings.keys() - type(self).model_fields.keys())
        super().__init__(**settings)

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401
        """Open the index; errors as in `longmatch.integrations.retrieval.Retrieval`."""
        super().model_post_init(context)
        self._retrieval = Retrieval(self.index, k=self.k, where=self.where, n_pairs=self.n_pairs, content=self.content)

    # The asynchronous method of the base class runs this method in a thread.
    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        found = self._retrieval.find(query, k=self.k, where=self.where)
        return [Document(id=one.doc_id, page_content=one.text, metadata=one.metadata) for one in found]
