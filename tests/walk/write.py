"""Make the outputs in a page's walk anew: `python tests/walk/write.py [docs/authoring.md]`, by default teaching.md's.

Takes a minute or two.
"""

import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "grader")]

import course  # noqa: E402
import page  # noqa: E402


def main() -> None:
    file = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else course.TEACHING
    text = file.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        for shown, printed in course.FORKS[file](Path(folder)).run(text):
            print(printed)
            if page.same(shown) != page.same(printed):
                text = text.replace(shown, printed, 1)
    file.write_text(text, encoding="utf-8")


main()
