"""What can go wrong with questions about a text, and about all of its spans, each with a code to search
for: what was found, what was expected. The other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = ["ReadingErrors"]


class ReadingErrors(metaclass=Coded):
    H197 = (
        "A reading was asked about {found}, expected a stretch of the {expected} tokens of '{text}' that "
        "no other span overlaps: first token, one past the last."
    )
    H198 = "A reading was asked about the label '{found}', expected one of {known}."
    H199 = (
        "A reading of '{text}' was asked about segments with the label {found}, expected labels of "
        "segments: {known}."
    )
    H200 = "at_least = {found}, but must be a probability above 0 and at most 1."
    H201 = (
        "The white space beside the spans of '{text}' can be part of them in more than {most} ways. Ask "
        "about fewer spans at once."
    )
    H202 = "select = {found} in [components.{name}], but must be 'decoded' or 'all'."
    H203 = (
        "select = 'all' in [components.{name}] writes all spans that are as probable as threshold, but "
        "{found}. Set a threshold above 0 and at most 1, and scores = true, without "
        "[components.{name}.joint]."
    )
