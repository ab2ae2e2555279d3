"""`Index`: the interface for querying an index; `longmatch.Index` is the public one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine import result as results
from engine.encoders.encoder import EncodedDocument, Encoder, Vectors
from engine.environment import check_device, is_gpu
from engine.errors import EncoderError, EngineError, IndexMismatch, QueryError, command_line, named_faults
from engine.result import Encoding, Hit, IndexState, Provenance, Status, index_state, provenance, recorded_encoder
from engine.scoring.evidence import Scoring
from engine.search.partition import Placement
from engine.search.query import Query, as_stored, stored_queries, with_section_weights
from engine.search.request import Explain, Mode, Request
from engine.search.searcher import Searcher, ranked
from engine.store.checks import content_hash
from engine.store.partitioned import Snapshot, check_fields, check_key, index_facts, open_snapshot
from engine.store.snapshot import IndexSnapshot, Positions
from engine.store.where import cut_off, dated_text
from engine.text.document import Document
from engine.text.segmentation import Coverage
from engine.views import JointResult, Result, joint_view, result_view

if TYPE_CHECKING:
    from engine.gpu import Acceleration
    from engine.on_demand import OnDemand


@named_faults
class Index:
    """An index opened for searching, pinned to its state at that time. Several threads may use it.

    Example:
        with Index.open("papers.lm") as index:
            print(index.search(document, Request(k=5)))
    """

    def __init__(
        self,
        snapshot: Snapshot,
        encoder: Encoder | None = None,
        device: str | None = None,
        acceleration: Acceleration | None = None,
        *,
        store: bool = True,
        log: Callable[[str], None] = lambda _: None,
        placement: Placement | None = None,
    ) -> None:
        """Wrap a snapshot; `Index.open` is the usual way."""
        self.snapshot = snapshot  # replaced, never changed, where documents get vectors
        self._lock = RLock()
        self._store = store
        self._log = log
        self.record: Callable[[Result | JointResult], None] = lambda _: None  # called with each result of a search
        self.acceleration = acceleration  # what a GPU does for searches, or why not; None where none was requested
        self._placement = placement
        self._device = device
        self._encoder = encoder
        if encoder is not None:
            self._check_encoder(encoder)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        encoder: Encoder | None = None,
        device: str | None = None,
        store: bool = True,
        log: Callable[[str], None] = lambda _: None,
        placement: Placement | None = None,
    ) -> Index:
        """Open an index; the arguments are those of `longmatch.Index.open`, except for two.

        Args:
            path: its folder. For a partitioned index a GPU only encodes; it cannot search yet.
            device: see `longmatch.Index.open`; `acceleration` reports what a GPU does for searches.
            store: see `longmatch.Index.open`.
            placement: where partitions are searched; by default in this process. Elsewhere no document is encoded for
                a query.
        """
        check_device(device)
        snapshot = open_snapshot(Path(path))
        try:
            acceleration = None
            if device is not None and is_gpu(device) and placement is None and isinstance(snapshot, IndexSnapshot):
                from engine.gpu import accelerate  # a search on CPUs loads no code for GPUs

                acceleration = accelerate(snapshot, device)
            return cls(snapshot, encoder, device, acceleration, store=store, log=log, placement=placement)
        except EngineError:
            snapshot.close()
            raise

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files, and release the GPU."""
        if self.acceleration is not None:
            self.acceleration.close()
        self.snapshot.close()

    @property
    def encoder(self) -> Encoder:
        """The encoder of the index, loaded at first use."""
        self._check_vectors()
        with self._lock:
            if self._encoder is None:
                # A query by doc_id needs no encoder.
                from engine.encoders.loading import load_encoder

                encoder = load_encoder(self.snapshot.meta["encoder"]["name"], device=self._device)
                self._check_encoder(encoder)
                self._encoder = encoder
            return self._encoder

    @property
    def loaded_encoder(self) -> Encoder | None:
        """The encoder; None if it was not needed yet."""
        return self._encoder

    def _check_vectors(self) -> None:
        if not self.snapshot.width:
            raise IndexMismatch(
                f"{self.snapshot.folder} holds words alone; add vectors: {command_line('index', self.snapshot.folder)}"
            )

    def _check_encoder(self, encoder: Encoder) -> None:
        built = self.snapshot.meta.get("encoder")
        if built is None:
            return
        if encoder.fingerprint != built["fingerprint"]:
            raise IndexMismatch(
                f"{self.snapshot.folder} was built with encoder {built['name']!r} (fingerprint "
                f"{built['fingerprint'][:12]}), the one at hand has fingerprint {encoder.fingerprint[:12]}; "
                "restore the encoder's files, or encode a copy without vectors: "
                + command_line("upkeep", "partition", self.snapshot.folder, "NEW", "-p", 1, "--words")
            )

    def searcher(self, scoring: Scoring | None = None) -> Searcher:
        """The searcher of the index, on the GPU where the index was opened for one."""
        if self._placement is not None:
            partitions = self._placement.partitions(self.snapshot.parts, scoring or Scoring())
            return Searcher(self.snapshot, scoring, partitions=partitions)
        if self.acceleration is None:
            return Searcher(self.snapshot, scoring)
        return Searcher(self.snapshot, scoring, replica=self.acceleration.replica, scan=self.acceleration.scan)

    @property
    def n_documents(self) -> int:
        """Documents that can be found."""
        return self.snapshot.n_documents

    @property
    def n_chunks(self) -> int:
        """Chunk vectors that can be found."""
        return self.snapshot.n_chunks

    def search(self, query: Document | str, request: Request | None = None) -> Result:
        """Rank the index against a document of any length, or against one of its own documents.

        Copies of the query are left out, and with them the document itself. Nothing is encoded for a document of the
        index where all documents have vectors. In mode NOVELTY the sections of the query are ranked by how little of
        them any document contains, see `engine.search.joint`; candidates are then those of the whole query.
        """
        request = request or Request()
        self._check(request)
        source = self._source(query)
        used, copies = self._without_copies(query, source, request)
        weighted = source if request.mode is Mode.NOVELTY else _weighted(source, used)
        encoding = self._encode_candidates(weighted, used)
        result = result_view(_searched(self.searcher(used.scoring), weighted, used))
        origin = self._provenance(request.recorded(), is_indexed=isinstance(query, str))
        result = self._completed(result, encoding, used.scoring, origin)
        result = replace(result, copies=copies, n_undated=self._n_undated(request))
        self.record(result)
        if used.explain is not Explain.MODEL:
            return result
        with self._encoding():
            models = self.encoder.explain(result.query, [hit.document for hit in result.hits])
        hits = tuple(replace(hit, model=model) for hit, model in zip(result.hits, models, strict=True))
        return replace(result, hits=hits)

    def search_together(
        self, like: Sequence[Document | str], unlike: Sequence[Document | str] = (), request: Request | None = None
    ) -> JointResult:
        """Rank the index against several documents as one query, see `engine.search.joint`.

        Copies of all of them are left out.

        Args:
            like: documents, or doc_ids of indexed documents, at least one.
            unlike: documents that hits are to be unlike, in the same form.
            request: how to search; its weights of sections hold for each document.
        """
        from engine.search.joint import joint

        request = request or Request()
        if not like:
            raise QueryError("no document to be like; name one, and those to be unlike beside it")
        for name in ("mode", "explain", "diversify", "one_per"):
            if getattr(request, name) not in (Mode.SIMILAR, Mode.CONTAINMENT, Explain.EVIDENCE, False, None):
                raise QueryError(f"{name} {getattr(request, name)} is for one document; leave it out for several")
        self._check(request)
        queries = [*like, *unlike]
        used, copies, sources = request, list[str](), []
        for query in queries:
            source = self._source(query)
            used, copies_of_query = self._without_copies(query, source, used)
            copies += copies_of_query
            sources.append(_weighted(source, request))
        encodings = [self._encode_candidates(source, used) for source in sources[: len(like)]]
        together = joint_view(joint(self.searcher(used.scoring), sources, len(like), used))
        completed = []
        for result, encoding, query in zip_longest(together.results, encodings, queries):
            origin = self._provenance(request.recorded(), is_indexed=isinstance(query, str))
            result_of_query = self._completed(result, encoding, used.scoring, origin)
            completed.append(replace(result_of_query, n_undated=self._n_undated(request)))
        is_partial = any(result.status is Status.PARTIAL for result in completed)
        left_out = sorted({doc_id for doc_id in copies if doc_id not in queries})
        status = Status.PARTIAL if is_partial else together.status
        together = replace(together, results=tuple(completed), status=status, copies=tuple(left_out))
        self.record(together)
        return together

    def _check(self, request: Request) -> None:
        """Check that the documents to leave out and the fields of the filter are in the index; encodes nothing."""
        for doc_id in request.without:
            self.position(doc_id)
        if request.where is not None:
            check_fields(self.snapshot, request.where)
        if request.before is not None and self.n_documents:
            dates, _ = cut_off(request.before)
            if len(dates) == 1:
                check_key(self.snapshot, dates[0])
            elif not any(map(self.snapshot.has_field, dates)):
                raise QueryError(f"no document has a date: a field {', '.join(dates)}; leave out before")
        if request.one_per is not None:
            check_key(self.snapshot, request.one_per)
        if request.explain is Explain.MODEL and (reason := self.encoder.cannot_explain) is not None:
            raise EncoderError(reason)

    def _n_undated(self, request: Request) -> int | None:
        """Documents that pass the filter of a request and have no date; None where it has no date either."""
        if request.before is None:
            return None
        is_undated = ~self.snapshot.matching(dated_text(request.before))
        return int(np.count_nonzero(is_undated[self.matching(request.where)]))

    def _source(self, query: Document | str) -> Query:
        """A document, or an indexed document by its doc_id, with its vectors."""
        return self.stored_query(query) if isinstance(query, str) else self._query(query)

    def _without_copies(
        self, query: Document | str, source: Query, request: Request
    ) -> tuple[Request, tuple[str, ...]]:
        """The request with copies of the query left out, and the other documents among them."""
        if request.with_itself:
            return request, ()
        copies = self.copies(source.document)
        return request.leaving_out(*copies), tuple(name for name in copies if name != query)

    def _query(self, document: Document) -> Query:
        """A document with its vectors; without vectors where the index holds words alone."""
        if not self.snapshot.width:
            return Query(document, EncodedDocument.unencoded(0))
        with self._encoding():
            return Query(document, as_stored(self.encoder.encode([document])[0]))

    def _encoding(self) -> AbstractContextManager[object]:
        """Held while the encoder works, unless it takes several threads by itself."""
        return nullcontext() if self.encoder.takes_threads else self._lock

    def matching(self, where: str | None) -> NDArray[np.int64]:
        """The positions of the documents that pass a metadata filter, ascending; of all documents without a filter."""
        if where is None:
            return np.arange(self.n_documents)
        check_fields(self.snapshot, where)
        return np.flatnonzero(self.snapshot.matching(where))

    def copies(self, document: Document) -> list[str]:
        """The doc_ids of the documents that have the same title, text and sections as a given one."""
        return self.snapshot.copies(content_hash(document))

    def _encode_candidates(self, query: Query, request: Request) -> Encoding | None:
        if self._placement is not None or self.snapshot.is_complete or not request.used_scoring.uses_vectors:
            return None
        if self.snapshot.reference.width != self.snapshot.width:  # vectors are not used yet
            return None
        with self._encoding():
            return self._on_demand().for_query(self.snapshot, query, request)

    def _on_demand(self) -> OnDemand:
        from engine.on_demand import OnDemand  # a search of documents that all have vectors writes nothing

        return OnDemand(lambda: self.encoder, self._attach, self._store, self._log)

    def _attach(self, positions: Positions, encoded: Sequence[EncodedDocument]) -> Snapshot:
        """Give vectors to documents, but not to those that another thread gave some."""
        with self._lock:
            missing = np.flatnonzero(~self.snapshot.has_vectors[positions])
            if len(missing):
                vectors = [encoded[place] for place in missing.tolist()]
                self.snapshot = self.snapshot.with_vectors(positions[missing], vectors)
            return self.snapshot

    def _provenance(self, parameters: dict[str, Any], *, is_indexed: bool = False) -> Provenance:
        encoder = recorded_encoder(self.snapshot)
        return provenance(parameters, index=self._state, encoder=encoder, is_indexed=is_indexed)

    @cached_property
    def _state(self) -> IndexState:
        return index_state(self.snapshot)

    @property
    def facts(self) -> dict[str, Any]:
        """Counts, encoder, reference and generations as plain values, as in `longmatch show --json`."""
        return index_facts(self.snapshot)

    def _completed(
        self, result: Result, encoding: Encoding | None, scoring: Scoring | None, origin: Provenance
    ) -> Result:
        """Add encoding, provenance and status to a result; it is `partial` where evidence is missing, see `Status`."""
        is_partial = self._is_partial(result.query_coverage, result.hits, encoding, scoring)
        status = Status.PARTIAL if is_partial else result.status
        return replace(result, encoding=encoding, status=status, provenance=origin)

    def _is_partial(
        self, coverage: Coverage, hits: Sequence[Hit], encoding: Encoding | None, scoring: Scoring | None
    ) -> bool:
        is_read = self.snapshot.width > 0 and (scoring or Scoring()).uses_vectors
        is_cut = is_read and (coverage.tokens_read < coverage.tokens_total or coverage.chunks_pooled > 1)
        are_bare = is_read and not all(hit.has_vectors for hit in hits)
        return is_cut or are_bare or (encoding is not None and encoding.n_encoded < encoding.n_candidates)

    def rank_id(self, doc_id: str, *, k: int) -> list[tuple[str, float]]:
        """The best targets of an indexed document, best first, itself left out, without a breakdown."""
        positions, scores = self.searcher().rank(self.stored_query(doc_id), Request(k=k, without=(doc_id,)))
        names = self._names
        return [(names[position], float(score)) for position, score in zip(positions, scores, strict=True)]

    @cached_property
    def _names(self) -> list[str]:
        return self.snapshot.doc_ids()

    def stored_query(self, doc_id: str) -> Query:
        """An indexed document with its stored vectors, as a query; a document without vectors is encoded first."""
        position = self.position(doc_id)
        if self.snapshot.width and not self.snapshot.is_encoded(position):
            if self._placement is not None:
                ((document, _),) = self.snapshot.documents(np.array([position]))
                return self._query(document)
            with self._encoding():
                if not self.snapshot.is_encoded(position):  # another thread may have encoded it
                    self._on_demand().encode(self.snapshot, np.array([position]))
        return stored_queries(self.snapshot, np.array([position]))[0]

    def chunk_vectors(self, doc_id: str) -> Vectors:
        """(C, D) float32: the stored chunk vectors of a document, in reading order, unit rows up to half precision.

        C is 0 for a document that has no vectors yet.
        """
        return self.snapshot.chunk_vectors(np.array([self.position(doc_id)]))[0]

    def compare(self, query: Document | str, target: Document | str, request: Request | None = None) -> Result:
        """Score one document as a search with another document would, and break the score down.

        Args:
            target: another document, which need not be in the index; or a doc_id.
        """
        from engine.comparison import compare

        request = request or Request()
        source, compared = _weighted(self._source(query), request), self._source(target)
        origin = self._provenance(request.recorded_comparison(), is_indexed=isinstance(query, str))
        folder, scoring = str(self.snapshot.folder), request.scoring
        return result_view(compare(source, compared, self.snapshot, folder=folder, scoring=scoring, origin=origin))

    def document(self, doc_id: str) -> Document:
        """A document as it was indexed, text and sections included."""
        return self.snapshot.documents(np.array([self.position(doc_id)]))[0][0]

    def document_vectors(self) -> tuple[list[str], Vectors]:
        """All doc_ids and their vectors (N, D), unit rows up to half precision."""
        return self.snapshot.doc_ids(), self.snapshot.document_vectors

    def position(self, doc_id: str) -> int:
        """Row of a document in the snapshot."""
        position = self.snapshot.position(doc_id)
        if position is None:
            similar = self.snapshot.similar_names(doc_id)
            names = ", ".join(map(repr, similar))
            listing = command_line("show", self.snapshot.folder, "--documents")
            hint = f"did you mean {names}?" if similar else f"list them: {listing}"
            raise QueryError(f"no document {doc_id!r} among {self.n_documents:,} in {self.snapshot.folder}; {hint}")
        return position


def _weighted(query: Query, request: Request) -> Query:
    """A query whose sections are skipped or weighted as requested."""
    if not request.skip and not request.weights:
        return query
    return with_section_weights(query, request.skip, request.weights)


def _searched(searcher: Searcher, query: Query, request: Request) -> results.Result:
    """The result of a request in its mode and order; novelty is loaded here."""
    if request.mode is Mode.NOVELTY:
        from engine.search.joint import novelty

        return novelty(searcher, query, request)
    if request.diversify or request.one_per is not None:
        return ranked(searcher, query, request)
    return searcher.search(query, request)
