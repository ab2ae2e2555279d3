"""The tasks of `engine.training` over labelled pairs, and which pairs each uses as matches and mismatches.

A step reads `pairs_per_step` pairs of train, and of each document a stretch of about `training_tokens`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from benchmarks.pair_scorer import Budget, Pair, documents_of
from engine.encoders.colde.encoder import ColdeEncoder
from engine.encoders.tde.encoder import TdeEncoder
from engine.encoders.trainable import TrainableEncoder
from engine.errors import TrainingError
from engine.text.document import Document
from engine.training.corpus import TrainingCorpus
from engine.training.fine_tuning import FineTuning, FineTuningSettings, Loss, Source
from engine.training.section_contrast import ContrastSettings, Graph, SectionContrast
from engine.training.selection import RandomRuns
from engine.training.task import Task
from engine.training.text_pairs import LabelledPair, TextPairs, TextPairsSettings

Learned: TypeAlias = FineTuningSettings | ContrastSettings | TextPairsSettings  # the objective

GROUP_TOKENS = 4096  # most tokens with a graph at a time; about 8 GB of activations of a BERT-base
TOKENS_PER_SENTENCE = 24  # on average; thus 64 sentences of a TDE are as long as 48 blocks of a SMITH


def n_chunks(encoder: TrainableEncoder, training_tokens: int) -> int:
    """The number of chunks in `training_tokens` tokens, special tokens counted; at least one."""
    # The chunks of a TDE are sentences, most of them far shorter than the limit.
    longest = TOKENS_PER_SENTENCE if isinstance(encoder, TdeEncoder) else encoder.chunk_tokens + 2
    return max(1, training_tokens // longest)


def pair_task(
    encoder: TrainableEncoder,
    learned: Learned,
    texts: Mapping[str, Document],
    train: Sequence[Pair],
    *,
    budget: Budget,
    training_tokens: int,
    seed: int,
) -> Task[Any]:
    """Make the task that trains an encoder on the pairs of `train`.

    `FineTuning` uses half of the pairs of a step as queries, each with a match and a labelled mismatch. All other
    documents of the batch are mismatches too, except for losses of single pairs; see `labels_alone`. `SectionContrast`
    reads only matches, one for each pair of a step, and uses the other documents of the batch as mismatches.
    `TextPairs` reads labelled pairs, and contrasts their sentences with those of other documents.
    """
    n_pairs, chunks = budget.pairs_per_step, n_chunks(encoder, training_tokens)
    match learned:
        case FineTuningSettings():
            settings = replace(learned, queries=max(2, n_pairs // 2), negatives=1, group_tokens=GROUP_TOKENS)
            corpus = _corpus(texts, train, is_open=labels_alone(learned))
            source = Source(corpus, RandomRuns(chunks, chunks), LabelledMismatches(train))
            return FineTuning(encoder, [source], settings, seed=seed)
        case ContrastSettings():
            if not isinstance(encoder, ColdeEncoder):
                raise TrainingError(f"sections are contrasted by a CoLDE, not by an encoder of type {encoder.kind}")
            return _sections(encoder, texts, train, replace(learned, n_classes=n_pairs, seed=seed))
        case TextPairsSettings():
            if not isinstance(encoder, TdeEncoder):
                raise TrainingError(f"a pair head is trained of a TDE, not of an encoder of type {encoder.kind}")
            at = {doc_id: number for number, doc_id in enumerate(texts)}
            pairs = [LabelledPair(at[pair.first], at[pair.second], pair.is_match) for pair in train]
            sized = replace(learned, batch_pairs=n_pairs, max_sentences=chunks, group_tokens=GROUP_TOKENS)
            return TextPairs(encoder, list(texts.values()), pairs, sized, seed=seed)


def labels_alone(learned: Learned) -> bool:
    """Whether an objective uses only pairs with a label.

    Cross-entropy needs no others. A softmax over a batch, and losses over sets of related documents, treat pairs
    without a label as mismatches; if splits share documents, these include matches of valid and test.
    """
    return isinstance(learned, FineTuningSettings) and {loss for loss, w in learned.losses.items() if w} == {Loss.BCE}


def _corpus(texts: Mapping[str, Document], train: Sequence[Pair], *, is_open: bool) -> TrainingCorpus:
    """The matches of train; with `is_open`, documents without a label for a query are neither match nor mismatch."""
    matches: dict[str, dict[str, int]] = {}
    partners: dict[bool, dict[str, dict[str, int]]] = {True: {}, False: {}}
    for pair in train:
        if pair.is_match:
            matches.setdefault(pair.first, {})[pair.second] = 1
        for one, other in ((pair.first, pair.second), (pair.second, pair.first)):
            partners[pair.is_match].setdefault(one, {})[other] = 1
    related: dict[str, Mapping[str, int]] = {**partners[True]}
    if is_open:
        related = {query_id: _AllBut(texts, partners[False].get(query_id, ())) for query_id in matches}
    return TrainingCorpus("train", texts, matches, related)


class _AllBut(Mapping[str, int]):
    """A judgment of 1 for all documents except some; a dictionary for each query would be too large."""

    def __init__(self, doc_ids: Collection[str], left_out: Collection[str]) -> None:
        self._doc_ids = doc_ids
        self._left_out = frozenset(left_out)

    def __getitem__(self, doc_id: str) -> int:
        if doc_id in self._left_out or doc_id not in self._doc_ids:
            raise KeyError(doc_id)
        return 1

    def __iter__(self) -> Iterator[str]:
        return (doc_id for doc_id in self._doc_ids if doc_id not in self._left_out)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class LabelledMismatches:
    """A `Miner` that returns the labelled mismatches of train."""

    def __init__(self, train: Sequence[Pair]) -> None:
        """Take the mismatches of each first document."""
        self._found: dict[str, list[str]] = {}
        for pair in train:
            if not pair.is_match:
                self._found.setdefault(pair.first, []).append(pair.second)

    def negatives(self, query_id: str) -> Sequence[str]:
        """As `Miner.negatives`, in the order of train."""
        return self._found.get(query_id, [])


def _sections(
    encoder: ColdeEncoder, texts: Mapping[str, Document], train: Sequence[Pair], settings: ContrastSettings
) -> SectionContrast:
    matches = [pair for pair in train if pair.is_match]
    at = {doc_id: number for number, doc_id in enumerate(sorted(documents_of(matches)))}
    segmented = [encoder.segment(texts[doc_id]) for doc_id in at]
    graph = Graph(len(at), [(at[pair.first], at[pair.second]) for pair in matches])
    return SectionContrast(encoder, segmented, graph, settings)
