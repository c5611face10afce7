"""Token counts: exact against known ones, the estimate against exact ones, and cutting."""

import sys
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rs_bpe.bpe import openai

from mnemon.errors import InvalidInput
from mnemon.tokens import MARK, EstimatedTokens, TokenCounter, counter

RAW = {"o200k": openai.o200k_base(), "cl100k": openai.cl100k_base()}
COUNTERS: list[TokenCounter] = [counter("o200k"), counter("cl100k"), EstimatedTokens(), EstimatedTokens("cl100k")]

ENGLISH = """I moved to Oslo last autumn because I found a new job at a small company that writes software for
hospitals. Finding a flat was hard, but in the end we got two rooms with a view of the river. My sister still lives in
Tromsø, and we talk every Sunday evening. Could you remind me of the dentist on Tuesday at half past eight?"""
CODE = '''def cut(self, text: str, limit: int) -> str:
    """The text, or its beginning and a mark."""
    for kept in range(limit - self.count(MARK), -1, -1):
        whole = self._tokenizer.decode(tokens[:kept])
        if whole is not None and self.count(whole + MARK) <= limit:
            return {"text": whole.rstrip() + MARK, "kept": kept}
    return ""
'''
JSON = (
    '{"id": "3f2c7e0a-9d1b-4c55-8a6e-0f1d2c3b4a59", "name": "Alice", "total": 1249.5, "tags": ["urgent", "follow-up"],'
    ' "at": "2024-05-01T12:30:00Z", "address": {"city": "Oslo", "zip": "0550"}, "active": true, "parent": null}'
)
NORWEGIAN = """Jeg flyttet til Oslo i fjor høst fordi jeg fikk ny jobb i et lite selskap som lager programvare for
sykehus. Det var vanskelig å finne en leilighet, men til slutt fant vi en toroms på Grünerløkka med utsikt over elva.
Søsteren min bor fortsatt i Tromsø, og vi snakkes hver søndag kveld.
Forsikringsselskapet krever egenerklæringsskjema."""
CHINESE = """我去年秋天搬到了奥斯陆,因为我在一家为医院开发软件的小公司找到了新工作。找公寓很难,但最后我们在格吕纳勒卡
找到了一套两居室,可以看到河景。我的妹妹还住在特罗姆瑟,我们每个星期天晚上都通电话。你能提醒我下周二上午八点半去看牙医吗?"""
RUSSIAN = "Прошлой осенью я переехал в Осло, потому что получил новую работу в одной компании. Квартиру найти нелегко."
EMOJI = "Great 😀 😂 🤣 ❤️ 👍🏽 👩‍👩‍👧‍👦 🇳🇴 🏳️‍🌈 ✨ 🔥 🎉 🙈 🧑‍💻 ✅ ⚠️ 🚀 see you 🎂🎂"
LOG = "2024-05-01 12:00:03,021 INFO [worker-3] index: 128 vectors in 0.04 s (lag=9)\n" * 5


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    counter.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "rs_bpe"]:
        monkeypatch.setitem(sys.modules, name, None)
    yield
    counter.cache_clear()


@pytest.mark.parametrize(
    ("encoding", "text", "tokens"),
    [
        ("cl100k", "tiktoken is great!", 6),
        ("cl100k", "antidisestablishmentarianism", 6),
        ("cl100k", "2 + 2 = 4", 7),
        ("cl100k", "お誕生日おめでとう", 9),
        ("o200k", "antidisestablishmentarianism", 6),
        ("o200k", "お誕生日おめでとう", 8),
        ("o200k", "", 0),
        ("o200k", "<|endoftext|>", 7),  # text is data: no special tokens
    ],
)
def test_counts_are_those_that_are_published(encoding: str, text: str, tokens: int) -> None:
    exact = counter(encoding)
    assert (exact.count(text), exact.exact, exact.name) == (tokens, True, encoding)


def test_an_unknown_encoding_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(InvalidInput, match="o200k, cl100k"):
        counter("p50k")


@pytest.mark.usefixtures("without_library")
def test_without_the_library_tokens_are_estimated() -> None:
    estimate = counter("cl100k")
    assert not estimate.exact
    assert estimate.name == "estimate of cl100k"
    assert estimate.count("hello world") == 2


