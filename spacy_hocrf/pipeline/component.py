"""The trainable pipeline component: learns a segmentation model inside `nlp.update` and assigns its best segmentation.

`initialize` learns labels, features and label patterns and keeps the corpus; `update` registers examples and reports the loss;
`finish_update` takes L-BFGS iterations on the whole corpus. So batches only pace the loop, and every batcher, every
`accumulate_gradient` and the plain loop reach the same optimum.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.pipeline import TrainablePipe
from spacy.tokens import Doc, Span
from spacy.training import Example, validate_examples
from spacy.util import logger
from spacy.vocab import Vocab
from thinc.api import Model, Optimizer

from spacy_hocrf.engine.automaton import Automaton, compile_automaton
from spacy_hocrf.engine.forward_backward import expectations
from spacy_hocrf.engine.marginals import Window, segment_marginals, window_marginals
from spacy_hocrf.engine.objective import Objective
from spacy_hocrf.engine.viterbi import viterbi
from spacy_hocrf.errors import Errors, Warnings
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.model.architectures import model_of, weights_of
from spacy_hocrf.model.network import Network, token_batches
from spacy_hocrf.model.scheme import LabelScheme
from spacy_hocrf.pipeline.annotation import Annotation, constrain, known_segments, trim
from spacy_hocrf.pipeline.corpus import Corpus, Document, make_shards
from spacy_hocrf.pipeline.persistence import read_bytes, read_files, to_payload, write_bytes, write_files
from spacy_hocrf.pipeline.targets import Prediction, Target
from spacy_hocrf.training.patterns import select_patterns
from spacy_hocrf.training.trainers import FullBatchRun, LBFGSTrainer, SGDTrainer
from spacy_hocrf.types import CONTINUE, FIRST, LAST, Expectations, Potentials, Segmentation

__all__ = ["SegmentationPipe", "span_score"]

GROWTH = 4
"""New documents wait until they are one in so many, or until an update brings none; then the model grows."""


class SegmentationPipe(TrainablePipe):
    """High-order CRF component; see the factories for its settings.

    vocab (Vocab): the shared vocabulary.
    model (Model[List[Doc], Potentials]): one of the registered architectures.
    name (str): name in the pipeline.
    target (Target): what is predicted.
    trainer (Union[LBFGSTrainer, SGDTrainer]): how it is learnt.
    threshold (Optional[float]): decoded spans of a lower probability are dropped.
    scores (bool): compute the probability of every span.
    scorer (Optional[Callable]): scoring method.
    cfg (Any): further settings for the scorer.
    RAISES (ValueError): H055 or H056 for a bad threshold or model.
    """

    def __init__(
        self,
        vocab: Vocab,
        model: Model[list[Doc], Potentials],
        name: str,
        *,
        target: Target,
        trainer: LBFGSTrainer | SGDTrainer,
        threshold: float | None = None,
        scores: bool = True,
        scorer: Callable | None = None,
        **cfg: Any,
    ) -> None:
        if "network" not in model.attrs:
            raise ValueError(Errors.H056.format(name=name, found=model.name))
        if threshold is not None and not 0 <= threshold <= 1:
            raise ValueError(Errors.H055.format(found=threshold, name=name))
        super().__init__(vocab, model, name, threshold=threshold, **cfg)
        self.target = target
        self.trainer = trainer
        self.scorer = scorer
        self._scores = scores
        self._labels: list[str] = []
        self._longest: dict[str, int] = {}
        self._has_outside = self._repeats = False
        self._loaded_documents = 0
        self._automaton: Automaton | None = None
        self._forget()
        if not Span.has_extension("hocrf_score"):
            Span.set_extension("hocrf_score", getter=span_score)

    @property
    def network(self) -> Network:
        """Labels, label patterns and features."""
        network: Network = self.model.attrs["network"]
        return network

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels, in the order in which they became known."""
        return tuple(self._labels)

    @property
    def label_data(self) -> list[str]:
        """What `spacy init labels` writes and `initialize` takes."""
        return list(self._labels)

    def add_label(self, label: str) -> int:
        """Add a label; a trained model keeps its weights.

        RETURNS (int): 1, or 0 if the label is known.
        RAISES (ValueError): H057 for anything but a non-empty string.
        """
        if not isinstance(label, str) or not label:
            raise ValueError(Errors.H057.format(label=label))
        if label in self._labels:
            return 0
        self._labels.append(label)
        if self.network.ready:
            self._set_scheme()
            self._renumber()
            self._compile()
            self._corpus_changed = True
        return 1

    # Training

    def initialize(
        self, get_examples: Callable[[], Iterable[Example]], *, nlp: Any = None, labels: Sequence[str] | None = None
    ) -> None:
        """Learn labels, label patterns and features, and keep the corpus; the weights start at 0.

        get_examples (Callable[[], Iterable[Example]]): the training corpus.
        nlp (Optional[Language]): unused; part of spaCy's interface.
        labels (Optional[Sequence[str]]): all labels, as `spacy init labels` writes them; by default those of the corpus.
        RAISES (ValueError): H049 without examples, H050 without labels, H051 for a template that reads the answer.
        """
        examples = list(get_examples())
        if not examples:
            raise ValueError(Errors.H049)
        validate_examples(examples, f"{type(self).__name__}.initialize")
        self._check_templates()
        corpus = Corpus(self.target)
        documents = corpus.add(examples, initial=True)
        found = sorted({label for document in documents for _, _, label in document.annotation.spans})
        known = list(dict.fromkeys([*self._labels, *(labels if labels is not None else found)]))
        if not known:
            raise ValueError(Errors.H050.format(name=self.name, found=len(examples), kind=type(self.target).__name__))
        unlabelled = sum(self.target.annotation(example).unknown.all() for example in examples if len(example.x))
        if documents and unlabelled:
            warnings.warn(Warnings.W004.format(found=unlabelled, name=self.name), stacklevel=2)
        self._labels = known
        self._longest = {}
        self._repeats = False
        self._has_outside = not documents
        self._loaded_documents = 0
        self.network.scheme = self.network.index = None
        self.model.set_param("W", np.zeros(0, dtype=np.float32))
        self._forget()
        self._corpus = corpus
        self._learn(documents)

    def update(
        self,
        examples: Iterable[Example],
        *,
        drop: float = 0.0,
        sgd: Optimizer | None = None,
        losses: dict[str, float] | None = None,
    ) -> dict[str, float]:
        """Register examples and report their share of the loss; the step is taken in `finish_update`.

        examples (Iterable[Example]): a batch.
        drop (float): unused; the objective is exact.
        sgd (Optional[Optimizer]): with the SGD trainer, takes a step at once.
        losses (Optional[Dict[str, float]]): the objective per epoch is added under the component's name.
        RETURNS (Dict[str, float]): the losses.
        RAISES (ValueError): H040 for an unknown label, H042 before `initialize`.
        """
        losses = {} if losses is None else losses
        losses.setdefault(self.name, 0.0)
        examples = list(examples)
        validate_examples(examples, f"{type(self).__name__}.update")
        if not any(len(example.predicted) for example in examples):
            return losses
        if not self.network.ready:
            raise ValueError(Errors.H042)
        if isinstance(self.trainer, SGDTrainer):
            losses[self.name] += self._update_batch(examples)
            if sgd not in (None, False):
                self.finish_update(sgd)
            return losses
        documents = self._corpus.add(examples)
        self._check_labels(documents)
        self._waiting += documents
        if self._waiting and (not documents or GROWTH * len(self._waiting) >= len(self._corpus)):
            self._learn(self._waiting)
        if self._current_run() is not None:
            assert self._run is not None
            losses[self.name] += self._run.loss * len(examples) / max(1, len(self._corpus))
        return losses

    def finish_update(self, sgd: Optimizer) -> None:
        """Take the trainer's number of L-BFGS iterations on the whole corpus; nothing once it has converged.

        sgd (Optimizer): used by the SGD trainer only.
        """
        if isinstance(self.trainer, SGDTrainer):
            self.model.finish_update(sgd)
            return
        run = self._current_run()
        if run is None or not run.running:
            return
        run.step()
        self.model.set_param("W", run.weights.astype(np.float32))
        if not run.running:
            logger.info("%s: %s", self.name, run.status)

    def get_loss(self, examples: Iterable[Example], scores: Potentials) -> tuple[float, Expectations]:
        """Negative log-likelihood of a batch, and its derivative by the log potentials.

        scores (Potentials): what the model predicts for the examples' Docs.
        RETURNS (Tuple[float, Expectations]): nats, and expected minus observed counts.
        """
        examples = list(examples)
        pieces = np.split(scores.allowed, scores.offsets[1:-1])
        bits = [constrain(self._scheme, piece, self._annotation(eg)) for piece, eg in zip(pieces, examples)]
        automaton = self._compiled_automaton
        free = expectations(scores, automaton)
        known = expectations(replace(scores, allowed=np.concatenate(bits)), automaton)
        bad = np.flatnonzero(np.isneginf(known.log_partition))
        if len(bad):
            raise ValueError(Errors.H007.format(text=repr(examples[int(bad[0])].predicted.text[:60])))
        difference = {name: getattr(free, name) - getattr(known, name) for name in free.__dataclass_fields__}
        return float(difference["log_partition"].sum()), Expectations(**difference)

    # Prediction

    def predict(self, docs: Iterable[Doc]) -> list[Prediction]:
        """The best segmentation of each Doc; the Docs are not changed.

        RETURNS (List[Prediction]): decoded spans, trimmed of white space and filtered by the threshold.
        RAISES (ValueError): H007 if a Doc has no allowed segmentation, H042 before training.
        """
        docs = list(docs)
        if not self.network.ready:
            raise ValueError(Errors.H042)
        predictions: list[Prediction] = []
        for batch, first in token_batches(docs):
            predictions += self._predict_batch(docs[first : first + len(batch.docs)])
        return predictions

    def set_annotations(self, docs: Iterable[Doc], scores: Sequence[Prediction]) -> None:
        """Write predictions to their Docs."""
        for doc, prediction in zip(docs, scores):
            if len(doc):
                self.target.annotate(doc, prediction)

    def _predict_batch(self, docs: list[Doc]) -> list[Prediction]:
        network, automaton, weights = self.network, self._compiled_automaton, weights_of(self.model)
        free = network.allowed(docs)
        presets = [self._preset(doc) for doc in docs]
        offsets = np.cumsum([0, *map(len, docs)])
        bits = free.copy()
        for i, preset in enumerate(presets):
            if preset is not None:
                bits[offsets[i] : offsets[i + 1]] = constrain(self._scheme, bits[offsets[i] : offsets[i + 1]], preset)
        batch = network.compile(network.observe(docs), bits)
        potentials = batch.potentials(weights)
        segmentations, best = viterbi(potentials, automaton)
        stuck = [i for i in np.flatnonzero(np.isneginf(best)) if len(docs[i])]
        if stuck:  # entities set before that this model cannot have: decode freely, and give way to them below
            for i in stuck:
                bits[offsets[i] : offsets[i + 1]] = free[offsets[i] : offsets[i + 1]]
            potentials = replace(potentials, allowed=bits)
            segmentations, best = viterbi(potentials, automaton)
            for i in stuck:
                if np.isneginf(best[i]):
                    raise ValueError(Errors.H007.format(text=repr(docs[i].text[:60])))
        decoded = [self._scheme.decode(segments) for segments in segmentations]
        threshold = self.cfg["threshold"]
        scores: Sequence[NDArray[np.float64] | None] = [None] * len(docs)
        if self._scores or threshold is not None:
            scores = self._probabilities(potentials, decoded)
        kept = [self.target.preset(doc) for doc in docs]
        return [_select(*each, threshold) for each in zip(docs, decoded, scores, kept)]

    def _probabilities(
        self, potentials: Potentials, decoded: Sequence[Sequence[tuple[int, int, str]]]
    ) -> list[NDArray[np.float64]]:
        """P(exactly this span is in the segmentation | Doc, constraints) of every decoded span."""
        scheme, automaton = self._scheme, self._compiled_automaton
        if scheme.encoding == "segments":
            segments: list[Segmentation] = [
                [s for start, end, label in spans for s in scheme.encode_span(start, end, label)] for spans in decoded
            ]
            return segment_marginals(potentials, automaton, segments)
        windows = [
            _window(scheme, i, span, int(potentials.offsets[i + 1] - potentials.offsets[i]))
            for i, spans in enumerate(decoded)
            for span in spans
        ]
        flat = window_marginals(potentials, automaton, windows)
        return np.split(flat, np.cumsum([len(spans) for spans in decoded])[:-1])

    def _preset(self, doc: Doc) -> Annotation | None:
        """What was set before, as far as this model can have it; the rest of it is outside."""
        preset = self.target.preset(doc)
        if preset is None:
            return None
        scheme = self._scheme
        limits = dict(zip(scheme.names, scheme.limits))
        spans = tuple(
            (start, end, label)
            for start, end, label in preset.spans
            if label in self._labels and (scheme.encoding != "segments" or limits[label] == 0 or end - start <= limits[label])
        )
        if len(spans) == len(preset.spans) or scheme.outside >= 0:
            return Annotation(spans, preset.unknown)
        unknown = np.ones(len(doc), dtype=bool)
        for start, end, _ in spans:
            unknown[start:end] = False
        return Annotation(spans, unknown)

    # Growth

    @property
    def _scheme(self) -> LabelScheme:
        if self.network.scheme is None:
            raise ValueError(Errors.H042)
        return self.network.scheme

    @property
    def _compiled_automaton(self) -> Automaton:
        if self._automaton is None:
            raise ValueError(Errors.H042)
        return self._automaton

    def _forget(self) -> None:
        """Drop the corpus and the optimiser's state."""
        self._corpus = Corpus(self.target)
        self._waiting: list[Document] = []
        self._run: FullBatchRun | None = None
        self._corpus_changed = False
        self._loaded_weights: NDArray[np.float64] | None = None

    def _learn(self, documents: Sequence[Document]) -> None:
        """Extend labels' limits, label patterns and features by what new documents show; the weights keep their values."""
        settings = self.network.settings
        joined = settings.encoding == "io" or (settings.encoding == "segments" and settings.repeats is False)
        touching = 0
        for document in documents:
            annotation = document.annotation
            touching += joined and annotation.repeats
            document.annotation = annotation = annotation.merged() if joined else annotation
            self._repeats |= annotation.repeats
            self._has_outside |= annotation.has_outside and not self.network.ready
            for start, end, label in annotation.spans:
                self._longest[label] = max(self._longest.get(label, 0), end - start)
        if touching:
            reason = "encoding = 'io'" if settings.encoding == "io" else "repeats = false"
            warnings.warn(Warnings.W001.format(found=touching, reason=reason), stacklevel=3)
        self._check_limits()
        self._set_scheme()
        scheme = self._scheme
        segments = {id(document): known_segments(scheme, document.annotation) for document in documents}
        histories = [labels for known in segments.values() for labels in _histories(known)]
        seen = select_patterns(histories, scheme.n_labels, settings.order, min_count=settings.min_pattern_count)
        self._renumber()
        patterns = tuple(dict.fromkeys([*(self.network.patterns or seen[: scheme.n_labels]), *seen]))
        docs = [document.doc for document in documents]
        reads: set[str] = set(self._corpus.reads)

        def batches() -> Iterable[tuple[TokenBatch, list[Segmentation]]]:
            for batch, first in token_batches(docs, learn=True):
                yield batch, [segments[id(document)] for document in documents[first : first + len(batch.docs)]]
                reads.update(batch.reads)

        moved = self.network.learn(patterns, iter(batches()))
        assert self.network.index is not None
        weights = np.zeros(len(self.network.index), dtype=np.float32)
        weights[moved] = self.model.get_param("W")
        self.model.set_param("W", weights)
        if self._loaded_weights is not None:
            mean = np.zeros(len(weights))
            mean[moved] = self._loaded_weights
            self._loaded_weights = mean
        if reads != set(self._corpus.reads):
            self._corpus.reads = sorted(reads)
            self._corpus.refresh_fingerprints()
        self._waiting = []
        self._corpus_changed = True
        self._compile()

    def _set_scheme(self) -> None:
        tags = self.network.settings.encoding == "tags"
        outside = self._has_outside and not tags
        self.network.set_labels(self._labels, self._longest, outside=outside, repeats=self._repeats)

    def _renumber(self) -> None:
        """Put new labels' patterns behind the labels that were there, in front of the longer patterns."""
        index, n_labels = self.network.index, self._scheme.n_labels
        if index is None or index.n_labels == n_labels:
            return
        longer = index.patterns[index.n_labels :]
        numbers = np.arange(len(index.patterns), dtype=np.int32)
        numbers[index.n_labels :] += n_labels - index.n_labels
        index.renumber((*((y,) for y in range(n_labels)), *longer), numbers)
        self.network.restore(self._scheme, index)

    def _compile(self) -> None:
        scheme, index = self._scheme, self.network.index
        assert index is not None
        self._automaton = compile_automaton(index.patterns, scheme.limits, forbidden=scheme.forbidden, carried=index.carried)

    def _current_run(self) -> FullBatchRun | None:
        """The optimisation of the corpus as it is now; None while there is nothing to learn from."""
        assert isinstance(self.trainer, LBFGSTrainer)
        if self._corpus_changed and len(self._corpus):
            index = self.network.index
            assert index is not None
            adapting = self._loaded_weights is not None and self.trainer.centre_on_loaded(len(self._corpus), self._loaded_documents)
            mean = self._loaded_weights if adapting and self._loaded_weights is not None else np.zeros(len(index))
            objective = Objective(
                make_shards(self.network, self._corpus.documents),
                self._compiled_automaton,
                self.trainer.precision(index.feature_order, adapting=adapting),
                mean,
                threads=self.trainer.workers,
            )
            self._run = FullBatchRun(self.trainer, objective, weights_of(self.model))
            self._corpus_changed = False
        return self._run

    def _update_batch(self, examples: Sequence[Example]) -> float:
        """Accumulate the gradient of one batch in the model."""
        index = self.network.index
        assert index is not None
        potentials, backprop = self.model.begin_update([example.predicted for example in examples])
        loss, d_potentials = self.get_loss(examples, potentials)
        backprop(d_potentials)
        share = len(examples) / max(1, len(self._corpus))
        precision = share * self.trainer.precision(index.feature_order)
        weights = weights_of(self.model)
        self.model.inc_grad("W", (precision * weights).astype(np.float32))
        return loss + 0.5 * float(weights @ (precision * weights))

    def _annotation(self, example: Example) -> Annotation:
        annotation = self.target.annotation(example)
        for _, _, label in annotation.spans:
            if label not in self._labels:
                raise ValueError(Errors.H040.format(label=label, known=", ".join(self._labels)))
        joined = (self._scheme.encoding == "io") or (self._scheme.encoding == "segments" and self.network.settings.repeats is False)
        return annotation.merged() if joined else annotation

    # Checks

    def _check_templates(self) -> None:
        for template in self.network.settings.templates:
            reads = {attribute for attribute, _ in getattr(template, "terms", ())} | {getattr(template, "attribute", None)}
            answers = {self.target.attribute, "ENT_IOB" if self.target.attribute == "ENT_TYPE" else None} - {None}
            for attribute in reads & answers:
                raise ValueError(Errors.H051.format(template=template.name, attribute=attribute, name=self.name))

    def _check_labels(self, documents: Sequence[Document]) -> None:
        for document in documents:
            for _, _, label in document.annotation.spans:
                if label not in self._labels:
                    raise ValueError(Errors.H040.format(label=label, known=", ".join(self._labels)))

    def _check_limits(self) -> None:
        limit = self.network.settings.max_length
        for label, longest in self._longest.items():
            allowed = limit.get(label, 0) if isinstance(limit, dict) else limit or 0
            if 0 < allowed < longest:
                warnings.warn(Warnings.W002.format(label=label, found=allowed, longest=longest), stacklevel=4)

    # Persistence

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Settings, labels, features and weights; neither the corpus nor the optimiser's state."""
        return write_bytes(to_payload(self))

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "SegmentationPipe":
        """Replace everything learnt. RAISES (ValueError): H052, H053 or H054; nothing has changed then."""
        read_bytes(bytes_data).restore(self)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """As `to_bytes`, into a folder; each file is replaced as a whole, so an interruption leaves the older one."""
        write_files(to_payload(self), Path(path))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SegmentationPipe":
        """As `from_bytes`."""
        read_files(Path(path)).restore(self)
        return self

    def take_over(self, scheme: LabelScheme, network: Network, weights: NDArray[np.float32], learnt: dict[str, Any]) -> None:
        """Become a loaded model; called with checked parts only."""
        self._forget()
        self._labels = list(scheme.labels)
        self._longest = dict(learnt["longest"])
        self._has_outside, self._repeats = scheme.outside >= 0, bool(learnt["repeats"])
        self._loaded_documents = int(learnt["documents"])
        assert network.index is not None
        self.network.restore(scheme, network.index)
        self.model.set_param("W", weights)
        self._loaded_weights = weights.astype(np.float64)
        self._compile()

    def learnt(self) -> dict[str, Any]:
        """What besides the network is kept with a model."""
        documents = len(self._corpus) or self._loaded_documents
        return {"longest": self._longest, "repeats": self._repeats, "documents": documents}

    def __reduce__(self) -> tuple[Callable, tuple]:
        state = self.to_bytes() if self.network.ready else None
        arguments = (self.vocab, self.name, self.target, self.trainer, self._scores, self.scorer, self.cfg)
        return _unpickle, (type(self), self.network.settings, arguments, self.labels, state)


