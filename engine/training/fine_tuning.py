"""Fine-tuning on pairs of long documents: what search ranks by is what is learned.

Letters in shapes: B queries, T targets of the batch, I and J their chunks, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.encoders.trainable import Embedded, TrainableEncoder
from engine.errors import DocumentError, TrainingError
from engine.scoring.evidence import Scoring
from engine.training.corpus import SegmentedCorpus, TrainingCorpus
from engine.training.evidence import best_matches, chunk_weights, crowd_thresholds, evidence_scores
from engine.training.gradient_cache import GradientCache
from engine.training.mining import Miner
from engine.training.objectives import (
    ScaledCosine,
    bce_of_cosine,
    distillation,
    ranking_loss,
    supervised_contrastive,
)
from engine.training.selection import PairBatch, Selector
from engine.training.task import Backward, step_generator
from engine.training.teacher import Teacher


class Loss(StrEnum):
    """What can be minimised over the pairs of a batch; several add up by weight."""

    EVIDENCE = "evidence"  # ranking by the score of search, thresholds taken in the batch
    MAXSIM = "maxsim"  # ranking by the mean best match of the query's chunks
    DOCUMENT = "document"  # InfoNCE over document vectors
    SUPCON = "supcon"  # supervised contrastive over document vectors
    BCE = "bce"  # each pair of document vectors by itself, as SMITH
    DISTILLATION = "distillation"  # the rankings of a teacher


DEFAULT_LOSSES: Mapping[Loss, float] = {Loss.EVIDENCE: 1.0, Loss.MAXSIM: 0.3, Loss.DOCUMENT: 0.3}


@dataclass(frozen=True)
class FineTuningSettings:
    """How a batch is drawn and what is minimised; the defaults are those of the bundled encoder."""

    losses: Mapping[Loss, float] = field(default_factory=lambda: DEFAULT_LOSSES)
    queries: int = 20  # of a batch, each with one positive
    negatives: int = 3  # hard ones for each query; those of the others are its negatives too
    crowd: int = 5  # M of the thresholds taken in the batch
    evidence_temperature: float = 0.03
    softening: float = 0.03  # of the evidence, so that chunks under the threshold learn too
    temperature: float = 0.05  # of all losses over cosines
    group_tokens: int | None = None  # most tokens with a graph at a time; None keeps the whole graph

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
            raise TrainingError(f"the losses {dict(self.losses)} weigh nothing; give one of them a weight above 0")
        if not (self.temperature > 0 and self.evidence_temperature > 0 and self.softening >= 0):
            raise TrainingError(
                f"temperatures {self.temperature} and {self.evidence_temperature} must be above 0, "
                f"softening {self.softening} at least 0"
            )


@dataclass(frozen=True)
class Source:
    """A corpus in training: its pairs, who names its hard negatives, and who chooses its chunks."""

    corpus: TrainingCorpus
    selector: Selector
    miner: Miner | None = None
    teacher: Teacher | None = None


@dataclass(frozen=True, slots=True)
class FineTuningBatch:
    """What one step learns from."""

    source: int  # position in the task's sources
    pairs: PairBatch
    teacher_scores: Tensor | None  # (B, T)


class FineTuning:
    """Ranks the positive of each query above the other targets of a batch; a `Task`.

    A batch comes from one corpus, so that its negatives are of the same field. Corpora
    are drawn by the square root of their number of pairs: a large one neither
    drowns the others nor is held back to their size.
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
        self._scaled = ScaledCosine().to(_device_of(encoder.module))
        self._scoring = Scoring()
        self.module: nn.Module = nn.ModuleDict({"encoder": encoder.module, "scaled_cosine": self._scaled})
        self._losses: Mapping[Loss, Callable[[_Towers], Tensor]] = {
            Loss.EVIDENCE: self._evidence,
            Loss.MAXSIM: self._maxsim,
            Loss.DOCUMENT: self._document,
            Loss.SUPCON: self._supcon,
            Loss.BCE: self._bce,
            Loss.DISTILLATION: self._distillation,
        }

    def batch(self, step: int) -> FineTuningBatch:
        """Draw queries of one corpus, a positive for each, and hard negatives."""
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
        query_ids = [ids[int(position)] for position in picked]
        target_ids: dict[str, None] = {}
        for query_id in query_ids:
            positives = [target for target in corpus.pairs[query_id] if target != query_id]
            target_ids[positives[int(rng.integers(len(positives)))]] = None
        for query_id in query_ids:
            for target in _few(miner.negatives(query_id) if miner else (), self.settings.negatives, rng):
                target_ids[target] = None
        return self._paired(number, query_ids, list(target_ids))

    def _paired(self, number: int, query_ids: Sequence[str], target_ids: Sequence[str]) -> PairBatch:
        corpus, segmented = self._sources[number].corpus, self._segmented[number]
        query_ids = [query_id for query_id in query_ids if _is_readable(segmented, query_id)]
        target_ids = [target_id for target_id in target_ids if _is_readable(segmented, target_id)]
        positives = np.zeros((len(query_ids), len(target_ids)), np.bool_)
        excluded = np.zeros_like(positives)
        for row, query_id in enumerate(query_ids):
            for column, target_id in enumerate(target_ids):
                is_pair = target_id in corpus.pairs[query_id] and target_id != query_id
                positives[row, column] = is_pair
                excluded[row, column] = not is_pair and (
                    target_id == query_id or target_id in corpus.related.get(query_id, ())
                )
        return PairBatch(
            [segmented[one] for one in query_ids], [segmented[one] for one in target_ids], positives, excluded
        )

    def n_tokens(self, batch: FineTuningBatch) -> int:
        """As `Task.n_tokens`."""
        documents = (*batch.pairs.queries, *batch.pairs.targets)
        return sum(document.coverage.tokens_read for document in documents)

    def backward(self, batch: FineTuningBatch, backward: Backward) -> Mapping[str, float]:
        """As `Task.backward`; the parts are the losses by name, not weighted."""
        parts: dict[str, float] = {}

        def total(embedded: Embedded) -> Tensor:
            # Evidence is a difference of cosines: the three digits of bfloat16 would drown it.
            with torch.autocast(embedded.documents.device.type, enabled=False):
                towers = _towers(embedded, batch)
                whole = embedded.documents.new_zeros(())
                for name, weight in self.settings.losses.items():
                    if weight:
                        value = self._losses[name](towers)
                        parts[str(name)] = float(value.detach())
                        whole = whole + weight * value
            return whole

        documents = [*batch.pairs.queries, *batch.pairs.targets]
        if self.settings.group_tokens is None:
            loss = total(self.encoder.embed(documents))
            backward(loss)
        else:
            cache = GradientCache(self.encoder, group_tokens=self.settings.group_tokens)
            loss = cache.backward(documents, total, backward)
        return {"loss": float(loss.detach()), **parts}

    def _evidence(self, towers: _Towers) -> Tensor:
        scores = self._evidence_scores(towers)
        return ranking_loss(scores, towers.positives, towers.excluded, temperature=self.settings.evidence_temperature)

    def _evidence_scores(self, towers: _Towers) -> Tensor:
        """(B, T) the score of search, softened, the batch standing in for the corpus."""
        similarities = towers.best_matches()
        left_out = towers.positives | towers.excluded
        cosines = towers.cosines()
        return evidence_scores(
            similarities,
            cosines,
            towers.weights,
            crowd_thresholds(similarities, left_out, self.settings.crowd),
            crowd_thresholds(cosines[:, None], left_out, self.settings.crowd).squeeze(1),
            self._scoring,
            softening=self.settings.softening,
        )

    def _maxsim(self, towers: _Towers) -> Tensor:
        return ranking_loss(
            towers.mean_best_match(), towers.positives, towers.excluded, temperature=self.settings.temperature
        )

    def _document(self, towers: _Towers) -> Tensor:
        return ranking_loss(towers.cosines(), towers.positives, towers.excluded, temperature=self.settings.temperature)

    def _supcon(self, towers: _Towers) -> Tensor:
        vectors = torch.cat([towers.query_documents, towers.target_documents])
        n = len(towers.query_documents)
        positives = torch.zeros(len(vectors), len(vectors), dtype=torch.bool, device=vectors.device)
        positives[:n, n:] = towers.positives
        ignored = torch.zeros_like(positives)
        ignored[:n, n:] = towers.excluded
        return supervised_contrastive(
            vectors, positives | positives.T, temperature=self.settings.temperature, ignored=ignored | ignored.T
        )

    def _bce(self, towers: _Towers) -> Tensor:
        counted = ~towers.excluded
        return bce_of_cosine(
            towers.cosines()[counted], towers.positives[counted], self._scaled.scale, self._scaled.bias
        )

    def _distillation(self, towers: _Towers) -> Tensor:
        assert towers.teacher_scores is not None
        return distillation(
            towers.mean_best_match() / self.settings.temperature,
            towers.teacher_scores / self.settings.temperature,
            towers.excluded,
        )


