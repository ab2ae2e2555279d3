"""Building and searching with one peer, each in a separate process with its own memory and threads."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.datasets import Dataset, read_documents, read_queries
from benchmarks.isolation import (
    SETTINGS,
    Percentiles,
    ProcessFailed,
    limited_threads,
    peak_rss_mib,
    percentiles,
    rss_mib,
    run_fresh,
)
from benchmarks.peers.peer import Peer, PeerConfig, make_peer
from benchmarks.systems import Ranking, Settings
from engine.text.document import Document

WARM_UP = 3  # queries that are searched before a measurement and not counted


@dataclass(frozen=True)
class Built:
    """The cost of building, and the properties of the peer."""

    encoder: str
    settings: Settings
    keeps_text: bool
    reads: int | None  # most tokens of a document; None for all
    n_documents: int
    load_seconds: float  # of imports and the encoder
    seconds: float
    start_mib: float  # resident memory with imports and encoder, before documents are read
    peak_mib: float
    size_bytes: int  # of all files written


@dataclass(frozen=True)
class Searched:
    """The cost of searching, and the rankings."""

    open_seconds: float
    seconds: float  # of all queries
    latency: Percentiles  # from a whole document to a ranking, including encoding
    peak_mib: float
    rankings: dict[str, Ranking]  # by query id


def build_in_process(name: str, config: PeerConfig, dataset: Dataset, folder: Path) -> Built:
    """Let a peer build from all documents of a dataset, read as a stream, into a new folder."""
    folder.mkdir(parents=True)
    return Built(**_in_process(_build, name, config, dataset, folder))


def search_in_process(
    name: str, config: PeerConfig, dataset: Dataset, query_ids: list[str], k: int, folder: Path
) -> Searched:
    """Let a peer search with queries one by one in the files that it built."""
    answer = _in_process(_search, name, config, dataset, folder, query_ids, k)
    rankings = {
        query_id: [(doc_id, score) for doc_id, score in found] for query_id, found in answer["rankings"].items()
    }
    return Searched(**{**answer, "latency": Percentiles(**answer["latency"]), "rankings": rankings})


def _in_process(stage: Callable[..., dict[str, Any]], name: str, *given: object) -> dict[str, Any]:
    variables = {variable: os.environ.get(variable, value) for variable, value in SETTINGS.items()}
    try:
        return run_fresh(stage, name, *given, variables=variables)[0]
    except ProcessFailed as error:
        raise ProcessFailed(f"the peer {name}: {error}; mend that, or leave it out of --peers") from error


def _build(name: str, config: PeerConfig, dataset: Dataset, folder: Path) -> dict[str, Any]:
    with limited_threads(config.threads, width=config.width):
        return asdict(build(lambda: make_peer(name, config), read_documents(dataset), folder))


def _search(
    name: str, config: PeerConfig, dataset: Dataset, folder: Path, query_ids: list[str], k: int
) -> dict[str, Any]:
    queries = read_queries(dataset, query_ids)
    with limited_threads(config.threads, width=config.width):
        return asdict(search(lambda: make_peer(name, config), queries, k, folder))


def build(make: Callable[[], Peer], documents: Iterable[Document], folder: Path) -> Built:
    """Let a peer build in this process; imports and loading the encoder are timed separately."""
    started = time.perf_counter()
    peer = make()
    load_seconds = time.perf_counter() - started
    start_mib = rss_mib()
    n_documents = 0

    def counted() -> Iterator[Document]:
        nonlocal n_documents
        for n_documents, document in enumerate(documents, start=1):  # noqa: B007
            yield document

    started = time.perf_counter()
    peer.build(counted(), folder)
    seconds = time.perf_counter() - started
    return Built(
        encoder=peer.encoder,
        settings=peer.settings,
        keeps_text=peer.keeps_text,
        reads=peer.reads,
        n_documents=n_documents,
        load_seconds=round(load_seconds, 2),
        seconds=round(seconds, 3),
        start_mib=round(start_mib, 1),
        peak_mib=round(peak_rss_mib(), 1),
        size_bytes=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
    )


def search(make: Callable[[], Peer], queries: Mapping[str, Document], k: int, folder: Path) -> Searched:
    """Let a peer open its files and search with queries; before, the first `WARM_UP` queries are searched untimed."""
    peer = make()
    started = time.perf_counter()
    peer.open(folder)
    open_seconds = time.perf_counter() - started
    for query in list(queries.values())[:WARM_UP]:
        peer.search(query, k)
    rankings, times_ms = {}, []
    for query_id, query in queries.items():
        started = time.perf_counter()
        rankings[query_id] = peer.search(query, k)
        times_ms.append(1000 * (time.perf_counter() - started))
    return Searched(
        round(open_seconds, 3), sum(times_ms) / 1000, percentiles(times_ms), round(peak_rss_mib(), 1), rankings
    )
