"""What is compared: `nlp.add_pipe("hocrf")` with its default config, candidates that change a part
of it, and the peers.
"""

import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import spacy
from readers import Text
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.initialize import load_vectors_into_model
from spacy.vocab import Vocab
from tasks import named_by

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Spans
from common.training import annotated, learn

from spacy_hocrf.api import starting_config

PEERS = ("crfsuite", "ner")
VECTORS = "vectors"
"""A candidate with the word vectors of the pipeline, a package or a folder, that HOCRF_VECTORS names."""


def features(**settings: Any) -> dict[str, Any]:
    """A change of the default features."""
    return {"model": {"features": settings}}


def blocks(**settings: dict[str, Any]) -> dict[str, Any]:
    """A list of blocks of features instead of the default ones, each by a name."""
    return features(**{"@misc": "spacy-hocrf.Features.v1", "*": settings})


CRF = "spacy-hocrf.HighOrderCRF.v1"
WINDOW = {"@misc": "spacy-hocrf.Window.v1"}
VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}
SIDES = {"NORM": 1, "SHAPE": 2}
CANDIDATES: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "config": {"trainer": starting_config("en", None)["components"]["hocrf"]["trainer"]},
    "first": {
        "model": {"order": 1, "features": {"window": 2, "bigrams": ["NORM"], "flags": []}},
        "trainer": {"sigma": 1.0},
        "decoder": VITERBI,
    },
    "viterbi": {"decoder": VITERBI},
    "order-1": {"model": {"order": 1}},
    "order-2": {"model": {"order": 2}},
    "order-3": {"model": {"order": 3}},
    "sigma-0.5": {"trainer": {"sigma": 0.5}},
    "sigma-1": {"trainer": {"sigma": 1.0}},
    "sigma-2": {"trainer": {"sigma": 2.0}},
    "sigma-3": {"trainer": {"sigma": 3.0}},
    "run": {"model": {"outside": "run"}},
    "unseen": {"model": {"unseen": True}},
    "unseen-transitions": {"model": {"unseen_transitions": True}},
    "wide": features(wide=True),
    "narrow": features(wide=False),
    "norms-around": features(window=2),
    "words-around": features(window={"NORM": 2, "SHAPE": 1}),
    "suffixes-around": features(attrs=["NORM", "SHAPE", "SUFFIX"], window={**SIDES, "SUFFIX": 1}),
    "written": features(attrs=["NORM", "SHAPE", "ORTH"], window=SIDES),
    "no-flags": features(bigrams=["NORM"], flags=[]),
    "flags-around": features(flags=[-1, 0, 1]),
    "word-bigrams": features(bigrams=["NORM", "FLAGS"]),
    "short-affixes": features(prefix=[1, 2, 3], suffix=[1, 2, 3]),
    "long-affixes": features(prefix=[1, 2, 3, 4, 5], suffix=[1, 2, 3, 4, 5]),
    "no-boundaries": features(boundaries=False, lengths=False),
    "crf-bio": {"model": {"@architectures": CRF, "encoding": "bio"}},
    "crf-bieso": {"model": {"@architectures": CRF, "encoding": "bieso"}},
    # Recipes of docs/features.md, as is order-3+unseen.
    "word-pairs": blocks(
        window=WINDOW,
        pairs={"@misc": "spacy-hocrf.Conjunction.v1", "terms": ["NORM[-1]", "NORM[0]"]},
    ),
    "borders": blocks(
        window=WINDOW,
        border={
            "@misc": "spacy-hocrf.Transition.v1",
            "order": 1,
            "terms": ["BEFORE.NORM", "FIRST.NORM"],
        },
    ),
    "whole-fields": blocks(
        window=WINDOW, whole={"@misc": "spacy-hocrf.Segment.v1", "what": ["TEXT"]}
    ),
}
"""Changes of the default config by name; "order-2+sigma-3" makes both."""

Predict = Callable[[Sequence[list[str]]], list[Spans]]
"""From the tokens of some texts to their spans."""


class System(Protocol):
    """What learns to find spans."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All but the code that decides what it learns."""
        ...

    def train(self, texts: Sequence[Text]) -> tuple[Predict, dict[str, Any]]:
        """Learn from texts.

        RETURNS (Tuple[Predict, Dict[str, Any]]): what predicts, and what the results should say
            about its training.
        """
        ...


def make_system(name: str) -> System:
    """A system by its name.

    name (str): one of PEERS, or one of CANDIDATES or VECTORS, or several of these with "+" between
        them.
    RAISES (ValueError): if there is none of that name.
    """
    if name in PEERS:
        import peers  # needs the extra `benchmark`

        return peers.CRFsuite() if name == "crfsuite" else peers.EntityRecognizer()
    config: dict[str, Any] = {}
    parts = name.split("+")
    for part in parts:
        if part not in (*CANDIDATES, VECTORS):
            known = ", ".join([*PEERS, *CANDIDATES, VECTORS])
            raise ValueError(f"There is no system {part!r}. Known: {known}")
        merge_into(config, CANDIDATES.get(part, {}))
    return Ours(config, named_by("HOCRF_VECTORS") if VECTORS in parts else None)


def merge_into(config: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Change a config, block by block."""
    for key, value in changes.items():
        if isinstance(value, Mapping):
            merge_into(config.setdefault(key, {}), value)
        else:
            config[key] = copy.deepcopy(value)


@dataclass(frozen=True)
class Ours:
    """A component `hocrf`, trained until its training stops.

    config (Dict[str, Any]): what differs from the default config.
    vectors (Optional[str]): package or folder of a pipeline whose word vectors it has.
    """

    config: dict[str, Any]
    vectors: str | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The whole config: with other defaults, `default` is another system."""
        config = replace(self, vectors=None).pipeline().get_pipe_config("hocrf")
        return {**config, VECTORS: True} if self.vectors else config

    def pipeline(self) -> Language:
        """It is not trained."""
        nlp = spacy.blank("en")
        if self.vectors:
            load_vectors_into_model(nlp, self.vectors)
        nlp.add_pipe("hocrf", config=copy.deepcopy(self.config))
        return nlp

    def train(self, texts: Sequence[Text]) -> tuple[Predict, dict[str, Any]]:
        """Add what the training says at its end, as `status`, and what the component has chosen by
        itself, if anything, as `choice`.
        """
        nlp = self.pipeline()
        run = learn(nlp, [example_of(nlp, text) for text in texts])
        facts: dict[str, Any] = {"status": run.status}
        if choice := nlp.get_pipe("hocrf").choice:
            facts["choice"] = asdict(choice)
        return predictor(nlp), facts


def predictor(nlp: Language) -> Predict:
    """The entities of a pipeline."""

    def predict(texts: Sequence[list[str]]) -> list[Spans]:
        docs = nlp.pipe([Doc(nlp.vocab, words=words) for words in texts])
        return [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in docs]

    return predict


def make_doc(vocab: Vocab, text: Text) -> Doc:
    """A text with its spans as entities."""
    return annotated(vocab, *text)


def example_of(nlp: Language, text: Text) -> Example:
    """A text without its spans, and with them."""
    return Example(Doc(nlp.vocab, words=text.words), make_doc(nlp.vocab, text))
