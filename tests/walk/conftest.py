import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "grader"))  # the class of 30 and what a platform makes of it
