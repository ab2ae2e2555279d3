"""The task of each objective, over the corpora of a run and their indexes, which are built if missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.encoders.loading import DEFAULT_ENCODER
from engine.encoders.mean import MeanEncoder
from engine.encoders.smith.encoder import SmithEncoder
from engine.encoders.tde.encoder import TdeEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import IndexBusy, TrainingError
from engine.index import Index
from engine.store.snapshot import IndexSnapshot
from engine.text.document import Document
from engine.training.contrastive_pretraining import ContrastivePretraining, ContrastiveTension, MomentumContrast
from engine.training.corpus import TrainingCorpus, readable, segmented
from engine.training.fine_tuning import FineTuning, Source, few
from engine.training.masked_words import SmithPretraining, WordPretraining
from engine.training.section_contrast import Classes, Graph, SectionContrast
from engine.training.selection import (
    EvidenceChunks,
    Miner,
    RandomRuns,
    Selector,
    index_miner,
    lexical_miner,
    maxsim_scores,
)
from engine.training.task import Task
from engine.training.text_pairs import LabelledPair, TextPairs
from engine.training.trainer import Step
from engine.training.views import Sampling, ViewPairs
from indexer.building.builder import build
from indexer.building.report import BuildReport
from indexer.training.recipe import (
    Negatives,
    PairsObjective,
    Recipe,
    SectionsObjective,
    SmithObjective,
    TensionObjective,
    TextPairsObjective,
    ViewsObjective,
    WordsObjective,
    shown,
)

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
        return self._stack.enter_context(Index(IndexSnapshot(path), device=context.device))

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
                return index_miner(self.index(corpus, encoder), corpus)
            case Negatives.BM25:
                return lexical_miner(corpus)
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


def make_task(
    recipe: Recipe, encoder: TrainableEncoder, corpora: Sequence[TrainingCorpus], library: Library
) -> Task[Any]:
    """The task of a recipe.

    Raises:
        TrainingError: encoder or corpora do not fit the objective.
    """
    seed = recipe.trainer.seed
    match recipe.objective:
        case PairsObjective() as objective:
            sources = [_source(corpus, recipe, objective, library) for corpus in corpora]
            return FineTuning(encoder, sources, objective, seed=seed)
        case SectionsObjective() as objective:
            return section_contrast(encoder, corpora, objective, seed=seed)
        case TextPairsObjective() as objective:
            if not isinstance(encoder, TdeEncoder):  # before negatives are mined
                raise TrainingError(_unfit("text-pairs", encoder, "a TDE; make one: --new tde"))
            miners = [library.miner(objective.miner, corpus, recipe.start.encoder) for corpus in corpora]
            return text_pairs(encoder, corpora, miners, objective, seed=seed)
        case objective:
            documents = [corpus.documents[doc_id] for corpus in corpora for doc_id in corpus.trainable]
            return _alone(encoder, documents, objective, seed)


def _alone(
    encoder: TrainableEncoder,
    documents: Sequence[Document],
    objective: ViewsObjective | TensionObjective | WordsObjective | SmithObjective,
    seed: int,
) -> Task[Any]:
    """A task over documents without pairs."""
    match objective:
        case ViewsObjective():
            pairs = _pairs(encoder, documents, objective.sampling, objective, seed)
            contrast = MomentumContrast if objective.queue else ContrastivePretraining
            return contrast(encoder, pairs, replace(objective, seed=seed))
        case TensionObjective():
            if not isinstance(encoder, MeanEncoder):
                raise TrainingError(_unfit("ct", encoder, "a mean encoder; name a backbone: --encoder"))
            return ContrastiveTension(
                encoder, _pairs(encoder, documents, Sampling.CT, objective, seed), negatives=objective.negatives
            )
        case WordsObjective():
            pairs = _pairs(encoder, documents, Sampling.SIMCSE, objective, seed)
            return WordPretraining(encoder, pairs, group_tokens=objective.group_tokens, seed=seed)
        case SmithObjective():
            if not isinstance(encoder, SmithEncoder):
                raise TrainingError(_unfit("smith", encoder, "a SMITH; make one: --new smith"))
            return SmithPretraining(encoder, readable(encoder, documents), replace(objective, seed=seed))


def _source(corpus: TrainingCorpus, recipe: Recipe, objective: PairsObjective, library: Library) -> Source:
    encoder = recipe.start.encoder
    teacher = partial(maxsim_scores, library.index(corpus, objective.teacher)) if objective.distils else None
    selector: Selector = RandomRuns(objective.query_chunks, objective.target_chunks)
    # A new encoder cuts other chunks than the index holds: the index is by its backbone alone.
    if objective.miner is Negatives.MODEL and recipe.start.new is None:
        index = library.index(corpus, encoder)
        selector = EvidenceChunks(index, objective.query_chunks, objective.target_chunks, objective.threshold_rank)
    return Source(corpus, selector, library.miner(objective.miner, corpus, encoder), teacher)


def section_contrast(
    encoder: TrainableEncoder, corpora: Sequence[TrainingCorpus], objective: SectionsObjective, *, seed: int
) -> SectionContrast:
    """The task of CoLDE: pairs make a graph; without them, documents that share a label are a class.

    If a label is a list, its first value counts.

    Raises:
        TrainingError: the encoder is not a CoLDE, only some of the corpora have pairs, or they have neither pairs
            nor the label.
    """
    if not isinstance(encoder, ColdeEncoder):
        raise TrainingError(_unfit("sections", encoder, "a CoLDE; make one: --new colde"))
    settings = replace(objective, seed=seed)
    without = [corpus.name for corpus in corpora if not corpus.pairs]
    if 0 < len(without) < len(corpora):
        raise TrainingError(f"{', '.join(without)} has no pairs, the other corpora have; train on one kind at a time")
    texts = _Numbered(encoder)
    if without:
        labels = _labels(corpora, objective.label or "", texts)
        return SectionContrast(encoder, texts.segmented, Classes(labels), settings)
    pairs = [
        (texts.number(corpus, query_id), texts.number(corpus, target_id))
        for corpus in corpora
        for query_id, targets in corpus.pairs.items()
        for target_id in targets
    ]
    readable = [(query, target) for query, target in pairs if query is not None and target is not None]
    return SectionContrast(encoder, texts.segmented, Graph(len(texts.segmented), readable), settings)


def _labels(corpora: Sequence[TrainingCorpus], label: str, texts: _Numbered) -> list[int]:
    """The class of each readable document that has the label; corpora share no class."""
    classes: dict[tuple[str, object], int] = {}
    labels = []
    for corpus in corpora:
        for doc_id in corpus.trainable:
            value = corpus.documents[doc_id].metadata.get(label)
            first = (value[0] if value else None) if isinstance(value, list) else value
            if first is not None and texts.number(corpus, doc_id) is not None:
                labels.append(classes.setdefault((corpus.name, first), len(classes)))
    if not labels:
        fields = sorted(
            {name for corpus in corpora for document in corpus.documents.values() for name in document.metadata}
        )
        raise TrainingError(f"no document has the metadata field {label!r}; they have {', '.join(fields) or 'none'}")
    return labels


def text_pairs(
    encoder: TdeEncoder,
    corpora: Sequence[TrainingCorpus],
    miners: Sequence[Miner | None],
    objective: TextPairsObjective,
    *,
    seed: int,
) -> TextPairs:
    """The task of TDE: the pairs of the corpora match, other pairs of the same corpus do not.

    Raises:
        TrainingError: there are too few pairs.
    """
    rng = np.random.default_rng(seed)
    texts, pairs = _Numbered(encoder), []
    for corpus, miner in zip(corpora, miners, strict=True):
        for query_id, targets in corpus.pairs.items():
            drawn = few(list(targets), objective.positives_per_query, rng)
            hard = miner(query_id) if miner else ()
            others = negatives(corpus, query_id, hard, objective.negatives_per_positive * len(drawn), rng)
            for target_id, matches in [*((match, True) for match in drawn), *((other, False) for other in others)]:
                query, target = texts.number(corpus, query_id), texts.number(corpus, target_id)
                if query is not None and target is not None:
                    pairs.append(LabelledPair(query, target, matches))
    return TextPairs(encoder, texts.segmented, pairs, objective, seed=seed)


def negatives(
    corpus: TrainingCorpus, query_id: str, hard: Sequence[str], n: int, rng: np.random.Generator
) -> list[str]:
    """At most n documents that do not belong to a query: first hard negatives, then random documents."""
    chosen = few(hard, n, rng)
    left_out = {query_id, *hard, *corpus.related.get(query_id, ())}
    others = [doc_id for doc_id in corpus.trainable if doc_id not in left_out]
    return chosen + few(others, n - len(chosen), rng)


def _pairs(
    encoder: Encoder,
    documents: Sequence[Document],
    sampling: Sampling,
    objective: ViewsObjective | TensionObjective | WordsObjective,
    seed: int,
) -> ViewPairs:
    return ViewPairs(
        encoder,
        documents,
        sampling,
        batch_size=objective.batch_size,
        max_tokens=objective.view_tokens,
        joined=isinstance(objective, ViewsObjective) and objective.joined_views,
        seed=seed,
    )


def _unfit(objective: str, encoder: TrainableEncoder, wanted: str) -> str:
    return f"the objective {objective} does not train an encoder of type {encoder.kind}, but {wanted}"


class _Numbered:
    """Documents that have a token, each segmented once and numbered in the order of first use."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._numbers: dict[tuple[str, str], int | None] = {}
        self.segmented: list[SegmentedDocument] = []

    def number(self, corpus: TrainingCorpus, doc_id: str) -> int | None:
        """The position of a document in `segmented`; None where it has no token."""
        key = corpus.name, doc_id
        if key not in self._numbers:
            cut = segmented(self._encoder, corpus.documents[doc_id])
            self._numbers[key] = len(self.segmented) if cut else None
            self.segmented += [cut] if cut else []
        return self._numbers[key]
