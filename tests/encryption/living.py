"""Everything that a user can do, each time with a secret of its own, and the search for those secrets in bytes."""

import base64
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import mnemon


@dataclass
class Secrets:
    """Hands out words that stand nowhere else: letters that no stemmer changes, and some that JSON has to escape."""

    stem: str
    told: list[str] = field(default_factory=list[str])
    """Those that are to be kept."""
    asked: list[str] = field(default_factory=list[str])
    """Those that are only asked for, and kept by nobody."""

    def __call__(self) -> str:
        return self._hand_out("", self.told)

    def question(self) -> str:
        return self._hand_out("q", self.asked)

    def _hand_out(self, infix: str, noted: list[str]) -> str:
        word = f"{self.stem}{infix}{len(noted):03}"
        noted.append(word)
        return f'{word} "ü\\{word}'

    def found_in(self, contents: Iterable[bytes]) -> set[str]:
        """Those that stand in the bytes in any of the forms that a program might have written them in."""
        everything = b"\0".join(contents)
        lower = everything.lower()
        return {
            word
            for word in (*self.told, *self.asked)
            if any(form in lower for form in _forms(word)) or any(form in everything for form in _base64(word))
        }


def _forms(word: str) -> Iterator[bytes]:
    yield word.encode()
    yield word.encode("utf-16-le")
    yield word.encode().hex().encode()
    yield "".join(f"\\u{ord(letter):04x}" for letter in word).encode()


