"""Makes the models of this folder: `python tests/saving/models/make.py tests/saving/models/0.1.0`.

They stay as they are: `tests/saving/test_old_models.py` loads them with whatever the package has become.
A new format gets a folder of its own beside theirs.
"""

import sys
from pathlib import Path
from typing import Any

import spacy
import srsly
from spacy.training import Example

MODELS: dict[str, dict[str, Any]] = {
    "default": {"factory": "hocrf"},
    "rich": {
        "factory": "hocrf_spans",
        "threshold": 0.1,
        "model": {
            "order": 2,
            "outside": "run",
            "features": {
                "@misc": "spacy-hocrf.Features.v1",
                "*": {
                    "window": {"@misc": "spacy-hocrf.Window.v1", "attrs": ["NORM", "SHAPE"]},
                    "flags": {"@misc": "spacy-hocrf.Flags.v1"},
                    "letters": {"@misc": "spacy-hocrf.CharNgrams.v1", "inside": [3]},
                    "segment": {"@misc": "spacy-hocrf.Segment.v1", "what": ["LENGTH", "TEXT"]},
                    "labels": {"@misc": "spacy-hocrf.Transition.v1", "order": 2},
                },
            },
        },
        "trainer": {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": 2.0},
        "decoder": {"@misc": "spacy-hocrf.Viterbi.v1"},
        "constraints": {
            "@misc": "spacy-hocrf.Constraints.v1",
            "rules": {"cities": {"@misc": "spacy-hocrf.AtMost.v1", "price": 2.0}},
        },
    },
}
TEXTS = [
    ("Ada Lovelace lives in London", [(0, 12, "PERSON"), (22, 28, "CITY")]),
    ("Paris bores Max", [(0, 5, "CITY"), (12, 15, "PERSON")]),
    ("Max flew to New York on 3 May", [(0, 3, "PERSON"), (12, 20, "CITY"), (24, 29, "DATE")]),
    ("On 14 July Ada left", [(3, 10, "DATE"), (11, 14, "PERSON")]),
]
NEW = ["Ada lives in Paris", "Max came to Rome on 5 July", ""]


def main(folder: Path) -> None:
    """Train, save, and write down what is found in other texts."""
    folder.mkdir(parents=True)
    found = {}
    for name, settings in MODELS.items():
        settings = dict(settings)
        nlp = spacy.blank("en")
        factory = settings.pop("factory")
        nlp.add_pipe(factory, config=settings)
        examples = []
        for text, entities in TEXTS:
            example = Example.from_dict(nlp.make_doc(text), {"entities": entities})
            example.reference.spans["sc"] = list(example.reference.ents)
            examples.append(example)
        optimizer = nlp.initialize(lambda examples=examples: examples)
        for _ in range(50):
            nlp.update(examples, sgd=optimizer)
        nlp.to_disk(folder / name, exclude=["tokenizer"])
        found[name] = [spans_of(nlp(text), factory) for text in NEW]
    srsly.write_json(folder / "found.json", {"texts": NEW, "spans": found})


def spans_of(doc: Any, factory: str) -> list[tuple[int, int, str, float]]:
    """What a component has found: tokens, label, probability."""
    spans = doc.ents if factory == "hocrf" else doc.spans["sc"]
    return [(span.start, span.end, span.label_, span._.hocrf_score) for span in spans]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
