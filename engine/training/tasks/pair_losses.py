"""The losses that fine-tuning sums, each over both sides of a batch. Draws and encodes nothing.

Letters in shapes: B queries, T targets, N both together.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.training.tasks.evidence import batch_thresholds, evidence_scores
from engine.training.tasks.objectives import (
    ScaledCosine,
    bce_of_cosine,
    distillation,
    ranking_loss,
    supervised_contrastive,
)
from engine.training.tasks.towers import Towers


class PairLosses:
    """Losses of `Towers`, as scalars; excluded pairs have no influence on any of them."""

    def __init__(
        self,
        scaled_cosine: ScaledCosine,
        *,
        crowd: int,
        evidence_temperature: float,
        softening: float,
        temperature: float,
    ) -> None:
        """Set the constants.

        Args:
            scaled_cosine: of `bce`, learned with the encoder.
            crowd: M of the thresholds taken in the batch.
            evidence_temperature: of `evidence`.
            softening: of the evidence, see `engine.training.tasks.evidence.margin`.
            temperature: of all losses over cosines.
        """
        self._scaled_cosine = scaled_cosine
        self._crowd = crowd
        self._evidence_temperature = evidence_temperature
        self._softening = softening
        self._temperature = temperature

    def evidence(self, towers: Towers) -> Tensor:
        """`ranking_loss` over `evidence_scores`."""
        return ranking_loss(
            self.evidence_scores(towers), towers.positives, towers.excluded, temperature=self._evidence_temperature
        )

    def evidence_scores(self, towers: Towers) -> Tensor:
        """(B, T) in [0, 1], the chunk and document components of the score, softened, with thresholds of the batch."""
        similarities = towers.best_matches
        left_out = towers.positives | towers.excluded
        cosines = towers.cosines()
        return evidence_scores(
            similarities,
            cosines,
            towers.weights,
            batch_thresholds(similarities, left_out, self._crowd),
            batch_thresholds(cosines[:, None], left_out, self._crowd).squeeze(1),
            softening=self._softening,
        )

    def maxsim(self, towers: Towers) -> Tensor:
        """`ranking_loss` over the weighted mean best match of the query's chunks."""
        return ranking_loss(towers.mean_best_match(), towers.positives, towers.excluded, temperature=self._temperature)

    def document(self, towers: Towers) -> Tensor:
        """`ranking_loss` over the cosines of document vectors."""
        return ranking_loss(towers.cosines(), towers.positives, towers.excluded, temperature=self._temperature)

    def supcon(self, towers: Towers) -> Tensor:
        """`supervised_contrastive` over the document vectors of both sides.

        Two queries of one target, or two targets of one query, may belong together: such
        pairs are left out, as are excluded pairs.
        """
        positives, ignored = _among_all(towers.positives, towers.excluded)
        return supervised_contrastive(
            torch.cat([towers.query_documents, towers.target_documents]),
            positives,
            temperature=self._temperature,
            ignored=ignored,
        )

    def bce(self, towers: Towers) -> Tensor:
        """`bce_of_cosine` over all pairs that count: the average of the means over positives and over negatives.

        SMITH is trained on equal numbers of both. A batch has eighty negatives for each positive,
        and a mean over all pairs is lowest when all vectors are pushed apart.
        """
        cosines, counted = towers.cosines(), ~towers.excluded
        kinds = [pairs & counted for pairs in (towers.positives, ~towers.positives)]
        losses = [
            bce_of_cosine(cosines[pairs], towers.positives[pairs], self._scaled_cosine.scale, self._scaled_cosine.bias)
            for pairs in kinds
            if pairs.any()
        ]
        return torch.stack(losses).mean()

    def distillation(self, towers: Towers) -> Tensor:
        """`distillation` of a teacher's scores into the weighted mean best match."""
        assert towers.teacher_scores is not None
        return distillation(
            towers.mean_best_match() / self._temperature,
            towers.teacher_scores / self._temperature,
            towers.excluded,
        )


def _among_all(positives: Tensor, excluded: Tensor) -> tuple[Tensor, Tensor]:
    """From (B, T) to (N, N): the pairs of a batch that belong together, and the pairs that are ignored."""
    n_queries, n_targets = positives.shape
    related = (positives | excluded).float()
    joined = torch.zeros(n_queries + n_targets, n_queries + n_targets, dtype=torch.bool, device=positives.device)
    joined[:n_queries, n_queries:] = positives
    ignored = torch.zeros_like(joined)
    ignored[:n_queries, n_queries:] = excluded
    joined, ignored = joined | joined.T, ignored | ignored.T
    ignored[:n_queries, :n_queries] = related @ related.T > 0
    ignored[n_queries:, n_queries:] = related.T @ related > 0
    return joined, ignored
