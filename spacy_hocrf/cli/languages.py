"""The tokenizer of a language that somebody names."""

import spacy
from spacy.language import Language

from spacy_hocrf.cli.errors import CommandErrors

__all__ = ["blank_of"]


def blank_of(lang: str) -> Language:
    """A pipeline without components.

    RAISES (ValueError): H159 for a language that spaCy does not have, H363 for one whose tokenizer needs a
        package that is not installed.
    """
    try:
        return spacy.blank(lang)
    except (ImportError, AttributeError) as error:  # of a module that is no language: no __all__
        if isinstance(error, AttributeError) or str(error).startswith("[E048]"):
            raise ValueError(CommandErrors.H159.format(found=lang)) from error
        raise ValueError(CommandErrors.H363.format(found=lang, reason=error)) from error
