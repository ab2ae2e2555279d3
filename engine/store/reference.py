"""The reference of an index: a pinned sample of its documents, its statistics of words, its common and stock sentences.

Thresholds of a query are computed over the sample, and probabilities of terms from the statistics.
Sentences that many documents share are left out of a query, see `engine.words.wording`. So the
score of two documents depends only on them and on the reference. The file holds copies: removing
or changing documents does not change it. A reference is replaced only on request, or by an index
run once the corpus has outgrown it.

Letters in shapes: R documents of the sample, C their chunks, D width.
"""

import mmap
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from engine.encoders.encoder import Vectors
from engine.errors import damaged_file
from engine.scoring.evidence import Floor, FloorTable, Scoring
from engine.store.catalog import ReferenceFile
from engine.store.durable import Checksum, check_mapped, write_durably
from engine.store.shards import CoarseRows, mapped_tensors, save_file
from engine.words.likelihood import Statistics, TermStatistics
from engine.words.wording import StockWording

REFERENCE_FOLDER = "reference"
SAMPLE_DOCUMENTS = 400  # most documents in the sample
SAMPLE_CHUNKS = 40_000  # most chunks in the sample, about; `FEWEST_DOCUMENTS` are drawn even if they have more
FEWEST_DOCUMENTS = 100
STATISTICS_DOCUMENTS = 20_000  # most documents whose words are counted
COMMON_DOCUMENTS = 4_000  # most documents whose sentences are compared
OUTGROWN = 4  # growth of the number of documents, as a factor, at which an index run draws another reference


@dataclass(frozen=True)
class Reference:
    """A sample of documents, and the statistics of words."""

    version: int  # 0 for a reference that is drawn for a single search and not pinned
    n_corpus: int  # documents of the index when it was drawn
    hashes: NDArray[np.uint64]  # (R,) content hashes, by which a query is left out of the sample
    rows: CoarseRows  # (C, D) chunk vectors, one document after another
    starts: NDArray[np.int64]  # (R,) first row of each document
    statistics: Statistics
    common: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))  # keys of common sentences
    stock: StockWording | None = None  # of the sample
    floor: FloorTable | None = None  # the scores of unrelated documents; None where there are too few documents

    def floor_of(self, n_characters: int, scoring: Scoring) -> Floor | None:
        """The scores of unrelated documents for a query of a length; None where they are not known.

        They are known for the constants of the score that searches for similar documents use by default.
        """
        return None if self.floor is None or scoring != Scoring() else self.floor.at(n_characters)

    @property
    def n_documents(self) -> int:
        """R."""
        return len(self.hashes)

    @property
    def width(self) -> int:
        """D; 0 if no document had vectors when it was drawn."""
        return int(self.rows.steps.shape[1])

    @cached_property
    def vectors(self) -> Vectors:
        """(C, D) the rows as float32."""
        return self.rows.as_float32()


def content_key(content_hash: str) -> int:
    """The first 64 bits of a content hash, as a reference keeps it."""
    return int(content_hash[:16], 16)


def sample_order(doc_ids: list[str]) -> NDArray[np.int64]:
    """Documents in the order of a hash of their names: a draw that is the same on every machine."""
    keys = np.array([xxhash.xxh3_64_intdigest(doc_id.encode()) for doc_id in doc_ids], np.uint64)
    return np.argsort(keys, kind="stable")


def sample_size(n_chunks: NDArray[np.int64]) -> int:
    """The number of documents that make the sample, given the chunks (N,) of each in the order of the draw."""
    within = int(np.searchsorted(np.cumsum(n_chunks), SAMPLE_CHUNKS, side="right"))
    return min(len(n_chunks), SAMPLE_DOCUMENTS, max(within, FEWEST_DOCUMENTS))


def is_outgrown(n_corpus: int, n_documents: int) -> bool:
    """Whether a reference drawn from `n_corpus` documents is outdated for an index of `n_documents`."""
    return n_documents >= OUTGROWN * max(1, n_corpus)


def write_reference(folder: Path, reference: Reference) -> ReferenceFile:
    """Write a reference durably; it belongs to the index only when the catalog or a manifest names it."""
    words, pairs = reference.statistics.words, reference.statistics.pairs
    tensors: dict[str, NDArray[Any]] = {
        "hashes": reference.hashes.view(np.int64),
        "steps": reference.rows.steps,
        "scales": reference.rows.scales,
        "starts": reference.starts,
        "words_terms": words.terms,
        "words_counts": words.counts,
        "pairs_terms": pairs.terms,
        "pairs_counts": pairs.counts,
        "common": reference.common.view(np.int64),
        "numbers": np.array([reference.version, reference.n_corpus, words.total, pairs.total], np.int64),
    }
    if (stock := reference.stock) is not None:
        tensors |= {"stock": stock.keys.view(np.int64), "stock_counts": stock.counts}
        tensors |= {"stock_documents": np.array([stock.n_documents])}
    if reference.floor is not None:
        tensors |= {"floor_lengths": reference.floor.lengths, "floor_scores": reference.floor.scores}
    file = f"{REFERENCE_FOLDER}/{reference.version:06d}.safetensors"
    written = write_durably(folder / file, lambda unfinished: save_file(tensors, unfinished))
    return ReferenceFile(reference.version, reference.n_corpus, reference.n_documents, file, **asdict(written))


def parse_reference(content: mmap.mmap | None, path: Path, expected: Checksum) -> Reference:
    """Check a mapped file, then view it as a reference.

    Raises:
        IndexDamaged: the file is not the one that was written.
    """
    there = check_mapped(content, path, expected)
    try:
        tensors = mapped_tensors(there)
        stock = None
        if "stock" in tensors:
            n_compared = int(tensors["stock_documents"][0])
            stock = StockWording(tensors["stock"].view(np.uint64), tensors["stock_counts"], n_compared)
        version, n_corpus, n_words, n_pairs = tensors["numbers"].tolist()
        return Reference(
            version,
            n_corpus,
            tensors["hashes"].view(np.uint64),
            CoarseRows(tensors["steps"], tensors["scales"]),
            tensors["starts"],
            Statistics(
                TermStatistics(tensors["words_terms"], tensors["words_counts"], n_words),
                TermStatistics(tensors["pairs_terms"], tensors["pairs_counts"], n_pairs),
            ),
            tensors["common"].view(np.uint64),
            stock,
            FloorTable(tensors["floor_lengths"], tensors["floor_scores"]) if "floor_lengths" in tensors else None,
        )
    except (KeyError, ValueError) as error:
        raise damaged_file(f"{path} is no reference ({error})") from error
