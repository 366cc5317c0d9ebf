"""A trained model as a value, and conversion of that value to and from a JSON header and named arrays.

A component saves `Learner.learnt()` and adopts what `restored` returns; nothing in between changes a
component, so a refused file leaves it as it was. What other parts of a component have learnt (such as joint
weights of several documents) is stored in separate sections, which a `Keeper` writes and checks: this file
does not know their contents.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec import Struct, structs, to_builtins
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.saved import need, patterns_from
from spacy_hocrf.features.segments import TransitionTemplate
from spacy_hocrf.features.templates import Template
from spacy_hocrf.model.scheme import LabelScheme, check_labels, make_scheme, most_forbidden
from spacy_hocrf.model.structure import Settings
from spacy_hocrf.saving.archive import FORMAT, Payload
from spacy_hocrf.saving.schema import Amount, Shape, Whole, check_size, checked, exact_json

__all__ = ["Keeper", "LearntModel", "Section", "described", "differences", "restored", "to_payload"]

ARRAYS: Mapping[str, tuple[str, int, str]] = {  # dtype, dimensions, key of LIMITS
    "observations": ("uint64", 2, "observations"),
    "feature_offsets": ("int64", 1, "observations"),
    "feature_template": ("int32", 1, "features"),
    "feature_pattern": ("int32", 1, "features"),
    "feature_count": ("int64", 1, "features"),
    "weights": ("float32", 1, "features"),
    "pattern_length": ("int32", 1, "label patterns"),
    "pattern_label": ("int32", 1, "labels in all label patterns"),
}
EMPTY = np.zeros((), dtype=np.uint8)
MAX_UNSEEN = 16
"""Highest order that a model may have without a pattern of that order, as a chosen order may be."""


class _UntrainedHeader(Struct, forbid_unknown_fields=True):
    """The header of an untrained model."""

    format: Whole
    ready: bool
    labels: list[str]


class _SettingsHeader(Struct, forbid_unknown_fields=True):
    """Settings that must be the same in training and use; compared as JSON."""

    order: Whole
    encoding: Any
    outside: Any
    repeats: Any
    templates: dict[str, Any]


class _LearntHeader(Struct, forbid_unknown_fields=True):
    """The members of `LearntModel` that are not arrays."""

    longest: dict[str, Whole]
    repeats: bool
    documents: Amount
    said: dict[str, Amount]


class _SectionHeader(Struct, forbid_unknown_fields=True):
    """The saved header of a keeper's section, beside its arrays."""

    setting: str
    header: dict[str, Any]


class _Header(_UntrainedHeader):
    """The header of a trained model."""

    has_outside: bool
    repeats: bool
    limits: list[Whole]
    settings: _SettingsHeader
    learnt: _LearntHeader
    extra: dict[str, Any]  # section name -> `_SectionHeader`, each checked separately


@dataclass(frozen=True)
class LearntModel:
    """Everything that a component has learnt; an untrained one has labels at most."""

    labels: tuple[str, ...]
    scheme: LabelScheme | None = None  # None, like the index, before `initialize`
    index: FeatureIndex | None = None
    # [F]
    weights: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    # tokens of the longest training segment of each label
    longest: Mapping[str, int] = field(default_factory=dict)
    repeats: bool = False  # do neighbouring training segments share a label?
    documents: int = 0  # number of training documents
    order: int = 1
    wide: bool = False
    # number of observations of each source of `features.presence` in training
    said: Mapping[str, int] = field(default_factory=dict)
    # checked value of each keeper's section, by section name
    extra: Mapping[str, Any] = field(default_factory=dict)


class Section(NamedTuple):
    """The part of a saved model that belongs to one keeper."""

    header: dict[str, Any]  # JSON
    arrays: dict[str, NDArray[Any]]

    def read(self, name: str, shape: type[Shape], arrays: Collection[str] = ()) -> Shape:
        """Return the section's header, validated as the declared type.

        name (str): name of the section.
        RAISES (ValueError): H134 for an invalid header, H039 unless the section has exactly these arrays.
        """
        for other in self.arrays.keys() ^ {*arrays}:
            need(False, f"{name}.{other}")
        return checked(shape, self.header, f"extra.{name}.header")


