"""`longmatch index`: create or update an index."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from engine.environment import check_extra
from engine.errors import command_line
from engine.report.lines import counted, duration, megabytes
from engine.store.catalog import holds_index
from engine.text.document import Document
from indexer.cli.options import (
    FAILED,
    PARTLY,
    STDIN,
    GroupedCommand,
    Reading,
    collected,
    device_option,
    index_argument,
    json_option,
    opened_reader,
    option,
    ray_option,
    reading_options,
)
from indexer.cli.terminal import BuildProgress, echo, echo_text, log

if TYPE_CHECKING:
    from engine.readers import Unreadable
    from indexer.building.builder import Settings
    from indexer.building.corpus import CorpusFiles
    from indexer.building.report import BuildReport
    from indexer.plan import Plan

_LANGUAGE_OF_ENCODER = "english"  # of the bundled one
_WAYS_LOGGED = {  # before a run
    "none": "words alone: no vectors, no model (--encode later adds vectors as queries need them)",
    "later": "words now, vectors of a sample now and others as queries need them (--encode all: all vectors now)",
    "all": "words and vectors of all documents (--encode later: first answers much sooner)",
}
_HEADINGS = {"text_field": "Documents", "way": "Vectors", "dry_run": "Estimate", "as_json": "Output"}


@dataclass(frozen=True)
class _Options:
    """The options of the command; those of a run are named as the fields of `Settings`."""

    way: Literal["none", "later", "all"] | None
    prune: bool
    id_prefix: str
    replace_files: bool
    dry_run: bool
    encoder: str | None
    dtype: str | None
    language: str | None
    partitions: int | None
    text_field: str | None
    title_field: str | None
    id_field: str | None
    citing_text: bool
    factory: str
    reading: Reading
    device: str | None
    ray_address: str | None
    n_workers: int | None
    as_json: bool

    @property
    def settings(self) -> Settings:
        """How documents are indexed; all get vectors unless the command decides otherwise."""
        from indexer.building.builder import Settings

        names = {field.name for field in fields(Settings)} & {field.name for field in fields(self)}
        return Settings(**{name: getattr(self, name) for name in names})


@click.command(cls=GroupedCommand, headings=_HEADINGS)
@index_argument
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@option("--text-field", metavar="NAME", help="Field of JSON records that holds the text; by default known names.")
@option("--title-field", metavar="NAME", help="Field of JSON records that holds the title.")
@option("--id-field", metavar="NAME", help="Field of JSON records that holds the id.")
@option("--citing-text", is_flag=True, help="Add to each document the sentences of the others of PATH that name it.")
@option("--prune", is_flag=True, help="Remove documents whose files are no longer under PATH.")
@option("--id-prefix", default="", metavar="TEXT", help="Put TEXT in front of each new doc_id, for example 2022/.")
@option(
    "--replace",
    "replace_files",
    is_flag=True,
    help="Let a file replace another file with the same doc_id; by default the new file fails.",
)
@option(
    "--language", metavar="NAME", help="Language of the documents, for stems and stop words; by default it is detected."
)
@option(
    "-p",
    "--partitions",
    type=click.IntRange(1),
    metavar="N",
    help="Spread the documents of a new INDEX over N partitions; see longmatch upkeep partition.",
)
@option(
    "--encode",
    "way",
    type=click.Choice(["none", "later", "all"]),
    help="Which documents get vectors: none; later: a sample now, others when queries need them; all: every "
    "document now. By default later; all without PATH; none for PATHs of an index of words alone.",
)
@option("--encoder", help="Encoder of a new index: a folder, a hub name, or by default the bundled longmatch-minilm.")
@option(
    "--dtype",
    type=click.Choice(["int8", "bfloat16", "float32"]),
    metavar="TYPE",
    help="Numbers of the encoder's products: float32 or bfloat16, by default the faster one here, with the same "
    "vectors; or int8, on CPUs, with vectors of its own that a new INDEX keeps to, by default where the bundled "
    "encoder is fastest so: with VNNI and without AMX.",
)
@option(
    "--factory",
    default="auto",
    metavar="STRING",
    help="FAISS factory string, for example Flat or IVF1024,PQ64x4fs; scan makes no FAISS index. By default one is "
    "chosen by size.",
)
@device_option
@ray_option("Encode on")
@option(
    "--workers",
    "n_workers",
    type=click.IntRange(1),
    metavar="N",
    help="With --ray, encoders that run at the same time; by default one for each GPU, or else for each core.",
)
@option("--dry-run", is_flag=True, help="Print what would be done and its estimated cost; write nothing.")
@reading_options
@json_option
@collected(options=_Options)
def index(index: Path, paths: tuple[str, ...], options: _Options) -> None:
    """Create or update INDEX from files, folders or patterns ('-' reads JSON lines from stdin).

    Unchanged documents are skipped, changed documents are replaced. To continue a
    run that was interrupted, run the same command again.

    The words of all documents are indexed at once. Vectors take most of the time:
    with --encode later a query encodes only its best candidates. Without PATH the
    documents that have no vectors yet are encoded.

    The doc_id of a file is its path below PATH, or its name if PATH is the file.
    If files of several folders would get the same doc_id, the doc_ids include the
    names of the folders. A file that is already in INDEX keeps its doc_id. A file
    that would get the doc_id of another existing file fails; use --id-prefix or
    --replace.

    With --ray the documents are encoded by a Ray cluster; vectors of all documents
    are made.

    Formats: .txt .rst .md .html .pdf .docx .odt .epub .vtt .srt .xml (JATS, TEI,
    patents, laws) .tex .json .jsonl .bib .ris, each also with .gz, and LaTeX sources
    of arXiv (.gz .tar.gz .tgz .tar), each one document.

    \b
    Example:
        longmatch index papers.lm ./papers notes/*.md
        longmatch index papers.lm ./papers --dry-run
        longmatch index papers.lm ./2022 --id-prefix 2022/
        longmatch index papers.parts ./papers --partitions 4
    """
    _check_arguments(index, paths, options)
    if options.dtype is not None:
        from indexer.building.builder import encoder_name

        name = encoder_name(index, options.encoder)
        options = replace(options, encoder=f"{name}:{options.dtype}")
    files = _files(paths, options)
    if options.language is not None:
        from engine.words.languages import check_language

        check_language(options.language)
    is_whole = options.ray_address is not None or not paths
    encode = options.way or ("all" if is_whole else _default_way(index, options.encoder))
    if options.dry_run:
        assert files is not None, "--dry-run needs a path"
        plan = _planned(index, files, options)
        echo_text(json.dumps(asdict(plan)) if options.as_json else describe_plan(plan))
        return
    report = _built(index, paths, files, options, encode)
    print_build(index, report, files, as_json=options.as_json)
    if options.language is None and report.n_added == report.n_seen:
        _note_no_language(index)
    if report.failures:
        sys.exit(PARTLY if report.n_seen > len(report.failures) else FAILED)


def _check_arguments(index: Path, paths: tuple[str, ...], options: _Options) -> None:
    of_paths = [("--citing-text", options.citing_text), ("--prune", options.prune), ("--dry-run", options.dry_run)]
    of_corpus = [name for name, is_given in of_paths if is_given]
    if of_corpus and not paths:
        raise click.UsageError(f"{of_corpus[0]} needs PATH...: the corpus as it is now")
    if not paths and not holds_index(index):
        typed = command_line("index", index, "PATH...")
        raise click.UsageError(f"{index} holds no index; name what to index: {typed}")
    _check_ray(options)


def _check_ray(options: _Options) -> None:
    if options.ray_address is None:
        if options.n_workers is not None:
            raise click.UsageError("--workers is for a Ray cluster; name one: --ray local")
        return
    others: dict[str, object] = {"--encode": options.way in ("none", "later"), "--dry-run": options.dry_run}
    for name, value in others.items():
        if value:
            raise click.UsageError(f"{name} does not go with --ray; leave one of them out")
    check_extra("ray", "longmatch index --ray", "Ray", "ray")


def _files(paths: tuple[str, ...], options: _Options) -> CorpusFiles | None:
    """The corpus of a run, None where it only encodes; a path that does not exist ends it here, before slow imports."""
    from engine.readers.fields import Fields
    from indexer.building.corpus import list_corpus

    fields = Fields(options.text_field, options.title_field, options.id_field)
    return list_corpus(paths, fields) if paths else None


def _default_way(index: Path, encoder: str | None) -> Literal["none", "later", "all"]:
    """The default of --encode with PATH: that of a first run which was stopped; an index of words alone stays one."""
    from engine.store.partitioned import stored_meta

    stored = stored_meta(index)
    if begun := stored.get("first_run"):
        way: Literal["none", "later", "all"] = begun["encode"]
        return way
    is_of_words = "encoder" not in stored and "counters" in stored
    return "none" if is_of_words and encoder is None else "later"


def _planned(index: Path, files: CorpusFiles, options: _Options) -> Plan:
    from indexer.building.builder import encoder_for
    from indexer.plan import make_plan

    return make_plan(
        index,
        files,
        encoder_for(index, options.encoder, options.device),
        factory=options.factory,
        read_limits=options.reading.limits,
        id_prefix=options.id_prefix,
    )


def _built(
    index: Path,
    paths: tuple[str, ...],
    files: CorpusFiles | None,
    options: _Options,
    encode: Literal["none", "later", "all"],
) -> BuildReport:
    from engine.words.languages import language_name
    from indexer.building.builder import begun, build
    from indexer.building.corpus import FileIds, read_corpus

    is_free = encode == "later" and options.way is None and options.encoder is None and not holds_index(index)
    with (
        opened_reader([path for path in paths if path != STDIN], options.reading) as reader,
        BuildProgress(None if files is None else files.n_documents) as progress,
    ):
        documents: Iterable[Document | Unreadable] = ()
        if files is not None:
            documents = read_corpus(files, reader, ids=FileIds(options.id_prefix, index))
        if options.citing_text:
            from engine.citing import with_citing_text

            documents = with_citing_text(documents)
        if is_free:
            first, documents = begun(documents)
            language = language_name(document.text for document in first if isinstance(document, Document))
            if language not in (_LANGUAGE_OF_ENCODER, "none"):
                encode = "none"
                progress.log(
                    f"most of the first documents are {language.capitalize()}, which the bundled encoder does not "
                    "read: words alone (--encoder NAME takes one that does, --encode later takes the bundled one)"
                )
        progress.log(_WAYS_LOGGED[encode])
        settings = replace(options.settings, encode=encode)
        if options.ray_address is None:
            return build(index, documents, settings, progress=progress, log=progress.log)
        from indexer.cluster.session import connected

        with connected(options.ray_address, options.n_workers) as cluster:
            from indexer.cluster.job import build_on_cluster  # imports Ray, which was set up by `connected`

            n = options.n_workers
            return build_on_cluster(
                index, documents, cluster, settings, n_workers=n, progress=progress, log=progress.log
            )


_MAX_FAILURES = 20  # that are printed
_MAX_NAMED = 8  # suffixes or files
_WAYS = {
    "none": "words alone",
    "later": "words, and a sample of vectors; queries encode what they need",
    "all": "words and all vectors",
}


def describe_plan(plan: Plan) -> str:
    """A plan line by line."""
    about = "" if plan.is_counted else "about "
    rows = [
        ("new", f"{about}{plan.n_new:,} documents"),
        ("changed", f"{about}{plan.n_changed:,}"),
        ("unchanged", f"{about}{plan.n_unchanged:,}"),
        ("unreadable", f"{about}{plan.n_unreadable:,}"),
        ("to encode", f"{about}{plan.n_tokens:,} tokens in {plan.n_chunks:,} chunks"),
        *(
            (
                f"--encode {way.encode}",
                f"about {duration(way.seconds)}, {way.n_tokens:,} tokens encoded, {megabytes(way.disk_bytes)} on disk: "
                f"{_WAYS[way.encode]}",
            )
            for way in plan.ways
        ),
    ]
    return "\n".join(f"{name:<16} {text}" for name, text in rows)


def print_build(index: Path, report: BuildReport, files: CorpusFiles | None = None, *, as_json: bool) -> None:
    """Print the report of a run over files."""
    unsupported = dict(files.unsupported) if files else {}
    parts = files.latex_parts if files else ()
    if as_json:
        left_out = {"unsupported_files": unsupported, "latex_parts": list(map(str, parts))}
        echo(json.dumps(asdict(report) | left_out))
        return
    encoded = f"; {report.n_encoded:,} encoded: {report.n_tokens:,} tokens" if report.n_tokens else ""
    echo(
        f"{report.n_added:,} added, {report.n_replaced:,} replaced, {report.n_unchanged:,} unchanged, "
        f"{report.n_removed:,} removed, {len(report.failures):,} failed{encoded} in {duration(report.seconds)}"
    )
    if report.n_recognised:
        echo(f"{counted(report.n_recognised, 'document')} with pages read by OCR")
    if report.n_numbered:
        count = counted(report.n_numbered, "record")
        echo(f"{count} without an id, named by place in the file: add others at its end, or name a field: --id-field")
    if report.n_missing:
        echo(_missing_line(index, report))
    if report.n_sections_merged or report.n_sections_cut:
        echo(
            f"tiny sections joined with a neighbour: {report.n_sections_merged:,}; "
            f"parts of long sections: {report.n_sections_cut:,}"
        )
    if unsupported:
        echo(f"not indexed, no supported format: {_first([f'{suffix} ({n:,})' for suffix, n in unsupported.items()])}")
    if parts:
        count = counted(len(parts), "file")
        echo(f"part, figure, draft or reference list of a document, {count}: {_first([part.name for part in parts])}")
    _print_faults(index, report)


def _note_no_language(index: Path) -> None:
    """Say that a new index has no language, which it keeps."""
    from engine.store.partitioned import stored_meta

    if stored_meta(index).get("language") == "none":
        log(
            "no known language was detected, so words keep their forms and none is a stop word; a new index "
            "with --language NAME has both"
        )


def _print_faults(index: Path, report: BuildReport) -> None:
    """Print the documents that could not be read, and those that were perhaps not read whole."""
    for failure in report.failures[:_MAX_FAILURES]:
        log(f"failed: {failure.source}: {failure.reason}")
    if len(report.failures) > _MAX_FAILURES:
        listed = command_line("show", index, "--failures") if index.exists() else "--json lists them"
        log(f"and {len(report.failures) - _MAX_FAILURES:,} more: {listed}")
    for doubt in report.doubts[:_MAX_FAILURES]:
        log(f"warning: {doubt.source}: {doubt.reason}")
    if len(report.doubts) > _MAX_FAILURES:
        log(f"warnings about {len(report.doubts) - _MAX_FAILURES:,} more documents: --json lists them")


def _first(names: Sequence[str]) -> str:
    return ", ".join([*names[:_MAX_NAMED], *(["..."] if len(names) > _MAX_NAMED else [])])


def _missing_line(index: Path, report: BuildReport) -> str:
    """Documents and tokens left to encode, the time if this run encoded any, and the command that encodes them."""
    from engine.store.partitioned import stored_meta

    some = "1 document has" if report.n_missing == 1 else f"{report.n_missing:,} documents have"
    left = f"{some} no vectors yet: about {report.tokens_missing:,} tokens"
    if report.n_tokens and report.encode_seconds:
        left += f", {duration(report.tokens_missing / report.n_tokens * report.encode_seconds)}"
    meta = stored_meta(index)
    if "encoder" not in meta:
        other = "" if meta.get("language") in ("english", "none", None) else " --encoder NAME"
        return f"{left}; the index holds words alone, this adds vectors: {command_line('index', index)}{other}"
    return f"{left}; queries encode what they need, this encodes all: {command_line('index', index)}"
