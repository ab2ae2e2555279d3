"""A served index as a snapshot: searches, `show` and `info` read it by requests to its server.

Operations that need the files themselves, such as pairs, exports and all writes, are refused.

Letters in shapes: N documents of the index, R documents wanted, C chunks of a document.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch
from engine.remote.exchange import Access, Exchange
from engine.remote.frames import Frame, FrameError
from engine.remote.values import names, unpack_shown
from engine.search.partition import Shown
from engine.store.documents import content_hash
from engine.store.durable import Checksum
from engine.store.manifest import ReferenceFile
from engine.store.reference import Reference, content_key, parse_reference
from engine.store.snapshot import Positions, Snapshot
from engine.text.document import Document
from engine.text.spans import Chunk, Coverage
from engine.words.counts import WordTables, counted
from engine.words.segmenter import segmenter_of
from engine.words.titles import title_span

PROTOCOL = 1
_SHOWN_AT_ONCE = 50  # documents whose texts are sent in one frame
_LISTED_AT_ONCE = 10_000  # names that are sent in one frame
_KEPT = 256  # shown documents that are cached
# Attributes that are read from files, which are on another machine.
_OF_FILES = frozenset(
    "_connection _is_checked _shards _shard_rows generation_row postings_row word_postings_row".split()
)


@dataclass(frozen=True, slots=True)
class Description:
    """The description of an index that its server returns."""

    state: str  # changes with the documents; all rounds of a search send it
    n_documents: int
    n_chunks: int
    is_complete: bool  # all documents have vectors, or the index has none
    meta: dict[str, Any]
    reference: ReferenceFile | None
    facts: dict[str, Any]  # for `longmatch info`


class ServedSnapshot(Snapshot):
    """An index behind a server, pinned by the state that its description names."""

    def __init__(self, folder: Path, exchange: Exchange, access: Access) -> None:
        """Send no request yet.

        Args:
            folder: names the index in messages.
            exchange: with the server, or with its replicas.
            access: how the server is reached.
        """
        self.folder = folder
        self.exchange = exchange
        self.access = access
        self._description: Description | None = None
        self._shown: dict[int, Shown] = {}
        self._reference: Reference | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name in _OF_FILES:
            raise IndexMismatch(
                f"{self.folder} is served by another process, and this needs its files; run the command where the "
                "folder is"
            )
        raise AttributeError(name)

    @property
    def description(self) -> Description:
        """The description of the index, requested once.

        Raises:
            PartitionUnavailable: the server does not answer.
        """
        if self._description is None:
            self._description = self.exchange.ask("describe", _description)
        return self._description

    def is_newest(self) -> bool:
        """Whether the server still has the documents of the first description."""
        return self._description is not None and self.exchange.ask("describe", _description).state == self.state

    def refresh(self) -> None:
        """Drop all cached replies; the server can have other documents now."""
        self._description = self._reference = None
        self._shown.clear()
        self._last_position = None

    def close(self) -> None:
        """Nothing is open between two requests."""

    @property
    def meta(self) -> dict[str, Any]:  # type: ignore[override]
        """Named values of the index: encoder, language, and more."""
        return self.description.meta

    @property
    def width(self) -> int:  # type: ignore[override]
        """D; 0 without an encoder."""
        return int((self.meta.get("encoder") or {"width": 0})["width"])

    @property
    def n_documents(self) -> int:
        """N."""
        return self.description.n_documents

    @property
    def n_chunks(self) -> int:
        """Chunks of all documents."""
        return self.description.n_chunks

    @property
    def is_complete(self) -> bool:
        """Whether all documents have vectors, or the index has none."""
        return self.description.is_complete

    @property
    def state(self) -> str:
        """An identifier that changes with the documents."""
        return self.description.state

    @property
    def facts(self) -> dict[str, Any]:
        """The facts that `longmatch info` prints."""
        return self.description.facts

    @property
    def reference_row(self) -> ReferenceFile | None:  # type: ignore[override]
        """The pinned reference."""
        return self.description.reference

    @property
    def reference(self) -> Reference:
        """The reference, fetched at first use and compared with its checksum."""
        if self._reference is None:
            row = self.reference_row
            if row is None:
                raise IndexMismatch(
                    f"{self.folder} has no pinned reference; run on its machine: longmatch rebase INDEX"
                )
            content = self.reference_bytes()
            mapped = mmap.mmap(-1, max(1, len(content)))
            mapped.write(content)
            self._reference = parse_reference(mapped, self.folder, Checksum(row.size_bytes, row.digest))
        return self._reference

    def reference_bytes(self) -> bytes:
        """The bytes of the reference file, after comparison with its checksum."""
        row = self.reference_row
        assert row is not None

        def read(frame: Frame) -> bytes:
            content = frame.array("reference", np.uint8, (row.size_bytes,)).tobytes()
            if xxhash.xxh3_128_hexdigest(content) != row.digest:
                raise FrameError("the reference is not the one that was announced")
            return content

        return self.exchange.ask("reference", read, {"state": self.state})

    def shown(self, positions: Positions) -> list[Shown]:
        """Documents as hits show them; recently shown documents come from a cache."""
        wanted = [at for at in positions.tolist() if at not in self._shown]
        if len(self._shown) + len(wanted) > _KEPT:
            self._shown.clear()
            wanted = positions.tolist()
        for first in range(0, len(wanted), _SHOWN_AT_ONCE):
            block = wanted[first : first + _SHOWN_AT_ONCE]
            arrays = {"positions": np.array(block, np.int64)}
            found = self.exchange.ask("show", lambda frame: unpack_shown(frame, len(block)), self._head(), arrays)  # noqa: B023
            self._shown |= zip(block, found, strict=True)
        return [self._shown[at] for at in positions.tolist()]

    def _head(self, **values: object) -> dict[str, object]:
        return {"state": self.state, **values}

    def documents(self, positions: Positions) -> list[tuple[Document, Coverage]]:
        """See `Listing.documents`."""
        return [(one.document, one.coverage) for one in self.shown(positions)]

    def spans(self, position: int) -> NDArray[np.int32]:
        """(C, 4) see `Gathering.spans`."""
        return self.shown(np.array([position]))[0].spans

    def is_encoded(self, position: int) -> bool:
        """Whether a document has vectors."""
        return self.shown(np.array([position]))[0].has_vectors

    def encoded(self, position: int, coverage: Coverage) -> EncodedDocument:
        """The vectors of one document; see `Gathering.encoded`."""
        spans = tuple(Chunk(*row) for row in self.spans(position).tolist())

        def read(frame: Frame) -> EncodedDocument:
            return EncodedDocument(
                frame.array("document", np.float32, (self.width,)),
                frame.array("sections", np.float32, (None, self.width)),
                frame.array("chunks", np.float32, (len(spans), self.width)),
                spans,
                coverage,
            )

        return self.exchange.ask("vectors", read, self._head(position=position))

    def words(self, positions: Positions, *, apart: bool = False) -> WordTables:
        """The term counts of documents, counted from their texts as the index counted them; without `apart`."""
        documents = [document for document, _ in self.documents(positions)]
        segmenter = segmenter_of(self.language or "none")
        titles = [title_span(one) if self.counts_titles else None for one in documents]
        return counted([segmenter.segment(one.text) for one in documents], titles)

    def content_keys(self, positions: Positions) -> NDArray[np.uint64]:
        """See `Listing.content_keys`."""
        documents = (document for document, _ in self.documents(positions))
        return np.array([content_key(content_hash(one)) for one in documents], np.uint64)

    def position(self, doc_id: str) -> int | None:
        """Position of a document by its name."""
        last = self._last_position
        if last is None or last[0] != doc_id:
            n_documents = self.n_documents

            def read(frame: Frame) -> int | None:
                return frame.count("position", n_documents - 1) if frame.value("is_there", bool) else None

            self._last_position = last = doc_id, self.exchange.ask("find", read, self._head(doc_id=doc_id))
        return last[1]

    def copies(self, content: str) -> list[str]:
        """See `Listing.copies`."""
        return self._names("copies", content_hash=content)

    def similar_names(self, doc_id: str, limit: int = 3) -> list[str]:
        """Names that contain the given one, for error messages."""
        return self._names("similar", doc_id=doc_id)[:limit]

    def has_field(self, key: str) -> bool:
        """See `Snapshot.has_field`."""
        return self.exchange.ask("field", lambda frame: bool(frame.value("has", bool)), self._head(key=key))

    def field_names(self) -> list[str]:
        """See `Snapshot.field_names`."""
        return self._names("fields")

    def _names(self, subject: str, **values: object) -> list[str]:
        return self.exchange.ask(subject, lambda frame: list(names(frame.value("names", list))), self._head(**values))

    def titles(self) -> list[tuple[str, str]]:
        """(doc_id, title) of all documents, in the order of positions."""
        rows: list[tuple[str, str]] = []
        while len(rows) < self.n_documents:
            rows += self.exchange.ask("titles", _titles, self._head(first=len(rows), n_most=_LISTED_AT_ONCE))
        return rows

    def doc_ids(self) -> list[str]:
        """All names, in the order of positions."""
        return [doc_id for doc_id, _ in self.titles()]

    def doc_ids_of(self, positions: Positions) -> list[str]:
        """The names of documents, in the order given."""
        return [document.doc_id for document, _ in self.documents(positions)]

    def failures(self) -> list[tuple[str, str]]:
        """(source, reason) of documents that could not be indexed, by source."""
        return self.exchange.ask("failures", _titles, self._head())

    def totals(self) -> dict[str, int]:
        """See `Listing.totals`."""
        return {name: value for name, value in self.facts.items() if isinstance(value, int)}


def _titles(frame: Frame) -> list[tuple[str, str]]:
    rows = frame.value("rows", list)
    if not all(isinstance(row, list) and len(row) == 2 and all(isinstance(one, str) for one in row) for row in rows):
        raise FrameError("a row is no pair of texts")
    return [(first, second) for first, second in rows]


def _description(frame: Frame) -> Description:
    if frame.value("protocol", int) != PROTOCOL:
        raise FrameError(f"the server speaks protocol {frame.head['protocol']}, this program {PROTOCOL}")
    row = frame.head.get("reference")
    try:
        reference = None if row is None else ReferenceFile(**row)
        encoder = frame.value("meta", dict).get("encoder")
        _ = None if encoder is None else (int(encoder["width"]), encoder["name"], encoder["fingerprint"])
    except (TypeError, KeyError, ValueError) as error:
        raise FrameError(f"the description has another form ({error})") from error
    return Description(
        frame.value("state", str),
        frame.count("n_documents"),
        frame.count("n_chunks"),
        frame.value("is_complete", bool),
        frame.value("meta", dict),
        reference,
        frame.value("facts", dict),
    )


def served_index(address: Path, access: Access) -> ServedSnapshot:
    """The index behind one address."""
    return ServedSnapshot(address, Exchange(f"the server at {address}", [str(address)], access), access)


def partition_name(number: int, addresses: Sequence[str]) -> str:
    """A partition with its addresses, for messages."""
    return f"partition {number} at {' or '.join(addresses)}"
