"""TDE: a text as the mean of its sentence vectors, each one the backbone's state beside the sentence's topics.

After "Topic-informed and Decoupled sentence Embeddings" (Findings of NAACL 2024).
Sentences are read one by one and no text sees its partner (this is what "decoupled"
means), so every vector can be indexed.

Letters in shapes: C sentences (chunks) of a document, H width of the backbone, W width
of a topic embedding, D = H + W.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn.functional import normalize

from engine.document import Document
from engine.encoders.backbone import Backbone, Pooling, default_dtype
from engine.encoders.chunking import chunk_document
from engine.encoders.encoder import SegmentedDocument, Vectors
from engine.encoders.tde_layers import PairHead, TdeModule, TopicVectors
from engine.encoders.topics import EmbeddedTopicModel, Vocabulary
from engine.encoders.trainable import (
    CONFIG_FILE,
    Embedded,
    TrainableEncoder,
    fingerprint_of,
    inference,
    module_sha256,
    pad_chunks,
)
from engine.encoders.weights import tokenizer_sha256
from engine.errors import EncoderError
from engine.segmentation import TokenWindow

TOKEN_BUDGET = 4096
WEIGHTS_FILE = "tde.safetensors"
VOCABULARY_FILE = "topic_vocabulary.json"
_SHORTEST_SENTENCE = 8
_OF_THE_VOCABULARY = ("min_df", "max_df", "max_words")  # vectors depend on the words alone


class Variant(StrEnum):
    """What is followed where the paper could be bettered."""

    PAPER = "paper"  # every sentence by itself, the state of its [CLS]
    FIXED = "fixed"  # sentences under 8 tokens, headings mostly, are read with the next; the mean of all states


@dataclass(frozen=True, slots=True)
class TdeConfig:
    """What a TDE is made of.

    Raises:
        EncoderError: a number is out of range.
    """

    variant: Variant = Variant.FIXED
    pooling: Pooling | None = None  # that of the variant
    sentence_tokens: int = 128  # most tokens read at once, special ones counted; a longer sentence is cut
    n_topics: int = 100  # K; 0 leaves the topics out, "TDE w/o ETM"
    topic_width: int = 300
    topic_hidden_width: int = 800
    min_df: int = 2  # see `Vocabulary.fit`
    max_df: float = 0.7
    max_words: int = 20_000

    def __post_init__(self) -> None:
        if self.pooling is None:
            pooling = Pooling.CLS if self.variant is Variant.PAPER else Pooling.MEAN
            object.__setattr__(self, "pooling", pooling)
        if self.n_topics < 0 or self.n_topics == 1:
            raise EncoderError(f"n_topics is {self.n_topics}; give at least 2, or 0 for no topic model")
        for name in ("topic_width", "topic_hidden_width"):
            if getattr(self, name) < 1:
                raise EncoderError(f"{name} is {getattr(self, name)}; give at least 1")


class TdeEncoder(TrainableEncoder):
    """Reads every sentence by itself, and takes the mean over them.

    With b_s the unit backbone state of sentence s and t_s its topics (`TopicVectors`),

        x_s = [b_s ; t_s],    h = mean_s x_s

    A chunk is a sentence, its vector unit(x_s); the document's is unit(h). The paper
    tells no scale of b_s, t_s and h.
    """

    kind = "tde"
    module: TdeModule

    def __init__(
        self, backbone_folder: Path, vocabulary: Vocabulary | None, config: TdeConfig, *, name: str, device: str | None
    ) -> None:
        """Put random topics and a random pair head beside a backbone, all in float32.

        Args:
            backbone_folder: a BERT-like model of transformers.
            vocabulary: of the topic model; None where `config.n_topics` is 0.
            config: what it is made of.
            name: what `load_encoder` was given; empty for one that was never saved.
            device: as in `load_encoder`.

        Raises:
            EncoderError: the folder is no backbone, or it has no room or no [CLS] for what `config` asks.
        """
        self.config = config
        self.name = name
        self.backbone = Backbone(
            backbone_folder, device=device, dtype=torch.float32, pooling=config.pooling or Pooling.MEAN
        )
        tokenizer = self.backbone.tokenizer
        self.window_tokens = min(config.sentence_tokens - tokenizer.n_special, self.backbone.max_tokens)
        self.chunk_tokens = self.window_tokens
        if self.window_tokens < 1:
            raise EncoderError(
                f"sentence_tokens is {config.sentence_tokens}, the tokenizer adds {tokenizer.n_special} of its own; "
                f"give at least {tokenizer.n_special + 1}"
            )
        if config.pooling is Pooling.CLS and not tokenizer.prefix:
            raise EncoderError(f"{backbone_folder} puts no token before a text to pool at; use Pooling.MEAN")
        self.width = self.backbone.width
        topics = None
        if vocabulary is not None:
            self.width += config.topic_width
            topics = TopicVectors(
                EmbeddedTopicModel(
                    vocabulary,
                    config.n_topics,
                    embedding_width=config.topic_width,
                    hidden_width=config.topic_hidden_width,
                )
            )
        module = TdeModule(self.backbone.model, topics, PairHead(self.width))
        self.module = module.to(self.backbone.device).eval()
        self._sha256_before_rounding: dict[str, str] = {}

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
        """Make an encoder to be trained.

        Args:
            backbone_folder: a BERT-like model of transformers.
            texts_for_vocabulary: the documents that the topics will be of; not read
                where `config.n_topics` is 0.
            config: `TdeConfig()` by default.
            seed: of the random weights.
            device: as in `load_encoder`.
            dtype: of the backbone; all else is float32.

        Raises:
            EncoderError: the folder is no backbone, the texts hold no vocabulary, or
                the configuration does not fit.
        """
        config = config or TdeConfig()
        vocabulary = None
        if config.n_topics:
            vocabulary = Vocabulary.fit(
                texts_for_vocabulary, min_df=config.min_df, max_df=config.max_df, max_words=config.max_words
            )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            encoder = cls(backbone_folder, vocabulary, config, name="", device=device)
        encoder._round(dtype)
        return encoder

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote; see `TrainableEncoder.load`."""
        parsed = _parsed(config, folder / CONFIG_FILE)
        vocabulary = Vocabulary.load(folder / VOCABULARY_FILE) if parsed.n_topics else None
        encoder = cls(folder, vocabulary, parsed, name=name, device=device)
        encoder._load_own_weights(folder / WEIGHTS_FILE)
        before = module_sha256(encoder.backbone.model)
        encoder._round(dtype or default_dtype(encoder.backbone.device))
        encoder._sha256_before_rounding = {module_sha256(encoder.backbone.model): before}
        return encoder

    def _load_own_weights(self, file: Path) -> None:
        try:
            missing, unexpected = self.module.load_state_dict(load_file(file), strict=False)
        except (OSError, SafetensorError, RuntimeError) as error:
            raise EncoderError(f"{file} does not fit {CONFIG_FILE}: {error}; save the encoder again") from error
        missing = [name for name in missing if not name.startswith("backbone.")]
        if missing or unexpected:
            raise EncoderError(
                f"{file} lacks {missing} and has {unexpected}, where {CONFIG_FILE} asks otherwise; "
                "save the encoder again"
            )

    def _round(self, dtype: torch.dtype) -> None:
        # Weights only: transformers too keeps its buffers, as rotary frequencies, in float32.
        for weights in self.backbone.model.parameters():
            weights.data = weights.data.to(dtype)
        self.backbone.dtype = dtype

    @property
    def fingerprint(self) -> str:  # type: ignore[override]
        """Of the weights as they are now, so that training changes it; not of the pair head, which makes no vectors."""
        topics = self.module.topics
        backbone = module_sha256(self.backbone.model)
        told = {name: value for name, value in self._config().items() if name not in _OF_THE_VOCABULARY}
        return fingerprint_of(
            {
                **told,
                "backbone": self._sha256_before_rounding.get(backbone, backbone),
                "tokenizer": tokenizer_sha256(self.backbone.folder),
                "topics": module_sha256(topics) if topics else "",
                "vocabulary": topics.model.vocabulary.words if topics else (),
            }
        )

    def _config(self) -> dict[str, str | int | float]:
        return {"encoder": self.kind, **asdict(self.config)}

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into sentences; see `Encoder.segment`."""
        shortest = _SHORTEST_SENTENCE if self.config.variant is Variant.FIXED else 1
        return chunk_document(
            document,
            self.backbone.tokenizer,
            lambda ends: sentence_windows(ends, self.window_tokens, shortest=shortest),
        )

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """First stage: b_s of all sentences, (C, H) a document; those of all documents go in common batches."""
        sequences = [ids for document in documents for ids in document.token_ids]
        rows = self.backbone.embed(sequences, TOKEN_BUDGET)
        return list(torch.split(rows, [len(document.chunks) for document in documents]))

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Second stage: the topics of each sentence, and the mean; see the equation above."""
        rows = [self._with_topics(document, own.float()) for document, own in zip(documents, states, strict=True)]
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
        """How likely it is that texts match, by the pair head.

        It reads document vectors as they stand in an index; query and target do not swap.

        Args:
            query: (..., D) unit rows.
            target: (..., D) likewise, of a shape that broadcasts, as (T, D) for one query.

        Returns:
            (...) float32 in [0, 1].

        Raises:
            EncoderError: the widths are not the encoder's.
        """
        for given in (query, target):
            if given.shape[-1] != self.width:
                raise EncoderError(
                    f"a vector is {given.shape[-1]} wide, those of this encoder {self.width}; encode with it"
                )
        one, other = (torch.as_tensor(given, device=self.backbone.device) for given in (query, target))
        with inference(self.module):
            probability: Vectors = self.module.head(one, other).softmax(-1)[..., 1].cpu().numpy()
        return probability

    def top_words(self, n: int = 10) -> list[list[str]]:
        """The n likeliest words of each topic, for people; none without a topic model."""
        return self.module.topics.model.top_words(n) if self.module.topics else []

    def save_pretrained(self, folder: Path, *, dtype: torch.dtype | None = None) -> None:
        """Write backbone, own weights, vocabulary, configuration and card; see `TrainableEncoder.save_pretrained`."""
        # Loaded and not trained since: the files may hold more than the memory, which was rounded.
        as_loaded = module_sha256(self.backbone.model) in self._sha256_before_rounding
        self.backbone.save_pretrained(folder, dtype=dtype or (None if as_loaded else self.backbone.dtype))
        own = {
            name: value.detach().to("cpu", dtype or value.dtype).contiguous()
            for name, value in self.module.state_dict().items()
            if not name.startswith("backbone.")
        }
        save_file(own, folder / WEIGHTS_FILE)
        if self.module.topics:
            self.module.topics.model.vocabulary.save(folder / VOCABULARY_FILE)
        (folder / CONFIG_FILE).write_text(json.dumps(self._config(), indent=1) + "\n")
        self.name = self.name or str(folder)
        (folder / "README.md").write_text(_CARD.format(config=self.config, tokens=self.window_tokens, width=self.width))


