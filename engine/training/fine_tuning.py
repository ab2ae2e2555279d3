"""Fine-tuning on pairs of long documents, by losses over the vectors that search ranks by.

Letters in shapes: B queries, T targets, N both together, I chunks of a query (padded), J of a target (padded), D width.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.encoders.encoder import SegmentedDocument, segmented
from engine.encoders.trainable import Embedded, TrainableEncoder
from engine.errors import TrainingError
from engine.settings import ABOVE_ZERO, COUNT, FROM_ZERO, Checked, Range, setting
from engine.training.corpus import TrainingCorpus
from engine.training.losses import ScaledCosine, bce_of_cosine, best_matches, chunk_weights, ranking_loss
from engine.training.selection import Miner, PairBatch, Selector
from engine.training.task import Backward, backward_in_groups, full_precision, step_generator, tokens_read


@dataclass(frozen=True)
class Towers:
    """The inputs of a loss over pairs, all on one device."""

    query_documents: Tensor  # (B, D) unit rows
    target_documents: Tensor  # (T, D) unit rows
    query_chunks: Tensor  # (B, I, D) unit rows, zero where padded
    target_chunks: Tensor  # (T, J, D)
    target_mask: Tensor  # (T, J) bool, True where a chunk is real
    weights: Tensor  # (B, I) of the query chunks, 0 where padded
    positives: Tensor  # (B, T) bool, True where a target belongs to a query
    excluded: Tensor  # (B, T) bool, True where it is neither positive nor negative
    scaled_cosine: ScaledCosine  # the logit of `bce`

    @classmethod
    def of(cls, embedded: Embedded, pairs: PairBatch, scaled_cosine: ScaledCosine) -> Self:
        """Split the vectors of a batch."""
        n, device = len(pairs.queries), embedded.documents.device
        weights = chunk_weights(pairs.queries).to(device)
        return cls(
            query_documents=normalize(embedded.documents[:n], dim=-1),
            target_documents=normalize(embedded.documents[n:], dim=-1),
            query_chunks=embedded.chunks[:n, : weights.shape[1]],
            target_chunks=embedded.chunks[n:],
            target_mask=embedded.mask[n:],
            weights=weights,
            positives=torch.from_numpy(pairs.positives).to(device),
            excluded=torch.from_numpy(pairs.excluded).to(device),
            scaled_cosine=scaled_cosine,
        )

    @cached_property
    def best_matches(self) -> Tensor:
        """(B, I, T) in [-1, 1]: s_i(t), the best chunk of each target for each query chunk."""
        return best_matches(self.query_chunks, self.target_chunks, self.target_mask)

    def mean_best_match(self) -> Tensor:
        """(B, T) in [-1, 1]: mean best match of the query's chunks, weighted by `weights`."""
        shares = self.weights / self.weights.sum(1, keepdim=True)
        return (shares[:, None] @ self.best_matches).squeeze(1)

    def cosines(self) -> Tensor:
        """(B, T) cosines of the document vectors."""
        return self.query_documents @ self.target_documents.T


class Loss(StrEnum):
    """Losses over the pairs of a batch; several are summed by weight."""

    MAXSIM = "maxsim"  # ranking by the weighted mean best match of the query's chunks
    DOCUMENT = "document"  # InfoNCE over document vectors
    BCE = "bce"  # each pair of document vectors by itself, as in SMITH


DEFAULT_LOSSES: Mapping[Loss, float] = {Loss.MAXSIM: 1.0, Loss.DOCUMENT: 0.3}


