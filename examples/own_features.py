"""Three ways to tell the model what you know: a list of words, an extension attribute, and a template
of your own.
"""

from dataclasses import dataclass

import numpy as np
import spacy
from spacy.tokens import Token
from spacy.training import Example
from thinc.api import Config

from spacy_hocrf.api import TOKEN, Events, Template, TokenBatch

DOSES = [
    ("take 20 mg of aspirin daily", [(5, 10, "DOSE"), (14, 21, "DRUG")]),
    ("ibuprofen 400 mg twice a day", [(0, 9, "DRUG"), (10, 16, "DOSE")]),
    ("stop aspirin and start 5 ml codeine", [(5, 12, "DRUG"), (23, 27, "DOSE"), (28, 35, "DRUG")]),
    ("no change of dose today", []),
]
CONFIG = """
[model]
@architectures = "spacy-hocrf.HighOrderCRF.v1"

[model.features]
@misc = "spacy-hocrf.Features.v1"

[model.features.*.words]
@misc = "spacy-hocrf.Window.v1"

[model.features.*.drugs]
@misc = "spacy-hocrf.Spans.v1"
source = "spans.ruler"

[model.features.*.unit]
@misc = "spacy-hocrf.Token.v1"
attrs = ["_.is_unit"]
window = [0, 1]

[model.features.*.vowels]
@misc = "example.Vowels.v1"
"""


@dataclass(frozen=True)
class VowelTemplate:
    """How many vowels a token has. Any object with these members can be a template."""

    name: str = "VOWELS"
    part: int = TOKEN
    order: int = 0
    width: int = 1

    def events(self, batch: TokenBatch) -> Events:
        """One event for each token: where, and which value."""
        counts = [
            sum(letter in "aeiou" for letter in token.lower_) for doc in batch.docs for token in doc
        ]
        return Events(np.arange(len(batch)), np.array(counts, dtype=np.uint64).reshape(-1, 1))


@spacy.registry.misc("example.Vowels.v1")
def make_vowels() -> list[Template]:
    """The config names this, and `--code` names the file."""
    return [VowelTemplate()]


def main() -> None:
    Token.set_extension(
        "is_unit", getter=lambda token: token.lower_ in {"mg", "ml", "g"}, force=True
    )
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("span_ruler")
    patterns = [
        {"label": "DRUG", "pattern": name}
        for name in ("aspirin", "ibuprofen", "codeine", "paracetamol")
    ]
    ruler.add_patterns(patterns)
    nlp.add_pipe("hocrf", config=Config().from_str(CONFIG))
    examples = [
        Example.from_dict(nlp.make_doc(text), {"entities": entities}) for text, entities in DOSES
    ]
    examples = [Example(ruler(example.predicted), example.reference) for example in examples]
    optimizer = nlp.initialize(lambda: examples)
    ruler.add_patterns(patterns)  # initialize has emptied the ruler
    for _ in range(60):
        nlp.update(examples, sgd=optimizer)
    for ent in nlp("start 10 mg paracetamol").ents:
        print(f"{ent._.hocrf_score:.3f} {ent.label_:5} {ent.text}")


if __name__ == "__main__":
    main()
