"""The characters of any text that a test draws."""

from hypothesis import strategies as st

CHARACTERS = st.characters(exclude_categories=("Cs",))
"""All but surrogates, which is what `st.text()` draws from, too; but that first encodes a million of them: 10 s."""

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(CHARACTERS, max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(CHARACTERS, max_size=8), inner, max_size=3),
    max_leaves=20,
)
"""Whatever JSON can say, in few words."""
