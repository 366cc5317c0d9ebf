"""The tokenizer of the shipped corpus: English, and also cut where a reference joins two fields
without a blank.

`32(1):41–62` is a volume and the pages, `2005;12(3):41-62` a date as well. render.py and every
configuration of this corpus use this one, so that each field begins and ends with a token. Name it
as `[nlp.tokenizer] @tokenizers = "references_tokenizer.v1"` and pass `--code scripts/tokenizer.py`.
"""

from collections.abc import Callable

import spacy
from spacy.lang.tokenizer_exceptions import emoticons
from spacy.language import Language
from spacy.tokenizer import Tokenizer

FIELD_INFIXES = [
    r"[()]",
    r"(?<=[0-9)])[:;,](?=[0-9(])",
    r"(?<=[0-9])[–—](?=[0-9])",
]


@spacy.registry.tokenizers("references_tokenizer.v1")
def create_references_tokenizer() -> Callable[[Language], Tokenizer]:
    """The rules of the language with FIELD_INFIXES added and without the emoticons: in `32(8):1`
    there is none.

    RETURNS (Callable[[Language], Tokenizer]): what spaCy calls with the nlp object to get its
        tokenizer.
    """

    def make_tokenizer(nlp: Language) -> Tokenizer:
        rules = nlp.Defaults
        return Tokenizer(
            nlp.vocab,
            rules={
                orth: tokens
                for orth, tokens in rules.tokenizer_exceptions.items()
                if orth not in emoticons
            },
            prefix_search=spacy.util.compile_prefix_regex(rules.prefixes).search,
            suffix_search=spacy.util.compile_suffix_regex(rules.suffixes).search,
            infix_finditer=spacy.util.compile_infix_regex(
                [*rules.infixes, *FIELD_INFIXES]
            ).finditer,
            token_match=rules.token_match,
            url_match=rules.url_match,
        )

    return make_tokenizer
