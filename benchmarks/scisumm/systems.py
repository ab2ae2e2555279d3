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
from benchmarks.scisumm.collection import NAME, Collection, Scisumm, read_collection
from benchmarks.systems import BuildCost, DocumentCosine, Evidence, System

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from benchmarks.prepare import Prepared

OF_ENCODER = ("evidence", "document")
SYSTEMS = (*OF_ENCODER, "bm25", *TEXT_BASELINES)


def prepared_systems(
    names: Sequence[str],
    data: Scisumm,
    collection: Collection,
    pool: Sequence[str],
    encoder: str,
    work: Path,
    log: Callable[[str], None],
    *,
    exact: bool,
    is_few: bool,
) -> Iterator[tuple[System, BuildCost]]:
    """The systems of these names, one after the other, ready to be asked.

    An encoder's index holds the whole collection, of which its reference is a sample.
    Where few candidates are to be ranked, all documents are scored. The others are fitted on the pool alone; all but
    BM25 read the split's summaries too, as texts.

    Raises:
        DatasetError: a document could not be indexed.
        MissingExtra: a package of a system is not installed.
    """
    if set(OF_ENCODER) & set(names):
        with _index(data, collection, encoder, work, log) as ready:
            if "evidence" in names:
                yield Evidence(ready.index, ready.encoder, exact=exact or is_few), ready.cost
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


def _index(
    data: Scisumm, collection: Collection, encoder: str, work: Path, log: Callable[[str], None]
) -> AbstractContextManager[Prepared]:
    # Lexical systems alone need neither torch nor FAISS.
    from benchmarks.prepare import prepared_documents, prepared_index

    if collection is Collection.PAPERS and data.part is None:
        # The papers are those of the retrieval task, whose index may be there.
        return prepared_index(open_dataset(NAME, data.folder.parent), encoder, work, log)
    return prepared_documents(f"{collection}-{data.name}", read_collection(data, collection), encoder, work, log)
