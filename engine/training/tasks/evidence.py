"""The chunk and document components of `engine.scoring.evidence` with gradients, for training on the score of search.

Words, pairs and the root r are left out.

Letters in shapes: Q queries, T targets, I query chunks (padded), J target chunks
(padded), D width.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import softplus

from engine.encoders.encoder import SegmentedDocument
from engine.scoring.evidence import ROUNDING

DOCUMENT_WEIGHT = 0.08


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


def batch_thresholds(similarities: Tensor, left_out: Tensor | None, crowd: int) -> Tensor:
    """theta_i: similarity of the (M+1)-th best target of the batch; compare `evidence.reference_threshold`.

    The batch takes the place of the reference, so M has to be smaller in proportion.

    theta keeps its gradient. A margin (s - theta) / (1 - theta) does not change when all
    similarities move towards 1 by the same share. With theta detached the margin seems to
    grow, and training on it draws all vectors together: the mean nDCG@10 of four corpora
    fell from 0.505 to 0.447 in 70 steps.

    Args:
        similarities: (Q, I, T).
        left_out: (Q, T) bool, True where a target does not count: the positives of a
            query, the query itself, and other targets that it should find.
        crowd: M, at least 1.

    Returns:
        (Q, I) in [0, 1]; 0 where M targets or fewer are left.
    """
    if similarities.shape[-1] <= crowd:
        return similarities.new_zeros(similarities.shape[:-1])
    if left_out is not None:
        similarities = similarities.masked_fill(left_out[:, None], float("-inf"))
    theta = similarities.topk(crowd + 1, dim=-1).values[..., -1]
    return theta.clamp(0, 1)  # -inf becomes 0


def margin(similarities: Tensor, theta: Tensor, power: float, softening: float = 0.0) -> Tensor:
    """Margin of a similarity above its threshold, as `evidence.margin`, or softened.

    With a softening of tau, max(0, x) becomes tau log(1 + exp(x / tau)), and the divisor
    1 - theta is softened in the same way. The value stays in [0, 1] and is 1 at similarity 1,
    and similarities below the threshold still have a gradient.

    Args:
        similarities: any shape, -inf where nothing can be found.
        theta: in [0, 1], of a shape that broadcasts.
        power: p, above 0; at least 1 with a softening.
        softening: tau; 0 is the score of search.
    """
    above = similarities.clamp(max=1.0) - theta
    room = (1.0 - theta).clamp(min=1e-9)
    if softening > 0:
        sharpness = 1 / softening
        return (softplus(above, sharpness) / softplus(room, sharpness)) ** power
    is_above = above > ROUNDING
    # A power under 1 has no finite gradient at 0.
    return torch.where(is_above, (torch.where(is_above, above, 1.0) / room) ** power, 0.0)


def evidence_scores(
    similarities: Tensor,
    document_similarities: Tensor,
    weights: Tensor,
    theta: Tensor,
    theta_document: Tensor,
    *,
    power: float = 2.0,
    document_weight: float = DOCUMENT_WEIGHT,
    softening: float = 0.0,
) -> Tensor:
    """Score every target for every query, with gradients to the similarities.

    Without softening and document weight it equals `evidence.chunk_component` row by row. The
    document vectors get a small weight, so that they learn beside the chunks.

    Args:
        similarities: (Q, I, T), from `best_matches`.
        document_similarities: (Q, T) cosines of the whole documents.
        weights: (Q, I), from `chunk_weights`; 0 where a query chunk is padding.
        theta: (Q, I) in [0, 1], of the corpus or from `batch_thresholds`.
        theta_document: (Q,) in [0, 1], of the document vectors.
        power: p.
        document_weight: of the document vectors, in [0, 1].
        softening: see `margin`; about a tenth of 1 - theta at the start of training.

    Returns:
        (Q, T) in [0, 1].
    """
    room = weights * (1.0 - theta) ** power
    shares = room / room.sum(dim=1, keepdim=True).clamp(min=torch.finfo(room.dtype).tiny)  # (Q, I)
    margins = margin(similarities, theta[:, :, None], power, softening)  # (Q, I, T)
    chunks = (shares[:, None] @ margins).squeeze(1)
    whole = margin(document_similarities, theta_document[:, None], power, softening)
    return (1 - document_weight) * chunks + document_weight * whole
