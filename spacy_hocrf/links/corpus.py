"""A corpus reader that copies items and attributes to the predicted Docs, as if they had been set
before.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc, SpanGroup
from spacy.training import Example

from spacy_hocrf.annotation.readers import checked_path, read_examples

__all__ = ["LinksCorpus"]


class LinksCorpus:
    """`spacy-hocrf.LinksCorpus.v1`: a corpus of .spacy files, written with `store_user_data`.

    path (Path): a .spacy file or a folder of them.
    spans_keys (Sequence[str]): span groups to copy.
    attributes (Sequence[str]): extension attributes of Docs, spans and tokens to copy, `hocrf_group` for
        instance; not the one with the links.
    gold_preproc (bool): keep the tokens of the file, instead of tokenizing the text again; spans
        that do not fit the tokens are dropped. Unlike spaCy's reader, never cuts a Doc into sentences.
    limit (int): read only this many Docs; 0 for all.
    RAISES (ValueError): H112 without a path, H110 for a negative limit.
    """

    def __init__(
        self,
        path: Path | None,
        spans_keys: Sequence[str] = (),
        attributes: Sequence[str] = (),
        gold_preproc: bool = False,
        limit: int = 0,
    ) -> None:
        self._path, self._limit = checked_path(path, limit)
        self._spans_keys = spans_keys
        self._attributes = frozenset(attributes)
        self._gold_preproc = gold_preproc

    def __call__(self, nlp: Language) -> Iterator[Example]:
        """The Examples, in the order of the files.

        nlp (Language): provides the tokenizer and vocab.
        YIELDS (Example): with the groups and the attributes on both sides.
        """
        for example in read_examples(nlp, self._path, self._limit, self._gold_preproc):
            for key in self._spans_keys:
                _hand_over_spans(example.reference, example.predicted, key)
            _hand_over_attributes(example.reference, example.predicted, self._attributes)
            yield example


def _hand_over_spans(reference: Doc, predicted: Doc, key: str) -> None:
    """Copy the spans of a group that begin and end at token boundaries."""
    if key not in reference.spans:
        return
    spans = [
        predicted.char_span(span.start_char, span.end_char, label=span.label)
        for span in reference.spans[key]
    ]
    kept = [span for span in spans if span is not None]
    predicted.spans[key] = SpanGroup(predicted, name=key, spans=kept)


def _hand_over_attributes(reference: Doc, predicted: Doc, names: frozenset[str]) -> None:
    """Copy values of extension attributes, whose keys have characters: ("._.", name, first, end)."""
    for key, value in reference.user_data.items():
        if isinstance(key, tuple) and len(key) == 4 and key[0] == "._." and key[1] in names:
            predicted.user_data[key] = value
