"""The source of a LaTeX document: comments removed, code put aside, included files inserted.

Files are included from the folder of the main file and from below it, never from
elsewhere: a document from a stranger must not read other files of the user.
"""

from __future__ import annotations

import gzip
import posixpath
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from engine.errors import DocumentError
from engine.readers.encoding import decode, read_limited
from engine.text.cleaning import MAX_DOCUMENT_BYTES, too_large

MAX_INCLUDE_DEPTH = 10
MAX_INCLUDES = 2_000  # files that one document can include; repeated files count each time
_MAX_NOTED = 20

# Two noncharacters, which Unicode reserves for internal use, mark the place of code.
CODE_MARK, _END_MARK = "\ufdd0", "\ufdd1"
PLACE = re.compile(f"{CODE_MARK}(\\d+){_END_MARK}")
_MARKS = str.maketrans({CODE_MARK: "\ufffd", _END_MARK: "\ufffd"})
_LEXEME = re.compile(
    r"\\begin\{(?P<name>[A-Za-z]{1,40})(?P<star>\*?)\}"
    r"|\\(?:(?:[vV]erb\*?|lstinline)(?:\[[^\[\]\n]{0,200}\])?|mintinline(?:\[[^\[\]\n]{0,200}\])?\{[\w+-]{1,30}\})"
    r"(?:(?P<quote>[^A-Za-z\s*{\[])(?P<verb>[^\n]{0,300}?)(?P=quote)|\{(?P<braced>(?:[^{}\n]|\{[^{}\n]{0,100}\}){0,300})\})"
    r"|\\(?P<link>url|path|nolinkurl|href)[ \t]*\{(?P<address>[^{}\n]{0,2000})\}"
    r"|\\."
    r"|(?P<comment>%[^\n]*(?:\n[ \t]*(?=\S))?)",
    re.DOTALL,
)
_VERBATIM = frozenset([  # environments of code
    "verbatim", "Verbatim", "BVerbatim", "LVerbatim", "SaveVerbatim", "lstlisting", "minted", "alltt", "tcblisting",
])  # fmt: skip
_EXCLUDED = re.compile(r"\\exclude(?:version|comment)\{(\w{1,40})\}")
_OWN_VERBATIM = re.compile(
    r"\\(?:lstnewenvironment|DefineVerbatimEnvironment|newtcblisting|NewTCBListing)\s{0,3}(?:\[[^\[\]]{0,200}\])?\s{0,3}"
    r"\{(?P<name>[A-Za-z]{1,40})\}|\\newminted(?:\[(?P<minted>[A-Za-z]{1,40})\])?\{(?P<language>[A-Za-z]{1,30})\}"
)
_OPTIONS = r"\[(?:[^\[\]{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\}|\[[^\[\]]*+\])*+\]"
_CODE_OPTIONS = re.compile(rf"[ \t]*+(?:{_OPTIONS})?(?:\{{[^{{}}\n]{{1,200}}\}}(?=[ \t]*\n))?")
_INCLUDE = re.compile(
    r"\\(?:input|include|subfile|subfileinclude|includestandalone|loadglsentries|InputIfFileExists)[ \t]*+"
    r"(?:\[[^\[\]\n]{0,200}+\])?\{(?P<name>[^{}\n]{1,300}+)\}"
    r"|\\input[ \t]++(?P<plain>[^\s{}\\%]{1,300})"
    r"|\\(?:sub)?(?:import|inputfrom|includefrom)\*?[ \t]*+"
    r"\{(?P<folder>[^{}\n]{0,300}+)\}[ \t]*+\{(?P<file>[^{}\n]{1,300}+)\}"
    rf"|\\(?:lstinputlisting|inputminted|verbatiminput|VerbatimInput)\*?(?P<options>{_OPTIONS})?(?:\{{[\w+-]{{1,30}}\}}(?=\{{))?"
    r"\{(?P<code>[^{}\n]{1,300}+)\}"
    r"|\\(?:usepackage|RequirePackage)[ \t]*+(?:\[[^\]]{0,300}+\][ \t]*+)?\{(?P<styles>[^{}]{1,300}+)\}"
)
_SIMPLE_MACRO = re.compile(  # of a style; the others are programs
    r"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand|def)\*?\s{0,3}\{?\\[A-Za-z]{1,40}\}?\s{0,3}"
    r"(?:\[\d\]\s{0,3})?(?:\[[^\[\]{}]{0,200}\]\s{0,3})?(?:#\d){0,9}"
    r"\{(?:[^{}@]++|\{(?:[^{}@]++|\{[^{}@]*+\})*+\})*+\}"
)
_MAY_INCLUDE = re.compile(rb"\\(?:input|(?:sub)?import|include|subfile|loadglsentries)")
_INPUT_PATH = re.compile(r"\\input@path[ \t]*+\{((?:[ \t]*+\{[^{}\n]{0,200}+\}){1,20}+)")
_GRAPHICS = re.compile(rb"\\includegraphics\*?[ \t]*+(?:\[[^\]]{0,500}+\][ \t]*+)?\{([^{}\n]{1,300}+)\}")
_GRAPHICS_PATH = re.compile(rb"\\graphicspath[ \t]*+\{((?:[ \t]*+\{[^{}\n]{0,200}+\}){1,20}+)")
_CAPTION = re.compile(r"(?:^|[\[,])\s*+caption\s*+=\s*+(?:\{((?:[^{}]++|\{[^{}]*+\})*+)\}|([^,\]{}]{1,300}+))")
_DOCUMENT = re.compile(rb"\\document(?:class|style)(?![A-Za-z])|\\begin\{document\}")
_FIGURE_SUFFIXES = ("", ".pdf", ".html", ".xml", ".txt")
_END_INPUT = re.compile(r"\\endinput(?![A-Za-z])")


