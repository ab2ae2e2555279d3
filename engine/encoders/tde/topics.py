"""Topics of texts by an embedded topic model: word counts in, shares of topics out. It does not read word order.

The model is ETM (Dieng, Ruiz & Blei 2020, TACL 8, arXiv:1907.04907): a topic is
a point in the space of word embeddings, and its words are those near it.

Letters in shapes: N texts, V words of the vocabulary, K topics, W width of an
embedding, E pairs of a text and a word that occurs in it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from torch import Tensor, nn

from engine.encoders.files import read_json
from engine.errors import EncoderError

_WORD = re.compile(r"[^\W\d_]{2,}")
_STOP_WORDS = frozenset(
    "about above after again against all almost along also although always among an and another any are aren as at "
    "be became because become been before being below between both but by can cannot could couldn did didn do does "
    "doesn doing don done down during each either else et etc even ever every few first for from further had hadn has "
    "hasn have haven having he hence her here hers herself him himself his how however if in indeed instead into is "
    "isn it its itself just let like ll made make makes many may me might more moreover most much must my myself "
    "neither no nor not now of off often on once one only onto or other others otherwise our ours ourselves out over "
    "own per perhaps quite rather re said same see several shall she should shouldn since so some still such than "
    "that the their theirs them themselves then there thereby therefore these they this those though three through "
    "thus to together too toward towards two under until up upon us use used uses using ve very via was wasn we well "
    "were weren what when where whether which while who whom whose why will with within without won would wouldn yet "
    "you your yours yourself yourselves".split()
)


@dataclass(frozen=True, slots=True)
class Bags:
    """The counts of each word of a vocabulary in each text; zeros are not stored."""

    rows: Tensor  # (E,) int64, the text, rising
    words: Tensor  # (E,) int64, the word
    counts: Tensor  # (E,) float32
    lengths: Tensor  # (N,) float32, words of the vocabulary in each text, with repetitions

    def to(self, device: torch.device) -> Bags:
        """The bags on another device."""
        return Bags(self.rows.to(device), self.words.to(device), self.counts.to(device), self.lengths.to(device))

    def take(self, texts: Tensor) -> Bags:
        """The bags of some texts, by number (M,) int64, in the order given."""
        sizes = torch.bincount(self.rows, minlength=len(self.lengths))
        starts = (sizes.cumsum(0) - sizes)[texts]
        sizes = sizes[texts]
        rows = torch.arange(len(texts), device=texts.device).repeat_interleave(sizes)
        shift = starts - (sizes.cumsum(0) - sizes)  # from the new position of a pair to its old one
        picked = torch.arange(len(rows), device=texts.device) + shift[rows]
        return Bags(rows, self.words[picked], self.counts[picked], self.lengths[texts])


class Vocabulary:
    """The words that topics are made of: lower-cased runs of at least two letters, without (English) stop words."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)
        self._numbers = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def fit(cls, texts: Iterable[str], *, min_df: int = 2, max_df: float = 0.7, max_words: int = 20_000) -> Self:
        """Choose the words of whole documents, in alphabetical order.

        Args:
            min_df: fewest texts that a word occurs in.
            max_df: greatest share of the texts that a word occurs in.
            max_words: where more remain, those in the most texts are taken.

        Raises:
            EncoderError: no word remains.
        """
        n_texts = 0
        frequencies: Counter[str] = Counter()
        for text in texts:
            n_texts += 1
            frequencies.update(set(_words_of(text)))
        kept = [word for word, df in frequencies.items() if min_df <= df <= max_df * n_texts]
        if not kept:
            raise EncoderError(
                f"of {len(frequencies)} words none stands in at least {min_df} and at most {max_df:.0%} "
                f"of {n_texts} texts; give more texts, or a wider range of min_df and max_df"
            )
        kept.sort(key=lambda word: (-frequencies[word], word))
        return cls(sorted(kept[:max_words]))

    def bags(self, texts: Iterable[str]) -> Bags:
        """Count the words of texts; words outside the vocabulary are not counted."""
        rows: list[int] = []
        words: list[int] = []
        counts: list[int] = []
        lengths: list[int] = []
        for row, text in enumerate(texts):
            found = Counter(self._numbers[word] for word in _words_of(text) if word in self._numbers)
            rows.extend([row] * len(found))
            words.extend(found.keys())
            counts.extend(found.values())
            lengths.append(found.total())
        return Bags(
            torch.tensor(rows, dtype=torch.int64),
            torch.tensor(words, dtype=torch.int64),
            torch.tensor(counts, dtype=torch.float32),
            torch.tensor(lengths, dtype=torch.float32),
        )

    def save(self, file: Path) -> None:
        """Write a JSON list."""
        file.write_text(json.dumps(self.words, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, file: Path) -> Self:
        """Read what `save` wrote.

        Raises:
            EncoderError: it is missing, or not a list of distinct words.
        """
        words = read_json(file)
        if not words or not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise EncoderError(f"{file} is no list of words; save the encoder again")
        if len(set(words)) != len(words):
            raise EncoderError(f"{file} has {len(words)} words, {len(set(words))} distinct; save the encoder again")
        return cls(words)


def _words_of(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word not in _STOP_WORDS]


class EmbeddedTopicModel(nn.Module):
    """ETM: word embeddings rho (V, W), topic embeddings alpha (K, W), and a network that infers topics.

    A text draws delta ~ N(0, I_K), has the topic shares theta = softmax(delta), and
    each of its words is drawn from theta^T beta, where topic k has the words

        beta_k = softmax_V(rho alpha_k).

    The network reads the word counts x as x / sum(x) and gives the mean mu and the
    logarithm s of the variance of delta: two layers with ReLU, as in the authors'
    code. Their code can fit rho beforehand; here it is always learned.
    """

    def __init__(
        self, vocabulary: Vocabulary, n_topics: int, *, embedding_width: int = 300, hidden_width: int = 800
    ) -> None:
        """Start with random parameters, drawn as `nn.Linear` draws them."""
        super().__init__()
        self.vocabulary = vocabulary
        n_words = len(vocabulary)
        # The first layer is a sum over the words that occur in a text: a product with x that skips its zeros.
        self.word_layer = nn.EmbeddingBag(n_words, hidden_width, mode="sum")
        self.word_bias = nn.Parameter(torch.empty(hidden_width))
        self.hidden_layer = nn.Linear(hidden_width, hidden_width)
        self.mean = nn.Linear(hidden_width, n_topics)
        self.log_variance = nn.Linear(hidden_width, n_topics)
        self.rho = nn.Parameter(torch.empty(n_words, embedding_width))
        self.alpha = nn.Parameter(torch.empty(n_topics, embedding_width))
        for weights, fan_in in (
            (self.word_layer.weight, n_words),
            (self.word_bias, n_words),
            (self.rho, embedding_width),
            (self.alpha, embedding_width),
        ):
            nn.init.uniform_(weights, -(fan_in**-0.5), fan_in**-0.5)

    def bags(self, texts: Iterable[str]) -> Bags:
        """The word counts of texts, on the device of the parameters."""
        return self.vocabulary.bags(texts).to(self.rho.device)

    def posterior(self, bags: Bags) -> tuple[Tensor, Tensor]:
        """Mean and log-variance (N, K) of delta given the words of each text.

        Nothing is known of a text without words: its posterior is the prior, with
        mean and log-variance 0, so that its topics have equal shares.
        """
        shares = bags.counts / bags.lengths[bags.rows]
        starts = torch.searchsorted(bags.rows, torch.arange(len(bags.lengths), device=bags.rows.device))
        hidden = torch.relu(self.word_layer(bags.words, starts, per_sample_weights=shares) + self.word_bias)
        hidden = torch.relu(self.hidden_layer(hidden))
        has_words = (bags.lengths > 0).unsqueeze(-1)
        return self.mean(hidden) * has_words, self.log_variance(hidden) * has_words

    def shares(self, bags: Bags) -> Tensor:
        """The topic shares theta (N, K) of each text: from a sample of delta in training, from its mean otherwise."""
        with self._full_precision():
            return self._shares(*self.posterior(bags))

    def _full_precision(self) -> torch.autocast:
        """A context without mixed precision, in which small shares and likelihoods would be lost."""
        return torch.autocast(self.rho.device.type, enabled=False)

    def _shares(self, mean: Tensor, log_variance: Tensor) -> Tensor:
        if self.training:
            mean = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return torch.softmax(mean, dim=-1)

    def beta(self) -> Tensor:
        """The words of each topic: (K, V) float32, rows that sum to 1."""
        return torch.softmax(self.alpha @ self.rho.T, dim=-1)

    def loss(self, bags: Bags) -> Tensor:
        """The negative evidence lower bound (ELBO) of each text, per word.

            L = (-sum_v x_v log(theta^T beta_v + 1e-6) + KL) / sum_v x_v
            KL = -1/2 sum_k (1 + s_k - mu_k^2 - exp(s_k))

        Both terms are divided by the number of words of the text. The authors do not divide
        them, but a sum over words would dominate every other loss.

        Returns:
            (N,) float32; 0 for a text without words.
        """
        with self._full_precision():
            mean, log_variance = self.posterior(bags)
            likely = self._shares(mean, log_variance) @ self.beta()  # (N, V)
        per_pair = -bags.counts * torch.log(likely[bags.rows, bags.words] + 1e-6)  # (E,)
        unexplained = torch.zeros_like(bags.lengths).index_add(0, bags.rows, per_pair)
        return (unexplained + divergence(mean, log_variance)) / bags.lengths.clamp(min=1)

    def top_words(self, n: int = 10) -> list[list[str]]:
        """The n likeliest words of each topic, the likeliest first."""
        with torch.no_grad():
            best = self.beta().topk(min(n, len(self.vocabulary))).indices.tolist()
        return [[self.vocabulary.words[number] for number in topic] for topic in best]


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Kullback-Leibler divergence of N(mean, exp(log_variance)) from N(0, I): (N, K) twice to (N,), at least 0."""
    return -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(-1)
