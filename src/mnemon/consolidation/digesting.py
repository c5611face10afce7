"""The second stage: an episode becomes a summary and facts.

A worker claims the episode, reads and embeds outside of any transaction, and writes all memories and the episode's
status in one, which its claim guards: if another worker has taken over meanwhile, nothing of this one's is written.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from mnemon.clock import Clock, micros
from mnemon.consolidation.draining import ACTOR, PASSING
from mnemon.consolidation.sources import Source
from mnemon.consolidation.summaries import Summary, summarise
from mnemon.consolidation.telling import fact_drafts, sources_of, summary_draft
from mnemon.episodes.claims import Claim, Claims
from mnemon.episodes.rows import episode_of
from mnemon.episodes.service import FACTS
from mnemon.errors import LeaseLost, MnemonError, StoreError
from mnemon.journal import Origin
from mnemon.language import CheckedModel
from mnemon.memories.rows import SQL as MEMORIES
from mnemon.memories.rows import named
from mnemon.memories.writing import Writing
from mnemon.model import Episode, Memory, MemoryDraft, Usage
from mnemon.ports import Runner, Store, Transaction, Unit

_LOG = logging.getLogger("mnemon.consolidation")
_BUDGET = 256  # tokens of a summary


class Digested(NamedTuple):
    """What became of an episode."""

    summaries: int = 0
    facts: int = 0
    failed: int = 0
    fallbacks: int = 0
    usage: Usage = Usage()


class Digesting:
    """Makes memories of episodes, one after the other."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        runner: Runner,
        writing: Writing,
        claims: Claims,
        language: Callable[[], CheckedModel | None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._runner = runner
        self._writing = writing
        self._claims = claims
        self._language = language

    async def step(self, lease: float) -> Digested | None:
        """Consolidate the episode that has waited for longest; None if none is due.

        One that cannot be consolidated is put back with its error, and holds up no other.
        """
        claim = await self._claims.take(lease)
        if claim is None:
            return None
        try:
            if claim.is_exhausted:
                return await self._fail(claim, "every worker that began with it came to an end before it did")
            return await self._digest(claim)
        except LeaseLost:
            return Digested()
        except PASSING:  # not the episode's fault
            await self._let_go(claim)
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the other episodes go on
            return await self._fail(claim, f"{type(error).__name__}: {error}")
        except BaseException:  # the worker was interrupted
            await self._let_go(claim)
            raise

    async def _digest(self, claim: Claim) -> Digested:
        episode = episode_of(await self._claims.told(claim))
        sources = sources_of(episode)
        model = self._language()
        summary = await self._runner.aside(lambda: _summarise(sources, model))
        digest = await self._writing.sealing.digesting(f"{episode.namespace}:{FACTS}")
        drafts = [summary_draft(episode, summary), *fact_drafts(episode, summary, sources, digest)]
        origin = self._origin(episode)
        units = await self._putting(drafts, origin)

        async def unit(tx: Transaction) -> int:
            told = {"facts": len(drafts) - 1, "method": summary.method}
            await self._claims.finish(tx, claim, origin, **told)
            await units[0](tx)
            written = 0
            for draft, put in zip(drafts[1:], units[1:], strict=True):
                if not await _is_known(tx, draft):
                    await put(tx)
                    written += 1
            return written

        facts = await self._store.write(unit)
        return Digested(1, facts, fallbacks=int(summary.fallback is not None), usage=summary.usage)

    async def _putting(self, drafts: Sequence[MemoryDraft], origin: Origin) -> list[Unit[list[Memory]]]:
        """A unit of work for each memory; all are embedded together."""
        values, namespaces = [draft.value for draft in drafts], [draft.namespace for draft in drafts]
        vectors = await self._writing.findable.embed(values, namespaces)
        pairs = zip(drafts, vectors, strict=True)
        return [await self._writing.putting([draft], origin, [found]) for draft, found in pairs]

    def _origin(self, episode: Episode) -> Origin:
        root, _, rest = episode.namespace.partition(":")
        user = rest.partition(":")[0] if root == "user" else None
        return Origin(self._clock.now(), ACTOR, user, episode.session_id, episode.task_id)

    async def _fail(self, claim: Claim, error: str) -> Digested:
        is_over = await self._claims.fail(claim, error)
        if is_over is None:
            return Digested()
        kind = error.partition(":")[0]  # the rest may have words of the episode, and is kept with it
        told = "is given up" if is_over else "is tried again later"
        _LOG.warning("episode %s cannot be consolidated and %s: %s", claim.row.id, told, kind)
        return Digested(failed=1)

    async def _let_go(self, claim: Claim) -> None:
        """Let others have it now; if that cannot be said, they have it when the lease has run out."""
        with suppress(StoreError):
            await self._claims.give_back(claim)


def _summarise(sources: Sequence[Source], model: CheckedModel | None) -> Summary:
    """A summary by the model, or without it, whatever may be wrong with it."""
    try:
        return summarise(sources, _BUDGET, model)
    except MnemonError:
        raise
    except Exception as error:  # a model of the caller's own may raise anything
        if model is None:
            raise
        _LOG.warning("the language model %s failed in a way of its own", model.name, exc_info=error)
        return replace(summarise(sources, _BUDGET), fallback=f"{type(error).__name__}: {error}")


async def _is_known(tx: Transaction, draft: MemoryDraft) -> bool:
    """Whether the same was said later, or at the same time, and is remembered already."""
    row = await tx.fetch_one(MEMORIES["get_current"], {"namespace": draft.namespace, "key": draft.key})
    at = draft.placement.occurred_at if draft.placement else None
    known = None if row is None else named(row)["occurred_at"]
    return known is not None and at is not None and known >= micros(at)
