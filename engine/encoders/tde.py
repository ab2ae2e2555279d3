"""TDE: a text as the mean of its sentence vectors, each the backbone's state concatenated with the topics.

After "Topic-informed and Decoupled sentence Embeddings" (Findings of NAACL 2024).
Sentences are read one by one and no text sees its partner (this is what "decoupled"
means), so every vector can be indexed.

Topics come from word counts, by an embedded topic model. It is ETM (Dieng, Ruiz & Blei 2020, TACL 8,
arXiv:1907.04907): a topic is a point in the space of word embeddings, and its words are those near it.

Letters in shapes: C sentences (chunks) of a document, H width of the backbone, W width of a topic embedding, D = H + W,
N texts, V words of the vocabulary, K topics, E pairs of a text and a word that occurs in it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.encoders.backbone import Backbone, inference, load_weights, module_sha256, save_weights, sha256_of
from engine.encoders.encoder import Pooling, SegmentedDocument, Variant, Vectors
from engine.encoders.files import CONFIG_FILE, read_configuration, read_json
from engine.encoders.tokenizer import chunk_document
from engine.encoders.trainable import BackboneEncoder, Embedded, pad_chunks
from engine.errors import EncoderError, EngineError
from engine.settings import COUNT, FROM_ZERO, PROBABILITY, Checked, setting
from engine.text.document import Document
from engine.text.segmentation import TokenWindow

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
_FEWEST_WORDS = 3
_SENTENCES_AT_ONCE = 4096  # bounds the hidden layers of the topic model, which would grow with the document
WEIGHTS_FILE = "tde.safetensors"
VOCABULARY_FILE = "topic_vocabulary.json"
_SHORTEST_SENTENCE = 8


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
        """
        n_texts = 0
        frequencies: Counter[str] = Counter()
        for text in texts:
            n_texts += 1
            frequencies.update(set(_words_of(text)))
        words = [word for word, df in frequencies.items() if min_df <= df <= max_df * n_texts]
        if not words:
            raise EncoderError(
                f"of {len(frequencies)} words none stands in at least {min_df} and at most {max_df:.0%} "
                f"of {n_texts} texts; give more texts, or a wider range of min_df and max_df"
            )
        words.sort(key=lambda word: (-frequencies[word], word))
        return cls(sorted(words[:max_words]))

    def bags(self, texts: Iterable[str]) -> Bags:
        """Count the words of texts; words outside the vocabulary are not counted."""
        rows: list[int] = []
        words: list[int] = []
        counts: list[int] = []
        lengths: list[int] = []
        for row, text in enumerate(texts):
            bag = Counter(self._numbers[word] for word in _words_of(text) if word in self._numbers)
            rows.extend([row] * len(bag))
            words.extend(bag.keys())
            counts.extend(bag.values())
            lengths.append(bag.total())
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
        """Read what `save` wrote."""
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


