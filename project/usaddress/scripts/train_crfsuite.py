"""Train CRFsuite on the same texts, predict, and measure both: with the observations that a config has, or
with those that everybody writes down.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import pycrfsuite
import spacy
import typer
from observations import strings_of, word_templates
from spacy.cli._util import import_code
from spacy.tokens import Doc, Span
from spacy.util import load_config, registry

sys.path.append(str(Path(__file__).parents[2]))
sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from common.columns import Spans, chunks_of, runs
from common.measured import Measured, bare, size_of, speed_of, write
from common.training import read_docs
from peers import CRFsuite, features

Observe = Callable[[Doc], list[list[str]]]
STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Values of c2 to choose from: sigmas from 7.1 to 0.7."""
ITERATIONS = 200
"""Of L-BFGS, at most."""


def main(
    train: Annotated[Path, typer.Argument(help="Training texts (.spacy)", exists=True)],
    test: Annotated[Path, typer.Argument(help="Texts to predict (.spacy)", exists=True)],
    output: Annotated[Path, typer.Argument(help="Folder for predictions, measures and the model")],
    config: Annotated[
        Path | None, typer.Option(help="Observations of this config; without one, generic ones")
    ] = None,
    encoding: Annotated[str, typer.Option(help="bio, or io: the labels themselves")] = "bio",
    c1: Annotated[float, typer.Option(help="Coefficient of L1")] = 0.0,
    c2: Annotated[
        float, typer.Option(help="Coefficient of L2; 0 for the best in cross-validation")
    ] = 0.0,
    code: Annotated[Path | None, typer.Option(help="Python file that the config needs")] = None,
    name: Annotated[str, typer.Option(help="Of the observations and settings")] = "owner's",
) -> None:
    """Write predictions and measures."""
    import_code(code)
    vocab = spacy.blank("en").vocab
    examples, docs = read_docs(train, vocab), read_docs(test, vocab)
    observe = generic if config is None else of_config(config)
    begun = time.process_time()
    observed = [pycrfsuite.ItemSequence(observe(doc)) for doc in bare(examples)]
    tags = [encode(doc, encoding) for doc in examples]
    path = output / "model.crfsuite"
    c2 = c2 or choose(observed, tags)
    tagger = fit(observed, tags, c1, c2, path)
    seconds = time.process_time() - begun
    predicted = bare(docs)
    for doc in predicted:
        spans = decode(tagger.tag(observe(doc)), encoding)
        doc.set_ents([Span(doc, *span) for span in spans])
    measured = Measured(
        system="CRFsuite",
        observations="generic" if config is None else name,
        order=1,
        features=len(tagger.info().state_features) + len(tagger.info().transitions),
        size=size_of(path),
        seconds=seconds,
        speed=speed_of(lambda some: [tagger.tag(observe(doc)) for doc in some], docs),
        settings=f"c1 {c1:g}, c2 {c2:g}, {encoding}",
    )
    write(output, measured, predicted)


def generic(doc: Doc) -> list[list[str]]:
    """Words, affixes, shapes, flags, neighbours."""
    return features([token.text for token in doc])


def of_config(path: Path) -> Observe:
    """What the component of a config observes of single words."""
    block = load_config(path)["components"]["hocrf"]["model"]["features"]
    templates = word_templates(registry.resolve({"features": block})["features"])
    return lambda doc: strings_of(doc, templates)


def choose(observed: Sequence[pycrfsuite.ItemSequence], tags: Sequence[list[str]]) -> float:
    """The c2 with the best F1 in cross-validation."""
    system = CRFsuite(STRENGTHS, iterations=ITERATIONS)
    return max(system.strengths, key=lambda c2: system.cross_validate(observed, tags, c2))


def fit(
    observed: Sequence[pycrfsuite.ItemSequence],
    tags: Sequence[list[str]],
    c1: float,
    c2: float,
    path: Path,
) -> pycrfsuite.Tagger:
    """L-BFGS until it stops, or to the last of the iterations."""
    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.set_params({"c1": c1, "c2": c2, "max_iterations": ITERATIONS})
    for its_strings, its_tags in zip(observed, tags, strict=True):
        trainer.append(its_strings, its_tags)
    path.parent.mkdir(parents=True, exist_ok=True)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


def encode(doc: Doc, encoding: str) -> list[str]:
    """The tag of each token."""
    if encoding == "io":
        return [token.ent_type_ or "O" for token in doc]
    return [f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O" for token in doc]


def decode(tags: Sequence[str], encoding: str) -> Spans:
    """The spans that tags stand for."""
    if encoding == "io":
        return [span for span in runs(tags) if span[2] != "O"]
    return chunks_of(tags)


if __name__ == "__main__":
    typer.run(main)
