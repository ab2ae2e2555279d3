"""The systems that rank papers and citances for a summary, made ready one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.baselines.text_baselines import TEXT_BASELINES, text_baseline
from benchmarks.bm25 import BM25
from benchmarks.datasets import open_dataset
from benchmarks.records import BuildCost
from benchmarks.scisumm.collection import NAME, Collection, Scisumm, read_collection
from benchmarks.systems import DocumentCosine, Evidence, Ranking, Settings, System
from engine.document import Document

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from benchmarks.prepare import Prepared

OF_ENCODER = ("evidence", "document")
THEN = "document"  # what ranks the papers of which the evidence says nothing
SYSTEMS = (*OF_ENCODER, "bm25", *TEXT_BASELINES)


def prepared_systems(
    names: Sequence[str],
    data: Scisumm,
    collection: Collection,
    pool: Sequence[str],
    encoder: str,
    work: Path,
    tell: Callable[[str], None],
    *,
    exact: bool,
    is_few: bool,
) -> Iterator[tuple[System, BuildCost]]:
    """The systems of these names, one after the other, ready to be asked.

    An encoder's index holds the whole collection, and its evidence has the crowd of
    all of it, by exact lists or those of its ANN index. Where few candidates are to
    be ranked, all of them are: lists are exact, and those without evidence follow by
    the cosine of document vectors. The others are fitted on the pool alone; all but
    BM25 read the split's summaries too, as texts.

    Raises:
        DatasetError: a document could not be indexed.
        MissingExtra: a package of a system is not installed.
    """
    if set(OF_ENCODER) & set(names):
        with _index(data, collection, encoder, work, tell) as ready:
            if "evidence" in names:
                evidence = Evidence(ready.index, ready.encoder, exact=exact or is_few)
                yield (EvidenceThenDocument(evidence, ready) if is_few else evidence), ready.cost
            if "document" in names:
                yield DocumentCosine(ready.index, ready.encoder), ready.cost
    wanted = frozenset(pool)
    for name in names:
        if name not in OF_ENCODER:
            started = time.perf_counter()
            documents = (document for document in read_collection(data, collection) if document.doc_id in wanted)
            if name == "bm25":
                system: System = BM25().fit(documents)
            else:  # scores pairs of documents that it was fitted on, so of summaries too
                system = text_baseline(name).fit(chain(documents, data.summaries.values()))
            yield system, BuildCost(round(time.perf_counter() - started, 1))


class EvidenceThenDocument:
    """Ranks the whole index: by evidence, then what has none by the cosine of document vectors."""

    name = Evidence.name

    def __init__(self, evidence: Evidence, ready: Prepared) -> None:
        """Take evidence with exact lists, and the index that it asks."""
        self.encoder = evidence.encoder
        self.settings: Settings = {**evidence.settings, "then": THEN}
        self._evidence = evidence
        self._document = DocumentCosine(ready.index, ready.encoder)
        self._n_documents = ready.index.n_documents

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; scores of those without evidence are their cosines less 1, and so at most 0."""
        found = self._evidence.search(query, self._n_documents)
        known = {doc_id for doc_id, _ in found}
        others = self._document.search(query, self._n_documents)
        return [*found, *((doc_id, cosine - 1) for doc_id, cosine in others if doc_id not in known)][:k]


def _index(
    data: Scisumm, collection: Collection, encoder: str, work: Path, tell: Callable[[str], None]
) -> AbstractContextManager[Prepared]:
    # Lexical systems alone need neither torch nor FAISS.
    from benchmarks.prepare import prepared_documents, prepared_index

    if collection is Collection.PAPERS and data.part is None:
        # The papers are those of the retrieval task, whose index may be there.
        return prepared_index(open_dataset(NAME, data.folder.parent), encoder, work, tell)
    return prepared_documents(f"{collection}-{data.name}", read_collection(data, collection), encoder, work, tell)
