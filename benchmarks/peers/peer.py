"""The interface of a peer, all peers by name, each imported when it is made, and the parameters that they share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module, metadata
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from benchmarks.packages import require
from benchmarks.prepare import label_of
from benchmarks.systems import Ranking, Settings
from benchmarks.tables.findings import OURS
from engine.encoders.backbone import Backbone
from engine.encoders.encoder import Pooling
from engine.encoders.files import CONFIG_FILE, read_json, resolve_backbone
from engine.encoders.hardware import default_dtype
from engine.errors import EncoderError
from engine.text.document import Document

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Transformer


@dataclass(frozen=True)
class PeerConfig:
    """The values that all peers of a run share: parameters, precision, threads."""

    encoder: str  # name for `load_encoder`, by which longmatch loads it
    backbone: Path  # the folder of its parameters, which every other peer loads
    label: str  # of the parameters, name@sha256
    pooling: str  # "mean" or "cls"
    max_tokens: int  # most tokens of a sequence, special tokens counted
    n_special: int  # special tokens of a sequence
    width: int  # of the vectors
    dtype: str  # of the parameters in memory, as a name of torch
    threads: int
    window_tokens: int = 256  # of a chunk, special tokens counted; the limit in the configuration of all-MiniLM-L6-v2


class Peer(Protocol):
    """A search program, driven through its public interface; a `System` once it is open.

    The constructor loads the encoder, so that the times of building and searching do not include it.
    """

    @property
    def name(self) -> str:
        """Short and lower case."""

    @property
    def encoder(self) -> str:
        """The parameters as name@sha256."""

    @property
    def settings(self) -> Settings:
        """The values that determine the ranking, besides documents and encoder."""

    @property
    def reads(self) -> int | None:
        """The most tokens that it reads of a document, special tokens not counted; None for all tokens."""

    @property
    def keeps_text(self) -> bool:
        """Whether its files on disk include the text of documents."""

    def build(self, documents: Iterable[Document], folder: Path) -> None:
        """Read a stream of documents once, and write all files for a search into an empty folder."""

    def open(self, folder: Path) -> None:
        """Open the files of `build` for searching, in the same process or another."""

    def search(self, query: Document, k: int) -> Ranking:
        """At most `k` targets for a whole document, best first; a target with the query's doc_id is left out."""


EXTRA = "peers"


@dataclass(frozen=True)
class Entry:
    """The module and class of a peer, and the arguments of its constructor."""

    module: str
    made: str
    packages: Mapping[str, str] = field(default_factory=dict)  # module to import: distribution to install
    variant: Mapping[str, object] = field(default_factory=dict)
    has_chunks: bool = False  # whether it can be measured with several lengths of chunks


_SENTENCES = MappingProxyType({"sentence_transformers": "sentence-transformers"})
PEERS: Mapping[str, Entry] = {
    OURS: Entry("longmatch", "Longmatch"),
    "st-first-256": Entry("chunk_vectors", "FirstTokens", _SENTENCES, {"tokens": 256}),
    "st-first-512": Entry("chunk_vectors", "FirstTokens", _SENTENCES, {"tokens": 512}),
    "st-chunks": Entry("chunk_vectors", "ChunkVectors", _SENTENCES, {"aggregate": "max"}, has_chunks=True),
    "st-chunks-sum": Entry("chunk_vectors", "ChunkVectors", _SENTENCES, {"aggregate": "sum"}, has_chunks=True),
    "txtai": Entry("txtai_chunks", "TxtaiChunks", {"txtai": "txtai"}, has_chunks=True),
    "late-interaction": Entry("chunk_vectors", "LateInteraction", _SENTENCES),
    "lancedb": Entry("lancedb_chunks", "LancedbChunks", {**_SENTENCES, "lancedb": "lancedb"}, has_chunks=True),
}


def check_packages(names: Collection[str]) -> None:
    """Check that the packages of peers are installed, without importing them."""
    for name in names:
        require(f"the peer {name}", PEERS[name].packages, EXTRA)


def make_peer(name: str, config: PeerConfig) -> Peer:
    """Import a peer of `PEERS` and load its encoder."""
    entry = PEERS[name]
    made: Peer = getattr(import_module(f"benchmarks.peers.{entry.module}"), entry.made)(config, **entry.variant)
    return made


def versions(name: str) -> dict[str, str]:
    """The versions of a peer's packages, by distribution; empty for longmatch, whose version is the commit."""
    return {distribution: metadata.version(distribution) for distribution in PEERS[name].packages.values()}


SAME_DTYPE = "same"
DTYPES = (SAME_DTYPE, "float32", "bfloat16")


def peer_config(encoder: str, *, dtype: str, threads: int) -> PeerConfig:
    """The configuration with which peers use the parameters of an encoder of longmatch.

    Args:
        encoder: a name for `load_encoder`; it must be a backbone with pooling and no further layers, such as
            all-MiniLM-L6-v2 or a trained encoder of the kind "mean", or an `EncoderError` is raised.
        dtype: one of `DTYPES`; "same" is the default precision of longmatch on this machine.
    """
    folder = resolve_backbone(encoder)
    values = read_json(folder / CONFIG_FILE) if (folder / CONFIG_FILE).exists() else {}
    kind = values.get("encoder", "mean")
    if kind != "mean":
        raise EncoderError(
            f"encoder {encoder!r} is of the kind {kind!r}, whose layers no peer can load; peers share encoders of the "
            "kind 'mean': name one, or a backbone, as all-MiniLM-L6-v2"
        )
    backbone = Backbone(folder, device="cpu")
    return PeerConfig(
        encoder=encoder,
        backbone=folder,
        label=label_of(encoder, backbone.sha256),
        pooling=values.get("pooling", Pooling.MEAN.value),
        max_tokens=backbone.max_tokens + backbone.tokenizer.n_special,
        n_special=backbone.tokenizer.n_special,
        width=backbone.width,
        dtype=str(default_dtype("cpu")).removeprefix("torch.") if dtype == SAME_DTYPE else dtype,
        threads=threads,
    )


def transformer(config: PeerConfig, max_tokens: int) -> Transformer:
    """The backbone as the first module of sentence-transformers; `max_tokens` counts special tokens."""
    from sentence_transformers.base.modules import Transformer

    arguments = {"use_safetensors": True, "dtype": config.dtype, "local_files_only": True}
    module = Transformer(str(config.backbone), model_kwargs=arguments, processor_kwargs={"local_files_only": True})
    module.max_seq_length = min(max_tokens, config.max_tokens)
    return module


def sentence_encoder(config: PeerConfig, max_tokens: int) -> SentenceTransformer:
    """The backbone as a model of sentence-transformers that returns unit vectors."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule

    first = transformer(config, max_tokens)
    pooling = PoolingModule(first.get_embedding_dimension(), config.pooling)
    return SentenceTransformer(modules=[first, pooling, Normalize()], device="cpu")
