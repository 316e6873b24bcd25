"""docs/nn.md: its code runs, and every public name is in it."""

import re
from pathlib import Path

from unrolled import nn

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "nn.md").read_text(encoding="utf-8")
CODE = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_code_of_the_page_runs():
    exec(compile("\n".join(CODE), "docs/nn.md", "exec"), {"__name__": "page"})


def test_every_public_name_has_an_example():
    used = set(re.findall(r"\bnn\.(\w+)", "\n".join(CODE)))
    assert set(nn.__all__) <= used