def divergence(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Kullback-Leibler divergence of N(mean, exp(log_variance)) from N(0, I): (N, K) twice to (N,), at least 0."""
    return -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(-1)


@dataclass(frozen=True)
class TdeConfig(Checked):
    """Sizes and choices of one TDE.

    `paper` reads every sentence by itself and takes the state of its [CLS]. `fixed`
    reads sentences under 8 tokens, mostly headings, with the next one, and takes the
    mean of all states. No code was published, so there is no `released`.
    """

    error: ClassVar[type[EngineError]] = EncoderError
    variant: Variant = Variant.FIXED
    pooling: Pooling | None = setting(None, "mean or cls; by default cls in paper, mean in fixed")
    sentence_tokens: int = setting(
        128, "most tokens read at once, special ones counted; longer sentences are cut", COUNT
    )
    n_topics: int = setting(100, "topics, at least 2; 0 leaves them out", FROM_ZERO)
    topic_width: int = setting(300, "width of a topic", COUNT)
    topic_hidden_width: int = setting(800, "width of the hidden layers of the topic model", COUNT)
    min_df: int = setting(2, "fewest texts that have a word of the topics", FROM_ZERO)
    max_df: float = setting(0.7, "largest share of texts that have a word of the topics", PROBABILITY)
    max_words: int = setting(20_000, "most words of the topics", COUNT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.variant is Variant.RELEASED:
            raise EncoderError("variant is 'released', but no code of TDE was published; take 'paper' or 'fixed'")
        if self.pooling is None:
            pooling = Pooling.CLS if self.variant is Variant.PAPER else Pooling.MEAN
            object.__setattr__(self, "pooling", pooling)
        if self.n_topics == 1:
            raise EncoderError("n_topics is 1; give at least 2, or 0 for no topic model")


class TopicVectors(nn.Module):
    """Topics of sentences as vectors: t_s = LayerNorm(alpha^T theta_s).

    A sentence with fewer than 3 words of the vocabulary has the theta of its document. The
    gain of the normalisation starts at 1/sqrt(W), W the width, so that t_s starts at
    unit length and weighs as much as the backbone's state beside it.
    """

    def __init__(self, model: EmbeddedTopicModel) -> None:
        super().__init__()
        self.model = model
        width = model.alpha.shape[1]
        self.norm = nn.LayerNorm(width)
        nn.init.constant_(self.norm.weight, width**-0.5)

    def forward(self, sentences: Sequence[str], document: str) -> Tensor:
        """Make t_s (C, W) of the sentences of a document, of which there is at least one."""
        of_document = self.model.shares(self.model.bags([document]))  # (1, K)
        rows = []
        for first in range(0, len(sentences), _SENTENCES_AT_ONCE):
            bags = self.model.bags(sentences[first : first + _SENTENCES_AT_ONCE])
            enough = (bags.lengths >= _FEWEST_WORDS).unsqueeze(-1)
            shares = torch.where(enough, self.model.shares(bags), of_document)
            rows.append(self.norm(shares @ self.model.alpha))
        return torch.cat(rows)


class PairHead(nn.Module):
    """Classifier of a pair of texts over m = [h1; h2; h1 - h2; h1 * h2].

    Linear(4D, 256), ReLU, dropout 0.1, Linear(256, 2), where the paper says "a classifier
    layer". It reads h scaled to length sqrt(D), whatever the length of the mean was, so that
    vectors from an index can be classified too.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = width**0.5
        self.layers = nn.Sequential(nn.Linear(4 * width, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 2))

    def forward(self, query: Tensor, target: Tensor) -> Tensor:
        """Logits (..., 2) of no match and match, from two arrays of unit vectors (..., D) whose shapes broadcast."""
        one, other = self.scale * query, self.scale * target
        difference, product = one - other, one * other
        both = [one.expand_as(difference), other.expand_as(difference), difference, product]
        logits: Tensor = self.layers(torch.cat(both, dim=-1))
        return logits


class TdeModule(nn.Module):
    """All parameters of a TDE; those of the backbone are added by the encoder, the others are drawn at random."""

    backbone: nn.Module

    def __init__(self, width: int, config: TdeConfig, vocabulary: Vocabulary | None) -> None:
        """Make the layers for a backbone of a width; the vocabulary is that of the topic model, if there is one."""
        super().__init__()
        self.topics: TopicVectors | None = None
        if vocabulary is not None:
            width += config.topic_width
            model = EmbeddedTopicModel(
                vocabulary, config.n_topics, embedding_width=config.topic_width, hidden_width=config.topic_hidden_width
            )
            self.topics = TopicVectors(model)
        self.head = PairHead(width)

    def own_weights(self) -> dict[str, Tensor]:
        """All parameters except those of the backbone."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("backbone.")}


class TdeEncoder(BackboneEncoder):
    """Reads every sentence by itself, and takes the mean over them.

    With b_s the unit backbone state of sentence s and t_s its topics (`TopicVectors`),

        x_s = [b_s ; t_s],    h = mean_s x_s

    A chunk is a sentence, its vector unit(x_s); the document's is unit(h). The paper
    specifies no scale of b_s, t_s and h.
    """

    kind = "tde"
    config: TdeConfig
    module: TdeModule
    settings_of_training = ("min_df", "max_df", "max_words")  # vectors depend on the words alone
    card = """# TDE: topic-informed and decoupled sentence embeddings

Variant {config.variant}, {config.pooling} pooling, sentences of at most {tokens} tokens, {config.n_topics} topics,
vectors {width} wide. A sentence's vector is its backbone state beside its topics (an embedded topic model); a
document's is the mean of its sentences. A pair head gives the probability of a match.
"""

    def __init__(self, backbone: Backbone, layers: TdeModule, config: TdeConfig, *, name: str = "") -> None:
        """Combine layers with a backbone of the same configuration."""
        tokenizer = backbone.tokenizer
        super().__init__(backbone, config, name=name, chunk_tokens=config.sentence_tokens - tokenizer.n_special)
        if self.chunk_tokens < 1:
            raise EncoderError(
                f"sentence_tokens is {config.sentence_tokens}, the tokenizer adds {tokenizer.n_special} of its own; "
                f"give at least {tokenizer.n_special + 1}"
            )
        if config.pooling is Pooling.CLS and not tokenizer.prefix:
            raise EncoderError(f"{backbone.folder} puts no token before a text to pool at; use Pooling.MEAN")
        self.width = backbone.width + (config.topic_width if config.n_topics else 0)
        layers.backbone = backbone.model
        self.module = layers.to(backbone.device).eval()

    @classmethod
    def create(
        cls,
        backbone_folder: Path,
        texts_for_vocabulary: Iterable[str],
        config: TdeConfig | None = None,
        *,
        seed: int = 0,
        device: str | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Self:
        """Make an encoder with parameters drawn from a seed, those of the backbone in `dtype`, the others in float32.

        Args:
            texts_for_vocabulary: documents to choose the words of topics from; not read where `config.n_topics` is 0.
        """
        config = config or TdeConfig()
        vocabulary = None
        if config.n_topics:
            vocabulary = Vocabulary.fit(
                texts_for_vocabulary, min_df=config.min_df, max_df=config.max_df, max_words=config.max_words
            )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            backbone = _backbone(backbone_folder, config, device)
            encoder = cls(backbone, TdeModule(backbone.width, config, vocabulary), config)
        backbone.round_to(dtype)
        return encoder

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote; see `TrainableEncoder.load`."""
        made = read_configuration(TdeConfig, config, folder / CONFIG_FILE)
        vocabulary = Vocabulary.load(folder / VOCABULARY_FILE) if made.n_topics else None
        backbone = _backbone(folder, made, device)
        layers = load_weights(lambda: TdeModule(backbone.width, made, vocabulary), folder / WEIGHTS_FILE)
        return cls(backbone, layers, made, name=name).round_to(dtype)

    @property
    def rounded(self) -> nn.Module:
        """See `TrainableEncoder`; the other layers stay in float32."""
        return self.module.backbone

    def identity(self) -> dict[str, Any]:
        """See `TrainableEncoder.identity`; does not cover the pair head, which makes no vectors."""
        topics = self.module.topics
        return {
            "backbone": sha256_of(self.rounded, self._loaded),
            "topics": module_sha256(topics) if topics else "",
            "vocabulary": topics.model.vocabulary.words if topics else (),
        }

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into sentences; see `Encoder.segment`."""
        shortest = _SHORTEST_SENTENCE if self.config.variant is Variant.FIXED else 1
        return chunk_document(
            document, self.tokenizer, lambda ends: sentence_windows(ends, self.chunk_tokens, shortest=shortest)
        )

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Second stage: the topics of each sentence, and the mean; see the equation of the class."""
        rows = [self._with_topics(document, state.float()) for document, state in zip(documents, states, strict=True)]
        sentences, mask = pad_chunks(rows)
        # The direction of a mean is that of the sum.
        return Embedded(normalize(sentences.sum(1), dim=-1), normalize(sentences, dim=-1), mask)

    def _with_topics(self, document: SegmentedDocument, states: Tensor) -> Tensor:
        if self.module.topics is None:
            return states
        text = document.document.text
        sentences = [text[chunk.start : chunk.stop] for chunk in document.chunks]
        return torch.cat([states, self.module.topics(sentences, text)], dim=-1)

    def match_probability(self, query: Vectors, target: Vectors) -> Vectors:
        """The probability (...) that texts match, by the pair head, from unit rows (..., D) of shapes that broadcast.

        It reads document vectors as an index stores them; query and target are not interchangeable.
        """
        for given in (query, target):
            if given.shape[-1] != self.width:
                raise EncoderError(
                    f"a vector is {given.shape[-1]} wide, those of this encoder {self.width}; encode with it"
                )
        one, other = (torch.as_tensor(given, device=self.device) for given in (query, target))
        with inference(self.module):
            probability: Vectors = self.module.head(one, other).softmax(-1)[..., 1].float().cpu().numpy()
        return probability

    def save_parameters(self, folder: Path, dtype: torch.dtype | None) -> None:
        """Write backbone, tokenizer, layers and vocabulary."""
        super().save_parameters(folder, dtype)
        save_weights(self.module.own_weights(), folder / WEIGHTS_FILE, dtype=dtype)
        if self.module.topics:
            self.module.topics.model.vocabulary.save(folder / VOCABULARY_FILE)


def _backbone(folder: Path, config: TdeConfig, device: str | None) -> Backbone:
    return Backbone(folder, device=device, dtype=torch.float32, pooling=config.pooling or Pooling.MEAN)


def sentence_windows(sentence_ends: Sequence[int], capacity: int, *, shortest: int = 1) -> list[TokenWindow]:
    """One window for each sentence; together they hold every token once, in order.

    A sentence longer than a window is cut into the fewest pieces that fit, of equal
    size up to one token; the paper does not specify this.

    Args:
        shortest: fewest tokens of a window; a shorter one is joined with the next sentence,
            or at the end with the previous one, where both fit into one window.
    """
    groups: list[TokenWindow] = []
    first = stop = 0
    for end in sentence_ends:
        if stop > first and (stop - first >= shortest or end - first > capacity):
            groups.append(TokenWindow(first, stop))
            first = stop
        stop = end
    if stop > first:
        groups.append(TokenWindow(first, stop))
    if len(groups) > 1 and stop - first < shortest and stop - groups[-2].first <= capacity:
        groups[-2:] = [TokenWindow(groups[-2].first, stop)]
    return [piece for group in groups for piece in _pieces(group, capacity)]


def _pieces(group: TokenWindow, capacity: int) -> list[TokenWindow]:
    size = group.stop - group.first
    n = -(-size // capacity)
    return [TokenWindow(group.first + size * i // n, group.first + size * (i + 1) // n) for i in range(n)]
