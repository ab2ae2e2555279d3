#!/usr/bin/env bash
# fugashi: "dichlorodiphenyltrichloroethane" in a Japanese text is 7 words, d, i, c, h, l, o and "rodiphenyltrichloroethane"; 25 letters are one.
#
# Expected: a word of Latin letters that is not in the dictionary is one unknown word, as "dichlorodiphenyl" is, whatever its length, or a
# part of it is cut off where a limit is reached, at the limit. Janome keeps it whole.
# What happens: MeCab groups at most 25 letters of one kind into an unknown word (24 by its help) and takes the cheapest way to get there, which
# is single letters first and the group at the end. Each letter is a token. The same holds for numbers and identifiers of more than 25
# characters without a sign. Nothing is logged; "-M 100" in the arguments of Tagger mends it.
# Who meets this: whoever searches Japanese patents and papers by words: names of compounds, enzymes, sequences and German laws; the letters
# "d" and "o" become frequent words, the tail is a rare one, and the name with another beginning shares it.
# Versions: fugashi 1.5.2, unidic-lite 1.0.8, Janome 0.5.1. Source: issue 64 of taku910/mecab (24 or 25), issue 21 of polm/cutlet.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check fugashi==1.5.2 unidic-lite==1.0.8 Janome==0.5.1 2>/dev/null

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

from fugashi import Tagger
from janome.tokenizer import Tokenizer

tagger, longer, janome = Tagger(), Tagger("-M 100"), Tokenizer()


def words(name: str) -> list[str]:
    """The words that stand for the name in "... is forbidden."."""
    text = f"{name}の使用を禁止する。"
    found = [word.surface for word in tagger(text)]
    found = found[: found.index("の")]
    print(f"{len(name)} characters: {found}")
    assert "".join(found) == name
    assert next(iter(longer(text))).surface == next(janome.tokenize(text)).surface == name
    return found


print(*(f"{package} {version(package)}" for package in ("fugashi", "unidic-lite", "Janome")), sep=", ")
DDT = "dichlorodiphenyltrichloroethane"
for name in ("dichlorodiphenyl", DDT[:25]):
    assert words(name) == [name]
for name in (DDT[:26], DDT, "Rindfleischetikettierungsgesetz", "deoxyribonucleotidyltransferase"):
    cut = len(name) - 25
    assert words(name) == [*name[:cut], name[cut:]]
PYTHON
