"""Measures other programs and longmatch on the same documents, parameters, threads and queries; writes a run each.

A peer with an existing run of the same commit, data and versions is not measured again: after a failure, the same
command resumes.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import click
import numpy as np

from benchmarks.datasets import Dataset, Qrels, checksum, open_dataset, read_documents, read_qrels
from benchmarks.isolation import warm_up
from benchmarks.measurement import Measurement, measurement
from benchmarks.peers.peer import PEERS, PeerConfig, check_packages, make_peer, versions
from benchmarks.peers.shared_weights import DTYPES, SAME_DTYPE, peer_config
from benchmarks.peers.stages import Built, build_in_process, search_in_process
from benchmarks.program import log, names_of, program
from benchmarks.quick import Size, quick_part, sized_part
from benchmarks.runs import Run, ranked_case, read_run, run_path
from benchmarks.tables.peers import PeerDetails, peers_table
from engine.encoders.backbone.tokenizer import Tokenizer
from engine.encoders.files import MINILM_NAME
from engine.errors import EngineError
from indexer.origin import Origin

_BUILT_BY = {"st-chunks-sum": "st-chunks"}  # peers that search the files of another one
QUICK = Size(n_queries=6, n_targets=3, n_documents=30, n_words=400)


@dataclass(frozen=True)
class Trial:
    """The data that is equal for every peer, besides the values of `PeerConfig`."""

    dataset: Dataset
    label: str  # name@checksum
    split: str
    qrels: Qrels
    k: int
    n_tokens: np.ndarray  # (N,) of each document, special tokens not counted
    work: Path  # folder of the files of peers
    origin: Origin


def begun_run(name: str, config: PeerConfig, trial: Trial) -> Run:
    """The run of a peer before measurement, with its name, versions and cases without rankings."""
    return Run(
        task="peers",
        dataset=trial.label,
        system=name,
        encoder=config.label,
        variant=f"{config.dtype}-threads{config.threads}-k{trial.k}",
        split=trial.split,
        k=trial.k,
        details={"versions": versions(name.partition("@")[0])},
        origin=trial.origin,
        cases=[ranked_case(query_id, [], targets) for query_id, targets in trial.qrels.items()],
    )


def kept_run(begun: Run, out: Path) -> Run | None:
    """The existing run of the same peer, data, versions, commit and machine; None if there is none."""
    path = run_path(begun, out)
    if not path.exists():
        return None
    found = read_run(path)
    same = [
        (run.dataset, run.case_ids, run.details["versions"], run.origin.commit, run.origin.machine)
        for run in (found, begun)
    ]
    return found if same[0] == same[1] else None


def measure(name: str, config: PeerConfig, trial: Trial, builds: dict[Path, Built]) -> Run:
    """Build and search with a peer in separate processes; nothing else of the study runs in that time.

    `builds` are those of the study so far, by folder. A peer that searches the files of another one takes its build.
    """
    begun, (peer, at, window) = begun_run(name, config, trial), name.partition("@")
    owner = _BUILT_BY.get(peer, peer)
    folder = trial.work / f"{owner}{at}{window}"
    if folder not in builds:
        log(f"{trial.dataset.name}: {name} builds")
        builds[folder] = build_in_process(owner, config, trial.dataset, folder)
    built = builds[folder]
    log(f"{trial.dataset.name}: {name} built from {built.n_documents:,} documents in {built.seconds:.1f} s, searches")
    searched = search_in_process(peer, config, trial.dataset, list(trial.qrels), trial.k, folder)
    read = trial.n_tokens if built.reads is None else np.minimum(trial.n_tokens, built.reads)
    details = PeerDetails(
        shared=config.label,
        versions=begun.details["versions"],
        dtype=config.dtype,
        threads=config.threads,
        depth=trial.k,
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
    return replace(
        begun,
        encoder=built.encoder,
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
    warm_up()
    runs, failed, builds = list[Run](), dict[str, str](), dict[Path, Built]()
    for peer in peers:
        name = f"{peer}@{config.window_tokens}" if PEERS[peer].has_chunks else peer
        run = kept_run(begun_run(name, config, trial), call.out) if call.out else None
        if run is not None:
            log(f"{trial.dataset.name}: the run of {name} is there, of the same commit, data and versions")
        else:
            try:
                run = measure(name, config, trial, builds)
            except EngineError as error:
                failed[name] = str(error)
                continue
            call.keep(run)
        runs.append(run)
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
@click.option("--split", default="test", help="Split to search with.")
@click.option("-k", "--top", "k", default=100, type=click.IntRange(100), help="Depth of rankings.")
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
    split: str,
    k: int,
    n_documents: int | None,
) -> None:
    """Measure other programs on DATASET, a task by name or a folder, and write a run for each.

    An existing run of the same commit, data and versions is kept; the same command measures the others.

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
            dataset = quick_part(dataset, split, folder, seed=call.seed, size=QUICK)
        elif n_documents:
            dataset = sized_part(dataset, split, folder, n_documents, seed=call.seed)
        qrels = read_qrels(dataset, split)
        label = f"{dataset.name}@{checksum(dataset)}"
        trial = Trial(dataset, label, split, qrels, k, _token_counts(dataset, config), folder, call.origin)
        runs, failed = measure_each(peers, config, trial, call)
    click.echo(peers_table(runs))
    if failed:
        raise click.ClickException(
            f"{' | '.join(failed.values())}. {len(failed)} of {len(failed) + len(runs)} failed; the same command "
            "measures those alone again"
        )
