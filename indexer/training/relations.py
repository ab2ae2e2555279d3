"""Relations between documents, by pairs or by a label, in the form that the tasks of CoLDE and TDE need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.encoder import Encoder, SegmentedDocument
from engine.encoders.tde.encoder import TdeEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import DocumentError, TrainingError
from engine.training.corpus import TrainingCorpus
from engine.training.tasks.mining import Miner
from engine.training.tasks.section_contrast import Classes, Graph, SectionContrast
from engine.training.tasks.text_pairs import LabelledPair, TextPairs
from indexer.training.objectives import SectionsObjective, TextPairsObjective


def section_contrast(
    encoder: TrainableEncoder,
    corpora: Sequence[TrainingCorpus],
    objective: SectionsObjective,
    *,
    label: str | None,
    seed: int,
) -> SectionContrast:
    """The task of CoLDE: pairs make a graph; without them, documents that share a label are a class.

    If a label is a list, its first value counts.

    Raises:
        TrainingError: the encoder is not a CoLDE, only some of the corpora have pairs, or they have neither pairs
            nor the label.
    """
    if not isinstance(encoder, ColdeEncoder):
        raise TrainingError(_unfit("sections", encoder, "CoLDE", "colde"))
    settings = replace(objective.settings, seed=seed)
    without = [corpus.name for corpus in corpora if not corpus.pairs]
    if 0 < len(without) < len(corpora):
        raise TrainingError(f"{', '.join(without)} has no pairs, the other corpora have; train on one kind at a time")
    texts = _Readable(encoder)
    if without:
        labels = _labels(corpora, label or "", texts)
        return SectionContrast(encoder, texts.segmented, Classes(labels), settings)
    pairs = [
        (texts.number(corpus, query_id), texts.number(corpus, target_id))
        for corpus in corpora
        for query_id, targets in corpus.pairs.items()
        for target_id in targets
    ]
    readable = [(one, other) for one, other in pairs if one is not None and other is not None]
    return SectionContrast(encoder, texts.segmented, Graph(len(texts.segmented), readable), settings)


def _labels(corpora: Sequence[TrainingCorpus], label: str, texts: _Readable) -> list[int]:
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
        fields = sorted({field for corpus in corpora for one in corpus.documents.values() for field in one.metadata})
        raise TrainingError(f"no document has the metadata field {label!r}; they have {', '.join(fields) or 'none'}")
    return labels


def text_pairs(
    encoder: TrainableEncoder,
    corpora: Sequence[TrainingCorpus],
    miners: Sequence[Miner | None],
    objective: TextPairsObjective,
    *,
    seed: int,
) -> TextPairs:
    """The task of TDE: the pairs of the corpora match, other pairs of the same corpus do not.

    Raises:
        TrainingError: the encoder is not a TDE, or there are too few pairs.
    """
    check_text_pairs(encoder)
    assert isinstance(encoder, TdeEncoder)
    rng = np.random.default_rng(seed)
    texts, pairs = _Readable(encoder), []
    for corpus, miner in zip(corpora, miners, strict=True):
        for query_id, targets in corpus.pairs.items():
            drawn = _few(list(targets), objective.positives_per_query, rng)
            hard = miner.negatives(query_id) if miner else ()
            others = negatives(corpus, query_id, hard, objective.negatives_per_positive * len(drawn), rng)
            for target_id, matches in [*((one, True) for one in drawn), *((one, False) for one in others)]:
                query, target = texts.number(corpus, query_id), texts.number(corpus, target_id)
                if query is not None and target is not None:
                    pairs.append(LabelledPair(query, target, matches))
    documents = [one.document for one in texts.segmented]
    return TextPairs(encoder, documents, pairs, objective.settings, seed=seed)


def check_text_pairs(encoder: TrainableEncoder) -> None:
    """Check that the encoder is a TDE, before negatives are mined.

    Raises:
        TrainingError: the encoder is not a TDE.
    """
    if not isinstance(encoder, TdeEncoder):
        raise TrainingError(_unfit("text-pairs", encoder, "TDE", "tde"))


def negatives(
    corpus: TrainingCorpus, query_id: str, hard: Sequence[str], n: int, rng: np.random.Generator
) -> list[str]:
    """At most n documents that do not belong to a query: first hard negatives, then random documents."""
    chosen = _few(hard, n, rng)
    left_out = {query_id, *hard, *corpus.related.get(query_id, ())}
    others = [doc_id for doc_id in corpus.trainable if doc_id not in left_out]
    return chosen + _few(others, n - len(chosen), rng)


def _few(among: Sequence[str], n: int, rng: np.random.Generator) -> list[str]:
    return [among[int(at)] for at in rng.permutation(len(among))[:n]]


def _unfit(objective: str, encoder: TrainableEncoder, wanted: str, new: str) -> str:
    return (
        f"the objective {objective} trains a {wanted}, the encoder is of type {encoder.kind}; "
        f"make one: --new {new}, or train what there is: --objective pairs"
    )


class _Readable:
    """Documents that have a token, each segmented once and numbered in the order of first use."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._numbers: dict[tuple[str, str], int | None] = {}
        self.segmented: list[SegmentedDocument] = []

    def number(self, corpus: TrainingCorpus, doc_id: str) -> int | None:
        """The position of a document in `segmented`; None where it has no token."""
        key = corpus.name, doc_id
        if key not in self._numbers:
            try:
                self.segmented.append(self._encoder.segment(corpus.documents[doc_id]))
                self._numbers[key] = len(self.segmented) - 1
            except DocumentError:
                self._numbers[key] = None
        return self._numbers[key]
