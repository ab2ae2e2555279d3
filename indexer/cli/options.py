"""Arguments and options that several commands share, as `--help` lists them, and the documents that they name.

The options of a search are made from the fields of `Request`.
"""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from engine.environment import check_extra
from engine.errors import DocumentError, QueryError, command_line
from engine.store.catalog import holds_index, partition_folders, read_manifest
from engine.text.cleaning import printable
from engine.text.document import NO_NAME, Document, Unreadable, without_gz
from indexer.cli.terminal import log

if TYPE_CHECKING:
    from engine.index import Index
    from engine.search.partition import Placement
    from engine.search.request import Parameter
    from indexer.reading.reader import DocumentReader, ReadLimits

DecoratedT = TypeVar("DecoratedT", bound=Callable[..., Any] | click.Command)


class _Option(click.Option):
    """An option whose number is shown as N, without its range."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **settings)
        if self.metavar is None and isinstance(self.type, click.types.IntParamType | click.types.FloatParamType):
            self.metavar = "N"

    def get_help_extra(self, ctx: click.Context) -> Any:  # noqa: ANN401
        """Leave out the range; the error about a wrong number names it."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        return extra


option = partial(click.option, cls=_Option)


class GroupedCommand(click.Command):
    """Lists its options by headings, in the order in which they were declared.

    `headings` has the heading that begins at each of some parameters.
    """

    def __init__(self, *arguments: Any, headings: Mapping[str, str], **settings: Any) -> None:  # noqa: ANN401
        super().__init__(*arguments, **settings)
        self._headings = headings

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        rows: dict[str, list[tuple[str, str]]] = {}
        heading = "Options"
        for parameter in self.get_params(ctx):
            row = parameter.get_help_record(ctx)
            if isinstance(parameter, click.Option) and row is not None:
                heading = "Help" if "--help" in parameter.opts else self._headings.get(parameter.name or "", heading)
                rows.setdefault(heading, []).append(row)
        for heading, options in rows.items():
            with formatter.section(heading):
                formatter.write_dl(options)


def together(*options: Callable[[DecoratedT], DecoratedT]) -> Callable[[DecoratedT], DecoratedT]:
    """Several options as one decorator, in the order in which they are listed."""

    def decorate(command: DecoratedT) -> DecoratedT:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


TYPED = "longmatch.arguments"  # of a context: the arguments of the whole command
FAILED, PARTLY = 1, 3  # 0 is done, and click itself exits with 2 on wrong usage


class _Folder(click.Path):
    """A folder by a name that is not empty."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:  # noqa: ANN401
        return super().convert(value, param, ctx) if value else self.fail(NO_NAME, param, ctx)


FOLDER = _Folder(file_okay=False, path_type=Path)
index_argument = click.argument("index", type=FOLDER)


def collected(**kinds: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command one argument of a dataclass in place of the options that are named as its fields."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_values(**values: Any) -> Any:  # noqa: ANN401
            for name, kind in kinds.items():
                names = [field.name for field in fields(kind) if field.name in values]
                values[name] = kind(**{field: values.pop(field) for field in names})
            return command(**values)

        return with_values

    return decorate


class OrderedGroup(click.Group):
    """Lists its commands in the order in which a user needs them, not in alphabetical order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, as they were added."""
        return list(self.commands)


def typed_command() -> str:
    """The command as it was typed, quoted for a shell; "" outside of a command."""
    context = click.get_current_context(silent=True)
    arguments = () if context is None else context.meta.get(TYPED, ())
    return printable(command_line(*arguments)) if arguments else ""


def _existing(_context: click.Context, _parameter: click.Parameter, path: Path) -> Path:
    """Refuse a folder without an index before anything is loaded."""
    if not holds_index(path):
        raise click.ClickException(f"{path} holds no index; make one: {command_line('index', path, 'PATH...')}")
    return path


existing_index_argument = click.argument("index", type=FOLDER, callback=_existing)
device_option = click.option("--device", help="cpu, cuda or cuda:N; by default a GPU if torch sees one.")
search_device_option = click.option(
    "--device",
    help="cpu, cuda (all GPUs) or cuda:N, to encode and search there; by default a GPU encodes if torch sees one, "
    "and the CPU searches.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


@contextmanager
def opened_index(path: Path, device: str | None = None, *, placement: Placement | None = None) -> Iterator[Index]:
    """Open an index for a search, and close it afterwards; print on stderr whether a named GPU is used."""
    from engine.index import Index

    with Index.open(path, device=device, log=log, placement=placement) as index:
        if index.acceleration is not None:
            log(index.acceleration.summary)
        yield index


def request_options(*names: str, **defaults: object) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add options, and give the command a `Request` as its argument `request`.

    `names` are those of fields, in the order of the options, by default all that a command can change; `defaults` are
    those of this command, where they are not those of `Request`.
    """
    from engine.search.request import Mode, Request, parameters  # loads numpy, which other commands do not need

    by_name = {field.name: field for field in parameters() if not field.about.is_constant}
    chosen = [by_name[name] for name in names or by_name]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def with_request(**values: Any) -> Any:  # noqa: ANN401
            request_values = {parameter.name: values.pop(parameter.name) for parameter in chosen}
            if request_values.get("mode") == Mode.NOVELTY:  # which has no ranking, whose defaults these are
                own = [name for name, default in defaults.items() if request_values[name] == default]
                request_values |= {name: by_name[name].default for name in own}
            try:
                request = Request.of(**request_values)
            except QueryError as error:
                raise click.UsageError(str(error)) from error
            return command(request=request, **values)

        for parameter in reversed(chosen):
            with_request = _option(parameter, defaults.get(parameter.name, parameter.default))(with_request)
        return with_request

    return decorate


