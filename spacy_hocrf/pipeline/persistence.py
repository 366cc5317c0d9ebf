"""A trained component as bytes or files: one JSON header and one archive of named arrays, never a
pickle.

The header holds a checksum over both, so that a truncated or altered file is told apart from one
that was written so. Loading checks everything before it changes anything. The archive's file is
named by its checksum: saving puts a new archive beside the old one, replaces the header as a whole,
and deletes the old archive last, so there is a loadable model at every moment.
"""

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import srsly
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.features.templates import Template
from spacy_hocrf.joint.templates import GlobalTemplate
from spacy_hocrf.model.scheme import make_scheme
from spacy_hocrf.model.structure import Settings, Structure

if TYPE_CHECKING:
    from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = [
    "FORMAT",
    "Payload",
    "read_bytes",
    "read_files",
    "to_payload",
    "write_bytes",
    "write_files",
]

FORMAT = 2
"""Version of the layout below; a reader refuses newer ones. Version 1 had no global features."""

HEADER, ARRAYS = "cfg", "arrays"
FIXED = ("order", "encoding", "outside", "repeats")


@dataclass(frozen=True)
class Payload:
    """Header and arrays of a model."""

    header: dict[str, Any]
    arrays: dict[str, NDArray]

    def restore(self, pipe: "SegmentationPipe") -> None:
        """Make a component this model.

        RAISES (ValueError): H039 or H052 for damaged data, H054 or H103 if the config has other
            settings.
        """
        if not self.header["ready"]:
            pipe.take_over(self.header["labels"])
            return
        settings = pipe.structure.settings
        _check_settings(self.header["settings"], settings, pipe.name)
        scheme = make_scheme(
            self.header["labels"],
            encoding=settings.encoding,
            outside=settings.outside if self.header["has_outside"] else None,
            repeats=self.header["repeats"],
            limits=self.header["limits"],
        )
        patterns = tuple(tuple(pattern) for pattern in self.header["patterns"])
        structure = Structure(settings, scheme)
        templates = [
            template for template in settings.templates if template.order <= settings.order
        ]
        structure.restore(scheme, FeatureIndex.from_arrays(patterns, templates, self.arrays))
        weights = self.arrays["weights"]
        if (
            weights.shape != (len(self.arrays["feature_pattern"]),)
            or not np.isfinite(weights).all()
        ):
            raise ValueError(Errors.H039.format(name="weights"))
        saved = self.header.get("global_features", {})
        _check_global(saved, pipe.global_templates, pipe.name)
        pipe.take_over_model(
            scheme,
            structure,
            weights.astype(np.float32),
            self.header["learnt"],
            self._global_weights(),
        )

    def _global_weights(self) -> dict[str, float]:
        """By the names of the features. RAISES (ValueError): H039 for damaged data."""
        names = self.header.get("global_feature_names", [])
        weights = self.arrays.get("global_weights", np.zeros(0))
        if weights.shape != (len(names),) or not np.isfinite(weights).all():
            raise ValueError(Errors.H039.format(name="global_weights"))
        return dict(zip(names, weights.tolist()))


def to_payload(pipe: "SegmentationPipe") -> Payload:
    """Everything that a component has learnt."""
    header: dict[str, Any] = {
        "format": FORMAT,
        "ready": pipe.structure.ready,
        "labels": list(pipe.labels),
    }
    if not pipe.structure.ready:
        return Payload(header, {})
    scheme, index, settings = pipe.structure.scheme, pipe.structure.index, pipe.structure.settings
    assert scheme is not None and index is not None
    header.update(
        has_outside=scheme.outside >= 0,
        repeats=not any(a == b and a != scheme.outside for a, b in scheme.forbidden),
        limits=[int(limit) for limit in scheme.limits[scheme.outside + 1 :]],
        patterns=[list(pattern) for pattern in index.patterns],
        settings=_described(settings),
        learnt=pipe.learnt(),
    )
    arrays = {**index.arrays(), "weights": np.asarray(pipe.model.get_param("W"), dtype=np.float32)}
    if pipe.global_templates:
        header["global_features"] = {
            template.name: _described_global(template) for template in pipe.global_templates
        }
        header["global_feature_names"] = list(pipe.global_feature_names)
        arrays["global_weights"] = pipe.global_weights
    return Payload(header, arrays)


def write_bytes(payload: Payload) -> bytes:
    """A payload as one string of bytes."""
    header, arrays = _encode(payload)
    return bytes(srsly.msgpack_dumps({HEADER: header, ARRAYS: arrays}))


def read_bytes(data: bytes) -> Payload:
    """RAISES (ValueError): H052 for damaged data, H053 for a newer format."""
    try:
        parts = srsly.msgpack_loads(data)
        header, arrays = bytes(parts[HEADER]), bytes(parts[ARRAYS])
    except Exception as error:
        raise ValueError(
            Errors.H052.format(reason=f"the bytes cannot be read ({error})")
        ) from error
    return _decode(header, arrays)


