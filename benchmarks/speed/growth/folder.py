"""Writes a grown corpus as an ordinary index, through the writer of every index; an interrupted run can be resumed.

Texts are tiny: one word a chunk. Term counts are like those of real texts, see `stream`, so scores are too; only
breakdowns have no words. A file beside the folder names its source, so that a resumed run continues the same
stream.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record_file import rebuild
from benchmarks.speed.growth.source import COPY_MARK, Block, Source
from benchmarks.speed.growth.stream import Growth, calibrate, learn_growth
from benchmarks.speed.growth.texts import TextModel
from benchmarks.speed.records import Calibration
from engine.encoders.encoder import EncodedDocument
from engine.errors import IndexMismatch
from engine.store.snapshot import Snapshot
from engine.store.writer import Writer
from engine.text.document import Document
from engine.text.spans import Chunk, Coverage, Section
from indexer.building.budget import left_beside
from indexer.generation.compaction import SHARD_CHUNKS
from indexer.generation.generations import options_for, publish_generation, refresh_generation
from indexer.generation.reference import refresh_reference
from indexer.generation.resources import Footprint

RECIPE_SUFFIX = ".grown.json"
_WORD = "word "  # the text of a chunk


@dataclass(frozen=True)
class Recipe:
    """The source of a grown folder, and the cost so far."""

    source: str  # checksum
    seed: int
    calibration: Calibration
    learn_seconds: float
    generate_seconds: float
    commit_seconds: float
    texts: str = ""  # checksum of the corpus that words were drawn from; empty for those of the originals


def recipe_path(folder: Path) -> Path:
    """The path of the recipe: beside the index, whose folder holds only files that its catalog names."""
    return folder.with_name(folder.name + RECIPE_SUFFIX)


def prepared_growth(
    folder: Path, source: Source, seed: int, calibrated_on: Source | None = None, texts: TextModel | None = None
) -> tuple[Growth, Recipe]:
    """The growth that a folder was begun with, or a new one, calibrated now and recorded beside the folder.

    `calibrated_on` holds more real documents, where the source is a small part of them. Words are drawn from `texts`.
    """
    path, drawn_from = recipe_path(folder), "" if texts is None else texts.checksum
    if path.exists():
        recipe = rebuild(Recipe, json.loads(path.read_text("utf-8")))
        if (recipe.source, recipe.seed, recipe.texts) != (source.checksum, seed, drawn_from):
            raise IndexMismatch(
                f"{folder} was grown from source {recipe.source} with seed {recipe.seed} and words of "
                f"{recipe.texts or 'the originals'}, not from {source.checksum} with {seed} and words of "
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


def grow_folder(folder: Path, growth: Growth, recipe: Recipe, n_chunks: int) -> tuple[Recipe, int]:
    """Add documents until an index holds at least `n_chunks` chunks; documents that it holds stay.

    Each block is committed as one shard, of the size to which `longmatch index` joins shards. A killed run
    resumes after its last commit.

    Returns:
        The recipe with the cost of this call added, and the number of documents added.
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
        writer.claim(growth.source.encoder)
        writer.set_language(growth.source.language)
        blocks = growth.blocks(order, first=n_there, block_chunks=SHARD_CHUNKS)
        while True:
            started = time.perf_counter()
            block = next(blocks, None)
            if block is None:
                return recipe, n_done - n_there
            made = list(made_documents(block, growth.source.names))
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


def _write(recipe: Recipe, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(recipe)), "utf-8")


def made_documents(block: Block, names: list[str]) -> Iterator[tuple[Document, EncodedDocument]]:
    """Tiny documents with the sections, vectors and token counts of a block; a made one has its original and copy."""
    chunk_stops, section_stops = np.cumsum(block.n_chunks).tolist(), np.cumsum(block.n_sections).tolist()
    chunk_start = section_start = 0
    for number, (chunk_stop, section_stop) in enumerate(zip(chunk_stops, section_stops, strict=True)):
        original, copy = names[block.originals[number]], int(block.copies[number])
        name = f"{original}{COPY_MARK}{copy}" if copy else original
        spans = block.spans[chunk_start:chunk_stop]
        ends = len(_WORD) * np.cumsum(np.bincount(spans[:, 0], minlength=section_stop - section_start))
        sections = tuple(Section("", (), start, stop) for start, stop in pairwise([0, *ends.tolist()]))
        chunks = tuple(
            Chunk(section, len(_WORD) * at, len(_WORD) * (at + 1) - 1, n_tokens)
            for at, (section, n_tokens) in enumerate(spans[:, [0, 3]].tolist())
        )
        n_tokens = int(spans[:, 3].sum())
        text, metadata = _WORD * len(spans), {"original": original, "copy": copy}
        yield (
            Document(name, name, text, sections, metadata, "grown"),
            EncodedDocument(
                document=block.documents[number],
                sections=block.sections[section_start:section_stop],
                chunks=block.chunks[chunk_start:chunk_stop],
                chunk_spans=chunks,
                coverage=Coverage(n_tokens, n_tokens),
            ),
        )
        chunk_start, section_start = chunk_stop, section_stop


