"""A component whose predictions keep constraints, and that can be corrected."""

from __future__ import annotations

import warnings
from operator import is_
from typing import TYPE_CHECKING, Any

from spacy_hocrf.pipeline.answers import AnsweringPipe
from spacy_hocrf.warnings import Warnings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from spacy.tokens import Doc, Span

    from spacy_hocrf.pipeline.gold import Gold
    from spacy_hocrf.pipeline.predictor import Predictor
    from spacy_hocrf.pipeline.rule_prices import RulePrices
    from spacy_hocrf.pipeline.targets import Target
    from spacy_hocrf.rules.compiled import CompiledRules
    from spacy_hocrf.rules.constraints import Constraints

__all__ = ["ConstrainingPipe"]


class ConstrainingPipe(AnsweringPipe):
    """A component that keeps the constraints of its settings, and those of single Docs.

    constraints (Optional[Constraints]): of all texts; None for none but those that single Docs have.
    """

    constraints: Constraints | None
    target: Target
    _prices: RulePrices
    _rules: CompiledRules | None = None  # what the constraints mean for the model as it was last
    _last: tuple[tuple[Any, ...], Predictor] | None = None  # and what it was made of

    @property
    def gold(self) -> Gold:
        """Reads what is known of training texts."""
        return self._learner.gold

    def constrain(self, doc: Doc, span: Span | tuple[int, int, str], kind: str = "span") -> None:
        """Put a constraint into the Doc's span group, which predictions and readings then keep.

        span (Union[Span, Tuple[int, int, str]]): tokens and label.
        kind (str): "span": exactly this span is there; "not": it is not; "outside": no span has one of
            these tokens; "inside": one span of the label has all of them, and maybe more; "only":
            spans that have one of them have its label, or that of another such constraint.
        RAISES (ValueError): H217 for another kind.
        """
        from spacy_hocrf.pipeline.annotation import TextConstraint
        from spacy_hocrf.pipeline.spans import named
        from spacy_hocrf.pipeline.text_constraints import add

        row = span if isinstance(span, tuple) else named([span])[0]
        add(doc, self._constraints().spans_key, TextConstraint(*row, kind))

    def correct(self, doc: Doc, span: Span | tuple[int, int, str], kind: str | None = None) -> Doc:
        """Take a person's word for a span, and decide on everything else anew, in the time of one
        prediction. The Doc keeps the correction as a constraint, and may get others.

        span (Union[Span, Tuple[int, int, str]]): what is right; without a label, no span is there.
        kind (Optional[str]): as in `constrain`; by default "span", or "outside" without a label.
        RETURNS (Doc): the same, with the new spans.
        RAISES (ValueError): H216 if the model can have no such span, or not beside other constraints;
            H217 for another kind, or an unknown label. The Doc is as it was then.
        """
        from spacy_hocrf.pipeline.spans import named

        row = span if isinstance(span, tuple) else named([span])[0]
        kind = kind or ("span" if row[2] else "outside")
        trial = doc.copy()
        self.constrain(trial, row, kind)
        self.target.forget(trial)
        prediction = self.predict([trial])
        self.constrain(doc, row, kind)
        self.target.forget(doc)
        self.set_annotations([doc], prediction)
        return doc

    @property
    def rule_prices(self) -> dict[str, float]:
        """What it costs to break each rule about all spans, nats, by the rules' names: "inf" for those that
        must be kept. Those of the price "learnt" can be set; they are saved with the model.

        RAISES (ValueError): H042 before there are labels; when set, H214 for another rule, or a price that is
            none.
        """
        return {rule.name: rule.price for rule in self._compiled_rules().rules}

    @rule_prices.setter
    def rule_prices(self, prices: Mapping[str, float]) -> None:
        from spacy_hocrf.rules.compiled import checked_prices

        self._prices.learnt = {
            **self._prices.learnt,
            **checked_prices(self._compiled_rules(), prices),
        }

    def _compiled_rules(self) -> CompiledRules:
        """What the constraints mean for the model. RAISES (ValueError): H042 before there are labels."""
        self._predictor()
        assert self._rules is not None
        return self._rules

    def _constraints(self) -> Constraints:
        from spacy_hocrf.rules.constraints import Constraints

        return self.constraints or Constraints()

    def _predictor(self) -> Predictor:
        raise NotImplementedError

    def _constrained(self, *parts: Any) -> Predictor:
        """What predicts with a model and keeps the constraints.

        parts (Any): of a `Predictor`.
        """
        last, made_of = self._last, (*parts, self.constraints, self._prices.learnt)
        if last is None or not all(map(is_, made_of, last[0])):
            last = made_of, self._make_predictor(*parts)
            self._last = last
        return last[1]

    def _make_predictor(self, *parts: Any) -> Predictor:
        from spacy_hocrf.pipeline.constrained import ConstrainedPredictor
        from spacy_hocrf.pipeline.predictor import Predictor
        from spacy_hocrf.rules.compiled import CompiledRules

        if not self._learner.seen and not self.model.get_param("W").any():
            warnings.warn(Warnings.W035.format(name=self.name), stacklevel=2)
        predictor, rules, wanted = Predictor(*parts), self._rules, self._constraints()
        same = rules is not None and rules.of is predictor.automaton and rules.constraints == wanted
        if rules is None or not same or rules.learnt is not self._prices.learnt:
            known = predictor.scheme, predictor.automaton, predictor.carried
            self._rules = rules = CompiledRules(wanted, *known, self._prices.learnt)
        structure, _, _, *others = parts
        return ConstrainedPredictor(structure, rules.scheme, rules.automaton, *others, rules=rules)
