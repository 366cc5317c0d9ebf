"""`python -m spacy hocrf debug`: check annotated texts for a component before it is trained, and estimate the
time and memory that training will take, measured on some of them.
"""

import tracemalloc
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import Any

from spacy.cli._util import import_code
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Corpus, Example
from spacy.training.corpus import walk_corpus
from spacy.util import load_model_from_config
from thinc.api import Config
from typer import Context
from wasabi import msg

from spacy_hocrf.annotation.gold import Gold
from spacy_hocrf.annotation.readers import predicted_of
from spacy_hocrf.annotation.targets import SpansTarget, TagsTarget, Target
from spacy_hocrf.cli.checking import (
    MAX_LOST,
    CorpusFacts,
    LabelFacts,
    Repeats,
    Seen,
    cut_docs,
    facts_of,
    known_texts,
    repeats_of,
    seen_in,
)
from spacy_hocrf.cli.corpora import read_corpus
from spacy_hocrf.cli.options import Code, Component, ConfigPath, overridden
from spacy_hocrf.cli.pipelines import begin, component_of, settled
from spacy_hocrf.cli.tables import as_table, percent
from spacy_hocrf.pipeline.component import SegmentationPipe

__all__ = ["Checked", "Cost", "check", "cost_of", "debug_cli"]

MAX_LABELS = 40
"""Number of labels that are printed."""
MIN_TEXTS = 5
"""Number of texts from which on a label can be learnt and scored."""
MIN_UNMARKED = 5
"""Number of phrases from which on missing annotation is reported."""
LONG, LONGER = 10, 3
"""A span is suspect if it has at least LONG tokens and is LONGER times as long as 99 % of the spans."""
UNMARKED = 0.06
"""Share of annotated phrases that also occur where nothing is annotated: at most 0.05 in 30 corpora of 100 or
more texts, from ten tasks of project/defaults. If half or more of the spans are removed, and then the texts
without any, it is 0.06 and more, except for tweets, in which names are rarely repeated.
"""
STRANGE_WORDS, STRANGE_SPANS = 1.5, 1.3
"""How many times more words, and spans, are new in the development texts than in a held-out training text
before the texts are reported as unlike. Halves of 11 corpora have 0.9 to 1.1 times as many. Any two genres of
GUM have 1.5 to 3.5 times as many new words, and the dev part of WNUT-17, whose names are new by design, 1.4
times as many new spans.
"""
MAX_PHRASES = 3
"""Number of phrases given as examples."""
MIN_COMPARED = 20
"""Number of texts, and of spans, from which on shares of new ones are compared."""
SAMPLE, SAMPLED_TOKENS = 1_000, 250_000
"""Largest numbers of texts, and of tokens in them, on which cost is measured."""
LONG_EVALUATION = 1.0
"""Seconds from which on an evaluation of the objective is measured only once."""


@dataclass(frozen=True)
class Cost:
    """Time and memory that a component needs to learn some texts."""

    texts: int
    tokens: int
    order: int
    features: int
    patterns: int
    states: int
    seconds: float | None  # one evaluation of the objective; None for trainers without one
    kept: int  # bytes of the model and of the data that it keeps of the texts
    passing: int  # peak of further bytes during initialization and evaluation
    threads: int
    warnings: tuple[str, ...]  # messages of warnings

    def seconds_for(self, tokens: int) -> float | None:
        """Seconds of one evaluation on a corpus with this number of tokens."""
        return None if self.seconds is None else self.seconds * tokens / self.tokens

    def bytes_for(self, tokens: int) -> float:
        """Bytes for a corpus with this number of tokens: an upper bound, since features repeat."""
        return self.kept * tokens / self.tokens + self.passing


@dataclass(frozen=True)
class Checked:
    """Findings about a component and its corpora."""

    name: str
    train: CorpusFacts
    dev: CorpusFacts
    shared: int  # texts of the development corpus that are in the training corpus, too
    # the development corpus in the training texts; each training text in the others
    seen: tuple[Seen, Seen]
    notes: tuple[str, ...]  # possible mistakes
    cost: Cost
    examples: int  # bytes of the training corpus that spaCy keeps; 0 if it is streamed


def debug_cli(
    ctx: Context,
    config_path: ConfigPath,
    component: Component = None,
    code: Code = None,
) -> None:
    """Check a config's annotated texts before training: labels, lost spans, settings without effect, and the
    time and memory that training will take.

    Settings are overridden as in `spacy train`, by --paths.train for instance. Nothing is trained.
    """
    import_code(code)
    msg.text("Reading the texts, and measuring what training will take …")
    _print(check(overridden(config_path, ctx), component))


