"""Messages of errors in sequences of items and in the modules with the interfaces of CRF toolkits, by code:
what was found, what was expected. Other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = ["SequenceErrors"]


class SequenceErrors(metaclass=Coded):
    H270 = (
        "An item is {found}, expected a dict of attributes, or a list of strings. A sequence is a list "
        "of items."
    )
    H271 = (
        "The attribute '{name}' has the value {found}, expected a finite number, a string, or a dict or "
        "list of those."
    )
    H272 = "The numbers of items and labels differ: |x| = {items}, |y| = {labels}."
    H273 = "The label {found} is none that the model knows: {known}."
    H274 = "'{path}' cannot be read as a model: {reason}."
    H275 = "The tagger is not opened. Call open with the name of a model file first."
    H276 = "The position {found} is out of range: the sequence has {expected} items."
    H277 = "'{name}' is not a parameter of the algorithm '{algorithm}', which has {known}."
    H278 = "{name} = {found!r}, but must be {expected}."
    H280 = "The training algorithm '{found}' is unknown. Known: {known}."
    H282 = "spacy_hocrf.sklearn needs scikit-learn, which is not installed: pip install spacy-hocrf[sklearn]"
    H283 = (
        "A model file of CRFsuite has attributes of single labels, and pairs of labels. This model has more: "
        "write it with to_bytes."
    )
    H284 = "The label {found} cannot be used: it must be a string."
    H285 = (
        "Training has met a value that is not finite: {status}. Look for values of attributes that are "
        "very large."
    )
    H286 = "There are {x} sequences in X and {y} in y, expected as many."
    H287 = "There is nothing to learn from: no sequence has an item with a label."
    H289 = (
        "{what} has {found} columns, but a template reads column {column}; the first is column 0."
    )
    H420 = (
        "A score of an item is not finite: values of its attributes are too large for the weights that they "
        "are multiplied by."
    )
    H421 = (
        "sklearn-crfsuite has '{name}', HighOrderCRF has not. sklearn_crfsuite.CRF runs on this package with "
        "all that it has, after sys.modules['pycrfsuite'] = spacy_hocrf.pycrfsuite."
    )
