"""The grammar of a record: `spacy-hocrf.Grammar.v1`, a regular expression over the labels of a text's spans.

An expression becomes a position automaton (Glushkov, Russian Mathematical Surveys 16, 1961): position j may
follow i if it does so in some sentence; `first` are the positions that can begin a sentence, `last` those
that can end one. The reachable subsets of positions are the states of a deterministic automaton; states that
no continuation distinguishes are merged (Moore, Automata Studies, 1956), so the automaton is minimal. The
rule is exact wherever rules are.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.engine.rules import MAX_STATES, Rule
from spacy_hocrf.features.dollars import with_dollars
from spacy_hocrf.rules.errors import ConstraintErrors
from spacy_hocrf.rules.templates import Priced, place_of, refuse_rule

__all__ = ["Grammar"]

ANYWHERE, NOWHERE = "anywhere", "nowhere"
TOKEN = re.compile(r'\s*(?:"([^"]+)"|([()|?*+])|([^\s()|?*+"]+))')
N_QUOTED = 20
"""Number of characters quoted at a syntax error."""

Places = frozenset[int]


class _Token(NamedTuple):
    """An operator or a label of an expression."""

    text: str
    at: int  # character offset
    is_label: bool


class _Positions(NamedTuple):
    """Positions of a subexpression."""

    empty: bool  # does it match the empty sequence?
    first: Places
    last: Places


@dataclass(frozen=True, kw_only=True)
class Grammar(Priced):
    """`spacy-hocrf.Grammar.v1`: the sequence of labels of a text's spans matches a regular expression.

    expression (str): labels in sequence, as in "author+ title (journal volume? | booktitle) date?": "|" means
        or, "?" at most once, "+" once or more, "*" any number of times; parentheses group. A label with other
        characters is written in double quotes.
    others (str): "anywhere": labels that the expression does not name are allowed at any position; "nowhere".
    price (Union[float, str]): penalty for a text that does not match, nats; "inf" to forbid it, "learnt".
    RAISES (ValueError): H214 for bad settings, H312 for an expression that cannot be read; H215 for a label
        that the model does not have.
    """

    expression: str
    others: str = ANYWHERE

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.others not in (ANYWHERE, NOWHERE):
            refuse_rule("others", repr(self.others), f'"{ANYWHERE}" or "{NOWHERE}"')
        if not isinstance(self.expression, str):
            refuse_rule("expression", repr(self.expression), "a regular expression over labels")
        object.__setattr__(self, "expression", with_dollars(self.expression))
        _Parser(self.expression)

    @property
    def name(self) -> str:
        """The kind of rule and the expression."""
        return f"Grammar[{self.expression}]"

    def rules(self, labels: Sequence[str]) -> list[Rule]:
        """Return one rule about all spans."""
        parser = _Parser(self.expression)
        for label in parser.positions:
            place_of(label, labels)
        after, kept = _smallest(*self._subsets(parser, labels))
        return [Rule(after, kept, name="whole text")]

    def _subsets(
        self, parser: "_Parser", labels: Sequence[str]
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return transition table and accepting states of the subsets of positions; position -1 is the start,
        before the first span.

        RAISES (ValueError): H312 if there are too many.
        """
        stays = self.others == ANYWHERE
        numbers, rows = {frozenset({-1}): 0}, list[list[int]]()
        for subset in (states := [frozenset({-1})]):
            row = []
            for label in labels:
                reached = subset
                if label in parser.labels or not stays:
                    reached = frozenset(
                        j
                        for i in subset
                        for j in (parser.root.first if i < 0 else parser.follow[i])
                        if parser.positions[j] == label
                    )
                if reached not in numbers:
                    numbers[reached] = len(states)
                    states.append(reached)
                row.append(numbers[reached])
            rows.append(row)
            if len(states) > MAX_STATES:
                what = f"it needs more than {MAX_STATES:,} states"
                raise ValueError(
                    ConstraintErrors.H312.format(expression=self.expression, what=what)
                )
        ends = {*parser.root.last, *([-1] if parser.root.empty else [])}
        kept = [bool(subset & ends) for subset in states]
        return np.array(rows, dtype=np.int32), np.array(kept, dtype=bool)


