"""The thinc models: Docs → log potentials, with the weights as one parameter "W".

`[components.*.model]` names one of these. They run on the CPU whatever `--gpu-id` says: the
recurrences are short loops over sparse data that a GPU would slow down.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any, cast

import numpy as np
from spacy.tokens import Doc
from thinc.api import Model, NumpyOps
from thinc.types import Floats1d

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.templates import Template
from spacy_hocrf.features.vectors import Vectors
from spacy_hocrf.features.window import make_window
from spacy_hocrf.model.dense import checked_scores
from spacy_hocrf.model.heads import gradient_of_rows
from spacy_hocrf.model.pattern_choice import (
    COUNTS,
    LARGEST,
    Greedy,
    checked_order,
    checked_patterns,
    is_count,
)
from spacy_hocrf.model.structure import Settings, Structure
from spacy_hocrf.types import END, INNER, LENGTH, START, TOKEN, Expectations, Potentials

__all__ = [
    "build_high_order_crf",
    "build_high_order_semi_crf",
    "build_high_order_tagger",
    "model_of",
    "set_weights",
    "weights_of",
]


def build_high_order_semi_crf(
    features: Sequence[Template | Vectors] | None = None,
    order: int | str | None = "auto",
    outside: str = "token",
    repeats: bool | None = None,
    max_length: int | Mapping[str, int] | None = None,
    min_count: int = 1,
    min_pattern_count: int | Sequence[int] = 1,
    patterns: str | Greedy | Sequence[Sequence[str]] = COUNTS,
    unseen: bool = False,
    unseen_transitions: bool = False,
    scores: Mapping[str, Any] | None = None,
) -> Model[list[Doc], Potentials]:
    """`spacy-hocrf.HighOrderSemiCRF.v1`: segments of any length (Nguyen et al., JMLR 15, §2.1).

    features (Optional[Sequence[Union[Template, Vectors]]]): what is observed, and the arrays that
        tokens have; templates of an order above `order` are left out. null: those of `spacy-hocrf.Window.v1`.
    order (Union[int, str, None]): number of earlier segments whose labels a feature may see; any
        number. "auto" lets the component choose it when it is initialised; null: that of the longest
        label pattern.
    outside (str): "token" makes every unlabelled token a segment, "run" a maximal run of them.
    repeats (Optional[bool]): may neighbouring segments share a label? null: if they do in the
        training data.
    max_length (Union[int, Dict[str, int], None]): longest segment in tokens, for all labels or by
        label; 0 for no limit, as for labels that are not named; null: the longest of that label in
        the training data. A limit below a training segment grows, with a warning.
    min_count (int): features that fire less often in training are left out.
    min_pattern_count (Union[int, List[int]]): label patterns of two or more labels seen less often
        are left out; a list is of order 1, 2, …, the last for all higher ones.
    patterns (Union[str, Greedy, List[List[str]]]): "counts": those seen as often as that; "greedy",
        or a block with its settings: of these, those that promise most; or the patterns themselves,
        the names of their labels, oldest first.
    unseen (bool): weights also for observations of order 0 with labels that they were never seen
        with.
    unseen_transitions (bool): weights also for pairs of labels that training never shows one after
        the other, except those that the encoding or `repeats` forbids.
    scores (Optional[Dict[str, DenseScore]]): dense scores beside the weights of observations, by
        names of your own.
    RETURNS (Model[List[Doc], Potentials]): the model.
    RAISES (ValueError): H043, H044, H241, H321 or H322 for settings out of range.
    """
    if outside not in ("token", "run"):
        raise ValueError(Errors.H043.format(found=outside))
    limits = [*max_length.values()] if isinstance(max_length, Mapping) else [max_length]
    if max_length is not None and not all(is_count(limit, least=0) for limit in limits):
        found = repr(max_length)
        raise ValueError(Errors.H044.format(name="max_length", found=found, least=0, most=LARGEST))
    chosen = _checked_counts(min_count, patterns, min_pattern_count)
    return model_of(
        Settings(
            templates=_templates(features),
            **chosen,
            **checked_order(order, chosen["patterns"]),
            outside=outside,
            repeats=repeats,
            max_length=max_length,
            min_count=min_count,
            unseen=unseen,
            unseen_transitions=unseen_transitions,
            scores=checked_scores(scores, _vectors(features)),
        )
    )


def build_high_order_crf(
    features: Sequence[Template | Vectors] | None = None,
    order: int | str | None = "auto",
    encoding: str = "bio",
    min_count: int = 1,
    min_pattern_count: int | Sequence[int] = 1,
    patterns: str | Greedy | Sequence[Sequence[str]] = COUNTS,
    unseen: bool = False,
    unseen_transitions: bool = False,
    scores: Mapping[str, Any] | None = None,
) -> Model[list[Doc], Potentials]:
    """`spacy-hocrf.HighOrderCRF.v1`: segments of one token, spans by an encoding (Ye et al., NIPS
    2009, §2).

    encoding (str): "io", "bio" or "bieso". Illegal successions are impossible. "io" merges
    neighbouring spans of one label. The other arguments are those of `build_high_order_semi_crf`;
    `order` counts tokens.
    RAISES (ValueError): H044, H045, H241, H321 or H322 for settings out of range.
    """
    from spacy_hocrf.model.scheme import ENCODINGS

    if encoding not in ENCODINGS:
        raise ValueError(Errors.H045.format(found=encoding, known=", ".join(ENCODINGS)))
    chosen = _checked_counts(min_count, patterns, min_pattern_count)
    return model_of(
        Settings(
            templates=_for_single_tokens(_templates(features)),
            **chosen,
            **checked_order(order, chosen["patterns"]),
            encoding=encoding,
            min_count=min_count,
            unseen=unseen,
            unseen_transitions=unseen_transitions,
            scores=checked_scores(scores, _of_tokens(_vectors(features))),
        )
    )


def build_high_order_tagger(
    features: Sequence[Template | Vectors] | None = None,
    order: int | str | None = "auto",
    min_count: int = 1,
    min_pattern_count: int | Sequence[int] = 1,
    patterns: str | Greedy | Sequence[Sequence[str]] = COUNTS,
    unseen: bool = False,
    unseen_transitions: bool = False,
    scores: Mapping[str, Any] | None = None,
) -> Model[list[Doc], Potentials]:
    """`spacy-hocrf.HighOrderTagger.v1`: one label on every token. The arguments are those of
    `build_high_order_crf`.
    """
    chosen = _checked_counts(min_count, patterns, min_pattern_count)
    return model_of(
        Settings(
            templates=_for_single_tokens(_templates(features)),
            **chosen,
            **checked_order(order, chosen["patterns"]),
            encoding="tags",
            min_count=min_count,
            unseen=unseen,
            unseen_transitions=unseen_transitions,
            scores=checked_scores(scores, _of_tokens(_vectors(features))),
        )
    )


def weights_of(model: Model[Any, Any]) -> np.ndarray:
    """The weights as the engine takes them, float64 [F]."""
    return np.asarray(model.get_param("W"), dtype=np.float64)


def set_weights(model: Model[Any, Any], weights: np.ndarray) -> None:
    """Store weights, [F], as float32: what thinc's optimizers need."""
    model.set_param("W", cast(Floats1d, weights.astype(np.float32)))