@pytest.mark.parametrize(
    ("text", "lowest", "highest"),
    [
        (ENGLISH, 1.0, 1.3),
        (CODE, 1.0, 1.45),
        (JSON, 1.0, 1.3),
        (LOG, 1.0, 1.15),
        (NORWEGIAN, 0.95, 1.35),
        (CHINESE, 1.1, 1.7),
        (RUSSIAN, 1.3, 2.6),
        (EMOJI, 0.9, 1.6),
    ],
)
def test_the_estimate_is_as_far_off_as_the_module_says(text: str, lowest: float, highest: float) -> None:
    assert lowest <= EstimatedTokens().count(text) / counter("o200k").count(text) <= highest


@pytest.mark.parametrize("text", [ENGLISH, CODE, JSON, LOG, NORWEGIAN, CHINESE, RUSSIAN, EMOJI])
def test_the_estimate_for_the_older_encoding_is_rarely_too_low(text: str) -> None:
    assert EstimatedTokens("cl100k").count(text) >= 0.9 * counter("cl100k").count(text)


@pytest.mark.parametrize("encoding", RAW)
@pytest.mark.parametrize("sign", ["-", "=", "/", "\t", "\n", "…", "😀", "."])
@pytest.mark.parametrize("around", [("", ""), ("word ", " word"), ("a", "b"), ("!\n", "\n?")])
def test_long_runs_of_a_sign_are_counted_exactly(encoding: str, sign: str, around: tuple[str, str]) -> None:
    text = (sign * 25_000 + around[1]).join((around[0], sign * 26_111))
    assert counter(encoding).count(text) == RAW[encoding].count(text)


def test_ten_times_as_much_of_one_sign_takes_no_more_than_a_few_times_ten_as_long() -> None:
    """What is counted sign by sign would take a hundred times as long."""

    def counted(length: int) -> float:
        start = time.process_time()
        assert counter().count("-" * length) == length // 64
        return time.process_time() - start

    counted(64_000)  # what is loaded first does not count
    assert min(counted(960_000) for _ in range(2)) < 40 * min(counted(96_000) for _ in range(3))


def test_half_a_character_is_counted_as_its_replacement() -> None:
    assert counter().count("a\ud800b") == counter().count("a?b")
    assert counter().cut("a\ud800b", 10) == "a?b"


# What a context is made of: each part ends its line, and the next begins with a sign of ours.
@given(st.lists(st.text(max_size=60), min_size=1, max_size=6), st.sampled_from(COUNTERS), st.data())
def test_lines_cost_no_more_together_than_one_by_one(
    texts: list[str], counted: TokenCounter, data: st.DataObject
) -> None:
    begun = data.draw(st.sampled_from(["- ", "[m1] ", "<state>"]))
    lines = [f"{begun}{text}\n" for text in texts]
    together, apart = counted.count("".join(lines)), sum(map(counted.count, lines))
    assert together == apart if counted.exact else together <= apart


@given(st.text(max_size=200), st.integers(-2, 60), st.sampled_from(COUNTERS))
def test_what_is_cut_is_a_beginning_within_the_limit(text: str, limit: int, counted: TokenCounter) -> None:
    shown = counted.cut(text, limit)
    if counted.count(text) <= limit:
        assert shown == text
        return
    assert counted.count(shown) <= max(limit, 0)
    assert shown == "" or (shown.endswith(MARK) and text.startswith(shown.removesuffix(MARK)))


@pytest.mark.parametrize("counted", COUNTERS, ids=lambda counted: counted.name)
def test_a_cut_uses_what_it_may(counted: TokenCounter) -> None:
    shown = counted.cut(ENGLISH, 30)
    assert 25 <= counted.count(shown) <= 30
    assert counted.cut(ENGLISH, 1) in ("", MARK)


@pytest.mark.parametrize("counted", COUNTERS, ids=lambda counted: counted.name)
@pytest.mark.parametrize("limit", range(1, 60, 3))
def test_a_cut_never_divides_a_character(counted: TokenCounter, limit: int) -> None:
    family, accented = "👩\u200d👩\u200d👧\u200d👦", "e\u0301"
    shown = counted.cut(f"{family}{accented}" * 10, limit).removesuffix(MARK)
    assert shown.replace(family, "").replace(accented, "") == ""


def test_cutting_a_long_text_costs_only_what_is_kept() -> None:
    start = time.process_time()
    assert counter().count(counter().cut("word " * 200_000, 50)) <= 50
    assert counter().count(counter().cut("-" * 1_000_000, 50)) <= 50
    assert time.process_time() - start < 1
