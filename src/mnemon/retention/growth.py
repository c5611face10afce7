"""Measuring how large everything is, and telling when it grows too quickly."""

import logging

import orjson

from mnemon import journal
from mnemon.clock import micros, moment
from mnemon.journal import Origin
from mnemon.model import GrowthReport, GrowthSample
from mnemon.ports import Row, Store, Transaction
from mnemon.retention.decide import DAY, Sized, weekly_growth
from mnemon.retention.rows import SQL
from mnemon.values import decode

_LOG = logging.getLogger("mnemon.retention")
_KEPT = 400 * DAY  # samples older than that are removed
_SHOWN = 1000


class Growth:
    """Takes samples of the size of the database and of the contents beside it."""

    def __init__(self, store: Store, limit: int | None) -> None:
        self._store = store
        self._limit = limit

    async def measure(self, now: int) -> GrowthSample:
        """How large everything is."""
        database = (await self._store.fetch(self._store.dialect.size, {}))[0][0]
        contents = (await self._store.fetch(SQL["content_size"], {}))[0][0]
        memories = (await self._store.fetch(SQL["count_memories"], {}))[0][0]
        detail = {"database": database, "contents": contents, "memories": memories}
        return GrowthSample(moment(now), database + contents, detail)

    async def report(self, origin: Origin, *, record: bool) -> GrowthReport:
        """How large everything is and how quickly it grows; `record` keeps the sample for later reports."""
        now = await self.measure(origin.now)
        since = {"since": origin.now - _KEPT, "limit": _SHOWN}
        samples = tuple(map(_sample, reversed(await self._store.fetch(SQL["list_growth"], since))))
        report = GrowthReport(now, _weekly(samples, now), self._limit, samples)
        if record:
            await self._store.write(lambda tx: self._record(tx, origin, report))
            if report.is_alarming:
                _LOG.warning("the memory grew by %d bytes in a week; growth_alert is %s", report.weekly, self._limit)
        return report

    async def _record(self, tx: Transaction, origin: Origin, report: GrowthReport) -> None:
        sample = report.now
        row = {"at": origin.now, "bytes": sample.size, "detail": orjson.dumps(dict(sample.detail)).decode()}
        await tx.execute(SQL["insert_growth"], row)
        await tx.execute(SQL["trim_growth"], {"before": origin.now - _KEPT})
        operation = "alert" if report.is_alarming else "sample"
        told = {"bytes": sample.size, "weekly": report.weekly}
        await journal.record(
            tx, [journal.entry(origin, "growth", str(origin.now), operation, namespace=None, payload=told)]
        )


def _sample(row: Row) -> GrowthSample:
    at, size, detail = row
    return GrowthSample(moment(at), size, decode(detail))


def _weekly(samples: tuple[GrowthSample, ...], now: GrowthSample) -> int:
    return weekly_growth([_sized(each) for each in samples], _sized(now))


def _sized(sample: GrowthSample) -> Sized:
    return Sized(micros(sample.at), sample.size)
