"""Results as lines for a terminal, in styles or as plain text. Prints nothing.

Results of searches with several documents are also plain values here.
"""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from unicodedata import category

from engine.report import contract
from engine.report.lines import (
    Line,
    Run,
    Style,
    columns,
    counted,
    cut,
    duration,
    line,
    pad,
    pages_label,
    plain,
    shortened,
)
from engine.report.quotes import marked_runs, window
from engine.result import N_SNIPPETS, Encoding, JointResult, Result
from engine.scoring.evidence import LEVELS, Floor
from engine.text.cleaning import safe
from engine.text.document import Document
from engine.text.segmentation import Coverage

WIDTH = 80
N_PAIRS = 3
N_NOVELTY_PAIRS = 1  # of each section
N_TERMS = 5
_INDENT = 5
_LEAST_TITLE = 24  # columns; if there are fewer, the doc_id is on a line of its own
_NOTHING = "nothing to compare: the section has no content words"
NO_FLOOR_OF_SECTIONS = "what unrelated documents contain of a section is not known"
_NO_BACKGROUND = (
    "without an index there are no thresholds: the score is high for any two texts, and serves to order the parts "
    "below; --index INDEX takes some"
)


def result_lines(result: Result, *, n_pairs: int | None = None, width: int = WIDTH) -> list[Line]:
    """The hits of one query, each with the strongest sections of the query and a quote of both sides.

    Sections of a search for novelty, most novel first, have their best hits; a comparison has one hit.

    Args:
        n_pairs: sections of the query shown for each hit; by default 3, for novelty 1.
    """
    if result.sections is not None:
        return _novelty(result, N_NOVELTY_PAIRS if n_pairs is None else n_pairs, width)
    n_pairs = N_PAIRS if n_pairs is None else n_pairs
    if result.background is not None:
        return _comparison(result, n_pairs, width)
    lines = [*_head(result, width), line()]
    for hit in contract.hit_dicts(result, n_pairs=n_pairs):
        is_on_demand = result.encoding is not None
        lines += [
            *title_line(hit, width),
            *_summary(hit, width),
            *hit_lines(hit, n_pairs, width, is_on_demand=is_on_demand),
            line(),
        ]
    if not result.hits:
        lines += [*_note(no_hits(result), width, 0, Style.PLAIN), line()]
    return lines[:-1]


def _head(result: Result, width: int) -> list[Line]:
    searched = f"{result.n_searched:,} searched{undated_note(result)}, {result.status.value}"
    counts = f"{len(result.hits)} shown of {result.n_found:,} matching"
    if result.query_coverage.tokens_read:
        counts += f", {result.n_evident:,} by passages above their thresholds"
    notes = [f"{coverage_note(result.query_coverage)}; {searched}", counts, floor_note(result), language_note(result)]
    if result.encoding is not None:
        notes += encoding_lines(result.encoding)
    return _title_and_notes(result, notes, width)


def _title_and_notes(result: Result, notes: Sequence[str], width: int) -> list[Line]:
    title = line(Run("query  ", Style.FAINT), Run(result.query.title, Style.TITLE))
    return [cut(title, width), *(part for note in notes for part in _note(note, width, 7))]


def _note(text: str, width: int, indent: int = _INDENT, style: Style = Style.FAINT) -> list[Line]:
    return [
        line(Run(" " * indent + part, style)) for part in textwrap.wrap(safe(text), max(_LEAST_TITLE, width - indent))
    ]


def undated_note(result: Result) -> str:
    """How many documents were left out as they have no date; "" without a cut-off by date."""
    return "" if result.n_undated is None else f" ({result.n_undated:,} without a date left out)"


def language_note(result: Result) -> str:
    """That query and index are in two languages; "" where they are not."""
    if result.language is None or (name := result.query_language) is None:
        return ""
    return (
        f"the query is in {name.capitalize()}, the index in {result.language.capitalize()}: words hardly match across "
        "languages, and passages only by an encoder of both"
    )


def floor_note(result: Result) -> str:
    """What the scores of unrelated documents are, and whether any hit stands out from them."""
    return reach_note(result.floor, result.nothing_stands_out, [hit.score for hit in result.hits])


def reach_note(floor: Floor | None, nothing_stands_out: bool, scores: Sequence[float]) -> str:
    """The note of `floor_note` for hits with some scores."""
    if floor is None:
        reasons = "too few documents, an unfinished longmatch index, or not the default score of similar documents"
        return f"scores of unrelated documents are not known: {reasons}"
    reach = f"unrelated documents of this index reach {floor.p99:.2f}"
    if nothing_stands_out:
        return f"nothing stands out: {reach}"
    n_above = sum(score > floor.p99 for score in scores)
    return f"{reach}; hits above that: {n_above} of {len(scores)}" if scores else reach


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
        return f"all {counted(coverage.tokens_total, 'token')} read{pooled_note(coverage)}"
    share = f"({coverage.share:.1%}){pooled_note(coverage)}"
    return f"{coverage.tokens_read:,} of {coverage.tokens_total:,} tokens read {share}"


