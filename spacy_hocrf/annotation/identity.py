"""Which text of a file a Doc is: `doc._.hocrf_id`, and `doc._.hocrf_meta`, what else the file says about it.

Both are what JSON can hold, and go where `user_data` goes.
"""

from collections.abc import Mapping
from typing import Any

from spacy.tokens import Doc

__all__ = ["id_of", "meta_of", "register_identity", "set_identity"]

ID, META = "hocrf_id", "hocrf_meta"


def register_identity() -> None:
    """Let Docs have both, None by default."""
    for name in (ID, META):
        if not Doc.has_extension(name):
            Doc.set_extension(name, default=None)


def set_identity(doc: Doc, id_: str, meta: Mapping[str, Any]) -> None:
    """Say which text a Doc is; "" and an empty mapping say nothing."""
    register_identity()
    if id_:
        doc._.set(ID, id_)
    if meta:
        doc._.set(META, dict(meta))


def id_of(doc: Doc) -> str | None:
    """The id that the text had in its file."""
    register_identity()
    found = doc._.get(ID)
    return None if found is None else str(found)


def meta_of(doc: Doc) -> dict[str, Any]:
    """Further data that the file gives for the text."""
    register_identity()
    return dict(doc._.get(META) or {})
