"""One mention is clear, another is not: identical phrases of a document should get the same label."""

import spacy
from spacy.training import Example

SENTENCES = [
    ("Dr Weber joined in May", [(3, 8, "PERSON")]),
    ("Dr Tanaka resigned", [(3, 9, "PERSON")]),
    ("We met Dr Silva in Rome", [(10, 15, "PERSON")]),
    ("shares of Corvex fell", [(10, 16, "FIRM")]),
    ("shares of Lumen rose in May", [(10, 15, "FIRM")]),
    ("Corvex announced losses", [(0, 6, "FIRM")]),
    ("Orbital announced a plan", [(0, 7, "FIRM")]),
    ("Weber announced a plan", [(0, 5, "PERSON")]),
    ("Lumen announced a merger", [(0, 5, "FIRM")]),
    ("nobody announced a merger", []),
]
TEXT = "Okafor announced losses. In May we met Dr Okafor in Rome, and shares of Zentrix fell."


def main() -> None:
    nlp = spacy.blank("en")
    phrases = {"@misc": "spacy-hocrf.IdenticalPhrases.v1", "weight": 2.0}
    joint = {"@misc": "spacy-hocrf.Joint.v1", "features": {"phrases": phrases}, "learn": False}
    pipe = nlp.add_pipe("hocrf", config={"joint": joint})
    examples = [
        Example.from_dict(nlp.make_doc(text), {"entities": entities})
        for text, entities in SENTENCES
    ]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(50):
        nlp.update(examples, sgd=optimizer)
    for weights in ([0.0, 0.0], [2.0, 2.0]):
        pipe.joint.weights = weights
        print(
            {
                name: float(weight)
                for name, weight in zip(pipe.joint.feature_names, pipe.joint.weights)
            }
        )
        doc = nlp(TEXT)
        for ent in doc.ents:
            print(f"    {ent.label_:6} {ent.text:8} P = {ent._.hocrf_score:.2f}")
        print(f"    gap {doc._.hocrf_gap:.6f}, proved to be the best: {doc._.hocrf_certificate}")


if __name__ == "__main__":
    main()
