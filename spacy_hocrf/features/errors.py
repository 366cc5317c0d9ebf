"""Messages of errors in lists of features, by code: what was found, what was expected, which setting to
change. Other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = ["FeatureErrors"]


class FeatureErrors(metaclass=Coded):
    H228 = (
        "'{found}' is a number, which has no pieces: attrs of a spacy-hocrf.Pieces.v1 are attributes "
        "with a string, such as MORPH or _.name. See [components.*.model.features.*]."
    )
    H229 = (
        "separator = '' in a spacy-hocrf.Pieces.v1 cuts nothing, expected what stands between two "
        "pieces. See [components.*.model.features.*]."
    )
    H235 = (
        "'{found}' is a number, which no template of CRF++ or Wapiti can put in: columns of a "
        "spacy-hocrf.Item.v1 are attributes with a string, such as ORTH or _.c1. See "
        "[components.*.model.features.*]."
    )
    H236 = (
        "The template {template!r} reads column {column}, but columns has {found} attributes. Add the "
        "attribute of that column in [components.*.model.features.*]."
    )
    H238 = (
        "toolkit = '{found}' in a spacy-hocrf.Item.v1 is none that is known: {known}. See "
        "[components.*.model.features.*]."
    )
    H239 = (
        "The template {found!r} has a dollar sign, which spaCy doubles whenever it saves a config. Write "
        "{instead!r} in [components.*.model.features.*]."
    )
    H240 = (
        "Two blocks of [components.*.model.features.*] have the feature template '{name}', but with "
        "different settings: {first} and {second}. Leave it out of one of them: in "
        "spacy-hocrf.Window.v1 by a setting such as lengths = false, flags = [] or vectors = false."
    )
    H244 = (
        "The setting 'wide' of spacy-hocrf.Window.v1 is {found}, expected true, false or \"auto\". See "
        "[components.*.model.features]."
    )
    H267 = (
        "{name} = {found!r} in [{section}] would be another setting once spaCy has saved the config, which "
        "{reason}. {instead}."
    )
    H268 = "{name} = {found} in [{section}] is no JSON. Write two backslashes for one."
    H288 = "Line {line} of the templates has {found!r}, expected {expected}."
    H326 = (
        "order = null and terms = {terms} in a spacy-hocrf.Transition.v1: label patterns of all orders "
        "are alone, without terms. Name the order of those with terms. See "
        "[components.*.model.features.*]."
    )
    H461 = (
        "{found} is no Doc. A component takes what nlp.make_doc(text) makes, or nlp(text) where components "
        "before it have something to say."
    )
    H575 = (
        "A block of features is {found}, expected a list of templates: what is registered for "
        "[components.*.model.features.*.NAME] returns one, of objects with the members of "
        "spacy_hocrf.api.Template."
    )
