"""What Alice and Bob have, and what a row of the table of calls is.

Everything of Bob's has his name in it: whatever a handle of Alice's gives back must not.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mnemon import HybridMemoryService, Placement, Principal
from mnemon.testing.handles import parts_of

SECRET = "bob's secret"
LEVELS = ("none", "read", "write", "admin", "root")
BOB: dict[str, Any] = {"app_name": "helpdesk", "user_id": "bob"}
VECTOR = [1.0] * 8
ENDINGS = ("capture_result", "succeed", "fail", "interrupt")
"""How a cycle ends; each user has an agent of this name that waits for it."""

Call = Callable[[HybridMemoryService], Awaitable[Any]]


@dataclass(frozen=True)
class Method:
    """`own` works with `level` on `user:alice`; `foreign` must not reach what is not Alice's."""

    level: str
    own: Call
    foreign: list[Call] = field(default_factory=list[Call])


def scoped(memory: HybridMemoryService, **grants: Any) -> HybridMemoryService:
    return memory.as_principal(
        Principal("alice", {prefix.replace("_", ":"): level for prefix, level in grants.items()})
    )


def everything(memory: HybridMemoryService) -> HybridMemoryService:
    """A handle on the same store that sees all."""
    return HybridMemoryService(parts_of(memory))


def desk(memory: HybridMemoryService) -> Path:
    """The folder that has the real files: a folder of each user's, and the contents of what is kept."""
    return Path(urlsplit(parts_of(memory).settings.content_url or "").path).parent


async def collect(iterator: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in iterator]


async def first(iterator: Any) -> Any:
    async with aclosing(iterator):
        return await anext(iterator)


# -- what they have


async def settle(memory: HybridMemoryService, user: str, said: str) -> None:
    """Give a user two sessions, events, state, tasks, memories and a part of a thread that both share."""
    for session_id in (f"{user}-session", f"{user}-spare"):
        await memory.sessions.create_session(
            session_id, "helpdesk", user, f"{user}-project", initial_state={"k": said, "temp:t": said},
            metadata={"m": said}, actor=user,
        )  # fmt: skip
        await memory.sessions.append_event(
            session_id, {"text": said}, {"user:k": said}, event_id=f"{user}-event", actor=user
        )
        for task in (f"{session_id}-task", f"{session_id}-task-2"):
            await memory.tasks.create(said, task_id=task, session_id=session_id, input=said, actor=user)
    for key in ("key", "gone", "spare"):
        await memory.memories.add_memory(
            f"user:{user}:notes", f"{user}-{key}", said, created_by=user, metadata={"m": said, "shared": 1},
            placement=Placement("thread", 1),
        )  # fmt: skip
        await memory.memories.update_memory(f"user:{user}:notes", f"{user}-{key}", [said], user)
    await memory.memories.delete_memory(f"user:{user}:notes", f"{user}-gone", user)
    await memory.memories.add_memory(f"session:{user}-session", f"{user}-key", said, created_by=user)


async def settle_shared_state(memory: HybridMemoryService) -> None:
    """What belongs to the app, and to each project."""
    await memory.state.set("app:k", "the app's", app_name="helpdesk")
    await memory.state.set("project:k", SECRET, project_id="bob-project")
    await memory.memories.add_memory("app:helpdesk", "app-key", "the app's")


async def furnish(memory: HybridMemoryService, user: str, said: str) -> None:
    """Give a user what is made of files, agents and their cycles, and two memories that somebody is to decide on."""
    await furnish_artifacts(memory, user, said)
    await furnish_workspaces(memory, user, said)
    await furnish_agents(memory, user, said)
    await furnish_documents(memory, user, said)
    for key, city in ((f"{user}-1", "Bergen"), (f"{user}-2", "Oslo")):
        await memory.remember(f"{user.title()} lives in {city}.", namespace=f"user:{user}:homes", key=key)
    await memory.consolidate(f"user:{user}:homes", "review", actor=user)


async def furnish_artifacts(memory: HybridMemoryService, user: str, said: str) -> None:
    """One in two versions, another, and one that was deleted."""
    for name in (f"{user}.txt", f"{user}.txt", f"{user}-2.txt", f"{user}-gone.txt"):
        await memory.artifacts.save(f"{user}-session", name, said, metadata={"m": said}, actor=user)
    await memory.artifacts.delete(f"{user}-session", f"{user}-gone.txt", actor=user)


async def furnish_workspaces(memory: HybridMemoryService, user: str, said: str) -> None:
    """One with files, of which one was changed after a snapshot; and one to be deleted."""
    for name in (f"{user}-workspace", f"{user}-spare"):
        await memory.workspaces.create(name, namespace=f"user:{user}:work", metadata={"m": said}, actor=user)
    files = {f"{user}.txt": said, f"src/{user}.py": said, f"{user}-spare.txt": said}
    await memory.workspaces.write_many(f"{user}-workspace", files, actor=user)
    await memory.workspaces.snapshot(f"{user}-workspace", said, actor=user)
    await memory.workspaces.write(f"{user}-workspace", f"{user}.txt", f"{said} again", actor=user)


async def furnish_agents(memory: HybridMemoryService, user: str, said: str) -> None:
    """One with a workspace and a cycle, one to be deleted, and one for each way to end a cycle."""
    about: dict[str, Any] = {"name": user, "role": said, "namespace": f"user:{user}:agents", "actor": user}
    await memory.agents.create(f"{user}-agent", workspace_id=f"{user}-workspace", **about)
    for name in ("spare", *ENDINGS):
        await memory.agents.create(f"{user}-{name}", **about)
    for name in ("agent", *ENDINGS):
        await memory.agents.capture_proposal(
            f"{user}-{name}", {"thoughts": said}, session_id=f"{user}-session", actor=user
        )
    await memory.agents.succeed(f"{user}-agent", 1, said, summary=said, actor=user)
    await memory.agents.record_memory(f"{user}-agent", said, key=f"{user}-insight", actor=user)


async def furnish_documents(memory: HybridMemoryService, user: str, said: str) -> None:
    """Two texts and a file. Bob has two files more: one could not be read, and both have changed since."""
    folder, namespace = desk(memory) / user, f"user:{user}:docs"
    folder.mkdir()
    for name in (f"{user}-text", f"{user}-spare"):
        await memory.documents.add(name, namespace=namespace, content=f"# {said}\n", actor=user)
    (folder / f"{user}.md").write_text(f"# {said}\n")
    changing = [folder / "bob-failed.md", folder / "bob-stale.md"] if user == "bob" else []
    for file, content in zip(changing, (b"\0", b"# One\n"), strict=False):
        file.write_bytes(content)
    await memory.documents.add_folder(folder, namespace=namespace, root=folder, actor=user)
    for file in changing:
        file.write_text("# Two\n")