def _base64(word: str) -> Iterator[bytes]:
    """The word inside a longer base64, wherever it begins in a group of three bytes."""
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + word.encode())
        yield coded[(0, 2, 3)[shift] : len(coded) // 4 * 4 - 4]


@dataclass(frozen=True)
class Life:
    """Whose life it is."""

    session: str
    user: str
    app: str
    namespace: str
    """Where agents, workspaces, documents and memories are."""


async def live(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    """Do everything with secrets."""
    await use_sessions(memory, secret, life)
    await use_state(memory, secret, life)
    await use_tasks(memory, secret, life)
    await use_working_memory(memory, secret, life)
    await use_artifacts(memory, secret, life)
    await use_workspaces(memory, secret, life)
    await use_agents(memory, secret, life)
    await use_documents(memory, secret, life)
    await use_memories(memory, secret, life)
    await use_episodes(memory, secret, life)
    await memory.settled(20)
    await memory.context(secret.question(), session_id=life.session)
    await memory.fetch_recent_context(life.session)


async def use_sessions(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    sessions = memory.sessions
    state = {"a": secret(), "user:b": secret(), "app:c": [secret()], "temp:d": secret()}
    told = {"m": secret()}
    await sessions.create_session(life.session, life.app, life.user, initial_state=state, metadata=told)
    event = {"author": "user", "text": secret()}
    delta = {"e": secret(), "user:f": secret(), "temp:g": secret(), "app:h": {"x": secret()}}
    appended = await sessions.append_event(life.session, event, delta, event_id="first")
    assert await sessions.append_event(life.session, event, delta, event_id="first") == appended
    many = [{"author": "model", "text": secret()} for _ in range(8)]
    await sessions.append_events(life.session, many)
    await sessions.append_event(life.session, {"text": secret()})  # and the first of them are archived
    await sessions.update_metadata(life.session, {"m": {secret(): secret()}})


async def use_state(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    owner = {"session_id": life.session}
    await memory.state.merge({"a": secret(), "new": secret(), "user:b": secret()}, **owner)
    await memory.state.compare_and_set("cas", secret(), 0, **owner)
    await memory.state.compare_and_set("cas", secret(), 1, **owner)
    await memory.state.update("cas", lambda value: {"was": value, "is": secret()}, **owner)
    await memory.state.set("gone", secret(), **owner)
    await memory.state.delete("gone", **owner)
    await memory.state.set("user:alone", secret(), app_name=life.app, user_id=life.user)
    await memory.state.compare_and_set("app:alone", secret(), 0, app_name=life.app)


async def use_tasks(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    done = await memory.tasks.create("work", session_id=life.session, input={"q": secret()})
    await memory.tasks.update(done.id, "running", result=secret())
    await memory.tasks.update(done.id, "completed", result=[secret()])
    failed = await memory.tasks.create("fail", session_id=life.session, input=secret())
    await memory.tasks.update(failed.id, "failed", error=secret())


async def use_working_memory(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    working = memory.working
    await working.append(life.session, [secret(), {"said": secret()}, [secret()]])
    assert len(await working.recent(life.session)) == 3
    batch = await working.drain(life.session, limit=1)
    assert batch is not None
    await working.acknowledge(batch)
    await working.append(life.session, [secret()])
    await working.recent(life.session)
    await working.set(life.session, "pad", secret())
    await working.get(life.session, "pad")
    await working.set(life.session, "pad", {"v": secret()}, expected_version=1)
    await working.set(life.session, "other", secret(), expected_version=0)
    await working.delete(life.session, "other")
    await working.set(life.session, "other", secret())
    await working.get(life.session, "pad")


async def use_artifacts(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    saved = await memory.artifacts.save(life.session, "report.txt", secret(), metadata={"about": secret()})
    await memory.artifacts.save(life.session, "report.txt", secret() * 10)
    await memory.artifacts.delete(life.session, "report.txt", saved.version)


async def use_workspaces(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    spaces, name = memory.workspaces, f"{life.session}-space"
    await spaces.create(name, namespace=life.namespace, metadata={"w": secret()})
    await spaces.write(name, "a.txt", secret(), metadata={"f": secret()})
    await spaces.snapshot(name, secret())
    await spaces.write(name, "a.txt", secret())
    await spaces.set_metadata(name, "a.txt", {"f": secret()})
    await spaces.update_metadata(name, {"w": secret()})
    await spaces.move(name, "a.txt", "b.txt")
    await spaces.clone(name, f"{name}-copy", namespace=life.namespace)
    await spaces.restore(name, 1)


async def use_agents(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    agents, name = memory.agents, f"{life.session}-agent"
    await agents.create(
        name, name="scout", role=secret(), directives={"goals": [secret()]}, config={"c": secret()},
        metadata={"m": secret()}, namespace=life.namespace,
    )  # fmt: skip
    await agents.update(name, directives=[secret()])
    for number in range(1, 5):
        await agents.capture_proposal(name, {"thoughts": secret(), "use_tool": {"name": "x", "arguments": {"a": 1}}})
        if number == 1:
            await agents.succeed(name, number, {"out": secret()}, summary=secret(), artifacts=[f"file:{secret()}"])
        elif number == 2:
            await agents.fail(name, number, secret(), {"trace": secret()})
        elif number == 3:
            await agents.interrupt(name, number, secret())
    await agents.summarise(name, 2, secret())
    await agents.record_memory(name, secret(), cycle=1, metadata={"k": secret()})
    await agents.recall(name, secret.question())
    await agents.rewind(name, 3)
    told = await agents.export_autogpt(name)
    await agents.import_autogpt(told, agent_id=f"{name}-copy", namespace=life.namespace)


async def use_documents(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    documents = memory.documents
    about = {"d": secret()}
    text = f"# {secret()}\n\nOnce {secret()} there was.\n\n## {secret()}\n\nAnd then {secret()} came.\n"
    await documents.add("notes.md", namespace=life.namespace, content=text, metadata=about)
    await documents.add("notes.md", namespace=life.namespace, content=f"{text}\n\nIn the end {secret()}.\n")
    await documents.add("titled.txt", namespace=life.namespace, content=secret(), title=secret().replace("\\", ""))
    await documents.mark_stale(life.namespace, "titled.txt")


async def use_memories(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    await memory.remember(f"I like {secret()} a lot", namespace=life.namespace, metadata={"t": secret()})
    for value in (secret(), secret()):
        await memory.remember(f"I live in {value}", namespace=life.namespace, key="home")
    await memory.remember_many([{"text": secret(), "key": "r"}], namespace=f"session:{life.session}")
    await memory.recall(secret.question(), namespaces=[life.namespace, f"session:{life.session}"])
    await memory.memories.consolidate_memories(life.namespace, "latest_wins")


async def use_episodes(memory: mnemon.HybridMemoryService, secret: Secrets, life: Life) -> None:
    offers = [{"by": "buyer", "terms": secret()}, {"by": "seller", "terms": {"price": secret()}}]
    await memory.store_episode(
        [secret(), f"My employer is {secret()}.", {"text": secret()}], session_id=life.session,
        kind="negotiation", title=secret().replace("\\", ""), participants=["buyer", "seller"], offers=offers,
        outcome={"agreed": secret()}, metadata={"e": secret()},
    )  # fmt: skip
    await memory.working.append(life.session, [f"I live in {secret()}.", f"My dog is called {secret()}."])
    await memory.consolidation.flow(idle=0.0)


def bytes_below(*folders: Path) -> Iterator[bytes]:
    """Every file: databases, their write-ahead logs, contents, and what lies beside; and the names of all."""
    for file in sorted(itertools.chain.from_iterable(folder.rglob("*") for folder in folders)):
        yield str(file).encode()
        if file.is_file():
            yield file.read_bytes()