def check(config: Config, component: str | None = None) -> Checked:
    """Check the corpora of a config, and measure the cost of training on some of the texts.

    config (Config): not interpolated.
    component (Optional[str]): name of the component; None for the only one of ours.
    RAISES (ValueError): H204 for an unknown component, H049 or H050 for a corpus without texts or labels,
        and any other error of `spacy train` at its start.
    """
    nlp = load_model_from_config(config, auto_fill=True)
    name, pipe = component_of(nlp, component)
    train, kept_bytes = _read_train(nlp)
    scored = _read_dev(nlp)
    dev = scored or []
    facts, facts_of_dev = facts_of(pipe.gold, train), facts_of(Gold(pipe.target), dev)
    notes = [
        *_corpus_notes(facts, "training", nlp.vocab.lang),
        *_corpus_notes(facts_of_dev, "development", nlp.vocab.lang),
    ]
    if scored is not None and not scored:
        notes.append("The development corpus has no texts: every score of `spacy train` will be 0.")
    notes += _label_notes(facts, facts_of_dev)
    if not (isinstance(pipe.target, TagsTarget) or pipe.gold.positives_only):
        notes += _repeat_notes(repeats_of(pipe.target, train))
    seen = seen_in(pipe.target, train, dev), seen_in(pipe.target, train)
    if min(len(train), len(dev)) >= MIN_COMPARED:
        notes += _kind_notes(*seen)
    groups = isinstance(pipe.target, SpansTarget) or bool(pipe.gold.teachers)
    for corpus, docs in _given_tokens(config, nlp):
        notes += _token_notes(nlp, pipe.target, corpus, docs)
        notes += _sentence_notes(corpus, docs, groups)
    cost = cost_of(config, name, train)
    shared, notes = known_texts(dev, train), [*notes, *cost.warnings]
    return Checked(name, facts, facts_of_dev, shared, seen, tuple(notes), cost, kept_bytes)


def _read_train(nlp: Language) -> tuple[Sequence[Example], int]:
    """Read the training corpus; return it and the bytes that `spacy train` keeps of it."""
    tracemalloc.start()
    try:
        train = read_corpus(nlp)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    streamed = nlp.config.interpolate()["training"]["max_epochs"] == -1
    return train, 0 if streamed else kept


def _read_dev(nlp: Any) -> Sequence[Example] | None:
    """Read the development corpus; None if it has no path."""
    try:
        return read_corpus(nlp, "dev")
    except ValueError as error:
        if "E913" not in str(error):  # the path is null
            raise
        return None


def _corpus_notes(facts: CorpusFacts, part: str, lang: str) -> list[str]:
    """Report texts and annotation of a corpus that training cannot use.

    lang (str): language of the tokenizer.
    """
    of_texts = f"of {facts.texts} {part} texts"
    counts = {
        f"{of_texts} have no annotation for the component.": facts.unannotated,
        f"{of_texts} are not annotated: teachers say what is in them.": facts.taught,
        f"{of_texts} are annotated in part: training sums over what unknown tokens could be, and scores "
        "leave them out.": facts.partial,
        f"{of_texts} have the words of an earlier one, but are annotated otherwise. One of the two is wrong, "
        "or it takes more than the text to tell: see hocrf doubt.": facts.contradicted,
        f"{of_texts} are near copies of others, equal but for names and numbers. Scores are too high where "
        "such texts are on both sides: learnt and scored.": facts.near_copies,
        _lost(facts, part, lang): len(facts.lost),
        f"{part} spans overlap longer ones and are left out: a segmentation cannot overlap.": (
            facts.overlapping
        ),
        f"{of_texts} do not tell where spaces are: they are read as they are tokenized, and nlp(text) will "
        "see other texts. Write the file from Docs with spaces.": facts.unknown_spaces,
        f"{part} spans begin or end with white space, which is never part of what is predicted, nor of what "
        "is scored.": facts.blank_ends,
    }
    return [f"{count} {what}" for what, count in counts.items() if count]


def _lost(facts: CorpusFacts, part: str, lang: str) -> str:
    """Say what to do about spans that fit no tokens; "" if there are none."""
    if not facts.lost:
        return ""
    share, example = len(facts.lost) / facts.annotated, facts.lost[0]
    tokens = " · ".join(example.words) or "no token"
    advice = (
        "Correct the annotation, or the tokenizer."
        if share < MAX_LOST
        else f"Is their language that of lang in [nlp], {lang}? If texts come tokenized later, too, set "
        "gold_preproc = true in [corpora.*]."
    )
    return (
        f"of {facts.annotated} {part} spans ({percent(share)} %) fit no tokens, such as '{example.text}' "
        f"({example.label}) where the tokens are {tokens}. {advice}"
    )


