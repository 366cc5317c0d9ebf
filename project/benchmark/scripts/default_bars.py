"""Bars 12 to 15: what users run. The component is `nlp.add_pipe("hocrf")` as it is, with scores; its
peer has the same observations, made by a plain loop over the words (user_features.py).
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import models
import peers
import spacy
from checks import NotTheSame
from compare import CONLL, CORA, Setting, fresh_docs
from corpora import Sentence, concatenate
from measure import Work, latencies, take_turns
from models import Spans, chunks_of, runs
from process_bars import child
from results import Outcome, Row, megabytes, microseconds, not_measured, speed
from spacy.language import Language
from user_features import features

MIN_TOKENS, MAX_TOKENS = 15, 25  # tokens of a text
DIFFERENCE = 0.01  # of the numbers of observations, at most: not all flags are spaCy's
DEFAULT = "default, scores"
DESCRIBED = {"CRFsuite": "CRFsuite, tokenizer, features", "ner": "ner, tokenizer"}


@dataclass(frozen=True)
class Systems:
    """Three that were trained on the same sentences for a while: their speed hardly depends on
    their weights.
    """

    ours: Language
    ner: Language
    tagger: peers.pycrfsuite.Tagger
    check: str


def trained(setting: Setting) -> Systems:
    """The default component, `ner`, and CRFsuite with a user's features."""
    sentences = setting.corpora.chunks()
    ours = models.default(sentences, setting.default_iterations)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        observed = (features(words) for words, _ in sentences)
        labels = [labels for _, labels in sentences]
        peers.train_crfsuite(observed, labels, setting.peer_iterations, path)
        tagger = peers.open_tagger(path)
    check = agree_in_observations(ours, sentences[: setting.some_sentences])
    return Systems(ours, peers.train_ner(sentences, setting.ner_steps), tagger, check)


def agree_in_observations(nlp: Language, sentences: Sequence[Sentence]) -> str:
    """Compare the numbers of observations at tokens.

    nlp (Language): the default component.
    RAISES (NotTheSame): if the user's features are more or fewer.
    """
    docs = fresh_docs(nlp, sentences)
    tokens = sum(map(len, docs))
    ours = models.count_observations(models.component(nlp), docs) / tokens
    theirs = sum(len(row) for words, _ in sentences for row in features(words)) / tokens
    counts = f"{ours:.2f} observations a token, {theirs:.2f} of CRFsuite's user"
    if abs(ours - theirs) > DIFFERENCE * theirs:
        raise NotTheSame(counts)
    return f"{counts}; ours are at starts and ends of segments, too"


def bar_12(setting: Setting) -> Outcome:
    """`nlp(text)`, text by text."""
    systems = trained(setting)
    make_doc = spacy.blank("en").make_doc
    joined = [" ".join(words[: setting.cut]) for words, _ in setting.corpora.chunks("test")]
    texts = [text for text in joined if MIN_TOKENS <= len(make_doc(text)) <= MAX_TOKENS]
    texts = texts[: setting.texts]
    sides: dict[str, Callable[[str], object]] = {
        "CRFsuite": lambda text: systems.tagger.tag(
            features([token.text for token in make_doc(text)])
        ),
        "ner": systems.ner,
        "ours": systems.ours,
    }
    seconds = latencies(sides, texts, (50, 99), setting.rounds)
    what = f"nlp(text), {DEFAULT}, tokenizer, {MIN_TOKENS} to {MAX_TOKENS} tokens, {CONLL}"
    limits = {"CRFsuite": (1.5, 1.0), "ner": (0.2, None)}
    rows = []
    for peer, (must, aim) in limits.items():
        for name, ours, theirs in zip(
            ("median", "99th percentile"), seconds["ours"], seconds[peer]
        ):
            row = Row(
                f"{what}: {name}",
                microseconds(ours),
                f"{DESCRIBED[peer]} {microseconds(theirs)}",
                ours / theirs,
            )
            if name == "median":
                row.must, row.aim = must, aim
            rows.append(row)
    return Outcome(rows, checks=[systems.check, f"{len(texts):,} texts"])


