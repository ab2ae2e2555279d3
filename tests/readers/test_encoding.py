"""The encoding of text files is detected, and characters that cannot be stored are replaced."""

import pytest

from engine.errors import DocumentError
from engine.readers.encoding import decode
from engine.text.cleaning import clean
from tests.cases import cases

RUSSIAN = "Длинные документы ищут длинные документы, и программа показывает, почему они похожи. " * 5


WESTERN = "The café is naïve … “quoted”. " * 4


@pytest.mark.parametrize(
    ("encoding", "text"),
    [(name, WESTERN) for name in ("utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "cp1252")]
    + [("cp1251", RUSSIAN), ("koi8_r", RUSSIAN)]
    + [("cp1252", "Le gardien ferme l’écluse — à minuit, « dit-il ». Œuvre déjà finie. " * 60)]
    + [("cp1252", "O guarda não fechou a comporta; a inundação não é rápida, ações e corações. " * 10)]
    + [("iso8859_2", "Příliš žluťoučký kůň úpěl ďábelské ódy u řeky. Šťastný hlídač zavřel vrata. " * 10)]
    + [("cp866", "Шлюз на реке очень старый, и вода поднимается."), ("cp1255", "מים: השער של הנהר פתוח.")]
    + [("koi8_u", "Шлюз на річці дуже старий, і вода підіймається."), ("cp874", "ประตูน้ำนี้เก่ามากและน้ำขึ้นทุกเช้า")]
    + [("mac_roman", "Die Schleuse ist für Käufer größer und schöner.")]
    + [("iso8859_2", "Vrata zapornice čuvar zatvara; šuma, žaba, ćuprija, đak. " * 10)],
)
def test_every_usual_encoding_is_detected(encoding: str, text: str) -> None:
    assert decode(text.encode(encoding)) == text


@cases(
    "data, declared, text",
    {
        "valid UTF-8 is read as UTF-8 whatever is declared": ("über".encode(), "cp1252", "über"),
        "a declared encoding is used where UTF-8 does not fit": ("Łódź".encode("iso8859-2"), "iso8859-2", "Łódź"),
        "an unknown declared encoding is passed over": (b"plain", "x-none", "plain"),
        "a damaged byte does not change the encoding": (RUSSIAN.encode() + b"\xff.", "", RUSSIAN + "\ufffd."),
        "stray bytes in ASCII are replaced": (b"plain " * 99 + b"\x81\x8d.", "", "plain " * 99 + "\ufffd\ufffd."),
        "newlines become one kind": (b"a\r\nb\rc\nd", "", "a\nb\nc\nd"),
    },
)
def test_bytes_are_decoded(data: bytes, declared: str, text: str) -> None:
    assert decode(data, declared=declared) == text


def test_nul_and_lone_surrogates_are_replaced_in_place() -> None:
    assert clean("a\x00b\ud800c") == "a\ufffdb\ufffdc"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (bytes(range(256)) * 10, "binary data, not text"),
        (b"\xef\xbb\xbfcaf\xe9", "mark of utf-8 but is not utf-8"),
        (bytes(range(128, 256)) * 3, "none of UTF-8, UTF-16, cp1252, cp1250"),
    ],
)
def test_bytes_that_are_no_text_are_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentError, match=reason):
        decode(data)
