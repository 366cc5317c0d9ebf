"""Settings that would be others once spaCy has saved the config and loaded it again."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from spacy.language import Language

from spacy_hocrf.features.dollars import TAKEN, without_dollars
from spacy_hocrf.features.errors import FeatureErrors

__all__ = ["check_key", "check_saved"]

NOT_READ_BACK = re.compile(r"[#;\[\s]|.*[:=]|.*\s$|$", re.DOTALL)
"""Names that a file does not give back."""


def check_saved(nlp: Language | None, name: str) -> None:
    """Look through the settings of a component.

    nlp (Optional[Language]): the pipeline. name (str): of the component.
    RAISES (ValueError): H267 for a dollar sign or a name that ends early, H268 for a string that is no JSON.
    """
    if nlp is None or name not in nlp.component_names:
        return
    if "$" in name:
        _check_text("components", "name", name)
    settings = nlp.get_pipe_config(name)
    pipe: Any = nlp.get_pipe(name)
    found = pipe.cfg.get("spans_key", "")
    if re.search(r"[:=\n]", found):  # it becomes a part of names in [training.score_weights]
        reason = "ends the names of its scores at :, = and line breaks"
        _refuse("spans_key", found, f"components.{name}", reason, "Choose a name without one")
    for section, key in _keys(settings, f"components.{name}"):
        if NOT_READ_BACK.match(key):
            reason = "ends a name at : and =, and begins a comment at # and ;, a section at ["
            _refuse("the name", key, section, reason, "Rename the label or the key")
    if not any("$" in text or text[:1] == '"' for _, _, text in _texts(settings, "")):
        return
    settings = nlp.config.interpolate()["components"][name]
    for section, key, text in _texts(settings, f"components.{name}"):
        _check_text(section, key, text)


def check_key(name: str, found: str, section: str) -> None:
    """RAISES (ValueError): H267 for a key of `doc.spans` that has a dollar sign."""
    if "$" in found:
        _check_text(section, name, found)


def _check_text(section: str, key: str, text: str) -> None:
    """RAISES (ValueError): H267 or H268."""
    where = {"name": key, "section": section}
    if text[:1] == '"' and "\\" in text:
        try:
            json.loads(text)
        except ValueError as error:
            raise ValueError(FeatureErrors.H268.format(**where, found=text)) from error
    if "$" in text:
        written = json.dumps(without_dollars(text))
        instead = f"Write {written}" if key in TAKEN else "Choose a name without one"
        _refuse(key, text, section, "doubles dollar signs", instead)


def _refuse(name: str, found: str, section: str, reason: str, instead: str) -> NoReturn:
    """RAISES (ValueError): H267, always."""
    where = {"name": name, "found": found, "section": section}
    raise ValueError(FeatureErrors.H267.format(**where, reason=reason, instead=instead))


def _keys(settings: Mapping[str, Any], section: str) -> Iterator[tuple[str, str]]:
    """Section and name of every setting."""
    for name, value in settings.items():
        yield section, name
        if isinstance(value, Mapping):
            yield from _keys(value, f"{section}.{name}")


def _texts(value: Any, section: str, key: str = "") -> Iterator[tuple[str, str, str]]:
    """Section, setting and text of every string."""
    if isinstance(value, str):
        yield section, key, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            inner_section = f"{section}.{name}" if isinstance(inner, Mapping) else section
            yield from _texts(inner, inner_section, name)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from ((section, key, text) for _, _, text in _texts(item, section))
