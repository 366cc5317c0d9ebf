"""What a user would take instead: CRFsuite with features that everybody writes down, its prior
tuned, and spaCy's `ner`. CRFsuite is in the extra `benchmark`.
"""

import os
import random
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pycrfsuite
import spacy
from readers import Text
from spacy.cli.init_config import init_config
from spacy.tokens import DocBin
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from spacy.vocab import Vocab
from systems import Predict, make_doc, predictor

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Spans, chunks_of
from common.scores import ratios

AFFIXES = (1, 2, 3, 4)
WINDOW = (-2, -1, 0, 1, 2)


@dataclass(frozen=True)
class CRFsuite:
    """A CRF of order 1 over B-, I- and O; c2 by cross-validation on the training texts."""

    strengths: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0)  # of the prior, c2
    folds: int = 3
    iterations: int = 200

    @property
    def settings(self) -> dict[str, Any]:
        """With the version of python-crfsuite."""
        return {**vars(self), "version": version("python-crfsuite")}

    def train(self, texts: Sequence[Text]) -> tuple[Predict, dict[str, Any]]:
        """Add the chosen `c2`."""
        tagger, best = self.tagger(texts)

        def predict(unseen: Sequence[list[str]]) -> list[Spans]:
            return [chunks_of(tagger.tag(features(words))) for words in unseen]

        return predict, {"c2": best}

    def tagger(self, texts: Sequence[Text]) -> tuple[pycrfsuite.Tagger, float]:
        """The tagger, and the chosen `c2`."""
        observed = [pycrfsuite.ItemSequence(features(text.words)) for text in texts]
        tags = [to_bio(text) for text in texts]
        best = max(self.strengths, key=lambda c2: self.cross_validate(observed, tags, c2))
        return self.fit(observed, tags, best), best

    def cross_validate(
        self, observed: Sequence[pycrfsuite.ItemSequence], tags: Sequence[list[str]], c2: float
    ) -> float:
        """F1 of the spans of all folds together, from 0 to 1. Folds are random."""
        order = random.Random(0).sample(range(len(tags)), len(tags))
        right = found = wanted = 0
        for fold in range(self.folds):
            held_out = order[fold :: self.folds]
            rest = sorted(set(order) - set(held_out))
            tagger = self.fit([observed[i] for i in rest], [tags[i] for i in rest], c2)
            for i in held_out:
                predicted, gold = chunks_of(tagger.tag(observed[i])), chunks_of(tags[i])
                right += len(set(predicted) & set(gold))
                found += len(predicted)
                wanted += len(gold)
        return ratios(right, found, wanted)["f"]

    def fit(
        self, observed: Sequence[pycrfsuite.ItemSequence], tags: Sequence[list[str]], c2: float
    ) -> pycrfsuite.Tagger:
        """L-BFGS until it stops, or to the last of the iterations."""
        trainer = pycrfsuite.Trainer(verbose=False)
        trainer.set_params({"c1": 0.0, "c2": c2, "max_iterations": self.iterations})
        for its_features, its_tags in zip(observed, tags):
            trainer.append(its_features, its_tags)
        tagger = pycrfsuite.Tagger()
        with tempfile.TemporaryDirectory() as folder:
            trainer.train(f"{folder}/model")
            tagger.open(f"{folder}/model")  # reads all of it
        return tagger


def features(words: Sequence[str]) -> list[list[str]]:
    """Strings for each word: as it is written, its affixes and flags; lower case and shape in the
    window, and pairs of neighbours there.
    """
    lower = [word.lower() for word in words]
    shapes = [shape(word) for word in words]
    rows = []
    for i, word in enumerate(words):
        observed = ["bias", f"word={word}", *flags(word)]
        observed += [f"prefix={lower[i][:n]}" for n in AFFIXES if n <= len(word)]
        observed += [f"suffix={lower[i][-n:]}" for n in AFFIXES if n <= len(word)]
        for offset in WINDOW:
            at = i + offset
            if not 0 <= at < len(words):
                observed.append(f"outside[{offset}]")
                continue
            observed += [f"lower[{offset}]={lower[at]}", f"shape[{offset}]={shapes[at]}"]
            if offset < WINDOW[-1] and at + 1 < len(words):
                observed.append(f"pair[{offset}]={lower[at]} {lower[at + 1]}")
        rows.append(observed)
    return rows


def flags(word: str) -> list[str]:
    """What its digits and its case are like."""
    known = {
        "digits": word.isdigit(),
        "has digit": any(letter.isdigit() for letter in word),
        "upper": word.isupper(),
        "title": word.istitle(),
        "lower": word.islower(),
        "no letter": not any(letter.isalpha() for letter in word),
        "hyphen": "-" in word,
    }
    return [name for name, holds in known.items() if holds]


def shape(word: str) -> str:
    """X for capitals, x for other letters, d for digits; at most four of a kind in a row."""
    kinds: list[str] = []
    for letter in word:
        kind = "d" if letter.isdigit() else letter
        if letter.isalpha():
            kind = "X" if letter.isupper() else "x"
        if kinds[-4:] != [kind] * 4:
            kinds.append(kind)
    return "".join(kinds)


def to_bio(text: Text) -> list[str]:
    """B-, I- or O for each token."""
    tags = ["O"] * len(text.words)
    for start, end, label in text.spans:
        tags[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
    return tags


@dataclass(frozen=True)
class EntityRecognizer:
    """spaCy's `ner` with the config of `init config --pipeline ner --optimize efficiency`. A fifth
    of the training texts decides when to stop, and which step's model is the best.
    """

    held_out: int = 5  # one text of so many
    training: dict[str, int] = field(
        default_factory=lambda: {
            "max_steps": 2000,
            "eval_frequency": 50,
            "patience": 400,
            "seed": 0,
        }
    )

    @property
    def settings(self) -> dict[str, Any]:
        """With the version of spaCy."""
        return {**vars(self), "version": spacy.__version__}

    def train(self, texts: Sequence[Text]) -> tuple[Predict, dict[str, Any]]:
        """RETURNS (Tuple[Predict, Dict[str, Any]]): there is nothing to say."""
        order = random.Random(0).sample(texts, len(texts))
        cut = len(order) // self.held_out
        with tempfile.TemporaryDirectory() as folder:
            config = self.configure(order[cut:], order[:cut], Path(folder))
            with open(os.devnull, "w") as nothing:
                nlp = init_nlp(config)
                train(nlp, Path(folder), stdout=nothing, stderr=nothing)
            best = spacy.load(Path(folder) / "model-best")
        return predictor(best), {}

    def configure(self, texts: Sequence[Text], held_out: Sequence[Text], folder: Path) -> Any:
        """The config, and the texts that it names in the folder. Their tokens are kept, since Docs
        that are made of words have unknown spaces.
        """
        config = init_config(lang="en", pipeline=["ner"], optimize="efficiency", silent=True)
        config["training"].update(self.training)
        for part, some in (("train", texts), ("dev", held_out)):
            path = folder / f"{part}.spacy"
            DocBin(docs=[make_doc(Vocab(), text) for text in some]).to_disk(path)
            config["corpora"][part]["path"] = str(path)
        config.to_disk(folder / "config.cfg")
        return load_config(folder / "config.cfg", interpolate=True)
