"""A service that finds spans: `MODEL=model/model-last uvicorn service:app`, started in this folder.

Several threads answer requests at the same time, in as many processes as `--workers` says.
"""

import os
import re
from typing import Annotated, Any

import spacy
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel

app = FastAPI()
nlp = spacy.load(os.environ["MODEL"])


def checked(text: str) -> str:
    """The text, if it is not too long; half characters, left where an emoji was cut in two, are replaced."""
    if len(text) > nlp.max_length:
        raise ValueError(f"it has {len(text):,} characters, expected {nlp.max_length:,} at most")
    return re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", text)


class Texts(BaseModel):
    """The body of a request."""

    texts: list[Annotated[str, AfterValidator(checked)]]


@app.exception_handler(RequestValidationError)
def refuse(_: Request, error: RequestValidationError) -> JSONResponse:
    """What is wrong with a request, without its texts, which may be long, or not be text at all."""
    detail = [{name: each[name] for name in ("loc", "msg")} for each in error.errors()]
    return JSONResponse({"detail": detail}, status_code=422)


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
