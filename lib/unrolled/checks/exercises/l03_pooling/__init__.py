"""Find a line that is slow because it is wrong, and put values back where they came from."""
