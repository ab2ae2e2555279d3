"""CoLDE: chunks with section and chunk numbers through a backbone, chunkwise attention, a BiLSTM, one projection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from engine.encoders.backbone.backbone import Backbone
from engine.encoders.backbone.batching import token_budget_batches
from engine.encoders.backbone.long_attention import PlainAttention, attention_of
from engine.encoders.chunking import chunk_document
from engine.encoders.colde.layers import RELEASED_CHUNKS, ColdeConfig, ColdeLayers, Freeze
from engine.encoders.colde.sections import (
    PlacedChunk,
    PlacedSection,
    TokenIds,
    chunk_across_sections,
    full_chunks,
    place,
    split_sections,
    tokens_of_sections,
)
from engine.encoders.encoder import Pooling, SegmentedDocument, Variant
from engine.encoders.files import CONFIG_FILE, read_configuration
from engine.encoders.parameters import load_weights, save_weights
from engine.encoders.trainable import TOKEN_BUDGET, Attended, BackboneEncoder, Embedded, pad_chunks
from engine.errors import EncoderError
from engine.text.document import Document
from engine.text.spans import Coverage

LAYERS_FILE = "colde.safetensors"


class ColdeEncoder(BackboneEncoder):
    """Reads a document as one section: its chunks attend to each other, and a BiLSTM reads them in order.

    As in the paper (section 4.2), documents are split into sections only for training
    (`embed_sections`); attention never leaves a document, so vectors can be indexed.
    Document and chunk vectors share one space. See `ColdeLayers` for the equations and
    `ColdeConfig` for the variants.
    """

    kind = "colde"
    config: ColdeConfig
    settings_of_training = ("temperature", "dropout", "freeze", "max_chunks")
    card = """# CoLDE

