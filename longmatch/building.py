"""`build`: an index from whatever a user has; opened, and ready to be searched."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from indexer.building.doc_ids import FileIds
from longmatch.arguments import index_path
from longmatch.index import Index
from longmatch.records import Columns
from longmatch.sources import Source, read_source

if TYPE_CHECKING:
    from engine.encoders.encoder import Encoder
    from indexer.building.builder import EncodeNow
    from indexer.building.report import Progress


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
    memory_bytes: int | None = None,
    disk_bytes: int | None = None,
    partitions: int | None = None,
    prune: bool = False,
    id_prefix: str = "",
    progress: bool | Progress | None = None,
) -> Index:
    """Make an index, or bring one up to date: what is unchanged is skipped, what changed is replaced.

    A run that was stopped goes on where its last commit was; one that committed nothing leaves no folder.

    Example:
        ```python
        index = longmatch.build("papers.lm", "papers/")
        index = longmatch.build("theses.lm", frame, text="abstract", id="doi")
        ```

    Args:
        path: the folder of the index; made if need be.
        source: a folder, a file or a pattern; a table of pandas, Polars, Arrow or Hugging Face datasets;
            or an iterable, read one by one, of texts, paths, dicts and `Document` values. In an iterable a
            string is a text, unless it names a file or folder, see `longmatch.naming`. A dict has "text"
            or "sections", and optionally "id", "title" and "metadata"; a text or dict without id gets one
            from its content, and is left out where it comes again.
        text: field of the dicts, or column of the table, that holds the text.
        id: the one that holds the id.
        title: the one that holds the title.
        encode: vectors "later", as queries need them, "all" now, or "none": search by words alone.
        encoder: an encoder or its name; by default that of the index, or the bundled one.
        device: `cpu`, `cuda` or `cuda:N`, for encoding and for the index that is returned.
        language: by which words are segmented; detected by default.
        factory: FAISS factory string, "auto", or "scan" for none.
        memory_bytes: what the process may take; by default there is no limit.
        disk_bytes: what the index folder may take; by default there is no limit.
        partitions: of a new index, whose documents are spread over so many indexes, see the how-to page on partitions;
            an index that is there must have as many.
        prune: remove documents of the index that are not in the source.
        id_prefix: put in front of each new doc_id. A file is named by its path below the folder of the source.
            A file that the index holds keeps its doc_id; one that would get the doc_id of another file, which is
            still there, fails and is in `index.report.failures`.
        progress: whether to show it on standard error, by default in terminals and notebooks; or a function
            that is called with the report after each commit.

    Returns:
        The index, opened; `index.report` says what was done, and which documents failed.

    Raises:
        DocumentError: the source, a path or a field cannot be used, or no document could be indexed.
        EngineError: see `indexer.building.builder.build`.
    """
    folder = index_path(path)
    stream = read_source(source, Columns(text, id, title), FileIds(id_prefix, folder))
    from longmatch.writing import Settings, warn_of_failures, write

    used = encoder
    if encode != "none" and (isinstance(encoder, str) or (encoder is None and not folder.exists())):
        # Loaded here, so that the index which is returned has it too; loads torch, seconds that others go without.
        from engine.encoders.loading import DEFAULT_ENCODER, load_encoder

        used = load_encoder(encoder or DEFAULT_ENCODER, device=device)
    settings = Settings(used, device, encode, language, factory, memory_bytes, disk_bytes, prune, partitions)
    report = write(folder, stream, settings, progress)
    shown = progress if isinstance(progress, bool) else None
    index = Index.open(folder, encoder=None if encode == "none" else used, device=device, progress=shown)
    index.report = report
    warn_of_failures(report)
    return index