def span_score(span: Span) -> float | None:
    """Probability of a span that a component of ours has predicted: `span._.hocrf_score`; None for any other span."""
    for group in span.doc.spans.values():
        scores = group.attrs.get("scores")
        if scores is not None:
            for found, score in zip(group, scores):
                if (found.start, found.end, found.label) == (span.start, span.end, span.label):
                    return float(score)
    return None


def _unpickle(cls: type, settings: Any, arguments: tuple, labels: Sequence[str], state: bytes | None) -> SegmentationPipe:
    vocab, name, target, trainer, scores, scorer, cfg = arguments
    pipe: SegmentationPipe = cls(
        vocab, model_of(settings), name, target=target, trainer=trainer, scores=scores, scorer=scorer, **cfg
    )
    for label in labels:
        pipe.add_label(label)
    return pipe if state is None else pipe.from_bytes(state)


def _histories(segments: Segmentation) -> Iterable[list[int]]:
    """Labels of the stretches of touching segments."""
    labels: list[int] = []
    at = -1
    for start, end, label in segments:
        if labels and start != at:
            yield labels
            labels = []
        labels.append(label)
        at = end
    if labels:
        yield labels


def _window(scheme: LabelScheme, sequence: int, span: tuple[int, int, str], length: int) -> Window:
    """What makes a decoded span of a CRF exactly this span: its own labels, and neighbours that do not prolong it."""
    start, end, label = span
    path = np.zeros((end - start, scheme.n_labels), dtype=np.uint8)
    for segment in scheme.encode_span(start, end, label):
        path[segment.start - start, segment.label] = FIRST | CONTINUE | LAST
    closed = np.full((1, scheme.n_labels), FIRST | CONTINUE | LAST, dtype=np.uint8)
    closed[0, scheme.continuing(label)] = 0
    before = scheme.encoding == "io" and start > 0
    after = scheme.encoding in ("io", "bio") and end < length
    allowed = np.concatenate([closed[: int(before)], path, closed[: int(after)]])
    return Window(sequence, start - int(before), allowed)


def _select(
    doc: Doc,
    spans: Sequence[tuple[int, int, str]],
    scores: NDArray[np.float64] | None,
    preset: Annotation | None,
    threshold: float | None,
) -> Prediction:
    """Trim white space, drop what is improbable or in the way of what was there before."""
    taken = np.zeros(len(doc), dtype=bool)
    if preset is not None:
        taken = ~preset.unknown
    kept: list[tuple[int, int, str]] = []
    chosen: list[int] = []
    for i, (start, end, label) in enumerate(spans):
        start, end = trim(doc, start, end)
        improbable = threshold is not None and scores is not None and scores[i] < threshold
        if start < end and not taken[start:end].any() and not improbable:
            kept.append((start, end, label))
            chosen.append(i)
    return Prediction(tuple(kept), None if scores is None else scores[chosen], () if preset is None else preset.spans)
