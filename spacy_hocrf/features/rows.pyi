from collections.abc import Sequence

from spacy_hocrf.features.templates import Found
from spacy_hocrf.types import Rows

__all__ = ["rows_by_token"]

def rows_by_token(found: Sequence[Found], n_tokens: int) -> Rows: ...
