"""SMITH, the siamese hierarchical encoder of sentence blocks (Yang et al. 2020, arXiv:2004.12297), in torch.

Token ids to blocks, blocks to documents, and both as an `Encoder`: making, loading, saving, encoding.

Letters in shapes: N blocks, L tokens of a block (padded), B documents, n blocks
of a document (padded), H width of a state, D width of a vector.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from transformers import BertConfig, BertModel
from transformers.models.bert.modeling_bert import BertEncoder

from engine.encoders.backbone import Loaded, load_weights, save_weights
from engine.encoders.encoder import SegmentedDocument, Variant
from engine.encoders.files import CONFIG_FILE, load_model, read_configuration
from engine.encoders.hardware import BatchReader, default_device, default_dtype, set_up_kernels, token_budget_batches
from engine.encoders.smith_config import Combination, SmithConfig
from engine.encoders.tokenizer import Tokenizer, chunk_document
from engine.encoders.trainable import TOKEN_BUDGET, Attended, Embedded, TrainableEncoder, pad_chunks, read_chunks
from engine.errors import EncoderError
from engine.text.document import Document
from engine.text.segmentation import Chunk, TokenWindow, fill_windows

_INITIAL_STD = 0.02
_WORDS = "embeddings.word_embeddings.weight"
# Tables that can be copied in part: ours can have fewer rows, never more.
_TABLES = (_WORDS, "embeddings.position_embeddings.weight")
_HALF = math.sqrt(0.5)
WEIGHTS_FILE = "smith.safetensors"
BLOCK_BUDGET = 1536  # of one pass over documents: 32 windows of 48


class SentenceEncoder(nn.Module):
    """Reads each block by itself.

        p = tanh(W_p T[CLS] + b),  h = unit(relu(W_s p + b_s))

    with T the output of BERT. The paper names a dense layer without ReLU; the
    released code has a ReLU, and so does ours. MatchBERT has no such layer: h = unit(p).
    """

    def __init__(self, config: SmithConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.bert: Any = BertModel(_bert_config(config, "sentence", vocabulary_size))
        self.dense = nn.Linear(config.width, config.width) if config.is_hierarchical else None

    def forward(
        self,
        ids: Tensor,  # (N, L) int64
        mask: Tensor | None,  # (N, L) bool, True where a token is real; None where all are
    ) -> tuple[Tensor, Tensor]:
        """Contextual tokens (N, L, H), and h (N, H) float32, unit rows."""
        output = self.bert(input_ids=ids, attention_mask=None if mask is None else mask.long())
        pooled: Tensor = output[1]
        if self.dense is not None:
            pooled = torch.relu(self.dense(pooled))
        return output[0], normalize(pooled.float(), dim=-1)


class DocumentEncoder(nn.Module):
    """Reads the blocks of a document together.

        C = BERT(dropout(LN(h + position))),  d = tanh(W_dp C + b)

    There is no token for the document: its vector is that of its first block.
    Positions are learned, as in the released code.
    """

    def __init__(self, config: SmithConfig) -> None:
        super().__init__()
        self.positions = nn.Embedding(config.document_positions, config.width)
        self.norm = nn.LayerNorm(config.width, eps=1e-12)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder: Any = BertEncoder(_bert_config(config, "document", vocabulary_size=1))  # it has no words
        self.pooler = nn.Linear(config.width, config.width)

    def forward(
        self,
        blocks: Tensor,  # (B, n, H), before positions
        mask: Tensor,  # (B, n) bool, True where a block is real
    ) -> Tensor:
        """Contextual blocks C, (B, n, H)."""
        n = blocks.shape[1]
        placed = blocks.to(self.norm.weight.dtype) + self.positions.weight[:n]
        # Without padding no mask is passed: attention then takes its faster path.
        attended = None if mask.all() else mask[:, None, None, :].expand(-1, -1, n, -1)
        contextual: Tensor = self.encoder(self.dropout(self.norm(placed)), attention_mask=attended)[0]
        return contextual

    def attention(
        self,
        blocks: Tensor,  # (n, H), of one document, before positions
    ) -> list[Tensor]:
        """The attention of each block to every block, in each layer: (n, n), the mean over heads, rows sum to 1.

        The fused attention of `forward` returns no weights, so softmax_j(<q_i, k_j> / sqrt(d_k)) is computed here.
        """
        hidden = self.norm(blocks.to(self.norm.weight.dtype) + self.positions.weight[: len(blocks)])[None]
        weights = []
        for layer in self.encoder.layer:
            attention = layer.attention.self
            query, key = (
                part(hidden).unflatten(-1, (attention.num_attention_heads, -1)).transpose(1, 2).float()
                for part in (attention.query, attention.key)
            )  # (1, heads, n, d_k)
            weights.append((query @ key.mT / query.shape[-1] ** 0.5).softmax(dim=-1).mean(dim=(0, 1)))
            hidden = layer(hidden)
        return weights


def rollout(attention: Sequence[Tensor]) -> Tensor:
    """How much of each output of a transformer comes from each of its inputs, if attention alone mixed them.

    Attention rollout of Abnar & Zuidema (2020, arXiv:2005.00928), with half of every layer passed on unchanged, as
    its residual connection does:

        R = A'_L ... A'_1,   A'_l = (A_l + I) / 2

    Args:
        attention: of each layer from the first, (n, n), rows sum to 1.

    Returns:
        (n, n), rows sum to 1.
    """
    rolled = torch.eye(len(attention[0]), device=attention[0].device)
    for weights in attention:
        rolled = (weights + torch.eye(len(weights), device=weights.device)) / 2 @ rolled
    return rolled


class BlockAttention(nn.Module):
    """Weights of blocks: a = softmax_i(v . tanh(W h_i + b)); the paper prints it without tanh and b."""

    def __init__(self, config: SmithConfig) -> None:
        super().__init__()
        self.is_printed = config.variant is Variant.PAPER
        self.projection = nn.Linear(config.width, config.width, bias=not self.is_printed)
        self.context = nn.Parameter(torch.zeros(config.width))

    def forward(self, blocks: Tensor, mask: Tensor) -> Tensor:
        """(B, n) that sum to 1 over the real blocks."""
        projected: Tensor = self.projection(blocks.to(self.context.dtype))
        if not self.is_printed:
            projected = torch.tanh(projected)
        scores = (projected @ self.context).float()
        return scores.masked_fill(~mask, float("-inf")).softmax(-1)


class SmithModule(nn.Module):
    """All parameters of a SMITH, drawn from a seed.

    A normal of deviation 0.02, cut at two deviations, with biases 0 and norms 1, but Glorot-uniform for the two dense
    layers that the released code leaves to TensorFlow's default, and for the attention's vector.
    """

    def __init__(self, config: SmithConfig, vocabulary_size: int, *, pad_id: int = 0, seed: int = 0) -> None:
        super().__init__()
        self.config = config
        self.pad_id = pad_id
        with torch.random.fork_rng(devices=[]):  # transformers draws parameters, which are drawn again below
            self.sentence = SentenceEncoder(config, vocabulary_size)
            self.document = DocumentEncoder(config) if config.is_hierarchical else None
            # A list of one layer or none, as in the parameter names of saved encoders.
            self.heads = nn.ModuleList(nn.Linear(config.width, config.width) for _ in range(config.is_hierarchical))
            attends = config.combination is Combination.ATTENTION
            self.attention = BlockAttention(config) if attends else None
        self._initialize(torch.Generator().manual_seed(seed))

    def _initialize(self, generator: torch.Generator) -> None:
        limit = 2 * _INITIAL_STD
        for part in self.modules():
            if isinstance(part, nn.Linear | nn.Embedding):
                nn.init.trunc_normal_(part.weight, std=_INITIAL_STD, a=-limit, b=limit, generator=generator)
            if isinstance(part, nn.Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)
            if isinstance(part, nn.LayerNorm):
                nn.init.ones_(part.weight)
                nn.init.zeros_(part.bias)
        for layer in (self.sentence.dense, *self.heads):
            if isinstance(layer, nn.Linear):
                nn.init.xavier_uniform_(layer.weight, generator=generator)
        if self.attention is not None:
            limit = math.sqrt(3 / self.config.width)
            nn.init.uniform_(self.attention.context, -limit, limit, generator=generator)

    def blocks(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """First stage; see `SentenceEncoder.forward`."""
        blocks: tuple[Tensor, Tensor] = self.sentence(ids, mask)
        return blocks

    def padding_block(self) -> Tensor:
        """(H,), the vector that the released code reads where a document has no block.

        The mask of that code lowers the attention to all tokens equally, so it masks nothing.
        """
        device = self.sentence.bert.device
        ids = torch.full((1, self.config.block_tokens), self.pad_id, device=device)
        return self.blocks(ids, None)[1][0]

    def documents(self, blocks: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Second stage.

            v_i = unit(W_d tanh(W_dp C_i + b) + b_d),  E = v_1

        `released` has a ReLU before `unit`. With a combination, g is the sum, mean or attended sum
        of the h_i, and vectors are

            paper, released: document unit([g; E]), block unit([h_i; v_i])
            fixed:           document [unit(g); E] / sqrt 2, block [h_i; v_i] / sqrt 2

        so that in `fixed` each half has the same weight, and sum and mean are equal. In
        `released` g runs over `max_blocks` blocks, missing ones included, as in its
        code. That code then takes the raw product of [g; E], which an index of unit
        vectors cannot represent.

        Args:
            blocks: (B, n, H) float32, unit rows, padded along n; n = 1 without a document encoder.
            mask: (B, n) bool, True where a block is real; the first block of each document is real.

        Returns:
            The documents (B, D) and their blocks (B, n, D), float32, unit rows; rows of padded blocks are undefined.
        """
        if self.document is None:
            return blocks[:, 0], blocks
        rows: Tensor = self.heads[0](torch.tanh(self.document.pooler(self.document(blocks, mask))))
        if self.config.variant is Variant.RELEASED:
            rows = torch.relu(rows)
        rows = normalize(rows.float(), dim=-1)
        if self.config.combination is Combination.NORMAL:
            return rows[:, 0], rows
        beside = self._beside(blocks, mask)
        chunks = torch.cat([blocks, rows], -1) * _HALF
        if self.config.variant is Variant.FIXED:
            return torch.cat([normalize(beside, dim=-1), rows[:, 0]], -1) * _HALF, chunks
        return normalize(torch.cat([beside, rows[:, 0]], -1), dim=-1), chunks

    def block_weights(self, blocks: Tensor) -> Tensor:
        """How much attention the vector of a document pays to each of its blocks.

        E is the output at the first block, so its weights are R_1 of `rollout`. Where g is concatenated, with a_i
        the weights of its sum (1 / n for sum and mean),

            w_i = lambda a_i + (1 - lambda) R_1i

        and lambda the share of g in the squared length of the document vector: 1/2 in `fixed`. Weights of the
        padding that `released` reads are left out of a, which then sums to 1 over the real blocks.

        Attention weights are not contributions: a block that is attended to may change the vector little (Jain &
        Wallace 2019, arXiv:1902.10186). Neither the values that are attended to nor the dense layers count here.

        Args:
            blocks: (n, H) float32, unit rows, of one document.

        Returns:
            (n,) float32, at least 0, sum 1.
        """
        assert self.document is not None
        attended = rollout(self.document.attention(blocks))[0]
        if self.config.combination is Combination.NORMAL:
            return attended
        mask = torch.ones((1, len(blocks)), dtype=torch.bool, device=blocks.device)
        beside = torch.full_like(attended, 1 / len(blocks))
        if self.attention is not None:
            beside = self.attention(blocks[None], mask)[0]
        document = self.documents(blocks[None], mask)[0][0]
        share = document[: self.config.width].square().sum() / document.square().sum()
        return share * beside + (1 - share) * attended

    def _beside(self, blocks: Tensor, mask: Tensor) -> Tensor:
        """(B, H): g in `documents`."""
        if self.config.variant is Variant.RELEASED:
            padding = self.padding_block()
            real = torch.where(mask.unsqueeze(-1), blocks, padding)
            missing = padding.expand(len(blocks), self.config.max_blocks - blocks.shape[1], -1)
            whole = torch.cat([real, missing], 1)
            blocks, mask = whole, torch.ones_like(whole[..., 0], dtype=torch.bool)
        if self.attention is not None:
            attended = (self.attention(blocks, mask).unsqueeze(-1) * blocks).sum(1)
            return nn.functional.dropout(attended, self.config.dropout, self.training)
        total = (blocks * mask.unsqueeze(-1)).sum(1)
        return total if self.config.combination is Combination.SUM else total / mask.sum(1, keepdim=True)


