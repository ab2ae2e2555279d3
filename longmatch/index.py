"""`Index`: an index folder, opened for searches and for changes."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar, Unpack, overload

from engine.encoders.encoder import Encoder
from engine.environment import check_extra, refuse_windows
from engine.errors import IndexMismatch, QueryError
from engine.index import Index as OpenedIndex
from engine.readers.fields import Fields
from engine.report.lines import counted
from engine.scoring.evidence import Scoring
from engine.search.request import STANDING, Request
from engine.store.catalog import holds_index
from engine.store.where import filter_text
from engine.text.document import Document
from engine.views import JointResult, Result
from indexer.building.corpus import FileIds
from longmatch.sources import Item, Source, Where, index_path, query_document, read_source
from longmatch.writing import changes_only, progress_log, warn_of_failures, write

if TYPE_CHECKING:
    import pyarrow

    from engine.citing import CitingDocument
    from engine.report.arrow import What
    from engine.result import Pairs
    from indexer.building.builder import EncodeNow
    from indexer.building.report import BuildReport, Progress

QueryT = TypeVar("QueryT", bound="Item")


def _listed(items: Item | Iterable[Item]) -> list[Item]:
    return [items] if isinstance(items, (str, os.PathLike, Mapping, Document)) else list(items)


class SearchOptions(TypedDict, total=False):
    """The arguments of `Index.search`: the fields of `engine.search.request.Request`."""

    k: int
    offset: int
    where: Where | None
    before: str | datetime.date | None
    without: str | Sequence[str] | None
    with_itself: bool
    skip: str | Sequence[str]
    weights: Mapping[str, float] | None
    mode: str
    diversify: bool
    one_per: str | None
    min_pair: float
    least: float | str | None
    exact: bool
    candidates: int
    encode_tokens: int | None
    explain: str
    scoring: Scoring | None


class Index:
    """An index folder, opened in its current state; changes made through this object are visible at once.

    Several threads may search it, while none of them changes, refreshes or closes it.

    Example:
        ```python
        with longmatch.open("papers.lm") as index:
            print(index.search("draft.pdf", k=5, where={"year": {">=": 2019}}))
        ```
    """

    def __init__(
        self,
        path: Path,
        *,
        encoder: Encoder | None,
        device: str | None,
        store: bool,
        progress: bool | None,
        search_log: str | os.PathLike[str] | None = None,
    ) -> None:
        """Open a folder; `longmatch.open` is the usual way."""
        refuse_windows()
        self.path = path
        self.report: BuildReport | None = None  # report of the last `build`, `add` or `update`
        self._encoder = encoder
        self._device = device
        self._store = store
        self._progress = progress
        self._search_log = search_log
        self._opened: OpenedIndex | None = self._open()

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        encoder: Encoder | str | None = None,
        device: str | None = None,
        store: bool = True,
        progress: bool | None = None,
        search_log: str | os.PathLike[str] | None = None,
    ) -> Index:
        """Open an index.

        Args:
            path: the index folder.
            encoder: the encoder that the index was built with, or its name; by default it is loaded at first use.
            device: device for encoding and searching: `cpu`, `cuda` or `cuda:N`. To search on a GPU, the vectors
                are copied to it. By default queries are encoded on a GPU if torch sees one, and searched on the
                CPU.
            store: whether vectors of documents that are encoded for a query are committed to the index, if no
                other process writes to it; otherwise they last until this object reopens or closes the index.
            progress: whether to print a line on standard error before documents are encoded for a query; by
                default in terminals and notebooks.
            search_log: a file to which each search appends a JSON line, see `indexer.searches`.

        Raises:
            EncoderError: the encoder cannot be loaded, or torch does not see the device.
            IndexMismatch: there is no index, or it was built with another encoder.
            IndexDamaged: the catalog of the index differs from what was written.
        """
        folder = index_path(path)
        if not holds_index(folder):
            problem = "holds no index" if folder.exists() else "does not exist"
            raise IndexMismatch(f"{folder} {problem}; make one: longmatch.build({str(folder)!r}, SOURCE)")
        if isinstance(encoder, str):
            from engine.encoders.loading import load_encoder

            encoder = load_encoder(encoder, device=device)
        return cls(folder, encoder=encoder, device=device, store=store, progress=progress, search_log=search_log)

    def _open(self) -> OpenedIndex:
        log = progress_log(self._progress)
        opened = OpenedIndex.open(self.path, encoder=self._encoder, device=self._device, store=self._store, log=log)
        if self._search_log is not None:
            from indexer.searches import SearchLog

            opened.record = SearchLog(self._search_log).add
        return opened

    def refresh(self) -> bool:
        """Reopen the index at the newest commit of any process; an open index does not see later commits by itself.

        Cheap if nothing was committed. The encoder stays loaded. Vectors that were encoded for queries with
        `store=False` are discarded.

        Returns:
            Whether the index was reopened.

        Raises:
            QueryError: the index was closed.
            EngineError: the new state cannot be opened; the old one stays open.
        """
        old = self.opened
        if old.snapshot.is_newest():
            return False
        if self._encoder is None:
            self._encoder = old.loaded_encoder
        self._opened = self._open()
        old.close()
        return True

    @property
    def opened(self) -> OpenedIndex:
        """The `engine.index.Index` that this object wraps.

        Raises:
            QueryError: the index was closed.
        """
        if self._opened is None:
            raise QueryError(f"the index is closed; open it again: longmatch.open({str(self.path)!r})")
        return self._opened

    def close(self) -> None:
        """Release the files and the GPU; a second call does nothing."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.opened.n_documents

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and self.opened.snapshot.position(doc_id) is not None

    def __iter__(self) -> Iterator[str]:
        """The doc_ids, in the order in which they were indexed."""
        return iter(self.opened.snapshot.doc_ids())

    def __repr__(self) -> str:
        if self._opened is None:
            return f"Index({str(self.path)!r}, closed)"
        snapshot = self._opened.snapshot
        n_missing = int((~snapshot.has_vectors).sum())
        encoder = snapshot.meta["encoder"]["name"] if snapshot.width else "words alone"
        missing = f", {n_missing:,} without vectors yet" if snapshot.width and n_missing else ""
        return f"Index({str(self.path)!r}, {counted(len(self), 'document')}{missing}, {encoder})"

    @overload
    def search(self, query: Item, **options: Unpack[SearchOptions]) -> Result: ...

    @overload
    def search(self, query: list[QueryT] | tuple[QueryT, ...], **options: Unpack[SearchOptions]) -> list[Result]: ...

    def search(
        self, query: Item | list[QueryT] | tuple[QueryT, ...], **options: Unpack[SearchOptions]
    ) -> Result | list[Result]:
        """Rank the index against a document of any length.

        Args:
            query: a text, a path, a dict with "text" or "sections", or a `Document`; a list of them gives a
                list of results. A string is a text unless it names a file, see `longmatch.sources`;
                `result.query.source` is the file, or "" for a text.
            k: number of hits, 10 by default.
            offset: number of hits to skip, for pages.
            where: metadata filter: {"year": {">=": 2019}, "venue": ["ACL", "EMNLP"]}, or as text
                "year >= 2019 and venue in ('ACL', 'EMNLP')"; see `engine.store.where`.
            before: only documents dated before this day: "2019", "2019-06" or "2019-06-01" (or a `datetime.date`), by
                the first of the fields date, published, publication_date, created and year that holds a date in
                ISO format; "priority_date=2019" names another field. A year or a month counts as its last day, and
                `result.n_undated` documents have no date.
            without: doc_id of a document to leave out, or several.
            with_itself: keep documents with the same content as the query among the hits; `result.copies` names them
                otherwise.
            skip: kinds of sections that take no part in the score, of the query and of all documents: "references",
                "acknowledgements", "appendix", "boilerplate"; one or several, see `engine.text.section_kinds`.
                The vectors of whole documents are then not compared.
            weights: weights of sections of the query, by heading, kind or number: {"claims": 3, "abstract": 0}; see
                `engine.search.query`. Other sections have the weight 1. The weight 0 leaves a section out;
                for a kind it is the same as `skip`.
            mode: "similar"; "containment": how much of the query a document contains, see
                `engine.scoring.evidence`, where every document is scored; or "novelty": `Result.sections` ranks the
                sections of the query by 1 minus the score of the document that contains most of the section.
            diversify: order the first 50 hits so that each adds sections of the query that the hits before it
                lack, see `engine.search.searcher`. Scores do not change.
            one_per: a metadata field, as "family": of the documents with one value of it the best is a hit, and
                `hit.others` are the doc_ids of the others that rank high. A document without the field is a hit.
            min_pair: least contribution of a section pair that is listed; the other pairs are one part, `rest`.
            least: least score of a hit; "auto": the score that unrelated documents of the index reach, see
                `engine.scoring.evidence`.
            exact: score every document, even if there is a FAISS index.
            candidates: how many of the best documents by words are encoded before they are scored, if they have no
                vectors yet; 20 by default. Documents without vectors are scored by words alone.
            encode_tokens: approximate limit of tokens to encode for candidates; at least one document is encoded.
            explain: "evidence", or "model": each hit also has `hit.model`, the explanation of the model for the
                sections of both documents, see `engine.encoders.encoder`. The encoder then reads the query and
                the hits of the page again, including sections that `skip` and `weights` leave out of the score.
            scoring: the constants of the score.

        Returns:
            A result for one query; a list of results for a list of queries, even if the list has one query or none.

        Raises:
            DocumentError: a query has no text, or its file cannot be read.
            EncoderError: `explain` is "model", and the encoder has no explanation; the bundled one has none.
            QueryError: a file does not exist, an argument cannot be used, or a document to leave out is not in
                the index.
        """
        request = Request.of(**options)
        documents = [query_document(item) for item in (query if isinstance(query, list | tuple) else [query])]
        results = [self.opened.search(document, request) for document in documents]
        return results if isinstance(query, list | tuple) else results[0]

    def search_id(self, doc_id: str, **options: Unpack[SearchOptions]) -> Result:
        """Rank the index against one of its own documents, which is left out; see `search` for the arguments.

        Nothing is encoded if all documents have vectors and `explain` is "evidence".

        Raises:
            QueryError: there is no such document, or an argument cannot be used.
        """
        return self.opened.search(doc_id, Request.of(**options))

    def search_together(
        self,
        like: Item | Sequence[Item] = (),
        unlike: Item | Sequence[Item] = (),
        *,
        ids: str | Sequence[str] = (),
        unlike_ids: str | Sequence[str] = (),
        **options: Unpack[SearchOptions],
    ) -> JointResult:
        """Rank the index against several documents as one query: more like these, less like those.

        The score is the mean of the scores for the documents to be like, minus half the mean of those for the documents
        to be unlike, see `engine.search.joint`. All of them, and copies of them, are left out of the hits.

        Args:
            like: documents, each as `search` takes it, or one of them.
            unlike: documents that hits are to be unlike, or one.
            ids: doc_ids of further documents to be like.
            unlike_ids: doc_ids of further documents to be unlike.
            options: as of `search`, except for `diversify`, `one_per`, the mode "novelty" and the explanation of the
                model.

        Raises:
            DocumentError: a document has no text, or its file cannot be read.
            QueryError: no document is to be like, or see `search`.
        """
        liked, unliked = (list(map(query_document, _listed(items))) for items in (like, unlike))
        names, unlike_names = ([own] if isinstance(own, str) else own for own in (ids, unlike_ids))
        return self.opened.search_together([*liked, *names], [*unliked, *unlike_names], Request.of(**options))

    def watch(self, query: Item, state: str | os.PathLike[str], **options: Unpack[SearchOptions]) -> Result:
        """The hits of a standing question that no earlier call with this state returned, or that changed since.

        Args:
            query: as `search` takes one. A file may change; another text is another question.
            state: a file that holds what was returned; made by the first call. `longmatch watch` takes the same file.
            options: as of `search`, with the defaults `k=100` and `least="auto"`.

        Raises:
            DocumentError: the state is that of another index, or see `search`.
        """
        from indexer.searches import Watch

        watch = Watch(Path(state), self.path)
        request = Request.of(**{**STANDING, **options})
        result, _ = watch.search(self.opened, query_document(query), request)
        with watch.saved():
            return result

    def pairs(self, *, least: float = 0.5, top: int = 10, mode: str = "similar", where: Where | None = None) -> Pairs:
        """Find pairs of documents that overlap, best first; `Pairs.clusters` connects them.

        A pair is listed once, if one of the two is among the best targets of the other. Its score is the larger of
        the scores of both directions. Nothing is encoded: if a document has no vectors, all pairs are scored by words
        alone. The command `longmatch pairs` also prints progress.

        Args:
            least: least score of a listed pair, above 0.
            top: number of targets of each document that can make a pair.
            mode: as in `search`.
            where: metadata filter, for both documents.

        Raises:
            QueryError: an argument cannot be used.
        """
        from indexer.pairs import PairSettings, find_pairs

        return find_pairs(self.opened, PairSettings(least, top, mode, filter_text(where)))

    def document(self, doc_id: str) -> Document:
        """A document as it was indexed, text and sections included.

        Raises:
            QueryError: there is no such document.
        """
        return self.opened.document(doc_id)

    def cited_by(self, doc_id: str) -> tuple[CitingDocument, ...]:
        """The documents whose text names a document by an identifier, with the citing sentences.

        Identifiers are numbers of RFCs, PEPs, EIPs and patents, DOIs, arXiv ids, and places of cases in reporters, from
        the metadata, the doc_id and the title of the document. All texts of the index are read.

        Raises:
            QueryError: there is no such document, or nothing identifies it.
        """
        from engine.citing import cited_by

        return cited_by(self.opened, doc_id)

    def to_arrow(self, what: What = "documents", *, where: Where | None = None) -> pyarrow.Table:
        """Documents, sections or vectors as an Arrow table in memory; `longmatch export` writes the same to a file.

        Args:
            what: "documents", "sections" or "vectors", see `engine.report.arrow.index_export`.
            where: metadata filter, as in `search`.

        Raises:
            IndexMismatch: vectors are requested, and the index holds words alone.
            MissingExtra: pyarrow is not installed.
            QueryError: there is no such table, or the filter cannot be used.
        """
        check_extra("pyarrow", "Index.to_arrow()", "pyarrow", "arrow")
        from engine.report.arrow import index_export

        snapshot, chosen = self.opened.snapshot, self.opened.matching(filter_text(where))
        return index_export(snapshot, what, chosen).table()

    def add(
        self,
        source: Source,
        *,
        text: str | None = None,
        id: str | None = None,
        title: str | None = None,
        encode: EncodeNow | None = None,
        progress: bool | Progress | None = None,
    ) -> BuildReport:
        """Add documents; a document whose id is already in the index with other content fails, see `update`.

        `longmatch.build` on the same path adds and replaces.

        Args:
            source: as in `longmatch.build`.
            text: field or column that holds the text.
            id: field or column that holds the id.
            title: field or column that holds the title.
            encode: as in `longmatch.build`; by default "later", or "none" for an index of words alone.
            progress: as in `longmatch.build`.

        Raises:
            DocumentError: the source cannot be used, or none of its documents could be added.
            IndexBusy: another process writes the index.
        """
        return self._write(source, Fields(text, title, id), encode, progress, are_present=False)

    def update(
        self,
        source: Source,
        *,
        text: str | None = None,
        id: str | None = None,
        title: str | None = None,
        encode: EncodeNow | None = None,
        progress: bool | Progress | None = None,
    ) -> BuildReport:
        """Replace documents by new ones with the same id; a document whose id is not in the index fails, see `add`.

        If the content is the same, the metadata are replaced and nothing is encoded. The arguments are those of `add`.

        Raises:
            DocumentError: the source cannot be used, or none of its documents could replace one.
            IndexBusy: another process writes the index.
        """
        return self._write(source, Fields(text, title, id), encode, progress, are_present=True)

    def remove(self, doc_ids: str | Iterable[str]) -> int:
        """Remove documents, all or none; `longmatch upkeep compact` frees their disk space.

        Args:
            doc_ids: one doc_id or several.

        Returns:
            The number of removed documents.

        Raises:
            QueryError: there is no such document; nothing was removed.
            IndexBusy: another process writes the index.
        """
        # Imports modules for writing, which searches do not need.
        from indexer.upkeep.repair import remove

        names = [doc_ids] if isinstance(doc_ids, str) else list(doc_ids)
        for name in names:
            if not isinstance(name, str):
                raise QueryError(
                    f"{name!r:.60} is {type(name).__name__}, no doc_id; of a hit or document, pass .doc_id"
                )
            self.opened.position(name)
        names = list(dict.fromkeys(names))
        self.opened.close()  # while a snapshot is open, a writer cannot empty the log
        try:
            return remove(self.path, names)
        finally:
            self._opened = self._open()

    def _write(
        self,
        source: Source,
        columns: Fields,
        encode: EncodeNow | None,
        progress: bool | Progress | None,
        *,
        are_present: bool,
    ) -> BuildReport:
        """Write the documents of a source whose doc_id is in the index, or those whose doc_id is not."""
        from indexer.building.builder import Settings  # loads SQLAlchemy, which a search does not need

        stream = changes_only(
            read_source(source, columns, FileIds(index=self.path)), self.path, are_present=are_present
        )
        encode = encode or ("later" if self.opened.snapshot.width else "none")
        if encode != "none" and self.opened.snapshot.width:
            self._encoder = self.opened.encoder  # loaded once, for writing and for the reopened index
        self.opened.close()  # while a snapshot is open, a writer cannot empty the log
        try:
            shown = self._progress if progress is None else progress
            report = write(self.path, stream, Settings(self._encoder, self._device, encode), shown)
        finally:
            self._opened = self._open()
        self.report = report
        warn_of_failures(report, stacklevel=4)
        return report


open = Index.open
