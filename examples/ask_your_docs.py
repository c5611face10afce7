"""Ask a folder of documents: index it, find what answers a question, and cite file and line.

    python examples/ask_your_docs.py FOLDER "how do I restrict access?"

Without arguments it asks Mnemon's own documentation. The database is in memory; give `mnemon.open` a file to keep it.
"""

import asyncio
import sys
from pathlib import Path

import mnemon

DOCS = Path(__file__).resolve().parent.parent / "docs"
QUESTIONS = ("What may a principal see?", "What happens when a vector store is down?")


async def main(folder: Path, questions: tuple[str, ...]) -> None:
    async with mnemon.open("sqlite://") as memory:
        report = await memory.documents.add_folder(folder, namespace="project:docs", root=folder)
        print(f"{len(report.added)} documents, {report.chunks_written} chunks")
        for question in questions:
            print(f"\n{question}")
            for hit in await memory.recall(question, namespaces="project:docs", k=3):
                print(f"  {hit.memory.source}  {' > '.join(hit.memory.metadata['headings'])}")
        # What a language model would be given, and what the marks in its answer stand for:
        context = await memory.context(questions[0], namespaces="project:docs", budget=800)
        print(f"\n{context.tokens} tokens for the model, citing")
        for citation in context.citations:
            print(f"  {citation.mark} {citation.source}")


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(main(Path(given[0]) if given else DOCS, tuple(given[1:]) or QUESTIONS))
