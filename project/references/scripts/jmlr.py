"""Train the six models of Nguyen et al. (JMLR 15, 2014, Table 8) on Cora to convergence, and print what they come to.

C1-C3 are CRFs (segments of one token), SC1-SC3 semi-CRFs, of order 1 to 3, with the paper's own templates. The columns of the
reference implementation are from running it to its optimum, at a gradient norm of about 2e-5 (its own figures stop earlier).
"""

import sys
import time
from pathlib import Path
from typing import Annotated

import jmlr_templates  # noqa: F401 - registers references.JMLR.v1
import numpy as np
import spacy
import typer
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example
from wasabi import MarkdownRenderer

from spacy_hocrf.model.architectures import weights_of

MODELS = {"C1": (1, False), "C2": (2, False), "C3": (3, False), "SC1": (1, True), "SC2": (2, True), "SC3": (3, True)}
ARCHITECTURES = {
    False: {"@architectures": "spacy-hocrf.HighOrderCRF.v1", "encoding": "io"},
    True: {"@architectures": "spacy-hocrf.HighOrderSemiCRF.v1", "repeats": False},
}
# n·f at the optimum, micro F1 there, and the F1 that the paper prints after its early stop
REFERENCE = {
    "C1": (388.34164297, 85.78, 85.34),
    "C2": (328.89276096, 85.69, 85.47),
    "C3": (298.56133744, 84.51, 84.77),
    "SC1": (384.24561979, 85.94, 85.67),
    "SC2": (371.72609324, 86.32, 86.67),
    "SC3": (362.67253404, 86.34, 86.07),
}


def main(
    train: Annotated[Path, typer.Argument(help="Training references (.spacy)", exists=True)],
    test: Annotated[Path, typer.Argument(help="Test references (.spacy)", exists=True)],
    output: Annotated[Path | None, typer.Option(help="Write the table here too")] = None,
    sigma: Annotated[float, typer.Option(help="Standard deviation of the prior")] = 1.0,
    only: Annotated[str, typer.Option(help="Models, separated by commas")] = ",".join(MODELS),
) -> None:
    """Print features, patterns, objective and F1 of all six models beside the paper's."""
    header = ("model", "features", "patterns", "states", "n·f", "its optimum", "F1", "its F1", "paper", "evaluations", "CPU s")
    rows = []
    for name in only.split(","):
        order, semi = MODELS[name]
        nlp = make_pipeline(order, semi, sigma)
        begun = time.process_time()
        objective, evaluations = fit(nlp, read_examples(nlp, train))
        spent = time.process_time() - begun
        score = 100 * nlp.evaluate(read_examples(nlp, test))["ents_f"]
        pipe = nlp.get_pipe("hocrf")
        optimum, optimal_f, paper = REFERENCE[name]
        sizes = (len(pipe.network.index), len(pipe.network.patterns), len(pipe.automaton.states))
        numbers = (f"{objective:.6f}", f"{optimum:.6f}", f"{score:.2f}", f"{optimal_f:.2f}", f"{paper:.2f}")
        rows.append((name, *map(str, sizes), *numbers, str(evaluations), f"{spent:.1f}"))
        print(" | ".join(rows[-1]), flush=True)
    markdown = MarkdownRenderer()
    markdown.add(markdown.table(rows, header, aligns=("l", *"r" * (len(header) - 1))))
    print("\n" + markdown.text)
    if sys.platform == "linux":
        import resource

        print(f"\npeak memory of the whole process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    if output:
        output.write_text(markdown.text + "\n", encoding="utf8")


def make_pipeline(order: int, semi: bool, sigma: float = 1.0, features: str = "references.JMLR.v1", threads: int = 0) -> Language:
    """A pipeline with one of the paper's models; training stops only where the objective cannot be lowered further."""
    model = {**ARCHITECTURES[semi], "order": order}
    model["features"] = {"@misc": features, "order": order, "semi": semi}
    trainer = {"@misc": "spacy-hocrf.LBFGS.v1", "sigma": sigma, "threads": threads}
    trainer |= {"gradient_tolerance": 1e-7, "improvement_tolerance": 1e-12}
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config={"model": model, "trainer": trainer})
    return nlp


def read_examples(nlp: Language, path: Path) -> list[Example]:
    """Examples that keep the corpus's own tokens."""
    gold = list(DocBin().from_disk(path).get_docs(nlp.vocab))
    return [Example(spacy.tokens.Doc(nlp.vocab, words=[token.text for token in doc]), doc) for doc in gold]


def fit(nlp: Language, examples: list[Example]) -> tuple[float, int]:
    """Train until the optimiser stops. RETURNS (tuple[float, int]): objective n·f and evaluations."""
    optimizer = nlp.initialize(lambda: examples)
    pipe = nlp.get_pipe("hocrf")
    nlp.update(examples[:1], sgd=optimizer)
    while pipe.run.running:
        nlp.update(examples[:1], sgd=optimizer)
    return pipe.run.loss, pipe.run.evaluations


def canonical_weights(pipe: object, strings: spacy.strings.StringStore) -> np.ndarray:
    """Weight 0.01·((rank mod 7) - 3) by the rank of a feature's name among the sorted names of the released code."""
    names = [feature_name(pipe, feature, strings) for feature in range(len(weights_of(pipe.model)))]
    weights = np.zeros(len(names))
    for rank, feature in enumerate(np.argsort(np.array(names, dtype=object), kind="stable")):
        weights[feature] = 0.01 * (rank % 7 - 3)
    return weights


PREFIXES = {
    "ORTH[0]": "WB",
    "ORTH[-1]": "PWB",
    "ORTH[1]": "NWB",
    "inner:ORTH[0]": "EWB",
    "inner:ORTH[-1]": "EPWB",
    "start:ORTH[0]@1": "EW",
    "start:ORTH[-1]@1": "EPW",
    "LABELS@1": "E",
    "LABELS.1@1": "1E",
    "LABELS@2": "2E",
    "LABELS@3": "3E",
}


def feature_name(pipe: object, feature: int, strings: spacy.strings.StringStore) -> str:
    """The released code's name of a feature: OBSERVATION.value, a tab, and its labels."""
    observation, labels = pipe.network.index.describe(feature, strings, pipe.network.scheme.names)
    template, _, value = observation.partition("=")
    value = value.replace("<edge>", "")
    if template == "LNGB":
        value += "#"
    return f"{PREFIXES.get(template, template)}.{value}\t{labels}"


if __name__ == "__main__":
    typer.run(main)
