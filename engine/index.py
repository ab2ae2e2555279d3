"""`Index`: the public face of an index folder for asking; writing is `indexer.build`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType

import numpy as np

from engine.acceleration import Acceleration, accelerate
from engine.allowance import Allowance
from engine.devices import check_device, is_gpu
from engine.document import Chunk, Document
from engine.encoders.encoder import EncodedDocument, Encoder, Vectors
from engine.errors import EngineError, IndexMismatch, QueryError
from engine.on_demand import OnDemand
from engine.query import Query, as_stored
from engine.result import Encoding, Result, SectionMatrix
from engine.scoring.evidence import Scoring
from engine.search import Searcher
from engine.store.snapshot import Snapshot


class Index:
    """An index opened for asking, pinned as it is now.

    Example:
        with Index.open("papers.lm") as index:
            print(index.search(document, k=5))
    """

    def __init__(
        self,
        snapshot: Snapshot,
        encoder: Encoder | None = None,
        device: str | None = None,
        acceleration: Acceleration | None = None,
        *,
        store: bool = True,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Wrap a snapshot; `Index.open` is the usual way."""
        self.snapshot = snapshot
        self._on_demand = OnDemand(snapshot, lambda: self.encoder, store=store, tell=tell)
        self.acceleration = acceleration  # what a GPU does for searches, and why not; None where none was asked for
        self._device = device
        self._encoder = encoder
        if encoder is not None:
            self._check(encoder)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        encoder: Encoder | None = None,
        device: str | None = None,
        store: bool = True,
        tell: Callable[[str], None] = lambda _: None,
    ) -> Index:
        """Open an index.

        Args:
            path: its folder.
            encoder: the one that it was built with; loaded by the recorded name when first needed.
            device: `cpu`; or `cuda` or `cuda:N`, to encode there, and to search there too: that copies
                the vectors onto the GPU, and `acceleration` tells what came of it. By default queries are
                encoded on a GPU where torch sees one, and searched on the CPU.
            store: whether vectors of documents that are encoded for a query are committed to the index, where
                no other process writes it; else they last as long as this object.
            tell: hears one line before documents are encoded for a query.

        Raises:
            EncoderError: torch does not see that device.
            IndexMismatch: no index there, or another encoder's.
            IndexDamaged: its catalog is not what was written; or, with a GPU, a shard is not.
        """
        check_device(device)
        snapshot = Snapshot(Path(path))
        try:
            acceleration = accelerate(snapshot, device) if device is not None and is_gpu(device) else None
            return cls(snapshot, encoder, device, acceleration, store=store, tell=tell)
        except EngineError:
            snapshot.close()
            raise

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files, and of the GPU."""
        if self.acceleration is not None:
            self.acceleration.close()
        self.snapshot.close()

    @property
    def encoder(self) -> Encoder:
        """The encoder of the index, loaded at first use.

        Raises:
            EncoderError: it cannot be loaded.
            IndexMismatch: what loads under its name has other weights or settings; or the index is bound to none.
        """
        if not self.snapshot.width:
            raise IndexMismatch(
                f"{self.snapshot.folder} holds words alone; add vectors: longmatch index {self.snapshot.folder}"
            )
        if self._encoder is None:
            # Loads torch, which a question by id does without.
            from engine.encoders.loading import load_encoder

            encoder = load_encoder(self.snapshot.meta["encoder"]["name"], device=self._device)
            self._check(encoder)
            self._encoder = encoder
        return self._encoder

    def _check(self, encoder: Encoder) -> None:
        built = self.snapshot.meta.get("encoder")
        if built is None:
            return
        if encoder.fingerprint != built["fingerprint"]:
            raise IndexMismatch(
                f"{self.snapshot.folder} was built with encoder {built['name']!r} (fingerprint "
                f"{built['fingerprint'][:12]}), the one at hand has fingerprint {encoder.fingerprint[:12]}; "
                "restore the encoder's files, or index the corpus again into a new folder"
            )

    def searcher(self, scoring: Scoring | None = None) -> Searcher:
        """What answers queries, on the GPU where the index was opened for one."""
        return Searcher(self.snapshot, scoring, acceleration=self.acceleration)

    @property
    def n_documents(self) -> int:
        """Documents that can be found."""
        return self.snapshot.n_documents

    @property
    def n_chunks(self) -> int:
        """Chunk vectors that can be found."""
        return self.snapshot.n_chunks

    def search(
        self,
        document: Document,
        *,
        k: int = 10,
        offset: int = 0,
        where: str | None = None,
        exact: bool = False,
        scoring: Scoring | None = None,
        allowance: Allowance | None = None,
    ) -> Result:
        """Rank the index against a document of any length; see `Searcher.search`.

        In an index where documents have no vectors yet, the best candidates by words are encoded
        first, see `engine.on_demand`; the others are scored by words alone.

        Args:
            document: to search with.
            k: hits wanted.
            offset: hits to leave out first, for pages.
            where: metadata filter, see `engine.store.where`.
            exact: score every document, whatever index there is.
            scoring: the constants of the score.
            allowance: how many candidates may be encoded.

        Raises:
            DocumentError: the document has no token.
            QueryError: k, offset or filter cannot be used.
        """
        query = self._query(document)
        encoding = self._encode_candidates(query, scoring, allowance, where=where, without=None)
        found = self.searcher(scoring).search(query, k=k, offset=offset, where=where, exact=exact)
        return replace(found, encoding=encoding)

    def _query(self, document: Document) -> Query:
        """A document with its vectors; with none where the index holds words alone."""
        if not self.snapshot.width:
            return Query(document, EncodedDocument.unencoded(0))
        return Query(document, as_stored(self.encoder.encode([document])[0]))

    def _encode_candidates(
        self,
        query: Query,
        scoring: Scoring | None,
        allowance: Allowance | None,
        *,
        where: str | None,
        without: str | None,
    ) -> Encoding | None:
        is_complete = not self.snapshot.width or bool(self.snapshot.has_vectors.all())
        if is_complete or not (scoring or Scoring()).uses_vectors:
            return None
        return self._on_demand.for_query(query, allowance or Allowance(), where=where, without=without)

    def search_id(
        self,
        doc_id: str,
        *,
        k: int = 10,
        offset: int = 0,
        where: str | None = None,
        exact: bool = False,
        scoring: Scoring | None = None,
        allowance: Allowance | None = None,
    ) -> Result:
        """Rank the index against one of its own documents, itself left out; see `search`.

        Nothing is encoded where all documents have vectors.

        Raises:
            QueryError: no such document; or k, offset or filter cannot be used.
        """
        query = self.stored_query(doc_id)
        encoding = self._encode_candidates(query, scoring, allowance, where=where, without=doc_id)
        found = self.searcher(scoring).search(query, k=k, offset=offset, where=where, without=doc_id, exact=exact)
        return replace(found, encoding=encoding)

    def rank_id(self, doc_id: str, *, k: int) -> list[tuple[str, float]]:
        """The best targets of an indexed document, best first, itself left out, without a breakdown.

        Raises:
            QueryError: no such document, or k below 1.
        """
        positions, scores = self.searcher().rank(self.stored_query(doc_id), k=k, without=doc_id)
        names = self._names
        return [(names[position], float(score)) for position, score in zip(positions, scores, strict=True)]

    @cached_property
    def _names(self) -> list[str]:
        return self.snapshot.doc_ids()

    def stored_query(self, doc_id: str) -> Query:
        """An indexed document with its stored vectors, ready to ask with; one without vectors is encoded first."""
        position = self.position(doc_id)
        snapshot = self.snapshot
        at = np.array([position])
        if snapshot.width and not snapshot.has_vectors[position]:
            self._on_demand.encode(at)
        document, coverage = snapshot.documents(at)[0]
        vectors = EncodedDocument(
            document=snapshot.document_rows(at)[0].astype(np.float32),
            sections=snapshot.section_vectors(position),
            chunks=snapshot.chunk_vectors(at)[0],
            chunk_spans=tuple(Chunk(*row) for row in snapshot.spans(position).tolist()),
            coverage=coverage,
        )
        words = snapshot.words(at) if snapshot.language is not None else None
        return Query(document, vectors, words, int(snapshot.content_keys(at)[0]))

    def chunk_vectors(self, doc_id: str) -> Vectors:
        """(C, D) float32: the stored chunk vectors of a document, in reading order, unit rows up to half precision.

        C is 0 for a document that has no vectors yet.

        Raises:
            QueryError: no such document.
        """
        return self.snapshot.chunk_vectors(np.array([self.position(doc_id)]))[0]

    def section_matrix(self, query: Document | str, doc_id: str) -> SectionMatrix:
        """Cosines of all sections of a query (a document, or the doc_id of one) with those of a target."""
        asked = self.stored_query(query) if isinstance(query, str) else self._query(query)
        target = self.stored_query(doc_id)
        return SectionMatrix(asked.document, target.document, asked.vectors.sections @ target.vectors.sections.T)

    def document(self, doc_id: str) -> Document:
        """A document as it was indexed, text and sections included."""
        return self.snapshot.documents(np.array([self.position(doc_id)]))[0][0]

    def document_vectors(self) -> tuple[list[str], Vectors]:
        """All doc_ids and their vectors (N, D), unit rows up to half precision."""
        return self.snapshot.doc_ids(), self.snapshot.document_vectors

    def position(self, doc_id: str) -> int:
        """Row of a document in the snapshot.

        Raises:
            QueryError: no such document.
        """
        position = self.snapshot.position(doc_id)
        if position is None:
            similar = self.snapshot.similar_names(doc_id)
            hint = f"did you mean {', '.join(map(repr, similar))}?" if similar else "list them: longmatch show INDEX"
            raise QueryError(f"no document {doc_id!r} among {self.n_documents} in {self.snapshot.folder}; {hint}")
        return position
