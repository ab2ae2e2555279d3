"""Bytes within limits: decodes them to text, and unpacks members of zip files, never outside of the archive.

All offsets of a document refer to the text that `decode` returns: newlines are
"
" only, NUL and lone surrogates are U+FFFD, a byte order mark is removed.
"""

from __future__ import annotations

import codecs
import io
import posixpath
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import BinaryIO

from engine.errors import DocumentError
from engine.text.cleaning import MAX_DOCUMENT_BYTES, clean, regex, too_large

MAX_CONTAINER_BYTES = 512 * 2**20  # a PDF or DOCX file, pictures and fonts included
_PART_BYTES = 2**24

_MARKS = (  # UTF-32 first: its little-endian mark starts with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_GUESSES = [
    "cp1252", "cp1250", "iso8859_2", "cp1251", "iso8859_5", "iso8859_7", "iso8859_9", "cp1257", "iso8859_15", "cp1253",
    "cp1254", "cp1255", "cp1256", "koi8_u", "cp866", "cp874", "cp437", "mac_roman", "cp932", "euc_jp", "gb18030",
    "big5", "euc_kr", "cp850", "cp852",
]  # fmt: skip
_CONTROLS = bytes(sorted({*range(32), 127} - set(b"\t\n\v\f\r\b\x1b\x1a")))
_HIGH = bytes(range(128, 256))
_SAMPLE_BYTES = 64 * 1024
_GOOD_FOR_BAD = 10  # valid non-ASCII characters that make up for a damaged one
_LEAST_HIGH = 4  # bytes that are not ASCII; fewer are strays
_LATIN_LETTERS = 2  # bytes for one that is not ASCII, at least, in text of Latin letters
_SINGLE_BYTE = ("cp1252", "cp1250", "iso8859_2", "cp1254", "mac_roman", "iso8859_15", "cp850", "cp852")
_ODD = regex(
    "[\x80-\x9f\ufffd\u02c7\u02d8-\u02dd\u2500-\u259f]|[\u00a2-\u00a6\u00a8-\u00aa\u00ac-\u00af\u00b1-\u00b4\u00b6-\u00ba\u00bc-\u00be\u00d7\u00f7](?=[a-z])"
    "|(?<=[a-z\u00df-\u017f])[\u00a1\u00a7\u00b6\u00bf\u00a6]|[a-z][\u201a\u201e\u2020-\u2022\u2030\u02c6\u02dc\u2039][a-z]"
)
_THORN, _TURKISH, _ICELANDIC = (
    regex("[\u00fd\u00fe\u00f0\u00dd\u00de\u00d0]"),
    regex("[\u00fc\u00e7]"),
    regex("[\u00e1\u00e6\u00ed]"),
)
_CZECH, _NOT_CZECH = regex("[řů]"), regex("[ąľ]")
_CARON, _NOT_CARON = regex("[čďňř]"), regex("ą")  # Croatian, Slovak and Slovene are written without it
_WESTERN, _NOT_HUNGARIAN = regex("[ãçàêñèå]"), regex("[õûÕÛ]")
_USUAL_PAIR = regex(rb"[\x91-\x94][\xc0-\xff]|[\xe0-\xff][\x92\x94]|\xab\xa0|\xa0\xbb|\xe7[\xe3\xf5]")  # Western
_HEBREW_END = regex(rb"[\xea\xed\xef\xf3\xf5](?![\xe0-\xfa])")  # the letters that only end words
_NOT_HEBREW = regex(rb"[\xea\xed\xef\xf3\xf5](?=[\xe0-\xfa])|[A-Za-z][\xe0-\xfa]|[\xe0-\xfa][A-Za-z]")
_LEAST_HEBREW = 12  # letters
_NOT_LETTERS = bytes(range(128)) + "€‚„…†‡‹‘’“”•–—™›\u00a0§«°±·»".encode("cp1257") + bytes(range(0xC0, 0x100))
_BALTIC = [letters.encode("cp1257") for letters in ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž")]
_SH_AND_ZH, _WITH_U_OGONEK = frozenset("šž".encode("cp1257")), frozenset("ąčėįū".encode("cp1257"))
_U_OGONEK, _SHARE_OWN = "ų".encode("cp1257")[0], 0.97
_LEAST_PAIRS, _SHARE_KANA = 6, 0.2
_FEW = 200  # with fewer non-ASCII bytes, statistics are noise


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode text of unknown encoding.

    Tried in this order: the byte order mark, UTF-16 without a mark, UTF-8 if a byte is
    not ASCII (a few damaged bytes become U+FFFD), `declared`, ASCII, Windows-1252 for text
    that is nearly all ASCII (again with U+FFFD), and the guess of charset-normalizer from a
    sample.

    Raises:
        DocumentError: it is binary data, or no encoding fits.
    """
    marked = next(((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), None)
    if marked is not None:
        return _decode_marked(data, *marked)
    if b"\x00" in data and (wide := _unmarked_utf16(data)) is not None:
        return clean(wide)
    if _is_binary(data):
        raise DocumentError("it is binary data, not text; give the file the suffix of its format")
    text = next((text for text in _attempts(data, declared) if text is not None), None)
    if text is None:
        raise DocumentError(
            f"its character encoding is none of UTF-8, UTF-16, {', '.join(_GUESSES)}; convert it to UTF-8"
        )
    return clean(text)


def _attempts(data: bytes, declared: str | None) -> Iterator[str | None]:
    """Non-ASCII bytes that fit UTF-8 are UTF-8, whatever is declared; ASCII bytes can be ISO-2022."""
    if not data.isascii():
        yield _try(data, "utf-8")
        yield _nearly_utf8(data)
    yield _try(data, declared)
    if b"\x1b$" in data:
        yield _try(data, "iso2022_jp")
    yield _try(data, "ascii")
    if len(data) - len(data.translate(None, _HIGH)) <= len(data) // 100:
        yield data.decode(_single_byte(_sample_of(data)), "replace")
    yield _try(data, _guess(data))


def encoding_of_lines(line: bytes, following: Callable[[], bytes]) -> str:
    """The encoding of a line and of those behind it that are not UTF-8; "" where the line itself is."""
    if line.isascii() or _try(line, "utf-8") is not None:
        return ""
    others = (one for one in following().split(b"\n")[:-1] if _try(one, "utf-8") is None)
    return _guess(b"\n".join((line, *others))) or "utf-8"


def _nearly_utf8(data: bytes) -> str | None:
    """UTF-8 with a few damaged bytes, which become U+FFFD; other encodings hardly ever fit by chance."""
    text = data.decode("utf-8", "replace")
    n_bad = text.count("\ufffd")
    n_good = len(text) - len(text.encode("ascii", "ignore")) - n_bad
    return text if n_bad * _GOOD_FOR_BAD <= n_good else None


def _decode_marked(data: bytes, mark: bytes, encoding: str) -> str:
    text = _try(data[len(mark) :], encoding)
    if text is None:
        raise DocumentError(f"it starts with the mark of {encoding} but is not {encoding}; convert it to UTF-8")
    return clean(text)


def _try(data: bytes, encoding: str | None) -> str | None:
    if encoding is None:
        return None
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _unmarked_utf16(data: bytes) -> str | None:
    """UTF-16 shows in Western text as a NUL in nearly every other byte."""
    sample = data[:_SAMPLE_BYTES]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) * 2.5 < len(sample) / 2 or min(even, odd) * 20 > len(sample):
        return None
    return _try(data, "utf-16-be" if even > odd else "utf-16-le")


def _is_binary(data: bytes) -> bool:
    sample = data[:_SAMPLE_BYTES]
    return len(sample) - len(sample.translate(None, _CONTROLS)) > 4 + len(sample) // 100


def _guess(data: bytes) -> str | None:
    sample = _sample_of(data)
    if sample.isascii():
        return None
    if _is_hebrew(sample):
        return "cp1255"
    if (east_asian := _east_asian(sample)) is not None:
        return east_asian
    single = _single_byte(sample)
    n_high = len(sample) - len(sample.translate(None, _HIGH))
    if _is_western(sample) or (single != "cp1252" and n_high * _LATIN_LETTERS < len(sample)):
        return single
    from charset_normalizer import from_bytes  # its import takes longer than that of all other text readers

    best = from_bytes(sample, cp_isolation=_GUESSES).best()
    return best.encoding if best else None


def _east_asian(sample: bytes) -> str | None:
    """EUC, if all bytes that are not ASCII are pairs, of kana or of Hangul; statistics confuse the two and Thai."""
    leads = Counter(pair[0] for pair in re.findall(rb"[\xa1-\xfe]{2}", sample))
    n_high = len(sample) - len(sample.translate(None, _HIGH))
    if n_high - 2 * leads.total() > 1 or leads.total() < _LEAST_PAIRS:
        return None
    if sum(leads[lead] for lead in b"\xa4\xa5") > _SHARE_KANA * leads.total():
        return "euc_jp"
    n_letters = sum(count for lead, count in leads.items() if lead > 0xA3)
    return "euc_kr" if sum(leads[lead] for lead in range(0xB0, 0xC9)) > _SHARE_OWN * n_letters else None


def _sample_of(data: bytes) -> bytes:
    """Bytes around the first that is not ASCII."""
    high = re.search(rb"[\x80-\xff]", data)
    start = max(0, high.start() - _SAMPLE_BYTES // 2) if high else 0
    return data[start : start + _SAMPLE_BYTES]


def _single_byte(sample: bytes) -> str:
    """The encoding of text in Latin letters in which the fewest characters stand where they cannot belong."""
    if _is_baltic(sample):
        return "cp1257"
    if len(sample) - len(sample.translate(None, _HIGH)) < _LEAST_HIGH:
        return "cp1252"
    n_odd = {encoding: _n_odd(sample.decode(encoding, "replace")) for encoding in _SINGLE_BYTE}
    best = min(n_odd, key=lambda encoding: n_odd[encoding])
    return best if n_odd[best] * 2 < n_odd["cp1252"] else "cp1252"


def _is_baltic(sample: bytes) -> bool:
    """Whether nearly all letters beyond ASCII are those of one Baltic language, with some that Western ones lack."""
    counts = Counter(byte | 0x20 for byte in sample if byte >= 0xC0)
    counts.update(sample.translate(None, _NOT_LETTERS))
    is_marked = counts.keys() & _SH_AND_ZH or (_U_OGONEK in counts and counts.keys() & _WITH_U_OGONEK)
    n_own = max(sum(counts[byte] for byte in alphabet) for alphabet in _BALTIC)
    return bool(is_marked) and n_own >= max(_LEAST_HIGH, _SHARE_OWN * counts.total())


def _n_odd(text: str) -> int:
    """The number of signs and capitals inside words, and of Icelandic letters in text that is not Icelandic."""
    n_capitals = sum(
        b > "\x7f" and b.isupper() and a.isalpha() and c.islower()
        for a, b, c in zip(text, text[1:], text[2:], strict=False)
    )
    is_turkish = _TURKISH.search(text) is not None and _ICELANDIC.search(text) is None
    n_foreign = len(_THORN.findall(text)) if is_turkish else 0
    if _CZECH.search(text):
        n_foreign += len(_NOT_CZECH.findall(text))
    elif _CARON.search(text):
        n_foreign += len(_NOT_CARON.findall(text))
    elif "á" in text and not _WESTERN.search(text):
        n_foreign += len(_NOT_HUNGARIAN.findall(text))
    return len(_ODD.findall(text)) + n_capitals + n_foreign


def _is_hebrew(sample: bytes) -> bool:
    """Whether all letters can be Hebrew, and those that only end words do; statistics take a few words for Russian."""
    letters = [byte for byte in sample if byte >= 0xC0]
    are_hebrew = len(letters) >= _LEAST_HEBREW and min(letters) >= 0xE0 and max(letters) <= 0xFA
    return are_hebrew and _HEBREW_END.search(sample) is not None and _NOT_HEBREW.search(sample) is None


def _is_western(sample: bytes) -> bool:
    """Whether the non-ASCII bytes are few and isolated, like accents and quotes of Windows-1252."""
    high = [place for place, byte in enumerate(sample) if byte >= 0x80]
    beside = sum(b - a == 1 for a, b in pairwise(high)) - len(_USUAL_PAIR.findall(sample))
    return _try(sample, "cp1252") is not None and len(high) < max(_FEW, len(sample) // 5) and beside * 10 <= len(high)


def read_limited(stream: BinaryIO, limit: int) -> bytes:
    """Read a stream to its end, but never more than `limit` bytes."""
    parts: list[bytes] = []
    size = 0
    # In parts: one read of `limit` bytes allocates all of them, however short the stream is.
    while size <= limit and (part := stream.read(min(_PART_BYTES, limit + 1 - size))):
        parts.append(part)
        size += len(part)
    if size > limit:
        raise too_large("file", f"more than {limit:,}", limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class Archive:
    """A zip file; the names of members are compared, never used as paths on this machine."""

    def __init__(self, data: bytes, form: str, max_bytes: int | None = None) -> None:
        """Open it; `form` is the format in messages ("EPUB")."""
        self._form = form
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise DocumentError(f"it is not a whole {form} file ({error}); save it again") from error
        self._sizes = {member.filename: member.file_size for member in self._zip.infolist()}
        self._names = {_folded(name): name for name in self._sizes}
        size = sum(member.file_size for member in self._zip.infolist())
        limit = MAX_CONTAINER_BYTES if max_bytes is None else max_bytes
        if size > limit:
            raise too_large("unpacked file", f"{size:,}", limit)

    def __contains__(self, name: str) -> bool:
        return name in self._sizes or _folded(name) in self._names

    def named(self, suffixes: tuple[str, ...]) -> Iterator[str]:
        """The members with one of the suffixes."""
        return (name for name in self._sizes if name.lower().endswith(suffixes))

    def size_of(self, suffixes: tuple[str, ...]) -> int:
        """Bytes of the members with one of the suffixes, unpacked."""
        return sum(self._sizes[name] for name in self.named(suffixes))

    def read(self, name: str, limit: int = MAX_DOCUMENT_BYTES) -> bytes:
        """The bytes of a member."""
        if name not in self:
            raise DocumentError(f"it has no {name}; save it as {self._form}")
        name = name if name in self._sizes else self._names[_folded(name)]
        if self._sizes[name] > limit:
            raise too_large(f"part {name}", f"{self._sizes[name]:,}", limit)
        try:
            return self._zip.read(name)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise DocumentError(f"it is a damaged {self._form} file ({error}); save it again") from error
        except (RuntimeError, NotImplementedError) as error:
            raise DocumentError(f"it is encrypted or packed in an unknown way ({error}); save it again") from error


def _folded(name: str) -> str:
    """A name for comparison: some programs write backslashes, or another case than in their links."""
    return name.replace("\\", "/").lower()


def member_name(href: str, folder: str) -> str:
    """The name of the member that a link inside `folder` of an archive refers to."""
    return posixpath.normpath(posixpath.join(folder, href.partition("#")[0]))
