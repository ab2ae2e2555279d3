"""Rebuilds a corpus of the benchmarks from its public sources, and compares the copy with the recorded corpus."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from benchmarks.datasets import QUERIES, TASKS, checksum, open_dataset
from benchmarks.fetching import aila_casedocs, clscisumm, proposals, rfc, wikipedia_seealso
from benchmarks.fetching.sources import (
    HEADER,
    CorpusDocument,
    FetchError,
    Judged,
    Recipe,
    Recorded,
    Source,
    document_digest,
    download,
    find_downloads,
    judgment_lines,
    read_members,
    read_recorded,
    source_digest,
)
from benchmarks.formats.trec import write_json_lines
from benchmarks.program import WORK, log, program
from engine.errors import EngineError

RECIPES = {
    module.RECIPE.name: module.RECIPE for module in (proposals, clscisumm, wikipedia_seealso, rfc, aila_casedocs)
}
_SHOWN = 5  # ids of documents that differ


@dataclass(frozen=True)
class Rebuilt:
    """How a rebuilt corpus compares with the recorded one."""

    folder: Path
    n_recorded: int  # documents of the recorded corpus
    different: Sequence[str]  # ids of documents whose title or text differs
    missing: Sequence[str]  # ids of documents that are not in the sources
    has_recorded_sources: bool  # whether the source files equal the recorded ones, byte for byte
    checksums: Mapping[str, tuple[str, str]]  # by task: of this copy, and of the recorded corpus
    left_out: str

    def __str__(self) -> str:
        """The comparison, and which figures can be compared."""
        n_equal = self.n_recorded - len(self.different) - len(self.missing)
        is_identical = all(here == there for here, there in self.checksums.values())  # byte for byte
        lines = [
            f"{self.folder}: {self.n_recorded - len(self.missing):,} documents",
            f"Equal to the recorded corpus: {n_equal:,} of {self.n_recorded:,} ({n_equal / self.n_recorded:.1%})",
            *_named("Different text", self.different),
            *_named("Not in the sources", self.missing),
            f"Source files: {'as recorded' if self.has_recorded_sources else 'not the recorded ones'}",
            *(f"Checksum of {task}: {here}, recorded {there}" for task, (here, there) in self.checksums.items()),
            *([f"Not rebuilt: {self.left_out}"] if self.left_out else []),
            (
                "This copy is the recorded corpus: all published figures can be compared with figures on this copy."
                if is_identical
                else "Figures on this copy (retrieval, pairs, peers) differ from the published ones in the "
                "third digit; state the checksum of the copy beside them."
            ),
        ]
        return "\n".join(lines)


def _named(label: str, ids: Sequence[str]) -> list[str]:
    rest = ", ..." if len(ids) > _SHOWN else ""
    return [f"{label}: {len(ids):,} ({', '.join(ids[:_SHOWN])}{rest})"] if ids else []


def rebuild(recipe: Recipe, to: Path, downloads: Path, *, is_offline: bool) -> Rebuilt:
    """Make the folder of a corpus inside `to`, from sources in `downloads`; offline, none is downloaded."""
    folder = to / recipe.name
    if (folder / "corpus.jsonl.gz").exists():
        raise FetchError(f"{folder} holds a corpus already; pass another --to, or delete the folder first")
    recorded = None if recipe.facts else read_recorded(recipe.name)
    paths = [path for source in recipe.sources for path in _source_paths(source, downloads, is_offline)]
    files = _read_files(recipe, recorded, paths)
    if recorded is None:
        assert recipe.facts is not None
        recorded = recipe.facts(files)
    log(f"converting {len(files)} files")
    documents = list(recipe.documents(recorded, files))
    if not documents:
        raise FetchError(f"{', '.join(map(str, paths))}: no document of {recipe.name} is inside; check the downloads")
    queries = list(recipe.queries(recorded, files)) if recipe.queries else None
    _write(folder, recorded, documents, queries)
    digests = {str(document["id"]): document_digest(document) for document in documents}
    pairs = list(zip(recorded.ids, recorded.digests, strict=True))
    tasks = [name for name, task in TASKS.items() if task.folder == recipe.name]
    return Rebuilt(
        folder,
        len(recorded.ids),
        [doc_id for doc_id, digest in pairs if doc_id in digests and digests[doc_id] != digest],
        [doc_id for doc_id in recorded.ids if doc_id not in digests],
        source_digest({key: data for key, data in files.items() if recipe.is_text(key)}) == recorded.source,
        {name: (checksum(open_dataset(name, to)), recorded.checksums[name]) for name in tasks},
        recipe.left_out,
    )


def _source_paths(source: Source, downloads: Path, is_offline: bool) -> list[Path]:
    found = find_downloads(source, downloads)
    if found or (is_offline and source.is_optional):
        return found
    if is_offline:
        raise FetchError(f"{downloads} holds no {source.file}")
    return [download(source, downloads)]


def _read_files(recipe: Recipe, recorded: Recorded | None, paths: Iterable[Path]) -> dict[str, bytes]:
    """The files that the recipe uses, by key; the first file of a key is used."""
    files: dict[str, bytes] = {}
    ids = set(recorded.ids) if recorded else set()
    one_file_each = recorded is not None and not recorded.given  # a key is the id of its document, and ".txt" for some

    def is_wanted(name: str) -> bool:
        key = recipe.key(name)
        is_unused = one_file_each and recipe.is_text(key) and key.removesuffix(".txt") not in ids
        return bool(key) and key not in files and not is_unused

    for path in paths:
        log(f"reading {path}")
        single = not path.is_dir() and path.suffix == ".xml"
        members = [(path.name, path.read_bytes())] if single else read_members(path, is_wanted)
        for name, data in members:
            files.setdefault(recipe.key(name), data)
    return files


def _write(
    folder: Path, recorded: Recorded, documents: Sequence[CorpusDocument], queries: Sequence[CorpusDocument] | None
) -> None:
    """Write all files, the corpus last, so that a folder with a corpus is complete."""
    ids = {str(document["id"]) for document in documents}
    query_ids = ids | {str(query["id"]) for query in queries or ()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, judged in recorded.judgments.items():
        lines = judgment_lines(_kept(judged, query_ids, ids))
        (folder / name).write_text(HEADER + "".join(lines), "utf-8")
    for name, splits in recorded.splits.items():
        kept = {split: [query_id for query_id in listed if query_id in query_ids] for split, listed in splits.items()}
        (folder / name).write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        if "train" not in splits:
            continue
        judged = recorded.judgments[name.replace("splits", "qrels").replace(".json", ".tsv")]
        pairs = train_pairs(_kept(judged, query_ids, ids), kept)
        path = folder / name.replace("splits", "train_pairs").replace(".json", ".tsv")
        path.write_text(HEADER + "".join(pairs), "utf-8")
    if queries is not None:
        write_json_lines(folder / QUERIES, queries)
    write_json_lines(folder / "corpus.jsonl.gz", documents)


def train_pairs(judged: Judged, splits: Mapping[str, Sequence[str]]) -> list[str]:
    """Judgments of training queries without held-out queries as targets, since a mutual link would leak a test pair."""
    held_out = {query_id for split, listed in splits.items() if split != "train" for query_id in listed}
    train = set(splits["train"])
    lines = judgment_lines({query_id: targets for query_id, targets in judged.items() if query_id in train})
    return [line for line in lines if line.split("\t")[1] not in held_out]


def _kept(judged: Judged, query_ids: Collection[str], ids: Collection[str]) -> Judged:
    return {
        query_id: {relevance: [target for target in targets if target in ids] for relevance, targets in by.items()}
        for query_id, by in judged.items()
        if query_id in query_ids
    }


def _by_hand(recipe: Recipe, to: Path, downloads: Path) -> str:
    """The address and name of each file that cannot be downloaded, then the command."""
    lines = [f"  {source.url}\n    as {downloads / source.file}" for source in recipe.sources]
    command = f"python -m benchmarks fetch {recipe.name} --to {to} --from {downloads}"
    return "\n".join(["Download by hand:", *lines, f"Then run: {command}"])


@program
@click.argument("name", metavar="CORPUS", type=click.Choice(list(RECIPES)))
@click.option(
    "--to", required=True, type=click.Path(path_type=Path), help="Folder of datasets; CORPUS becomes a folder in it."
)
@click.option(
    "--from",
    "downloaded",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with the downloaded sources; nothing is downloaded then.",
)
@click.option(
    "--downloads",
    default=WORK / "downloads",
    type=click.Path(path_type=Path),
    help="Folder for downloads; an interrupted download is resumed.",
)
def main(name: str, to: Path, downloaded: Path | None, downloads: Path) -> None:
    """Rebuild CORPUS from its public sources, in the layout that --data expects.

    CORPUS is proposals, clscisumm, wikipedia_seealso or rfc. The texts are
    converted and masked as in the recorded corpus; the list of documents, the
    judgments and the splits are the recorded ones. The summary counts the
    documents whose text differs.

    \b
    Example:
        python -m benchmarks fetch proposals --to data
        python -m benchmarks run retrieval proposals --systems bm25 --data data --out my_results
    """
    recipe = RECIPES[name]
    try:
        rebuilt = rebuild(recipe, to, downloaded or downloads, is_offline=downloaded is not None)
    except EngineError as error:
        raise click.ClickException(f"{error}\n{_by_hand(recipe, to, downloaded or downloads)}") from error
    click.echo(str(rebuilt))
