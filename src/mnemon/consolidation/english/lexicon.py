"""What the detector knows of English words: which say the same, which deny each other, which have one value."""

import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from mnemon.words import analyse


@lru_cache(65_536)
def stem(word: str) -> str:
    """The stem of one English word in lower case; what is no single word is itself."""
    found = analyse(word) if word.isascii() and word.isalpha() else ()
    return found[0] if len(found) == 1 else word


_BRITISH = (
    ("licence", "license"), ("licences", "licenses"), ("our", "or"), ("ise", "ize"), ("ised", "ized"),
    ("ising", "izing"), ("isation", "ization"), ("tre", "ter"), ("oured", "ored"), ("ourite", "orite"),
    ("lled", "led"), ("lling", "ling"), ("ogue", "og"), ("tyre", "tire"), ("tyres", "tires"), ("grey", "gray"),
)  # fmt: skip
_NOT_BRITISH = frozenset((
    "called", "filled", "pulled", "rolled", "killed", "billed", "installed", "tolled", "spelled", "drilled", "skilled",
    "enrolled", "controlled", "calling", "filling", "pulling", "rolling", "killing", "selling", "telling", "billing",
    "installing", "spelling", "drilling", "willing", "enrolling", "promise", "otherwise", "exercise", "advertise",
    "precise", "concise", "expertise", "franchise", "enterprise", "surprise", "supervise", "revise", "raise", "noise",
    "detour", "hour", "four", "your", "our", "dialogue",
))  # fmt: skip


@lru_cache(65_536)
def american(word: str) -> str:
    """British spellings as American ones."""
    for british, us in _BRITISH:
        if (len(word) > len(british) + 2 or word == british) and word.endswith(british) and word not in _NOT_BRITISH:
            return word[: -len(british)] + us
    return word


Phrases = Mapping[str, tuple[tuple[tuple[str, ...], str], ...]]

_PLURALS = {"children": "child", "people": "person", "men": "man", "women": "woman", "feet": "foot", "teeth": "tooth",
            "mice": "mouse", "wives": "wife", "lives": "live", "knives": "knife", "data": "data"}  # fmt: skip
_DENYING = ("un", "non-", "non", "in", "im", "ir", "dis")
_BY_CONCEPT = (
    "weak", "several", "attribute", "marked", "numbered", "event", "stopping", "starting", "colors", "nationalities",
    "occupations", "relations", "countries", "sole_subject", "many_valued_passive", "now_only", "evaluative",
    "several_objects", "sole_change", "holding", "attitude", "recurring", "locating", "wanting", "negative",
)  # fmt: skip
_RAW = (
    "light", "prepositions", "reporting", "negation", "some", "hypothetical", "foreign", "ambiguous", "be", "auxiliary",
    "before_base", "determiners", "definite", "pronouns", "third_person", "user", "adverbs", "no_adverbs", "fillers",
    "duties", "turns", "past_moment", "possessive", "frequency", "since", "formerly", "subordinating",
    "directions", "plurals", "particles", "wishes", "doubts",
)  # fmt: skip


def _without_accents(word: str) -> str:
    """`kraków` as `krakow`."""
    return "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The words of `lexicon.toml`.

    `concept` gives the one word that stands for all that say the same; `denied` those that deny another, with what
    they deny. `phrases` are by their first word, longest first.
    """

    concept: Mapping[str, str]
    denied: Mapping[str, str]
    phrases: Phrases
    sets: Mapping[str, frozenset[str]]
    classes: tuple[frozenset[str], ...]
    single_valued: Mapping[str, frozenset[str]]
    change: Mapping[str, frozenset[str]]
    ending: Mapping[str, frozenset[str]]
    lesser: Mapping[str, str]
    kinds: Mapping[str, frozenset[str]]
    excludes: Mapping[str, frozenset[str]]
    contrasts: tuple[frozenset[str], ...]
    stages: tuple[tuple[tuple[str, bool], ...], ...]
    verb_forms: Mapping[str, tuple[str, str]]

    def lemma(self, word: str) -> str:
        """The word without the ending of a plural or of a verb's form."""
        if verb := self.verb_forms.get(word):
            return verb[0]
        if word in _PLURALS:
            return _PLURALS[word]
        if word.endswith("ies") and len(word) > 4:
            return word[:-1] if word[:-1] in self.concept else word[:-3] + "y"
        if word.endswith(("ses", "xes", "ches", "shes")) and len(word) > 5:
            return word[:-2]
        return word[:-1] if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is")) else word

    def resolve(self, word: str) -> tuple[str, bool]:
        """What stands for a word, and whether the word denies it."""
        word = word if word.isascii() else _without_accents(word)
        for form in (word, self.lemma(word)):
            if form in self.denied:
                return self.denied[form], True
            if form in self.concept:
                return self.concept[form], False
        for prefix in _DENYING:
            rest = word.removeprefix(prefix)
            if rest == word or len(rest) < 4 or word in self.verb_forms:
                continue
            if prefix == "non-" or rest in self.concept or (rest in self.verb_forms and prefix == "un"):
                return self.resolve(rest)[0], True
        lemma = self.lemma(word if "_" in word else word.replace("-", ""))
        return (stem(lemma) if "_" not in word else word), False

    def concept_of(self, word: str) -> str:
        return self.resolve(word)[0]

    def knows(self, word: str) -> bool:
        """Whether a word is in the lexicon, in any form."""
        lemma = self.lemma(word)
        return word in self.verb_forms or any(
            form in self.concept or form in self.denied or any(form in words for words in self.sets.values())
            for form in (word, lemma, stem(lemma))
        )

    def form_of(self, word: str) -> tuple[str, str]:
        """The verb that a word is a form of and which form, or nothing."""
        return self.verb_forms.get(word, ("", ""))

    def has(self, name: str, word: str) -> bool:
        return word in self.sets[name]


