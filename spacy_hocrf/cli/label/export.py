"""Write the annotation as files for `spacy train` and for other tools, and the model."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spacy.language import Language
from spacy.tokens import Doc

from spacy_hocrf.annotation.best_readings import ScoredSpan
from spacy_hocrf.cli.config import fit_to_texts, starting_config
from spacy_hocrf.cli.convert.docs import docs_of
from spacy_hocrf.cli.convert.records import ConvertedText, SourceFile
from spacy_hocrf.cli.corpora import train_and_dev
from spacy_hocrf.cli.files import write_docs
from spacy_hocrf.cli.label.readings import TokenPlaces
from spacy_hocrf.cli.label.session import TextToLabel
from spacy_hocrf.cli.options import write_config
from spacy_hocrf.cli.tasks import AnnotationTask, ending_of, write_tasks

__all__ = ["Export"]

HEADER = """\
# Written by `python -m spacy hocrf label`. It trains a model from the annotation beside it:
#
#     python -m spacy train {path} --output trained

"""


@dataclass(frozen=True)
class Export:
    """Writes `train.spacy`, `dev.spacy`, `config.cfg` and `model`, replacing existing ones.

    folder (Path): output folder. docs (Sequence[Doc]): the texts, without annotation.
    model (Callable[[], Optional[Language]]): returns the pipeline trained on all annotation, None if there is
        none. RAISES (RuntimeError): if training failed.
    nlp (Language): gives the language of the config. vectors (Optional[str]): its pipeline with word vectors.
    spans_key (Optional[str]): key of `doc.spans` for the annotation; None for `doc.ents`.
    tool (Optional[str]): tool of `tasks.FORMATS` for which to write `annotated.jsonl` or `annotated.json`,
        too.
    """

    folder: Path
    docs: Sequence[Doc]
    model: Callable[[], Language | None]
    nlp: Language
    vectors: str | None = None
    spans_key: str | None = None
    tool: str | None = None

    def __call__(self, texts: Sequence[TextToLabel]) -> str:
        """Write the annotated texts. RETURNS (str): a message that lists the files."""
        chosen = [i for i, text in enumerate(texts) if text.spans is not None]
        if not chosen:
            return "Nothing is annotated yet, so nothing is written."
        parts = train_and_dev(["".join(texts[i].words) for i in chosen])
        train, dev = ([chosen[n] for n in part] for part in parts)
        self._write(texts, train, "train.spacy")
        self._write(texts, dev, "dev.spacy")
        files = f"train.spacy ({len(train)} texts), dev.spacy ({len(dev)})"
        if any(texts[i].spans for i in train):
            self._write_config(self.folder / "config.cfg")
            files += ", config.cfg"
        else:
            files += ", no config.cfg (none of the texts for training has a span)"
        files += self._write_model()
        if self.tool is not None:
            name = f"annotated{ending_of(self.tool)}"
            whole = [texts[i] for i in chosen if not texts[i].unknown]
            write_tasks(self.folder / name, [_task(text) for text in whole], self.tool)
            files += f", {name} ({len(whole)} texts)"
        return f"Written to {self.folder}: {files}."

    def _write(self, texts: Sequence[TextToLabel], chosen: Sequence[int], name: str) -> None:
        records = (
            ConvertedText(
                SourceFile().at(f"text {i + 1}"),
                text="".join(texts[i].words),
                spans=texts[i].spans,
                unknown=texts[i].unknown,
                id=texts[i].id,
                doc=self.docs[i],
            )
            for i in chosen
        )
        into = self.spans_key or "ents"
        docs = docs_of(records, self.nlp, into=into, align="expand")
        write_docs(self.folder / name, docs)

    def _write_model(self) -> str:
        part, whole = self.folder / "model.part", self.folder / "model"
        try:
            model = self.model()
        except RuntimeError as error:  # the page shows it, too
            return f", and no model ({error})"
        if model is None:
            return ""
        shutil.rmtree(part, ignore_errors=True)
        model.to_disk(part)
        shutil.rmtree(whole, ignore_errors=True)
        part.rename(whole)
        return ", model"

    def _write_config(self, path: Path) -> None:
        config = starting_config(self.nlp.vocab.lang, self.vectors, self.spans_key)
        train = path.with_name("train.spacy")
        fit_to_texts(config, train)
        for name in ("train", "dev"):
            config["paths"][name] = path.with_name(f"{name}.spacy").as_posix()
        write_config(config, path, HEADER.format(path=path.as_posix()))


def _task(text: TextToLabel) -> AnnotationTask:
    tokens = TokenPlaces(text.words).tokens
    spans = [ScoredSpan(*tokens(start, end), label, 1.0) for start, end, label in text.spans or ()]
    return AnnotationTask(text.words, spans, [], {"id": text.id} if text.id else {})