def _repeat_notes(repeats: Repeats) -> Iterator[str]:
    """Report if annotation seems to be missing."""
    n = len(repeats.unmarked)
    if n >= MIN_UNMARKED and n > UNMARKED * repeats.phrases:
        examples = "', '".join(repeats.unmarked[:MAX_PHRASES])
        yield (
            f"{n} of {repeats.phrases} annotated phrases, such as '{examples}', also stand where nothing is "
            f"annotated; completely annotated corpora have less than {UNMARKED:.0%}. If spans are missing, "
            "set positives_only = true in [components.*], and ratio in its trainer."
        )


def _label_notes(train: CorpusFacts, dev: CorpusFacts) -> Iterator[str]:
    """Report labels that cannot be learnt, and spans that are probably wrong."""
    rare = [label for label, facts in sorted(train.labels.items()) if facts.texts < MIN_TEXTS]
    if rare:
        yield f"Labels in fewer than {MIN_TEXTS} training texts: {', '.join(rare)}."
    unseen = sorted(dev.labels.keys() - train.labels.keys())
    if unseen:
        yield f"Labels of the development corpus that will never be found: {', '.join(map(repr, unseen))}."
    for label, facts in sorted(train.labels.items()):
        if not (lengths := sorted(facts.lengths.elements())):
            continue
        usual = lengths[min(len(lengths) - 1, int(0.99 * len(lengths)))]
        if facts.longest >= LONG and facts.longest > LONGER * usual:
            yield (
                f"The longest '{label}' has {facts.longest} tokens, 99 % have {usual} at most. Is its "
                "annotation right?"
            )


def _kind_notes(dev: Seen, train: Seen) -> Iterator[str]:
    """Report if development texts are unlike training texts. dev, train: shares seen in training texts."""
    pairs = [("words", dev.words, train.words, STRANGE_WORDS)]
    if min(dev.n_spans, train.n_spans) >= MIN_COMPARED:
        pairs.append(("spans", dev.spans, train.spans, STRANGE_SPANS))
    differences = [
        f"{percent(1 - seen_dev)} % of their {name} are new (of a training text's, to the others: "
        f"{percent(1 - seen_train)} %)"
        for name, seen_dev, seen_train, factor in pairs
        if 1 - seen_dev > factor * (1 - seen_train)
    ]
    if differences:
        yield (
            f"The development texts are unlike the training texts: {', '.join(differences)}. What to do: "
            "docs/troubleshooting.md#texts-of-another-kind."
        )


def _given_tokens(config: Config, nlp: Language) -> Iterator[tuple[str, list[Doc]]]:
    """Yield name and Docs of each corpus that is read with its own tokens (`gold_preproc`)."""
    for name, block in config.interpolate().get("corpora", {}).items():
        if isinstance(block, dict) and block.get("gold_preproc") and block.get("path"):
            path = Path(block["path"])
            yield name, list(Corpus(path).read_docbin(nlp.vocab, walk_corpus(path, ".spacy")))


def _token_notes(nlp: Language, target: Target, name: str, docs: Sequence[Doc]) -> Iterator[str]:
    """Report if many spans of a corpus with its own tokens do not fit the tokens of nlp(text)."""
    examples = (Example(predicted_of(nlp, doc, gold_preproc=False), doc) for doc in docs[:SAMPLE])
    facts = facts_of(Gold(target), examples)
    if len(facts.lost) > MAX_LOST * facts.annotated:
        lost = facts.lost[0]
        yield (
            f"gold_preproc = true in [corpora.{name}] keeps tokens that nlp(text) does not have: "
            f"{len(facts.lost)} of {facts.annotated} spans fit none of those, such as '{lost.text}' "
            f"({lost.label}) where they are {' · '.join(lost.words)}. The model is for texts that come "
            f"tokenized so. If they are in another language than lang in [nlp], {nlp.vocab.lang}, set that."
        )


def _sentence_notes(name: str, docs: Sequence[Doc], groups: bool) -> Iterator[str]:
    """Report if `gold_preproc` splits Docs. groups (bool): is annotation in span groups?"""
    cut = cut_docs(docs)
    if cut:
        yield (
            f"gold_preproc = true in [corpora.{name}] cuts {cut} of {len(docs)} Docs at their sentences, "
            f"which nlp(text) does not{', and drops their span groups' if groups else ''}. Take the "
            "sentence boundaries out of the file to learn whole texts."
        )


