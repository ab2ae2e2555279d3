"""Measures other programs and longmatch on the same documents, parameters, threads and queries; writes a run each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np

from benchmarks.datasets import Dataset, Qrels, checksum, open_dataset, read_documents, read_qrels
from benchmarks.peers.peer import (
    DTYPES,
    PEERS,
    SAME_DTYPE,
    PeerConfig,
    check_packages,
    make_peer,
    peer_config,
    versions,
)
from benchmarks.peers.stages import Built, build_in_process, search_in_process
from benchmarks.program import Measurement, log, measurement, names_of, program
from benchmarks.quick import Size, quick_part, sized_part
from benchmarks.runs import Run, ranked_case
from benchmarks.tables.peers import PeerDetails, peers_table
from engine.encoders.files import MINILM_NAME
from engine.encoders.tokenizer import Tokenizer
from engine.errors import EngineError
from engine.machine import Origin

_BUILT_BY = {"st-chunks-sum": "st-chunks"}  # peers that search the files of another one
SPLIT, K = "test", 100
QUICK = Size(n_queries=6, n_targets=3, n_documents=30, n_words=400)


@dataclass(frozen=True)
class Trial:
    """The data that is equal for every peer, besides the values of `PeerConfig`."""

    dataset: Dataset
    label: str  # name@checksum
    qrels: Qrels
    n_tokens: np.ndarray  # (N,) of each document, special tokens not counted
    work: Path  # folder of the files of peers
    origin: Origin


def measure(name: str, config: PeerConfig, trial: Trial, builds: dict[Path, Built]) -> Run:
    """Build and search with a peer in separate processes; nothing else of the study runs in that time.

    `builds` are those of the study so far, by folder. A peer that searches the files of another one takes its build.
    """
    peer, at, window = name.partition("@")
    owner = _BUILT_BY.get(peer, peer)
    folder = trial.work / f"{owner}{at}{window}"
    if folder not in builds:
        log(f"{trial.dataset.name}: {name} builds")
        builds[folder] = build_in_process(owner, config, trial.dataset, folder)
    built = builds[folder]
    log(f"{trial.dataset.name}: {name} built from {built.n_documents:,} documents in {built.seconds:.1f} s, searches")
    searched = search_in_process(peer, config, trial.dataset, list(trial.qrels), K, folder)
    read = trial.n_tokens if built.reads is None else np.minimum(trial.n_tokens, built.reads)
    details = PeerDetails(
        shared=config.label,
        versions=versions(peer),
        dtype=config.dtype,
        threads=config.threads,
        depth=K,
        keeps_text=built.keeps_text,
        n_documents=built.n_documents,
        tokens_per_document=round(float(read.mean()), 1),
        load_seconds=built.load_seconds,
        documents_per_second=round(built.n_documents / built.seconds, 2),
        open_seconds=searched.open_seconds,
        latency=searched.latency,
        index_bytes=built.size_bytes,
        start_mib=built.start_mib,
        build_peak_mib=built.peak_mib,
        search_peak_mib=searched.peak_mib,
    )
    return Run(
        task="peers",
        dataset=trial.label,
        system=name,
        encoder=built.encoder,
        variant=f"{config.dtype}-threads{config.threads}-k{K}",
        split=SPLIT,
        k=K,
        origin=trial.origin,
        settings=built.settings if peer == owner else make_peer(peer, config).settings,
        fit_seconds=built.seconds,
        seconds=round(searched.seconds, 2),
        details=asdict(details),
        cases=[ranked_case(query_id, searched.rankings[query_id], own) for query_id, own in trial.qrels.items()],
    )


def measure_each(
    peers: Sequence[str], config: PeerConfig, trial: Trial, call: Measurement
) -> tuple[list[Run], dict[str, str]]:
    """Measure peers one by one, and write each run when it is finished; returns the runs, and the failures by peer."""
    runs, failed, builds = list[Run](), dict[str, str](), dict[Path, Built]()
    for peer in peers:
        name = f"{peer}@{config.window_tokens}" if PEERS[peer].has_chunks else peer
        try:
            runs.append(measure(name, config, trial, builds))
        except EngineError as error:
            failed[peer] = f"{name}: {error}"
            continue
        call.keep(runs[-1])
    return runs, failed


def _token_counts(dataset: Dataset, config: PeerConfig) -> np.ndarray:
    """(N,) tokens of each document, special tokens not counted."""
    tokenizer = Tokenizer(config.backbone)
    return np.array([len(tokenizer.tokenize([document.text])[0][0]) for document in read_documents(dataset)])


@program
@click.argument("name", metavar="DATASET")
@click.option("--peers", default=",".join(PEERS), callback=names_of(PEERS), help="Peers, separated by commas.")
@click.option("--encoder", default=MINILM_NAME, help="Encoder of all peers.")
@click.option(
    "--dtype",
    default=SAME_DTYPE,
    type=click.Choice(DTYPES),
    help="Precision of the parameters; same: the precision of longmatch on this machine.",
)
@click.option("--threads", default=os.cpu_count() or 1, show_default="all cores", type=click.IntRange(1))
@click.option(
    "--documents",
    "n_documents",
    type=click.IntRange(20),
    help="Size of a seeded part of whole documents, with a tenth as many queries; for corpora that would take hours.",
)
@measurement(
    seed="Seed of the part, the tests and the intervals.",
    quick="A few dozen shortened documents",
    data=True,
    work="Folder for the indexes of peers, kept; by default a temporary one.",
)
def main(
    call: Measurement,
    name: str,
    peers: tuple[str, ...],
    encoder: str,
    dtype: str,
    threads: int,
    n_documents: int | None,
) -> None:
    """Measure other programs on DATASET, a task by name or a folder, and write a run for each.

    \b
    Example:
        python -m benchmarks study peers proposals --quick
        python -m benchmarks study peers rfc --documents 400 --peers longmatch,st-chunks,txtai --threads 2
    """
    if n_documents and call.is_quick:
        raise click.UsageError("--documents does not go with --quick; take one of them")
    check_packages(peers)
    config = peer_config(encoder, dtype=dtype, threads=threads)
    dataset = open_dataset(name, call.data)
    with call.folder() as work:
        folder = Path(tempfile.mkdtemp(prefix="peers-", dir=work))
        if call.is_quick:
            dataset = quick_part(dataset, SPLIT, folder, seed=call.seed, size=QUICK)
        elif n_documents:
            dataset = sized_part(dataset, SPLIT, folder, n_documents, seed=call.seed)
        qrels = read_qrels(dataset, SPLIT)
        label = f"{dataset.name}@{checksum(dataset)}"
        trial = Trial(dataset, label, qrels, _token_counts(dataset, config), folder, call.origin)
        runs, failed = measure_each(peers, config, trial, call)
    click.echo(peers_table(runs))
    if failed:
        raise click.ClickException(
            f"{' | '.join(failed.values())}. {len(failed)} of {len(failed) + len(runs)} failed; to measure those alone "
            f"again: --peers {','.join(failed)}"
        )
