"""`python -m benchmarks.locomo --data locomo10.json`: how much of what a question needs is recalled.

LoCoMo is ten long conversations with questions about them, each with the turns that hold its answer. Here each
turn is one memory, and a question is put as it is written, with no language model anywhere. What is counted is
how many of a question's turns are among the first found. Beside Mnemon, in the same run over the same texts:
BM25, cosine of all-MiniLM-L6-v2, and reciprocal-rank fusion of the two.

The weights of the ranking were chosen on conversations 1 to 5; 6 to 10 are therefore reported apart. The data
is not part of Mnemon: it is CC BY-NC, and is read from where you keep it.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

import mnemon
from benchmarks import report
from benchmarks.judging import Judgement, judge, mean
from benchmarks.progress import Bar
from benchmarks.recall import normalised
from mnemon.providers.loading import load
from mnemon.settings import Settings
from mnemon.tokens import counter
from mnemon.words import analyse
from tests import servers

ANSWERABLE = (1, 2, 3, 4)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open", 4: "single-hop", 5: "adversarial"}
DEEPEST = 20
RRF = 60
K1, B = 1.2, 0.75
EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
MINILM = "onnx"


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing that somebody said; a photo that they shared is part of it."""

    id: str
    text: str
    author: str
    thread: str
    position: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    category: int
    wanted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    number: int
    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    unanswered: int
    """Questions that name no turn that there is; they are left out."""


Ask = Callable[[Conversation, Question], Awaitable[Sequence[str]]]
"""The ids of the turns that a system finds, best first."""


# -- the data


def read(path: Path) -> list[Conversation]:
    documents = json.loads(path.read_text("utf-8"))
    return [_conversation(number, document) for number, document in enumerate(documents, 1)]


def _conversation(number: int, document: Mapping[str, Any]) -> Conversation:
    turns = tuple(_turns(document["sample_id"], document["conversation"]))
    known = {turn.id for turn in turns}
    asked = [
        Question(item["question"], item["category"], frozenset(_evidence(item["evidence"]) & known))
        for item in document["qa"]
    ]
    answered = tuple(question for question in asked if question.wanted)
    return Conversation(number, document["sample_id"], turns, answered, len(asked) - len(answered))


def _turns(name: str, conversation: Mapping[str, Any]) -> Iterator[Turn]:
    sessions = sorted(int(key.split("_")[1]) for key, value in conversation.items() if isinstance(value, list))
    for session in sessions:
        told = conversation[f"session_{session}_date_time"].strip()
        at = datetime.strptime(f"{told} +0000", "%I:%M %p on %d %B, %Y %z")
        for position, turn in enumerate(conversation[f"session_{session}"]):
            caption = turn.get("blip_caption")
            text = f"{turn['text']} [shares a photo: {caption}]" if caption else turn["text"]
            thread = f"{name}/session-{session}"
            yield Turn(turn["dia_id"], text, turn["speaker"], thread, position, at)


def _evidence(named: Sequence[str]) -> set[str]:
    return {f"D{int(found[1])}:{int(found[2])}" for text in named for found in EVIDENCE.finditer(text)}


# -- what Mnemon is compared with


class Baselines:
    """BM25, MiniLM and their fusion, exact, over one conversation at a time."""

    def __init__(self, conversations: Sequence[Conversation], tick: Callable[[str], None]) -> None:
        embedder = load(MINILM, Settings())
        self._words = {c.id: _Okapi([analyse(f"{turn.author} {turn.text}") for turn in c.turns]) for c in conversations}
        self._turns: dict[str, Any] = {}
        self._questions: dict[str, Any] = {}
        for c in conversations:
            # An embedder's vectors have any length, and only of those of length 1 is the product the cosine.
            self._turns[c.id] = normalised(embedder.embed([f"{turn.author}: {turn.text}" for turn in c.turns]))
            vectors = normalised(embedder.embed([question.text for question in c.questions]))
            self._questions |= dict(zip(((c.id, q.text) for q in c.questions), vectors, strict=True))
            tick(f"embedding {c.id}")

    async def bm25(self, conversation: Conversation, question: Question) -> list[str]:
        return _ids(conversation, self._bm25(conversation, question))

    async def minilm(self, conversation: Conversation, question: Question) -> list[str]:
        return _ids(conversation, self._minilm(conversation, question))

    async def rrf(self, conversation: Conversation, question: Question) -> list[str]:
        scores = np.zeros(len(conversation.turns))
        for channel in (self._bm25(conversation, question), self._minilm(conversation, question)):
            scores[np.argsort(-channel, kind="stable")] += 1 / (RRF + 1 + np.arange(len(scores)))
        return _ids(conversation, scores)

    def _bm25(self, conversation: Conversation, question: Question) -> Any:
        return self._words[conversation.id].scores(analyse(question.text))

    def _minilm(self, conversation: Conversation, question: Question) -> Any:
        return self._turns[conversation.id] @ self._questions[conversation.id, question.text]


