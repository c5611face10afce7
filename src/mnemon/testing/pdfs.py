"""Small PDF files, made from nothing."""

from collections.abc import Sequence


def pdf(pages: Sequence[str], title: str = "") -> bytes:
    """A PDF file with a line of text on each page; the text is ASCII without parentheses and backslashes."""
    numbers = range(4, 4 + 2 * len(pages), 2)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{' '.join(f'{n} 0 R' for n in numbers)}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in zip(numbers, pages, strict=True):
        drawn = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {number + 1} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>".encode(),
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(drawn), drawn),
        ]
    objects.append(f"<< /Title ({title}) >>".encode())
    written, places = b"%PDF-1.4\n", list[int]()
    for number, body in enumerate(objects, start=1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return written + (
        b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table)
        + b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (len(objects) + 1, len(objects))
        + b"startxref\n%d\n%%%%EOF\n" % len(written)
    )
