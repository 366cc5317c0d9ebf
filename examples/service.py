"""A service that finds spans: `MODEL=model/model-last uvicorn service:app`, started in this folder.

Requests are answered in several threads at a time, and by as many processes as `--workers` says.
"""

import os
from typing import Any

import spacy
from fastapi import FastAPI
from pydantic import BaseModel

app = FastAPI()
nlp = spacy.load(os.environ["MODEL"])


class Texts(BaseModel):
    """What a request has."""

    texts: list[str]


@app.post("/spans")
def spans(request: Texts) -> list[list[dict[str, Any]]]:
    """The spans of each text: characters, label, and how probable it is."""
    return [
        [
            {
                "start": ent.start_char,
                "end": ent.end_char,
                "label": ent.label_,
                "probability": round(ent._.hocrf_score, 4),
            }
            for ent in doc.ents
        ]
        for doc in nlp.pipe(request.texts)
    ]