def model_of(settings: Settings) -> Model[list[Doc], Potentials]:
    """An untrained model with these settings; its encoder, if it has one, is that of the settings."""
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
    """Log potentials of the Docs; `backprop` takes the derivative by them, and adds up that of the
    weights, and those of the encoder's parameters.
    """
    structure: Structure = model.attrs["structure"]
    rows, backprop_rows = None, None
    if is_train and model.layers:
        rows, backprop_rows = model.layers[0](list(docs), is_train)
    batch = structure.compile(structure.observe(docs, rows), structure.allowed(docs))
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


def _or_default(
    features: Sequence[Template | Vectors] | None,
) -> Sequence[Template | Vectors]:
    return make_window() if features is None else features


def _templates(features: Sequence[Template | Vectors] | None) -> tuple[Template, ...]:
    """Those of the features that are observations."""
    return tuple(each for each in _or_default(features) if not isinstance(each, Vectors))


def _vectors(features: Sequence[Template | Vectors] | None) -> tuple[Vectors, ...]:
    """Those of the features that are dense scores."""
    return tuple(each for each in _or_default(features) if isinstance(each, Vectors))


def _for_single_tokens(features: Sequence[Template]) -> tuple[Template, ...]:
    """In a segment of one token its first, last and every token are the same: keep one of three
    equal templates.

    Lengths and inner tokens say nothing there either.
    """
    everywhere = {repr(template) for template in features if template.part == TOKEN}
    return tuple(
        template
        for template in features
        if template.part not in (LENGTH, INNER)
        and not (template.part in (START, END) and repr(_moved(template, TOKEN)) in everywhere)
    )


def _of_tokens(vectors: Sequence[Vectors]) -> tuple[Vectors, ...]:
    """The same of dense scores: all are the token's, each once."""
    tokens = (replace(each, part="token") for each in vectors if each.part != "inner")
    return tuple({each.name: each for each in tokens}.values())


def _moved(template: Template, part: int) -> Template:
    """The same template at another part of the segment; itself if it cannot be had there."""
    return (
        replace(template, part=part)
        if is_dataclass(template) and not isinstance(template, type)
        else template
    )


def _checked_counts(min_count: int, patterns: Any, min_pattern_count: Any) -> dict[str, Any]:
    """The settings that `patterns` and `min_pattern_count` stand for."""
    if not is_count(min_count, least=1):
        found = repr(min_count)
        raise ValueError(Errors.H044.format(name="min_count", found=found, least=1, most=LARGEST))
    return checked_patterns(patterns, min_pattern_count)