@dataclass(frozen=True)
class Real:
    """The real documents that a grown index begins with, and that others are made from."""

    index: Path
    n_documents: int | None  # of a seeded sample; None for all
    seed: int
    texts: Path | None = None  # index whose term statistics the words of made documents are drawn from

    def source(self, snapshot: Snapshot) -> Source:
        """The real documents, from their open index."""
        whole = Source(snapshot)
        if self.n_documents is None or self.n_documents >= len(whole):
            return whole
        return whole.part(np.sort(np.random.default_rng(self.seed).permutation(len(whole))[: self.n_documents]))

    def named(self) -> tuple[str, int]:
        """The name of the index with the checksum of these documents, and their number of chunks."""
        with Snapshot(self.index) as snapshot:
            source = self.source(snapshot)
            return f"{self.index.stem.partition('@')[0]}@{source.checksum}", int(source.n_chunks.sum())

    def folder_of(self, name: str) -> str:
        """The name of the index that is grown from them."""
        drawn = f"-words-{self.texts.stem.partition('@')[0]}" if self.texts is not None else ""
        return f"scale-{name}{drawn}-seed{self.seed}.lm"

    def text_model(self) -> TextModel | None:
        """The model that words are drawn from; None for the words of the originals."""
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

    An existing generation of the same documents and of this type is kept.

    `memory_bytes` is the budget of this process in all, as for `longmatch index`.
    """
    started = time.perf_counter()
    with Writer(folder) as writer:
        left = left_beside(memory_bytes, Footprint())
        refresh_reference(writer, lambda _: None)
        with Snapshot(folder) as snapshot:
            row, n_chunks = snapshot.generation_row, snapshot.n_chunks
            chosen = options_for(snapshot, factory, left)[-1].factory
        is_new = row is None or (row.n_vectors, row.factory) != (n_chunks, chosen)
        if is_new:
            publish_generation(writer, factory, left_bytes=left, recall_floor=recall_floor)
    return {"seconds": time.perf_counter() - started, "is_new": is_new}


def add(real: Real, folder: Path, n_documents: int) -> dict[str, Any]:
    """Commit the next documents of the stream that an index was grown by, in a process that does nothing else."""
    with Snapshot(folder) as snapshot:
        there = frozenset(snapshot.doc_ids())
    with Snapshot(real.index) as snapshot:
        growth, recipe = prepared_growth(folder, real.source(snapshot), real.seed, texts=real.text_model())
        n_wanted = len(there) + n_documents
        n_copies = -(-n_wanted // len(growth.source))
        order = growth.order(n_copies * int(growth.source.n_chunks.sum()))
        n_chunks = int(growth.source.n_chunks[order.originals[:n_wanted]].sum())
        grown, _ = grow_folder(folder, growth, recipe, n_chunks)
    with Snapshot(folder) as snapshot:
        sizes = {name: n_chunks for name, n_chunks in snapshot.chunk_counts().items() if name not in there}
        names = [name for name in snapshot.doc_ids() if name in sizes]
    seconds = grown.commit_seconds - recipe.commit_seconds
    return {"seconds": seconds, "names": names, "n_chunks": sum(sizes.values())}


def join(folder: Path, factory: str, memory_bytes: int | None, recall_floor: float) -> dict[str, Any]:
    """Bring reference and generation up to date as `longmatch index` does after its last commit.

    `memory_bytes` is the budget of this process in all.
    """
    before = generation(folder)
    with Writer(folder) as writer:
        left = left_beside(memory_bytes, Footprint())
        started = time.perf_counter()
        refresh_reference(writer, lambda _: None)
        refresh_generation(writer, factory, left_bytes=left, recall_floor=recall_floor)
        seconds = time.perf_counter() - started
    after = generation(folder)
    if after["number"] == before["number"]:
        outcome = "scanned"
    else:
        outcome = "joined" if after["n_trained"] == before["n_trained"] else "built anew"
    return {"seconds": seconds, "outcome": outcome}


def generation(folder: Path) -> dict[str, Any]:
    """The values of the published generation."""
    with Snapshot(folder) as snapshot:
        row = snapshot.generation_row
        assert row is not None
        values = {"number": row.id, "factory": row.factory, "nprobe": row.nprobe, "recall": row.recall}
        n_trained = snapshot.meta.get("trained_vectors", row.n_vectors)
        return {**values, "n_vectors": row.n_vectors, "n_trained": n_trained}
