"""The corpus `wikipedia_seealso`: 3,373 pages of English Wikipedia of August 2019, kept by a public repository."""

from __future__ import annotations

import re
from collections.abc import Iterator

from benchmarks.fetching.recipe import Files, Recipe, corpus_document, github_archive
from benchmarks.fetching.recorded import CorpusDocument, Recorded
from benchmarks.fetching.wikipedia_page import parse_page

_FILE = re.compile(r"(?:^|/)Page/(.+)\.md$")


def _key(name: str) -> str:
    found = _FILE.search(name)
    return found[1] if found else ""


def _documents(recorded: Recorded, files: Files) -> Iterator[CorpusDocument]:
    for doc_id in recorded.ids:
        if doc_id in files:
            sections = iter(parse_page(files[doc_id].decode("utf-8", "replace")))
            meta = {"url": f"https://en.wikipedia.org/wiki/{doc_id}"}
            yield corpus_document(doc_id, doc_id.replace("_", " "), sections, meta)


RECIPE = Recipe(
    "wikipedia_seealso",
    (github_archive("chinapedia/wikipedia.abstract.en", "4f3e897da088cbe89a4f1d4cba3fa2e439c3721b"),),
    _key,
    bool,
    _documents,
)
