"""The quickstart: one agent's memory, from the first session to a sealed history.

It works in ./mnemon.db, or wherever MNEMON_URL says, and can be run again and again: each run counts itself in the
state that all runs share, and makes its own sessions and memories beside those of the runs before.
"""

import asyncio
from datetime import UTC, datetime

import mnemon
from mnemon import AccessDenied, HybridMemoryService, Placement, Principal, Provenance

APP = "quickstart"


async def main() -> None:
    async with mnemon.open() as memory:
        run = await memory.state.update("app:runs", lambda runs: runs + 1, default=0, app_name=APP)
        print(f"Run {run} of the quickstart on this database.")
        began = await memory.position()
        chat = await hold_sessions(memory, run)
        task_id = await do_a_task(memory, chat)
        place = await remember(memory, run, chat, task_id)
        await search(memory, run)
        await recall(memory, run, chat)
        await keep_apart(memory, chat, place)
        await look_back(memory, began, place)


def chapter(title: str) -> None:
    print(f"\n{title}")


async def hold_sessions(memory: HybridMemoryService, run: int) -> str:
    """Two sessions of one user: each has a log of its own, and both share the `user:` state."""
    chapter("Sessions and state")
    morning, evening = f"morning-{run}", f"evening-{run}"
    await memory.sessions.create_session(morning, app_name=APP, user_id="alice")
    await memory.sessions.append_event(
        morning,
        {"role": "user", "text": "I moved to Oslo."},
        state_delta={"user:city": "Oslo", "topic": "moving", "temp:draft": "Congratulations!"},
    )
    await memory.sessions.create_session(evening, app_name=APP, user_id="alice")
    city = await memory.sessions.get_state(evening, "user:city")
    topic = await memory.sessions.get_state(evening, "topic")
    print(f"  the morning session learned where Alice lives; the evening session knows it too: {city}")
    print(f"  what belongs to the morning session alone stays there: topic is {topic} in the evening")

    await memory.sessions.append_events(evening, [{"role": "user", "text": "Hi"}, {"role": "agent", "text": "Hello!"}])
    await memory.sessions.terminate_session(morning)
    ended = await memory.sessions.get_session(morning, last=10)
    assert ended is not None
    print(f"  the morning session is {ended.status}; its temp: state is gone: {sorted(ended.state)}")
    return evening


async def do_a_task(memory: HybridMemoryService, session_id: str) -> str:
    """A unit of work with an input, a status and a result."""
    chapter("Tasks")
    task = await memory.tasks.create("find a flat", session_id=session_id, input={"city": "Oslo", "rooms": 2})
    await memory.tasks.update(task.id, "running")
    done = await memory.tasks.update(task.id, "completed", result={"found": 3})
    print(f"  the task {done.name!r} is {done.status} with {done.result}, at version {done.version}")
    return task.id


async def remember(memory: HybridMemoryService, run: int, session_id: str, task_id: str) -> str:
    """A memory is never overwritten: every change is a version, and every version can be read."""
    chapter("Memories and their versions")
    place = f"user:alice:run-{run}"
    await memory.memories.add_memory(
        place, "home", {"city": "Oslo"}, created_by="assistant", task_id=task_id,
        provenance=Provenance(session_id=session_id, author="alice", trust=0.9),
        placement=Placement(valid_from=datetime(2024, 1, 1, tzinfo=UTC)),
    )  # fmt: skip
    await memory.memories.update_memory(
        place, "home", {"city": "Bergen", "street": "Nygata"}, updated_by="assistant", expected_version=1,
        placement=Placement(valid_from=datetime(2026, 6, 1, tzinfo=UTC)),
    )  # fmt: skip
    for difference in await memory.memories.diff_memory(place, "home", 1, 2):
        print(f"  {difference.path} {difference.kind}: {difference.before} -> {difference.after}")
    then = await memory.memories.get_memory(place, "home", as_of=datetime(2025, 5, 17, tzinfo=UTC))
    now = await memory.memories.get_memory(place, "home")
    assert then is not None
    assert now is not None
    print(f"  in May 2025 Alice lived in {then.value['city']}, today in {now.value['city']}")

    try:
        await memory.memories.update_memory(place, "home", {"city": "Rome"}, expected_version=1)
    except mnemon.ConflictError as conflict:
        print(f"  a writer who had read version 1 is told so: {conflict}")
    await memory.memories.delete_memory(place, "home", deleted_by="assistant")
    gone = await memory.memories.get_memory(place, "home")
    version = await memory.memories.restore_memory(place, "home", version=2, restored_by="assistant")
    print(f"  deleted, it reads as {gone}; restored, it is version {version}, and nothing was lost:")
    for old in await memory.memories.get_memory_history(place, "home"):
        print(f"    {old.version}: {'deleted' if old.is_deleted else old.value['city']}, by {old.updated_by}")
    return place


