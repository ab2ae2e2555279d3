"""The ten commonest first tries: a few lines of Python that a person types without reading the documentation.

Each is there twice: by the names that the program had before there was a package `longmatch`, and by today's.
They run in a folder that holds `papers/`, its index `papers.lm`, and `draft.md`.
"""

from __future__ import annotations

from dataclasses import dataclass

_OLD = 'from engine import Index\nindex = Index.open("papers.lm")\n'
_NEW = 'import longmatch\nindex = longmatch.open("papers.lm")\n'
_TEXT = "typed transaction envelope of accounts"


@dataclass(frozen=True)
class Try:
    """Lines that a person types, and what is seen if they work."""

    name: str
    before: str
    after: str
    expected: str  # in the output

    def lines(self, code: str) -> int:
        """Lines of one of both, blank ones left out."""
        return sum(bool(line.strip()) for line in code.splitlines())


def _search(name: str, lines: str, expected: str) -> Try:
    """A try with an index that is there."""
    return Try(name, _OLD + lines, _NEW + lines, expected)


TRIES = (
    Try("import the package", "import longmatch\nprint(longmatch)", "import longmatch\nprint(longmatch)", "longmatch"),
    _search("search with a text", f'print(index.search("{_TEXT}").hits[0].doc_id)', "eip-2718"),
    _search("search with a file", 'print(index.search("draft.md").hits[0].doc_id)', "eip-"),
    _search(
        "search with a dict", f'print(index.search({{"title": "Draft", "text": "{_TEXT}"}}).hits[0].doc_id)', "eip-2718"
    ),
    _search(
        "search with several",
        f'for result in index.search(["{_TEXT}", "reject senders with code"]):\n    print(result.hits[0].doc_id)',
        "eip-3607",
    ),
    Try(
        "make a document of a text",
        _OLD + f'from engine import Document\nquery = Document("q", "Draft", "{_TEXT}", ())\n'
        "print(index.search(query).hits[0].doc_id)",
        _NEW + f'query = longmatch.Document.from_text("{_TEXT}", title="Draft")\n'
        "print(index.search(query).hits[0].doc_id)",
        "eip-2718",
    ),
    Try(
        "index a list of dicts",
        'from indexer import build\nprint(build("new.lm", [{"id": "a", "text": "foxes and rivers"}]).n_added)',
        'import longmatch\nprint(len(longmatch.build("new.lm", [{"id": "a", "text": "foxes and rivers"}])))',
        "1",
    ),
    Try(
        "index a table",
        "import pandas\nfrom indexer import build\n"
        'table = pandas.DataFrame({"doi": ["a"], "abstract": ["foxes and rivers"]})\n'
        'print(build("new.lm", table, text="abstract", id="doi").n_added)',
        "import pandas, longmatch\n"
        'table = pandas.DataFrame({"doi": ["a"], "abstract": ["foxes and rivers"]})\n'
        'print(len(longmatch.build("new.lm", table, text="abstract", id="doi")))',
        "1",
    ),
    Try(
        "go through the hits",
        _OLD + 'result = index.search_id("eip-2718.md")\nfor hit in result:\n    print(hit.doc_id)\nprint(len(result))',
        _NEW + 'result = index.search_id("eip-2718.md")\nfor hit in result:\n    print(hit.doc_id)\nprint(len(result))',
        "eip-",
    ),
    _search(
        "filter by a dict",
        'print(len(index.search_id("eip-2718.md", where={"doc_id": "eip-3607.md"}).hits))',
        "1",
    ),
)
