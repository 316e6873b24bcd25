"""The characters of any text that a test draws."""

from __future__ import annotations

from hypothesis import strategies as st

CHARACTERS = st.characters(exclude_categories=("Cs",))
"""All but surrogates, which is what `st.text()` draws from, too; but that first encodes a million of them: 10 s."""