async def search(memory: HybridMemoryService, run: int) -> None:
    """Memories are found by where they are and by what their metadata says."""
    chapter("Search")
    dishes = f"user:alice:run-{run}:dishes"
    for key, metadata in {
        "ramen": {"stars": 5, "tags": ["soup", "hot"]},
        "salad": {"stars": 3, "tags": ["cold"]},
        "laksa": {"stars": 4, "tags": ["soup", "spicy"]},
    }.items():
        await memory.memories.add_memory(dishes, key, f"Alice tried {key}", "episodic", metadata=metadata)
    good_soups = {"stars": {"gte": 4}, "tags": {"contains": "soup"}}
    found = await memory.memories.search_memories(f"user:alice:run-{run}", "episodic", where=good_soups)
    print(f"  soups with four stars or more: {', '.join(dish.key for dish in found)}")


async def recall(memory: HybridMemoryService, run: int, session_id: str) -> None:
    """What was remembered or said is found by what it means, and packed for a prompt."""
    chapter("Recall")
    notes = f"user:alice:run-{run}:notes"
    await memory.remember_many(
        ["Alice cannot eat peanuts", "The flat has two rooms and a view of the fjord", "Her dog is called Pixel"],
        namespace=notes,
    )
    for question in ("what food should I avoid serving?", "what is the name of her pet?"):
        [hit] = await memory.recall(question, namespaces=[notes], k=1)
        print(f"  {question} {hit.memory.value}")
    await memory.settled()  # what was said in sessions is indexed in the background
    context = await memory.context("what is her dog called?", session_id=session_id, budget=300)
    print(f"  a prompt could begin with this, {context.tokens} tokens:")
    print("\n".join(f"    {line}" for line in context.text.splitlines()))


async def keep_apart(memory: HybridMemoryService, session_id: str, place: str) -> None:
    """A principal sees what its grants cover, through every method, and nothing else."""
    chapter("Access")
    bob = memory.as_principal(Principal("bob", {"user:bob": "write"}))
    try:
        await bob.memories.get_memory(place, "home")
    except AccessDenied as denied:
        print(f"  {denied}")
    session = await bob.sessions.get_session(session_id)
    print(f"  for Bob, Alice's session is {session}, and the journal shows him {len(await bob.audit())} changes")


async def look_back(memory: HybridMemoryService, began: int, place: str) -> None:
    """Every change is in the journal, in the transaction that made it; seals show that it was not touched."""
    chapter("History")
    for change in reversed(await memory.audit(namespace=place, actor="assistant")):
        print(f"  {change.position}: {change.actor} did {change.operation} {change.entity} {change.entity_id!r}")
    print(f"  changes since this run began: {len([change async for change in memory.changes(after=began)])}")
    await memory.seal()
    verified = await memory.verify()
    print(f"  {verified.sealed} entries are sealed, intact: {verified.intact}; head {(verified.head or '')[:16]}…")


if __name__ == "__main__":
    asyncio.run(main())