def pooled_note(coverage: Coverage) -> str:
    """A note for a query whose chunks were pooled because it is very long; "" for another query."""
    return f", up to {coverage.chunks_pooled} chunks pooled into one" if coverage.chunks_pooled > 1 else ""


def no_hits(result: Result) -> str:
    """Why a result has no hits."""
    if result.n_searched == 0:
        return "no document was searched: the index holds none besides the query, or the filter leaves none"
    least = None if result.provenance is None else result.provenance.parameters.get("least")
    if result.n_found and least is not None:
        least = "that of unrelated documents" if least == "auto" else f"{least:g}"
        return f"no hit on this page reaches the least score of the search, {least}"
    if result.n_found:
        return f"past the end: {result.n_found:,} documents match; take a smaller offset"
    return "no document matches: none shares a word or a passage with the query"


def title_line(hit: Mapping[str, Any], width: int) -> list[Line]:
    """Rank, score, title and doc_id; the score is faint where unrelated documents reach it."""
    is_low = hit["above"] is not None and hit["above"] < LEVELS[-1]
    left = line(f"{hit['rank']:>3}  ", Run(f"{hit['score']:.4f}", Style.FAINT if is_low else Style.NUMBER), "  ")
    title, name = line(Run(hit["title"], Style.TITLE)), line(Run(f"  {hit['id']}", Style.FAINT))
    room = width - columns(left) - columns(name)
    if room >= _LEAST_TITLE:
        return [(*left, *pad(cut(title, room), room), *name)]
    second = line(" " * columns(left), Run(hit["id"], Style.FAINT))
    return [cut((*left, *title), width), cut(second, width)]


def _summary(hit: Mapping[str, Any], width: int) -> list[Line]:
    notes = [contract.summary(hit), *contract.reference_notes(hit)]
    return [part for note in notes for part in _note(note, width, style=Style.PLAIN)]


def hit_lines(hit: Mapping[str, Any], n_pairs: int, width: int, *, is_on_demand: bool) -> list[Line]:
    """The score by section of the query: share and best counterpart of each, with quotes, and the sum of the others."""
    margin = " " * _INDENT
    rows = zip(hit["by_section"]["rows"], contract.best_parts(hit), strict=True)
    lines = [shown for row, part in rows for shown in _section(row, part, width)]
    share, note = contract.rest_note(hit)
    if note:
        lines.append(cut(line(margin, Run(f"{contract.percent(share):>7}", Style.NUMBER), f"  {note}"), width))
    coverage = Coverage(hit["coverage"]["tokens_read"], hit["coverage"]["tokens_total"])
    if not hit["has_vectors"]:
        if is_on_demand:
            lines += _note("scored by words alone: it has no vectors yet", width, style=Style.PLAIN)
    elif coverage.tokens_read != coverage.tokens_total:
        lines += _note(f"of the document {coverage_note(coverage)}", width, style=Style.PLAIN)
    return [*lines, *_model_lines(hit, n_pairs, width)]


def _model_lines(hit: Mapping[str, Any], n_pairs: int, width: int) -> list[Line]:
    """The explanation of the model: the sum, then its strongest section pairs; no lines if there is none."""
    if (model := hit.get("model")) is None:
        return []
    lines = _note(f"by the model alone ({model['encoder']}): {model['total']:.4f} over all section pairs", width)
    for value, query, target in contract.model_pairs(hit, n_pairs):
        head = line(" " * _INDENT, Run(f"{value:.4f}", Style.NUMBER), "  ")
        lines.append(_section_names(head, query, target, width))
    return lines


