"""Writes a grown corpus as an ordinary index, through the writer that every index is written by; can be gone on with.

Texts are tiny: one word a chunk. Term counts are as of real texts, see `growth`, so scores are too, and only
breakdowns know no words. Beside the folder stands a file that says what it was grown from, so that going
on means going on with the same stream.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record_file import rebuild
from benchmarks.speed.growth.source import COPY_MARK, Block, Source
from benchmarks.speed.growth.stream import Growth, calibrate, learn_growth
from benchmarks.speed.growth.texts import TextModel
from benchmarks.speed.records import Calibration
from engine.document import Chunk, Coverage, Document, Section
from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from indexer.building.budget import left_beside
from indexer.generation.compaction import SHARD_CHUNKS
from indexer.generation.footprint import Footprint
from indexer.generation.new_generation import publish_generation, rungs_for
from indexer.generation.reference import refresh_reference

RECIPE_SUFFIX = ".grown.json"
_WORD = "word "  # the text of a chunk


@dataclass(frozen=True)
class Recipe:
    """What a folder was grown from, and what that cost so far."""

    source: str  # checksum
    seed: int
    calibration: Calibration
    learn_seconds: float
    generate_seconds: float
    commit_seconds: float
    texts: str = ""  # checksum of the corpus that words were drawn from; empty for those of the originals


def recipe_path(folder: Path) -> Path:
    """Beside the index, which holds nothing that its catalog does not name."""
    return folder.with_name(folder.name + RECIPE_SUFFIX)


def prepared_growth(
    folder: Path, source: Source, seed: int, calibrated_on: Source | None = None, texts: TextModel | None = None
) -> tuple[Growth, Recipe]:
    """The growth that a folder was begun with, or one that is calibrated now and noted beside it.

    Args:
        folder: of the grown index.
        source: the real documents.
        seed: of all that is drawn.
        calibrated_on: more real documents, where the source is a small part of them.
        texts: from which the words of made documents are drawn.

    Raises:
        IndexMismatch: the folder was grown from something else, or by something else.
    """
    path, drawn_from = recipe_path(folder), "" if texts is None else texts.checksum
    if path.exists():
        recipe = rebuild(Recipe, json.loads(path.read_text("utf-8")))
        if (recipe.source, recipe.seed) != (source.checksum, seed):
            raise IndexMismatch(
                f"{folder} was grown from source {recipe.source} with seed {recipe.seed}, not from {source.checksum} "
                f"with {seed}; name another --work folder, or remove {folder} and {path.name}"
            )
        if recipe.texts != drawn_from:
            raise IndexMismatch(
                f"{folder} was grown with words of {recipe.texts or 'the originals'}, not of "
                f"{drawn_from or 'the originals'}; name another --work folder, or remove {folder} and {path.name}"
            )
        return learn_growth(source, turn=recipe.calibration.turn, seed=seed, texts=texts), recipe
    if folder.exists():
        raise IndexMismatch(f"{folder} is there, {path.name} that would say what it was grown from is not; remove it")
    started = time.perf_counter()
    found = calibrate(calibrated_on or source, seed)
    growth = learn_growth(source, turn=found.turn, seed=seed, texts=texts)
    recipe = Recipe(source.checksum, seed, found, time.perf_counter() - started, 0.0, 0.0, drawn_from)
    _write(recipe, path)
    return growth, recipe


def grow_folder(
    folder: Path, growth: Growth, recipe: Recipe, n_chunks: int, log: Callable[[str], None] = lambda _: None
) -> tuple[Recipe, int]:
    """Add documents until an index holds at least so many chunks; what is there already stays.

    Each block is committed as one shard, of the size that `longmatch index` joins them to. A run that was
    killed goes on after its last commit.

    Returns:
        The recipe, with what this call cost added, and the documents that it added.

    Raises:
        IndexMismatch: the index holds more than was wanted, or was grown without words.
    """
    order = growth.order(n_chunks)
    with Writer(folder) as writer:
        counters: dict[str, int] = writer.meta.get("counters", {"document": 1})
        n_done = n_there = counters["document"] - 1
        if n_done > len(order):
            raise IndexMismatch(
                f"{folder} holds {n_done:,} documents, {len(order):,} make {n_chunks:,} chunks; name sizes from small "
                "to large, or another --work folder"
            )
        if writer.lacks_words:
            raise IndexMismatch(f"{folder} was grown by an earlier version, without words; remove it and its recipe")
        writer.claim(growth.source.encoder)
        writer.set_language(growth.source.language)
        blocks = growth.blocks(order, first=n_there, block_chunks=SHARD_CHUNKS)
        while True:
            started = time.perf_counter()
            block = next(blocks, None)
            if block is None:
                return recipe, n_done - n_there
            made = list(zip(documents(block, growth.source.names), encoded(block), strict=True))
            words = growth.words(block)
            generated = time.perf_counter()
            writer.commit(made, words)
            n_done += len(made)
            recipe = replace(
                recipe,
                generate_seconds=recipe.generate_seconds + generated - started,
                commit_seconds=recipe.commit_seconds + time.perf_counter() - generated,
            )
            _write(recipe, recipe_path(folder))
            log(f"{n_done:,} of {len(order):,} documents")


def _write(recipe: Recipe, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(recipe)), "utf-8")


def documents(block: Block, names: list[str]) -> Iterator[Document]:
    """Tiny documents with the sections and chunks of the block's; a made one is named by its original and copy."""
    starts = block.starts
    for number, (original, copy) in enumerate(zip(block.originals.tolist(), block.copies.tolist(), strict=True)):
        name = f"{names[original]}{COPY_MARK}{copy}" if copy else names[original]
        size = int(block.n_chunks[number])
        of_section = block.spans[starts[number] : starts[number] + size, 0]
        stops = len(_WORD) * np.cumsum(np.bincount(of_section, minlength=int(block.n_sections[number])))
        sections = tuple(
            Section("", (), start, stop) for start, stop in zip([0, *stops[:-1].tolist()], stops.tolist(), strict=True)
        )
        metadata = {"original": names[original], "copy": copy}
        yield Document(name, name, _WORD * size, sections, metadata, "grown")