def sentence_windows(sentence_ends: Sequence[int], capacity: int, *, shortest: int = 1) -> list[TokenWindow]:
    """One window a sentence.

    A sentence longer than a window is cut into the fewest pieces that fit, of equal
    size up to one token, where the paper says nothing.

    Args:
        sentence_ends: as for `engine.segmentation.fill_windows`.
        capacity: most tokens of a window, at least 1.
        shortest: a window under so many tokens is joined with the next sentence, at
            the end with the one before, where both fit into one.

    Returns:
        Windows that hold every token once, in order.
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


def _parsed(values: Mapping[str, Any], file: Path) -> TdeConfig:
    """The configuration in a file; EncoderError where a value is missing or of the wrong kind."""
    numbers = {name: value for name, value in asdict(TdeConfig()).items() if not isinstance(value, StrEnum)}
    for name, default in numbers.items():
        if type(values.get(name)) is not type(default):
            raise EncoderError(
                f"{file} has {name} {values.get(name)!r}, not a number like {default!r}; save the encoder again"
            )
    try:
        variant, pooling = Variant(values.get("variant", "")), Pooling(values.get("pooling", ""))
    except ValueError as error:
        raise EncoderError(f"{file}: {error}; use the longmatch that saved it") from error
    return TdeConfig(variant, pooling, **{name: values[name] for name in numbers})


_CARD = """---
library_name: longmatch
tags: [feature-extraction, long-documents]
---
# TDE: topic-informed and decoupled sentence embeddings

Variant {config.variant}, {config.pooling} pooling, sentences of at most {tokens} tokens, {config.n_topics} topics,
vectors {width} wide. A sentence's vector is its backbone state beside its topics (an embedded topic model); a
document's is the mean of its sentences. A pair head gives the probability of a match.
"""
