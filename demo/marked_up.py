"""A proposal as a whole file of a markup language: its head, its metadata, its body."""

from __future__ import annotations

import html
import json
from xml.sax.saxutils import escape

from demo.blocks import Block, Part, parts
from demo.markup import HTML, JATS, LATEX, MARKDOWN, TEI
from demo.proposals import Proposal


def markdown(proposal: Proposal) -> str:
    """Markdown with front matter."""
    head = {"title": json.dumps(proposal.title, ensure_ascii=False)} | proposal.metadata
    front = "".join(f"{key}: {value}\n" for key, value in head.items())
    return (
        f"---\n{front}---\n\n# {proposal.label}: {proposal.title}\n\n{MARKDOWN.body(parts(proposal))}".rstrip() + "\n"
    )


def web_page(proposal: Proposal) -> str:
    """HTML, metadata in its head."""
    metas = "".join(
        f'<meta name="{key}" content="{html.escape(str(value))}">\n' for key, value in proposal.metadata.items()
    )
    title = escape(f"{proposal.label}: {proposal.title}")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n{metas}</head>\n'
        f"<body>\n<header>{proposal.series}</header>\n<main>\n<h1>{title}</h1>\n{HTML.body(parts(proposal))}"
        "</main>\n<footer>CC0-1.0 or public domain</footer>\n</body>\n</html>\n"
    )


def latex(proposal: Proposal) -> str:
    """A LaTeX article, its abstract in the environment of that name."""
    abstract, others = _split_abstract(proposal)
    opening = "".join(LATEX.block(block) for block in abstract)
    return (
        "\\documentclass{article}\n\\usepackage[utf8]{inputenc}\n\\usepackage[T1]{fontenc}\n\n"
        f"% {json.dumps(proposal.metadata)}\n\\title{{{LATEX.inline(proposal.title)}}}\n"
        f"\\author{{{proposal.label}}}\n\\date{{{proposal.created}}}\n\n\\begin{{document}}\n\\maketitle\n\n"
        f"\\begin{{abstract}}\n{opening}\\end{{abstract}}\n\n{LATEX.body(others)}\\end{{document}}\n"
    )


def jats(proposal: Proposal) -> str:
    """A JATS article, metadata as custom-meta."""
    abstract, others = _split_abstract(proposal)
    custom = "".join(
        f"<custom-meta><meta-name>{key}</meta-name><meta-value>{escape(str(value))}</meta-value></custom-meta>\n"
        for key, value in proposal.metadata.items()
    )
    year, month, day = proposal.created.split("-")
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<article article-type="other" dtd-version="1.3" xml:lang="en">\n'
        f"<front>\n<journal-meta><journal-title-group><journal-title>{proposal.series}</journal-title>"
        f'</journal-title-group></journal-meta>\n<article-meta>\n<article-id pub-id-type="publisher-id">{proposal.name}'
        f"</article-id>\n<title-group><article-title>{JATS.inline(proposal.title)}</article-title></title-group>\n"
        f'<pub-date iso-8601-date="{proposal.created}"><day>{day}</day><month>{month}</month><year>{year}</year>'
        "</pub-date>\n"
        f"<abstract>\n{''.join(JATS.block(block) for block in abstract)}</abstract>\n"
        f"<custom-meta-group>\n{custom}</custom-meta-group>\n</article-meta>\n</front>\n"
        f"<body>\n{JATS.body(others)}</body>\n</article>\n"
    )


def tei(proposal: Proposal) -> str:
    """A TEI document, metadata as identifiers and keywords."""
    abstract, others = _split_abstract(proposal)
    terms = "".join(f'<term type="{key}">{escape(str(value))}</term>' for key, value in proposal.metadata.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<TEI xmlns="http://www.tei-c.org/ns/1.0">\n<teiHeader>\n<fileDesc>\n'
        f"<titleStmt><title>{TEI.inline(proposal.title)}</title></titleStmt>\n<publicationStmt><publisher>{proposal.series}"
        f'</publisher><idno type="proposal">{proposal.name}</idno><date when="{proposal.created}"/></publicationStmt>\n'
        f"<sourceDesc><p>{proposal.label}</p></sourceDesc>\n</fileDesc>\n<profileDesc>\n"
        f"<textClass><keywords>{terms}</keywords></textClass>\n"
        f"<abstract>\n{''.join(TEI.block(block) for block in abstract)}</abstract>\n</profileDesc>\n</teiHeader>\n"
        f'<text xml:lang="en">\n<body>\n{TEI.body(others)}</body>\n</text>\n</TEI>\n'
    )


def _split_abstract(proposal: Proposal) -> tuple[tuple[Block, ...], list[Part]]:
    """The blocks of the abstract, and the other parts."""
    every = parts(proposal)
    abstract = next(part for part in every if part.heading in ("Abstract", "Simple Summary"))
    return abstract.blocks, [part for part in every if part is not abstract]
