"""Finds long documents with long documents, and shows why.

    import longmatch

    index = longmatch.build("papers.lm", "papers/")
    for hit in index.search("draft.pdf"):
        print(hit.rank, hit.score, hit.title, hit.snippets(1))

`build` takes a folder, files, texts, dicts or a table; `index.search` a text, a file, a dict, a `Document`,
or a list of them. A string is a text, unless it names a file; see `longmatch.sources`.
`compare` shows how two documents match, without an index.

The names below are loaded when first used, so that `import longmatch` costs nothing and works on a
machine whose FAISS or torch is broken.
"""

from importlib import import_module

TYPE_CHECKING = False  # without loading `typing`: an interrupt here has no handler yet

if TYPE_CHECKING:
    from engine.errors import EngineError
    from engine.readers import read_document
    from engine.report.contract import result_schema
    from engine.scoring.evidence import Scoring
    from engine.text.document import Document
    from engine.views import Hit, Result
    from longmatch.functions import build, compare
    from longmatch.index import Index, open

    __version__: str

__all__ = [
    "Document",
    "EngineError",
    "Hit",
    "Index",
    "Result",
    "Scoring",
    "build",
    "compare",
    "open",
    "read_document",
    "result_schema",
]

_HOMES = {
    "Document": "engine.text.document",
    "EngineError": "engine.errors",
    "Hit": "engine.views",
    "Index": "longmatch.index",
    "Result": "engine.views",
    "Scoring": "engine.scoring.evidence",
    "build": "longmatch.functions",
    "compare": "longmatch.functions",
    "open": "longmatch.index",
    "read_document": "engine.readers",
    "result_schema": "engine.report.contract",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("engine").__version__
    if name not in _HOMES:
        raise AttributeError(f"module 'longmatch' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
