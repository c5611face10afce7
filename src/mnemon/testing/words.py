"""What every index of words promises: the conformance suite of `ports.WordIndex`."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pytest

from mnemon.filters import parse
from mnemon.hybrid import HybridMemoryService
from mnemon.model import Match
from mnemon.ports import Scope, Transaction
from mnemon.testing.crowds import Crowd
from mnemon.testing.handles import parts_of
from mnemon.testing.planting import COLOURED, EVERYWHERE, FILTERS, Garden
from mnemon.testing.suite import Suite

ODD_WORDS = (
    "AND", "OR", "NOT", "NEAR", "and", "or", "*", "a*", '"', 'a"b', "'", "a'b", "''", "(", ")", "a(b", ":", "a:b", "-",
    "a-b", "+", "^", "{", "}", "&", "|", "!", "a&!b", "<->", "\\", "a\\b", "%", "_", "?", ";", "--", "/*", "user:al",
    "é", "e\u0301", "ß", "日本語", "日", "本", "👩\u200d🚀", "😀", "🫠", "ไทย", "עברית", "ı", "\u2063", "\ufeff",
    "n1369e661", "77ecd62", "0", "x" * 300, "y" * 3000, "é" * 2000,
)  # fmt: skip


class WordIndexSuite(Suite):
    """Memories are found by their words, in scope, as they stand now."""

    @pytest.fixture
    def garden(self, memory: HybridMemoryService) -> Garden:
        """Memories behind the service's back, with words and vectors of the test's own."""
        parts = parts_of(memory)
        return Garden(parts.store, parts.index(parts.store, parts.runner))

    # -- finding

    async def test_what_has_a_word_is_found(self, garden: Garden) -> None:
        oslo = await garden.plant("user:alice", "1", "alice live oslo")
        bergen = await garden.plant("user:alice", "2", "bob live bergen")

        assert await garden.words("oslo") == [oslo]
        assert await garden.words("live") == [oslo, bergen]
        assert await garden.words("live oslo") == [oslo, bergen]
        assert await garden.words("bergen live live nowhere") == [bergen, oslo]
        assert await garden.words("nowhere") == []
        assert await garden.words("osl") == []

    async def test_no_words_find_nothing(self, garden: Garden) -> None:
        await garden.plant("user:alice", "1", "alice")
        assert await garden.indexes.words.search([], EVERYWHERE, 10) == []
        assert await garden.indexes.words.search(["alice"], EVERYWHERE, 0) == []
        assert await garden.indexes.words.search(["alice"], Scope(()), 10) == []

    async def test_an_empty_index_finds_nothing(self, garden: Garden) -> None:
        assert await garden.words("anything at all") == []
        statistics = await garden.indexes.words.statistics(["anything"])
        assert (statistics.documents, statistics.frequencies) == (0, {"anything": 0})

    async def test_the_limit_keeps_the_best(self, garden: Garden) -> None:
        ids = [await garden.plant("user:a", str(n), "word " * n + "other " * (9 - n) + "end") for n in range(1, 9)]
        assert await garden.words("word", limit=3) == ids[:-4:-1]
        assert await garden.words("word", limit=1) == ids[-1:]
        assert await garden.words("word", limit=1000) == ids[::-1]

    async def test_of_those_alike_the_older_comes_first(self, garden: Garden) -> None:
        ids = [await garden.plant("user:a", str(n), "same words here") for n in range(30)]
        assert await garden.words("words") == ids
        assert await garden.words("words", limit=7) == ids[:7]

    async def test_the_score_is_that_of_bm25(self, garden: Garden) -> None:
        texts = {
            await garden.plant("user:a", str(number), text): text.split(" ")
            for number, text in enumerate(
                ("a b c", "a a a b", "c", "d e f g h i j k l m n o p", "a d", "b b b b b b b", "a c d e a c d e")
            )
        }
        for question in (["a"], ["a", "d"], ["b", "b", "c"], ["p", "a", "x"], list("abcdefg")):
            found = await garden.indexes.words.search(question, EVERYWHERE, 100)
            expected = score_all(question, texts)
            assert [match.memory_id for match in found] == [match.memory_id for match in expected]
            assert [match.score for match in found] == pytest.approx([match.score for match in expected])

    # -- scope

    async def test_a_prefix_means_whole_segments(self, garden: Garden) -> None:
        places = ["app:x", "user:a", "user:al", "user:al-x", "user:al:x", "user:al:x:y", "user:alice", "user:alice:x"]
        ids = {await garden.plant(place, "k", "word"): place for place in places}

        async def found(*prefixes: str) -> list[str]:
            return [ids[each] for each in await garden.words("word", *prefixes)]

        assert await found("user:al") == ["user:al", "user:al:x", "user:al:x:y"]
        assert await found("user:al:x") == ["user:al:x", "user:al:x:y"]
        assert await found("user:alice") == ["user:alice", "user:alice:x"]
        assert await found("user:ali") == []
        assert await found("user") == places[1:]
        assert await found("app:x", "user:a") == ["app:x", "user:a"]
        assert await found(*(f"user:{n}" for n in range(100)), "user:al:x:y") == ["user:al:x:y"]
        assert await found("") == places

    async def test_types_and_trust_narrow_the_scope(self, garden: Garden) -> None:
        kinds = ("semantic", "episodic", "procedural")
        ids = {kind: await garden.plant("user:a", kind, "word", memory_type=kind) for kind in kinds}
        doubtful = await garden.plant("user:a", "doubtful", "word", trust=0.3)

        assert await garden.words("word", types=("episodic",)) == [ids["episodic"]]
        assert await garden.words("word", types=("semantic", "procedural")) == [
            ids["semantic"], ids["procedural"], doubtful,
        ]  # fmt: skip
        assert await garden.words("word", min_trust=0.3) == [*ids.values(), doubtful]
        assert await garden.words("word", min_trust=0.31) == list(ids.values())
        assert await garden.words("word", "user:a", types=("semantic",), min_trust=0.5) == [ids["semantic"]]

    async def test_filters_mean_what_they_say(self, garden: Garden) -> None:
        ids = {await garden.plant("user:a", key, "word", metadata=about): key for key, about in COLOURED.items()}
        for where, expected in FILTERS:
            found = await garden.words("word", "user:a", where=parse(where))
            assert {ids[each] for each in found} == expected, where
            assert len(found) == len(expected)

    async def test_a_filter_is_applied_before_the_limit(self, garden: Garden) -> None:
        await self.fill(garden, 300, "word common")
        wanted = await garden.plant("user:a", "wanted", "word", metadata={"wanted": True})
        await self.fill(garden, 300, "word common", begin=300)

        assert await garden.words("word", where=parse({"wanted": True}), limit=5) == [wanted]
        assert await garden.words("common word", where=parse({"wanted": True}), limit=5) == [wanted]

    # -- common words

    async def fill(self, garden: Garden, count: int, words: str, *, begin: int = 0) -> None:
        async def unit(tx: Transaction) -> None:
            for number in range(begin, begin + count):
                await garden.planting(tx, f"user:u{number % 10}", f"k{number}", f"{words} own{number}")

        await garden.store.write(unit)

    async def test_common_words_do_not_hide_rare_ones(self, garden: Garden) -> None:
        rare = await garden.plant("user:u0", "rare", "common frequent needle")
        await self.fill(garden, 500, "common frequent")

        for question in ("common needle", "common frequent needle", "needle common common common"):
            assert (await garden.words(question, limit=3))[0] == rare
            assert (await garden.words(question, "user:u0", limit=3))[0] == rare
        assert len(await garden.words("common needle", limit=300)) == 300

    async def test_common_words_alone_find_as_many_as_wanted(self, garden: Garden) -> None:
        await self.fill(garden, 500, "common frequent")
        for question in ("common", "common frequent", "frequent common nowhere"):
            assert len(set(await garden.words(question, limit=20))) == 20
            assert len(set(await garden.words(question, limit=450))) == 450
            assert len(set(await garden.words(question, "user:u3", limit=100))) == 50

    # -- what has changed

    async def test_a_new_version_takes_the_place_of_the_old_one(self, garden: Garden) -> None:
        await garden.plant("user:a", "city", "alice live oslo")
        new = await garden.plant("user:a", "city", "alice live bergen")

        assert await garden.words("oslo") == []
        assert await garden.words("alice") == await garden.words("bergen") == [new]

    async def test_what_is_deleted_is_not_found_until_it_is_back(self, garden: Garden) -> None:
        await garden.plant("user:a", "city", "oslo")
        await garden.uproot("user:a", "city")
        assert await garden.words("oslo") == []
        back = await garden.plant("user:a", "city", "oslo")
        assert await garden.words("oslo") == [back]

    async def test_what_was_rolled_back_is_not_found(self, garden: Garden) -> None:
        kept = await garden.plant("user:a", "kept", "oslo")

        async def unit(tx: Transaction) -> None:
            await garden.planting(tx, "user:a", "kept", "oslo changed")
            await garden.planting(tx, "user:a", "lost", "oslo lost")
            raise RuntimeError("no")

        with pytest.raises(RuntimeError, match="no"):
            await garden.store.write(unit)
        assert await garden.words("oslo") == [kept]
        assert await garden.words("lost") == await garden.words("changed") == []
        assert (await garden.indexes.words.statistics(["oslo"])).documents == 1

    async def test_to_index_again_is_the_same(self, garden: Garden) -> None:
        memory_id = await garden.plant("user:a", "k", "oslo bergen")
        words = garden.indexes.words
        for _ in range(3):
            await garden.store.write(lambda tx: words.put(tx, memory_id, "user:a", ["oslo", "bergen"]))
        assert await garden.words("oslo") == [memory_id]
        assert (await words.statistics(["oslo"])).frequencies == {"oslo": 1}

        await garden.store.write(lambda tx: words.put(tx, memory_id, "user:a", ["bergen", "fjord"]))
        assert await garden.words("oslo") == []
        assert await garden.words("fjord") == [memory_id]
        assert await words.words_of([memory_id]) == {memory_id: ["bergen", "fjord"]}

    async def test_to_drop_what_is_not_there_does_not_matter(self, garden: Garden) -> None:
        memory_id = await garden.plant("user:a", "k", "oslo")
        words = garden.indexes.words
        await garden.store.write(lambda tx: words.drop(tx, [memory_id + 1, memory_id + 2]))
        await garden.store.write(lambda tx: words.drop(tx, []))
        assert await garden.words("oslo") == [memory_id]
        for _ in range(2):
            await garden.store.write(lambda tx: words.drop(tx, [memory_id], erase=True))
        assert await garden.words("oslo") == []
        assert await words.words_of([memory_id]) == {}

    async def test_what_is_purged_is_gone(self, garden: Garden) -> None:
        await garden.plant("user:a", "secret", "alice password xyzzy")
        kept = await garden.plant("user:a", "kept", "alice password")
        await garden.burn("user:a", "secret")

        assert await garden.words("xyzzy") == []
        assert await garden.words("alice password") == [kept]
        statistics = await garden.indexes.words.statistics(["xyzzy", "alice"])
        assert statistics.frequencies == {"xyzzy": 0, "alice": 1}

    async def test_many_write_and_ask_at_once(self, garden: Garden, crowd: Crowd) -> None:
        async def write(number: int) -> None:
            for version in range(4):
                await garden.plant(f"user:u{number}", "k", f"shared own{number} version{version}")
                assert len(await garden.words(f"own{number}")) == 1

        await crowd.gather(partial(write, number) for number in range(8))
        assert len(await garden.words("shared")) == len(await garden.words("version3")) == 8
        assert await garden.words("version2") == []

    # -- what is known of words

    async def test_the_words_of_memories_come_back(self, garden: Garden) -> None:
        first = await garden.plant("user:a", "1", "b a b c")
        second = await garden.plant("user:a", "2", "x")
        silent = await garden.plant("user:a", "3", "")
        old = await garden.plant("user:a", "4", "old")
        new = await garden.plant("user:a", "4", "new")

        assert await garden.indexes.words.words_of([first, second, silent, old, new, new + 1]) == {
            first: ["b", "a", "b", "c"], second: ["x"], silent: [], new: ["new"],
        }  # fmt: skip
        assert await garden.indexes.words.words_of([]) == {}
        many = [await garden.plant("user:b", str(number), f"w{number}") for number in range(250)]
        assert await garden.indexes.words.words_of(many) == {each: [f"w{n}"] for n, each in enumerate(many)}

    async def test_statistics_count_memories(self, garden: Garden) -> None:
        await garden.plant("user:a", "1", "a a b")
        await garden.plant("user:b", "2", "a")
        await garden.plant("user:c", "3", "c d e f g")
        statistics = await garden.indexes.words.statistics(["a", "b", "g", "x"])
        assert statistics.documents == 3
        assert statistics.average_length == pytest.approx(3)
        assert statistics.frequencies == {"a": 2, "b": 1, "g": 1, "x": 0}

        await garden.plant("user:a", "1", "b b")
        await garden.uproot("user:c", "3")
        statistics = await garden.indexes.words.statistics(["a", "b", "g"])
        assert statistics.documents == 2
        assert statistics.average_length == pytest.approx(1.5)
        assert statistics.frequencies == {"a": 1, "b": 1, "g": 0}

    # -- words that are hard

    async def test_any_word_is_found_by_itself_alone(self, garden: Garden) -> None:
        ids = {word: await garden.plant("user:a", str(n), word) for n, word in enumerate(ODD_WORDS)}
        for word, memory_id in ids.items():
            found = await garden.indexes.words.search([word], EVERYWHERE, 10)
            assert [match.memory_id for match in found] == [memory_id], word
        assert await garden.indexes.words.words_of(list(ids.values())) == {i: [word] for word, i in ids.items()}
        assert set(await garden.words(" ".join(ODD_WORDS), limit=1000)) == set(ids.values())

    async def test_a_question_may_hold_what_no_memory_can(self, garden: Garden) -> None:
        await garden.plant("user:a", "k", "word")
        for strange in ("\ud800", "nul\0", "\ud800word", "", " "):
            assert await garden.indexes.words.search([strange], EVERYWHERE, 10) == []

    async def test_long_texts_are_found_by_their_words(self, garden: Garden) -> None:
        words = [f"word{number}" for number in range(9_999)]
        long = await garden.plant("user:a", "long", " ".join([*words, "last", "beyond"]))
        short = await garden.plant("user:a", "short", "word7 last")

        assert await garden.words("word7") == await garden.words("last") == [short, long]
        assert await garden.words("word9998") == [long]
        assert await garden.words("beyond") == []
        assert await garden.indexes.words.words_of([long]) == {long: [*words, "last"]}

    async def test_questions_may_be_long(self, garden: Garden) -> None:
        memory_id = await garden.plant("user:a", "k", "needle in a haystack")
        hay = " ".join(f"hay{number}" for number in range(999))
        assert await garden.words(f"{hay} needle") == [memory_id]
        stack = await garden.plant("user:a", "stack", hay)
        await self.fill(garden, 250, "hay7 hay8 hay9")
        assert (await garden.words(f"{hay} needle {hay} {hay}", limit=5))[0] == stack


def score_all(question: Sequence[str], texts: Mapping[int, Sequence[str]]) -> list[Match]:
    """BM25 as textbooks have it, over all texts."""
    average = sum(map(len, texts.values())) / len(texts)
    found: list[Any] = []
    for memory_id, words in texts.items():
        counts, score = Counter(words), 0.0
        for word in question:
            having = sum(word in other for other in texts.values())
            rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            length = 1.2 * (1 - 0.75 + 0.75 * len(words) / average)
            score += rarity * counts[word] * 2.2 / (counts[word] + length)
        if score:
            found.append(Match(memory_id, score))
    return sorted(found, key=lambda match: (-match.score, match.memory_id))
