"""Asking an HTTP endpoint for JSON, as embedders and language models do: with patience, but never for ever."""

import random
import time
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import orjson

from mnemon.errors import InvalidSettings, StoreUnavailable
from mnemon.providers.specifications import Specification

_TRIES = 3
_FIRST_PAUSE = 0.2
_TRY_AGAIN = {429, 500, 502, 503, 504}
_LARGEST = 64 * 1024 * 1024  # bytes of an answer


@dataclass(frozen=True, slots=True)
class Answer:
    """What an endpoint answered, whatever it is."""

    status: int
    body: bytes
    retry_after: str = ""

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class Endpoint:
    """One URL that is sent JSON. What keeps it from answering is raised as `unavailable`.

    It may say to come again later (429), fail (5xx), break off or be late: it is then asked again after a
    pause that grows and is never the same, three times in all. One attempt takes `timeout` seconds at the most,
    and none begins after `patience`. The pause that the endpoint itself asks for is kept, unless it is too long.
    """

    def __init__(
        self,
        specification: Specification,
        url: str,
        path: str,
        timeout: float,
        *,
        key: str | None = None,
        patience: float | None = None,
        unavailable: type[StoreUnavailable],
    ) -> None:
        chosen = specification.options.get("url", url)
        self.url = _checked(chosen, specification).rstrip("/") + path
        self._name = specification.name
        self._timeout = timeout
        self._patience = patience or timeout
        self._unavailable = unavailable
        self._key = key if _origin(chosen) == _origin(url) else None  # never sent elsewhere than it was given for
        headers = {"content-type": "application/json", **({"authorization": f"Bearer {key}"} if self._key else {})}
        self._client = httpx.Client(headers=headers)

    def ask(self, question: object) -> Answer:
        """The endpoint's answer, whatever it is, once it has had its tries."""
        body = orjson.dumps(question)
        deadline = time.monotonic() + self._patience
        attempt = 1
        while True:
            answer = self._try_to_ask(body, deadline)
            pause = _pause(answer, attempt)
            is_last = attempt == _TRIES or time.monotonic() + pause >= deadline
            if is_last or (isinstance(answer, Answer) and answer.status not in _TRY_AGAIN):
                break
            time.sleep(pause)
            attempt += 1
        if isinstance(answer, Answer):
            return answer
        raise answer

    def complaint(self, answer: Answer) -> str:
        """What is wrong, if the answer is no good; the key is not repeated."""
        said = answer.text[:200]
        if self._key:
            said = said.replace(self._key, "…")
        remedy = {401: "; check the API key", 403: "; check the API key", 404: f"; check the model {self._name!r}"}
        return f"{self.url} answered {answer.status}{remedy.get(answer.status, '')}: {said}"

    def close(self) -> None:
        self._client.close()

    def _try_to_ask(self, body: bytes, deadline: float) -> Answer | StoreUnavailable:
        """An answer, or what to raise if it was the last try."""
        end = min(deadline, time.monotonic() + self._timeout)
        try:
            return self._post(body, end)
        except (httpx.RemoteProtocolError, httpx.ReadError) as error:
            return Answer(503, f"the connection broke: {error}".encode())  # perhaps only an old one: ask again
        except httpx.TimeoutException:
            return self._unavailable(f"{self.url} did not answer within {self._timeout} s")
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise self._unavailable(f"{self.url} cannot be reached: {reason}") from error
        except RuntimeError as error:
            raise self._unavailable(f"{self.url} was closed") from error

    def _post(self, body: bytes, end: float) -> Answer:
        """One question and its answer, also if that comes in drops: httpx only limits how long each drop takes."""
        found = bytearray()
        left = max(0.05, end - time.monotonic())
        with self._client.stream("POST", self.url, content=body, timeout=left) as response:
            for piece in response.iter_bytes():
                found += piece
                if len(found) > _LARGEST:
                    raise self._unavailable(f"{self.url} answered with more than {_LARGEST} bytes")
                if time.monotonic() > end:
                    raise httpx.ReadTimeout("the answer did not end")
            return Answer(response.status_code, bytes(found), response.headers.get("retry-after", ""))


def _pause(answer: Answer | StoreUnavailable, attempt: int) -> float:
    """How long to wait: as long as the endpoint asks for, or twice as long as the last time."""
    wanted = answer.retry_after if isinstance(answer, Answer) else ""
    return float(wanted) if wanted.isdecimal() else random.uniform(0.5, 1.0) * _FIRST_PAUSE * 2.0**attempt


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url)[:2]


def _checked(url: str, specification: Specification) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidSettings(f"{specification} names no URL that begins with http:// or https://")
    if parts.username or parts.password:
        raise InvalidSettings(f"a URL in the {specification.what} must not hold a password: it is stored and shown")
    return url