def _option(parameter: Parameter, default: object) -> Callable[[DecoratedT], DecoratedT]:
    about = parameter.about
    option = about.option or f"--{parameter.name.replace('_', '-')}"
    text, settings = about.text, dict[str, Any]()
    if parameter.kind is bool:
        settings["is_flag"] = True
    elif parameter.kind is tuple:
        text = f"{text[:-1]}; may be repeated."
        settings |= {"multiple": True, "metavar": about.value}
    elif issubclass(parameter.kind, Mapping):
        settings |= {"multiple": True, "metavar": about.value, "callback": _weights}
    else:
        settings |= {"metavar": about.value, "default": default, "show_default": default is not None}
    is_number = parameter.kind in (int, float)
    if about.choices and not is_number:
        settings["type"] = click.Choice([*map(str, about.choices)])
        settings["default"] = str(default) if isinstance(default, StrEnum) else default
    elif is_number and not about.choices:  # `Request` reads a number or a choice
        number: Any = click.IntRange if parameter.kind is int else click.FloatRange
        settings |= {"type": number(about.least, about.most), "metavar": about.value or "N"}
    return click.option(*option.split(), parameter.name, help=text, **settings)


def _weights(_context: click.Context, _parameter: click.Parameter, texts: Sequence[str]) -> dict[str, float]:
    from engine.search.request import parse_weights

    try:
        return parse_weights(",".join(texts)) if texts else {}
    except QueryError as error:
        raise click.BadParameter(str(error)) from error


def ray_option(purpose: str) -> Callable[[DecoratedT], DecoratedT]:
    """`--ray`."""
    places = "local starts one on this machine, auto is the one that this machine belongs to, HOST:PORT names its head."
    return option("--ray", "ray_address", metavar="ADDRESS", help=f"{purpose} a Ray cluster: {places}")


@contextmanager
def placed_partitions(index: Path, ray_address: str | None) -> Iterator[Placement | None]:
    """Run the partitions of an index as actors of a Ray cluster inside the context; None without an address."""
    if ray_address is None:
        yield None
        return
    check_extra("ray", "--ray", "Ray", "ray")
    from indexer.cluster.session import connected

    parts = list(partition_folders(index, read_manifest(index)))  # before Ray is started, which takes seconds
    with connected(ray_address):
        from indexer.cluster.job import PartitionActors  # imports Ray, which was set up by `connected`

        with closing(PartitionActors(parts)) as actors:
            yield actors


