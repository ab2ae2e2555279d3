"""Losses over vectors, cosines and scores of a batch. Pure tensor functions, and the one layer that scales a cosine.

Letters in shapes: B queries, T targets, N vectors of both kinds, I chunks of a query (padded), J of a target (padded),
D width.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, logsigmoid

from engine.encoders.encoder import SegmentedDocument

SMITH_SCALE = 6.0


def info_nce(
    queries: Tensor,
    targets: Tensor,
    positives: Tensor,
    *,
    temperature: float,
    excluded: Tensor | None = None,
) -> Tensor:
    """Rank the positive of each query above all other targets of the batch.

    InfoNCE of van den Oord et al. (2018, arXiv:1807.03748) with the similarity of SimCSE
    (Gao et al. 2021, arXiv:2104.08821, eq. 1):

        L = -mean_i log( exp(<q_i, t_p(i)> / tau) / sum_j exp(<q_i, t_j> / tau) )

    Args:
        queries: (B, D), unit rows for cosines.
        targets: (T, D), unit rows for cosines.
        positives: (B,) int64, p(i), the row of `targets` that belongs to query i.
        temperature: tau, above 0.
        excluded: (B, T) bool, True where a target is not a negative; a positive counts even if excluded.

    Returns:
        The mean over queries, at least 0.
    """
    logits = queries @ targets.mT / temperature  # (B, T)
    is_positive = torch.zeros_like(logits, dtype=torch.bool).scatter_(1, positives[:, None], True)
    if excluded is not None:
        logits = logits.masked_fill(excluded & ~is_positive, float("-inf"))
    return cross_entropy(logits, positives)


def supervised_contrastive(
    vectors: Tensor, positives: Tensor, *, temperature: float, ignored: Tensor | None = None
) -> Tensor:
    """Draw together all vectors of a batch that belong together.

    The "out" form, eq. 2 of Khosla et al. (2020, arXiv:2004.11362), without its factor of
    temperatures:

        L = mean_i -1/|P(i)| sum_{j in P(i)} log( exp(<z_i, z_j> / tau) / sum_{k != i} exp(<z_i, z_k> / tau) )

    where the mean runs over the anchors that have positives.

    Args:
        vectors: (N, D), unit rows.
        positives: (N, N) bool, True where j is in P(i); the diagonal never counts.
        temperature: tau, above 0.
        ignored: (N, N) bool, True where a pair is neither positive nor negative.

    Returns:
        The loss; 0 where no anchor has a positive.
    """
    counted = ~torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    if ignored is not None:
        counted &= ~ignored
    positives = positives & counted
    anchors = positives.any(dim=1)
    if not anchors.any():
        return vectors.sum() * 0.0
    positives, counted = positives[anchors], counted[anchors]
    logits = vectors[anchors] @ vectors.mT / temperature  # (anchors, N)
    denominator = logits.masked_fill(~counted, float("-inf")).logsumexp(dim=1, keepdim=True)
    log_share = (logits - denominator).masked_fill(~positives, 0.0)
    return -(log_share.sum(dim=1) / positives.sum(dim=1)).mean()


class ScaledCosine(nn.Module):
    """The logit a * cos + b of a pair.

    SMITH (Yang et al. 2020, arXiv:2004.12297) fixes a = 6 and b = 0 in its code. Here both
    start at these values and are learned, with a = 1 + 49 sigmoid(x), which stays inside (1, 50).
    """

    LOWEST, HIGHEST = 1.0, 50.0

    def __init__(self) -> None:
        super().__init__()
        share = (SMITH_SCALE - self.LOWEST) / (self.HIGHEST - self.LOWEST)
        self.raw_scale = nn.Parameter(torch.tensor(share).logit())
        self.bias = nn.Parameter(torch.tensor(0.0))

    @property
    def scale(self) -> Tensor:
        """The scale a, a scalar in (1, 50); 6 before training."""
        return self.LOWEST + (self.HIGHEST - self.LOWEST) * self.raw_scale.sigmoid()

    def forward(self, cosine: Tensor) -> Tensor:
        """Logits, in the shape of `cosine`."""
        return self.scale * cosine + self.bias


def bce_of_cosine(cosine: Tensor, labels: Tensor, scale: Tensor | float, bias: Tensor | float) -> Tensor:
    """Binary cross-entropy of P(match) = sigmoid(scale * cosine + bias).

    The fine-tuning loss of SMITH (arXiv:2004.12297, section 4.3), as its code computes it.

    Args:
        cosine: (B,) in [-1, 1].
        labels: (B,) bool or 0 and 1; 1 is a match.
    """
    return binary_cross_entropy_with_logits(scale * cosine + bias, labels.to(cosine.dtype))


def ranking_loss(
    scores: Tensor, positives: Tensor, excluded: Tensor | None = None, *, temperature: float = 1.0
) -> Tensor:
    """Rank every positive above all negatives of its query.

        L = mean over positives of -log( exp(s+ / tau) / (exp(s+ / tau) + sum_- exp(s- / tau)) )

    Unlike in `supervised_contrastive`, the other positives of a query are not in the
    denominator, so they do not push each other down.

    Args:
        scores: (B, T), higher is closer.
        positives: (B, T) bool; any number of them in a row.
        excluded: (B, T) bool, True where a pair is neither positive nor negative.
        temperature: tau, above 0.

    Returns:
        The mean over all positive pairs of the batch; 0 where there is none.
    """
    excluded = torch.zeros_like(positives) if excluded is None else excluded
    positives = positives & ~excluded
    if not positives.any():
        return scores.sum() * 0.0
    logits = scores / temperature
    negatives = logits.masked_fill(positives | excluded, float("-inf")).logsumexp(dim=1, keepdim=True)
    return -logsigmoid(logits - negatives)[positives].mean()


def contrastive_tension(one: Tensor, other: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy of raw dot products between the vectors of two encoders.

    Carlsson et al. (2021), "Semantic Re-tuning with Contrastive Tension": no
    temperature and no unit length, so norms count. The loss is the mean over pairs;
    sentence-transformers sums over them.

    Args:
        one: (N, D), raw vectors of the first encoder.
        other: (N, D), raw vectors of the second encoder.
        labels: (N,) bool or 0 and 1; 1 where both encoders read the same text.
    """
    return binary_cross_entropy_with_logits((one * other).sum(dim=1), labels.to(one.dtype))