def encoded(block: Block) -> Iterator[EncodedDocument]:
    """The vectors of a block's documents, with spans in the tiny texts; tokens are those of the originals."""
    chunk_stops, section_stops = np.cumsum(block.n_chunks).tolist(), np.cumsum(block.n_sections).tolist()
    chunk_start = section_start = 0
    for number, (chunk_stop, section_stop) in enumerate(zip(chunk_stops, section_stops, strict=True)):
        spans = block.spans[chunk_start:chunk_stop]
        words = range(0, len(_WORD) * len(spans), len(_WORD))
        n_tokens = int(spans[:, 3].sum())
        yield EncodedDocument(
            document=block.documents[number],
            sections=block.sections[section_start:section_stop],
            chunks=block.chunks[chunk_start:chunk_stop],
            chunk_spans=tuple(
                Chunk(section, word, word + len(_WORD) - 1, tokens)
                for word, section, tokens in zip(words, spans[:, 0].tolist(), spans[:, 3].tolist(), strict=True)
            ),
            coverage=Coverage(n_tokens, n_tokens),
        )
        chunk_start, section_start = chunk_stop, section_stop


@dataclass(frozen=True)
class Real:
    """The real documents that are put in first, and grown."""

    index: Path
    n_documents: int | None  # a seeded sample of so many; None for all
    seed: int
    texts: Path | None = None  # index whose term statistics the words of made documents are drawn from

    def source(self, snapshot: Snapshot) -> Source:
        """Those documents of the open index."""
        whole = Source(snapshot)
        if self.n_documents is None or self.n_documents >= len(whole):
            return whole
        return whole.part(np.sort(np.random.default_rng(self.seed).permutation(len(whole))[: self.n_documents]))

    def named(self) -> tuple[str, int]:
        """The name of the index with the checksum of these documents, and how many chunks they have."""
        with Snapshot(self.index) as snapshot:
            source = self.source(snapshot)
            return f"{self.index.stem.partition('@')[0]}@{source.checksum}", int(source.n_chunks.sum())

    def folder_of(self, name: str) -> str:
        """What the index is called that is grown of them."""
        drawn = f"-words-{self.texts.stem.partition('@')[0]}" if self.texts is not None else ""
        return f"scale-{name}{drawn}-seed{self.seed}.lm"

    def text_model(self) -> TextModel | None:
        """What words are drawn from."""
        if self.texts is None:
            return None
        with Snapshot(self.texts) as snapshot:
            source = Source(snapshot)
            return TextModel.learn(source.checksum, source.words(np.arange(len(source))))


def grow(real: Real, folder: Path, n_chunks: int) -> dict[str, Any]:
    """Grow an index, in a process that does nothing else."""
    with Snapshot(real.index) as snapshot:
        growth, recipe = prepared_growth(folder, real.source(snapshot), real.seed, Source(snapshot), real.text_model())
        grown, n_added = grow_folder(folder, growth, recipe, n_chunks)
    return {"n_added": n_added, **asdict(grown)}


def publish(folder: Path, factory: str, memory_bytes: int | None, recall_floor: float) -> dict[str, Any]:
    """Pin a reference, and publish a generation over all documents, so that none is left to be scanned.

    A generation of these very documents and of this type is kept.

    Memory is what this process may take in all, as for `longmatch index`.
    """
    started = time.perf_counter()
    with Writer(folder) as writer:
        left = left_beside(memory_bytes, Footprint())
        refresh_reference(writer, lambda _: None)
        with Snapshot(folder) as snapshot:
            row, n_chunks = snapshot.generation_row, snapshot.n_chunks
            chosen = rungs_for(snapshot, factory, left)[-1].factory
        is_new = row is None or (row.n_vectors, row.factory) != (n_chunks, chosen)
        if is_new:
            publish_generation(writer, factory, left_bytes=left, recall_floor=recall_floor)
    return {"seconds": time.perf_counter() - started, "is_new": is_new}
