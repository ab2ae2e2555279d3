"""Fine-tuning on pairs of long documents, by losses over the vectors that search ranks by; see `pair_losses`.

Letters in shapes: B queries, T targets of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from engine.encoders.trainable import Embedded, TrainableEncoder
from engine.errors import DocumentError, TrainingError
from engine.training.corpus import SegmentedCorpus, TrainingCorpus
from engine.training.precision import full_precision
from engine.training.selection import PairBatch, Selector
from engine.training.task import Backward, step_generator, tokens_read
from engine.training.tasks.gradient_cache import GradientCache
from engine.training.tasks.mining import Miner
from engine.training.tasks.objectives import ScaledCosine
from engine.training.tasks.pair_losses import PairLosses
from engine.training.tasks.teacher import Teacher
from engine.training.tasks.towers import Towers


class Loss(StrEnum):
    """Losses over the pairs of a batch; several are summed by weight."""

    EVIDENCE = "evidence"  # ranking by the chunk and document components, thresholds taken in the batch
    MAXSIM = "maxsim"  # ranking by the weighted mean best match of the query's chunks
    DOCUMENT = "document"  # InfoNCE over document vectors
    SUPCON = "supcon"  # supervised contrastive over document vectors
    BCE = "bce"  # each pair of document vectors by itself, as in SMITH
    DISTILLATION = "distillation"  # the rankings of a teacher


DEFAULT_LOSSES: Mapping[Loss, float] = {Loss.MAXSIM: 1.0, Loss.DOCUMENT: 0.3}


@dataclass(frozen=True)
class FineTuningSettings:
    """Settings of batches and losses; the defaults were the best on valid of those tried."""

    losses: Mapping[Loss, float] = field(default_factory=lambda: DEFAULT_LOSSES)
    queries: int = 20  # of a batch, each with one positive
    negatives: int = 3  # hard ones for each query; those of other queries are its negatives too
    crowd: int = 5  # M of the thresholds taken in the batch
    evidence_temperature: float = 0.03
    softening: float = 0.03  # of the evidence, so that chunks under the threshold learn too
    temperature: float = 0.05  # of all losses over cosines
    group_tokens: int | None = None  # maximum tokens with a graph at a time; None keeps the whole graph

    def __post_init__(self) -> None:
        """Check the ranges.

        Raises:
            TrainingError: a number is out of its range, or nothing is minimised.
        """
        if self.queries < 2 or self.negatives < 0 or self.crowd < 1:
            raise TrainingError(
                f"a batch of {self.queries} queries, {self.negatives} negatives each and a crowd of {self.crowd} "
                "ranks nothing; take at least 2 queries, 0 negatives and a crowd of 1"
            )
        if not self.losses or min(self.losses.values()) < 0 or not sum(self.losses.values()) > 0:
            weights = ", ".join(f"{name} {weight:g}" for name, weight in self.losses.items()) or "none"
            raise TrainingError(f"the losses are {weights}; give each a weight of at least 0, and one of them more")
        if not (self.temperature > 0 and self.evidence_temperature > 0 and self.softening >= 0):
            raise TrainingError(
                f"temperatures {self.temperature} and {self.evidence_temperature} must be above 0, "
                f"softening {self.softening} at least 0"
            )
        if self.group_tokens is not None and self.group_tokens < 1:
            raise TrainingError(
                f"groups of {self.group_tokens} tokens hold nothing; allow 4096, or what fits in memory"
            )


@dataclass(frozen=True)
class Source:
    """A corpus in training, with its selector of chunks, its miner of hard negatives and its teacher."""

    corpus: TrainingCorpus
    selector: Selector
    miner: Miner | None = None
    teacher: Teacher | None = None


@dataclass(frozen=True, slots=True)
class FineTuningBatch:
    """The batch of one step."""

    source: int  # position in the task's sources
    pairs: PairBatch
    teacher_scores: Tensor | None  # (B, T)


class FineTuning:
    """Ranks the positive of each query above the other targets of a batch; a `Task`.

    A batch comes from one corpus, so its negatives are of the same field. Corpora are
    drawn in proportion to the square root of their number of pairs: a large corpus is
    drawn more often than a small one, but does not drown it.
    """

    def __init__(
        self, encoder: TrainableEncoder, sources: Sequence[Source], settings: FineTuningSettings, *, seed: int = 0
    ) -> None:
        """Prepare the corpora.

        Raises:
            TrainingError: a corpus has fewer than two queries with pairs, or a teacher is missing.
        """
        for source in sources:
            if len(source.corpus.pairs) < 2:
                raise TrainingError(
                    f"corpus {source.corpus.name} has {len(source.corpus.pairs)} queries with pairs, fine-tuning "
                    "needs at least 2; give it train_pairs.tsv, or pretrain on its documents alone"
                )
            if settings.losses.get(Loss.DISTILLATION) and source.teacher is None:
                raise TrainingError(f"distillation on corpus {source.corpus.name} needs a teacher; name its index")
        self.encoder = encoder
        self.settings = settings
        self._sources = sources
        self._seed = seed
        self._segmented = [SegmentedCorpus(source.corpus.documents, encoder) for source in sources]
        self._query_ids = [list(source.corpus.pairs) for source in sources]
        sizes = np.sqrt([source.corpus.n_pairs for source in sources])
        self._shares = sizes / sizes.sum()
        scaled_cosine = ScaledCosine().to(_device_of(encoder.module))
        self.module: nn.Module = nn.ModuleDict({"encoder": encoder.module, "scaled_cosine": scaled_cosine})
        losses = PairLosses(
            scaled_cosine,
            crowd=settings.crowd,
            evidence_temperature=settings.evidence_temperature,
            softening=settings.softening,
            temperature=settings.temperature,
        )
        self._losses: Mapping[Loss, Callable[[Towers], Tensor]] = {
            Loss.EVIDENCE: losses.evidence,
            Loss.MAXSIM: losses.maxsim,
            Loss.DOCUMENT: losses.document,
            Loss.SUPCON: losses.supcon,
            Loss.BCE: losses.bce,
            Loss.DISTILLATION: losses.distillation,
        }

    def batch(self, step: int) -> FineTuningBatch:
        """Draw queries of one corpus, a positive for each, and hard negatives.

        Documents without a token are left out.

        Raises:
            TrainingError: none of the queries, or of the targets, has a token.
        """
        rng = step_generator(self._seed, step)
        number = int(rng.choice(len(self._sources), p=self._shares))
        source = self._sources[number]
        whole = self._draw(number, rng)
        teacher_scores = source.teacher.scores(whole) if source.teacher is not None else None
        return FineTuningBatch(number, source.selector.select(whole, rng), teacher_scores)

    def _draw(self, number: int, rng: np.random.Generator) -> PairBatch:
        corpus, miner = self._sources[number].corpus, self._sources[number].miner
        ids = self._query_ids[number]
        picked = rng.choice(len(ids), min(self.settings.queries, len(ids)), replace=False)
        # An index holds no document without a token, so a miner has no negatives of such a query.
        query_ids = self._readable(number, [ids[int(position)] for position in picked])
        target_ids: dict[str, None] = {}
        for query_id in query_ids:
            positives = corpus.pairs[query_id]
            place = int(rng.integers(len(positives)))
            target_ids[next(islice(positives, place, None))] = None
        for query_id in query_ids:
            for target in _few(miner.negatives(query_id) if miner else (), self.settings.negatives, rng):
                target_ids[target] = None
        return self._paired(number, query_ids, self._readable(number, target_ids))

    def _readable(self, number: int, doc_ids: Iterable[str]) -> list[str]:
        found = [doc_id for doc_id in doc_ids if _is_readable(self._segmented[number], doc_id)]
        if not found:
            raise TrainingError(
                f"a whole batch of corpus {self._sources[number].corpus.name} has no token that the encoder can read; "
                "name an encoder of its language, or take the documents without text out of its pairs"
            )
        return found

    def _paired(self, number: int, query_ids: Sequence[str], target_ids: Sequence[str]) -> PairBatch:
        corpus, segmented = self._sources[number].corpus, self._segmented[number]
        positives = np.zeros((len(query_ids), len(target_ids)), np.bool_)
        excluded = np.zeros_like(positives)
        for row, query_id in enumerate(query_ids):
            for column, target_id in enumerate(target_ids):
                positives[row, column] = target_id in corpus.pairs[query_id]
                excluded[row, column] = not positives[row, column] and (
                    target_id == query_id or target_id in corpus.related.get(query_id, ())
                )
        return PairBatch(
            [segmented[one] for one in query_ids], [segmented[one] for one in target_ids], positives, excluded
        )

    def n_tokens(self, batch: FineTuningBatch) -> int:
        """As `Task.n_tokens`."""
        return tokens_read((*batch.pairs.queries, *batch.pairs.targets))

    def backward(self, batch: FineTuningBatch, backward: Backward) -> Mapping[str, float]:
        """As `Task.backward`; the parts are the losses by name, not weighted."""
        parts: dict[str, float] = {}

        def total(embedded: Embedded) -> Tensor:
            with full_precision(embedded.documents.device):
                towers = Towers.of(embedded, batch.pairs, batch.teacher_scores)
                whole = embedded.documents.new_zeros(())
                for name, weight in self.settings.losses.items():
                    if weight:
                        value = self._losses[name](towers)
                        parts[str(name)] = value.item()
                        whole = whole + weight * value
            return whole

        documents = [*batch.pairs.queries, *batch.pairs.targets]
        if self.settings.group_tokens is None:
            loss = total(self.encoder.embed(documents))
            backward(loss)
        else:
            cache = GradientCache(self.encoder, group_tokens=self.settings.group_tokens)
            loss = cache.backward(documents, total, backward)
        return {"loss": loss.item(), **parts}


def _few(found: Sequence[str], n: int, rng: np.random.Generator) -> list[str]:
    return [found[int(position)] for position in rng.permutation(len(found))[:n]]


def _is_readable(segmented: SegmentedCorpus, doc_id: str) -> bool:
    try:
        return bool(segmented[doc_id].chunks)
    except DocumentError:
        return False


def _device_of(module: nn.Module) -> torch.device:
    return next(module.parameters()).device
