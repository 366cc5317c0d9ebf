"""What the scripts have in common: pipelines with a trained local model, and decoding whose bound
and time are noted.
"""

import copy
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import grouping  # noqa: F401 - registers tweets.FoldedLinkage.v1
import numpy as np
import spacy
import typer
from spacy.language import Language
from spacy.scorer import Scorer
from spacy.training import Example
from spacy.util import registry
from vote import vote

from spacy_hocrf.api import (
    Decoding,
    DualDecomposition,
    FirstSubproblem,
    GraphInstance,
    GroupedCorpus,
    Grouper,
)

sys.path.append(str(Path(__file__).parents[2]))
from common.training import annotated, learn

CORPORA = ("msm2013", "btc")
OnlyOption = Annotated[
    list[str] | None, typer.Option(help="Corpus; may be given several times. By default all")
]

KINDS: dict[str, dict[str, Any]] = {
    "CRF, bieso": {},
    "semi-CRF": {"encoding": "segments"},
}
"""Settings of [components.hocrf.model] other than the config's."""

DECODERS: dict[str, dict[str, Any]] = spacy.util.load_config(
    Path(__file__).parents[1] / "configs" / "decoders.cfg"
)
"""Settings of [components.hocrf.joint.decoder] other than the config's."""


class Outcome(NamedTuple):
    """The bound of one problem, that is of tweets that patterns connect, whether it is proved to be
    reached, the iterations of dual decomposition and the time.
    """

    bound: float
    primal: float
    certificate: bool
    iterations: int
    seconds: float  # CPU time of the decoder alone


@dataclass(frozen=True)
class Recorder(DualDecomposition):
    """A decoder that notes what it did."""

    outcomes: list[Outcome] = field(default_factory=list)

    def decode(self, instance: GraphInstance, first: FirstSubproblem) -> Decoding:
        begun = time.process_time()
        decoding = super().decode(instance, first)
        self.outcomes.append(
            Outcome(
                decoding.bound,
                decoding.primal,
                decoding.certificate,
                decoding.iterations,
                time.process_time() - begun,
            )
        )
        return decoding


SIGMAS = {"msm2013": 4.0, "btc": 1.0}
"""The best on the dev parts, see README."""


def make_pipeline(config_path: Path, kind: str, corpus: str) -> Language:
    """A pipeline with the config's component and another kind of model.

    corpus (str): whose sigma it has.
    """
    config = copy.deepcopy(spacy.util.load_config(config_path)["components"]["hocrf"])
    del config["factory"]
    config["model"].update(KINDS[kind])
    config["trainer"]["sigma"] = SIGMAS[corpus]
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=config)
    return nlp


def train(nlp: Language, examples: Sequence[Example]) -> float:
    """Train the pipeline's component until it has converged. RETURNS (float): CPU seconds."""
    begun = time.process_time()
    learn(nlp, list(examples))
    return time.process_time() - begun


def read(nlp: Language, path: Path, grouper: Grouper) -> list[Example]:
    """A corpus in groups, with its own tokens."""
    return list(GroupedCorpus(path, grouper, gold_preproc=True)(nlp))


def decode(
    nlp: Language, examples: Sequence[Example], settings: dict[str, Any]
) -> tuple[list[Example], list[Outcome], float]:
    """Predict with another decoder; the pipeline has its own again afterwards.

    settings (dict[str, Any]): of the decoder, other than the pipeline's own.
    RETURNS (tuple[list[Example], list[Outcome], float]): predictions beside the annotation, what
        the decoder has noted of each problem, and the CPU seconds of all of it.
    """
    pipe = nlp.get_pipe("hocrf")
    own = pipe.joint.decoder
    recorder = Recorder(**{**asdict(own), **settings})
    pipe.joint.decoder = recorder
    begun = time.process_time()
    docs = list(nlp.pipe([example.predicted.copy() for example in examples]))
    seconds = time.process_time() - begun
    pipe.joint.decoder = own
    return (
        [Example(doc, example.reference) for doc, example in zip(docs, examples)],
        recorder.outcomes,
        seconds,
    )


def voted(examples: Sequence[Example], *, outside: bool) -> list[Example]:
    """The same with the entities of a majority vote."""
    predicted = [example.predicted for example in examples]
    votes = vote(predicted, outside=outside)
    docs = [
        annotated(doc.vocab, [t.text for t in doc], [(s.start, s.end, s.label_) for s in spans])
        for doc, spans in zip(predicted, votes)
    ]
    return [Example(doc, example.reference) for doc, example in zip(docs, examples)]


def resolve_grouper(config_path: Path, part: str) -> Grouper:
    """The grouper of the config's corpora, "train" or "dev"."""
    config = spacy.util.load_config(config_path)["corpora"][part]
    return registry.resolve({"grouper": config["grouper"]})["grouper"]


def folder_of(corpus: str, kind: str) -> str:
    """Where the predictions of a corpus and model are."""
    return f"{corpus}-{kind.replace(', ', '-')}"


def f1(examples: Sequence[Example]) -> tuple[float, float]:
    """Micro- and macro-averaged F1 of entities, per cent."""
    scores = Scorer.score_spans(examples, "ents")
    per_type = [values["f"] for values in scores["ents_per_type"].values()]
    return 100 * scores["ents_f"], 100 * float(np.mean(per_type))