The contrastive long document encoder of Jha et al. (2022, TKDD; arXiv:2108.09190), variant
`{config.variant}`: chunks of {tokens} tokens are read by a backbone ({config.pooling} pooling), look at each
other with {config.heads} heads, and are read in order by an LSTM. Vectors are {config.projection_width} wide and of
unit length, for documents, sections and chunks alike. Made for training on documents split
into {config.n_sections} sections, temperature {config.temperature}. Left out of it: LSTM and attention
{config.without_lstm}, section and chunk numbers {config.without_positions}.
"""
    note = (
        "Cosines of the chunks of both documents, weighted by the attention of each query chunk to the target's "
        "chunks. Section pairs sum to the mean attended cosine of the query's chunks, in [-1, 1]. They are no parts "
        "of the score."
    )

    def __init__(
        self, backbone: Backbone, config: ColdeConfig, *, name: str = "", layers: ColdeLayers | None = None
    ) -> None:
        """Put layers on a backbone; by default new ones, which `create` draws from a seed.

        Raises:
            EncoderError: the backbone does not fit the configuration.
        """
        if type(attention_of(backbone.model)) is not PlainAttention:
            raise EncoderError(
                f"{backbone.folder} is a {backbone.model.config.model_type}, made to read long texts at once; "
                "CoLDE reads chunks: give it a BERT-like model"
            )
        super().__init__(backbone, config, name=name, chunk_tokens=config.chunk_tokens)
        self.width = config.projection_width
        self.layers = (layers or _new_layers(backbone, config)).to(backbone.device)
        self.module: nn.Module = nn.ModuleDict({"backbone": backbone.model, "layers": self.layers}).eval()
        if config.freeze == Freeze.ALL_BUT_LAST:
            self._freeze_all_but_last()

    @classmethod
    def create(
        cls,
        backbone_folder: Path,
        config: ColdeConfig | None = None,
        *,
        seed: int = 0,
        device: str | None = None,
        dtype: torch.dtype | None = None,
    ) -> Self:
        """Put new layers, drawn from a seed, on a BERT-like model of transformers; train in float32.

        Raises:
            EncoderError: the backbone cannot be loaded, or does not fit the configuration.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(Backbone(backbone_folder, device=device, dtype=dtype), config or ColdeConfig())

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote; see `TrainableEncoder.load`."""
        made = read_configuration(ColdeConfig, config, folder / CONFIG_FILE)
        backbone = Backbone(folder, device=device, dtype=torch.float32)
        layers = load_weights(lambda: _new_layers(backbone, made), folder / LAYERS_FILE)
        return cls(backbone, made, name=name, layers=layers).round_to(dtype)

    def _freeze_all_but_last(self) -> None:
        """Freeze layers 0 to 10 of 12, and all embeddings, ours too, as the authors' code does.

        Then no gradient passes through the frozen layers, and no memory is held for it.
        """
        model = self.backbone.model
        n_layers = model.config.num_hidden_layers
        stacks = [part for part in model.modules() if isinstance(part, nn.ModuleList) and len(part) == n_layers]
        if not stacks:
            raise EncoderError(
                f"{self.backbone.folder} has no stack of {n_layers} layers to freeze; use freeze 'none' with it"
            )
        trained = {id(weight) for part in (stacks[0][-1], getattr(model, "pooler", None)) for weight in _weights(part)}
        for weight in (*_weights(model), *_weights(self.layers.positions)):
            weight.requires_grad_(id(weight) in trained)

    def identity(self) -> dict[str, Any]:
        """See `TrainableEncoder.identity`."""
        ends = {"chunks_end": "where they are full"} if self.config.runs_over_headings else {}
        return {**super().identity(), "chunk_tokens": self.chunk_tokens, **ends}

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into chunks; see `Encoder.segment`.

        `fixed` fills chunks with whole sentences of one section. In the other variants a chunk ends where
        it is full (section 3.1 of the paper), runs across headings, and belongs to the section in which it
        begins. `released` reads only the first `RELEASED_CHUNKS`, which the coverage shows.
        """
        if not self.config.runs_over_headings:
            return chunk_document(document, self.tokenizer, self.chunk_tokens)
        whole = chunk_across_sections(document, self.tokenizer, self.chunk_tokens)
        if self.config.variant == Variant.PAPER:
            return whole
        chunks = whole.chunks[:RELEASED_CHUNKS]
        coverage = Coverage(sum(chunk.n_tokens for chunk in chunks), whole.coverage.tokens_total)
        return SegmentedDocument(document, chunks, whole.token_ids[:RELEASED_CHUNKS], coverage)

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """The pooled output of the backbone, g (C, H), for the chunks of unsplit documents."""
        return self.section_states([place([document.token_ids])[0] for document in documents])

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """Attention among the chunks of each document, BiLSTM and projection; see `ColdeLayers`."""
        padded, mask = pad_chunks([state.float() for state in states])
        vectors, chunks = self.layers(padded, mask, torch.arange(len(documents), device=mask.device))
        return Embedded(vectors, chunks, mask)

    def split(self, document: SegmentedDocument, n_sections: int) -> tuple[PlacedSection, ...]:
        """Split a document for training, see `split_sections`; long sections end after `max_chunks`.

        With one section, the limit is that of the document's S sections together. `released` has
        the same limit for every text that is read at once, a section or a whole document.
        Where chunks run across headings, each part is cut again, from its own first token.
        """
        limit = self.config.training_chunks
        if self.config.variant != Variant.RELEASED and n_sections == 1:
            limit *= self.config.n_sections
        sections = list(self.headed(document).values())
        parts = split_sections(sections, n_sections, self.chunk_tokens, refill=self.config.runs_over_headings)
        return place([part[:limit] for part in parts])

    def headed(self, document: SegmentedDocument) -> dict[int, tuple[TokenIds, ...]]:
        """The chunks of each headed section, by section number; sections without a token are left out."""
        if self.config.runs_over_headings:
            tokens = enumerate(tokens_of_sections(document.document, self.tokenizer))
            return {number: full_chunks(ids, self.chunk_tokens) for number, ids in tokens if len(ids)}
        numbered = zip((chunk.section for chunk in document.chunks), document.token_ids, strict=True)
        groups = groupby(numbered, key=lambda pair: pair[0])
        return {number: tuple(ids for _, ids in group) for number, group in groups}

    def embed_sections(self, documents: Sequence[Sequence[PlacedSection]]) -> Tensor:
        """The vectors (N, D) of sections, each attending to the next one of its document, the last to the first.

        The paper describes only two sections, "p" and "p + 1". The circle gives every section exactly
        one section to attend to; the section of a document with one section attends to itself.
        """
        keys: list[int] = []
        for sections in documents:
            first = len(keys)
            keys.extend(first + (number + 1) % len(sections) for number in range(len(sections)))
        states = self.section_states([section for sections in documents for section in sections])
        padded, mask = pad_chunks([state.float() for state in states])
        vectors: Tensor = self.layers(padded, mask, torch.tensor(keys, device=mask.device))[0]
        return vectors

    def section_states(self, sections: Sequence[PlacedSection]) -> list[Tensor]:
        """First stage: for each section g (n, H); chunks of all sections share batches."""
        chunks = [chunk for section in sections for chunk in section]
        if not chunks:
            return []

        def batches(placed: Sequence[PlacedChunk], budget: int) -> Iterator[list[int]]:
            return token_budget_batches([len(chunk.token_ids) + self.tokenizer.n_special for chunk in placed], budget)

        rows = self.reader.read(chunks, TOKEN_BUDGET, batches, self._read)
        return list(torch.split(rows, [len(section) for section in sections]))

    def _read(self, chunks: Sequence[PlacedChunk]) -> Tensor:
        """The backbone over a batch of chunks: (B, H) float32."""
        device, model = self.backbone.device, self.backbone.model
        ids, mask = self.tokenizer.pad([chunk.token_ids for chunk in chunks])
        p = torch.tensor([chunk.section for chunk in chunks], device=device)
        q = torch.tensor([chunk.chunk for chunk in chunks], device=device)
        output = model(
            **self._inputs(ids.to(device), p, q),
            # Without padding no mask is passed: attention then takes its faster path.
            attention_mask=None if mask.all() else mask.long().to(device),
        )
        if self.config.pooling == Pooling.MEAN:
            weights = mask.to(device).unsqueeze(-1).float()
            mean: Tensor = (output[0].float() * weights).sum(1) / weights.sum(1)
            return mean
        if self.layers.pooler is not None:
            return torch.tanh(self.layers.pooler(output[0][:, 0].float()))
        pooled: Tensor = output.pooler_output.float()
        return pooled

    def _inputs(self, ids: Tensor, p: Tensor, q: Tensor) -> dict[str, Tensor]:
        model = self.backbone.model
        if self.config.shifts_ids:
            shifted = (ids + (p + q).unsqueeze(-1)).clamp(max=model.config.vocab_size - 1)
            if getattr(model.config, "type_vocab_size", 1) < 2:
                return {"input_ids": shifted}
            return {"input_ids": shifted, "token_type_ids": p.clamp(max=1).unsqueeze(-1).expand_as(ids)}
        if self.layers.positions is None:
            return {"input_ids": ids}
        words = model.get_input_embeddings()(ids)  # (B, L, H)
        return {"inputs_embeds": words + self.layers.positions(p, q).unsqueeze(1).to(words.dtype)}

    @property
    def cannot_explain(self) -> str | None:
        """See `Encoder`; an encoder without chunkwise attention cannot explain."""
        if self.layers.attention is not None:
            return None
        return (
            f"a CoLDE of variant {str(self.config.variant)!r} with without_lstm {self.config.without_lstm} "
            "has no attention to explain by; train one of variant 'fixed' or 'paper', and with its LSTM"
        )

    def pairs(self, query: Attended, target: Attended) -> tuple[Tensor, Tensor, Tensor]:
        """Attended cosines of chunks, as parts of one sum.

        With c the chunk vectors, g the chunk states, C the chunks of the query, and the trained W_Q, W_K of the
        attention (section 3.2 of the paper), which is applied across documents only here:

            alpha(q, r) = mean over heads of softmax_r( <W_Q g_q, W_K g_r> / sqrt(d_k) )
            pair(q, r)  = alpha(q, r) <c_q, c_r> / C
            query(q)    = sum_r pair(q, r),   target(r) = sum_q pair(q, r)

        The paper shows weighted similarities and prints no formula. The division by C is ours, so that chunk pairs,
        and with them sections and section pairs, sum to the mean attended cosine, in [-1, 1].
        """
        assert self.layers.attention is not None
        alpha = self.layers.attention.weights(query.attention, target.attention)
        pairs = alpha * (query.chunks @ target.chunks.T) / len(query.chunks)
        return pairs.sum(1), pairs.sum(0), pairs

    def attended(self, document: SegmentedDocument) -> Attended:
        """The states (C, H) and the vectors (C, D) of the chunks of one document."""
        states = self.states([document])[0].float()
        return Attended(document, states, self.combine([document], [states]).chunks[0])

    def save_parameters(self, folder: Path, dtype: torch.dtype | None) -> None:
        """Write backbone, tokenizer and layers."""
        super().save_parameters(folder, dtype)
        save_weights(self.layers.state_dict(), folder / LAYERS_FILE, dtype=dtype)


def _new_layers(backbone: Backbone, config: ColdeConfig) -> ColdeLayers:
    own_pooler = config.pooling is Pooling.CLS and getattr(backbone.model, "pooler", None) is None
    return ColdeLayers(backbone.width, config, own_pooler=own_pooler)


def _weights(module: nn.Module | None) -> list[nn.Parameter]:
    return [] if module is None else list(module.parameters())
