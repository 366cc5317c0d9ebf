"""Which text of a file a Doc is (`doc._.hocrf_id`), and what else the file says of it (`doc._.hocrf_meta`).

Both are JSON values, stored in `user_data`.
"""

from collections.abc import Mapping
from typing import Any

from spacy.tokens import Doc

__all__ = ["id_of", "meta_of", "register_identity", "set_identity"]

ID, META = "hocrf_id", "hocrf_meta"


def register_identity() -> None:
    """Register both attributes, None by default."""
    for name in (ID, META):
        if not Doc.has_extension(name):
            Doc.set_extension(name, default=None)


def set_identity(doc: Doc, id_: str, meta: Mapping[str, Any]) -> None:
    """Set the id and metadata of a Doc; "" and an empty mapping are not set."""
    register_identity()
    if id_:
        doc._.set(ID, id_)
    if meta:
        doc._.set(META, dict(meta))


def id_of(doc: Doc) -> str | None:
    """The id of the text in its file."""
    register_identity()
    id_ = doc._.get(ID)
    return None if id_ is None else str(id_)


def meta_of(doc: Doc) -> dict[str, Any]:
    """Further data about the text from its file."""
    register_identity()
    return dict(doc._.get(META) or {})
