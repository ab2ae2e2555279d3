"""Abbreviations of reporters, codes and states, and their usual form."""

from __future__ import annotations

import re

_REPORTERS = """
U.S.|S. Ct.|L. Ed.|L. Ed. 2d|F.|F.2d|F.3d|F.4th|F. App'x|F. Supp.|F. Supp. 2d|F. Supp. 3d|F. Cas.|F.R.D.|B.R.|Fed. Cl.
Ct. Cl.|Cl. Ct.|T.C.|T.C.M.|B.T.A.|C.C.P.A.|Ct. Int'l Trade|Vet. App.|M.J.|C.M.R.|I. & N. Dec.|N.L.R.B.|F.C.C.|F.T.C.
U.S.P.Q.|U.S.P.Q.2d|U.S.L.W.|U.S. App. D.C.|App. D.C.|A.L.R.|A.L.R.2d|A.L.R.3d|A.L.R.4th|A.L.R. Fed.|F.C.C. Rcd.
A.|A.2d|A.3d|N.E.|N.E.2d|N.E.3d|N.W.|N.W.2d|N.W.3d|P.|P.2d|P.3d|S.E.|S.E.2d|S.W.|S.W.2d|S.W.3d|So.|So. 2d|So. 3d
N.Y.|N.Y.2d|N.Y.3d|N.Y.S.|N.Y.S.2d|N.Y.S.3d|A.D.|A.D.2d|A.D.3d|Misc.|Misc. 2d|Misc. 3d|Barb.|Johns.|Wend.|Paige
Cal.|Cal. 2d|Cal. 3d|Cal. 4th|Cal. 5th|Cal. App.|Cal. App. 2d|Cal. App. 3d|Cal. App. 4th|Cal. App. 5th
Cal. Rptr.|Cal. Rptr. 2d|Cal. Rptr. 3d|Ill.|Ill. 2d|Ill. App.|Ill. App. 2d|Ill. App. 3d|Ill. Dec.|Mass.|Mass. App. Ct.
Pick.|Cush.|Gray|Allen|Pa.|Pa. Super.|Pa. Commw.|N.J.|N.J. Super.|N.J.L.|N.J. Eq.|Ohio St.|Ohio St. 2d|Ohio St. 3d
Ohio App.|Ohio App. 2d|Ohio App. 3d|Mich.|Mich. App.|Wis.|Wis. 2d|Minn.|Va.|Va. App.|W. Va.|N.C.|N.C. App.|S.C.|Ga.
Ga. App.|Md.|Md. App.|Conn.|Conn. App.|Conn. Supp.|Wash.|Wash. 2d|Wash. App.|Wash. App. 2d|Or.|Or. App.|Colo.|Ariz.
Ariz. App.|Kan.|Kan. App.|Kan. App. 2d|Neb.|Neb. App.|Iowa|Mo.|Mo. App.|Ind.|Ind. App.|Ky.|Tenn.|Tenn. App.|Ala.
Ala. App.|Ark.|Ark. App.|La.|La. Ann.|Miss.|Fla.|Tex.|Tex. Crim.|Tex. Civ. App.|Okla.|Okla. Crim.|N.M.|N.M. App.|Nev.
Utah|Utah 2d|Idaho|Mont.|Haw.|Hawai'i|Haw. App.|N.D.|S.D.|Vt.|N.H.|Me.|R.I.|Del.|Del. Ch.|D.C.|P.R.|Guam
Dall.|Cranch|Wheat.|Pet.|How.|Black|Wall.|Stat.|Fed. Reg.
"""
_SPELLINGS = {"fedappx": "F. App'x", "fappx": "F. App'x", "supct": "S. Ct.", "fr": "Fed. Reg.", "wn2d": "Wash. 2d"}
_EARLY = {  # reporters of the Supreme Court that were numbered again: volumes, and the number before their first
    "Dall.": (4, 0),
    "Cranch": (9, 4),
    "Wheat.": (12, 13),
    "Pet.": (16, 25),
    "How.": (24, 41),
    "Black": (2, 65),
    "Wall.": (23, 67),
}
_STATES = """
Ala. Alabama|Alaska|Ariz. Arizona|Ark. Arkansas|Cal. Calif. California|Colo. Colorado|Conn. Connecticut|Del. Delaware
D.C.|Fla. Florida|Ga. Georgia|Haw. Hawaii|Idaho|Ill. Illinois|Ind. Indiana|Iowa|Kan. Kansas|Ky. Kentucky|La. Louisiana
Me. Maine|Md. Maryland|Mass. Massachusetts|Mich. Michigan|Minn. Minnesota|Miss. Mississippi|Mo. Missouri|Mont. Montana
Neb. Nebraska|Nev. Nevada|N.H. NewHampshire|N.J. NewJersey|N.M. NewMexico|N.Y. NewYork|N.C. NorthCarolina
N.D. NorthDakota|Ohio|Okla. Oklahoma|Or. Oregon|Pa. Pennsylvania|R.I. RhodeIsland|S.C. SouthCarolina|S.D. SouthDakota
Tenn. Tennessee|Tex. Texas|Utah|Vt. Vermont|Va. Virginia|Wash. Washington|W.Va. WestVirginia|Wis. Wisconsin|Wyo. Wyoming
"""
_CODES = """
RCW Wash. Rev. Code|NRS Nev. Rev. Stat.|ORS Or. Rev. Stat.|MCL Mich. Comp. Laws|MCLA Mich. Comp. Laws
ARS Ariz. Rev. Stat.|OCGA Ga. Code|KSA Kan. Stat.|NJSA N.J. Stat.|TCA Tenn. Code|KRS Ky. Rev. Stat.|RSMo Mo. Rev. Stat.
HRS Haw. Rev. Stat.|CRS Colo. Rev. Stat.|NMSA N.M. Stat.|ILCS Ill. Comp. Stat.|MGL Mass. Gen. Laws|GL Mass. Gen. Laws
CPLR N.Y. C.P.L.R.|CPL N.Y. Crim. Proc. Law|UCC U.C.C.|USSG U.S.S.G.|IRC 26 U.S.C.|PaCS Pa. Cons. Stat.|PS Pa. Stat.
TreasReg 26 C.F.R.|RSA N.H. Rev. Stat.|SDCL S.D. Codified Laws|NDCC N.D. Cent. Code|MCA Mont. Code|LaRS La. Rev. Stat.
"""
_WORDS = """
Ann. Annotated West Wests Vernons McKinneys Deering the of=|Stat. Stats Statutes Statute|Rev. Revised|Gen. General
Cons. Consol. Consolidated CS|Comp. Compiled|Civ. Civil|Crim. Criminal|Proc. Pro. Procedure|Evid. Evidence|Bus. Business
Prof. Professions|Gov't Govt Gov. Government|Fam. Family|Veh. Vehicle|Corp. Corporations|Lab. Labor|Educ. Education
Welf. Welfare|Inst. Institutions|Prob. Probate|Ins. Insurance|Prop. Property|Com. Commerce|Rem. Remedies|Prac. Practice
Transp. Transportation|Dom. Domestic|Rel. Relations|Gen. General|Oblig. Obligations|Exec. Executive|Jud. Judicial
Cts. Courts|Nat. Natural|Res. Resources|Pub. Public|Util. Utilities|Safety|Health|Penal|Code|Law|Laws|Acts|Codified
Cent. Century|Tax|Real|Estates|Admin. Administrative|Env't Envtl. Environmental|Conserv. Conservation
Water|Elec. Election|Art.
"""
CODE_WORDS = frozenset({"Code", "Law", "Laws", "Stat."})


def normal(abbreviation: str) -> str:
    """The letters and digits of an abbreviation, in lower case."""
    return re.sub(r"[^a-z0-9&]", "", abbreviation.lower()).replace("2nd", "2d").replace("3rd", "3d")


def _table(entries: str) -> list[str]:
    return [entry for line in entries.split("\n") for entry in line.split("|") if entry]


REPORTERS = {normal(name): name for name in _table(_REPORTERS)} | _SPELLINGS
STATES = {normal(name): names.split()[0] for names in _table(_STATES) for name in names.split()}
CODES = {normal(short): name for short, name in (entry.split(" ", 1) for entry in _table(_CODES))}
WORDS = {
    normal(word): "" if names.endswith("=") else names.split()[0]
    for names in _table(_WORDS)
    for word in names.rstrip("=").split()
}


def place_in_reporter(volume: int, reporter: str, page: str) -> str:
    """A place such as "347 U.S. 483", in the numbering of today."""
    if reporter in _EARLY and volume <= _EARLY[reporter][0]:
        volume, reporter = volume + _EARLY[reporter][1], "U.S."
    return f"{volume} {reporter} {page}"
