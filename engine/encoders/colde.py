"""CoLDE: chunks with section and chunk numbers through a backbone, chunkwise attention, a BiLSTM, one projection.

CoLDE is the Contrastive Long Document Encoder of Jha et al. (2022, TKDD, "Supervised
Contrastive Learning for Interpretable Long-Form Document Matching"; arXiv:2108.09190).

Letters in shapes: N sections, n chunks of a section (padded to the most in the batch),
H width of a state, A width of an aggregated chunk, D width of a vector.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, scaled_dot_product_attention
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from engine.encoders.backbone import Backbone, PlainAttention, attention_of, load_weights, save_weights
from engine.encoders.encoder import Pooling, SegmentedDocument, Variant
from engine.encoders.files import CONFIG_FILE, read_configuration
from engine.encoders.hardware import token_budget_batches
from engine.encoders.tokenizer import Tokenizer, chunk_document
from engine.encoders.trainable import TOKEN_BUDGET, Attended, BackboneEncoder, Embedded, pad_chunks
from engine.errors import DocumentError, EncoderError, EngineError
from engine.settings import ABOVE_ZERO, COUNT, SHARE, Checked, Range, setting
from engine.text.document import Document
from engine.text.segmentation import Chunk, Coverage

TokenIds: TypeAlias = Sequence[int]
N_SECTION_IDS = 8  # rows of the table of section numbers
N_CHUNK_IDS = 64  # rows of the table of chunk numbers
RELEASED_CHUNKS = 10  # chunks of a text that is read at once; the authors' code drops the rest
_MOST_CHUNKS = {Variant.PAPER: N_CHUNK_IDS, Variant.RELEASED: RELEASED_CHUNKS, Variant.FIXED: 16}
LAYERS_FILE = "colde.safetensors"


@dataclass(frozen=True, slots=True)
class PlacedChunk:
    """The tokens of a chunk, and the position that its embeddings encode."""

    token_ids: TokenIds  # without special tokens
    section: int  # p, from 0
    chunk: int  # q in its section, from 0


PlacedSection: TypeAlias = tuple[PlacedChunk, ...]


def place(sections: Sequence[Sequence[TokenIds]]) -> tuple[PlacedSection, ...]:
    """Number sections and chunks in the order given.

    Shuffling after this call keeps the original numbers (`ids_follow`: the released code);
    shuffling before it gives the numbers of the new places (`ids_new`).
    """
    return tuple(
        tuple(PlacedChunk(token_ids, p, q) for q, token_ids in enumerate(section)) for p, section in enumerate(sections)
    )


def split_sections(
    sections: Sequence[Sequence[TokenIds]], n_parts: int, chunk_tokens: int, *, refill: bool
) -> list[tuple[TokenIds, ...]]:
    """Join neighbouring sections into parts of near-equal token count; into fewer only if there are fewer tokens.

    Fewer sections than parts are cut into equal stretches of tokens, in chunks of at most `chunk_tokens`.

    Args:
        sections: the chunks of each headed section, none without a token.
        refill: whether the chunks of a part are cut again, full, from its first token.
    """
    if len(sections) < n_parts:
        tokens = _tokens(chunk for chunks in sections for chunk in chunks)
        n_parts = min(n_parts, len(tokens))
        edges = [len(tokens) * part // n_parts for part in range(n_parts + 1)]
        return [full_chunks(tokens[a:b], chunk_tokens) for a, b in pairwise(edges)]
    borders = _balanced([sum(map(len, chunks)) for chunks in sections], n_parts)
    parts = [tuple(chunk for chunks in sections[a:b] for chunk in chunks) for a, b in pairwise(borders)]
    return [full_chunks(_tokens(part), chunk_tokens) for part in parts] if refill else parts


def _tokens(chunks: Iterable[TokenIds]) -> tuple[int, ...]:
    return tuple(token for chunk in chunks for token in chunk)


def full_chunks(tokens: TokenIds, chunk_tokens: int) -> tuple[TokenIds, ...]:
    """Cut tokens into chunks of `chunk_tokens`, the last one shorter."""
    return tuple(tokens[first : first + chunk_tokens] for first in range(0, len(tokens), chunk_tokens))


def _balanced(sizes: Sequence[int], n_parts: int) -> list[int]:
    """Borders of parts of a row of sizes, each as near to its share of the total as those before it allow."""
    ends = [0, *accumulate(sizes)]
    borders = [0]
    for part in range(1, n_parts):
        goal = ends[-1] * part / n_parts
        highest = len(sizes) - (n_parts - part)
        borders.append(min(range(borders[-1] + 1, highest + 1), key=lambda border: abs(ends[border] - goal)))
    return [*borders, len(sizes)]


def chunk_across_sections(document: Document, tokenizer: Tokenizer, most: int) -> SegmentedDocument:
    """Cut a document into windows of exactly `most` tokens, the last one shorter; every token is in one chunk.

    Each chunk is of the section in which it begins. A section in which no chunk begins has no chunks.
    """
    tokens: list[tuple[int, int, int, int]] = []  # section, start, stop, id
    for number, (ids, offsets) in enumerate(tokenizer.tokenize(_texts(document))):
        base = document.sections[number].start
        tokens += [(number, base + a, base + b, token_id) for token_id, (a, b) in zip(ids, offsets, strict=True)]
    if not tokens:
        raise DocumentError(f"{document.doc_id}: no text that the tokenizer can read")
    windows = [tokens[first : first + most] for first in range(0, len(tokens), most)]
    chunks = tuple(Chunk(window[0][0], window[0][1], window[-1][2], len(window)) for window in windows)
    token_ids = tuple(array("i", [token[3] for token in window]) for window in windows)
    return SegmentedDocument(document, chunks, token_ids, Coverage(len(tokens), len(tokens)))


def tokens_of_sections(document: Document, tokenizer: Tokenizer) -> list[Sequence[int]]:
    """The token ids of each section; empty for a section without text."""
    return [ids for ids, _ in tokenizer.tokenize(_texts(document))]


def _texts(document: Document) -> list[str]:
    return [document.text[section.start : section.stop] for section in document.sections]


class Freeze(StrEnum):
    """The parameters of the backbone that keep their values in training."""

    NONE = "none"
    ALL_BUT_LAST = "all_but_last"  # all embeddings, ours too, and all layers but the last


@dataclass(frozen=True)
class ColdeConfig(Checked):
    """Sizes and choices of one CoLDE.

    In `paper` and `released` a section, or a document that is read unsplit, is cut into chunks
    of 512 tokens (510 and the special ones), and a chunk ends where it is full: headings inside
    do not end it. `released` follows InterDigitalInc/CoLDE at commit 81d8617: section and chunk
    numbers are added to token ids, there is no attention, one forward LSTM is as wide as the
    backbone, and ten chunks are read of each section in training and of each document. It was
    trained with `Freeze.ALL_BUT_LAST`. That code also shuffles the chunks of every document and
    lets the LSTM run on over padding. Neither is repeated here. `fixed` follows the paper, but keeps
    sentences whole, ends chunks at headings, so that each is a part of one section, and uses no
    chunk numbers that were never trained.
    """

    error: ClassVar[type[EngineError]] = EncoderError
    variant: Variant = Variant.FIXED
    n_sections: int = setting(
        2, "sections of a document in training; with 1, documents stay whole", Range(least=1, most=N_SECTION_IDS)
    )
    chunk_tokens: int = setting(510, "tokens of a chunk, lowered to what the backbone can read at once", COUNT)
    max_chunks: int | None = setting(
        None,
        "most chunks of a section in training; 10 in released, 16 in fixed, 64 in paper",
        Range(least=1, most=N_CHUNK_IDS),
    )
    heads: int = setting(4, "heads of the attention between chunks", COUNT)
    lstm_width: int = setting(256, "width of the LSTM, per direction", COUNT)
    projection_width: int = setting(256, "width of a vector", COUNT)
    temperature: float = setting(0.5, "temperature of the loss", ABOVE_ZERO)
    dropout: float = setting(0.1, "share of values that are dropped", SHARE)
    # `cls` goes through a pooler, tanh(W x + b): the backbone's, or one of our own.
    pooling: Pooling = setting(Pooling.CLS, "state of a chunk: cls through a pooler, or the mean of its tokens")
    without_lstm: bool = setting(False, "ablation: the mean of the chunks, and no attention")
    without_positions: bool = setting(False, "ablation: no section and chunk numbers")
    freeze: Freeze = setting(Freeze.NONE, "parameters of the backbone that are not trained: none, all_but_last")

    def __post_init__(self) -> None:
        if self.max_chunks is None:
            # The paper has no limit; its documents have no more chunks than there are chunk numbers.
            object.__setattr__(self, "max_chunks", _MOST_CHUNKS.get(self.variant))
        super().__post_init__()

    @property
    def training_chunks(self) -> int:
        """Most chunks of a section in training: `max_chunks`, as it was resolved."""
        assert self.max_chunks is not None
        return self.max_chunks

    @property
    def runs_over_headings(self) -> bool:
        """True where a chunk ends only when it is full."""
        return self.variant != Variant.FIXED

    @property
    def has_attention(self) -> bool:
        """True where chunks attend to those of the next section."""
        return self.variant != Variant.RELEASED and not self.without_lstm

    @property
    def has_tables(self) -> bool:
        """True where section and chunk numbers are embedded."""
        return self.variant != Variant.RELEASED and not self.without_positions

    @property
    def shifts_ids(self) -> bool:
        """True where section and chunk numbers are added to token ids instead."""
        return self.variant == Variant.RELEASED and not self.without_positions


class Positions(nn.Module):
    """E_sec[p] + E_chunk[q], added to the word embeddings of every token of a chunk.

    Section 3.1 of the paper. It prints the formula as a sum over all p, q and r, but
    means one sum of three embeddings for each p, q and r.

    A section number above the S of training is read as the last one. `largest` is the
    highest chunk number that was seen in training: with `clamp` the further chunks of a
    longer document share it, rather than add rows that were never trained.
    """

    def __init__(self, width: int, n_sections: int, *, clamp: bool) -> None:
        super().__init__()
        self.sections = nn.Embedding(N_SECTION_IDS, width)
        self.chunks = nn.Embedding(N_CHUNK_IDS, width)
        for table in (self.sections, self.chunks):
            nn.init.normal_(table.weight, std=0.02)
        self.n_sections = n_sections
        self.clamp = clamp
        self.largest: Tensor
        self.register_buffer("largest", torch.zeros((), dtype=torch.int64))

    def forward(self, sections: Tensor, chunks: Tensor) -> Tensor:
        """Embed section numbers p (N,) and chunk numbers q (N,), both from 0: (N, H)."""
        chunks = chunks.clamp(max=N_CHUNK_IDS - 1)
        if self.training:
            self.largest.copy_(torch.maximum(self.largest, chunks.max()))
        elif self.clamp:
            chunks = torch.minimum(chunks, self.largest)
        embedded: Tensor = self.sections(sections.clamp(max=self.n_sections - 1)) + self.chunks(chunks)
        return embedded


class ChunkAttention(nn.Module):
    """Multi-headed attention between chunks.

    Vaswani et al. (2017, arXiv:1706.03762), with softmax(Q K^T / sqrt(d_k)) V for each
    head, d_k = H / heads; the same as CoLDE, section 3.2.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise EncoderError(f"states {width} wide cannot be shared by {heads} heads; choose heads that divide it")
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, queries: Tensor, keys: Tensor, key_mask: Tensor) -> Tensor:
        """Let query chunks attend to key chunks (N, m, H), of which the mask (N, m) has one or more in each row."""
        # Without padding no mask is passed: the memory of attention is then linear in m.
        mask = None if key_mask.all() else key_mask[:, None, None]
        heads = scaled_dot_product_attention(
            self._split(self.query(queries)), self._split(self.key(keys)), self._split(self.value(keys)), mask
        )
        out: Tensor = self.out(heads.transpose(1, 2).flatten(2))
        return out

    def weights(self, queries: Tensor, keys: Tensor) -> Tensor:
        """The attention of query chunks (n, H) over key chunks (m, H): (n, m), the mean over heads; rows sum to 1."""
        query, key = self._split(self.query(queries)[None]), self._split(self.key(keys)[None])
        logits = query @ key.mT / query.shape[-1] ** 0.5  # (1, heads, n, m)
        alpha: Tensor = logits.softmax(dim=-1).mean(dim=(0, 1))
        return alpha

    def _split(self, rows: Tensor) -> Tensor:
        return rows.reshape(*rows.shape[:2], self.heads, -1).transpose(1, 2)  # (N, heads, n, d_k)


