"""The bundled data: valid facts, reproducible files, and a corpus with natural word frequencies."""

import hashlib
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.helpers import assert_one_line, full_disk, needs_full_device
from w2v.data import make

TOKENS = 500_000
# sha256 of the first 20,000 words of seed 1
DIGEST = "89c225bc029138bf39bbe2c8cdd28a5fc504386fdef9228d2a59ab9915a781a2"
WORD = re.compile(r"[a-z]+(_[a-z]+)*")


@pytest.fixture(scope="module")
def sentences() -> list[list[str]]:
    return [line.split() for line in make.corpus(TOKENS, seed=1)]


@pytest.fixture(scope="module")
def counts(sentences: list[list[str]]) -> Counter[str]:
    return Counter(word for sentence in sentences for word in sentence)


def pairs() -> list[str]:
    """Return the lines of the committed file: generating them takes seconds."""
    return Path(make.FOLDER, "pairs.txt").read_text("utf-8").splitlines(keepends=True)


def question_words() -> set[str]:
    return {word for line in make.questions(seed=1) if line[0] != ":" for word in line.split()}


def test_facts_are_words_with_one_fact_per_first_word() -> None:
    facts = make.facts()
    assert len({(fact.relation, fact.first) for fact in facts}) == len(facts)
    for relation, first, second in facts:
        assert relation.count("-") == 1
        assert WORD.fullmatch(first), first
        assert WORD.fullmatch(second), second
        assert first != second
    relations = Counter(fact.relation for fact in facts)
    assert set(make.SEMANTIC + make.SYNTACTIC) <= set(relations)
    assert min(relations.values()) >= 12


def test_topics_belong_to_families() -> None:
    topics = make.topics()
    assert set(topics) == {family.members()[0][1] for family in make.families()}
    assert all(WORD.fullmatch(word) for words in topics.values() for word in words)
    assert all(len(set(words)) == len(words) >= 3 for words in topics.values())


@pytest.mark.slow
@pytest.mark.parametrize("what", ["questions", "pairs"])
def test_committed_file_is_reproduced_exactly(what: str) -> None:
    committed = Path(make.FOLDER, f"{what}.txt").read_bytes().decode()
    assert CliRunner().invoke(make.main, [what]).stdout == committed


def test_questions_are_well_formed() -> None:
    sections: dict[str, list[list[str]]] = {}
    for line in make.questions(seed=1):
        if line.startswith(": "):
            section = sections.setdefault(line[2:-1], [])
        else:
            section.append(line.split())
    assert len(sections) == len(make.SEMANTIC) + len(make.SYNTACTIC)
    assert sum(name.startswith("gram") for name in sections) == len(make.SYNTACTIC)
    facts = set(make.facts())
    for name, asked in sections.items():
        relation = re.sub(r"^gram\d+-", "", name)
        assert 100 <= len(asked) <= make.QUESTIONS_PER_SECTION
        for first, second, third, answer in asked:
            assert (relation, first, second) in facts
            assert (relation, third, answer) in facts
            assert answer not in (first, second, third)


def test_pairs_are_distinct_and_scored() -> None:
    rows = [line.split("\t") for line in pairs() if not line.startswith("#")]
    assert len(rows) >= 200
    assert len({frozenset(row[:2]) for row in rows}) == len(rows)
    assert all(len(set(row)) == 3 and 0 <= float(row[2]) <= 10 for row in rows)


def test_corpus_depends_only_on_the_seed() -> None:
    one, same, other = ("".join(make.corpus(20_000, seed)) for seed in (1, 1, 2))
    assert one == same != other
    assert hashlib.sha256(one.encode()).hexdigest() == DIGEST


def test_corpus_is_varied_and_has_the_requested_length(sentences: list[list[str]], counts: Counter[str]) -> None:
    total = sum(map(len, sentences))
    assert TOKENS <= total < TOKENS + len(sentences[-1])
    assert [word for word in counts if not WORD.fullmatch(word)] == []
    assert len({tuple(sentence) for sentence in sentences}) > 0.9 * len(sentences)
    small = [line.split() for line in make.corpus(1_000, seed=1)]
    assert small == sentences[: len(small)]


def test_word_frequencies_follow_zipfs_law(counts: Counter[str]) -> None:
    """Frequency falls as 1 / rank over the first thousand words. Function words lead, and many words are rare."""
    frequencies = np.array(sorted(counts.values(), reverse=True))
    ranks = np.arange(1, 1001)
    slope = np.polyfit(np.log(ranks), np.log(frequencies[:1000]), 1)[0]
    assert -1.1 < slope < -0.9
    assert {word for word, _ in counts.most_common(8)} == {"the", "and", "a", "in", "is", "of", "to", "was"}
    assert 8_000 < len(counts) < 15_000
    assert np.mean(frequencies < 20) > 0.5


def test_corpus_contains_no_question(sentences: list[list[str]]) -> None:
    questions = {tuple(line.split()) for line in make.questions(seed=1)}
    windows = (tuple(s[i : i + 4]) for s in sentences for i in range(len(s) - 3))
    assert not any(window in questions for window in windows)


def test_words_of_questions_and_pairs_are_frequent(counts: Counter[str]) -> None:
    pair_words = {word for line in pairs() if line[0] != "#" for word in line.split()[:2]}
    assert {word: counts[word] for word in question_words() | pair_words if counts[word] < 5} == {}


def test_file_is_overwritten_only_by_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "corpus.txt"
    command = ["corpus", "--tokens", "100", "-o", str(file)]
    for more, code, seed in (([], 0, 1), (["--seed", "2"], 1, 1), (["--seed", "2", "--force"], 0, 2)):
        done = CliRunner().invoke(make.main, [*command, *more])
        assert done.exit_code == code
        assert ("exists" in done.stderr) == bool(code)
        assert file.read_text("utf-8") == "".join(make.corpus(100, seed))
    monkeypatch.setattr("os.fsync", full_disk)
    failed = CliRunner().invoke(make.main, [*command, "--force"])
    assert failed.exit_code == 1
    assert_one_line(failed.stderr)
    assert [path.read_text("utf-8") for path in tmp_path.iterdir()] == ["".join(make.corpus(100, seed))]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["questions", "--tokens", "5"], 2),
        (["corpus", "--tokens", "0"], 2),
        (["poems"], 2),
        (["pairs", "-o", "no/such/folder/pairs.txt"], 1),
    ],
)
def test_invalid_arguments_are_reported_in_one_line(arguments: list[str], code: int) -> None:
    result = CliRunner().invoke(make.main, arguments)
    assert result.exit_code == code
    assert_one_line(result.stderr)
    assert result.stdout == ""


def make_corpus(redirections: str, *options: object) -> subprocess.CompletedProcess[str]:
    """Generate a corpus of 1,000 words with redirections of a shell."""
    program = [sys.executable, "-m", "w2v.data.make", "corpus", "--tokens", "1000", *map(str, options)]
    return subprocess.run(["sh", "-c", f'"$@" {redirections}', "sh", *program], capture_output=True, text=True)


@pytest.mark.parametrize("redirection", [pytest.param(">/dev/full", marks=needs_full_device), ">&-"])
def test_unwritable_output_is_reported_in_one_line(redirection: str) -> None:
    done = make_corpus(redirection)
    assert done.returncode == 1
    assert_one_line(done.stderr)


@needs_full_device
def test_file_is_written_even_if_standard_streams_are_unwritable(tmp_path: Path) -> None:
    done = make_corpus(">&- 2>/dev/full", "-o", tmp_path / "corpus.txt")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "corpus.txt").read_text("utf-8") == "".join(make.corpus(1000, seed=1))
