"""`build`: make or update an index from documents; the order of the steps, nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from engine.document import Document
from engine.encoders.encoder import Encoder
from engine.encoders.loading import DEFAULT_ENCODER, load_encoder
from engine.readers import Unreadable
from engine.store.ann import AUTO
from engine.store.catalog import CATALOG_FILE
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer.generation import RECALL_FLOOR, needs_generation, publish_generation
from indexer.pipeline import BuildReport, Pipeline, Progress
from indexer.plan import fit_factory


def build(
    path: str | Path,
    documents: Iterable[Document | Unreadable],
    *,
    encoder: Encoder | str | None = None,
    device: str | None = None,
    factory: str = AUTO,
    memory_bytes: int | None = None,
    recall_floor: float = RECALL_FLOOR,
    prune: bool = False,
    progress: Progress | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> BuildReport:
    """Create or update an index.

    What is unchanged is skipped, what changed is replaced, whatever order the
    documents come in; a run that was killed goes on where its last commit was.

    Args:
        path: the index folder; made if need be.
        documents: a stream; `indexer.read_corpus` makes one from paths.
        encoder: an encoder or its name; by default the one of the index, or the bundled one.
        device: where a named encoder runs.
        factory: FAISS factory string, or `auto`.
        memory_bytes: what the FAISS index may take.
        recall_floor: least document recall of a new generation.
        prune: remove documents that did not come.
        progress: called after each commit.
        tell: hears one line a step of building the generation.

    Raises:
        IndexBusy: another process writes the index.
        IndexMismatch: the index belongs to another encoder.
        BudgetExceeded: the FAISS index would not fit; documents are committed, the generation is not.
        RecallTooLow: the factory string cannot reach the floor; documents are committed, the generation is not.
    """
    with Writer(Path(path)) as writer:
        asked = encoder or writer.meta.get("encoder", {}).get("name", DEFAULT_ENCODER)
        used = load_encoder(asked, device=device) if isinstance(asked, str) else asked
        writer.claim({"name": used.name, "fingerprint": used.fingerprint, "width": used.width})
        report = Pipeline(writer, used, progress).run(documents, prune=prune)
        refresh_generation(writer, factory, memory_bytes=memory_bytes, recall_floor=recall_floor, tell=tell)
    return report


def encoder_for(path: Path, name: str | None, device: str | None) -> Encoder:
    """The encoder that `build` would use: the named one, the one of the index, or the default."""
    if name is None and (path / CATALOG_FILE).exists():
        with Snapshot(path) as snapshot:
            name = snapshot.meta["encoder"]["name"]
    return load_encoder(name or DEFAULT_ENCODER, device=device)


def refresh_generation(
    writer: Writer,
    factory: str,
    *,
    memory_bytes: int | None = None,
    recall_floor: float = RECALL_FLOOR,
    tell: Callable[[str], None] = lambda _: None,
) -> None:
    """Publish a generation if the documents have outgrown the one there is."""
    with Snapshot(writer.folder) as snapshot:
        is_needed = needs_generation(snapshot, factory)
        n_chunks, width = snapshot.n_chunks, snapshot.width
    if is_needed:
        factory, _ = fit_factory(factory, n_chunks, width, memory_bytes)
        publish_generation(writer, factory, recall_floor=recall_floor, tell=tell)
