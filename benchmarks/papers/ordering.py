"""How far our order of variants is the paper's. Pure functions of means and p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEVEL = 0.05  # below which a difference of ours counts as decided


@dataclass(frozen=True)
class Agreement:
    """How many of the paper's pairs we have in its order."""

    n_pairs: int  # that the paper puts in order, both of them measured here
    n_shared: int  # in the same order here
    n_reversed: int  # in the other; the rest are equal here
    n_decided: int  # of all pairs, those that differ here by more than chance
    n_decided_shared: int  # of these, the ones in the same order

    @property
    def tau(self) -> float | None:
        """Kendall's tau (1938) over the pairs that the paper orders, in [-1, 1]; None where there are none.

            tau = (n_shared - n_reversed) / n_pairs

        Where the paper orders all pairs it is tau-a of the two rankings; papers that say only which variant
        is the best order some.
        """
        return (self.n_shared - self.n_reversed) / self.n_pairs if self.n_pairs else None


def agreement(
    order: Sequence[tuple[str, str]], means: Mapping[str, float], p_values: Mapping[tuple[str, str], float]
) -> Agreement:
    """Hold our means against the paper's order.

    Args:
        order: pairs of variants, the better one first; those with a variant that has no mean are left out.
        means: of each variant that was measured, higher is better.
        p_values: of each of these pairs, adjusted for there being several.
    """
    known = [(better, worse) for better, worse in order if better in means and worse in means]
    shared = [pair for pair in known if means[pair[0]] > means[pair[1]]]
    turned = [pair for pair in known if means[pair[0]] < means[pair[1]]]
    decided = [pair for pair in known if p_values[pair] < LEVEL]
    return Agreement(
        n_pairs=len(known),
        n_shared=len(shared),
        n_reversed=len(turned),
        n_decided=len(decided),
        n_decided_shared=sum(pair in shared for pair in decided),
    )