def _section_names(head: Line, query: str, target: str, width: int) -> Line:
    """A line that begins with `head`, and then names a section of the query and one of the target."""
    room = width - columns(head) - 4
    query = shortened(query, max(room // 2, room - columns(target)))
    return (*head, *line(query, Run(" -> ", Style.FAINT), shortened(target, room - columns(query))))


def _section(row: Mapping[str, Any], best: Mapping[str, Any], width: int) -> list[Line]:
    margin = " " * _INDENT
    head = line(margin, Run(f"{contract.percent(row['share']):>7}", Style.NUMBER), "  ")
    pages = pages_label(best["quotes"]["target"])
    place = line(Run(f"  {pages}", Style.FAINT)) if pages else ()
    names = best["query_section"]["label"], best["target_section"]["label"]
    lines = [(*_section_names(head, *names, width - columns(place)), *place)]
    mine, theirs = (_quote(best["quotes"][side], width - len(margin) - 11) for side in ("query", "target"))
    is_equal = _has_equal_words(best["quotes"]) or plain([mine]) == plain([theirs])
    for sign, quote in (("=", mine),) if is_equal else (("<", mine), (">", theirs)):
        lines.append(cut((*line(f"{margin}         ", Run(f"{sign} ", Style.FAINT)), *quote), width))
    if stock := best["quotes"]["stock"]:
        lines.append(cut(line(f"{margin}         ", Run(stock_note(stock), Style.FAINT)), width))
    if best["words"]:
        lead, terms = f"{margin}         words: ", [word["term"] for word in best["words"][:N_TERMS]]
        while len(terms) > 1 and columns(lead + ", ".join(terms)) > width:
            terms.pop()
        lines.append(cut(line(Run(lead + ", ".join(terms), Style.FAINT)), width))
    return lines


def _has_equal_words(quotes: Mapping[str, Any]) -> bool:
    """Whether both quotes differ in nothing but case, punctuation and markup, so that one line shows both."""
    query, target = (
        "".join(" " if category(letter)[0] in "PSZC" else letter for letter in quotes[side]["text"].casefold()).split()
        for side in ("query", "target")
    )
    return query == target


def stock_note(stock: Mapping[str, int]) -> str:
    """That a sentence is stock, for people."""
    if not stock["n_documents"]:
        return "boilerplate: a set phrase"
    return f"boilerplate: {stock['n_documents']:,} of {stock['n_compared']:,} reference documents have it"


def _quote(quote: Mapping[str, Any], room: int) -> Line:
    """A quote of at most about `room` columns, its marks in a style."""
    text, marks = quote["text"], tuple(contract.spans(quote["marks"]))
    n_columns = columns(text)
    if n_columns > room:  # wide characters take two columns
        text, marks = window(text, marks, max(1, room * len(text) // n_columns))
    return line(*(Run(run, Style.MATCH if is_marked else Style.PLAIN) for run, is_marked in marked_runs(text, marks)))


def _comparison(result: Result, n_pairs: int, width: int) -> list[Line]:
    """Both documents, the score with the source of its thresholds, and its parts with quotes of both sides."""
    (hit,) = result.hits
    lines = [
        *_compared_document("<", result.query, result.query_coverage),
        *_compared_document(">", hit.document, hit.coverage),
        (),
    ]
    score = line("     ", Run(f"{hit.score:.4f}", Style.NUMBER), Run("  score", Style.TITLE))
    if result.background:
        note = f", with thresholds and word statistics of {result.background}"
        lines.append((*score, Run(note, Style.FAINT)))
        reach = "are not known" if result.floor is None else f"reach {result.floor.p99:.2f}"
        lines += _note(f"scores of unrelated documents {reach}", width)
    else:
        lines += [score, *_note(_NO_BACKGROUND, width)]
    if not hit.pairs:
        lines.append(line("     no passage and no word matches"))
    (values,) = contract.hit_dicts(result, n_pairs=n_pairs)
    parts = [*_summary(values, width), *hit_lines(values, n_pairs, width, is_on_demand=False)]
    return [cut(shown, width) for shown in [*lines, (), *parts]]


def _compared_document(mark: str, document: Document, coverage: Coverage) -> list[Line]:
    name = Run(f"  {document.source or document.doc_id}", Style.FAINT)
    read = "compared by words alone" if not coverage.tokens_read else coverage_note(coverage)
    return [
        line(Run(f"{mark} ", Style.FAINT), Run(document.title, Style.TITLE), name),
        line(Run(f"  {read}", Style.FAINT)),
    ]


def _novelty(result: Result, n_pairs: int, width: int) -> list[Line]:
    """The sections, most novel first, each with the document that contains most of it."""
    sections = contract.result_dict(result, n_pairs=n_pairs)["sections"]
    searched = f"{result.n_searched:,} searched for each section{undated_note(result)}, {result.status.value}"
    notes = [
        f"{coverage_note(result.query_coverage)}; {searched}",
        f"{counted(len(sections), 'section')}, most novel first",
    ]
    if result.encoding is not None:
        notes += encoding_lines(result.encoding)
    notes += [NO_FLOOR_OF_SECTIONS, language_note(result)]
    lines = _title_and_notes(result, notes, width)
    is_on_demand = result.encoding is not None
    for number, values in enumerate(sections, start=1):
        lines += [(), *_novelty_section(number, values, n_pairs, width, is_on_demand=is_on_demand)]
    return lines


def _novelty_section(
    number: int, values: Mapping[str, Any], n_pairs: int, width: int, *, is_on_demand: bool
) -> list[Line]:
    section, hit = values["section"], values["hit"]
    novelty = "   -  " if values["novelty"] is None else f"{values['novelty']:.4f}"
    place = "" if section["page"] is None else f"  p. {section['page']}"
    head = line(
        f"{number:>3}  ", Run(novelty, Style.NUMBER), "  ", Run(section["label"], Style.TITLE), Run(place, Style.FAINT)
    )
    lines = [cut(head, width)]
    if values["novelty"] is None:
        return [*lines, *_note(_NOTHING, width)]
    if hit is None:
        return [*lines, *_note("no document shares anything with it", width)]
    best = line("     ", Run(f"{hit['score']:.4f}", Style.NUMBER), "  is in ", Run(hit["title"], Style.TITLE))
    lines.append(cut((*best, *line(Run(f"  {hit['id']}", Style.FAINT))), width))
    return [*lines, *hit_lines(hit, n_pairs, width, is_on_demand=is_on_demand)]


_OF_TARGET = ("rank", "id", "title")


def joint_dict(result: JointResult, *, n_pairs: int | None = N_SNIPPETS) -> dict[str, Any]:
    """A result as plain values: the contributions of `by_query` sum to the score of a hit, to 1e-5."""
    heads = [contract.head_dict(of_query) for of_query in result.results]
    queries = [
        {"weight": weight}
        | {name: head[name] for name in ("query", "query_language", "encoding", "provenance", "floor")}
        for weight, head in zip(result.weights, heads, strict=True)
    ]
    return {
        "schema": contract.JOINT_VERSION,
        "queries": queries,
        "status": result.status.value,
        "n_searched": result.n_searched,
        "n_undated": heads[0]["n_undated"],
        "seconds": round(result.seconds, 6),
        "language": heads[0]["language"],
        "reference": heads[0]["reference"],
        "copies": list(result.copies),
        "floor": None if result.floor is None else asdict(result.floor),
        "nothing_stands_out": result.nothing_stands_out,
        "hits": [*_hits(result, n_pairs)],
    }


def _hits(result: JointResult, n_pairs: int | None) -> Iterator[dict[str, Any]]:
    """The hits; the contributions of the query documents sum to their scores."""
    rows = zip(
        result.hits, *(contract.hit_dicts(of_query, n_pairs=n_pairs) for of_query in result.results), strict=True
    )
    for hit, *by_query in rows:
        target = {name: by_query[0][name] for name in _OF_TARGET} | {"score": hit.score}
        above = None if result.floor is None else result.floor.level(hit.score)
        parts = [
            {"contribution": contribution, "hit": values}
            for contribution, values in zip(hit.contributions, by_query, strict=True)
        ]
        yield target | {"above": above, "by_query": parts}


def joint_lines(result: JointResult, *, n_pairs: int | None = None, width: int = WIDTH) -> list[Line]:
    """The hits, each with its score by query document, and the strongest sections of each of those to be like."""
    n_pairs = 1 if n_pairs is None else n_pairs
    lines = []
    for of_query, weight in zip(result.results, result.weights, strict=True):
        head = line(Run("like    " if weight > 0 else "unlike  ", Style.FAINT), Run(of_query.query.title, Style.TITLE))
        lines += [cut(head, width), *_note(language_note(of_query), width, 8)]
    reach = reach_note(result.floor, result.nothing_stands_out, list(result.scores))
    searched = f"{result.n_searched:,} searched{undated_note(result.results[0])}, {result.status.value}"
    notes = [f"{searched}; {counted(len(result), 'hit')}", reach]
    lines += [*(part for note in notes for part in _note(note, width, 8)), line()]
    for hit in joint_dict(result, n_pairs=n_pairs)["hits"]:
        lines += title_line(hit, width)
        for part, of_query, weight in zip(hit["by_query"], result.results, result.weights, strict=True):
            number = Run(f"{part['contribution']:+8.4f}", Style.NUMBER)
            lines += [cut(line(" " * _INDENT, number, f"  {safe(of_query.query.title)}"), width)]
            lines += _summary(part["hit"], width)
            if weight > 0 and n_pairs:
                lines += hit_lines(part["hit"], n_pairs, width, is_on_demand=of_query.encoding is not None)
        lines.append(line())
    if not len(result):
        lines += [*_note(_no_joint_hits(result), width, 0, Style.PLAIN), line()]
    return lines[:-1]


def _no_joint_hits(result: JointResult) -> str:
    """Why a search with several documents has no hits."""
    first = result.results[0]
    parameters = {} if first.provenance is None else first.provenance.parameters
    if not first.n_searched or parameters.get("least") is not None:
        return no_hits(first)
    if parameters.get("offset"):
        return "past the end: take a smaller offset"
    return "no hit: no document is nearer to the first than to the others"
