"""`build` makes an index from the documents of a user and opens it; `compare` compares two documents without one."""

import os
from collections.abc import Mapping, Sequence

from engine.comparison import compare_alone
from engine.encoders.encoder import Encoder
from engine.errors import QueryError
from engine.readers.fields import Fields
from engine.scoring.evidence import Scoring
from engine.search.request import Request
from engine.views import Result, result_view
from indexer.building.builder import EncodeNow, Settings
from indexer.building.corpus import FileIds
from indexer.building.report import Progress
from longmatch.index import Index
from longmatch.sources import Item, Source, index_path, query_document, read_source
from longmatch.writing import warn_of_failures, write


def build(
    path: str | os.PathLike[str],
    source: Source = (),
    *,
    text: str | None = None,
    id: str | None = None,
    title: str | None = None,
    encode: EncodeNow = "later",
    encoder: Encoder | str | None = None,
    device: str | None = None,
    language: str | None = None,
    factory: str = "auto",
    partitions: int | None = None,
    prune: bool = False,
    id_prefix: str = "",
    progress: bool | Progress | None = None,
) -> Index:
    """Create or update an index: unchanged documents are skipped, changed documents are replaced.

    A run that was stopped continues after its last commit; a run that committed nothing leaves no folder.

    Example:
        ```python
        index = longmatch.build("papers.lm", "papers/")
        index = longmatch.build("theses.lm", frame, text="abstract", id="doi")
        ```

    Args:
        path: the index folder; created if it does not exist.
        source: a folder, a file or a pattern; a table of pandas, Polars, Arrow or Hugging Face datasets;
            or an iterable, read one by one, of texts, paths, dicts and `Document` values. In an iterable a
            string is a text, unless it names a file or folder, see `longmatch.sources`. A dict has "text"
            or "sections", and optionally "id", "title" and "metadata"; a text or dict without id gets one
            from its content, and is left out if it is repeated.
        text: field of the dicts or of the records of JSON files, or column of the table, that holds the text.
        id: field or column that holds the id.
        title: field or column that holds the title.
        encode: which documents get vectors: "later", a sample now and others when queries need them; "all", every
            document now; or "none", for an index that is searched by words alone.
        encoder: an encoder or its name; by default that of the index, or the bundled encoder.
        device: `cpu`, `cuda` or `cuda:N`, for encoding and for the returned index.
        language: language of the documents, by which words are segmented; detected by default.
        factory: FAISS factory string, "auto", or "scan" for no FAISS index.
        partitions: number of partitions of a new index, over which its documents are spread, see the how-to page on
            partitions; an existing index must have the same number.
        prune: remove documents of the index that are not in the source.
        id_prefix: put in front of each new doc_id. A file is named by its path below the folder of the source.
            A file that the index holds keeps its doc_id; a file that would get the doc_id of another existing file
            fails, and is listed in `index.report.failures`.
        progress: whether to show progress on standard error, by default in terminals and notebooks; or a function
            that is called with the report after each commit.

    Returns:
        The opened index; `index.report` has counts of the run and the documents that failed.

    Raises:
        DocumentError: the source, a path or a field cannot be used, or no document could be indexed.
        EngineError: see `indexer.building.builder.build`.
    """
    folder = index_path(path)
    stream = read_source(source, Fields(text, title, id), FileIds(id_prefix, folder))
    used = encoder
    if encode != "none" and (isinstance(encoder, str) or (encoder is None and not folder.exists())):
        # Loaded here, so that the returned index uses it too.
        from engine.encoders.loading import load_encoder

        used = load_encoder(encoder, device=device)
    settings = Settings(
        used,
        device,
        encode,
        factory,
        language=language,
        partitions=partitions,
        prune=prune,
    )
    report = write(folder, stream, settings, progress)
    shown = progress if isinstance(progress, bool) else None
    index = Index.open(folder, encoder=None if encode == "none" else used, device=device, progress=shown)
    index.report = report
    warn_of_failures(report)
    return index


def compare(
    a: Item,
    b: Item,
    *,
    index: Index | None = None,
    encoder: Encoder | str | None = None,
    skip: str | Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
    device: str | None = None,
    scoring: Scoring | None = None,
) -> Result:
    """Show which sections of a document match which sections of another one, and score the second for the first.

    Without an index there are no thresholds: the score is high for any two documents, and serves to order the
    parts. With an index it is the score that a search of that index with `a` would give `b`. The result has one hit.

    Args:
        a: the query: a text, a path, a dict with "text" or "sections", or a `Document`, as in `Index.search`.
        b: the target, in one of the same forms; for an indexed document, pass `index.document(doc_id)`.
        index: source of the thresholds, the word statistics and the encoder.
        encoder: an encoder or its name, only without an index; by default the bundled encoder.
        skip: kinds of sections to leave out, as in `Index.search`.
        weights: weights of sections of `a`, as in `Index.search`: {"claims": 3, "abstract": 0}.
        device: device of a named encoder, only without an index.
        scoring: the constants of the score.

    Raises:
        DocumentError: a document has no text, or its file cannot be read.
        EncoderError: the encoder cannot be loaded.
        QueryError: a file does not exist, an index and an encoder or a device are given, or a kind to skip or a
            weight cannot be used.

    Example:
        ```python
        comparison = longmatch.compare("draft.pdf", "paper.pdf")
        print(comparison[0].score, comparison[0].snippets(1))
        ```
    """
    if index is not None and (encoder is not None or device is not None):
        raise QueryError("index and encoder or device exclude each other: an index has its own encoder")
    query, target = query_document(a), query_document(b)
    request = Request.of(skip=skip, weights=weights, scoring=scoring)
    if index is not None:
        return index.opened.compare(query, target, request)
    return result_view(compare_alone(query, target, encoder, request, device=device))
