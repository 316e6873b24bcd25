"""Data inside a notebook's code: weights that were trained elsewhere have to come in somehow. For a person to look at.

The source is never parsed, only scanned from left to right: that takes time and memory in proportion to its length,
whatever it holds, and works on what is no Python.
"""

from __future__ import annotations

import re

from nbformat import NotebookNode

LIMIT = 20_000
"""Characters of data. A cell of a lesson has up to 800, all cells of a lesson together 7,100; the weights of a small
network for digits have more than 100,000."""
LONG_LINE = 1_000  # characters of a line that nobody typed
LONG_WORD = 20  # letters and digits without a gap, outside of strings. Base64 comes in lines of 64 or 76.
PYTHON_MAGICS = {"%%time", "%%timeit", "%%capture", "%%prun"}
"""Cell magics whose body is code. That of others (`%%writefile`) is text."""

_CONTINUED = "\0\0"  # stands for a backslash at the end of a line: strings go on there, comments do not
_WORD = rf"(?<![\w+/=])[A-Za-z0-9+/=_]{{{LONG_WORD},}}"
_NUMBERS = r"(?<![\w.])\.?\d[\da-fA-FxXoOjJ_.,:+\-\s\0\[\](){}]*"
_STRINGS = r'"""[\s\S]*?(?:"""|\Z)', r"'''[\s\S]*?(?:'''|\Z)", r'"[^"\n]*"?', r"'[^'\n]*'?"
_COMMENT = r"#[^\n\0]*"
_IN_CODE = re.compile("|".join((*_STRINGS, _COMMENT, _WORD, _NUMBERS)))
_IN_COMMENT = re.compile(f"{_WORD}|{_NUMBERS}")
_LONG_LINE = re.compile(rf"^[^\n]{{{LONG_LINE},}}", re.MULTILINE)


def flags(notebook: NotebookNode) -> tuple[str, ...]:
    """Return a line for each code cell that embeds more than LIMIT characters of data; cells are counted from 1.

    There is one more where the other cells do so together: a large array can be cut into small ones. Data are strings,
    bytes and numbers in the source, long words outside of them (base64 in a comment), the text below a magic such as
    `%%writefile`, and lines that are too long to be typed. Prose in comments and Markdown is none.
    """
    sizes = {place: data_in(cell.source) for place, cell in enumerate(notebook.cells, 1) if cell.cell_type == "code"}
    found = [(f"cell {place} embeds", size) for place, size in sizes.items() if size > LIMIT]
    rest = sum(size for size in sizes.values() if size <= LIMIT)
    if rest > LIMIT:
        found.append(("many cells together embed", rest))
    return tuple(
        f"{who} {size / 1000:,.0f} KB of data: was something trained or computed elsewhere?" for who, size in found
    )


def data_in(source: str) -> int:
    """Return how many characters of a code cell's source are data."""
    first, _, body = source.lstrip().partition("\n")
    if first.startswith("%%") and first.split()[0] not in PYTHON_MAGICS:
        return len(body)
    long_lines = sum(len(line.group()) for line in _LONG_LINE.finditer(source))
    return max(long_lines, sum(map(_size, _IN_CODE.finditer(_without_escapes(source)))))


def _size(token: re.Match[str]) -> int:
    text = token.group()
    return len("".join(_IN_COMMENT.findall(text))) if text.startswith("#") else len(text)


def _without_escapes(source: str) -> str:
    """The source with two other characters for each escape that could hide the end of a string or of a line."""
    for escape, harmless in (("\r\n", "\n"), ("\\\\", "__"), ('\\"', "__"), ("\\'", "__"), ("\\\n", _CONTINUED)):
        source = source.replace(escape, harmless)
    return source
