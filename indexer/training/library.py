"""Indexes of the corpora of a run, built if missing: for mining, for the choice of chunks, for teachers."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.encoders.loading import DEFAULT_ENCODER
from engine.errors import IndexBusy
from engine.index import Index
from engine.store.snapshot import Snapshot
from engine.training.corpus import TrainingCorpus
from engine.training.selection import IndexMiner, LexicalMiner, Miner
from engine.training.trainer import Step
from indexer.building.builder import build
from indexer.building.report import BuildReport
from indexer.training.recipe import Negatives, shown

_SECONDS_BETWEEN_LINES = 15.0
_SECONDS_BETWEEN_TRIES = 5.0


Log = Callable[[str], None]


@dataclass(frozen=True)
class Context:
    """The device of a run, its command, its callbacks and its processes."""

    device: str | None
    command: str  # the command line of the run, for its card
    log: Log
    watch: Callable[[Step], None]
    processes: Any  # the `PartialState` of accelerate


class Library:
    """Opens each index once; the exit stack closes them."""

    def __init__(self, folder: Path, context: Context, stack: ExitStack) -> None:
        """Keep indexes in a folder, as NAME.lm, or NAME-ENCODER.lm for an encoder other than the default."""
        self._folder = folder
        self._context = context
        self._stack = stack
        self._opened: dict[tuple[str, str], Index] = {}

    def index(self, corpus: TrainingCorpus, encoder: str) -> Index:
        """The index of a corpus by an encoder.

        Raises:
            IndexMismatch: the index in the folder was made by another encoder of the same name.
        """
        if (corpus.name, encoder) not in self._opened:
            name = corpus.name if encoder == DEFAULT_ENCODER else f"{corpus.name}-{Path(encoder).name}"
            self._opened[corpus.name, encoder] = self._open(self._folder / f"{name}.lm", corpus, encoder)
        return self._opened[corpus.name, encoder]

    def _open(self, path: Path, corpus: TrainingCorpus, encoder: str) -> Index:
        context = self._context
        context.log(f"{corpus.name}: index {path.name} by {shown(encoder)}")
        if context.processes.is_main_process:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._build(path, corpus, encoder)
        context.processes.wait_for_everyone()
        # Not by `Index.open`, which would copy the vectors onto the GPU: its memory is for training.
        return self._stack.enter_context(Index(Snapshot(path), device=context.device))

    def _build(self, path: Path, corpus: TrainingCorpus, encoder: str) -> None:
        """Make or update an index; wait as long as another process, such as another training, writes to it."""
        context = self._context
        progress = _IndexProgress(corpus, context.log)
        has_waited = False
        while True:
            try:
                build(path, corpus.documents.values(), encoder=encoder, device=context.device, progress=progress)
                return
            except IndexBusy:
                if not has_waited:
                    context.log(f"{corpus.name}: waits, since another process is writing {path.name}")
                has_waited = True
                time.sleep(_SECONDS_BETWEEN_TRIES)

    def miner(self, kind: Negatives, corpus: TrainingCorpus, encoder: str) -> Miner | None:
        """The miner of the hard negatives of a corpus.

        Raises:
            MissingExtra: `kind` is BM25, and bm25s is not installed.
        """
        match kind:
            case Negatives.MODEL:
                return IndexMiner(self.index(corpus, encoder), corpus)
            case Negatives.BM25:
                return LexicalMiner(corpus)
            case Negatives.NONE:
                return None


class _IndexProgress:
    """Logs a line now and then while a corpus is indexed."""

    def __init__(self, corpus: TrainingCorpus, log: Log) -> None:
        self._corpus = corpus
        self._log = log
        self._last = time.monotonic()

    def __call__(self, report: BuildReport) -> None:
        if time.monotonic() - self._last >= _SECONDS_BETWEEN_LINES:
            self._last = time.monotonic()
            self._log(f"{self._corpus.name}: {report.n_seen:,} of {len(self._corpus.documents):,} documents indexed")
