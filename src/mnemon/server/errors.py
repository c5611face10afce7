"""Which status an error of the library is answered with, in one table."""

import logging

from mnemon.errors import (
    AccessDenied,
    ConflictError,
    IntegrityError,
    InvalidInput,
    InvalidSettings,
    InvalidTransition,
    KeyUnavailable,
    LeaseLost,
    MnemonError,
    NotFound,
    NotSettled,
    StoreBusy,
    StoreClosed,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    ValueTooLarge,
)

try:
    from fastapi import FastAPI, Request
    from fastapi.responses import JSONResponse
except ModuleNotFoundError:
    raise ImportError("mnemon.server needs FastAPI: pip install 'mnemon[server]'") from None

_LOG = logging.getLogger("mnemon.server")
_AGAIN = "5"  # seconds

STATUSES: dict[type[BaseException], int] = {
    InvalidInput: 400,
    AccessDenied: 403,
    NotFound: 404,
    ConflictError: 409,
    IntegrityError: 409,
    InvalidTransition: 409,
    LeaseLost: 409,
    ValueTooLarge: 413,
    InvalidSettings: 500,
    MnemonError: 500,
    KeyUnavailable: 503,
    NotSettled: 503,
    StoreBusy: 503,
    StoreClosed: 503,
    StoreReadOnly: 503,
    StoreUnavailable: 503,
    StoreFull: 507,
}
"""The status for a class of errors, and for those below it that are not named themselves."""


def status_of(error: MnemonError) -> int:
    """The status for an error: that of the nearest class in the table."""
    return next(STATUSES[each] for each in type(error).__mro__ if each in STATUSES)


async def answer_error(request: Request, error: Exception) -> JSONResponse:
    """The answer to a request that raised an error of the library.

    It says what was wrong with the request. What is wrong here is told in the log only: it may name places and people.
    """
    assert isinstance(error, MnemonError)
    status = status_of(error)
    detail = str(error)
    if status >= 500:
        _LOG.error("%s %s was answered with %d: %s", request.method, request.url.path, status, error)
        detail = "the memory cannot be used now" if status == 503 else "the memory failed"
    headers = {"Retry-After": _AGAIN} if status == 503 else None
    return JSONResponse({"error": type(error).__name__, "detail": detail}, status, headers)


def handle_errors(app: FastAPI) -> None:
    """Answer every error of the library that a route raises; call it before the application starts."""
    app.add_exception_handler(MnemonError, answer_error)
