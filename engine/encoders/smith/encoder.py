"""SMITH, the siamese hierarchical encoder of sentence blocks, as an `Encoder`: making, loading, saving, encoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.encoders.backbone.batching import BatchReader, token_budget_batches
from engine.encoders.backbone.hardware import default_device, default_dtype, set_up_kernels
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.chunking import chunk_document
from engine.encoders.encoder import SegmentedDocument, Variant
from engine.encoders.files import CONFIG_FILE, read_configuration
from engine.encoders.parameters import Loaded, load_weights, save_weights
from engine.encoders.smith.config import Overflow, SmithConfig
from engine.encoders.smith.layers import SmithModule, take_over
from engine.encoders.trainable import TOKEN_BUDGET, Attended, Embedded, TrainableEncoder, pad_chunks, read_chunks
from engine.errors import EncoderError
from engine.text.document import Document
from engine.text.segmentation import TokenWindow, fill_windows
from engine.text.spans import Chunk

WEIGHTS_FILE = "smith.safetensors"
BLOCK_BUDGET = 1536  # of one pass over documents: 32 windows of 48


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
        """Wrap a module that is on `device`.

        Raises:
            EncoderError: the tokenizer is not of BERT's kind.
        """
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

        Raises:
            EncoderError: a folder does not hold what is required of it.
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
        padded, mask = pad_chunks([torch.cat(own) for own in rows])
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
        fill = fill_windows if config.overflow is Overflow.WRAP else fill_truncating
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
