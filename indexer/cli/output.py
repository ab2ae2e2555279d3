"""The file of `--output`, checked before any work is done and written whole or not at all, and options beside it."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar

import click

from engine.environment import check_extra
from engine.report.lines import Line, plain
from indexer.cli.options import reading_options, together
from indexer.cli.terminal import PIPE_WIDTH, echo_text, show, width

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Suffixes that name a form, of which a command has some, or a program that cannot read a table of text.
_NAMED_FORMS = frozenset("json jsonl csv html bibtex ris parquet arrow doc docx odt pdf png svg xls xlsx xml".split())
_FORMS = {"bib": "bibtex", "htm": "html", "run": "trec"}  # of suffixes that are not the name of a format
DecoratedT = TypeVar("DecoratedT", bound=Callable[..., Any])
_PICTURES: dict[str, Literal["png", "svg"]] = {".png": "png", ".svg": "svg"}


def checked_output(_context: click.Context, _parameter: click.Parameter, path: Path | None) -> Path | None:
    """Callback of an option that names a file to write."""
    if path is not None:
        _check(path)
    return path


def written_option(*names: str, metavar: str = "FILE", **settings: Any) -> Callable[[DecoratedT], DecoratedT]:  # noqa: ANN401
    """An option that names a file to write, which is checked before any work is done."""
    return click.option(*names, type=click.Path(path_type=Path), callback=checked_output, metavar=metavar, **settings)


output_option = written_option(
    "-o",
    "--output",
    metavar="PATH",
    is_eager=True,  # read before `--format`, whose default follows from it
    help="Write to this file instead of standard output.",
)
log_option = written_option(
    "--log", "log_file", help="Append a JSON line for each search to FILE: query, state of INDEX, hits."
)


def _check(path: Path) -> None:
    if path.is_dir():
        raise click.BadParameter(f"{path} is a folder; name a file in it: {path / 'result.txt'}")
    folder = path.resolve().parent
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise click.BadParameter(f"the folder {folder} {problem}; make it: mkdir -p {quote(str(folder))}")
    if path.exists() and not os.access(path, os.W_OK):
        raise click.BadParameter(f"{path} may not be written; name another file, or change its permissions")
    if _is_replaced(path):
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            reason = error.strerror or str(error)
            raise click.BadParameter(f"no file can be written in {folder} ({reason}); name another folder") from error


def write_output(path: Path, content: str | bytes) -> None:
    """Write bytes, or a text as UTF-8; see `opened_output`."""
    with opened_output(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def emit(content: str | bytes, output: Path | None) -> None:
    """Write a result to a file, or print it on standard output."""
    if output is not None:
        write_output(output, content)
    else:
        assert isinstance(content, str), "a binary format needs a file"
        echo_text(content, nl=False)


def emit_lines(draw: Callable[[int], Sequence[Line]], output: Path | None) -> None:
    """Write lines of some width to a file, or print them as wide as the terminal, in styles where it shows them."""
    if output is not None:
        write_output(output, plain(draw(PIPE_WIDTH)) + "\n")
    else:
        show(draw(width()))


@contextmanager
def opened_output(path: Path) -> Iterator[BinaryIO]:
    """A file to write to; an existing file is replaced at the end of the block, once the new content is on disk.

    A symbolic link stays, and the file that it names is replaced. A device or a pipe is written directly.

    Raises:
        OSError: the disk is full, or the file cannot be written any more; it names the file and what became of it.
    """
    kept = "it is as it was before" if path.exists() else "no file was made"
    try:
        if _is_replaced(path):
            with _replaced(path.resolve()) as file:
                yield file
        else:
            with path.open("wb") as file:
                yield file
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror or error}; {kept}", str(path)) from error


def check_picture(path: Path | None, command: str, example: str) -> None:
    """Check that a picture can be written to a file.

    `command` draws the picture, and `example` is an option with a file that can be written, for the message.
    """
    if path is None or path.suffix.lower() not in _PICTURES:
        raise click.UsageError(f"name a file that ends in .png or .svg: {example}")
    check_extra("matplotlib", command, "matplotlib", "plot")


def write_picture(path: Path, figure: Figure) -> None:
    """Write a figure in the format given by the file name."""
    # Loads matplotlib, which only pictures need.
    from engine.plots import figure_file

    write_output(path, figure_file(figure, _PICTURES[path.suffix.lower()]))


def _is_replaced(path: Path) -> bool:
    """Whether writing replaces the path: it does not exist, or is a regular file."""
    return not path.exists() or stat.S_ISREG(path.stat().st_mode)


@contextmanager
def _replaced(path: Path) -> Iterator[BinaryIO]:
    mask = os.umask(0)  # the mask cannot be read without setting it
    os.umask(mask)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o666 & ~mask
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.chmod(mode)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class Output:
    """What a command prints of its results, in which format, and where to."""

    form: str
    output: Path | None
    n_pairs: int | None = None  # section pairs of a hit; by default as many as the format shows
    changes: bool = False  # of a comparison: the words that changed, in place of parts


# The output file, and limits for reading the document.
file_options = together(output_option, reading_options)


def pairs_option(default: int | None, shown: bool | str = True) -> Callable[[DecoratedT], DecoratedT]:
    """`--sections`, the number of sections of the query that are shown; `shown` is the default as the help shows it."""
    return click.option(
        "--sections",
        "n_pairs",
        default=default,
        show_default=shown,
        type=click.IntRange(0),
        metavar="N",
        help="Number of sections of the query, and of section pairs, to show for each target.",
    )


def named_form(output: Path | None, names: Sequence[str]) -> str | None:
    """The format that the suffix of a file names, or None."""
    suffix = "" if output is None else output.suffix[1:].lower()
    form = _FORMS.get(suffix, suffix)
    if output is not None and form in _NAMED_FORMS and form not in names:
        raise click.UsageError(f"{output.name} would be no {suffix} file; formats: {', '.join(names)}")
    return form if form in names else None


def format_option(names: Sequence[str]) -> Callable[[DecoratedT], DecoratedT]:
    """`--format`: by default the one that the output file's suffix names, or else the first."""

    def chosen(context: click.Context, _parameter: click.Parameter, form: str | None) -> str:
        output = context.params.get("output")
        used = form or named_form(output, names) or names[0]
        if output is None and (used == "docx" or (used == "html" and sys.stdout.isatty())):
            raise click.UsageError(f"{used} does not go to a terminal; name a file: -o {context.info_name}.{used}")
        return used

    note = "; html is a report in one file" if "html" in names[1:] else ""
    note += ", bibtex and ris are references of the hits" if "bibtex" in names else ""
    return click.option(
        "--format",
        "form",
        type=click.Choice(names),
        callback=chosen,
        show_default=f"that of the output file's name, or {names[0]}",
        help=f"Output format{note}.",
    )