@dataclass(frozen=True, slots=True)
class LatexSource:
    """LaTeX without comments; program text, links and `\\verb` are replaced by marks."""

    text: str
    code: list[str] = field(repr=False)
    files: tuple[Path, ...] = ()  # included files
    missing: tuple[str, ...] = ()  # names of files not included: absent, unreadable, outside, or too many
    n_hidden: int = 0  # words of environments that are not shown

    def with_code(self, text: str) -> str:
        """Replace the marks by the code they stand for."""
        return PLACE.sub(lambda match: self.code[int(match[1])], text)


class Folder:
    """A folder on disk with the files below it, which a LaTeX document can include."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def file(self, path: Path) -> Path | None:
        """A regular file below the folder; None for anything else."""
        try:
            resolved = path.resolve()
            return resolved if resolved.is_relative_to(self.root) and resolved.is_file() else None
        except (OSError, RuntimeError, ValueError):
            return None  # a name that is too long, or a cycle of links

    def read(self, path: Path) -> bytes:
        """The bytes of a file, unpacked."""
        with path.open("rb") as stream:
            return _unpacked(stream, path)


class Members(Folder):
    """The files of an archive, which are never written to disk."""

    def __init__(self, files: Mapping[Path, Callable[[], BinaryIO]]) -> None:
        """Take a function that opens each file; the paths begin with `/`, the top of the archive."""
        self.root, self.files = Path("/"), files

    def file(self, path: Path) -> Path | None:
        """The file of that name."""
        path = Path(posixpath.normpath(path.as_posix()))
        return path if path in self.files else None

    def read(self, path: Path) -> bytes:
        """The bytes of a file, unpacked."""
        with self.files[path]() as stream:
            return _unpacked(stream, path)


def load(data: bytes, path: Path | None = None, folder: Folder | None = None) -> LatexSource:
    """Decode LaTeX and put included files in the places of their commands; by default from the folder of `path`."""
    joined = _Joined(path, folder or (Folder(path.parent) if path else None))
    text = joined.text_of(decode(data), len(data))
    return LatexSource(text, joined.code, tuple(joined.files), tuple(joined.missing[:_MAX_NOTED]), joined.n_hidden)


def included_files(path: Path, folder: Folder | None = None) -> tuple[Path, ...]:
    """Files that a LaTeX file includes or shows as figures, directly or through others; none where it is unreadable."""
    folder = folder or Folder(path.parent)
    try:
        data = folder.read(path)
        files = load(data, path, folder).files if _MAY_INCLUDE.search(data) else ()
        sources = [data, *map(folder.read, files)] if b"includegraphics" in data or files else []
    except (OSError, EOFError, zlib.error, DocumentError):
        return ()
    return (*files, *dict.fromkeys(figure for source in sources for figure in _figures(source, folder)))


def _figures(source: bytes, folder: Folder) -> Iterator[Path]:
    """The files below a folder that a source shows as figures."""
    paths = [
        name for found in _GRAPHICS_PATH.finditer(source) for name in re.split(rb"[{}]+", found[1]) if name.strip()
    ]
    for match in _GRAPHICS.finditer(source):
        for place in (b"", *paths):
            name = (place.strip() + match[1].strip()).decode("utf-8", "replace")
            for suffix in _FIGURE_SUFFIXES:
                file = folder.file(folder.root / f"{name}{suffix}")
                if file is not None:
                    yield file


def is_fragment(path: Path, folder: Folder | None = None) -> bool:
    """Whether a LaTeX file is no document by itself."""
    try:
        return _DOCUMENT.search((folder or Folder(path.parent)).read(path)) is None
    except (OSError, EOFError, zlib.error, DocumentError):
        return False


class _Joined:
    """One pass over the main file and, where a path is given, over the files that it includes."""

    def __init__(self, path: Path | None, folder: Folder | None) -> None:
        self.code: list[str] = []
        self.files: list[Path] = []
        self.missing: list[str] = []
        self._folder = folder
        main = folder.file(path) if folder and path else None
        self._open: list[Path] = [main or path] if path else []
        self._size = 0
        self._n_includes = 0
        self._paths: list[str] = []  # folders in which the document searches included files
        self._verbatim = set(_VERBATIM)
        self._hidden = {"comment"}
        self.n_hidden = 0

    def text_of(self, text: str, size_bytes: int) -> str:
        """The text of one file, with the files that it includes."""
        self._size += size_bytes
        if self._size > MAX_DOCUMENT_BYTES:
            raise too_large("LaTeX source with its included files", f"more than {self._size - 1:,}", MAX_DOCUMENT_BYTES)
        self._hidden.update(_EXCLUDED.findall(text))
        for found in _OWN_VERBATIM.finditer(text):
            self._verbatim.add(found["name"] or found["minted"] or f"{found['language']}code")
        text = "".join(self._without_comments(text.translate(_MARKS)))
        end = _END_INPUT.search(text)
        text = text[: end.start()] if end else text
        for found in _INPUT_PATH.finditer(text):
            self._paths += [name.strip() for name in re.split(r"[{}]+", found[1]) if name.strip()]
        return _INCLUDE.sub(self._included, text)

    def _without_comments(self, text: str) -> Iterator[str]:
        start, unclosed = 0, set[str]()
        while (match := _LEXEME.search(text, start)) is not None:
            yield text[start : match.start()]
            start, kind = match.end(), match.lastgroup
            if match["name"]:
                name = match["name"]
                end = rf"\end{{{name}{match['star']}}}"
                is_set_apart = name in self._verbatim or name in self._hidden
                stop = text.find(end, start) if is_set_apart and end not in unclosed else -1
                if stop < 0:
                    unclosed.add(end)
                    yield match.group()
                elif name in self._hidden:
                    self.n_hidden += len(text[start:stop].split())
                    start = stop + len(end)
                else:
                    options = _CODE_OPTIONS.match(text, start, stop)
                    code = text[options.end() if options else start : stop].strip("\n").rstrip()
                    yield self._listing(options.group() if options else "", code)
                    start = stop + len(end)
            elif match["quote"] or match["braced"]:
                yield self._put_aside(match["verb"] or match["braced"])
            elif match["link"]:
                yield "" if match["link"] == "href" else self._put_aside(match["address"].replace("\\", ""))
            elif kind != "comment":
                yield match.group()
        yield text[start:]

    def _put_aside(self, code: str) -> str:
        self.code.append(code)
        return f"{CODE_MARK}{len(self.code) - 1}{_END_MARK}"

    def _listing(self, options: str, code: str) -> str:
        caption = _CAPTION.search(options)
        return f"\n\n{(caption[1] or caption[2]) if caption else ''}\n\n{self._put_aside(code)}\n\n"

    def _macros_of(self, style: str) -> Iterator[str]:
        """The definitions of a style beside the document; those of a layout are for its title page."""
        path = self._find(style, ".sty")
        with suppress(OSError, EOFError, zlib.error, DocumentError):
            text = decode(self._folder.read(path)) if self._folder and path else ""
            yield from _SIMPLE_MACRO.findall("" if r"\maketitle" in text else text)

    def _included(self, match: re.Match[str]) -> str:
        """The text that replaces an include command."""
        if match["styles"]:
            macros = [macro for style in match["styles"].split(",") for macro in self._macros_of(style.strip())]
            return "\n".join([match.group(), *macros])
        name = match["name"] or match["plain"] or match["code"] or f"{match['folder']}/{match['file']}"
        name = name.strip(' \t"')
        self._n_includes += 1
        path = self._find(name) if self._n_includes <= MAX_INCLUDES else None
        text = None
        if path is not None and path not in self._open and len(self._open) <= MAX_INCLUDE_DEPTH:
            self._open.append(path)
            text = self._text_of_file(path, is_code=match["code"] is not None)
            self._open.pop()
        if text is None:
            self.missing.append(name)
            return ""
        return self._listing(match["options"] or "", text) if match["code"] else f"{_body_of(text)}\n"

    def _text_of_file(self, path: Path, *, is_code: bool) -> str | None:
        """The text of an included file; None where it cannot be read."""
        assert self._folder is not None
        try:
            data = self._folder.read(path)
            text = decode(data)
        except (OSError, EOFError, zlib.error, DocumentError):
            return None
        self.files.append(path)
        return text if is_code else self.text_of(text, len(data))

    def _find(self, name: str, suffix: str = ".tex") -> Path | None:
        """The file of that name: below the main file's folder, regular and not hidden."""
        if self._folder is None or "\x00" in name or "\\" in name:
            return None
        names = [name, f"{name}{suffix}"] if name.endswith(suffix) else [f"{name}{suffix}", name]
        root, here = self._folder.root, self._open[-1].parent
        for folder in dict.fromkeys((root, here, *(root / path for path in self._paths))):
            for candidate in [*names, *(f"{one}.gz" for one in names)]:
                path = self._folder.file(folder / candidate)
                if path is not None and not any(part.startswith(".") for part in path.relative_to(root).parts):
                    return path
        return None


def _body_of(text: str) -> str:
    """The document environment of a file that is a complete document, such as a subfile; else the whole text."""
    if r"\documentclass" not in text:
        return text
    _, begin, body = text.partition(r"\begin{document}")
    return body.partition(r"\end{document}")[0] if begin else text


def _unpacked(stream: BinaryIO, path: Path) -> bytes:
    if path.name.lower().endswith(".gz"):
        with cast(BinaryIO, gzip.GzipFile(fileobj=stream)) as unpacked:
            return read_limited(unpacked, MAX_DOCUMENT_BYTES)
    return read_limited(stream, MAX_DOCUMENT_BYTES)
