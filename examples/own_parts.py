"""A trainer, a template, a dense score and a decoder of your own, named in the config like those of the
package. For `spacy train`, put them into a file and name it with `--code`.
"""

from dataclasses import dataclass

import numpy as np
import spacy
from spacy.tokens import Doc
from spacy.training import Example
from spacy.util import registry
from thinc.api import Config

from spacy_hocrf.api import TOKEN, BaseTrainer, Events, LBFGSTrainer, LinearScore, Template, Viterbi

RECIPES = """
beat 2/AMOUNT eggs/FOOD with 50/AMOUNT g/AMOUNT sugar/FOOD
add 200/AMOUNT g/AMOUNT flour/FOOD and some butter/FOOD
fry 3/AMOUNT onions/FOOD in 2/AMOUNT spoons/AMOUNT olive/FOOD oil/FOOD
wait until the oven is hot
""".strip().splitlines()
CONFIG = """
[model]
@architectures = "spacy-hocrf.HighOrderCRF.v1"

[model.features]
@misc = "spacy-hocrf.Features.v1"

[model.features.*.window]
@misc = "spacy-hocrf.Window.v1"

[model.features.*.after_number]
@misc = "example.AfterNumber.v1"

[model.scores]

[model.scores.letters]
@misc = "example.Letters.v1"

[trainer]
@misc = "example.Descent.v1"
steps = 60
rate = 0.2

[decoder]
@misc = "example.Cautious.v1"
"""


@dataclass(frozen=True)
class AfterNumber:
    """Template: does the token follow a number?"""

    name: str = "AFTER_NUMBER"
    part: int = TOKEN
    order: int = 0
    width: int = 1

    def events(self, batch):
        number = batch.column("LIKE_NUM") != 0
        after = np.zeros(len(batch), dtype=bool)
        after[1:] = number[:-1] & (batch.sequence[1:] == batch.sequence[:-1])
        return Events(np.arange(len(batch)), after.astype(np.uint64)[:, None])


@registry.misc("example.AfterNumber.v1")
def make_after_number() -> list[Template]:
    return [AfterNumber()]


@registry.misc("example.Letters.v1")
@dataclass(frozen=True)
class Letters(LinearScore):
    """Dense score: how often each letter occurs in a token; an encoder's vectors would work as well."""

    part: str = "token"
    width: int = 26

    def inputs(self, batch):
        alphabet = map(chr, range(ord("a"), ord("z") + 1))
        words = [token.lower_ for doc in batch.docs for token in doc]
        return np.array([[word.count(letter) for word in words] for letter in alphabet]).T / 5


@registry.misc("example.Descent.v1")
@dataclass(frozen=True)
class Descent(BaseTrainer):
    """Trainer: plain steps down the gradient of the penalised likelihood."""

    steps: int = 100
    rate: float = 0.1

    def begin(self, model):
        return DescentRun(self, LBFGSTrainer(sigma=3.0).objective(model), model.weights)


class DescentRun:
    """Training on one corpus."""

    def __init__(self, trainer, objective, weights):
        self._trainer, self._objective = trainer, objective
        self.evaluations = 0
        self._evaluate(weights)

    @property
    def running(self):
        return self.evaluations <= self._trainer.steps

    @property
    def status(self):
        return f"{self.evaluations} evaluations"

    def step(self):
        self._evaluate(self.weights - self._trainer.rate * self._gradient)

    def _evaluate(self, weights):
        self.loss, gradient = self._objective(weights)
        self.weights, self._gradient = weights, gradient.copy()
        self.evaluations += 1


@registry.misc("example.Cautious.v1")
@dataclass(frozen=True)
class Cautious(Viterbi):
    """Decoder: the best segmentation, with its probabilities raised to a power."""

    power: float = 1.5

    def scores(self, potentials, automaton, scheme, spans):
        return super().scores(potentials, automaton, scheme, spans) ** self.power


def read(nlp: spacy.Language, line: str) -> Example:
    """Neighbouring words with the same label are one entity."""
    words, _, labels = zip(*(word.partition("/") for word in line.split()))
    tags = [
        f"{'I' if before == label else 'B'}-{label}" if label else "O"
        for before, label in zip(["", *labels], labels)
    ]
    return Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, ents=tags))


def main() -> None:
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("hocrf", config=Config().from_str(CONFIG))
    examples = [read(nlp, line) for line in RECIPES]
    optimizer = nlp.initialize(lambda: examples)
    while pipe.run.running:
        losses = nlp.update(examples, sgd=optimizer)
    print(f"objective: {losses['hocrf']:.3f} after {pipe.run.status}")
    for ent in nlp("mix 3 spoons sour cream and 4 eggs").ents:
        print(f"{ent._.hocrf_score:.3f} {ent.label_:6} {ent.text}")


if __name__ == "__main__":
    main()
