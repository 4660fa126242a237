"""Generate a corpus, analogy questions and word pairs from facts.tsv, topics.tsv and templates.txt.

questions.txt and pairs.txt are bundled. A corpus takes seconds to generate, so that users can try the whole program
without a download. The same seed gives the same bytes on every machine, because all choices use only `Random.random`
and weights that are simple quotients.
"""

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, combinations, permutations
from pathlib import Path
from random import Random
from typing import Generic, NamedTuple, TypeVar

import click

from w2v._cli.console import Program
from w2v._cli.options import FILE, FORCE
from w2v._cli.outputs import check
from w2v._system.files import atomic_write

T = TypeVar("T")
FOLDER = Path(__file__).parent
SEMANTIC = [
    "country-capital", "country-currency", "country-language", "city-country", "man-woman", "animal-young",
    "animal-sound",
]  # fmt: skip
SYNTACTIC = [
    "adjective-adverb", "adjective-opposite", "adjective-comparative", "adjective-superlative", "verb-participle",
    "country-nationality", "verb-past", "noun-plural", "verb-third",
]  # fmt: skip
QUESTIONS_PER_SECTION = 300
PAIRS_PER_SCORE = 30
FAMILY_NAMES, FAMILY_TOWNS = 20, 8  # invented names that occur only in the sentences of one family
COMMON_NAMES, COMMON_PLACES = 2000, 1000  # invented names that can occur in any sentence
GENERAL_SHARE = 0.15  # share of sentences without a word of the facts
PRONOUNS = [
    {"person": "{man}", "he": "he", "him": "him", "his": "his", "himself": "himself"},
    {"person": "{woman}", "he": "she", "him": "her", "his": "her", "himself": "herself"},
]
A_BEFORE_VOWEL = re.compile(r"\ba (?=[aeio]|u(?!ni)|h(?:onest|eir|our))")
PAIRS_HEADER = """\
# Word pairs, scored by rule from the table of facts, not by people:
# 9 two forms of one word (a verb and its past, a country and its nationality)
# 8 two words joined by another fact (a country and its capital)
# 7 a word and one of its usual topics
# 6 two words joined to the same third word (a capital and the currency of its country)
# 4 two words of one kind (two capitals, two past tenses)
# 2 two words of different kinds that belong to two words of one kind (a capital and the currency of another country)
# 0 two words with nothing in common
"""


class Fact(NamedTuple):
    """Two related words, a line of facts.tsv."""

    relation: str  # the kinds of the two words, such as "country-capital"
    first: str
    second: str


class Slot(NamedTuple):
    """A place in a template, written {name}, that an expansion of this name fills."""

    name: str


class Choice(Generic[T]):
    """Items to draw at random. The weight of an item is by default 1 / (rank + offset), with ranks from 0.

    The smaller the offset, the more often the first items are drawn.
    """

    def __init__(self, items: Iterable[T], offset: float = 1, weights: Iterable[float] | None = None) -> None:
        self.items = list(items)
        self.sums = list(accumulate(weights or (1 / (rank + offset) for rank in range(len(self.items)))))

    def draw(self, random: Random) -> T:
        return self.items[bisect(self.sums, random.random() * self.sums[-1], hi=len(self.items) - 1)]


Template = tuple["str | Slot | Choice[Template]", ...]  # the parts of a text: words, slots, and choices of texts
Grammar = dict[str, Choice[Template]]  # the expansions of each slot, by name


def rows(name: str) -> list[list[str]]:
    """Return the fields of each line of a bundled file, without comments and empty lines."""
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if line and not line.startswith("#")]


def facts() -> list[Fact]:
    return [Fact(*row) for row in rows("facts.tsv")]


def topics() -> dict[str, list[str]]:
    """Return the topics of each word of the facts, the most frequent first."""
    return {word: words.split() for word, words in rows("topics.tsv")}


@dataclass
class Family:
    """A word of the facts, the related words, and the topics of its sentences.

    Attributes:
        kind: The kind of the word, such as "country".
        words: The word and its related words, by kind.
        topics: The topics of the word.
    """

    kind: str
    words: dict[str, list[str]]
    topics: list[str]

    def members(self) -> list[tuple[str, str]]:
        """Return (kind, word) for each word of the family."""
        return [(kind, word) for kind, words in self.words.items() for word in words]


def families() -> list[Family]:
    """Group the facts into families: one for each country, man, adjective and so on."""
    topics_of = topics()
    by_word: dict[tuple[str, str], Family] = {}
    for relation, first, second in facts():
        kind, other = relation.split("-")
        if other == "country":  # a city belongs to the family of its country
            kind, first, other, second = other, second, kind, first
        family = by_word.setdefault((kind, first), Family(kind, {kind: [first]}, topics_of[first]))
        family.words.setdefault(other, []).append(second)
    return list(by_word.values())


