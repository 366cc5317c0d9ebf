"""Messages of errors in links between items, by code: what was found, what was expected, which setting to
change. Other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = ["LinkErrors"]


class LinkErrors(metaclass=Coded):
    H295 = (
        "{setting} of [components.{name}] is '{found}', expected {expected}. Name one with @misc, "
        "or leave the setting out for its default."
    )
    H296 = (
        "The term '{term}' of the template '{template}' cannot be read: {reason}. See "
        "[components.*.features]."
    )
    H297 = (
        "The template '{template}' names the value '{found}', which is not there. Known: {known}. "
        "See [components.*.features.values]."
    )
    H298 = "{name} is {found}, but must be {expected}. See {block}."
    H299 = (
        "doc._.{attribute} of the text that begins '{text}' is {found}, expected a list of pairs "
        "[item, target] of whole numbers{reason}. Correct the annotation, or see items in the config."
    )
    H300 = (
        "'{found}' is not an attribute of an item{hint}. Choose LABEL, LENGTH, a token attribute such "
        "as LOWER, with [0] or [-1] for the first or last token alone, or '_.name' for an extension "
        "attribute. See attr in [components.*.features.values]."
    )
    H301 = (
        "The links were learnt with other settings than the config has now: {difference}. Change "
        "[components.{name}] back, or train again."
    )
    H302 = (
        "The array '{name}' of the saved links does not fit the others. The model's files have been "
        "altered; load another copy."
    )
    H303 = (
        "None of the {found} training texts has both annotation in doc._.{attribute} and items "
        "({items}). Let a reader such as spacy-hocrf.LinksCorpus.v1 hand them over, or an "
        "annotating component find them, and see items in [components.{name}]."
    )
    H304 = (
        "The value '{name}' gave {found} for {expected} items or pairs, expected that many whole "
        "numbers (int64). Correct the class that [components.*.features.values.{name}] names."
    )
    H305 = (
        "'{attribute}' of an item is {found}, expected {expected}, for the value {value}. Correct "
        "the attribute in the text that begins '{text}', or attr in [components.*.features.values]."
    )
    H307 = (
        "These are not the bytes of links between items: '{found}', expected '{expected}'. Load "
        "them into a component of the factory that wrote them."
    )