class Keeper(Protocol):
    """A part of a component that saves what it has learnt itself."""

    @property
    def setting(self) -> str:
        """The config block that creates the part, for errors."""
        ...

    def saved(self) -> Section | None:
        """Return the section to save; None for nothing."""
        ...

    def checked(self, section: Section | None, scheme: LabelScheme) -> Any:
        """Validate a section written by `saved` and return the value for `adopt`, without changing anything.

        section (Optional[Section]): untrusted content; None if the model has no such section.
        RAISES (ValueError): with a code, for an invalid section.
        """
        ...

    def adopt(self, value: Any) -> None:
        """Take over a value returned by `checked`; None for an untrained component."""
        ...


def to_payload(model: LearntModel, settings: Settings, keepers: Mapping[str, Keeper]) -> Payload:
    """Convert a trained model to a header and arrays.

    keepers (Mapping[str, Keeper]): the other parts, by the names of their sections.
    """
    labels, scheme = list(model.labels), model.scheme
    if model.index is None or scheme is None:
        return Payload(to_builtins(_UntrainedHeader(FORMAT, False, labels)), {})
    arrays: dict[str, NDArray[Any]] = {**model.index.arrays(), "weights": model.weights}
    extra: dict[str, Any] = {}
    for name, keeper in keepers.items():
        section = keeper.saved()
        if section is not None:
            extra[name] = _SectionHeader(keeper.setting, section.header)
            arrays.update({f"{name}.{key}": array for key, array in section.arrays.items()})
    users_limits = scheme.limits[scheme.outside + 1 :] if scheme.encoding == "segments" else ()
    header = _Header(
        FORMAT,
        True,
        labels,
        has_outside=scheme.outside >= 0,
        repeats=not any(a == b and a != scheme.outside for a, b in scheme.forbidden),
        limits=list(map(int, users_limits)),
        settings=_described(settings),
        learnt=_LearntHeader(dict(model.longest), model.repeats, model.documents, dict(model.said)),
        extra=extra,
    )
    return Payload(to_builtins(header), arrays)


def restored(
    payload: Payload, settings: Settings, keepers: Mapping[str, Keeper], name: str
) -> LearntModel:
    """Validate and return a saved model.

    settings (Settings): settings of the component that it is read for.
    keepers (Mapping[str, Keeper]): the component's other parts, by the names of their sections.
    name (str): name of the component, for errors.
    RAISES (ValueError): H039 for damaged data, H054 if the settings in the config differ, H135 for a section
        without a keeper; errors of the keepers.
    """
    ready, arrays = checked(bool, payload.header.get("ready"), "ready"), payload.arrays
    header = checked(_Header if ready else _UntrainedHeader, payload.header)
    check_size("labels", len(header.labels))
    labels = tuple(header.labels)
    check_labels(labels)
    _check_names(payload)
    if not isinstance(header, _Header):
        return LearntModel(labels)
    order = _order_of(payload) if settings.auto_order or settings.endless else settings.order
    wide = not settings.wider.isdisjoint(header.settings.templates)
    settings = replace(settings, order=order, wide=wide)
    _check_settings(header.settings, settings, name)
    scheme = _scheme_of(header, settings)
    patterns = patterns_from(arrays, scheme.n_labels)
    index = FeatureIndex.from_arrays(patterns, settings.used, arrays)
    weights = arrays["weights"]
    need(weights.shape == (len(index),) and np.isfinite(weights).all(), "weights")
    learnt = header.learnt
    return LearntModel(
        labels,
        scheme,
        index,
        weights,
        learnt.longest,
        learnt.repeats,
        learnt.documents,
        order,
        wide,
        learnt.said,
        _read_extra(payload, keepers, scheme, name),
    )


def described(value: Any, **members: Any) -> dict[str, Any]:
    """Return the fields of a dataclass (if it is one), and further members, as JSON returns them."""
    is_instance = is_dataclass(value) and not isinstance(value, type)
    fields: dict[str, Any] = asdict(value) if is_instance else {}
    as_json: dict[str, Any] = json.loads(exact_json({**fields, **members}))
    return as_json


