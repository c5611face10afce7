"""How an embedder or a language model is written in the settings: `provider:name?option=value&…`."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from mnemon.errors import InvalidSettings


@dataclass(frozen=True, slots=True)
class Specification:
    """One model to be loaded. It is stored with what was made with it, so that it must not hold a secret.

    `model` and `version` say under which name the vectors are kept, where that should differ from the
    name that the provider knows: two providers of the same model then share a space.
    """

    text: str
    provider: str
    name: str
    options: Mapping[str, str]
    what: str = "embedder"

    @classmethod
    def parse(cls, text: str, what: str = "embedder") -> "Specification":
        head, mark, query = text.partition("?")
        provider, _, name = head.partition(":")
        options = dict(parse_qsl(query, keep_blank_values=True))
        if mark and not options:
            raise InvalidSettings(f"the {what} {text!r} has no option=value after its question mark")
        return cls(text, provider, name, options, what)

    def __str__(self) -> str:
        return f"the {self.what} {self.text!r}"

    def check_options(self, *allowed: str) -> None:
        """Raise `InvalidSettings` if there is an option that the provider does not have, or one that is empty."""
        for option, value in self.options.items():
            if option not in allowed:
                choice = f"it can have {', '.join(allowed)}" if allowed else "it has none"
                raise InvalidSettings(f"{self} has the unknown option {option!r}; {choice}")
            if not value:
                raise InvalidSettings(f"{self} has an empty option {option!r}")

    def require_name(self, example: str) -> str:
        """The name after the provider's, which this provider cannot do without."""
        if not self.name:
            raise InvalidSettings(f"{self} names no model; write it as {example!r}")
        return self.name

    def whole_number(self, written: str) -> int:
        """A dimension, as it was written."""
        if not (written.isascii() and written.isdigit() and 0 < int(written) <= 65_536):
            raise InvalidSettings(f"the dimension of {self} is a whole number from 1 to 65536, not {written!r}")
        return int(written)
