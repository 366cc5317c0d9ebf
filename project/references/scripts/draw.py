"""Let a model read one held-back reference and draw it with displaCy: a colour a field, a
probability on each.

The probabilities are those of doc.spans["hocrf"]. A model that sets none (spaCy's ner) is drawn
without.
"""

from html import escape
from pathlib import Path
from typing import Annotated

import spacy
import typer
from spacy import displacy
from spacy.tokens import Doc, DocBin
from spacy.util import import_file
from wasabi import msg

# registers what the model names
import_file("references_tokenizer", Path(__file__).parent / "tokenizer.py")

SCORES_KEY = "hocrf"
COLOURS = {
    "author": "#a6cee3",
    "booktitle": "#b2df8a",
    "date": "#fdbf6f",
    "editor": "#cab2d6",
    "institution": "#fccde5",
    "journal": "#8dd3c7",
    "location": "#ffed6f",
    "note": "#d9d9d9",
    "pages": "#fb9a99",
    "publisher": "#e5c494",
    "tech": "#bebada",
    "title": "#ffffb3",
    "volume": "#80b1d3",
}
TEMPLATE = """
<mark class="entity" title="{hint}" style="background: {bg}; padding: 0.45em 0.6em; \
margin: 0 0.25em; line-height: 2.4; border-radius: 0.35em;">
    {text}
    <span style="font-size: 0.7em; font-weight: bold; margin-left: 0.5rem">{label}</span>
    <span style="font-size: 0.7em; margin-left: 0.2rem">{score}</span>
</mark>
"""


def main(
    model: Annotated[Path, typer.Argument(help="Folder of a trained pipeline", exists=True)],
    data: Annotated[Path, typer.Argument(help="References (.spacy)", exists=True)],
    output: Annotated[Path, typer.Argument(help="Where the HTML goes")],
    index: Annotated[int, typer.Option(help="Which of them to draw, from 0")] = 0,
) -> None:
    """Draw one reference."""
    nlp = spacy.load(model)
    golds = list(DocBin().from_disk(data).get_docs(nlp.vocab))
    if not 0 <= index < len(golds):
        msg.fail(f"{data} has {len(golds)} references, from 0; there is no {index}", exits=1)
    doc = nlp(golds[index].text)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(
        draw(doc, title=" · ".join(map(str, golds[index].user_data.values()))), encoding="utf8"
    )
    msg.good(f"Drew {len(doc.ents)} fields of {doc.text!r} to {output}")


def draw(doc: Doc, title: str = "") -> str:
    """A page of HTML with the entities of a doc. A probability stands behind its label and in the
    text that hovers.
    """
    scores = probabilities(doc)
    ents = []
    for ent in doc.ents:
        score = scores.get((ent.start, ent.end, ent.label_))
        hint = ent.label_ if score is None else f"P({ent.label_}) = {score:.4f}"
        params = {"hint": escape(hint), "score": "" if score is None else f"{score:.2f}"}
        ents.append(
            {"start": ent.start_char, "end": ent.end_char, "label": ent.label_, "params": params}
        )
    page = {"text": doc.text, "ents": ents, "title": escape(title)}
    options = {"colors": COLOURS, "template": TEMPLATE}
    return displacy.render(
        page, style="ent", manual=True, page=True, jupyter=False, options=options
    )


def probabilities(doc: Doc) -> dict[tuple[int, int, str], float]:
    """Probability by (start, end, label) in tokens; empty if the model gave none."""
    if SCORES_KEY not in doc.spans:
        return {}
    group = doc.spans[SCORES_KEY]
    scores = group.attrs.get("scores", ())
    return {
        (span.start, span.end, span.label_): float(score)
        for span, score in zip(group, scores, strict=False)
    }


if __name__ == "__main__":
    typer.run(main)