def _print(checked: Checked) -> None:
    train, dev, cost = checked.train, checked.dev, checked.cost
    msg.divider(f"Texts for '{checked.name}'")
    rows = [
        (
            name,
            part.texts,
            part.tokens,
            part.annotated,
            len(part.labels),
            part.copies,
            part.touching,
        )
        for name, part in (("training", train), ("development", dev))
        if part is train or part.texts
    ]
    header = ("corpus", "texts", "tokens", "spans", "labels", "copies", "touching")
    print(as_table(header, rows))
    msg.text("touching: texts in which two spans with the same label have no token between them")
    if checked.shared:
        msg.warn(
            f"{checked.shared} of {dev.texts} development texts are in the training corpus, too."
        )
    if dev.texts:
        _print_seen(*checked.seen)
    msg.divider("Labels")
    by_count = sorted(train.labels, key=lambda label: -train.labels[label].annotated)
    labels = [
        (label, each.annotated, each.learnt, each.texts, each.longest, in_dev.annotated)
        for label in by_count[:MAX_LABELS]
        for each, in_dev in [(train.labels[label], dev.labels.get(label, LabelFacts()))]
    ]
    columns = ("label", "spans", "learnt", "texts", "longest", "development")
    print(as_table(columns, labels))
    if len(by_count) > MAX_LABELS:
        msg.text(f"and {len(by_count) - MAX_LABELS} rarer labels")
    msg.divider("Possible mistakes")
    for note in checked.notes:
        msg.warn(note)
    if not checked.notes:
        msg.good("None found.")
    msg.divider("What training will take")
    _print_cost(cost, train, checked.examples)


def _print_seen(dev: Seen, train: Seen) -> None:
    msg.divider("Seen in training texts")
    shares = (
        ("words", dev.words, train.words),
        ("spans with their label", dev.spans, train.spans),
        ("spans with any label", dev.texts, train.texts),
    )
    rows = [(name, f"{percent(a)} %", f"{percent(b)} %") for name, a, b in shares]
    header = ("of …", "development texts", "another training text")
    print(as_table(header, rows))


def _print_cost(cost: Cost, train: CorpusFacts, kept: int) -> None:
    whole = cost.texts == train.texts
    texts = "all texts" if whole else f"{cost.texts:,} of {train.texts:,} texts"
    msg.text(
        f"Of {texts}, at order {cost.order}: {cost.features:,} features, {cost.patterns:,} label patterns, "
        f"{cost.states:,} states"
    )
    seconds = cost.seconds_for(train.tokens)
    about = "" if whole else "about "
    if seconds is not None:
        threads = f"{cost.threads} thread{'s' * (cost.threads > 1)}"
        msg.text(f"An evaluation of the objective, by {threads}: {about}{seconds:.3g} s")
        msg.text(
            f"A training has 50 to 200 of them: {about}{50 * seconds:.3g} to {200 * seconds:.3g} s"
        )
    at_most = "" if whole else "at most about "
    msg.text(
        f"Memory for the corpus and the model: {at_most}{cost.bytes_for(train.tokens) / 1e6:,.0f} MB"
    )
    if kept:
        msg.text(
            f"Memory for the texts, which spaCy keeps: {kept / 1e6:,.0f} MB. With max_epochs = -1 in "
            "[training] they are streamed."
        )
    else:
        msg.text("Memory for the texts: none, they are streamed.")


def cost_of(config: Config, name: str, examples: Sequence[Example]) -> Cost:
    """Measure the cost of initializing a pipeline with the first texts, up to SAMPLE of them and
    SAMPLED_TOKENS tokens but at least one, and evaluating its objective.

    config (Config): of the pipeline, not interpolated; "auto" settings are replaced without a search.
    name (str): name of the component.
    """
    tokens = [*accumulate(len(example.predicted) for example in examples[:SAMPLE])]
    sample = examples[: max(1, bisect_right(tokens, SAMPLED_TOKENS))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        config = settled(config, name)
        nlp = load_model_from_config(config, auto_fill=True)
        _, pipe = component_of(nlp, name)
        tracemalloc.start()
        try:
            begin(nlp, config, sample)
            seconds = None if pipe.trainer.batchwise else _seconds(pipe, times=1)
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    return Cost(
        len(sample),
        sum(len(example.predicted) for example in sample),
        pipe.structure.settings.order,
        pipe.structure.size,
        len(pipe.structure.patterns),
        len(pipe.automaton.states),
        seconds if seconds is None or seconds > LONG_EVALUATION else _seconds(pipe, times=3),
        kept,
        peak - kept,
        getattr(pipe.trainer, "n_threads", 1),
        tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def _seconds(pipe: SegmentationPipe, times: int) -> float | None:
    """Evaluate the objective several times; return the seconds of the fastest evaluation, None for a trainer
    without an objective.
    """
    try:
        objective = pipe.objective()
    except ValueError as error:
        if "H081" not in str(error):
            raise
        return None
    weights, seconds = pipe.model.get_param("W").astype("float64"), []
    for _ in range(times):
        begin = perf_counter()
        objective(weights)
        seconds.append(perf_counter() - begin)
    return min(seconds)
