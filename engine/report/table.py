"""Results as lines for a terminal, in styles or as plain text. Prints nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from engine.encoders.explanation import strongest_pairs
from engine.report.durations import duration
from engine.report.lines import Line, Run, Style, columns, cut, line, pad, plain, shortened, table
from engine.report.snippets import Snippet, pair_snippets, term_weights
from engine.result import Encoding, Hit, Result
from engine.scoring.breakdown import SectionPair
from engine.text.document import Document, section_label
from engine.text.spans import Coverage

if TYPE_CHECKING:
    from engine.comparison import Comparison
    from engine.novelty import Novelty, SectionNovelty

WIDTH = 80
N_PAIRS = 3
N_NOVELTY_PAIRS = 1  # of each section
N_TERMS = 5
_INDENT = 5
_LEAST_TITLE = 24  # columns; if there are fewer, the doc_id is on a line of its own
_NOTHING = "nothing to compare: the section has no content words"
_NO_BACKGROUND = (
    "without an index there are no thresholds: the score is high for any two",
    "texts, and serves to order the parts below; --index INDEX takes some",
)


def result_table(result: Result, *, n_pairs: int = N_PAIRS, width: int = WIDTH) -> str:
    """`result_lines` as plain text; words that both texts have are between asterisks."""
    return plain(result_lines(result, n_pairs=n_pairs, width=width, has_styles=False))


def result_lines(result: Result, *, n_pairs: int = N_PAIRS, width: int = WIDTH, has_styles: bool = True) -> list[Line]:
    """The hits of one query, each with its strongest section pairs and a snippet of both sides.

    Args:
        result: of a search.
        n_pairs: section pairs shown for each hit.
        width: columns of the terminal.
        has_styles: whether the output shows styles; otherwise words that both texts have get asterisks.
    """
    lines = [*_head(result, width), line()]
    for hit in result.hits:
        lines += [*_hit(result, hit, width), *hit_lines(result, hit, n_pairs, width, has_styles=has_styles), line()]
    if not result.hits:
        lines += [cut(line(no_hits(result)), width), line()]
    return lines[:-1]


def _head(result: Result, width: int) -> list[Line]:
    n_hits = len(result.hits)
    searched = f"{result.n_searched:,} searched, {result.status.value}"
    counts = f"{n_hits} of {result.n_found:,} matching"
    if result.query_coverage.tokens_read:
        counts += f", {result.n_evident:,} by passages above their thresholds"
    notes = [f"{coverage_note(result.query_coverage)}; {searched}", counts]
    if result.encoding is not None:
        notes += encoding_lines(result.encoding)
    title = line(Run("query  ", Style.FAINT), Run(result.query.title, Style.TITLE))
    return [cut(title, width), *(cut(line(Run(f"       {note}", Style.FAINT)), width) for note in notes)]


def encoding_lines(encoding: Encoding) -> list[str]:
    """The number of candidates with vectors, and the cost of encoding all documents if some have no vectors."""
    candidates = f"{encoding.n_encoded} of {encoding.n_candidates} candidates encoded"
    now = f", {encoding.n_encoded_now} of them now" if encoding.n_encoded_now else ""
    if not encoding.n_missing:
        return [candidates + now]
    rest = f"{encoding.n_missing:,} documents scored by words alone: about {encoding.tokens_missing:,} tokens to encode"
    if encoding.seconds_missing is not None:
        rest += f", {duration(encoding.seconds_missing)}"
    return [candidates + now, rest]


def coverage_note(coverage: Coverage) -> str:
    """How much of a document was read."""
    if not coverage.tokens_read:
        return "searched by words alone"
    if coverage.tokens_read == coverage.tokens_total:
        return f"all {coverage.tokens_total:,} tokens read{pooled_note(coverage)}"
    share = f"({coverage.share:.1%}){pooled_note(coverage)}"
    return f"{coverage.tokens_read:,} of {coverage.tokens_total:,} tokens read {share}"


def pooled_note(coverage: Coverage) -> str:
    """A note for a query whose chunks were pooled because it is very long; "" for another query."""
    return f", up to {coverage.chunks_pooled} chunks pooled into one" if coverage.chunks_pooled > 1 else ""


def no_hits(result: Result) -> str:
    """Why a result has no hits."""
    if result.n_searched == 0:
        return "no document was searched: the index is empty, or the filter leaves none"
    if result.n_found:
        return f"past the end: {result.n_found:,} documents match; take a smaller offset"
    return "no document matches: none shares a word or a passage with the query"


def _hit(result: Result, hit: Hit, width: int) -> list[Line]:
    """Rank, score, title and doc_id."""
    left = line(f"{hit.rank:>3}  ", Run(f"{hit.score:.4f}", Style.NUMBER), "  ")
    title, name = line(Run(hit.title, Style.TITLE)), line(Run(f"  {hit.doc_id}", Style.FAINT))
    room = width - columns(left) - columns(name)
    if room >= _LEAST_TITLE:
        return [(*left, *pad(cut(title, room), room), *name)]
    second = line(" " * columns(left), Run(hit.doc_id, Style.FAINT))
    return [cut((*left, *title), width), cut(second, width)]


def hit_lines(result: Result, hit: Hit, n_pairs: int, width: int, *, has_styles: bool) -> list[Line]:
    """The parts of a score: section pairs with snippets, the sum of all others, and the document vectors.

    The contributions sum to the score.

    Args:
        result: the result that contains the hit.
        hit: the hit whose score is shown.
        n_pairs: section pairs shown.
        width: columns of the terminal.
        has_styles: as in `result_lines`.
    """
    lines = []
    weights = term_weights(hit, result.language) if n_pairs else {}
    for pair in hit.breakdown.pairs[:n_pairs]:
        lines += _pair(result, hit, pair, weights, width, has_styles)
    lines += [cut(line(" " * _INDENT, *part), width) for part in _rest(hit, n_pairs)]
    if not hit.has_vectors:
        if result.encoding is not None:
            lines.append(cut(line(" " * _INDENT, "scored by words alone: it has no vectors yet"), width))
    elif hit.coverage.tokens_read != hit.coverage.tokens_total:
        lines.append(cut(line(" " * _INDENT, f"of the document {coverage_note(hit.coverage)}"), width))
    return [*lines, *model_lines(result.query, hit, n_pairs, width)]


def model_lines(query: Document, hit: Hit, n_pairs: int, width: int) -> list[Line]:
    """The explanation of the model for a hit: the sum, then its strongest section pairs; no lines if there is none.

    Args:
        query: the query that found the hit.
        hit: of any search; only a search with `explain="model"` adds such an explanation.
        n_pairs: section pairs shown.
        width: columns of the terminal.
    """
    if hit.model is None:
        return []
    margin = " " * _INDENT
    note = f"by the model alone ({hit.model.encoder}): {hit.model.total:.4f} over all section pairs"
    lines = [cut(line(margin, Run(note, Style.FAINT)), width)]
    for pair in strongest_pairs(hit.model, n_pairs):
        head = line(margin, Run(f"{pair.value:.4f}", Style.NUMBER), "  ")
        mine, theirs = section_label(query, pair.query_section), section_label(hit.document, pair.target_section)
        lines.append(_section_names(head, mine, theirs, width))
    return lines


def _section_names(head: Line, mine: str, theirs: str, width: int) -> Line:
    """A line that begins with `head`, and then names a section of the query and one of the target."""
    room = width - columns(head) - 4
    mine = shortened(mine, max(room // 2, room - columns(theirs)))
    return (*head, *line(mine, Run(" -> ", Style.FAINT), shortened(theirs, room - columns(mine))))


def _pair(
    result: Result, hit: Hit, pair: SectionPair, weights: Mapping[int, float], width: int, has_styles: bool
) -> list[Line]:
    margin = " " * _INDENT
    head = line(margin, Run(f"{pair.contribution:.4f}", Style.NUMBER), "  ")
    mine, theirs = section_label(result.query, pair.query_section), section_label(hit.document, pair.target_section)
    lines = [_section_names(head, mine, theirs, width)]
    snippets = pair_snippets(result, hit, pair, weights)
    for mark, snippet in (("<", snippets.query), (">", snippets.target)):
        begin = line(f"{margin}        ", Run(f"{mark} ", Style.FAINT))
        lines.append(cut((*begin, *_snippet(snippet, width - columns(begin) + 1, has_styles)), width))
    if pair.terms:
        terms = ", ".join(f"{part.term} {part.contribution:.4f}" for part in pair.terms[:N_TERMS])
        lines.append(cut(line(f"{margin}        ", Run(f"{pair.words:.4f} in words: {terms}", Style.FAINT)), width))
    return lines


def _snippet(snippet: Snippet, room: int, has_styles: bool) -> Line:
    """A snippet of about `room` columns, its shared words in a style or between asterisks."""
    n_columns = columns(snippet.text)
    if n_columns > room:  # wide characters take two columns
        snippet = snippet.cut(max(1, room * len(snippet.text) // n_columns))
    if not has_styles:
        return line(snippet.marked())
    runs, at = [], 0
    for mark in snippet.marks:
        runs += [Run(snippet.text[at : mark.start]), Run(snippet.text[mark.start : mark.stop], Style.MATCH)]
        at = mark.stop
    return line(*runs, snippet.text[at:])


def _rest(hit: Hit, n_pairs: int) -> list[Line]:
    """The parts of the score beyond the pairs shown."""
    contribution = sum(pair.contribution for pair in hit.breakdown.pairs[n_pairs:])
    contribution += hit.breakdown.small.contribution if hit.breakdown.small else 0.0
    n_hidden = hit.breakdown.n_pairs - len(hit.breakdown.pairs[:n_pairs])
    parts = []
    if n_hidden:
        parts.append(line(Run(f"{contribution:.4f}", Style.NUMBER), f"  {n_hidden} more section pairs"))
    whole = hit.breakdown.document
    if whole is not None:
        note = f"  document vectors (cosine {whole.similarity:.2f})"
        parts.append(line(Run(f"{whole.contribution:.4f}", Style.NUMBER), note))
    return parts


def simple_table(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values in two columns, as plain text."""
    return plain(table(rows))


