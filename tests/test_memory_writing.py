"""Steps of writing memories that only a race would reach through the services."""

import mnemon
from mnemon.journal import Origin
from mnemon.testing.handles import parts_of
from mnemon.testing.suite import unchanged


async def test_deleting_passes_over_what_is_not_there() -> None:
    async with mnemon.open("sqlite://", embedder="none", background=False, seal_interval=None) as memory:
        await memory.remember("stays", namespace="user:alice", key="here")
        store = parts_of(memory).store
        deleting = memory.memories._writing.deleting([("user:alice", "gone")], Origin(1))
        async with unchanged(store):
            await store.write(deleting)
