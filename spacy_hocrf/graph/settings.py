"""Settings of dual decomposition, checked once."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from spacy_hocrf.errors import Errors
from spacy_hocrf.types import is_number, is_whole

__all__ = ["HYBRID", "KINDS", "NAIVE", "STEPS", "TWO_SLAVE", "DualSettings"]

HYBRID, TWO_SLAVE, NAIVE = KINDS = ("hybrid", "two_slave", "naive")
"""Kinds of dual decomposition, explained in `decomposition`."""
STEPS = ("harmonic", "geometric")
"""Rules for the length of a step, explained in `multipliers.Steps`."""
MAX_TOLERANCE = sys.float_info.max
"""Larger numbers overflow where they are used."""


@dataclass(frozen=True, kw_only=True)
class DualSettings:
    """Settings of `dual_decompose`.

    kind (str): the kind of subproblems: "hybrid"; "two_slave", the method of Qian and Liu
        (TACL 2 (2014) §3); or "naive", with which they compare it.
    max_iterations (int): at least 1; a certificate ends the iterations earlier.
    step (Optional[str]): "harmonic" or "geometric". None: as in the paper for
        "two_slave", geometric (§4.1.4: the steps of Rush et al., EMNLP 2010), harmonic otherwise.
    tolerance (float): nats; a gap of at most this is a certificate.
    local_search (Optional[bool]): also search for better assignments near the best one? None:
        as in the paper for "two_slave", no; yes otherwise.
    RAISES (ValueError): H087 for an unknown word, H088 for a number out of range.
    """

    kind: str = HYBRID
    max_iterations: int = 500
    step: str | None = None
    tolerance: float = 1e-6
    local_search: bool | None = None

    kinds: ClassVar[Sequence[str]] = KINDS
    """Valid values of `kind`; a subclass may allow more."""

    def __post_init__(self) -> None:
        self._check_word("kind", self.kind, self.kinds)
        self._check_word("step", self.step, (None, *STEPS))
        self._check_count("max_iterations")
        gap = self.tolerance
        if not is_number(gap) or not 0 <= gap <= MAX_TOLERANCE:
            expected = "finite and not negative"
            raise ValueError(Errors.H088.format(name="tolerance", found=gap, expected=expected))

    @property
    def step_rule(self) -> str:
        """`step`, or the default for the kind."""
        return self.step or ("geometric" if self.kind == TWO_SLAVE else "harmonic")

    @property
    def searches(self) -> bool:
        """`local_search`, or the default for the kind."""
        return self.kind != TWO_SLAVE if self.local_search is None else self.local_search

    def _check_word(self, name: str, word: str | None, valid: Sequence[str | None]) -> None:
        """Raise H087 for an unknown word; None is shown as null, as in a config."""
        if word not in valid:
            words = ", ".join("null" if word is None else word for word in valid)
            raise ValueError(Errors.H087.format(name=name, found=word, known=words))

    def _check_count(self, name: str) -> None:
        """Raise H088 for a number that is not whole, or below 1."""
        value = getattr(self, name)
        if not is_whole(value) or value < 1:
            expected = "a whole number, at least 1"
            raise ValueError(Errors.H088.format(name=name, found=value, expected=expected))