def comparison_table(comparison: Comparison, *, n_pairs: int = N_PAIRS, width: int = WIDTH) -> str:
    """`comparison_lines` as plain text; words that both texts have are between asterisks."""
    return plain(comparison_lines(comparison, n_pairs=n_pairs, width=width, has_styles=False))


def comparison_lines(
    comparison: Comparison, *, n_pairs: int = N_PAIRS, width: int = WIDTH, has_styles: bool = True
) -> list[Line]:
    """Both documents, the score with the source of its thresholds, and its parts with snippets of both sides.

    Args:
        comparison: of two documents.
        n_pairs: section pairs shown.
        width: columns of the terminal.
        has_styles: whether the output shows styles; otherwise words that both texts have get asterisks.
    """
    result = comparison.result
    (hit,) = result.hits
    lines = [
        *_compared_document("<", result.query, result.query_coverage),
        *_compared_document(">", hit.document, hit.coverage),
        (),
    ]
    score = line("     ", Run(f"{comparison.score:.4f}", Style.NUMBER), Run("  score", Style.TITLE))
    if comparison.background:
        note = f", with thresholds and word statistics of {comparison.background}"
        lines.append((*score, Run(note, Style.FAINT)))
    else:
        lines += [score, *(line(Run(f"     {note}", Style.FAINT)) for note in _NO_BACKGROUND)]
    if not hit.pairs:
        lines.append(line("     no passage and no word matches"))
    parts = hit_lines(result, hit, n_pairs, width, has_styles=has_styles)
    return [cut(one, width) for one in [*lines, (), *parts]]