def differences(before: Mapping[str, Any], after: Mapping[str, Any], kind: str = "") -> list[str]:
    """Describe in words how settings differ from the saved ones.

    kind (str): prefix of each name.
    """
    return [
        *(f"{kind}{key} is missing" for key in before if key not in after),
        *(f"{kind}{key} is new" for key in after if key not in before),
        *(
            f"{kind}{key} was {before[key]} and is {value}"
            for key, value in after.items()
            if before.get(key, value) != value
        ),
    ]


def _read_extra(
    payload: Payload, keepers: Mapping[str, Keeper], scheme: LabelScheme, name: str
) -> dict[str, Any]:
    sections: dict[str, Section | None] = dict.fromkeys(keepers)
    for key, value in payload.header["extra"].items():
        entry = checked(_SectionHeader, value, f"extra.{key}")
        if key not in keepers:
            raise ValueError(Errors.H135.format(name=name, found=key, setting=entry.setting))
        arrays = {
            array.removeprefix(f"{key}."): values
            for array, values in payload.arrays.items()
            if array.startswith(f"{key}.")
        }
        sections[key] = Section(entry.header, arrays)
    return {key: keeper.checked(sections[key], scheme) for key, keeper in keepers.items()}


def _check_names(payload: Payload) -> None:
    """Check name, type and size of every array. RAISES (ValueError): H039 or H136."""
    sections = payload.header.get("extra", {})
    expected = ARRAYS if payload.header["ready"] else {}
    for name in payload.arrays:
        need(name in expected or name.split(".")[0] in sections, name)
    for name, (dtype, dimensions, size) in expected.items():
        array = payload.arrays.get(name, EMPTY)
        need(array.dtype == dtype and array.ndim == dimensions, name)
        check_size(size, len(array))


def _order_of(payload: Payload) -> int:
    """Return the order of a model whose order was chosen. Since templates are built before anything else is
    checked, there must be a pattern of each length up to it: a model with a pattern also has its prefixes.

    RAISES (ValueError): H039.
    """
    order, labels = int(payload.header["settings"]["order"]), len(payload.arrays["pattern_label"])
    need(order <= MAX_UNSEEN or (order + 1) * (order + 2) // 2 <= labels, "settings.order")
    return order


def _scheme_of(header: _Header, settings: Settings) -> LabelScheme:
    """Build the label scheme. RAISES (ValueError): H039 or H136 for invalid labels or limits."""
    labels, limits, has_outside = header.labels, header.limits, header.has_outside
    is_semi = settings.encoding == "segments"
    fits = len(limits) == (len(labels) if is_semi else 0)
    fits = fits and not (has_outside and settings.encoding == "tags")
    need(fits, "limits" if is_semi else "has_outside")
    need(header.learnt.longest.keys() <= set(labels), "learnt.longest")
    check_size("forbidden successions", most_forbidden(len(labels), settings.encoding))
    return make_scheme(
        labels,
        encoding=settings.encoding,
        outside=settings.outside if has_outside else None,
        repeats=header.repeats,
        limits=limits,
    )


def _described(settings: Settings) -> _SettingsHeader:
    """Return the settings that must be the same in training and use, as JSON."""
    templates = {template.name: _described_template(template) for template in settings.used}
    return _SettingsHeader(
        settings.order, settings.encoding, settings.outside, settings.repeats, templates
    )


def _described_template(template: Template) -> dict[str, Any]:
    """Return a template's fields, without whether its order was given explicitly."""
    fields = described(template, part=int(template.part), width=int(template.width))
    if isinstance(template, TransitionTemplate):
        fields.pop("every")
    return fields


def _check_settings(saved: _SettingsHeader, settings: Settings, name: str) -> None:
    was, now = structs.asdict(saved), structs.asdict(_described(settings))
    before, after = was.pop("templates"), now.pop("templates")
    changes = differences(was, now) + differences(before, after, "template ")
    if not changes and list(before) != list(after):
        changes = ["the templates are in another order"]
    if changes:
        raise ValueError(Errors.H054.format(difference="; ".join(changes)[:2000], name=name))
