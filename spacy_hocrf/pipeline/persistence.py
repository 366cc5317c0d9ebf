"""A trained component as bytes or files: one JSON header and one archive of named arrays, never a pickle.

The header holds a checksum over both, so that a truncated or altered file is told apart from one that was written so. Loading
checks everything before it changes anything.
"""

import hashlib
import io
import os
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import srsly
from numpy.typing import NDArray

from spacy_hocrf.errors import Errors
from spacy_hocrf.features.index import FeatureIndex
from spacy_hocrf.model.network import Network, Settings
from spacy_hocrf.model.scheme import make_scheme

if TYPE_CHECKING:
    from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = ["FORMAT", "Payload", "read_bytes", "read_files", "to_payload", "write_bytes", "write_files"]

FORMAT = 1
"""Version of the layout below; a reader refuses newer ones."""

HEADER, ARRAYS = "cfg", "arrays.npz"
FIXED = ("order", "encoding", "outside", "repeats")


@dataclass(frozen=True)
class Payload:
    """Header and arrays of a model."""

    header: dict[str, Any]
    arrays: dict[str, NDArray]

    def restore(self, pipe: "SegmentationPipe") -> None:
        """Make a component this model.

        RAISES (ValueError): H039 or H052 for damaged data, H054 if the config has other settings.
        """
        if not self.header["ready"]:
            for label in self.header["labels"]:
                pipe.add_label(label)
            return
        settings = pipe.network.settings
        _check_settings(self.header["settings"], settings, pipe.name)
        scheme = make_scheme(
            self.header["labels"],
            encoding=settings.encoding,
            outside=settings.outside if self.header["has_outside"] else None,
            repeats=self.header["repeats"],
            limits=self.header["limits"],
        )
        patterns = tuple(tuple(pattern) for pattern in self.header["patterns"])
        network = Network(settings, scheme)
        templates = [template for template in settings.templates if template.order <= settings.order]
        network.restore(scheme, FeatureIndex.from_arrays(patterns, templates, self.arrays))
        weights = self.arrays["weights"]
        if weights.shape != (len(self.arrays["feature_pattern"]),) or not np.isfinite(weights).all():
            raise ValueError(Errors.H039.format(name="weights"))
        pipe.take_over(scheme, network, weights.astype(np.float32), self.header["learnt"])


def to_payload(pipe: "SegmentationPipe") -> Payload:
    """Everything that a component has learnt."""
    header: dict[str, Any] = {"format": FORMAT, "ready": pipe.network.ready, "labels": list(pipe.labels)}
    if not pipe.network.ready:
        return Payload(header, {})
    scheme, index, settings = pipe.network.scheme, pipe.network.index, pipe.network.settings
    assert scheme is not None and index is not None
    header.update(
        has_outside=scheme.outside >= 0,
        repeats=not any(a == b and a != scheme.outside for a, b in scheme.forbidden),
        limits=[int(limit) for limit in scheme.limits[scheme.outside + 1 :]],
        patterns=[list(pattern) for pattern in index.patterns],
        settings=_described(settings),
        learnt=pipe.learnt(),
    )
    return Payload(header, {**index.arrays(), "weights": np.asarray(pipe.model.get_param("W"), dtype=np.float32)})


def write_bytes(payload: Payload) -> bytes:
    """A payload as one string of bytes."""
    header, arrays = _encode(payload)
    return bytes(srsly.msgpack_dumps({HEADER: header, ARRAYS: arrays}))


def read_bytes(data: bytes) -> Payload:
    """RAISES (ValueError): H052 for damaged data, H053 for a newer format."""
    try:
        parts = srsly.msgpack_loads(data)
        header, arrays = parts[HEADER], parts[ARRAYS]
    except Exception as error:
        raise ValueError(Errors.H052.format(reason=f"the bytes cannot be read ({error})")) from error
    return _decode(header, arrays)


def write_files(payload: Payload, path: Path) -> None:
    """A payload as files in a folder, the header last: it is only valid with the arrays it was written with."""
    header, arrays = _encode(payload)
    path.mkdir(parents=True, exist_ok=True)
    for name, data in ((ARRAYS, arrays), (HEADER, header)):
        temporary = path / f"{name}.writing"
        temporary.write_bytes(data)
        os.replace(temporary, path / name)


def read_files(path: Path) -> Payload:
    """RAISES (ValueError): H052 for missing or damaged files, H053 for a newer format."""
    try:
        header, arrays = (path / HEADER).read_bytes(), (path / ARRAYS).read_bytes()
    except OSError as error:
        raise ValueError(Errors.H052.format(reason=f"{error.strerror}: {error.filename}")) from error
    return _decode(header, arrays)


def _encode(payload: Payload) -> tuple[bytes, bytes]:
    stream = io.BytesIO()
    np.savez(stream, **payload.arrays)  # type: ignore[arg-type]
    arrays = stream.getvalue()
    body = srsly.json_dumps(payload.header)
    return srsly.json_dumps({"checksum": _checksum(body, arrays), "model": body}).encode(), arrays


def _decode(header: bytes, arrays: bytes) -> Payload:
    try:
        outer = srsly.json_loads(header.decode())
        body = srsly.json_loads(outer["model"])
        checksum, version = outer["checksum"], body["format"]
    except Exception as error:
        raise ValueError(Errors.H052.format(reason=f"'{HEADER}' cannot be read ({error})")) from error
    if version > FORMAT:
        raise ValueError(Errors.H053.format(found=version, known=FORMAT))
    if checksum != _checksum(outer["model"], arrays):
        raise ValueError(Errors.H052.format(reason="the checksum does not match, so a file was cut short or altered"))
    try:
        with np.load(io.BytesIO(arrays), allow_pickle=False) as archive:
            return Payload(body, {name: archive[name] for name in archive.files})
    except (ValueError, zipfile.BadZipFile) as error:
        raise ValueError(Errors.H052.format(reason=f"'{ARRAYS}' cannot be read ({error})")) from error


def _checksum(body: str, arrays: bytes) -> str:
    return hashlib.sha256(body.encode() + arrays).hexdigest()


def _described(settings: Settings) -> dict[str, Any]:
    described = {name: value for name, value in asdict(_without_templates(settings)).items() if name in FIXED}
    templates = [template.name for template in settings.templates if template.order <= settings.order]
    return {**described, "templates": templates}


def _without_templates(settings: Settings) -> Settings:
    return Settings(
        templates=(),
        order=settings.order,
        encoding=settings.encoding,
        outside=settings.outside,
        repeats=settings.repeats,
    )


def _check_settings(saved: dict[str, Any], settings: Settings, name: str) -> None:
    now = _described(settings)
    for key, value in saved.items():
        if now[key] != value:
            raise ValueError(Errors.H054.format(difference=f"{key} was {value} and is {now[key]}", name=name))
