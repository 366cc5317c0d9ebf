"""What can go wrong with rules about all spans of a Doc, each with a code to search for: what was found,
what was expected, which setting to change. The other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = ["RuleErrors"]


class RuleErrors(metaclass=Coded):
    H310 = (
        "Every segmentation of a text of {tokens} tokens breaks a rule whose weight is 'inf', or there are "
        "too many of these rules. Write a finite weight in [components.*.joint.features], or change what is "
        "annotated or set before."
    )
    H311 = (
        "The joint template '{template}' has for the rule '{rule}' the table {found}, but expected is a row "
        "for each state with the next state for each of {n_labels} labels. See joint/span_rules.py."
    )
