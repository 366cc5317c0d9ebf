"""The thinc model: Docs → log potentials, with the weights as one parameter "W".

Configured as `[components.*.model]`. It runs on the CPU whatever `--gpu-id` says: the
recurrences are short loops over sparse data that a GPU would slow down.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, cast

import numpy as np
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps
from thinc.types import Floats1d, Floats2d

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.checks import checked_template
from spacy_hocrf.features.combined import Wider
from spacy_hocrf.features.templates import Template
from spacy_hocrf.features.tokens import TokenBatch
from spacy_hocrf.features.vectors import Vectors
from spacy_hocrf.features.window import make_window
from spacy_hocrf.model.dense import checked_scores
from spacy_hocrf.model.errors import ModelErrors
from spacy_hocrf.model.heads import gradient_of_rows
from spacy_hocrf.model.pattern_choice import (
    COUNTS,
    check_counts,
    checked_order,
    checked_patterns,
)
from spacy_hocrf.model.structure import Settings, Structure
from spacy_hocrf.types import END, INNER, LENGTH, START, TOKEN, Expectations, Potentials

__all__ = ["build_high_order_crf", "model_of", "replace_weights", "set_weights", "weights_of"]

SEGMENTS = "segments"
CHOICES = (SEGMENTS, "io", "bio", "bieso", "tags")


def build_high_order_crf(
    features: Sequence[Template | Vectors | Wider] | None = None,
    order: int | str | None = "auto",
    encoding: str = SEGMENTS,
    tok2vec: Model[list[Doc], list[Floats2d]] | None = None,
    parts: Sequence[str] | None = None,
    scale: float = 0.1,
    outside: str = "token",
    repeats: bool | None = None,
    max_length: int | Mapping[str, int] | None = None,
    min_count: int = 1,
    min_pattern_count: int | Sequence[int] = 1,
    patterns: str | Sequence[Sequence[str]] = COUNTS,
    unseen: bool = False,
    unseen_transitions: bool = False,
    scores: Mapping[str, Any] | None = None,
) -> Model[list[Doc], Potentials]:
    """`spacy-hocrf.HighOrderCRF.v1`: a semi-CRF, whose segments have any length (Nguyen et al., JMLR 15,
    §2.1), or a CRF, whose segments are tokens (Ye et al., NIPS 2009, §2); optionally with an encoder.

    features (Optional[Sequence[Union[Template, Vectors, Wider]]]): feature templates, and scores of token
        arrays; templates of an order above `order` are left out. null: those of `spacy-hocrf.Window.v1`.
    order (Union[int, str, None]): number of earlier segments whose labels a feature may see; any
        number. "auto" lets the component choose it when it is initialised; with an encoder, which is
        untrained at that time, it is 1. null: the order of the longest label pattern.
    encoding (str): "segments"; or each token is a segment and spans are encoded as "io", which merges
        neighbouring spans of one label, "bio" or "bieso"; or "tags": a label on every token. Illegal
        label sequences are impossible.
    tok2vec (Optional[Model[List[Doc], List[Floats2d]]]): an encoder that returns an array for every token,
        such as `spacy.HashEmbedCNN.v2` or `spacy.Tok2VecListener.v1`.
    parts (Optional[Sequence[str]]): where in a segment the encoder's arrays are scored: "tokens", "start",
        "end", "inner"; null: all but the last.
    scale (float): factor of the encoder's arrays: numbers of spaCy's encoders are about 1 each, whatever
        their width. A prior of sigma on their weights equals a prior of scale · sigma on weights of the
        unscaled arrays.
    outside (str): "token" makes every unlabelled token a segment, "run" each maximal run of them.
    repeats (Optional[bool]): may neighbouring segments share a label? null: if they do in the
        training data.
    max_length (Union[int, Dict[str, int], None]): longest segment in tokens, for all labels or by
        label, where 0 is no limit and labels that are not named have none; null: the longest of that label
        in the training data, no limit if it is the only label and covers all texts. A limit below the
        length of a training segment is raised, with a warning.
    min_count (int): features that fire less often in training are left out.
    min_pattern_count (Union[int, List[int]]): label patterns of two or more labels seen less often
        are left out; a list is for order 1, 2, …, its last number also for all higher orders.
    patterns (Union[str, List[List[str]]]): "counts": those seen at least that often; or the patterns
        themselves, as names of labels, oldest first.
    unseen (bool): also learn weights for observations of order 0 with labels that they were never seen
        with.
    unseen_transitions (bool): also learn weights for pairs of labels that never follow one another in
        training, except those that the encoding or `repeats` forbids.
    scores (Optional[Dict[str, DenseScore]]): dense scores in addition to the weights of observations, by
        names of your own.
    RETURNS (Model[List[Doc], Potentials]): the model.
    RAISES (ValueError): H030, H031, H043 to H045, H131, H140, H173, H241, H321, H322, H462 or H570 for
        settings out of range.
    """
    features = make_window() if features is None else features
    for feature in features:
        if not isinstance(feature, (Template, Vectors, Wider)):
            raise ValueError(ModelErrors.H570.format(found=repr(feature)))
    wider = frozenset(feature.name for feature in features if isinstance(feature, Wider))
    unwrapped = (each.template if isinstance(each, Wider) else each for each in features)
    templates = tuple(checked_template(t) for t in unwrapped if not isinstance(t, Vectors))
    vectors = tuple(feature for feature in features if isinstance(feature, Vectors))
    if encoding != SEGMENTS:
        _check_single_tokens(encoding, parts, outside, repeats, max_length)
        templates, vectors = _for_single_tokens(templates), _of_tokens(vectors)
        parts = ["tokens"]
    _check_segments(outside, max_length)
    check_counts("min_count", min_count, [min_count], least=1)
    chosen = checked_patterns(patterns, min_pattern_count)
    dense, encoder = checked_scores(scores, vectors), None
    if tok2vec is not None:
        from spacy_hocrf.model.neural import encoder_with_heads

        order = 1 if order == "auto" else order
        templates, wider = tuple(t for t in templates if t.name not in wider), frozenset()
        encoder, heads = encoder_with_heads(tok2vec, parts or ("tokens", "start", "end"), scale)
        dense = (*dense, *heads)
    return model_of(
        Settings(
            templates=templates,
            wider=wider,
            **chosen,
            **checked_order(order, chosen["patterns"]),
            encoding=encoding,
            outside=outside,
            repeats=repeats,
            max_length=max_length,
            min_count=min_count,
            unseen=unseen,
            unseen_transitions=unseen_transitions,
            scores=dense,
            encoder=encoder,
        )
    )


def weights_of(model: Model[Any, Any]) -> np.ndarray:
    """Return the weights in the engine's type, float64 [F]."""
    return np.asarray(model.get_param("W"), dtype=np.float64)