def write_files(payload: Payload, path: Path) -> None:
    """A payload as files in a folder."""
    header, arrays = _encode(payload)
    name = _archive(srsly.json_loads(header)["checksum"])
    path.mkdir(parents=True, exist_ok=True)
    _replace(path / name, arrays)
    _replace(path / HEADER, header)
    for older in path.glob(_archive("*")):
        if older.name != name:
            older.unlink(missing_ok=True)


def read_files(path: Path) -> Payload:
    """RAISES (ValueError): H052 for missing or damaged files, H053 for a newer format."""
    try:
        header = (path / HEADER).read_bytes()
        checksum, _ = _read_header(header)
        arrays = (path / _archive(checksum)).read_bytes()
    except OSError as error:
        raise ValueError(
            Errors.H052.format(reason=f"{error.strerror}: {error.filename}")
        ) from error
    return _decode(header, arrays)


def _encode(payload: Payload) -> tuple[bytes, bytes]:
    stream = io.BytesIO()
    np.savez(stream, **payload.arrays)  # type: ignore[arg-type]
    arrays = stream.getvalue()
    body = srsly.json_dumps(payload.header)
    return srsly.json_dumps({"checksum": _checksum(body, arrays), "model": body}).encode(), arrays


def _decode(header: bytes, arrays: bytes) -> Payload:
    checksum, text = _read_header(header)
    if checksum != _checksum(text, arrays):
        raise ValueError(
            Errors.H052.format(
                reason="the checksum does not match, so a file was cut short or altered"
            )
        )
    with np.load(io.BytesIO(arrays), allow_pickle=False) as archive:
        return Payload(srsly.json_loads(text), {name: archive[name] for name in archive.files})


def _read_header(header: bytes) -> tuple[str, str]:
    """Checksum and JSON of the model proper. RAISES (ValueError): H052 if unreadable, H053 for a
    newer format.
    """
    try:
        outer = srsly.json_loads(header.decode())
        checksum, text = str(outer["checksum"]), str(outer["model"])
        version = int(srsly.json_loads(text)["format"])
    except Exception as error:
        raise ValueError(
            Errors.H052.format(reason=f"'{HEADER}' cannot be read ({error})")
        ) from error
    if version > FORMAT:
        raise ValueError(Errors.H053.format(found=version, known=FORMAT))
    return checksum, text


def _checksum(text: str, arrays: bytes) -> str:
    digest = hashlib.sha256(text.encode())
    digest.update(arrays)
    return digest.hexdigest()


def _archive(checksum: str) -> str:
    """Name of the file of the arrays."""
    return f"arrays-{checksum[:16]}.npz"


def _replace(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all."""
    temporary = path.with_name(f"{path.name}.writing")
    temporary.write_bytes(data)
    os.replace(temporary, path)


def _described(settings: Settings) -> dict[str, Any]:
    """What must not change between training and use, as JSON."""
    described = {name: getattr(settings, name) for name in FIXED}
    used = [template for template in settings.templates if template.order <= settings.order]
    return {
        **described,
        "templates": {template.name: _described_template(template) for template in used},
    }


def _described_template(template: Template) -> Any:
    values: dict[str, Any] = (
        asdict(template) if is_dataclass(template) and not isinstance(template, type) else {}
    )
    return srsly.json_loads(
        srsly.json_dumps({**values, "part": template.part, "width": template.width})
    )


def _described_global(template: GlobalTemplate) -> Any:
    """What the features mean; not the weight that they begin with."""
    values: dict[str, Any] = (
        asdict(template) if is_dataclass(template) and not isinstance(template, type) else {}
    )
    values.update(entities=template.entities, outside=template.outside)
    return srsly.json_loads(
        srsly.json_dumps({name: value for name, value in values.items() if name != "weight"})
    )


def _check_global(saved: dict[str, Any], templates: Sequence[GlobalTemplate], name: str) -> None:
    """RAISES (ValueError): H103 for other templates than the saved ones, if there were any."""
    now = {template.name: _described_global(template) for template in templates}
    changes = [
        f"template {key} was {value} and is {now.get(key, 'missing')}"
        for key, value in saved.items()
        if now.get(key) != value
    ]
    changes += [f"template {key} is new" for key in now if saved and key not in saved]
    if changes:
        raise ValueError(Errors.H103.format(difference="; ".join(changes), name=name))


def _check_settings(saved: dict[str, Any], settings: Settings, name: str) -> None:
    now = _described(settings)
    before, after = saved["templates"], now["templates"]
    changes = [
        f"{key} was {value} and is {now[key]}"
        for key, value in saved.items()
        if key in FIXED and now[key] != value
    ]
    changes += [f"template {key} is missing" for key in before if key not in after]
    changes += [f"template {key} is new" for key in after if key not in before]
    changes += [
        f"template {key} was {before[key]} and is {after[key]}"
        for key in after
        if before.get(key, after[key]) != after[key]
    ]
    if not changes and list(before) != list(after):
        changes = ["the templates are in another order"]
    if changes:
        raise ValueError(Errors.H054.format(difference="; ".join(changes), name=name))
