"""What the documents say is true: their Python runs, and the commands they name exist."""

import re
import runpy
from pathlib import Path

import pytest

from tests import snippets

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
EXAMPLES = sorted(ROOT.glob("examples/*.py"))

SHARED = """
```python
from asyncio import get_running_loop, sleep
loop = get_running_loop()
await sleep(0)
```
1. In a list:

   ~~~py
   await sleep(0)
   assert loop is get_running_loop()
   ~~~
```text
not Python
```
"""


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def make_targets(text: str) -> set[str]:
    """The targets named in code: `make test`, or a line of a block."""
    code = re.findall(r"`([^`\n]+)`", text) + [block.code for block in snippets.blocks(text)]
    return {target for part in code for target in re.findall(r"^(?:\$ )?make ([a-z-]+)", part, re.MULTILINE)}


@pytest.fixture(autouse=True)
def _working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def shown(document: Path) -> str:
    """What a document says that its Python prints."""
    return "".join(
        f"{block.code}\n" for block in snippets.blocks(document.read_text("utf-8")) if block.language == "text"
    )


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_python_of_a_document_runs(document: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snippets.run(document)
    if document.parent.name == "tutorial":
        assert capsys.readouterr().out == shown(document)


@pytest.mark.parametrize("document", DOCUMENTS, ids=relative)
def test_make_targets_of_a_document_exist(document: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert make_targets(document.read_text("utf-8")) <= set(targets)


@pytest.mark.parametrize("example", EXAMPLES, ids=relative)
def test_example_runs(example: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(example)])
    runpy.run_path(str(example), run_name="__main__")


def test_make_targets_are_found_in_code_only() -> None:
    text = "`make a` and `make b-c ARGS=x`,\nmake sure\n```sh\n$ make d\nmake e  # why\n```\n"
    assert make_targets(text) == {"a", "b-c", "d", "e"}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    return tmp_path / "document.md"


def test_blocks_share_a_module_and_a_loop(document: Path) -> None:
    document.write_text(SHARED)
    assert snippets.run(document) == 2


def test_a_broken_block_fails_at_its_line(document: Path) -> None:
    document.write_text("# Title\n\n```python\nimport asyncio\nawait asyncio.sleep(0)\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as failure:
        snippets.run(document)
    assert (failure.traceback[-1].path, failure.traceback[-1].lineno + 1) == (document, 6)


@pytest.mark.parametrize(
    ("comment", "ran"),
    [
        ("<!-- not run: needs a server elsewhere -->", 0),
        ("<!-- not run: -->", 1),
        ("<!-- run me -->", 1),
        ("", 1),
    ],
)
def test_only_a_reason_excuses_a_block(document: Path, comment: str, ran: int) -> None:
    document.write_text(f"{comment}\n\n```python\nx = 1\n```\n")
    assert snippets.run(document) == ran


def test_an_excused_block_must_still_be_python(document: Path) -> None:
    document.write_text("<!-- not run: needs a server elsewhere -->\n```python\nthis is no Python\n```\n")
    with pytest.raises(SyntaxError):
        snippets.run(document)


def test_an_unclosed_block_is_run(document: Path) -> None:
    document.write_text("```python\n1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        snippets.run(document)