def bar_13(setting: Setting) -> Outcome:
    """`nlp.pipe` over tokenised Docs."""
    systems = trained(setting)
    test = setting.corpora.chunks("test")[:1_000]
    sides: dict[str, Callable[[], Work]] = {
        "CRFsuite": partial(tagging, systems.tagger, test),
        "ner": partial(piping, systems.ner, test),
        "ours": partial(piping, systems.ours, test),
    }
    seconds = take_turns(sides, setting.rounds)
    what = f"nlp.pipe, {DEFAULT}, tokenised Docs, {CONLL}"
    limits = {"CRFsuite": ("CRFsuite, features and tagging", 6.0, 10.0), "ner": ("ner", 30.0, None)}
    rows = [
        Row(
            what,
            speed(seconds["ours"]),
            f"{named} {speed(seconds[peer])}",
            seconds[peer] / seconds["ours"],
            must=must,
            aim=aim,
            at_least=True,
        )
        for peer, (named, must, aim) in limits.items()
    ]
    return Outcome(rows, checks=[systems.check])


def bar_14(setting: Setting) -> Outcome:
    """The same tokens in Docs of 100 and in long ones."""
    sentences = setting.corpora.chunks()
    nlp = models.default(sentences, setting.default_iterations)
    parts = {tokens: concatenate(sentences, tokens) for tokens in (100, *setting.long_documents)}
    sides = {tokens: partial(piping, nlp, part) for tokens, part in parts.items()}
    seconds = take_turns(sides, setting.rounds)
    rows = [
        Row(
            f"nlp.pipe, {DEFAULT}, tokenised Docs of {tokens:,} tokens, {CONLL}",
            speed(seconds[tokens]),
            f"Docs of 100: {speed(seconds[100])}",
            seconds[100] / seconds[tokens],
            must=0.8,
            at_least=True,
        )
        for tokens in setting.long_documents
    ]
    counts = (f"{len(part):,} of {tokens:,} tokens and more" for tokens, part in parts.items())
    return Outcome(rows, checks=[f"Docs: {', '.join(counts)}"])


def bar_15(setting: Setting) -> Outcome:
    """Whole processes, each once: `spacy train` as in docs/start.md, and CRFsuite to its own stop."""
    chunks = _whole(CONLL, setting.corpora.chunks(), chunks_of, 0.25, 1.2)
    references = _whole(CORA, setting.corpora.references(), runs, 1.0, None)
    return Outcome(chunks.rows + references.rows, checks=chunks.checks + references.checks)


def _whole(
    corpus: str,
    sentences: Sequence[Sentence],
    spans_of: Callable[[list[str]], Spans],
    time_limit: float,
    memory_limit: float | None,
) -> Outcome:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        arguments = models.write_corpus(folder, sentences, spans_of)
        ours = child("train", *arguments)
        streamed = child("train", *models.stream_corpus(folder, arguments))
        with (folder / "corpus.txt").open("w", encoding="utf8") as file:
            for words, labels in sentences:
                file.writelines(f"{word} {label}\n" for word, label in zip(words, labels))
                file.write("\n")
        theirs = child("user", str(folder / "corpus.txt"), str(folder / "model"))
    what = f"spacy train, default, whole process, {corpus}"
    took = [f"{side['seconds']:.1f} s" for side in (ours, theirs)]
    rows = [Row(f"{what}: CPU time", *took, ours["seconds"] / theirs["seconds"], must=time_limit)]
    if ours["peak"] is None:
        why = "there is no /proc/self/status"
        rows.append(not_measured(f"{what}: peak memory", why, memory_limit))
    else:
        for side, how in ((ours, ""), (streamed, ", corpus streamed")):
            sizes = [megabytes(each["peak"]) for each in (side, theirs)]
            ratio = side["peak"] / theirs["peak"]
            rows.append(Row(f"{what}{how}: peak memory", *sizes, ratio, must=memory_limit))
    check = f"{corpus}: config of `hocrf config`; CRFsuite stopped after {theirs['iterations']} iterations"
    return Outcome(rows, checks=[check])


def tagging(tagger: peers.pycrfsuite.Tagger, sentences: Sequence[Sentence]) -> Work:
    """CRFsuite's turn: a user's features and tags of all sentences."""
    return lambda: sum(len(tagger.tag(features(words))) for words, _ in sentences)


def piping(nlp: Language, sentences: Sequence[Sentence]) -> Work:
    """A pipeline's turn: `nlp.pipe` over new Docs of these words."""
    docs = fresh_docs(nlp, sentences)
    return lambda: sum(len(doc) for doc in nlp.pipe(docs))
