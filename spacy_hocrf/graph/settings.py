"""How a graph is decoded: the settings of dual decomposition, checked once."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from spacy_hocrf.errors import Errors
from spacy_hocrf.types import is_number, is_whole

__all__ = ["HYBRID", "KINDS", "NAIVE", "STEPS", "TWO_SLAVE", "DualSettings"]

HYBRID, TWO_SLAVE, NAIVE = KINDS = ("hybrid", "two_slave", "naive")
"""Kinds of dual decomposition; `decomposition` says what they are."""
STEPS = ("harmonic", "geometric")
"""Rules for the length of a step; `multipliers.Steps` says what they are."""
MOST = sys.float_info.max
"""Numbers above it are not finite where they are used."""


@dataclass(frozen=True, kw_only=True)
class DualSettings:
    """Settings of `dual_decompose`.

    kind (str): which subproblems there are: "hybrid"; "two_slave", the method of Qian and Liu
        (TACL 2 (2014) §3); or "naive", which they compare it with.
    max_iterations (int): at least 1; a certificate ends the iterations earlier.
    step (Optional[str]): "harmonic" or "geometric". None: as the paper has it for
        "two_slave", geometric (§4.1.4: the steps of Rush et al., EMNLP 2010), harmonic otherwise.
    tolerance (float): nats; a smaller gap is a certificate.
    local_search (Optional[bool]): are better assignments looked for near the best one, too? None:
        as the paper has it for "two_slave", no; yes otherwise.
    RAISES (ValueError): H087 for an unknown word, H088 for a number out of range.
    """

    kind: str = HYBRID
    max_iterations: int = 500
    step: str | None = None
    tolerance: float = 1e-6
    local_search: bool | None = None

    kinds: ClassVar[Sequence[str]] = KINDS
    """What `kind` may be; a subclass may know more."""

    def __post_init__(self) -> None:
        self._check_word("kind", self.kind, self.kinds)
        self._check_word("step", self.step, (None, *STEPS))
        self._check_count("max_iterations")
        gap = self.tolerance
        if not is_number(gap) or not 0 <= gap <= MOST:
            found = {"found": gap, "expected": "finite and not negative"}
            raise ValueError(Errors.H088.format(name="tolerance", **found))

    @property
    def step_rule(self) -> str:
        """`step`, or what the kind has in its place."""
        return self.step or ("geometric" if self.kind == TWO_SLAVE else "harmonic")

    @property
    def searches(self) -> bool:
        """`local_search`, or what the kind has in its place."""
        return self.kind != TWO_SLAVE if self.local_search is None else self.local_search

    def _check_word(self, name: str, found: str | None, known: Sequence[str | None]) -> None:
        """H087 for a word that is not known; None is written as null, as in a config."""
        if found not in known:
            words = ", ".join("null" if word is None else word for word in known)
            raise ValueError(Errors.H087.format(name=name, found=found, known=words))

    def _check_count(self, name: str) -> None:
        """H088 for what is no whole number, or below 1."""
        found = getattr(self, name)
        if not is_whole(found) or found < 1:
            expected = "a whole number, at least 1"
            raise ValueError(Errors.H088.format(name=name, found=found, expected=expected))