def set_weights(model: Model[Any, Any], weights: np.ndarray) -> None:
    """Store weights, [F], as float32, which thinc's optimizers need."""
    model.set_param("W", cast(Floats1d, weights.astype(np.float32)))


def replace_weights(model: Model[Any, Any], weights: np.ndarray) -> None:
    """Store weights of other features, [F]. Gradients and the optimizer's moments, which thinc keeps by
    model id, belong to the old weights: so the model gets a new id.
    """
    if model.has_grad("W"):
        model.id = Model(model.name, _forward).id
    set_weights(model, weights)


def model_of(settings: Settings) -> Model[list[Doc], Potentials]:
    """Make an untrained model with these settings; its encoder, if any, is that of the settings."""
    encoder = settings.encoder
    model: Model[list[Doc], Potentials] = Model(
        "hocrf",
        _forward,
        params={"W": cast(Floats1d, np.zeros(0, dtype=np.float32))},
        attrs={"structure": Structure(settings)},
        layers=[] if encoder is None else [encoder],
        ops=NumpyOps(),
    )
    if encoder is not None:
        model.set_ref("tok2vec", encoder.layers[0])
    return model


def _forward(
    model: Model[list[Doc], Potentials], docs: Sequence[Doc], is_train: bool
) -> tuple[Potentials, Callable[[Expectations], list[Doc]]]:
    """Log potentials of the Docs; `backprop` takes their derivative, and accumulates the gradients of
    the weights and of the encoder's parameters.
    """
    structure: Structure = model.attrs["structure"]
    rows, backprop_rows = None, None
    if is_train and model.layers:
        rows, backprop_rows = model.layers[0](list(docs), is_train)
    tokens = TokenBatch(docs)
    batch = structure.compile(structure.observe(tokens, rows), structure.allowed(tokens))
    weights = weights_of(model)
    potentials = batch.potentials(weights)

    def backprop(d_potentials: Expectations) -> list[Doc]:
        counts = batch.compiled.nothing()
        batch.add_counts_into(d_potentials, 1.0, counts)
        model.inc_grad("W", cast(Floats1d, batch.compiled.collect(counts).astype(np.float32)))
        if backprop_rows is not None:
            dense = weights[structure.size - structure.n_dense :]
            backprop_rows(gradient_of_rows(batch.dense, dense, d_potentials))
        return []

    return potentials, backprop


def _check_segments(outside: str, max_length: Any) -> None:
    """Check settings of segments. RAISES (ValueError): H043 or H044 for an invalid one."""
    if outside not in ("token", "run"):
        raise ValueError(Errors.H043.format(found=outside))
    if max_length is not None:
        limits = [*max_length.values()] if isinstance(max_length, Mapping) else [max_length]
        check_counts("max_length", max_length, limits, least=0)


def _check_single_tokens(
    encoding: str, parts: Any, outside: str, repeats: bool | None, max_length: Any
) -> None:
    """Check settings. RAISES (ValueError): H045 for an encoding, H462 for settings of longer segments."""
    if encoding not in CHOICES:
        raise ValueError(Errors.H045.format(found=encoding, known=", ".join(CHOICES)))
    defaults = {"parts": None, "outside": "token", "repeats": None, "max_length": None}
    for name, value in zip(defaults, (parts, outside, repeats, max_length)):
        if value != defaults[name]:
            raise ValueError(ModelErrors.H462.format(name=name, found=value, encoding=encoding))


def _for_single_tokens(features: Sequence[Template]) -> tuple[Template, ...]:
    """Drop templates that are redundant if every segment has one token: its first, last and every token
    are the same, so of three equal templates one is kept.

    Lengths and inner tokens are not informative either.
    """
    everywhere = {repr(template) for template in features if template.part == TOKEN}
    return tuple(
        template
        for template in features
        if template.part not in (LENGTH, INNER)
        and not (template.part in (START, END) and repr(_moved(template, TOKEN)) in everywhere)
    )


def _of_tokens(vectors: Sequence[Vectors]) -> tuple[Vectors, ...]:
    """Move dense scores to the token part, without duplicates."""
    tokens = (replace(each, part="token") for each in vectors if each.part != "inner")
    return tuple({each.name: each for each in tokens}.values())


def _moved(template: Template, part: int) -> Template:
    """Move a template to another part of the segment; it is unchanged if it has no parts."""
    return (
        replace(template, part=part)
        if is_dataclass(template) and not isinstance(template, type)
        else template
    )
