"""`python -m spacy hocrf inspect TEXTS --grammar`: propose a grammar that nearly all annotated texts follow,
as blocks of a config.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from spacy_hocrf.cli.compare import read_gold
from spacy_hocrf.cli.counts import EntsScorer, SpansScorer, is_complete
from spacy_hocrf.cli.errors import CommandErrors
from spacy_hocrf.features.dollars import without_dollars
from spacy_hocrf.rules.proposals import ProposedGrammar, propose_grammar

__all__ = ["grammar_lines", "read_grammar"]

MIN_BITS = 1.0
"""Bits: a grammar with less information is followed by more than half of random label sequences."""
BLOCK = """\
[components.{name}.constraints]
@misc = "spacy-hocrf.Constraints.v1"

[components.{name}.constraints.rules]

[components.{name}.constraints.rules.record]
@misc = "spacy-hocrf.Grammar.v1"
expression = {expression}
price = "learnt"
"""


def read_grammar(path: str | Path, share: float, spans_key: str | None = None) -> ProposedGrammar:
    """Find a grammar for annotated texts. Partially annotated texts are ignored.

    path (Union[str, Path]): a file (.spacy), or a folder of such files.
    share (float): smallest share of the texts that follow the grammar.
    spans_key (Optional[str]): key of the annotation in doc.spans; None for doc.ents.
    RAISES (ValueError): H257 or H381 for a file without Docs, H073 without annotation, H153 if no completely
        annotated text has a span.
    """
    scorer = EntsScorer() if spans_key is None else SpansScorer(spans_key)
    complete = [
        sorted(scorer.items(doc), key=lambda item: item[1:])
        for doc in read_gold(path, scorer)
        if is_complete(scorer, doc)
    ]
    if not any(complete):
        texts = f"{len(complete)} completely annotated"
        raise ValueError(CommandErrors.H153.format(found=texts, place=scorer.place))
    return propose_grammar([tuple(label for label, *_ in items) for items in complete], share)


def grammar_lines(grammar: ProposedGrammar, name: str, most: int) -> Iterator[str]:
    """Yield the lines to print for a proposed grammar.

    name (str): component's name in the config. most (int): number of violating label sequences to show.
    """
    if not grammar.expression:
        yield (
            "There is no grammar to propose: the labels come in any order and number, so that one which "
            "enough texts keep would say nothing. A lower --share may find one."
        )
        return
    yield BLOCK.format(
        name=name, expression=json.dumps(without_dollars(grammar.expression), ensure_ascii=False)
    )
    yield (
        f"{grammar.kept:.1%} of the texts keep it. Of texts whose labels are drawn at random, as frequent as "
        f"they are here, {2**-grammar.bits:.1%} would."
    )
    if grammar.bits < MIN_BITS:
        yield "So it says little: it allows nearly everything. Hardly any text will be read otherwise."
    if grammar.broken:
        yield f"Labels of texts that break it ({min(most, len(grammar.broken))} of {len(grammar.broken)}):"
        yield from (
            f"{n:6,}  {' '.join(labels) or '(no span)'}" for labels, n in grammar.broken[:most]
        )
