"""Models that an earlier version has saved are loaded, and say what they said."""

from pathlib import Path

import pytest
import spacy
import srsly

FOLDERS = sorted(path for path in Path(__file__).with_name("models").glob("*/*") if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_old_model_says_what_it_said(folder):
    saved = srsly.read_json(folder.parent / "found.json")
    nlp = spacy.load(folder, exclude=["tokenizer"])
    [name] = nlp.pipe_names
    for text, spans in zip(saved["texts"], saved["spans"][folder.name], strict=True):
        doc = nlp(text)
        found = doc.ents if name == "hocrf" else doc.spans["sc"]
        assert [[s.start, s.end, s.label_] for s in found] == [span[:3] for span in spans]
        # other processors add in another order
        chances = [span._.hocrf_score for span in found]
        assert chances == pytest.approx([span[3] for span in spans], abs=1e-6)


def test_there_are_old_models():
    assert {path.name for path in FOLDERS} >= {"default", "rich"}
