"""How valid pairs choose the weights and the end of training, the same for every scorer that learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from benchmarks.pairs.judging import accuracy_threshold, is_correct
from benchmarks.pairs.scorer import Course, Pair
from engine.errors import TrainingError


@dataclass(frozen=True, slots=True)
class Selection:
    """When valid pairs are looked at, and how many of them.

    Raises:
        TrainingError: a number is below 1.
    """

    pairs: int = 200  # at most, half of them matches; the same ones at each look
    looks: int = 10  # in a whole budget of steps, evenly spread, beside the one before the first step
    patience: int = 5  # looks without a better accuracy before training ends early

    def __post_init__(self) -> None:
        """Check the ranges."""
        if min(self.pairs // 2, self.looks, self.patience) < 1:
            raise TrainingError(
                f"{self.pairs} pairs, {self.looks} looks and a patience of {self.patience} choose nothing; "
                "take at least 2 pairs, and 1 of the others"
            )

    def steps_between(self, steps: int) -> int:
        """Updates between two looks, of at most `steps`."""
        return max(1, steps // self.looks)


def sample_valid(valid: Sequence[Pair], n_pairs: int, seed: int) -> list[Pair]:
    """At most `n_pairs` pairs at random, as many of either kind where there are so many, in their order."""
    rng = np.random.default_rng(seed)
    chosen: list[int] = []
    for kind in (True, False):
        own = [at for at, pair in enumerate(valid) if pair.is_match is kind]
        chosen += [own[int(at)] for at in rng.permutation(len(own))[: n_pairs // 2]]
    return [valid[at] for at in sorted(chosen)]


def best_accuracy(scores: ArrayLike, pairs: Sequence[Pair]) -> float:
    """The share of pairs that the best threshold on their scores gets right, in [.5, 1] where they are balanced.

    Args:
        scores: (N,), higher is closer.
        pairs: N of them, of both kinds.

    Raises:
        TrainingError: a score is no number any more.
    """
    given = np.asarray(scores, np.float64)
    if not np.all(np.isfinite(given)):
        raise TrainingError(
            f"{np.count_nonzero(~np.isfinite(given))} of {given.size} valid pairs have a score that is no finite "
            "number; lower the learning rate"
        )
    labels = [pair.is_match for pair in pairs]
    return float(np.mean(is_correct(given, labels, accuracy_threshold(given, labels))))


class BestWeights:
    """Looks at the weights of a module now and then, and remembers those that were the best on valid."""

    def __init__(
        self, module: nn.Module, validate: Callable[[], float] | None, selection: Selection, steps: int
    ) -> None:
        """Look at nothing yet.

        Args:
            module: whose weights are remembered.
            validate: how good they are now; higher is better. None keeps the last ones.
            selection: when to look.
            steps: of the whole budget.
        """
        self._module = module
        self._validate = validate
        self._patience = selection.patience
        self._every = selection.steps_between(steps)
        self._best: dict[str, Tensor] = {}
        self._best_step, self._best_value = 0, float("-inf")
        self._looked_at = -1
        self._n_worse = 0

    @property
    def is_exhausted(self) -> bool:
        """Whether patience is at its end."""
        return self._n_worse >= self._patience

    def watch(self, step: int) -> None:
        """Look, where it is time to; `step` updates have been made."""
        if step % self._every == 0:
            self._look(step)

    def take(self, n_steps: int) -> Course:
        """Look at the last weights too, and give the module the best of all; `n_steps` updates were made."""
        self._look(n_steps)
        if self._validate is None:
            return Course(n_steps, n_steps, None)
        self._module.load_state_dict(self._best)
        return Course(n_steps, self._best_step, self._best_value)

    def _look(self, step: int) -> None:
        if self._validate is None or step == self._looked_at:
            return
        self._looked_at = step
        value = self._validate()
        if value > self._best_value:
            self._best_step, self._best_value, self._n_worse = step, value, 0
            self._best = {name: weight.detach().clone() for name, weight in self._module.state_dict().items()}
        else:
            self._n_worse += 1
