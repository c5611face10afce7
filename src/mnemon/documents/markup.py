"""HTML as text: what a browser would show of it, written down as Markdown, with the lines where it stands."""

from html.parser import HTMLParser

_SILENT = frozenset({"script", "style", "template", "noscript", "head", "svg", "iframe", "object", "select", "button"})
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend", "main", "menu",
    "nav", "ol", "p", "section", "summary", "table", "ul",
})  # fmt: skip
_HEADINGS = {f"h{depth}": depth for depth in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "menu"})


class Markup(HTMLParser):
    """Feed it a document and close it; then `text` is what it says, and `lines` where each line of that stands."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.lines: list[int] = []
        self._done: list[str] = []
        self._line = ""
        self._begins = 1
        self._silent: list[str] = []
        self._lists = 0
        self._is_title = False
        self._raw: list[str] | None = None

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._done)

    def close(self) -> None:
        super().close()
        self._end_raw()
        self._flush()
        while self._done and not self._done[-1]:
            self._done.pop()
            self.lines.pop()

    # -- what the parser finds

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "title" and self._silent == ["head"]:
            self._is_title = True
        elif tag in _SILENT:
            self._silent.append(tag)
        elif tag == "body":
            self._silent.clear()  # a head that was never closed
        if self._silent:
            return
        if tag in _HEADINGS or tag in _BLOCKS or tag == "pre":
            self._separate()
        self._open(tag)

    def _open(self, tag: str) -> None:
        if tag in _HEADINGS:
            self._add("#" * _HEADINGS[tag] + " ")
        elif tag == "pre":
            self._raw, self._begins = [], self.getpos()[0]
        elif tag in _LISTS:
            self._lists += 1
        elif tag == "li":
            self._flush()
            self._add("  " * max(0, self._lists - 1) + "- ")
        elif tag in ("td", "th"):
            self._add("| ")
        elif tag in ("br", "tr"):
            self._flush()

    def handle_endtag(self, tag: str) -> None:
        if tag == "title":
            self._is_title = False
        if tag in self._silent:
            del self._silent[self._silent.index(tag) :]
            return
        if self._silent:
            return
        if tag == "pre":
            self._end_raw()
        elif tag in ("td", "th"):
            self._line = f"{self._line.rstrip()} "
        elif tag in ("li", "tr"):
            self._flush()
        elif tag in _LISTS:
            self._lists = max(0, self._lists - 1)
            self._separate()
        elif tag in _HEADINGS or tag in _BLOCKS:
            self._separate()

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title = " ".join(f"{self.title}{data}".split())
        elif self._silent:
            return
        elif self._raw is not None:
            self._raw.append(data)
        else:
            words = " ".join(data.split())
            if words or data:
                self._add((" " if data[:1].isspace() else "") + words + (" " if words and data[-1:].isspace() else ""))

    # -- writing it down

    def _add(self, text: str) -> None:
        if not self._line.strip():
            if not text.strip():
                return
            self._begins = self.getpos()[0]
            self._line, text = "", text if text.lstrip().startswith("- ") else text.lstrip()
        elif self._line.endswith(" "):
            text = text.lstrip()
        self._line += text

    def _flush(self) -> None:
        if self._line.strip():
            self._put(self._line.rstrip())
        self._line = ""

    def _separate(self) -> None:
        """What comes is a block of its own, unless it is the first thing in an item or a cell; lists stay together."""
        if self._line.rstrip().endswith(("-", "|")):
            return
        self._flush()
        if self._done and self._done[-1] and not self._lists:
            self._put("")

    def _end_raw(self) -> None:
        if self._raw is None:
            return
        code, self._raw = "".join(self._raw), None
        lines = code.removeprefix("\n").rstrip().split("\n")
        fence = "```"
        while any(line.strip().startswith(fence) for line in lines):
            fence += "`"
        begins = self._begins + code.startswith("\n")
        for number, line in enumerate((fence, *lines, fence)):
            self._begins = begins + min(max(0, number - 1), len(lines) - 1)
            self._put(line)
        self._put("")

    def _put(self, line: str) -> None:
        self._done.append(line)
        self.lines.append(self._begins)