def chunk_weights(documents: Sequence[SegmentedDocument]) -> Tensor:
    """(Q, I) float32 on the CPU: w_i, the square root of the chunk's tokens; 0 where padded."""
    rows = [torch.tensor([max(chunk.n_tokens, 1) for chunk in document.chunks]) for document in documents]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).float().sqrt()


def best_matches(queries: Tensor, targets: Tensor, target_mask: Tensor) -> Tensor:
    """Best chunk of each target: s_i(t) = max_j <q_i, t_j>.

    The only large array is the product, Q I T J floats. It is computed once in the forward
    and once in the backward pass, and not kept in between.

    Args:
        queries: (Q, I, D) unit rows, zero where padded.
        targets: (T, J, D) unit rows.
        target_mask: (T, J) bool, True where a chunk is real; each target has at least one.

    Returns:
        (Q, I, T) in [-1, 1].
    """
    padding = torch.zeros(target_mask.shape, dtype=targets.dtype, device=targets.device)
    padding.masked_fill_(~target_mask, float("-inf"))
    products = queries.flatten(0, 1) @ targets.flatten(0, 1).mT  # (Q * I, T * J)
    products += padding.flatten()
    # `max` keeps positions for its gradient, where `amax` would keep the products.
    best = products.view(len(products), *target_mask.shape).max(dim=-1).values  # (Q * I, T)
    return best.view(*queries.shape[:2], len(targets))
