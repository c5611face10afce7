"""Get the server programs that the tests need, so that the first test that asks for one need not wait."""

import sys

from .binaries import QDRANT, WEAVIATE, cache
from .processes import ServerFailed


def main() -> None:
    for binary in (QDRANT, WEAVIATE):
        if not binary.path.exists():
            sys.stdout.write(f"Getting {binary.name} {binary.version} into {cache()}: once, it may take 15 minutes\n")
            sys.stdout.flush()
        binary.ensure()


if __name__ == "__main__":
    try:
        main()
    except ServerFailed as failure:
        sys.exit(str(failure))
