"""The reference leaves out nothing that is public, and no page points to a place that is not there."""

import dataclasses
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import mnemon

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]

# Which pages describe a class, and what stands before its methods' names in their headings.
CLASSES: dict[type, tuple[tuple[str, ...], str]] = {
    mnemon.SessionService: (("sessions",), ""),
    mnemon.StateStore: (("state",), ""),
    mnemon.TaskService: (("tasks",), ""),
    mnemon.MemoryService: (("memories",), ""),
    mnemon.Consumer: (("journal",), "Consumer."),
    mnemon.HybridMemoryService: (("journal", "opening"), ""),
}


def sections(text: str) -> dict[str, str]:
    """What stands under each heading of the second and third level."""
    _, *parts = re.split(r"^#{2,3} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def public_methods() -> list[tuple[type, str]]:
    return [
        (service, name)
        for service in CLASSES
        for name, _ in inspect.getmembers(service, inspect.isfunction)
        if not name.startswith("_")
    ]


def as_written(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else str(default)


@pytest.mark.parametrize(("service", "name"), public_methods(), ids=lambda part: getattr(part, "__name__", part))
def test_every_method_is_described_with_its_parameters_and_defaults(service: type, name: str) -> None:
    pages, prefix = CLASSES[service]
    described = {
        title: text for page in pages for title, text in sections((REFERENCE / f"{page}.md").read_text()).items()
    }
    assert prefix + name in described, f"no page of {pages} describes {name}"
    signature = re.search(r"```pyi\n(.*?)```", described[prefix + name], re.DOTALL)
    assert signature, f"{name} has no signature on its page"
    for parameter in list(inspect.signature(getattr(service, name)).parameters.values())[1:]:
        assert re.search(rf"\b{parameter.name}\b", signature[1]), f"{name} is described without {parameter.name}"
        if parameter.default is not inspect.Parameter.empty:
            written = re.search(rf"\b{parameter.name}:[^=]*?= ([^,\n)]+)", signature[1])
            assert written, f"{name} is described without the default of {parameter.name}"
            assert written[1].strip() == as_written(parameter.default)


@pytest.mark.parametrize("name", mnemon.__all__)
def test_every_public_name_is_mentioned_and_so_are_its_fields(name: str) -> None:
    text = "".join(page.read_text() for page in REFERENCE.glob("*.md"))
    assert re.search(rf"\b{name}\b", text)
    value = getattr(mnemon, name)
    for field in dataclasses.fields(value) if dataclasses.is_dataclass(value) else ():
        assert re.search(rf"\b{field.name}\b", text), f"the field {field.name} of {name} is described nowhere"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        assert file.exists(), f"{target} is not there"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", file.read_text(), re.MULTILINE)
            anchors = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]
            assert anchor in anchors, f"{target} names a heading that is not there"
