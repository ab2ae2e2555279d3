"""Everything that is measured, behind one interface: a document in, a ranking of the corpus out."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.encoders.files import CARD_FILE, resolve_backbone
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.text.document import Document

if TYPE_CHECKING:
    from engine.index import Index
    from engine.views import Hit

Ranking: TypeAlias = list[tuple[str, float]]  # targets and scores, best first
Settings: TypeAlias = dict[str, str | int | float | bool]


@dataclass(frozen=True)
class BuildCost:
    """The cost until a system is ready; tokens are those that this call encoded."""

    seconds: float
    n_tokens: int = 0


class System(Protocol):
    """Ranks the targets of one corpus."""

    @property
    def name(self) -> str:
        """Short and lower case; names the record."""

    @property
    def encoder(self) -> str:
        """Its encoder as name@fingerprint; "" where it has none."""

    @property
    def settings(self) -> Settings:
        """The values that determine the ranking, besides corpus and encoder."""

    def search(self, query: Document, k: int) -> Ranking:
        """At most `k` targets for a document, in the corpus or not; the target with its own id is left out."""


SCORINGS = {
    "evidence": Scoring(),
    "chunks": Scoring(chunk_weight=1, word_weight=0, pair_weight=0),
    "words": Scoring(chunk_weight=0, word_weight=0.5, pair_weight=0.5),
}


class Evidence:
    """The product's own score, or the parts of it that `SCORINGS` names; searched exactly, or with the ANN index."""

    def __init__(
        self, index: Index, encoder: str, *, name: str = "evidence", exact: bool = False, scoring: Scoring | None = None
    ) -> None:
        self._index = index
        self._exact = exact
        self._scoring = scoring or SCORINGS[name]
        self._doc_ids = frozenset(index.document_vectors()[0])
        self.name = name
        self.encoder = "" if name == "words" else encoder
        self.settings: Settings = {"exact": exact, **asdict(self._scoring)}

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; an indexed query uses its stored vectors, any other one is encoded."""
        return [(hit.doc_id, float(hit.score)) for hit in self.hits(query, k)]

    def hits(self, query: Document, k: int) -> list[Hit]:
        """The targets of `search`, with the breakdown of each score."""
        is_indexed = query.doc_id in self._doc_ids and _is_same(query, self._index)
        request = Request(k=k + 1, with_itself=True, exact=self._exact, scoring=self._scoring)
        found = self._index.search(query.doc_id if is_indexed else query, request)
        return [hit for hit in found.hits if hit.doc_id != query.doc_id][:k]


class DocumentCosine:
    """One vector a document: the cosine of the encoder's document vectors."""

    name = "document"

    def __init__(self, index: Index, encoder: str) -> None:
        self.encoder = encoder
        self.settings: Settings = {}
        self._index = index
        self._doc_ids, self._vectors = index.document_vectors()
        self._row = {doc_id: row for row, doc_id in enumerate(self._doc_ids)}

    def search(self, query: Document, k: int) -> Ranking:
        """As `System.search`; an indexed query uses its stored vector, any other one is encoded."""
        own = self._row.get(query.doc_id)
        cosine = self._vectors @ self._vector(query, own)
        order = [int(row) for row in np.argsort(-cosine, kind="stable")[: k + 1] if row != own]
        return [(self._doc_ids[row], float(cosine[row])) for row in order[:k]]

    def _vector(self, query: Document, own: int | None) -> NDArray[np.float32]:
        if own is not None and _is_same(query, self._index):
            stored: NDArray[np.float32] = self._vectors[own]
            return stored
        encoded = self._index.encoder.encode([query])[0].document
        return encoded.astype(np.float16).astype(np.float32)  # as a stored vector is rounded


def _is_same(query: Document, index: Index) -> bool:
    """Whether the indexed document with the id of a query is that query; other queries can have the same id."""
    return index.document(query.doc_id).text == query.text


def encoder_label(name: str) -> str:
    """The last part of the name of a folder or of a model on a hub, safe as part of a file name."""
    return re.sub(r"[^\w.-]+", "_", Path(name).name).strip("_.-")


_SECTION = re.compile(r"^## Training data\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| *([^|]+?) *\| *[\d,]+ *\| *([\d,]+) *\|", re.MULTILINE)  # corpus, documents, pairs


def training_pairs(encoder: str) -> dict[str, int]:
    """Pairs of query and target that an encoder, a folder or a name, was trained on, by corpus.

    They are in the table "Training data" of the README.md of its folder; models of other projects have none, and give
    {}. A corpus that was read without pairs has 0.
    """
    card = resolve_backbone(encoder) / CARD_FILE
    section = _SECTION.search(card.read_text("utf-8", errors="replace")) if card.is_file() else None
    return {name: int(pairs.replace(",", "")) for name, pairs in _ROW.findall(section[1])} if section else {}