class _Okapi:
    """Plain BM25 over one collection."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        lengths = np.array([len(text) for text in texts], float)
        self._norm = K1 * (1 - B + B * lengths / lengths.mean())
        self._counts: dict[str, Any] = {}
        for place, text in enumerate(texts):
            for word in text:
                self._counts.setdefault(word, np.zeros(len(texts)))[place] += 1

    def scores(self, words: Sequence[str]) -> Any:
        total = np.zeros(len(self._norm))
        for word in dict.fromkeys(words):
            if word in self._counts:
                count = self._counts[word]
                held = np.count_nonzero(count)
                rarity = np.log(1 + (len(count) - held + 0.5) / (held + 0.5))
                total += rarity * count * (K1 + 1) / (count + self._norm)
        return total


def _ids(conversation: Conversation, scores: Any) -> list[str]:
    return [conversation.turns[place].id for place in np.argsort(-scores, kind="stable")[:DEEPEST]]


# -- Mnemon


async def remember(memory: mnemon.HybridMemoryService, conversation: Conversation) -> None:
    """One memory for each turn, as an application would keep them."""
    await memory.remember_many(
        [
            {
                "text": turn.text, "key": turn.id, "memory_type": "episodic", "author": turn.author,
                "thread": turn.thread, "position": turn.position, "occurred_at": turn.at,
            }
            for turn in conversation.turns
        ],
        namespace=_namespace(conversation),
    )  # fmt: skip


def recalling(memory: mnemon.HybridMemoryService) -> Ask:
    async def ask(conversation: Conversation, question: Question) -> list[str]:
        hits = await memory.recall(question.text, namespaces=[_namespace(conversation)], k=DEEPEST)
        return [hit.memory.key for hit in hits]

    return ask


def _namespace(conversation: Conversation) -> str:
    return f"user:{conversation.id}"


# -- the run


@dataclass(frozen=True, slots=True)
class Answer:
    system: str
    conversation: int
    category: int
    judgement: Judgement


async def run(conversations: Sequence[Conversation], *, postgres: bool, bar: Bar) -> list[Answer]:
    questions = sum(len(c.questions) for c in conversations)
    bar.begin(len(conversations) * (1 + 2 + postgres) + questions * (5 + postgres))
    baselines = Baselines(conversations, bar.tick)
    systems: dict[str, Ask] = {"BM25": baselines.bm25, "MiniLM": baselines.minilm, "RRF of both": baselines.rrf}
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mnemon-locomo-"))
        places = {
            "Mnemon, static": (f"sqlite:///{folder}/static.db", "static"),
            "Mnemon, MiniLM": (f"sqlite:///{folder}/minilm.db", MINILM),
        }
        if postgres:
            places["Mnemon, static, PostgreSQL"] = (stack.enter_context(servers.postgres()), "static")
        for name, (url, embedder) in places.items():
            opening = mnemon.open(url, embedder=embedder, postgres_schema="locomo", background=False)
            memory = await stack.enter_async_context(opening)
            for conversation in conversations:
                await remember(memory, conversation)
                bar.tick(f"{name}: {conversation.id}")
            systems[name] = recalling(memory)
        return [answer async for answer in _answers(conversations, systems, bar)]


async def _answers(conversations: Sequence[Conversation], systems: Mapping[str, Ask], bar: Bar) -> Any:
    tokens = counter()
    sizes = {(c.id, turn.id): tokens.count(turn.text) for c in conversations for turn in c.turns}
    for name, ask in systems.items():
        for conversation in conversations:
            for question in conversation.questions:
                found = await ask(conversation, question)
                size = sum(sizes[conversation.id, turn] for turn in found[:10])
                yield Answer(name, conversation.number, question.category, judge(found, set(question.wanted), size))
                bar.tick(f"{name}: {conversation.id}")


GROUPS: dict[str, Callable[[Answer], bool]] = {
    "all": lambda answer: answer.category in ANSWERABLE,
    "1–5 (weights chosen here)": lambda answer: answer.category in ANSWERABLE and answer.conversation <= 5,
    "6–10 (held out)": lambda answer: answer.category in ANSWERABLE and answer.conversation > 5,
    **{
        f"{number} {name}": lambda answer, number=number: answer.category == number
        for number, name in CATEGORIES.items()
    },
}


def summarise(answers: Sequence[Answer]) -> dict[str, dict[str, dict[str, float]]]:
    """For each group of questions and each system, the means."""
    systems = list(dict.fromkeys(answer.system for answer in answers))
    return {
        group: {system: asdict(mean(chosen)) | {"questions": len(chosen)} for system in systems if (
            chosen := [answer.judgement for answer in answers if answer.system == system and belongs(answer)]
        )}
        for group, belongs in GROUPS.items()
    }  # fmt: skip


def show(summary: Mapping[str, Mapping[str, Mapping[str, float]]]) -> None:
    heads = ("", "recall@5", "@10", "@20", "all@10", "nDCG@10", "MRR", "tokens", "questions")
    for group, systems in summary.items():
        rows = [
            [system, *(f"{100 * value:.1f}" for value in list(means.values())[:6]),
             f"{means['tokens']:.0f}", f"{means['questions']:.0f}"]
            for system, means in systems.items()
        ]  # fmt: skip
        print(f"{group}\n{report.table(heads, rows)}\n")


def plot(summary: Mapping[str, Mapping[str, Mapping[str, float]]], path: Path) -> None:
    """Recall@10 of every system, for all questions and for each half and category."""
    import matplotlib as mpl  # noqa: PLC0415 - slow to import, and needed only here

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    systems = list(summary["all"])
    figure, axes = plt.subplots(figsize=(12, 5))
    width = 0.8 / len(systems)
    for number, system in enumerate(systems):
        heights = [100 * means[system]["recall_10"] if system in means else 0.0 for means in summary.values()]
        axes.bar(np.arange(len(summary)) + number * width, heights, width, label=system)
    axes.set_xticks(np.arange(len(summary)) + 0.4 - width / 2, [name.replace(" (", "\n(") for name in summary])
    axes.set_ylabel("recall@10, %")
    axes.set_title("LoCoMo: share of a question's turns among the first ten found")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(ncols=3, loc="lower center", bbox_to_anchor=(0.5, -0.35))
    figure.savefig(path, bbox_inches="tight", dpi=120)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m benchmarks.locomo", description=(__doc__ or "").partition("\n\n")[2])
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="PATH", help="locomo10.json")
    add("--conversations", type=int, default=10, metavar="N", help="only the first N (%(default)s)")
    add("--postgres", action="store_true", help="run Mnemon with the static embedder on a PostgreSQL of its own too")
    add("--json", type=Path, default=Path(tempfile.gettempdir(), "mnemon-locomo.json"), help="results (%(default)s)")
    add("--plot", type=Path, default=Path(tempfile.gettempdir(), "mnemon-locomo.png"), help="picture (%(default)s)")
    given = parser.parse_args(arguments)
    if not given.data.is_file():
        parser.error(f"{given.data} is not a file; get locomo10.json from the authors of LoCoMo")
    conversations = read(given.data)[: given.conversations]
    with Bar("locomo") as bar:
        summary = summarise(asyncio.run(run(conversations, postgres=given.postgres, bar=bar)))
    show(summary)
    left_out = sum(conversation.unanswered for conversation in conversations)
    print(f"{left_out} questions name no turn that there is and were left out.")
    facts = {"machine": report.machine(given.json.parent), "left_out": left_out}
    given.json.write_text(json.dumps({**facts, "groups": summary}, indent=2, ensure_ascii=False) + "\n", "utf-8")
    plot(summary, given.plot)
    print(f"Written to {given.json} and {given.plot}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