def _compared_document(mark: str, document: Document, coverage: Coverage) -> list[Line]:
    name = Run(f"  {document.source or document.doc_id}", Style.FAINT)
    read = "compared by words alone" if not coverage.tokens_read else coverage_note(coverage)
    return [
        line(Run(f"{mark} ", Style.FAINT), Run(document.title, Style.TITLE), name),
        line(Run(f"  {read}", Style.FAINT)),
    ]


def novelty_table(found: Novelty, *, n_pairs: int = N_NOVELTY_PAIRS, width: int = WIDTH) -> str:
    """`novelty_lines` as plain text; words that both texts have are between asterisks."""
    return plain(novelty_lines(found, n_pairs=n_pairs, width=width, has_styles=False))


def novelty_lines(
    found: Novelty, *, n_pairs: int = N_NOVELTY_PAIRS, width: int = WIDTH, has_styles: bool = True
) -> list[Line]:
    """The sections, most novel first, each with the document that contains most of it.

    Args:
        found: from `Index.novelty`.
        n_pairs: section pairs shown for each section.
        width: columns of the terminal.
        has_styles: whether the output shows styles; otherwise words that both texts have get asterisks.
    """
    searched = f"{found.n_searched:,} searched for each section, {found.status.value}"
    notes = [f"{coverage_note(found.query_coverage)}; {searched}", f"{len(found)} sections, most novel first"]
    if found.encoding is not None:
        notes += encoding_lines(found.encoding)
    lines = [cut(line(Run("query  ", Style.FAINT), Run(found.query.title, Style.TITLE)), width)]
    lines += [cut(line(Run(f"       {note}", Style.FAINT)), width) for note in notes]
    for number, one in enumerate(found, start=1):
        lines += [(), *_novelty_section(found, number, one, n_pairs, width, has_styles)]
    return lines


def _novelty_section(
    found: Novelty, number: int, one: SectionNovelty, n_pairs: int, width: int, has_styles: bool
) -> list[Line]:
    novelty = "   -  " if one.novelty is None else f"{one.novelty:.4f}"
    pages = found.query.page_numbers(one.span)
    place = f"  p. {pages[0]}" if pages else ""
    head = line(
        f"{number:>3}  ", Run(novelty, Style.NUMBER), "  ", Run(one.heading, Style.TITLE), Run(place, Style.FAINT)
    )
    lines = [cut(head, width)]
    if one.novelty is None:
        return [*lines, cut(line(Run(f"     {_NOTHING}", Style.FAINT)), width)]
    if one.hit is None:
        return [*lines, cut(line(Run("     no document shares anything with it", Style.FAINT)), width)]
    best = line("     ", Run(f"{one.hit.score:.4f}", Style.NUMBER), "  is in ", Run(one.hit.title, Style.TITLE))
    lines.append(cut((*best, *line(Run(f"  {one.hit.doc_id}", Style.FAINT))), width))
    return [*lines, *hit_lines(one.hit.own_result(), one.hit, n_pairs, width, has_styles=has_styles)]