def _bert_config(config: SmithConfig, part: Literal["sentence", "document"], vocabulary_size: int) -> Any:  # noqa: ANN401
    return BertConfig(
        vocab_size=vocabulary_size,
        hidden_size=config.width,
        num_hidden_layers=getattr(config, f"{part}_layers"),
        num_attention_heads=getattr(config, f"{part}_heads"),
        intermediate_size=getattr(config, f"{part}_ffn"),
        max_position_embeddings=getattr(config, f"{part}_positions"),
        hidden_act="gelu_pytorch_tanh",
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
        pad_token_id=None,  # else the row of the padding token would stay zero
        attn_implementation="sdpa",
    )


@torch.no_grad()
def take_over(bert: Any, folder: Path, *, words_alone: bool = False) -> None:  # noqa: ANN401
    """Copy every parameter of a BERT's folder, or the word embeddings alone, into a `BertModel` of the same sizes.

    Position and word tables can be shorter here; a pooler that the folder does not
    hold keeps its own parameters. Folders of transformers mostly specify the exact GELU;
    ours is the approximate one that BERT was trained with (they differ by 1e-3).
    """
    model, missing = load_model(folder, torch.float32, what="a BERT")
    if model.config.model_type != "bert":
        raise EncoderError(f"{folder} holds a {model.config.model_type}, weights are taken over from a bert alone")
    parameters: dict[str, Tensor] = bert.state_dict()
    published = {name: value for name, value in model.state_dict().items() if name not in missing}
    if words_alone:
        published = {_WORDS: published[_WORDS]}
    unknown = sorted(published.keys() - parameters.keys())
    lacking = sorted(name for name in parameters.keys() - published.keys() if "pooler" not in name and not words_alone)
    if unknown or lacking:
        raise EncoderError(
            f"{folder} does not have the layers of this encoder: {(unknown or lacking)[0]} is only in one of the two; "
            "configure as many layers as it has"
        )
    for name, value in published.items():
        rows = len(parameters[name]) if name in _TABLES else len(value)
        if value[:rows].shape != parameters[name].shape:
            raise EncoderError(
                f"{name} of {folder} has shape {tuple(value.shape)}, this encoder needs "
                f"{tuple(parameters[name].shape)}; configure its sizes"
            )
        parameters[name].copy_(value[:rows])