STDIN = "-"
_NAME_OF_STDIN = "stdin"
_N_NAMED = 3  # documents of the same content that are listed
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(text: str) -> int:
    """Bytes of a size such as `2G` or `500 MiB`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text, re.IGNORECASE)
    if match is None or match[2].lower() not in _UNITS:
        raise click.BadParameter(f"{text!r} is not a size; write for example 500M or 2G")
    return int(float(match[1]) * _UNITS[match[2].lower()])


@dataclass(frozen=True, slots=True)
class Reading:
    """How the documents that a command names are read."""

    read_seconds: float
    read_memory: int
    ocr: bool
    ocr_language: str | None
    form_of_stdin: str | None = None  # detected by default

    @property
    def limits(self) -> ReadLimits:
        """The limits for one document, with the languages of OCR."""
        from indexer.reading.reader import ReadLimits

        languages = self.ocr_language or ("eng" if self.ocr else None)
        if languages is not None:
            _check_ocr(languages)
        return ReadLimits(self.read_seconds, self.read_memory, languages)


def _check_ocr(languages: str) -> None:
    if shutil.which("ocrmypdf") is None:
        raise click.ClickException("--ocr needs ocrmypdf; install it: apt install ocrmypdf, or brew install ocrmypdf")
    if shutil.which("tesseract") is None:  # ocrmypdf was installed with one of its own
        return
    command = ["tesseract", "--list-langs"]
    known = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()[1:]
    if missing := [name for name in languages.split("+") if known and name not in known]:
        raise click.ClickException(
            f"tesseract has no language {missing[0]!r}, it has {', '.join(known)}; install it, e.g. "
            f"apt install tesseract-ocr-{missing[0]}"
        )


# Limits for reading and OCR, which the command gets as its argument `reading`.
reading_options = together(
    option(
        "--read-seconds",
        type=click.FloatRange(0, min_open=True),
        default=60,
        help="Processor time to read one document, in seconds; by default 60.",
    ),
    option(
        "--read-memory",
        type=parse_bytes,
        default="1Gi",
        metavar="SIZE",
        help="Memory to read one document, on Linux; by default 1Gi.",
    ),
    option("--ocr", is_flag=True, help="Recognise the text of scanned pages of PDFs, by ocrmypdf if it is installed."),
    option(
        "--ocr-language", metavar="NAME", help="Language of --ocr in the code of tesseract, as deu+eng; by default eng."
    ),
    collected(reading=Reading),
)


class Queries:
    """The queries of a command: doc_ids, texts and documents, in this order. `failed` has those that cannot be read."""

    def __init__(
        self, reading: Reading, documents: Sequence[str], doc_ids: Sequence[str] = (), texts: Sequence[str] = ()
    ) -> None:
        self._suffix = check_form(reading.form_of_stdin, documents)
        self._doc_ids, self._texts = doc_ids, texts
        self.failed = missing_files(documents)
        missing = {failure.source for failure in self.failed}
        self.files = [name for name in documents if name not in missing]

    def __bool__(self) -> bool:
        return bool(self.files or self._doc_ids or self._texts)

    def read(self, reader: DocumentReader | None) -> Iterator[Document | str]:
        """Read the queries one after another; `reader` is open."""
        yield from self._doc_ids
        yield from (Document.from_text(text, doc_id="text") for text in self._texts)
        for document in read_named(self.files, reader, self._suffix):
            if isinstance(document, Unreadable):
                self.failed.append(document)
            else:
                yield document

    def end(self, *, are_answered: bool) -> None:
        """Name the documents that could not be read; where there are some, exit with the status of the command."""
        for failure in self.failed:
            log(f"failed: {failure.source}: {failure.reason}")
        if self.failed:
            sys.exit(PARTLY if are_answered else FAILED)


def missing_files(names: Sequence[str]) -> list[Unreadable]:
    """The names that cannot be read: there is no such file, or it is a folder."""
    if names.count(STDIN) > 1:
        raise click.UsageError(f"'{STDIN}' is named {names.count(STDIN)} times; standard input can be read once")
    failures = []
    for name in names:
        if name == STDIN:
            continue
        if not name:
            failures.append(Unreadable("''", NO_NAME))
        elif Path(name).is_dir():
            is_index = holds_index(Path(name))
            hint = "search one index at a time" if is_index else f"name files in it, as {Path(name) / '*'}"
            failures.append(Unreadable(name, f"is {'an index' if is_index else 'a folder'}; {hint}"))
        elif not Path(name).exists():
            hint = f"; to search with these words: --text {name!r}" if any(map(str.isspace, name)) else ""
            failures.append(Unreadable(name, f"No such file or directory{hint}"))
    return failures


@contextmanager
def opened_reader(names: Sequence[str], reading: Reading) -> Iterator[DocumentReader | None]:
    """A reader for names, or None without names; its process starts while the caller imports other modules."""
    if not names:
        yield None
        return
    from indexer.reading.reader import DocumentReader

    with DocumentReader(reading.limits) as reader:
        yield reader


def read_named(
    names: Sequence[str], reader: DocumentReader | None, suffix: str | None
) -> Iterator[Document | Unreadable]:
    """Read documents in the order of their names."""
    if reader is None:
        return
    # Loads the readers, which takes a third of a second; searches by text and by id do not need them.
    from indexer.reading.reader import ReadRequest

    for name in names:
        yield from _read_standard_input(reader, suffix) if name == STDIN else reader.read([ReadRequest(name)])


def read_each(names: Sequence[str], reading: Reading) -> list[Document]:
    """The only document of each file."""
    suffix = check_form(reading.form_of_stdin, names)
    if missing := missing_files(names):
        raise _unread(missing[0])
    with opened_reader(names, reading) as reader:
        return [only_document(name, list(read_named([name], reader, suffix))) for name in names]


def only_document(name: str, documents: list[Document | Unreadable]) -> Document:
    """The document of a file."""
    if len(documents) != 1:
        count = f"{len(documents):,} documents" if documents else "no document"
        raise click.ClickException(f"{name} holds {count}; name a file of one document")
    if isinstance(documents[0], Unreadable):
        raise _unread(documents[0])
    return documents[0]


def _unread(failure: Unreadable) -> click.ClickException:
    return click.ClickException(f"{failure.source}: {failure.reason}")


def left_out_note(query: Document, copies: Sequence[str]) -> str:
    """A line that names the documents which are left out because they have the same content as the query."""
    names = ", ".join(copies[:_N_NAMED])
    more = f" and {len(copies) - _N_NAMED:,} more" if len(copies) > _N_NAMED else ""
    return f"left out: {names}{more}; same content as the query {query.doc_id}, shown by --with-itself"


as_option = click.option(
    "--as",
    "form_of_stdin",
    metavar="FORMAT",
    help="Format of standard input, for example pdf, docx, html, md or jsonl.gz; detected by default.",
)


def check_form(form: str | None, names: Sequence[str]) -> str | None:
    """The suffix of the format of standard input, with its dot."""
    if form is None:
        return None
    if STDIN not in names:
        raise click.UsageError(f"--as is the format of standard input, which no document is; name it '{STDIN}'")
    # Loads the readers, which a command without the option does not need.
    from engine.readers import FORMATS

    suffix = "." + form.lower().lstrip(".")
    if without_gz(suffix) not in FORMATS:
        known = " ".join(known_suffix[1:] for known_suffix in FORMATS)
        raise click.BadParameter(f"{form!r} is no known format; known are {known}, each also with .gz")
    return suffix


def _read_standard_input(reader: DocumentReader, suffix: str | None) -> Iterator[Document | Unreadable]:
    """Read the documents on standard input: one, or several of JSON lines."""
    from engine.readers.reader import detected_suffix
    from indexer.reading.reader import ReadRequest

    with tempfile.TemporaryDirectory(prefix="longmatch-") as folder:
        # In a folder of its own, so that a LaTeX file includes no other.
        path = Path(folder) / _NAME_OF_STDIN
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            named = path.rename(path.with_suffix(suffix or detected_suffix(path)))
        except DocumentError as error:
            yield Unreadable(_NAME_OF_STDIN, str(error), _NAME_OF_STDIN)
            return
        for document in reader.read([ReadRequest(str(named))]):
            yield replace(document, source=document.source.replace(str(named), _NAME_OF_STDIN, 1))