@cache
def lexicon() -> Lexicon:
    raw: dict[str, Any] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))
    forms = _verb_forms(raw["verbs"].split(), raw["irregular"])
    concept, denied = dict[str, str](), dict[str, str]()
    bare = Lexicon({}, {}, {}, {}, (), {}, {}, {}, {}, {}, {}, (), (), forms)
    for line in raw["same"]:
        first, *others = map(american, line.split())
        concept |= {word: first for word in (first, *others) if word not in concept}
    for line in raw["opposite"]:
        yes, no = (list(map(american, side.split())) for side in line.split("/"))
        head = bare.lemma(yes[0]) if yes[0] in forms else yes[0]
        head = concept.get(yes[0], concept.get(head, head))
        concept |= {head: head} if head not in concept else {}
        concept |= {word: head for word in yes if word not in concept}
        denied |= {word: head for word in no if word not in denied}
    known = Lexicon(concept, denied, {}, {}, (), {}, {}, {}, {}, {}, {}, (), (), forms)
    sets = {name: frozenset(raw[name].split()) for name in _RAW}
    sets |= {name: frozenset(known.concept_of(american(word)) for word in raw[name].split()) for name in _BY_CONCEPT}
    entries = {*concept, *denied, *(word for name in _RAW for word in raw[name].split())}
    entries |= {word for name in ("change", "ending") for line in raw[name] for word in line.split("/")[0].split()}
    entries |= {word for name in ("comparatives", "stages", "kinds") for line in raw[name] for word in line.split()}
    entries |= set(raw["stopping"].split())
    return replace(
        known,
        phrases=_phrases(entries, known),
        sets=sets,
        classes=tuple(frozenset(map(known.concept_of, line.split())) for line in raw["classes"])
        + tuple(sets[name] for name in ("colors", "nationalities", "occupations")),
        single_valued=_governed(raw["single_valued"], known),
        change=_replaced(raw["change"], known),
        ending=_replaced(raw["ending"], known),
        lesser=_turned_round(raw["comparatives"], known),
        kinds={
            known.concept_of(line.split()[0]): frozenset(map(known.concept_of, line.split())) for line in raw["kinds"]
        },
        excludes=_replaced(raw["excludes"], known),
        contrasts=tuple(
            frozenset(map(known.concept_of, line.split())) for line in (*raw["contrasts"], *raw["classes"])
        ),
        stages=tuple(tuple(map(known.resolve, line.split())) for line in raw["stages"]),
    )


def _turned_round(lines: Iterable[str], known: Lexicon) -> dict[str, str]:
    """Every comparative with the one that stands for it; with a stroke before it if those compared change places."""
    found: dict[str, str] = {}
    for more, less in (line.split("/") for line in lines):
        head = more.split()[0]
        found |= {known.concept_of(word): head for word in more.split()}
        found |= {known.concept_of(word): f"/{head}" for word in less.split()}
    return found


def _replaced(lines: Iterable[str], known: Lexicon) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for new, old in (line.split("/") for line in lines):
        verb = known.concept_of(new.strip())
        found[verb] = found.get(verb, frozenset()) | frozenset(map(known.concept_of, old.split()))
    return found


def _phrases(entries: Iterable[str], known: Lexicon) -> Phrases:
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for entry in sorted(entries):
        words = tuple(known.lemma(american(word)) for word in entry.split("_"))
        if len(words) > 1:
            found.setdefault(words[0], []).append((words, entry))
    return {first: tuple(sorted(each, key=lambda one: -len(one[0]))) for first, each in found.items()}


def _governed(lines: Iterable[str], known: Lexicon) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for verb, *prepositions in map(str.split, lines):
        root = known.concept_of(verb)
        found[root] = found.get(root, frozenset()) | set(prepositions)
    return found


def _verb_forms(verbs: Iterable[str], irregular: str) -> dict[str, tuple[str, str]]:
    """Every form of a verb, with the verb and what form it is: base, third, past, ing, or same as the base."""
    forms: dict[str, tuple[str, str]] = {}
    for verb in verbs:
        forms[verb] = (verb, "base")
    for verb in list(forms):
        e, y = verb.endswith("e"), verb[-1] == "y" and verb[-2] not in "aeiou"
        body = verb[:-1] if e or y else verb
        doubles = not e and not y and verb[-1] in "bdgmnprtl" and verb[-2] in "aeiou" and verb[-3:-2] not in "aeiou"
        third = f"{body}ies" if y else f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"
        forms.setdefault(third, (verb, "third"))
        for stub in {body, body + verb[-1] if doubles else body}:
            forms.setdefault(f"{stub}{'ied' if y else 'ed'}", (verb, "past"))
            forms.setdefault(f"{verb if y else stub}ing", (verb, "ing"))
    for line in irregular.split(";"):
        verb, *others = line.split()
        for form in others:
            kind = "third" if form.endswith("s") and form != "was" else "ing" if form.endswith("ing") else "past"
            forms[form] = (verb, kind) if form != verb else (verb, "same")
    forms |= {
        "is": ("be", "third"),
        "are": ("be", "base"),
        "am": ("be", "base"),
        "was": ("be", "past"),
        "were": ("be", "past"),
    }
    return forms