class SmithEncoder(TrainableEncoder):
    """SMITH (Yang et al. 2020, arXiv:2004.12297): a BERT over each block of sentences, and one over the blocks.

    Chunks are the blocks. A state is the block vector h before positions, a chunk
    vector v_i the last layer over the contextual block C_i, and the document's vector
    v_1, as in the paper (equations: `SmithModule.documents`). The paper names no
    block vector; v_i was chosen over h_i because it is in the space of the
    document vectors, is trained with them, and depends on its context.

    A document of more blocks than `max_blocks` is read in windows, with n_w the
    tokens of window w,

        E = unit(sum_w n_w E_w)

    while the paper reads only the first window. Blocks end where sections
    end; the paper knows no sections. Headings are read as text.
    """

    kind = "smith"
    config: SmithConfig
    settings_of_training = ("dropout",)
    card = """# SMITH

The siamese hierarchical encoder of Yang et al. (2020, arXiv:2004.12297), variant
`{config.variant}`: {config.sentence_layers} layers read blocks of {config.block_tokens} tokens,
{config.document_layers} layers read up to {config.max_blocks} blocks together. Vectors are {width} wide
and of unit length, for documents, sections and blocks alike.
"""
    note = (
        "Attention that the vector of each document pays to its sections; those of a document sum to 1. A section pair "
        "is the cosine of its blocks times the attention to both; pairs sum to the inner product of the attended "
        "means, in [-1, 1]. Attention weights are not contributions, and no parts of the score."
    )

    def __init__(self, module: SmithModule, tokenizer: Tokenizer, *, name: str = "", device: str = "cpu") -> None:
        """Wrap a module that is on `device`."""
        if (len(tokenizer.prefix), len(tokenizer.suffix)) != (1, 1):
            raise EncoderError(
                f"the tokenizer of {tokenizer.folder} puts {len(tokenizer.prefix)} tokens before a text and "
                f"{len(tokenizer.suffix)} after it, SMITH reads [CLS] text [SEP]; take a BERT's tokenizer"
            )
        tokenizer.check_ids(tokenizer.vocabulary_size)
        set_up_kernels()
        self.module: SmithModule = module
        self.config = module.config
        self.tokenizer = tokenizer
        self.name = name
        self.device = device
        self.reader = BatchReader(device)
        self.width = self.config.vector_width
        self.chunk_tokens = self.config.capacity

    @classmethod
    def create(
        cls,
        tokenizer_folder: Path,
        config: SmithConfig = SmithConfig(),  # noqa: B008
        *,
        seed: int = 0,
        device: str | None = None,
        dtype: torch.dtype = torch.float32,
        sentence_encoder: Path | None = None,
        word_embeddings: Path | None = None,
    ) -> Self:
        """Make an encoder with parameters drawn from a seed; train in float32.

        Args:
            tokenizer_folder: a folder with a fast WordPiece tokenizer.
            sentence_encoder: folder of a BERT of the same sizes, whose parameters are copied.
            word_embeddings: folder of a BERT of the same width, of which only the word embeddings are copied.
        """
        device = device or default_device()
        tokenizer = Tokenizer(tokenizer_folder)
        module = SmithModule(config, tokenizer.vocabulary_size, pad_id=tokenizer.pad_id, seed=seed)
        if sentence_encoder is not None:
            take_over(module.sentence.bert, sentence_encoder)
        if word_embeddings is not None:
            take_over(module.sentence.bert, word_embeddings, words_alone=True)
        return cls(module.to(device, dtype).eval(), tokenizer, device=device)

    @classmethod
    def load(
        cls, folder: Path, config: Mapping[str, Any], *, name: str, device: str | None, dtype: torch.dtype | None
    ) -> Self:
        """Load what `save_pretrained` wrote; see `TrainableEncoder.load`."""
        made = read_configuration(SmithConfig, config, folder / CONFIG_FILE)
        tokenizer = Tokenizer(folder)
        module = load_weights(
            lambda: SmithModule(made, tokenizer.vocabulary_size, pad_id=tokenizer.pad_id), folder / WEIGHTS_FILE
        ).eval()
        device = device or default_device()
        encoder = cls(module, tokenizer, name=name, device=device)
        encoder._loaded = Loaded.rounded(module, lambda: module.to(device, dtype or default_dtype(device)))
        return encoder

    def segment(self, document: Document) -> SegmentedDocument:
        """Cut a document into blocks; see `Encoder.segment`."""
        return chunk_document(document, self.tokenizer, BlockFilling(self.config))

    def pad(self, blocks: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Put [CLS] and [SEP] around blocks, and pad them to the longest: (N, L) ids, and mask, on the CPU."""
        more = self.tokenizer.suffix * (self.config.n_separators - 1)
        return self.tokenizer.pad([[*ids, *more] for ids in blocks])

    def states(self, documents: Sequence[SegmentedDocument]) -> list[Tensor]:
        """The block vectors h; blocks of all documents share batches."""
        return read_chunks(documents, self._read)

    def _read(self, blocks: Sequence[Sequence[int]]) -> Tensor:
        if not blocks:
            return torch.empty((0, self.config.width), device=self.device)

        def batches(sequences: Sequence[Sequence[int]], budget: int) -> Iterator[list[int]]:
            return token_budget_batches([len(ids) + 1 + self.config.n_separators for ids in sequences], budget)

        def read(batch: Sequence[Sequence[int]]) -> Tensor:
            ids, mask = self.pad(batch)
            seen = None if mask.all() else mask.to(self.device)
            return self.module.blocks(ids.to(self.device), seen)[1]

        return self.reader.read(blocks, TOKEN_BUDGET, batches, read)

    def combine(self, documents: Sequence[SegmentedDocument], states: Sequence[Tensor]) -> Embedded:
        """The document encoder over windows of blocks, batched by similar length; see the class."""
        spans = [
            (number, window)
            for number, document in enumerate(documents)
            for window in document_windows(document.chunks, self.config.max_blocks)
        ]
        read: dict[int, tuple[Tensor, Tensor]] = {}
        for batch in token_budget_batches([window.stop - window.first for _, window in spans], BLOCK_BUDGET):
            picked = [spans[position] for position in batch]
            blocks, mask = pad_chunks([states[number][window.first : window.stop] for number, window in picked])
            vectors, chunks = self.module.documents(blocks.float(), mask)
            for row, (position, (_, window)) in enumerate(zip(batch, picked, strict=True)):
                read[position] = vectors[row], chunks[row, : window.stop - window.first]
        sums = [torch.zeros(self.width, device=self.device) for _ in documents]
        rows: list[list[Tensor]] = [[] for _ in documents]
        for position, (number, window) in enumerate(spans):
            vector, chunks = read[position]
            n_tokens = sum(chunk.n_tokens for chunk in documents[number].chunks[window.first : window.stop])
            sums[number] = sums[number] + n_tokens * vector
            rows[number].append(chunks)
        padded, mask = pad_chunks([torch.cat(parts) for parts in rows])
        return Embedded(normalize(torch.stack(sums), dim=-1), padded, mask)

    @property
    def cannot_explain(self) -> str | None:
        """See `Encoder`; without a document encoder no block attends to another one."""
        if self.config.is_hierarchical:
            return None
        return (
            "a SMITH with 0 document layers (MatchBERT) has no attention over blocks to explain by; train one with "
            "document layers (longmatch train OUT CORPUS --new smith), or take the evidence"
        )

    def pairs(self, query: Attended, target: Attended) -> tuple[Tensor, Tensor, Tensor]:
        """Attention of the document encoder to the blocks of either document.

        With w the weights of `SmithModule.block_weights`, n_k the tokens of window k and N those of the document,

            a_b        = n_k / N * w_b,   b in window k           sums to 1
            pair(b, c) = a_b a'_c <v_b, v_c>

        for the blocks b of the query and c of the target, and v their vectors. SMITH is siamese: its attention never
        leaves a document, so a and a' do not depend on the other document; the pairs do. They sum to <x, x'>, in
        [-1, 1], with x = sum_b a_b v_b the attended mean of a document's blocks. Windows are weighted by their
        tokens, as in the class. The paper explains no match; both equations are ours. Attention weights are not
        contributions, neither to the score of a hit nor to the cosine of the documents.
        """
        pairs = query.attention[:, None] * target.attention * (query.chunks @ target.chunks.T)
        return query.attention, target.attention, pairs

    def attended(self, document: SegmentedDocument) -> Attended:
        """The attention (C,) to the blocks of one document, and their vectors (C, D)."""
        states = self.states([document])[0].float()
        n_tokens = sum(chunk.n_tokens for chunk in document.chunks)
        weights = []
        for window in document_windows(document.chunks, self.config.max_blocks):
            share = sum(chunk.n_tokens for chunk in document.chunks[window.first : window.stop]) / n_tokens
            weights.append(share * self.module.block_weights(states[window.first : window.stop]))
        return Attended(document, torch.cat(weights), self.combine([document], [states]).chunks[0])

    def save_parameters(self, folder: Path, dtype: torch.dtype | None) -> None:
        """Write parameters and tokenizer."""
        self.tokenizer.save_pretrained(folder)
        source, file = self.tokenizer.folder / WEIGHTS_FILE, folder / WEIGHTS_FILE
        if not self.is_as_loaded(dtype):
            save_weights(self.module.state_dict(), file, dtype=dtype)
            if file == source:
                self._loaded = None
        elif file != source:  # copied, since the parameters in memory can be rounded
            file.write_bytes(source.read_bytes())


class BlockFilling:
    """Cuts the sections of one document, given in reading order, into blocks.

    Greedy sentence filling (section 4.1.1 of the paper), but a block never runs
    on into the next section, so that it has one heading. `paper` and `released` stop
    after the first `max_blocks` blocks, MatchBERT after the tokens of the first block.
    """

    def __init__(self, config: SmithConfig) -> None:
        self._config = config
        self._blocks_left = config.max_blocks
        self._tokens_left = config.capacity

    def __call__(self, sentence_ends: Sequence[int]) -> list[TokenWindow]:
        """The blocks of the next section; see `fill_windows`."""
        config = self._config
        if config.variant is not Variant.FIXED and not config.is_hierarchical:
            n_tokens = min(self._tokens_left, sentence_ends[-1] if sentence_ends else 0)
            self._tokens_left -= n_tokens
            return [TokenWindow(0, n_tokens)] if n_tokens else []
        fill = fill_windows if config.variant is Variant.FIXED else fill_truncating
        blocks = fill(sentence_ends, config.capacity)
        if config.variant is not Variant.FIXED:
            blocks = blocks[: self._blocks_left]
            self._blocks_left -= len(blocks)
        return blocks


def fill_truncating(sentence_ends: Sequence[int], capacity: int) -> list[TokenWindow]:
    """Greedy sentence filling as published: a sentence longer than a block is cut off; else as `fill_windows`."""
    windows: list[TokenWindow] = []
    first = stop = 0
    for end in sentence_ends:
        if end - first > capacity and stop > first:
            windows.append(TokenWindow(first, min(stop, first + capacity)))
            first = stop
        stop = end
    if stop > first:
        windows.append(TokenWindow(first, min(stop, first + capacity)))
    return windows


def document_windows(blocks: Sequence[Chunk], max_blocks: int) -> list[TokenWindow]:
    """Windows of at most `max_blocks` blocks, cut between sections where that is possible.

    Sections fill a window as sentences fill a block; the numbers of a window count blocks.
    """
    n_blocks = len(blocks)
    borders = [at for at in range(1, n_blocks) if blocks[at].section != blocks[at - 1].section]
    return fill_windows([*borders, n_blocks], max_blocks)