def _few(found: Sequence[str], n: int, rng: np.random.Generator) -> list[str]:
    return [found[int(position)] for position in rng.permutation(len(found))[:n]]


def _is_readable(segmented: SegmentedCorpus, doc_id: str) -> bool:
    try:
        return bool(segmented[doc_id].chunks)
    except DocumentError:
        return False


def _device_of(module: nn.Module) -> torch.device:
    return next(module.parameters()).device


@dataclass(frozen=True)
class _Towers:
    """Both sides of a batch, and their relations as tensors."""

    query_documents: Tensor  # (B, D)
    target_documents: Tensor  # (T, D)
    query_chunks: Tensor  # (B, I, D)
    target_chunks: Tensor  # (T, J, D)
    target_mask: Tensor  # (T, J)
    weights: Tensor  # (B, I), 0 where padded
    positives: Tensor  # (B, T)
    excluded: Tensor  # (B, T)
    teacher_scores: Tensor | None  # (B, T)

    def best_matches(self) -> Tensor:
        """(B, I, T)."""
        return best_matches(self.query_chunks, self.target_chunks, self.target_mask)

    def mean_best_match(self) -> Tensor:
        """(B, T) in [-1, 1]: best matches of the query's chunks, by their weights."""
        shares = self.weights / self.weights.sum(1, keepdim=True)
        return (shares[:, None] @ self.best_matches()).squeeze(1)

    def cosines(self) -> Tensor:
        """(B, T) of the document vectors."""
        return self.query_documents @ self.target_documents.T


def _towers(embedded: Embedded, batch: FineTuningBatch) -> _Towers:
    pairs, n = batch.pairs, len(batch.pairs.queries)
    device = embedded.documents.device
    weights = chunk_weights(pairs.queries).to(device)
    teacher = batch.teacher_scores
    return _Towers(
        query_documents=normalize(embedded.documents[:n], dim=-1),
        target_documents=normalize(embedded.documents[n:], dim=-1),
        query_chunks=embedded.chunks[:n, : weights.shape[1]],
        target_chunks=embedded.chunks[n:],
        target_mask=embedded.mask[n:],
        weights=weights,
        positives=torch.from_numpy(pairs.positives).to(device),
        excluded=torch.from_numpy(pairs.excluded).to(device),
        teacher_scores=None if teacher is None else teacher.to(device),
    )
