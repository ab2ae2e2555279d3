"""Retrievers for LangChain, LlamaIndex and Haystack, and a server for MCP, over an index.

    from longmatch.integrations import LangChainRetriever

    retriever = LangChainRetriever(index="papers.lm", k=5)

Each name needs the package of its framework, which has an extra of its own: haystack, langchain, llama-index or mcp.
The names are loaded when first used, so that one framework does not need the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from engine.environment import check_extra

if TYPE_CHECKING:
    from indexer.mcp import mcp_server
    from longmatch.integrations.haystack import HaystackRetriever
    from longmatch.integrations.langchain import LangChainRetriever
    from longmatch.integrations.llama_index import LlamaIndexRetriever

__all__ = ["HaystackRetriever", "LangChainRetriever", "LlamaIndexRetriever", "mcp_server"]

_HOMES = {  # name: its module, the package that the module imports, the name of the package on PyPI, and the extra
    "HaystackRetriever": ("longmatch.integrations.haystack", "haystack", "haystack-ai", "haystack"),
    "LangChainRetriever": ("longmatch.integrations.langchain", "langchain_core", "langchain-core", "langchain"),
    "LlamaIndexRetriever": ("longmatch.integrations.llama_index", "llama_index", "llama-index-core", "llama-index"),
    "mcp_server": ("indexer.mcp", "mcp", "mcp", "mcp"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'longmatch.integrations' has no attribute {name!r}")
    module, package, distribution, extra = _HOMES[name]
    check_extra(package, name, distribution, extra)
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
