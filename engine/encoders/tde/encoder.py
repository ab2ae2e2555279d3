"""TDE: a text as the mean of its sentence vectors, each the backbone's state concatenated with the topics.

After "Topic-informed and Decoupled sentence Embeddings" (Findings of NAACL 2024).
Sentences are read one by one and no text sees its partner (this is what "decoupled"
means), so every vector can be indexed.

Letters in shapes: C sentences (chunks) of a document, H width of the backbone, W width
of a topic embedding, D = H + W.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.chunking import chunk_document
from engine.encoders.encoder import Pooling, SegmentedDocument, Variant, Vectors
from engine.encoders.files import CONFIG_FILE, read_configuration
from engine.encoders.parameters import inference, load_weights, module_sha256, save_weights, sha256_of
from engine.encoders.tde.layers import TdeConfig, TdeLayers, TdeModule
from engine.encoders.tde.topics import Vocabulary
from engine.encoders.trainable import BackboneEncoder, Embedded, pad_chunks
from engine.errors import EncoderError
from engine.text.document import Document
from engine.text.segmentation import TokenWindow

WEIGHTS_FILE = "tde.safetensors"
VOCABULARY_FILE = "topic_vocabulary.json"
_SHORTEST_SENTENCE = 8


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

    def __init__(self, backbone: Backbone, layers: TdeLayers, config: TdeConfig, *, name: str = "") -> None:
        """Combine layers with a backbone of the same configuration.

        Raises:
            EncoderError: `config` leaves no room for text, or needs a [CLS] that the backbone lacks.
        """
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
        self.module = TdeModule(backbone.model, layers.to(backbone.device)).eval()

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

        Raises:
            EncoderError: the folder is no backbone, the texts hold no vocabulary, or the configuration does not fit.
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
            encoder = cls(backbone, TdeLayers(backbone.width, config, vocabulary), config)
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
        layers = load_weights(lambda: TdeLayers(backbone.width, made, vocabulary), folder / WEIGHTS_FILE)
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
            document,
            self.tokenizer,
            lambda ends: sentence_windows(ends, self.chunk_tokens, shortest=shortest),
        )

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Second stage: the topics of each sentence, and the mean; see the equation of the class."""
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
        """The probability (...) that texts match, by the pair head, from unit rows (..., D) of shapes that broadcast.

        It reads document vectors as an index stores them; query and target are not interchangeable.

        Raises:
            EncoderError: the widths are not the encoder's.
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
