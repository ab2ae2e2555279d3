"""One run over a corpus into several partitions: each document goes to the pipeline of its partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from engine.readers import Unreadable
from engine.store.manifest import partition_of
from engine.text.document import Document
from indexer.building.pipeline import Pipeline
from indexer.building.prefetch import ahead
from indexer.building.report import BuildReport

_BLOCK_CHARS = 1 << 25  # read before partitions commit their share, at most; held in memory twice


def run_routed(
    pipelines: Sequence[Pipeline], documents: Iterable[Document | Unreadable], *, prune: bool = False
) -> BuildReport:
    """Index new and changed documents, see `Pipeline.run`.

    Documents are read one block ahead; a block has about a batch for each partition. Documents of the same doc_id
    always go to the same pipeline.

    Args:
        pipelines: of the partitions, by number; they share one activity.
        documents: a stream.
        prune: remove documents of the index that are not in `documents`.
    """
    if len(pipelines) == 1:
        return pipelines[0].run(documents, prune=prune)
    activity = pipelines[0].activity
    for pipeline in pipelines:
        pipeline.begin()
    try:
        block_chars = min(len(pipelines) * pipelines[0].sizes.batch_chars, _BLOCK_CHARS)
        with closing(ahead(_blocks(documents, block_chars))) as blocks:
            for block in blocks:
                _feed(pipelines, block)
        for pipeline in pipelines:
            pipeline.finish(prune=prune)
    finally:
        activity.take_time()
    return activity.report


def _feed(pipelines: Sequence[Pipeline], block: Iterable[Document | Unreadable]) -> None:
    groups: list[list[Document | Unreadable]] = [[] for _ in pipelines]
    for one in block:
        # A file that was never read has no doc_id; its failure stays with its own name.
        groups[partition_of(_name(one), len(pipelines))].append(one)
    for pipeline, group in zip(pipelines, groups, strict=True):
        if group:
            pipeline.feed(group)


def _name(one: Document | Unreadable) -> str:
    name = one.doc_id or one.source
    return name.encode(errors="replace").decode()  # what cannot be stored fails in the pipeline


def _blocks(documents: Iterable[Document | Unreadable], most_chars: int) -> Iterator[list[Document | Unreadable]]:
    block: list[Document | Unreadable] = []
    n_chars = 0
    for one in documents:
        block.append(one)
        n_chars += len(one.text) if isinstance(one, Document) else len(one.reason)
        if n_chars >= most_chars:
            yield block
            block, n_chars = [], 0
    if block:
        yield block