@dataclass(frozen=True)
class FineTuningSettings(Checked):
    """Settings of batches and losses; the defaults were the best on valid of those tried."""

    losses: Mapping[Loss, float] = setting(DEFAULT_LOSSES, "losses with their weights: maxsim, document, bce")
    queries: int = setting(20, "queries of a batch, each with one positive", Range(least=2))
    negatives: int = setting(3, "hard negatives of a query; those of other queries are its negatives too", FROM_ZERO)
    threshold_rank: int = setting(5, "M of the thresholds taken in the batch, by which chunks are chosen", COUNT)
    temperature: float = setting(0.05, "temperature of all losses over cosines", ABOVE_ZERO)
    group_tokens: int | None = setting(None, "most tokens of a backward pass; fewer need less memory", COUNT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.losses or min(self.losses.values()) < 0 or not sum(self.losses.values()) > 0:
            weights = ", ".join(f"{name} {weight:g}" for name, weight in self.losses.items()) or "none"
            raise TrainingError(f"the losses are {weights}; give each a weight of at least 0, and one of them more")


# Losses of `Towers`, as scalars; excluded pairs have no influence on any of them.


def _maxsim(towers: Towers, settings: FineTuningSettings) -> Tensor:
    return ranking_loss(towers.mean_best_match(), towers.positives, towers.excluded, temperature=settings.temperature)


def _document(towers: Towers, settings: FineTuningSettings) -> Tensor:
    return ranking_loss(towers.cosines(), towers.positives, towers.excluded, temperature=settings.temperature)


def _bce(towers: Towers, _settings: FineTuningSettings) -> Tensor:
    """Over all pairs that count: the average of the means over positives and over negatives.

    SMITH is trained on equal numbers of both. A batch has eighty negatives for each positive,
    and a mean over all pairs is lowest when all vectors are pushed apart.
    """
    cosines, counted, cosine = towers.cosines(), ~towers.excluded, towers.scaled_cosine
    losses = [
        bce_of_cosine(cosines[pairs], towers.positives[pairs], cosine.scale, cosine.bias)
        for pairs in (towers.positives & counted, ~towers.positives & counted)
        if pairs.any()
    ]
    return torch.stack(losses).mean()


LOSSES: Mapping[Loss, Callable[[Towers, FineTuningSettings], Tensor]] = {
    Loss.MAXSIM: _maxsim,
    Loss.DOCUMENT: _document,
    Loss.BCE: _bce,
}


@dataclass(frozen=True)
class Source:
    """A corpus in training, with its selector of chunks and its miner of hard negatives."""

    corpus: TrainingCorpus
    selector: Selector
    miner: Miner | None = None


@dataclass(frozen=True, slots=True)
class FineTuningBatch:
    """The batch of one step."""

    source: int  # position in the task's sources
    pairs: PairBatch


class FineTuning:
    """Ranks the positive of each query above the other targets of a batch; a `Task`.

    A batch comes from one corpus, so its negatives are of the same field. Corpora are
    drawn in proportion to the square root of their number of pairs: a large corpus is
    drawn more often than a small one, but does not drown it.
    """

    def __init__(
        self, encoder: TrainableEncoder, sources: Sequence[Source], settings: FineTuningSettings, *, seed: int = 0
    ) -> None:
        """Prepare the corpora."""
        for source in sources:
            if len(source.corpus.pairs) < 2:
                raise TrainingError(
                    f"corpus {source.corpus.name} has {len(source.corpus.pairs)} queries with pairs, fine-tuning "
                    "needs at least 2; give it train_pairs.tsv, or pretrain on its documents alone"
                )
        self.encoder = encoder
        self.settings = settings
        self._sources = sources
        self._seed = seed
        self._segmented: dict[tuple[int, str], SegmentedDocument | None] = {}  # each at its first use
        self._query_ids = [list(source.corpus.pairs) for source in sources]
        sizes = np.sqrt([source.corpus.n_pairs for source in sources])
        self._shares = sizes / sizes.sum()
        self._scaled_cosine = ScaledCosine().to(next(encoder.module.parameters()).device)
        self.module: nn.Module = nn.ModuleDict({"encoder": encoder.module, "scaled_cosine": self._scaled_cosine})

    def batch(self, step: int) -> FineTuningBatch:
        """Draw queries of one corpus, a positive for each, and hard negatives.

        Documents without a token are left out.
        """
        rng = step_generator(self._seed, step)
        number = int(rng.choice(len(self._sources), p=self._shares))
        source = self._sources[number]
        return FineTuningBatch(number, source.selector(self._draw(number, rng), rng))

    def _draw(self, number: int, rng: np.random.Generator) -> PairBatch:
        corpus, miner = self._sources[number].corpus, self._sources[number].miner
        ids = self._query_ids[number]
        picked = rng.choice(len(ids), min(self.settings.queries, len(ids)), replace=False)
        # An index holds no document without a token, so a miner has no negatives of such a query.
        queries = self._readable(number, [ids[int(position)] for position in picked])
        target_ids: dict[str, None] = {}
        for query_id in queries:
            positives = corpus.pairs[query_id]
            place = int(rng.integers(len(positives)))
            target_ids[next(islice(positives, place, None))] = None
        for query_id in queries:
            for target in few(miner(query_id) if miner else (), self.settings.negatives, rng):
                target_ids[target] = None
        return self._paired(number, queries, self._readable(number, target_ids))

    def _readable(self, number: int, doc_ids: Iterable[str]) -> dict[str, SegmentedDocument]:
        """The documents that have a token, segmented, by their ids."""
        cut = {doc_id: self._segment(number, doc_id) for doc_id in doc_ids}
        readable = {doc_id: document for doc_id, document in cut.items() if document is not None}
        if not readable:
            raise TrainingError(
                f"a whole batch of corpus {self._sources[number].corpus.name} has no token that the encoder can read; "
                "name an encoder of its language, or take the documents without text out of its pairs"
            )
        return readable

    def _segment(self, number: int, doc_id: str) -> SegmentedDocument | None:
        key = number, doc_id
        if key not in self._segmented:
            self._segmented[key] = segmented(self.encoder, self._sources[number].corpus.documents[doc_id])
        return self._segmented[key]

    def _paired(
        self, number: int, queries: Mapping[str, SegmentedDocument], targets: Mapping[str, SegmentedDocument]
    ) -> PairBatch:
        corpus = self._sources[number].corpus
        positives = np.zeros((len(queries), len(targets)), np.bool_)
        excluded = np.zeros_like(positives)
        for row, query_id in enumerate(queries):
            for column, target_id in enumerate(targets):
                positives[row, column] = target_id in corpus.pairs[query_id]
                excluded[row, column] = not positives[row, column] and (
                    target_id == query_id or target_id in corpus.related.get(query_id, ())
                )
        return PairBatch(list(queries.values()), list(targets.values()), positives, excluded)

    def n_tokens(self, batch: FineTuningBatch) -> int:
        """As `Task.n_tokens`."""
        return tokens_read((*batch.pairs.queries, *batch.pairs.targets))

    def backward(self, batch: FineTuningBatch, backward: Backward) -> Mapping[str, float]:
        """As `Task.backward`; the parts are the losses by name, not weighted."""
        parts: dict[str, float] = {}

        def total(embedded: Embedded) -> Tensor:
            with full_precision(embedded.documents.device):
                towers = Towers.of(embedded, batch.pairs, self._scaled_cosine)
                whole = embedded.documents.new_zeros(())
                for name, weight in self.settings.losses.items():
                    if weight:
                        value = LOSSES[name](towers, self.settings)
                        parts[str(name)] = value.item()
                        whole = whole + weight * value
            return whole

        documents = [*batch.pairs.queries, *batch.pairs.targets]
        loss = backward_in_groups(self.encoder, documents, total, backward, self.settings.group_tokens)
        return {"loss": loss, **parts}


def few(items: Sequence[str], n: int, rng: np.random.Generator) -> list[str]:
    """At most n items, drawn without replacement."""
    return [items[int(position)] for position in rng.permutation(len(items))[:n]]
