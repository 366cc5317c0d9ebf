"""Messages of errors in an encoder and in settings of a model, by code: what was found, what was expected,
which setting to change. Other codes are in `spacy_hocrf.errors`.
"""

from spacy_hocrf.errors import Coded

__all__ = ["EncoderErrors", "ModelErrors"]


class EncoderErrors(metaclass=Coded):
    H176 = (
        "The encoder gave an array of {found} numbers for the text that begins '{text}', expected "
        "{expected}: one row for each token. See [components.*.model.tok2vec]."
    )
    H177 = (
        "The encoder gave numbers that are not finite for the text that begins '{text}'. Train it with "
        "a lower learn_rate in [training.optimizer], or see [components.*.model.tok2vec]."
    )
    H178 = (
        "The encoder of '{name}' was saved with other layers than it has now ({reason}). See "
        "[components.{name}.model.tok2vec]."
    )
    H179 = (
        "The trainer of '{name}' needs an encoder that does not change, but the one that it listens to "
        "{found}. List that component both in frozen_components and in annotating_components of "
        "[training], or take spacy-hocrf.SGD.v1 in [components.{name}.trainer]."
    )


class ModelErrors(metaclass=Coded):
    H241 = (
        "order = {found} in [components.*.model], but must be 'auto', or how many earlier segments' "
        "labels features may see: a whole number from 0 to {most:,}, or null for all of them."
    )
    H320 = (
        "order = null and min_pattern_count = {counts} in [components.*.model] make more than {most:,} "
        "{what}, of up to {longest} each. Raise min_pattern_count there, for long patterns "
        "alone by a list; or name an order."
    )
    H321 = (
        "patterns = {found} in [components.*.model], but must be 'counts', or a list of patterns, each "
        "a list of the names of two or more labels, oldest first."
    )
    H322 = (
        "patterns in [components.*.model] has {pattern}, which is of order {needed}, but order = {found}. "
        "Set that to as much, or to null, or leave the pattern out."
    )
    H324 = (
        "patterns in [components.*.model] names the label '{label}', which there is not. Labels are "
        "{known}."
    )
    H325 = (
        "patterns in [components.*.model] has {pattern}, but '{label}' never follows '{before}' in this "
        "model. Leave it out, or see encoding, outside and repeats there."
    )
    H462 = (
        "{name} = {found!r} in [components.*.model], but segments have one token each where encoding = "
        "'{encoding}'. Leave it out, or set encoding = 'segments'."
    )
    H570 = (
        "features in [components.*.model] has {found}, which is not a template. A list of blocks has a name "
        'for each of them: @misc = "spacy-hocrf.Features.v1" in [components.*.model.features], and the block '
        "itself in [components.*.model.features.*.NAME]."
    )
