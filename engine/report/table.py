"""Results as plain text for a terminal. Strings only; nothing is printed here."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Mapping, Sequence

from engine.document import Coverage, Document
from engine.report.durations import duration
from engine.report.snippets import pair_snippets, term_weights
from engine.result import Encoding, Hit, Result, SectionMatrix
from engine.scoring.breakdown import SectionPair

WIDTH = 80
N_PAIRS = 3
N_TERMS = 5
_INDENT = 5


def result_table(result: Result, *, n_pairs: int = N_PAIRS, width: int = WIDTH) -> str:
    """The hits of one query, each with its strongest section pairs and a snippet of both sides.

    Args:
        result: what a search returned.
        n_pairs: section pairs shown of each hit.
        width: columns of the terminal.
    """
    lines = [*_head(result, width), ""]
    for hit in result.hits:
        lines += [*_hit(result, hit, n_pairs, width), ""]
    if not result.hits:
        lines += [_no_hits(result), ""]
    return "\n".join(lines[:-1])


def _head(result: Result, width: int) -> list[str]:
    n_hits = len(result.hits)
    searched = f"{result.n_searched:,} searched, {result.status.value}"
    counts = f"{n_hits} of {result.n_found:,} matching"
    if result.query_coverage.tokens_total:
        counts += f", {result.n_evident:,} by passages above their thresholds"
    lines = [f"{_coverage(result.query_coverage)}; {searched}", counts]
    if result.encoding is not None:
        lines += encoding_lines(result.encoding)
    return [_cut(f"query  {result.query.title}", width), *(_cut(f"       {line}", width) for line in lines)]


def encoding_lines(encoding: Encoding) -> list[str]:
    """How many candidates have vectors, and what encoding all documents would take."""
    candidates = f"{encoding.n_encoded} of {encoding.n_candidates} candidates encoded"
    now = f", {encoding.n_encoded_now} of them now" if encoding.n_encoded_now else ""
    rest = f"{encoding.n_missing:,} documents scored by words alone: about {encoding.tokens_missing:,} tokens to encode"
    if encoding.seconds_missing is not None:
        rest += f", {duration(encoding.seconds_missing)}"
    return [candidates + now, rest]


def _coverage(coverage: Coverage) -> str:
    if not coverage.tokens_total:
        return "searched by words alone"
    if coverage.tokens_read == coverage.tokens_total:
        return f"all {coverage.tokens_total:,} tokens read{pooled_note(coverage)}"
    share = f"({coverage.share:.1%}){pooled_note(coverage)}"
    return f"{coverage.tokens_read:,} of {coverage.tokens_total:,} tokens read {share}"


def pooled_note(coverage: Coverage) -> str:
    """What is said of a query that was too long to be asked chunk by chunk; nothing of another."""
    return f", up to {coverage.chunks_pooled} chunks pooled into one" if coverage.chunks_pooled > 1 else ""


def _no_hits(result: Result) -> str:
    if result.n_searched == 0:
        return "no document may be found: the index is empty, or the filter leaves none"
    return "no document matches: none shares a word with the query or has a passage above the thresholds"


def _hit(result: Result, hit: Hit, n_pairs: int, width: int) -> list[str]:
    left = f"{hit.rank:>3}  {hit.score:.4f}  "
    name = f"  {hit.doc_id}"
    room = width - _columns(left) - _columns(name)
    if room >= 24:
        lines = [left + _pad(_cut(hit.title, room), room) + name]
    else:
        lines = [_cut(left + hit.title, width), _cut(" " * _columns(left) + hit.doc_id, width)]
    weights = term_weights(hit, result.language) if n_pairs else {}
    for pair in hit.breakdown.pairs[:n_pairs]:
        lines += _pair(result, hit, pair, weights, width)
    lines += [_cut(" " * _INDENT + line, width) for line in _rest(hit, n_pairs)]
    if not hit.has_vectors:
        if result.encoding is not None:
            lines.append(_cut(" " * _INDENT + "scored by words alone: it has no vectors yet", width))
    elif hit.coverage.tokens_read != hit.coverage.tokens_total:
        lines.append(_cut(" " * _INDENT + f"of it {_coverage(hit.coverage)}", width))
    return lines


def _pair(result: Result, hit: Hit, pair: SectionPair, weights: Mapping[int, float], width: int) -> list[str]:
    margin = " " * _INDENT
    head = f"{margin}{pair.contribution:.4f}  "
    room = width - _columns(head) - 4
    mine = section_label(result.query, pair.query_section)
    theirs = section_label(hit.document, pair.target_section)
    mine = _cut(mine, max(room // 2, room - _columns(theirs)))
    lines = [f"{head}{mine} -> {_cut(theirs, room - _columns(mine))}"]
    snippets = pair_snippets(result, hit, pair, weights)
    for mark, shown in (("<", snippets.query), (">", snippets.target)):
        lines.append(_cut(f"{margin}        {mark} {shown.cut(width - _INDENT - 12).marked()}", width))
    if pair.terms:
        terms = ", ".join(f"{part.term} {part.contribution:.4f}" for part in pair.terms[:N_TERMS])
        lines.append(_cut(f"{margin}        {pair.words:.4f} in words: {terms}", width))
    return lines


def _rest(hit: Hit, n_pairs: int) -> list[str]:
    """What is in the score beyond the pairs shown, so that the column still sums to it."""
    hidden = hit.breakdown.pairs[n_pairs:]
    told = []
    if hidden:
        told.append(f"{sum(pair.contribution for pair in hidden):.4f}  {len(hidden)} more section pairs")
    whole = hit.breakdown.document
    if whole is not None:
        told.append(f"{whole.contribution:.4f}  document vectors (cosine {whole.similarity:.2f})")
    return told


def section_label(document: Document, position: int) -> str:
    """How a section is called: its heading, and which part of it where it was cut."""
    section = document.sections[position]
    name = section.heading or _opening(document, position)
    return f"{name} ({section.part}/{section.n_parts})" if section.n_parts > 1 else name


def _opening(document: Document, position: int) -> str:
    """The first words of a section without heading."""
    section = document.sections[position]
    words = " ".join(document.text[section.start : section.start + 200].split())
    return f"“{textwrap.shorten(words, 40, placeholder='…')}”"


def matrix_table(matrix: SectionMatrix, *, width: int = WIDTH) -> str:
    """Section by section cosines in hundredths, the legend below, in as many bands as the width needs."""
    rows = [section_label(matrix.query, position) for position in range(len(matrix.query.sections))]
    columns = [section_label(matrix.target, position) for position in range(len(matrix.target.sections))]
    name_width = 26
    per_band = max(1, (width - name_width - 4) // 4)
    lines = [_cut(f"cosine x 100: {matrix.query.title} (rows) and {matrix.target.title} (columns)", width)]
    for first in range(0, len(columns), per_band):
        band = range(first, min(first + per_band, len(columns)))
        lines.append(" " * (name_width + 4) + "".join(f"{column + 1:>4}" for column in band))
        for row, name in enumerate(rows):
            cells = "".join(f"{round(100 * float(matrix.cosines[row, column])):>4}" for column in band)
            lines.append(f"{row + 1:>3} {_pad(_cut(name, name_width), name_width)}{cells}")
    lines += [_cut(f"{number:>3} {name}", width) for number, name in enumerate(columns, start=1)]
    return "\n".join(lines)


def simple_table(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values in two columns."""
    name_width = max((_columns(name) for name, _ in rows), default=0)
    return "\n".join(f"{_pad(name, name_width)}  {value}" for name, value in rows)


def _columns(text: str) -> int:
    """Columns a terminal gives a text; wide characters take two."""
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


def _pad(text: str, width: int) -> str:
    return text + " " * max(0, width - _columns(text))


def _cut(text: str, width: int) -> str:
    """A text in at most `width` columns, with "…" where it was cut; control characters go."""
    text = "".join(character if character.isprintable() else " " for character in text)
    if _columns(text) <= width:
        return text
    kept, used = [], 1
    for character in text:
        used += _columns(character)
        if used > width:
            break
        kept.append(character)
    return "".join(kept).rstrip() + "…"