class _Parser:
    """Recursive-descent parser of an expression.

    positions (List[str]): the label of each position. follow (List[Set[int]]): positions that may follow
        each.
    root (_Positions): the whole expression.
    RAISES (ValueError): H312 for one that cannot be parsed.
    """

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = [*self._split()]
        self._next = 0
        self.positions, self.follow = list[str](), list[set[int]]()
        self.root = self._choice()
        if (token := self._token) is not None:
            self._refuse(f"'{token.text}' is not expected", token.at)
        self.labels = frozenset(self.positions)

    def _split(self) -> Iterator[_Token]:
        at, end = 0, len(self._expression.rstrip())
        while at < end:
            match = TOKEN.match(self._expression, at)
            if match is None:
                self._refuse("a double quote is not closed, or has nothing in it", at)
            quoted, sign, label = match.groups()
            begin = match.end() - len(match.group().lstrip())
            yield _Token(quoted or sign or label, begin, sign is None)
            at = match.end()

    @property
    def _token(self) -> _Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _takes(self, signs: str) -> str:
        """Consume the next token if it is one of these operators, and return it; else return ""."""
        token = self._token
        if token is None or token.is_label or token.text not in signs:
            return ""
        self._next += 1
        return token.text

    def _choice(self) -> _Positions:
        """Parse alternatives, separated by "|"."""
        part = self._sequence()
        while self._takes("|"):
            other = self._sequence()
            part = _Positions(
                part.empty or other.empty, part.first | other.first, part.last | other.last
            )
        return part

    def _sequence(self) -> _Positions:
        """Parse a sequence of subexpressions."""
        part = self._repeated()
        while (token := self._token) is not None and (token.is_label or token.text == "("):
            part = self._joined(part, self._repeated())
        return part

    def _repeated(self) -> _Positions:
        """Parse a label or a group with its repetition operators."""
        part = self._single()
        while sign := self._takes("?*+"):
            if sign != "?":
                self._link(part.last, part.first)
            part = part._replace(empty=part.empty or sign != "+")
        return part

    def _single(self) -> _Positions:
        """Parse a label or a group."""
        if (token := self._token) is None:
            self._refuse("a label or a group is missing at the end", len(self._expression))
        if self._takes("("):
            part = self._choice()
            if not self._takes(")"):
                self._refuse("this parenthesis is not closed", token.at)
            return part
        if not token.is_label:
            self._refuse(f"'{token.text}' has no label or group before it", token.at)
        self._next += 1
        self.positions.append(token.text)
        self.follow.append(set())
        own = frozenset({len(self.positions) - 1})
        return _Positions(False, own, own)

    def _joined(self, one: _Positions, other: _Positions) -> _Positions:
        self._link(one.last, other.first)
        return _Positions(
            one.empty and other.empty,
            one.first | other.first if one.empty else one.first,
            one.last | other.last if other.empty else other.last,
        )

    def _link(self, last: Places, first: Places) -> None:
        for i in last:
            self.follow[i] |= first

    def _refuse(self, what: str, at: int) -> NoReturn:
        """RAISES (ValueError): H312, always."""
        here = self._expression[at : at + N_QUOTED]
        place = f"{what}: character {at + 1}, " + (f"before '{here}'" if here else "the end")
        raise ValueError(ConstraintErrors.H312.format(expression=self._expression, what=place))


def _smallest(
    after: NDArray[np.int32], kept: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Minimise an automaton by merging equivalent states; state 0 remains the first."""
    kinds, number = kept.astype(np.int64), 0
    while True:
        rows = np.column_stack([kinds, kinds[after]])
        _, first, kinds = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        kinds = kinds.reshape(-1)
        if len(first) == number:
            break
        number = len(first)
    order = np.argsort(first, kind="stable")  # by the first state of each kind, so 0 stays 0
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    chosen = first[order]
    return place[kinds[after[chosen]]].astype(np.int32), kept[chosen]
