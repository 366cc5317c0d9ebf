"""What is compared: `nlp.add_pipe("hocrf")` with its default settings, and what it may be told beside
its training texts.

A kind of knowledge is a class here and a line in KINDS.
"""

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import minilm
import spacy
from outside import full_name
from spacy.language import Language
from spacy.tokens import Doc, Span
from spacy.training import Example
from spacy.vocab import Vocab

sys.path.append(str(Path(__file__).parents[2] / "defaults" / "scripts"))
from readers import Text
from systems import Predict, make_doc

sys.path.append(str(Path(__file__).parents[2]))
from common.columns import Spans
from common.training import learn

ASSETS = Path(__file__).parents[1] / "assets"
DEFAULT = "default"
REPEATS = 5
"""Predictions that are timed; the fastest counts."""

Words = list[str]


class Knowledge:
    """What a pipeline is told; this is nothing.

    outside (Language): the pipeline that knows it.
    """

    blocks: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Blocks of features beside the default ones."""

    def __init__(self, outside: Language) -> None:
        self.outside = outside

    def read(self, texts: Iterable[Words]) -> None:
        """Prepare for some texts, which may be shown after that."""

    def equip(self, vocab: Vocab) -> None:
        """Give a vocabulary what is known of words."""

    def show(self, doc: Doc) -> None:
        """Give a Doc what is known of it."""

    def report(self) -> dict[str, Any]:
        """What the results should say."""
        return {}

    def saved(self) -> dict[str, int]:
        """What is saved beside the component, and its bytes; what several need has one name."""
        return {}


class WordVectors(Knowledge):
    """Vectors of words: the default features score them where there are some."""

    def equip(self, vocab: Vocab) -> None:
        vocab.vectors = self.outside.vocab.vectors

    def saved(self) -> dict[str, int]:
        return {"vocabulary": bytes_of(self.outside.vocab)}


class ForeignSpans(Knowledge):
    """The entities that the other pipeline finds. It reads every text once, however many systems are
    shown them.
    """

    blocks: ClassVar = {"ner": {"@misc": "spacy-hocrf.Spans.v1", "source": "spans.ner"}}
    key = "ner"

    def __init__(self, outside: Language) -> None:
        super().__init__(outside)
        self.found: dict[tuple[str, ...], Spans] = {}
        self.tokens, self.seconds = 0, 0.0

    def read(self, texts: Iterable[Words]) -> None:
        new = list({tuple(words): None for words in texts if tuple(words) not in self.found})
        docs = [Doc(self.outside.vocab, words=list(words)) for words in new]
        begun = time.process_time()
        for words, doc in zip(new, self.outside.pipe(docs), strict=True):
            self.found[words] = [(ent.start, ent.end, ent.label_) for ent in doc.ents]
        self.seconds += time.process_time() - begun
        self.tokens += sum(map(len, new))

    def show(self, doc: Doc) -> None:
        spans = self.found[tuple(token.text for token in doc)]
        doc.spans[self.key] = [Span(doc, *span) for span in spans]

    def report(self) -> dict[str, Any]:
        """`reading`, tokens of a CPU second of the other pipeline."""
        return {"reading": round(self.tokens / self.seconds)}

    def saved(self) -> dict[str, int]:
        """Its encoder has the vectors."""
        components = bytes_of(self.outside, exclude=["vocab"])
        return {"other components": components, "vocabulary": bytes_of(self.outside.vocab)}


class WordLists(ForeignSpans):
    """Lists that anybody has: names of countries and regions, languages, currencies, months and days, as
    Babel has them in English. A span_ruler finds the names, whatever their case.
    """

    blocks: ClassVar = {
        "lists": {
            "@misc": "spacy-hocrf.Spans.v1",
            "source": "spans.lists",
            "what": ["MATCH", "TOKENS"],
        }
    }
    key = "lists"

    def __init__(self, outside: Language) -> None:
        super().__init__(spacy.blank("en", meta={"name": "lists"}))
        settings = {"spans_key": None, "annotate_ents": True, "phrase_matcher_attr": "LOWER"}
        self.outside.add_pipe("span_ruler", config=settings).add_patterns(
            [
                {"label": label, "pattern": name}
                for label, names in word_lists().items()
                for name in sorted(names)
            ]
        )

    def saved(self) -> dict[str, int]:
        return {"lists": bytes_of(self.outside, exclude=["vocab"])}


class FrozenEncoder(Knowledge):
    """What an encoder makes of every token, in `doc.tensor`. It reads every text once."""

    blocks: ClassVar = {"minilm": {"@misc": "spacy-hocrf.Vectors.v1", "source": "tensor"}}

    def __init__(self, outside: Language) -> None:
        super().__init__(outside)
        self.encoder = spacy.blank("en")
        folder = str(minilm.encoder_folder(ASSETS))
        self.encoder.add_pipe("hocrf_encoder", config={"folder": folder})
        self.found: dict[tuple[str, ...], Any] = {}
        self.tokens, self.seconds = 0, 0.0

    def read(self, texts: Iterable[Words]) -> None:
        new = list({tuple(words): None for words in texts if tuple(words) not in self.found})
        docs = [Doc(self.encoder.vocab, words=list(words)) for words in new]
        begun = time.process_time()
        for words, doc in zip(new, self.encoder.pipe(docs), strict=True):
            self.found[words] = doc.tensor
        self.seconds += time.process_time() - begun
        self.tokens += sum(map(len, new))

    def show(self, doc: Doc) -> None:
        doc.tensor = self.found[tuple(token.text for token in doc)]

    def report(self) -> dict[str, Any]:
        """`encoding`, tokens of a CPU second of the encoder."""
        return {"encoding": round(self.tokens / self.seconds)} if self.tokens else {}

    def saved(self) -> dict[str, int]:
        return {"encoder": bytes_of(self.encoder.get_pipe("hocrf_encoder"))}


KINDS: Mapping[str, Callable[[Language], Knowledge]] = {
    "vectors": WordVectors,
    "spans": ForeignSpans,
    "lists": WordLists,
    "minilm": FrozenEncoder,
}


@dataclass(frozen=True)
class Informed:
    """A component `hocrf` that is told something, trained until its training stops."""

    told: Sequence[Knowledge] = ()

    @property
    def settings(self) -> Mapping[str, Any]:
        """The whole config, what is told, and by which pipeline."""
        sources = [(type(kind).__name__, full_name(kind.outside)) for kind in self.told]
        return {**self.pipeline().get_pipe_config("hocrf"), "told": sources}

    def pipeline(self) -> Language:
        """It is not trained."""
        nlp = spacy.blank("en")
        for kind in self.told:
            kind.equip(nlp.vocab)
        nlp.add_pipe("hocrf", config=config_of(self.told))
        return nlp

    def train(self, texts: Sequence[Text]) -> tuple[Predict, dict[str, Any]]:
        """Add the training's `status`, the component's `choice` of sigma and order, its `bytes` on disk,
        those of what is saved `beside` it, and what is told says; when it predicts, `speed` as well, tokens
        of a CPU second with scores. Other pipelines' work is in no time.
        """
        for kind in self.told:
            kind.read(text.words for text in texts)
        nlp = self.pipeline()
        examples = [
            Example(self.shown(nlp.vocab, text.words), make_doc(nlp.vocab, text)) for text in texts
        ]
        begun = time.process_time()
        run = learn(nlp, examples)
        facts = {
            "status": run.status,
            "choice": asdict(nlp.get_pipe("hocrf").choice),
            "learning": round(time.process_time() - begun, 2),
            "bytes": bytes_of(nlp.get_pipe("hocrf")),
            "beside": sum({k: n for kind in self.told for k, n in kind.saved().items()}.values()),
        }
        return self.predictor(nlp, facts), facts

    def shown(self, vocab: Vocab, words: Words) -> Doc:
        """A Doc with what is told of it."""
        doc = Doc(vocab, words=words)
        for kind in self.told:
            kind.show(doc)
        return doc

    def predictor(self, nlp: Language, facts: dict[str, Any]) -> Predict:
        """The entities of a pipeline; what is measured goes into `facts`."""

        def predict(texts: Sequence[Words]) -> list[Spans]:
            for kind in self.told:
                kind.read(texts)
                facts.update(kind.report())
            times = []
            for _ in range(REPEATS):
                docs = [self.shown(nlp.vocab, words) for words in texts]
                begun = time.process_time()
                docs = list(nlp.pipe(docs))
                times.append(time.process_time() - begun)
            facts["speed"] = round(sum(map(len, docs)) / min(times))
            return [[(ent.start, ent.end, ent.label_) for ent in doc.ents] for doc in docs]

        return predict


def make_informed(names: Iterable[str], outside: Language) -> dict[str, Informed]:
    """Systems by their names.

    names (Iterable[str]): DEFAULT, one of KINDS, or several of these with "+" between them.
    RAISES (ValueError): if there is none of a name.
    """
    parts = {name: [] if name == DEFAULT else name.split("+") for name in names}
    wanted = dict.fromkeys(part for each in parts.values() for part in each)
    if unknown := [part for part in wanted if part not in KINDS]:
        known = ", ".join([DEFAULT, *KINDS])
        raise ValueError(f"There is no system {unknown[0]!r}. Known: {known}")
    kinds = {name: KINDS[name](outside) for name in wanted}
    return {name: Informed([kinds[part] for part in each]) for name, each in parts.items()}


def bytes_of(something: Any, **options: Any) -> int:
    """How large it is on disk. It has a `to_disk`, which takes the options."""
    with TemporaryDirectory() as folder:
        something.to_disk(Path(folder) / "saved", **options)
        return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def word_lists() -> dict[str, set[str]]:
    """English names by the list that has them."""
    from babel import Locale  # needs the extra `knowledge`

    english = Locale("en")
    widths = ("wide", "abbreviated")
    return {
        "PLACE": set(english.territories.values()),
        "LANGUAGE": set(english.languages.values()),
        "CURRENCY": set(english.currencies.values()),
        "MONTH": {name for width in widths for name in english.months["format"][width].values()},
        "DAY": {name for width in widths for name in english.days["format"][width].values()},
    }


def config_of(told: Sequence[Knowledge]) -> dict[str, Any]:
    """What differs from the default config."""
    kinds = [type(kind) for kind in told]
    blocks = {name: dict(block) for kind in kinds for name, block in kind.blocks.items()}
    if not blocks:
        return {}
    blocks["window"] = {"@misc": "spacy-hocrf.Window.v1"}
    return {"model": {"features": {"@misc": "spacy-hocrf.Features.v1", "*": blocks}}}
