"""Our side: the models that are measured, their training, and their observations as the strings
that python-crfsuite takes.

All have the same observations: words at -2 to 2, prefixes and suffixes of up to three letters, the
word's shape, a bias, and label patterns without observation. What knows the package's inside is in
this file.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import spacy
from corpora import REFERENCES
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import load_config

from spacy_hocrf.api import (
    CONST,
    TOKEN,
    SegmentationPipe,
    Template,
    TokenBatch,
    set_weights,
    starting_config,
)

sys.path += [str(REFERENCES.parent), str(REFERENCES / "scripts")]
import jmlr
from common.columns import Sentence, Spans, chunks_of, runs
from common.training import annotated

BIAS = "bias"
FILE_DOCUMENTS = 1_000  # of a file of a corpus that is streamed
EVALUATED = 500  # sentences of the dev part, at most

Weights = dict[tuple[str, str], float]  # by observation and label, or by label and next label

VITERBI = {"@misc": "spacy-hocrf.Viterbi.v1"}


def features(order: int) -> dict[str, Any]:
    """Config of the observations, with the label patterns of up to `order` earlier segments."""
    blocks: dict[str, Any] = {
        "words": {
            "@misc": "spacy-hocrf.Token.v1",
            "attrs": ["ORTH"],
            "window": [-2, -1, 0, 1, 2],
            "parts": ["tokens"],
        },
        "shape": {"@misc": "spacy-hocrf.Token.v1", "attrs": ["SHAPE"], "parts": ["tokens"]},
        "letters": {
            "@misc": "spacy-hocrf.CharNgrams.v1",
            "attr": "ORTH",
            "prefix": [1, 2, 3],
            "suffix": [1, 2, 3],
            "parts": ["tokens"],
        },
    }
    for k in range(order + 1):
        blocks[f"order{k}"] = {"@misc": "spacy-hocrf.Transition.v1", "order": k}
    return {"@misc": "spacy-hocrf.Features.v1", "basics": False, "*": blocks}


def trainer(sigma: float = 1.0) -> dict[str, Any]:
    """Config of L-BFGS that stops only where nothing can be gained any more."""
    return {
        "@misc": "spacy-hocrf.LBFGS.v1",
        "sigma": sigma,
        "threads": 1,
        "gradient_tolerance": 0.0,
        "improvement_tolerance": -1.0,
    }


def crf(
    sentences: Sequence[Sentence] | Callable[[], Iterable[Sentence]],
    order: int,
    *,
    sigma: float = 1.0,
    unseen: bool = False,
) -> Language:
    """A CRF whose labels are those of the corpus as they are, initialized.

    sentences (Union[Sequence[Sentence], Callable[[], Iterable[Sentence]]]): the corpus, or what
        reads it again each time.
    """
    model = {
        "@architectures": "spacy-hocrf.HighOrderCRF.v1",
        "encoding": "tags",
        "order": order,
        "features": features(order),
        "unseen": unseen,
    }
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf_tagger", config={"model": model, "trainer": trainer(sigma)})

    def examples() -> Iterator[Example]:
        for words, labels in sentences() if callable(sentences) else sentences:
            yield Example(Doc(nlp.vocab, words=words), Doc(nlp.vocab, words=words, tags=labels))

    nlp.initialize(examples)
    return nlp


def semi_crf(
    sentences: Sequence[Sentence], order: int, *, max_length: int | None = None, longest: int = 0
) -> Language:
    """A semi-CRF over the maximal stretches of one label, initialized.

    max_length (Optional[int]): as the architecture has it: null for limits learnt from the data, 0
        for none.
    longest (int): stretches are cut to so many tokens, so that a small limit suffices; 0 for never.
    """
    model = {
        "@architectures": "spacy-hocrf.HighOrderCRF.v1",
        "order": order,
        "max_length": max_length,
        "features": features(order),
    }
    return _ents_model(model, sentences, lambda labels: runs(labels, longest))


def chunker(sentences: Sequence[Sentence], order: int) -> Language:
    """A CRF that writes the spans which B- and I- labels stand for, initialized; without scores."""
    model = {
        "@architectures": "spacy-hocrf.HighOrderCRF.v1",
        "order": order,
        "encoding": "bio",
        "features": features(order),
    }
    return _ents_model(model, sentences, chunks_of)


def jmlr_model(task: str, order: int, sentences: Sequence[Sentence]) -> Language:
    """A semi-CRF of Nguyen et al. (2014) with the paper's templates, initialized; task is a key of
    jmlr.TASKS.
    """
    nlp = jmlr.make_pipeline(order, True, features=jmlr.TASKS[task].features)
    examples = span_examples(nlp, sentences, runs)
    nlp.initialize(lambda: examples)
    return nlp


def default(
    sentences: Sequence[Sentence],
    iterations: int = 0,
    spans_of: Callable[[list[str]], Spans] = chunks_of,
    **config: dict[str, Any],
) -> Language:
    """`nlp.add_pipe("hocrf")` as it is, initialized and trained for a few iterations.

    config (dict[str, Any]): sections with settings that are not the default.
    """
    nlp = spacy.blank("en")
    nlp.add_pipe("hocrf", config=config)
    examples = span_examples(nlp, sentences, spans_of)
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(iterations):
        nlp.update(examples[:1], sgd=optimizer)  # all of them are known
    return nlp


def write_corpus(
    folder: Path,
    sentences: Sequence[Sentence],
    spans_of: Callable[[list[str]], Spans],
) -> list[str]:
    """What `spacy train` of docs/start.md needs: a corpus, of which the first sentences are the dev part,
    and the config of `hocrf config`.

    RETURNS (list[str]): arguments of `spacy train`, on one thread. The sentences are tokenised.
    """
    docs = [each.reference for each in span_examples(spacy.blank("en"), sentences, spans_of)]
    for name, part in (("train", docs), ("dev", docs[:EVALUATED])):
        DocBin(docs=part).to_disk(folder / f"{name}.spacy")
    starting_config("en", None).to_disk(folder / "config.cfg")
    settings = {
        **{f"paths.{name}": str(folder / f"{name}.spacy") for name in ("train", "dev")},
        **{f"corpora.{name}.gold_preproc": "true" for name in ("train", "dev")},
        "components.hocrf.trainer.threads": "1",
    }
    overrides = [word for name, value in settings.items() for word in (f"--{name}", value)]
    return [str(folder / "config.cfg"), "--output", str(folder / "output"), *overrides]


def stream_corpus(folder: Path, arguments: Sequence[str]) -> list[str]:
    """What `spacy train` of docs/start.md needs to stream a corpus that was written: files of 1,000
    documents, and a config that says where they are.

    arguments (Sequence[str]): as `write_corpus` returned them.
    RETURNS (list[str]): arguments of `spacy train`.
    """
    docs = list(DocBin().from_disk(folder / "train.spacy").get_docs(spacy.blank("en").vocab))
    (folder / "train").mkdir()
    for first in range(0, len(docs), FILE_DOCUMENTS):
        part = docs[first : first + FILE_DOCUMENTS]
        DocBin(docs=part).to_disk(folder / "train" / f"{first:07}.spacy")
    config = load_config(folder / "config.cfg", interpolate=False)
    config["training"]["max_epochs"] = -1
    config["initialize"]["components"]["hocrf"] = {"corpus": "${corpora.train}"}
    config.to_disk(folder / "streamed.cfg")
    return [
        str(folder / "streamed.cfg"),
        *arguments[1:],
        *("--paths.train", str(folder / "train")),
    ]


def span_examples(
    nlp: Language, sentences: Iterable[Sentence], spans_of: Callable[[list[str]], Spans]
) -> list[Example]:
    """Examples with entities."""
    return [
        Example(Doc(nlp.vocab, words=words), annotated(nlp.vocab, words, spans_of(labels)))
        for words, labels in sentences
    ]


def component(nlp: Language) -> SegmentationPipe:
    """The only component of a pipeline."""
    return nlp.get_pipe(nlp.pipe_names[0])


class Training:
    """The component's own training loop, a few iterations at a time: objective and L-BFGS, over the
    compiled corpus.
    """

    def __init__(self, nlp: Language) -> None:
        pipe = component(nlp)
        assert pipe.run is not None
        self.run = pipe.run
        self.parameters = len(pipe.structure.index)

    def step(self, iterations: int) -> int:
        """RETURNS (int): evaluations of the objective; 0 once it cannot be lowered."""
        before = self.run.evaluations
        for _ in range(iterations):
            if self.run.running:
                self.run.step()
        return self.run.evaluations - before


def segment(pipe: SegmentationPipe, docs: Sequence[Doc]) -> list:
    """From token attributes to the best segmentations, without probabilities; the Docs are not
    changed.
    """
    return pipe.predict(docs)


def count_observations(pipe: SegmentationPipe, docs: Sequence[Doc]) -> int:
    """How often the model's templates find something at tokens, with one bias for each; what they find
    at the first and last token of a segment is not counted.
    """
    batch = TokenBatch(docs, learn=True)
    observed = [t.events(batch) for t in pipe.structure.index.templates if t.part == TOKEN]
    return len(batch) + sum(len(events.token) for events in observed)


def observation_strings(pipe: SegmentationPipe, docs: Sequence[Doc]) -> list[list[list[str]]]:
    """What the model's templates observe, known or not: a list of strings for each token of each
    Doc.
    """
    batch = TokenBatch(docs, learn=True)
    tokens: list[list[str]] = [[] for _ in range(len(batch))]
    for template in pipe.structure.index.templates:
        if template.part == CONST:
            if template.order == 0:
                for strings in tokens:
                    strings.append(BIAS)
            continue
        events = template.events(batch)
        values, inverse = np.unique(events.values, axis=0, return_inverse=True)
        names = [_name(template, row, batch) for row in values.tolist()]
        for token, number in zip(events.token.tolist(), inverse.reshape(-1).tolist()):
            tokens[token].append(names[number])
    return [tokens[first:last] for first, last in zip(batch.offsets, batch.offsets[1:])]


def weights_from(
    pipe: SegmentationPipe, vocab: spacy.vocab.Vocab, observed: Weights, transitions: Weights
) -> NDArray[np.float64]:
    """Weights of another implementation as ours, float64 [F]; patterns of three and more labels get
    0.

    observed (Weights): by observation, as `observation_strings` writes it, and label. What is
        missing is 0.
    transitions (Weights): by label and next label.
    """
    index, labels = pipe.structure.index, pipe.structure.scheme.names
    named = TokenBatch([Doc(vocab)], learn=True)
    values = index.table.rows[:, 1:].tolist()
    weights = np.zeros(len(index))
    features = zip(index.feature_observation, index.feature_template, index.feature_pattern)
    for feature, (observation, number, shape) in enumerate(features):
        template = index.templates[number]
        name = (
            BIAS
            if template.part == CONST
            else _name(template, values[observation][: template.width], named)
        )
        pattern = [labels[y] for y in index.patterns[shape]]
        if len(pattern) == 1:
            weights[feature] = observed.get((name, pattern[0]), 0.0)
        elif len(pattern) == 2:
            weights[feature] = transitions.get((pattern[0], pattern[1]), 0.0)
    return weights


def use_weights(pipe: SegmentationPipe, weights: NDArray[np.float64]) -> None:
    """Predict with these weights from now on."""
    set_weights(pipe.model, weights)


def instruction_sets() -> tuple[str, ...]:
    """What HOCRF_INSTRUCTIONS may be on this machine, slowest first; nothing where the package
    cannot choose.
    """
    try:
        from spacy_hocrf import api
    except ImportError:
        return ()
    return tuple(api.instruction_sets())


def instruction_set() -> str:
    """The one that this process uses."""
    builds = instruction_sets()
    return os.environ.get("HOCRF_INSTRUCTIONS") or (builds[-1] if builds else "as built")


def _ents_model(
    model: dict[str, Any], sentences: Sequence[Sentence], spans_of: Callable[[list[str]], Spans]
) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe(
        "hocrf",
        config={"model": model, "trainer": trainer(), "decoder": VITERBI, "scores_key": None},
    )
    examples = span_examples(nlp, sentences, spans_of)
    nlp.initialize(lambda: examples)
    return nlp


def _name(template: Template, values: Sequence[int], batch: TokenBatch) -> str:
    return f"{template.name}={template.describe(values, batch.strings)}"