@cache
def compile_template(text: str) -> Template:
    """Parse a text of templates.txt, with slots as in {name} and choices as in [a|b]."""

    def part(piece: str) -> "str | Slot | Choice[Template]":
        if piece.startswith("{"):
            return Slot(piece[1:-1])
        if piece.startswith("["):
            return Choice([compile_template(option) for option in piece[1:-1].split("|")])
        return piece

    return tuple(part(piece) for piece in re.split(r"(\[[^]]*\]|\{\w+\})", text) if piece.strip())


def literals(words: Iterable[str], offset: float = 1) -> Choice[Template]:
    """Return a choice among words, as templates without slots."""
    return Choice([(word,) for word in words], offset)


def invented_names(random: Random, taken: set[str]) -> Iterator[str]:
    """Yield endlessly many different pronounceable words that are not in `taken`."""
    starts = Choice([*"ktsrlnbdvpghfmjz", "", "br", "st", "tr", "th", "gr", "sh", "kl"], 12)
    vowels = Choice(["a", "e", "i", "o", "u", "ai", "ea", "ou", "ie"], 3)
    ends = Choice(["", "n", "r", "l", "s", "m", "t", "nd", "rk", "x"])
    while True:
        syllables = 2 + (random.random() < 0.4)
        name = "".join(starts.draw(random) + vowels.draw(random) for _ in range(syllables))
        name += ends.draw(random)
        if name not in taken:
            taken.add(name)
            yield name


def read_templates() -> tuple[Grammar, list[str]]:
    """Return the named expansions and the sentences of templates.txt.

    A sentence with {person} is returned twice: with the pronouns for a man, and for a woman.
    """
    grammar, sentences = {}, []
    for (line,) in rows("templates.txt"):
        name, equals, expansions = line.partition(" = ")
        if equals:
            grammar[name] = Choice([compile_template(text) for text in expansions.split(" | ")])
        elif "{person}" in line:
            for words in PRONOUNS:
                text = line
                for slot, word in words.items():
                    text = text.replace(f"{{{slot}}}", word)
                sentences.append(text)
        else:
            sentences.append(line)
    return grammar, sentences


def build_grammars(random: Random) -> Choice[Grammar]:
    """Return one grammar for each family, and one for sentences without a word of the facts."""
    common, sentences = read_templates()
    all_families = families()
    kinds = {kind for family in all_families for kind in family.words}
    needs = {text: kinds & set(re.findall(r"\{(\w+)\}", text)) for text in sentences}
    taken = {word for text in sentences for word in re.findall(r"\w+", text)}
    taken |= {word for family in all_families for _, word in family.members()}
    taken |= {word for family in all_families for word in family.topics}
    names = invented_names(random, taken)

    def invented(count: int, offset: float) -> Choice[Template]:
        return literals((next(names) for _ in range(count)), offset)

    def body(kinds: set[str]) -> Choice[Template]:
        # A family uses a sentence if it can fill all slots. Sentences without slots are only for the grammar
        # without facts.
        usable = [text for text, need in needs.items() if need <= kinds and bool(need) == bool(kinds)]
        return Choice([compile_template(text) for text in usable], offset=len(usable))

    common["someone"], common["somewhere"] = invented(COMMON_NAMES, 3), invented(COMMON_PLACES, 3)
    common["thing"] = literals(sorted({word for family in all_families for word in family.topics}), 5)
    grammars, weights = [], []
    for family in all_families:
        own = {kind: literals(words) for kind, words in family.words.items()}
        own |= {"topic": literals(family.topics, 3), "name": invented(FAMILY_NAMES, 6)}
        own["town"] = invented(FAMILY_TOWNS, 4)
        grammars.append(common | own | {"body": body(set(family.words))})
        weights.append(3.0 + len(family.members()))  # the constant gives small families a little more weight
    general = {"topic": common["thing"], "name": common["someone"], "town": common["somewhere"]}
    grammars.append(common | general | {"body": body(set())})
    weights.append(sum(weights) * GENERAL_SHARE / (1 - GENERAL_SHARE))
    return Choice(grammars, weights=weights)


