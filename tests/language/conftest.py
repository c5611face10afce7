"""What the tests of language models share: an endpoint that is told what to say."""

from collections.abc import Iterator

import pytest

from tests.language import endpoint as endpoints


@pytest.fixture
def endpoint() -> Iterator[endpoints.ChatEndpoint]:
    with endpoints.running() as endpoint:
        yield endpoint