class ColdeLayers(nn.Module):
    """All parameters of a CoLDE except those of its backbone.

        a_q = MHA(g_q, keys and values: the chunks of the next section)
        h_q = BiLSTM(LN(g_q + a_q)) at q
        c_q = unit(W h_q + b),  z = unit(W [forwards at the last q; backwards at the first] + b)

    The paper specifies neither how attention is joined (residual and LayerNorm here), nor
    that vectors are scaled to unit length (its code does so).
    """

    def __init__(self, width: int, config: ColdeConfig, *, own_pooler: bool = False) -> None:
        """Make layers for a backbone of a width, with random parameters, and a pooler if the backbone has none."""
        super().__init__()
        clamp = config.variant == Variant.FIXED
        self.positions = Positions(width, config.n_sections, clamp=clamp) if config.has_tables else None
        self.pooler = nn.Linear(width, width) if own_pooler else None
        self.attention = ChunkAttention(width, config.heads) if config.has_attention else None
        self.norm = nn.LayerNorm(width) if config.has_attention else None
        self.lstm: nn.LSTM | None = None
        aggregated = width
        if not config.without_lstm and config.variant == Variant.RELEASED:
            self.lstm = nn.LSTM(width, width, batch_first=True)
        elif not config.without_lstm:
            self.lstm = nn.LSTM(width, config.lstm_width, batch_first=True, bidirectional=True)
            aggregated = 2 * config.lstm_width
        self.projection = nn.Linear(aggregated, config.projection_width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, states: Tensor, mask: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """From chunk states to the vectors of sections and chunks.

        Args:
            states: g (N, n, H).
            mask: (N, n) bool, True where a chunk is real: the first ones of each row, at least one.
            keys: (N,) int64, the section that each section attends to; itself for an unsplit document.

        Returns:
            z (N, D) and c (N, n, D), unit rows; c is zero where padded.
        """
        states = self.dropout(states)
        if self.attention is not None and self.norm is not None:
            states = self.norm(states + self.attention(states, states[keys], mask[keys]))
        chunks, sections = self._aggregate(states, mask)
        return self._project(sections), self._project(chunks) * mask.unsqueeze(-1)

    def _aggregate(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """(N, n, A) for each chunk, and (N, A) for each section."""
        lengths = mask.sum(dim=1)
        if self.lstm is None:
            return states, (states * mask.unsqueeze(-1)).sum(dim=1) / lengths.unsqueeze(-1)
        packed = pack_padded_sequence(states, lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, (last, _) = self.lstm(packed)
        chunks, _ = pad_packed_sequence(outputs, batch_first=True, total_length=mask.shape[1])
        return chunks, last.transpose(0, 1).flatten(1)  # (directions, N, width) -> (N, A)

    def _project(self, rows: Tensor) -> Tensor:
        return normalize(self.projection(self.dropout(rows)).float(), dim=-1)


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
        """Put layers on a backbone; by default new ones, which `create` draws from a seed."""
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
            # As in the authors' code. No gradient passes through the frozen layers, and no memory is held for it.
            backbone.freeze(backbone.model.config.num_hidden_layers - 1)
            if self.layers.positions is not None:
                self.layers.positions.requires_grad_(False)

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
        """Put new layers, drawn from a seed, on a BERT-like model of transformers; train in float32."""
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
