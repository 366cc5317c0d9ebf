"""Messages of errors in annotation and in questions about a text, by code: what was found, what was expected.
Other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = [
    "AnnotationErrors",
    "ComponentErrors",
    "CorpusErrors",
    "ReadingErrors",
    "TeacherErrors",
    "TemperatureErrors",
]


class AnnotationErrors(metaclass=Coded):
    H242 = (
        "'{found}' in doc.spans['{key}'] of the text that begins '{text}' has no label, expected one that "
        "is not empty. Correct the annotation, or take the span out."
    )
    H538 = (
        "doc.spans['{key}'].attrs['unknown'] of the text that begins '{text}' has {found}, expected a list "
        "of parts [first token, one past the last] of its {expected} tokens, such as [[0, 3]]."
    )
    H569 = (
        "A span was expected, but this is a {kind}: {found}. Give a Span of spaCy's, or a tuple (first "
        "token, one past the last, label) such as (0, 2, 'title'); several one after the other."
    )


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
        "{found}. Set a threshold from 0 to 1, and scores = true, without "
        "[components.{name}.joint]."
    )
    H210 = (
        "A reading was asked for n = {found} readings, but n must be a whole number of at least 1."
    )
    H211 = "n_best = {found} in [components.{name}], but must be a number of readings, 0 for none."
    H212 = (
        "{found} in [components.{name}] writes to doc.spans under the name of scores_key, but "
        "scores_key = null. Set a scores_key, or leave it out."
    )
    H224 = (
        "explain was asked about {found}, but the model cannot predict this span among the {expected} "
        "tokens of '{text}'. A span has a first token, one past the last, and one of the labels "
        "{known}; it is no longer than max_length, and does not contradict what is set on the Doc."
    )
    H225 = (
        "No reading of '{text}' is without {span}: what is set on the Doc is taken for certain. Give a Doc "
        "that has no predictions yet, such as nlp.make_doc(text)."
    )
    H226 = "explain was asked to compare with a reading of '{text}' that has {found}, but there is none."
    H227 = (
        "explain was asked to compare {span} with a reading that has this span, too. Give another span, or "
        "other spans, as instead."
    )
    H505 = (
        "The model does not know how far down the list the right reading is. Find out on annotated texts "
        "that it has not seen: python -m spacy hocrf calibrate MODEL TEXTS --accept 0.95"
    )
    H506 = (
        "Sets of readings that have the right one in {level} of new texts need at least {needed} texts that "
        "the model has not seen, but calibrate --accept had {found}. Annotate more, or ask for less."
    )
    H507 = (
        "No set has the right reading in {level} of new texts: the model cannot predict it in too many of "
        "the {n} texts that calibrate --accept had. Ask for {most} at most, or see max_length, the labels "
        "and the constraints of [components.*]."
    )
    H508 = (
        "A set of readings was asked for level = {found}, but must be a number above 0 and below 1."
    )


class TemperatureErrors(metaclass=Coded):
    H220 = (
        "The model can read none of the {found} annotated texts as they are annotated: a temperature is "
        "learnt from texts that the model has not seen, with its labels."
    )


class CorpusErrors(metaclass=Coded):
    H257 = (
        "'{path}' cannot be read as a file of Docs ({reason}). A .spacy file is written by `spacy convert`, "
        "`python -m spacy hocrf convert` or DocBin.to_disk: write it again, or name another file."
    )


class ComponentErrors(metaclass=Coded):
    H460 = (
        "'{found}' of the component '{name}' cannot be set, and would change nothing. What can be: {known}, "
        "and a trainer, by set_trainer. Everything else is a setting of [components.{name}], for the config "
        "file or nlp.add_pipe."
    )


class TeacherErrors(metaclass=Coded):
    H535 = (
        "doc.spans['{key}'] of '{text}' has {found}: expected a label for each span and, if the group has "
        'attrs["scores"], a probability from 0 to 1 for each. See teachers in [components.*].'
    )
    H536 = (
        "Teachers are certain (score 1) of spans that overlap, {spans}, in '{text}'. Give them scores below "
        "1, leave one out, or take the group out of teachers in [components.*]."
    )
    H537 = (
        "teachers = {found} in [components.{name}], but must be a list of names of groups in "
        "doc.spans, each once, and not the group that the component predicts."
    )
