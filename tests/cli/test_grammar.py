"""`python -m spacy hocrf inspect --grammar`: what is printed is a config that the component reads."""

import json
from functools import partial

import commands
import pytest
import spacy
from spacy.tokens import Doc, DocBin, Span
from spacy.util import registry
from thinc.api import Config


def write(path, texts, spans_key=None):
    """Texts of one token for each label; of a text None, nothing is known."""
    vocab, docs = spacy.blank("en").vocab, []
    for text in texts:
        doc = Doc(vocab, words=["word"] * len(text or "x"))
        spans = [Span(doc, i, i + 1, label) for i, label in enumerate(text or ())]
        if spans_key is not None:
            doc.spans[spans_key] = spans[::-1]
        elif text is None:
            doc.set_ents([], default="missing")
        else:
            doc.set_ents(spans)
        docs.append(doc)
    DocBin(docs=docs).to_disk(path)
    return str(path)


run = partial(commands.run, "inspect", "--grammar")


@pytest.mark.parametrize("key", [None, "sc"])
def test_what_is_printed_is_read_by_the_component(tmp_path, key):
    label = "the price$ (net)"
    texts = [("author", "title", label)] * 98 + [("title", "author")] * 2
    path = write(tmp_path / "texts.spacy", texts, key)
    chosen = [] if key is None else ["--spans-key", key]
    done = run(path, "--share", 0.98, *chosen, "--output", tmp_path / "new" / "found.json")
    assert "98.0% of the texts keep it" in done
    assert "(1 of 1)" in done and "     2  title author" in done
    name = "hocrf" if key is None else "hocrf_spans"
    printed = done[: done.index("98.0%")]
    config = Config().from_str(f"[components]\n\n[components.{name}]\n{printed}")
    block = config["components"][name]["constraints"]
    [rule] = registry.resolve({"known": block})["known"].templates
    assert rule.expression == f'author title "{label}"' and rule.price == "learnt"
    assert (
        rule.expression == json.loads((tmp_path / "new" / "found.json").read_text())["expression"]
    )
    nlp = spacy.blank("en")
    settings = {"constraints": block, **({} if key is None else {"spans_key": key})}
    assert nlp.add_pipe(name, config=settings).constraints.rules["record"] == rule


def test_texts_that_are_annotated_in_part_are_not_looked_at(tmp_path):
    path = write(tmp_path / "texts.spacy", [("a", "b")] * 3 + [None])
    assert 'expression = "a b"' in run(path, "--share", 1.0)


def test_a_grammar_that_says_little_is_said_to(tmp_path):
    texts = [(), ("a",), ("b",), ("a", "b"), ("a", "a")]
    output = run(write(tmp_path / "texts.spacy", texts), "--share", 1.0)
    assert 'expression = "a* b?"' in output and "So it says little" in output
    lost = write(
        tmp_path / "lost.spacy", [("a", "b", "a"), ("b", "a", "b", "b"), ("a",), ("b",), ()]
    )
    output = run(lost, "--share", 1.0)
    assert "There is no grammar to propose" in output and "expression" not in output


@pytest.mark.parametrize(
    "texts, arguments, code",
    [
        ([("a",)], ["--spans-key", "sc"], "H073"),
        ([None], [], "H073"),
        ([()], [], "H153"),
        ([("a",)], ["--output", "page.html"], "H074"),
    ],
)
def test_what_cannot_be_read_is_an_error(tmp_path, monkeypatch, texts, arguments, code):
    monkeypatch.chdir(tmp_path)
    assert code in run(write(tmp_path / "texts.spacy", texts), *arguments, code=1)
    assert not (tmp_path / "page.html").exists()
