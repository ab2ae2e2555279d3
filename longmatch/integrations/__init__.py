"""Retrievers for LangChain, LlamaIndex and Haystack, and a server for MCP, over an index.

    from longmatch.integrations import LangChainRetriever

    retriever = LangChainRetriever(index="papers.lm", k=5)

Each name needs the package of its framework: `pip install 'longmatch[integrations]'`. The names are loaded when first
used, so that one framework does not need the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from engine.extras import check_extra

if TYPE_CHECKING:
    from indexer.mcp.server import mcp_server
    from longmatch.integrations.haystack import HaystackRetriever
    from longmatch.integrations.langchain import LangChainRetriever
    from longmatch.integrations.llama_index import LlamaIndexRetriever

__all__ = ["HaystackRetriever", "LangChainRetriever", "LlamaIndexRetriever", "mcp_server"]

_HOMES = {  # name: its module, the package that the module imports, and the name of the package on PyPI
    "HaystackRetriever": ("longmatch.integrations.haystack", "haystack", "haystack-ai"),
    "LangChainRetriever": ("longmatch.integrations.langchain", "langchain_core", "langchain-core"),
    "LlamaIndexRetriever": ("longmatch.integrations.llama_index", "llama_index", "llama-index-core"),
    "mcp_server": ("indexer.mcp.server", "mcp", "mcp"),
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'longmatch.integrations' has no attribute {name!r}")
    module, package, distribution = _HOMES[name]
    check_extra(package, name, distribution, "integrations")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