def expand(template: Template, grammar: Grammar, random: Random, used: list[Template]) -> str:
    """Expand a template to text.

    Args:
        template: The template.
        grammar: The expansions of its slots.
        random: The random generator.
        used: The items that this sentence has drawn so far. They are drawn again only if a choice has no other items.
    """
    pieces = []
    for part in template:
        if isinstance(part, str):
            pieces.append(part)
        else:
            choice = grammar[part.name] if isinstance(part, Slot) else part
            drawn = choice.draw(random)
            while drawn in used and any(item not in used for item in choice.items):
                drawn = choice.draw(random)
            used.append(drawn)
            pieces.append(expand(drawn, grammar, random, used))
    return " ".join(pieces)


def corpus(tokens: int, seed: int) -> Iterator[str]:
    """Yield sentences, each with its newline, until they have `tokens` words."""
    random = Random(seed)
    grammars = build_grammars(random)
    generated = 0
    while generated < tokens:
        words = expand((Slot("sentence"),), grammars.draw(random), random, []).split()
        generated += len(words)
        yield A_BEFORE_VOWEL.sub("an ", " ".join(words)) + "\n"


def sample(items: Iterable[T], count: int, random: Random) -> list[T]:
    """Return `count` of the items in random order, or all if there are fewer."""
    return sorted(items, key=lambda _: random.random())[:count]


def questions(seed: int) -> Iterator[str]:
    """Yield the lines of a file of analogy questions. A question has two pairs of words with the same relation."""
    random = Random(seed)
    table = facts()
    for relation in SEMANTIC + SYNTACTIC:
        number = f"gram{SYNTACTIC.index(relation) + 1}-" if relation in SYNTACTIC else ""
        yield f": {number}{relation}\n"
        pairs = [(first, second) for name, first, second in table if name == relation]
        # Drop answers that belong to several words, such as euro. Only cities of one country must share their answer.
        if relation != "city-country":
            owners = Counter(second for _, second in pairs)
            pairs = [pair for pair in pairs if owners[pair[1]] == 1]
        candidates = [p + q for p, q in permutations(pairs, 2) if p[1] != q[1]]
        for words in sample(candidates, QUESTIONS_PER_SECTION, random):
            yield " ".join(words) + "\n"


def pairs(seed: int) -> Iterator[str]:
    """Yield the lines of a file of scored word pairs. PAIRS_HEADER gives the rule for each score."""
    random = Random(seed)
    all_families = families()
    members = [(family, kind, word) for family in all_families for kind, word in family.members()]
    related = {frozenset(fact[1:]) for fact in facts()}
    member_pairs = list(combinations(members, 2))  # below, ((f, j, v), (g, k, w)): two families, kinds and words
    scored = {
        9: [fact[1:] for fact in facts() if fact.relation in SYNTACTIC],
        8: [fact[1:] for fact in facts() if fact.relation in SEMANTIC],
        7: [(family.members()[0][1], word) for family in all_families for word in family.topics[:2]],
        6: [(v, w) for (f, _, v), (g, _, w) in member_pairs if f is g and frozenset((v, w)) not in related],
        4: [(v, w) for (f, j, v), (g, k, w) in member_pairs if f is not g and j == k],
        2: [(v, w) for (f, j, v), (g, k, w) in member_pairs if f is not g and j != k and f.kind == g.kind],
        0: [(v, w) for (f, _, v), (g, _, w) in member_pairs if f.kind != g.kind],
    }
    yield PAIRS_HEADER
    seen: set[frozenset[str]] = set()
    for score, candidates in scored.items():
        new = {frozenset(pair): pair for pair in candidates if pair[0] != pair[1]}
        for first, second in sample((new[key] for key in new if key not in seen), PAIRS_PER_SCORE, random):
            yield f"{first}\t{second}\t{score}\n"
        seen |= set(new)


@click.command(cls=Program)
@click.argument("what", type=click.Choice(["corpus", "questions", "pairs"]))
@click.option("-o", "--output", type=FILE, help="File to write.  [default: standard output]")
@click.option("--tokens", type=click.IntRange(min=1), help="Size of the corpus, in words.  [default: 1,000,000]")
@click.option("--seed", type=int, default=1, show_default=True, help="Another seed gives other sentences.")
@FORCE
def main(what: str, output: Path | None, tokens: int | None, seed: int, force: bool) -> None:
    """Generate the sample corpus, the analogy questions or the word pairs."""
    if tokens and what != "corpus":
        raise click.UsageError("--tokens is for the corpus only")
    lines = {"corpus": corpus(tokens or 1_000_000, seed), "questions": questions(seed), "pairs": pairs(seed)}[what]
    if output is None:
        for line in lines:
            click.echo(line, nl=False)
        return
    check(output, force)
    with atomic_write(output, replace=force) as file:
        file.writelines(line.encode() for line in lines)


if __name__ == "__main__":
    main(prog_name="w2v.data.make")
