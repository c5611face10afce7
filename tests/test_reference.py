"""The reference leaves out nothing that is public, and no page points to a place that is not there."""

import dataclasses
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import mnemon
import mnemon.sync

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md"))]

# Which pages describe a class, and what stands before its methods' names in their headings.
CLASSES: dict[type, tuple[tuple[str, ...], str]] = {
    mnemon.SessionService: (("sessions",), ""),
    mnemon.StateStore: (("state",), ""),
    mnemon.TaskService: (("tasks",), ""),
    mnemon.WorkingMemory: (("working",), ""),
    mnemon.EpisodeService: (("episodes",), ""),
    mnemon.MemoryService: (("memories",), ""),
    mnemon.ConsolidationService: (("consolidation",), ""),
    mnemon.RetentionService: (("retention",), ""),
    mnemon.KeyService: (("keys",), ""),
    mnemon.VectorService: (("vectors",), ""),
    mnemon.IndexService: (("indexes",), ""),
    mnemon.AgentService: (("agents",), ""),
    mnemon.DocumentService: (("documents",), ""),
    mnemon.ArtifactService: (("artifacts",), ""),
    mnemon.WorkspaceService: (("workspaces",), ""),
    mnemon.Consumer: (("journal",), "Consumer."),
    mnemon.HybridMemoryService: (("journal", "opening", "recall", "episodes", "consolidation"), ""),
}

FUNCTIONS = {"open": mnemon.open, "mnemon.sync.open": mnemon.sync.open}
PORTS = [mnemon.Embedder, mnemon.VectorMemory, mnemon.Reranker, mnemon.Expander, mnemon.LanguageModel]
SERVICES = [service for service in CLASSES if service not in (mnemon.Consumer, mnemon.HybridMemoryService)]


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


def described_on(*pages: str) -> dict[str, str]:
    return {title: text for page in pages for title, text in sections((REFERENCE / f"{page}.md").read_text()).items()}


def check_signature(title: str, text: str, parameters: Iterable[inspect.Parameter]) -> None:
    signature = re.search(r"```pyi\n(.*?)```", text, re.DOTALL)
    assert signature, f"{title} has no signature on its page"
    for parameter in parameters:
        assert re.search(rf"\b{parameter.name}\b", signature[1]), f"{title} is described without {parameter.name}"
        if parameter.default is not inspect.Parameter.empty:
            written = re.search(rf"\b{parameter.name}:[^=]*?= ([^,\n)]+)", signature[1])
            assert written, f"{title} is described without the default of {parameter.name}"
            assert written[1].strip() == as_written(parameter.default)


def as_written(default: Any) -> str:
    return f'"{default}"' if isinstance(default, str) else str(default)


@pytest.mark.parametrize(("service", "name"), public_methods(), ids=lambda part: getattr(part, "__name__", part))
def test_every_method_is_described_with_its_parameters_and_defaults(service: type, name: str) -> None:
    pages, prefix = CLASSES[service]
    described = described_on(*pages)
    assert prefix + name in described, f"no page of {pages} describes {name}"
    parameters = list(inspect.signature(getattr(service, name)).parameters.values())[1:]
    check_signature(prefix + name, described[prefix + name], parameters)


@pytest.mark.parametrize("title", FUNCTIONS)
def test_opening_is_described_with_its_parameters_and_defaults(title: str) -> None:
    parameters = inspect.signature(FUNCTIONS[title]).parameters.values()
    check_signature(title, described_on("opening")[title], parameters)


@pytest.mark.parametrize("port", PORTS, ids=lambda port: port.__name__)
def test_every_member_of_a_part_of_ones_own_is_described(port: type) -> None:
    text = described_on("opening")[port.__name__]
    for name in (name for name in vars(port) if not name.startswith("_")):
        assert re.search(rf"^\| `{name}\b", text, re.MULTILINE), f"{port.__name__}.{name} is not described"


def test_every_service_of_the_handle_has_a_page() -> None:
    with mnemon.sync.open("sqlite://", background=False) as memory:
        handle = memory._service
        services = {name: type(value) for name, value in vars(handle).items() if not name.startswith("_")}
    assert set(services.values()) == set(SERVICES)
    for name, service in services.items():
        assert f"`{name}` | [`{service.__name__}`]" in described_on("opening")["HybridMemoryService"]


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
