"""Constructs of XML, HTML, EPUB and wikis, one of each kind: all documents of the file, as texts on one line."""

import pytest

from tests.readers.made import documents_of
from tests.readers.test_kinds import html, jats, tei
from tests.readers.zipped import epub_bytes

_PROSE = "The silt fills the locks, and the otters leave. " * 4


def wiki(text: str) -> str:
    return f"<mediawiki><page><title>T</title><revision><text>{text}</text></revision></page></mediawiki>"


def record(number: int, title: str) -> str:
    fields = {100: "Vane, Ann", 245: title, 520: f"This book is about {title}."}
    parts = (f"<datafield tag='{tag}'><subfield>{field}</subfield></datafield>" for tag, field in fields.items())
    return f"<record><leader>0{number}</leader>{''.join(parts)}</record>"


def paper(title: str) -> str:
    return f"<paper><title>{title}</title><abstract>We study {title} of old.</abstract></paper>"


def rule(tag: str, title: str) -> str:
    return f"<{tag}><PREAMB><SUBJECT>{title}</SUBJECT></PREAMB><P>Old locks leak here.</P></{tag}>"


_SKIPPED = ("<a class='skip-link' href='#m'>Skip to it</a>", "<div class='cookie-banner'>We use cookies.</div>",
            "<div role='dialog' aria-label='Cookie consent'>We use cookies.</div>",
            "<ul class='share-buttons'><li><a href='x'>Facebook</a></ul>", "<noframes><p>No frames.</p></noframes>",
            "<span role='tooltip'>A tip.</span>")  # fmt: skip


@pytest.mark.parametrize(
    ("name", "data", "texts"),
    [
        *(("a.xml", wiki(source), [f"T {text}"]) for source, text in (
            ("Silt&lt;ref name='a' /&gt; is old, and stays.", "Silt is old, and stays."),
            ("{|\n|+ Depths\n! Lock !! cm\n|-\n| Oak || 3\n|}", "Depths Lock | cm Oak | 3"),
            ("It is {{lang|fr|écluse}}, {{nowrap|5 m}}{{main|A}}, {{{1|x}}}.", "It is écluse, 5 m, ."),
            ("Old. [[de:Schleuse]] [[:de:Tor|gate]]", "Old. gate"),
            ("&lt;gallery&gt;\nFile:A.jpg|A map\n&lt;/gallery&gt;", "A map"))),
        *(("a.html", html(f"{part}<p>{_PROSE}</p>"), [_PROSE.strip()]) for part in _SKIPPED),
        *(("a.html", html(f"<div>Top.</div>{start}<p>{_PROSE}</p></{end}>{script}"), [_PROSE.strip()])
          for start, end, script in (("<div role='main'>", "div", ""),
                                     ("<main>", "main", f"<script>{'a = 1; ' * 400}</script>"))),
        ("a.html", html("<h2><span class='secnum'>1.</span>Aim</h2><p>Oak.</p>"), ["1. Aim Oak."]),
        *(("a.html", html(f"<p>{part}</p>"), [text]) for part, text in (
            ("<a href='x'>News</a><a href='y'>Results</a> of <b>Mac</b>Donald", "News Results of MacDonald"),
            ("Java<b>Script</b> is JavaScript, <b>Open</b>Source no", "JavaScript is JavaScript, Open Source no"),
            ("Proof<a href='x'>2</a> see §<a href='y'>12</a>", "Proof^2 see §12"),
            ("<span style='margin-top:-100px'>It leaks.</span><span style='top:-999px'>Hid.</span>", "It leaks."))),
        ("a.xhtml", "<!DOCTYPE html [ <!ENTITY a '>'> ]>" + html("<p>Oak.</p>"), ["Oak."]),
        ("a.xml", f"<collection>{record(1, 'locks')}{record(2, 'old gates')}</collection>",
         ["01 Vane, Ann locks This book is about locks.", "02 Vane, Ann old gates This book is about old gates."]),
        ("a.xml", f"<collection><volume><meta>P19</meta>{paper('silt')}{paper('mud')}</volume></collection>",
         ["silt Abstract We study silt of old.", "mud Abstract We study mud of old."]),
        ("a.xml", "<cases><case><p>The lease is void.</p></case><case><p>The toll is due.</p></case></cases>",
         ["The lease is void.", "The toll is due."]),
        ("a.xml", f"<FEDREG><VOL>1</VOL><RULES>{rule('RULE', 'Tolls')}</RULES>{rule('NOTICE', 'Gates')}</FEDREG>",
         ["Tolls Old locks leak here.", "Gates Old locks leak here."]),
        *(("a.xml", f"<doc><p>The silt settles here.</p>{part}</doc>", [f"The silt settles here. {text}"])
          for part, text in (
            ("<action><date>May 4, 2019</date><act>Received</act></action>", "May 4, 2019 Received"),
            ("<p>It is due; and<page>128 STAT. 12</page></p><page>129</page>", "It is due; and"),
            ("<p>Silt<CitationRef>12</CitationRef> is<ref style='-uslm-sgm:SU'>3</ref>.</p>", "Silt^12 is^3."),
            ("<p><who><a1>Ann</a1><a2>Vane</a2></who>Vane: It leaks.</p>", "Ann Vane Vane: It leaks."),
            ("<section><title><nr>1</nr>Aim</title><p>Oak is old.</p></section>", "1 Aim Oak is old."),
            ("<li><li.nr>a.</li.nr><al>oak;</al></li>", "a. oak;"),
            ("<speech speakername='Ms Vane'><p>It leaks.</p></speech>", "Ms Vane: It leaks."),
            ("<binary>/9j/4AAQSkZJRg</binary>", ""),
          )),
        ("a.tei", tei("<list><label>(a)</label><item>Oak</item><label>(b)</label><item>Elm</item></list>"),
         ["(a) Oak (b) Elm"]),
        ("a.tei", tei("<figure><head>Fig. 1</head><label>1</label><figDesc>A map.</figDesc></figure>"),
         ["Fig. 1 A map."]),
        *(("a.xml", jats("", f"<p>One <{tag}><caption><p>A map.</p></caption></{tag}> two.</p>"),
           ["One two. A map."]) for tag in ("supplementary-material", "media")),
        ("a.xml", "<us-patent-grant><claims><claim num='02-005'><claim-text>(cancelled)</claim-text></claim></claims>"
         "</us-patent-grant>", ["Claims 2-5. (cancelled)"]),
        ("a.epub", epub_bytes({"c.xhtml": "<h1>Contents</h1><p><a href='a.xhtml'>Oak</a></p><p><a href='b.xhtml'>Elm"
         "</a></p>", "a.xhtml": "<p>Oaks.</p>", "b.xhtml": "<p>Elms.</p>"}), ["Oaks. Elms."]),
    ],
)  # fmt: skip
def test_the_texts_of_a_tree(name: str, data: str | bytes, texts: list[str]) -> None:
    documents = documents_of(name, data)
    assert [" ".join(document.text.split()) for document in documents] == [text.strip() for text in texts]
    assert all("unexplained_words" not in document.left_out for document in documents)


def test_what_a_page_declares_for_search_engines_is_its_title_and_date() -> None:
    declared = '{"@type": "Article", "headline": "Old Locks", "datePublished": "2020-04-03T10:00:00Z"}'
    page = html(f"<script type='application/ld+json'>{declared}</script><p>Oak.</p>").replace("<title>T</title>", "")
    (document,) = documents_of("a.html", page)
    assert (document.title, document.metadata["date"]) == ("Old Locks", "2020-04-03")
