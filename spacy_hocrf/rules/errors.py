"""Errors of rules about all spans of a text, each with a code to search for: what was found, what was
expected. The other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = ["ConstraintErrors"]


class ConstraintErrors(metaclass=Coded):
    H214 = "{name} = {found} in [components.*.constraints], expected {expected}."
    H215 = (
        "[components.*.constraints] names the label '{found}', but the model knows {known}. (O is a token "
        "in no span.)"
    )
    H216 = (
        "No reading of '{text}' keeps all constraints{which}. See doc.spans['{key}'] and "
        "[components.*.constraints]."
    )
    H217 = (
        "The constraint on tokens {start} to {end} of '{text}' {found}, expected {expected}. See "
        "doc.spans['{key}']."
    )
    H219 = (
        "A text breaks so many rules at once that more than {most} states would have to be remembered. Leave "
        "out rules in [components.*.constraints]."
    )
    H221 = (
        "Training would have to remember more than {most} states for the rules that must be kept. Leave out "
        "rules in [components.*.constraints], or set training = 'successions'."
    )
    H222 = (
        "The annotation of {text} breaks [components.*.constraints], so that it has no finite loss. Correct "
        "it, or set training = 'none' there."
    )
    H223 = (
        "The annotation of all {found} training documents breaks [components.*.constraints], that of "
        "'{text}' first. Correct the constraints, or set training = 'none' there."
    )
    H243 = (
        "The training text that begins '{text}' cannot be read both as it is annotated and as its "
        "constraints say: {which}. Correct doc.spans['{key}'], or the annotation."
    )
    H311 = (
        "The rule template '{template}' has for the rule '{rule}' the table {found}, but expected is a row "
        "for each of up to 65,535 states with the next state for each of {n_labels} labels, and a bool for "
        "each state. See [components.*.constraints.rules]."
    )
    H312 = (
        "The grammar '{expression}' cannot be read: {what}. Write labels one after the other, with | for or, "
        "? + * for how often, and parentheses. See [components.*.constraints.rules]."
    )
    H582 = (
        "No text with a span of the new label '{label}' can keep {what} in [components.*.constraints], so "
        "the label would never be found. Allow it there, in a grammar by its name or others = 'anywhere'."
    )
    H591 = (
        "The method `rules` of the rule template '{template}' returns {found}, expected a list of Rules, "
        "each with a name of its own. Mend it, or take the template out of "
        "[components.*.constraints.rules]; see spacy_hocrf.api.RuleTemplate."
    )
