"""What is drained into episodes leaves the copy in Redis too."""

from pathlib import Path

import mnemon
from mnemon.testing import ManualClock
from tests.conformance.backends import opened
from tests.servers import Server


async def test_what_is_consolidated_is_read_no_longer(tmp_path: Path, valkey: Server) -> None:
    settings = {"working_store": "redis", "redis_url": valkey.url}
    async with opened("sqlite-file", f"sqlite:///{tmp_path}/mnemon.db", ManualClock(), **settings) as memory:
        await memory.sessions.create_session("s1", "helpdesk", "alice")
        await memory.working.append("s1", ["one", "two"])
        assert len(await memory.working.recent("s1")) == 2
        assert await memory.consolidation.flow() == mnemon.FlowReport(rounds=1, drained=2, episodes=1, summaries=1)
        assert await memory.working.recent("s1") == []
        await memory.working.append("s1", ["three"])
        assert [item.value for item in await memory.working.recent("s1")] == ["three"]
