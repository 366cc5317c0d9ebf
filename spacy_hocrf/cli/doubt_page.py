"""A page of the texts whose annotation is doubted, as models read them that have not seen them."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spacy_hocrf.cli.doubts import ReadText
from spacy_hocrf.pipeline.pages import make_page, text_on_page
from spacy_hocrf.pipeline.reading import Reading

__all__ = ["DoubtPage"]


class DoubtPage:
    """Texts that are drawn one after another.

    least (float): those with a doubt of at least this degree.
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._texts = list[dict[str, Any]]()
        self._labels = list[str]()
        self._lang = ""

    def add(self, text: ReadText, reading: Reading, unknown: NDArray[np.bool_] | None) -> None:
        """Draw a text, if its annotation is doubted so much.

        unknown (Optional[bool [T]]): tokens that the annotation says nothing about.
        """
        if not text.doubts or text.worst() < self._least:
            return
        here = [*reading.labels, *sorted({span.label for span in text.annotated})]
        self._labels += [label for label in dict.fromkeys(here) if label not in self._labels]
        self._lang = reading.doc.lang_
        gold = [span[:3] for span in text.annotated]
        drawn = text_on_page(reading, text.found, self._labels, gold, unknown)
        place = {"number": text.number} | ({} if text.id is None else {"id": text.id})
        self._texts.append({**drawn, "doubt": round(text.worst(), 3), **place})

    def save(self, path: Path, about: str) -> None:
        """Write the page. about (str): a line below its headline."""
        title = f"{len(self._texts):,} texts whose annotation may be wrong"
        path.parent.mkdir(parents=True, exist_ok=True)
        page = make_page(self._texts, self._labels, title, about, lang=self._lang)
        path.write_text(page, encoding="utf8")
