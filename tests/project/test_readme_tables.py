"""The tables of the READMEs and of docs/ are those that the commands have written: a number that is
changed in one place and not in the other fails here, with the command that prints it anew. Those of finished
studies name the commit that has the command.

`test_published_numbers.py` computes some of them again.
"""

import re
from statistics import mean

import pytest
import srsly
from project_checks import PROJECTS, table_rows

from spacy_hocrf.api import holm

DOCS = PROJECTS.parent / "docs"
NAMES = sorted(path.parent.name for path in PROJECTS.glob("*/project.yml"))
SPEED = {  # rows of docs/speed.md, and of the benchmark's results
    "`nlp(text)`, 15 to 25 tokens, median": (
        "nlp(text), default, scores, tokenizer, 15 to 25 tokens, CoNLL-2000: median"
    ),
    "`nlp(text)`, 15 to 25 tokens, 99th percentile": (
        "nlp(text), default, scores, tokenizer, 15 to 25 tokens, CoNLL-2000: 99th percentile"
    ),
    "`nlp.pipe`, sentences": "nlp.pipe, default, scores, tokenised Docs, CoNLL-2000",
    "`nlp.pipe`, Docs of 10,000 tokens": (
        "nlp.pipe, default, scores, tokenised Docs of 10,000 tokens, CoNLL-2000"
    ),
    "`nlp.pipe`, Docs of 100,000 tokens": (
        "nlp.pipe, default, scores, tokenised Docs of 100,000 tokens, CoNLL-2000"
    ),
    "`spacy train`, whole process, CPU time": (
        "spacy train, default, whole process, CoNLL-2000: CPU time"
    ),
    "`spacy train`, whole process, peak memory": (
        "spacy train, default, whole process, CoNLL-2000: peak memory"
    ),
    "`spacy train` on Cora, 300 texts, CPU time": (
        "spacy train, default, whole process, Cora: CPU time"
    ),
    "evaluation of the objective, CRF of order 1, CoNLL-2000": "CRF, order 1, CoNLL-2000",
    "the same, order 2": "CRF, order 2, CoNLL-2000",
    "evaluation, semi-CRF of order 1, Cora": "semi-CRF, limits 6 to 40, order 1, Cora",
    "training to within 1e-4 of CRFsuite's final loss, CoNLL-2000": (
        "training to within 1e-4 of CRFsuite's final loss, order 1, CoNLL-2000: CPU time"
    ),
    "tagging, order 1": "tagging, order 1, CoNLL-2000",
    "`nlp.pipe`, order 1": "nlp.pipe, order 1, CoNLL-2000",
    "peak memory of training, order 3, CoNLL-2000": "peak memory of training, order 3, CoNLL-2000",
    "`spacy train`, corpus streamed, peak memory": (
        "spacy train, default, whole process, CoNLL-2000, corpus streamed: peak memory"
    ),
    **{
        row: f"F1 of CoNLL-2000 chunks, speed of prediction, CPU time of training: {row}"
        for row in (
            *(f"default, order {order}" for order in (1, 2, 3)),
            "CRFsuite, order 1",
            "ner, 1 pass",
            "ner, 3 passes",
        )
    },
}


@pytest.mark.parametrize(
    "project, least",
    [
        ("answers", 8),
        ("anystyle", 1),
        ("benchmark", 1),
        ("dependencies", 3),
        ("genre_transfer", 3),
        ("handwriting", 2),
        ("knowledge", 3),
        ("more_labels", 2),
        ("records", 6),
        ("relation_arguments", 8),
        ("synthetic", 7),
        ("usaddress", 2),
    ],
)
def test_tables_of_a_projects_readme_are_those_of_its_results(load, project, least):
    """`python project/common/tables.py` copies them.

    least (int): tables that the Markdown files beside the README have; those in metrics/ are of the
        last run here.
    """
    readme = PROJECTS / project / "README.md"
    documents = sorted(set(readme.parent.glob("*.md")) - {readme})
    updates = list(load("common.tables").update(readme, documents))
    assert [str(change) for each in updates for change in each.changes] == []
    assert sum(bool(each.source) for each in updates) >= least


@pytest.mark.parametrize("project", NAMES)
def test_every_table_has_a_command_that_prints_it(load, project):
    """Or the README names the commit that has printed it, or tables.yml says that it is words. So does it
    name the commit of times, iterations and the like, in the section of the table or one around it.
    """
    module, folder = load("common.tables"), PROJECTS / project
    readme, declared = text(folder / "README.md"), module.declared(project)
    ours = list(module.tables(readme))
    origins = [module.origin_of(declared, table) for table in ours]
    known = srsly.read_yaml(folder / "project.yml")
    names = {*known["workflows"], *(command["name"] for command in known["commands"])}
    assert {run.split()[0] for run in declared["runs"]} <= names
    for title in srsly.read_yaml(PROJECTS / "tables.yml")[project]["tables"]:
        assert any(table.title.startswith(title) for table in ours), f"there is no {title}"
    for table, origin in zip(ours, origins):
        run = origin["run"]  # and no KeyError
        section = " ".join(section_of(readme, table.line).split())
        if re.fullmatch("[0-9a-f]{7}", run):
            assert f"commit {run}" in section, table.title
        else:
            assert run == "words" or run in declared["runs"], table.title
        of_the_run = [name for name in table.header if module.OF_THE_RUN.search(name)]
        if of_the_run and run != "words":
            commit = re.search(r"commit [0-9a-f]{7}", section) or origin.get("commit")
            assert commit, (table.title, of_the_run)
    documents = {path.name for path in folder.glob("*.md")} - {"README.md"}
    shown = {each.source for each in module.update(folder / "README.md", module.documents(folder))}
    for name in documents - shown:
        measured = rf"at commit [0-9a-f]{{7}}[^#]*{name}"
        assert name in text(folder / "project.yml") or re.search(measured, readme)


@pytest.mark.parametrize("row", SPEED)
def test_speed_is_that_of_the_last_benchmark(row):
    """`spacy project run all project/benchmark`; a row of docs/speed.md has all peers."""
    printed = {cells[0]: cells[-2:] for cells in table_rows(text(DOCS / "speed.md"))}
    results = table_rows(text(PROJECTS / "benchmark" / "results.md"))
    measured = [cells[2:4] for cells in results if cells[1:2] == [SPEED[row]]]
    ours, beside = printed[row]
    assert measured and {expected for expected, _ in measured} == {ours}
    assert all(peer in beside for _, peer in measured) or "has order 1 only" in beside


def test_the_first_readme_has_the_figures_of_these_tables():
    [(_, [ours, *peers])] = [
        (header, rows)
        for header, rows in tables(PROJECTS.parent / "README.md")
        if "100 texts" in header
    ]
    measured, *_ = [
        rows
        for header, rows in tables(PROJECTS / "defaults" / "README.md")
        if header[:5] == ["task", "texts", "default", "crfsuite", "ner"]
    ]
    for i, printed in enumerate((ours, *peers), 2):
        for n, cell in zip(("100", "400", "all"), printed[1:4]):
            found = [float(row[i]) for row in measured if row[1].split(",")[0] == n]
            assert len(found) >= 11 and cell == f"{mean(found):.1f}"
    said = " ".join(text(PROJECTS.parent / "README.md").split())
    assert f"in {len(measured)} of {len(measured)} comparisons" in said
    assert all(float(row[2]) > max(map(float, row[3:5])) for row in measured)
    lowest, *_, highest = sorted(float(row[2]) for row in measured)
    assert f"from {lowest:.1f} (" in said and f"to {highest:.1f} (" in said
    [speed] = [
        row for row in table_rows(text(DOCS / "speed.md")) if row[0] == "`nlp.pipe`, sentences"
    ]
    assert ours[4] == speed[3] and all(row[4] in speed[4] for row in peers)
    figures = ours[1], *(row[1] for row in peers)
    first = "it has {} F1 on average, where tuned CRFsuite has {} and spaCy's `ner` {}"
    assert (
        first.format(*figures) in said
        and f"{int(ours[4].split('k')[0]):,},000 tokens a second" in said
    )


def test_what_the_defaults_are_worth_is_what_their_project_has_printed():
    """Means over the tasks, rounded to one place."""
    project = table_rows(text(PROJECTS / "defaults" / "README.md"))
    [ours] = [rows for header, rows in tables(DOCS / "settings.md") if header[-1] == "ahead in"]
    for peer, *means, ahead in ours:
        name = "ner" if "`ner`" in peer else "crfsuite"
        printed = {row[1]: row for row in project if row[0] == name}
        assert means == [f"{float(printed[n][3]):+.1f}" for n in ("100", "400", "all")]
        assert ahead == f"{printed['any number'][5]} rows"
    [instead] = [rows for header, rows in tables(DOCS / "settings.md") if header[0] == "instead"]
    names = ["viterbi", "crf-bio", "norms-around", "order-1+sigma-1", "first"]
    candidates = {row[0]: row for row in project if row[0] in names}
    assert [row[1:] for row in instead] == [
        [f"{float(mean):+.1f}" for mean in candidates[name][-2:]] for name in names
    ]


def test_what_recipes_are_worth_is_what_their_project_has_printed():
    """Means over the tasks, and the best and the worst of these."""
    names = ("word-pairs", "borders", "whole-fields", "order-3+unseen")
    [ours] = [rows for header, rows in tables(DOCS / "features.md") if header[0] == "recipe"]
    [printed] = [
        rows
        for header, rows in tables(PROJECTS / "defaults" / "README.md")
        if "best task" in header
    ]
    candidates = {row[0]: row for row in printed}
    assert len(candidates) == len(ours) == len(names)
    for (_, *cells), name in zip(ours, names):
        row = candidates[name]  # name, rows, …, worst, its task, best, its task, time, …
        ends = [f"{row[7]} {row[8]}", f"{row[5]} {row[6]}"]
        assert cells == [*row[-2:], *ends, row[9]]


def test_what_outside_knowledge_gives_is_what_its_project_has_printed():
    """F1, costs and the points of each task: docs/knowledge.md has the project's names as words."""
    names = {
        "nothing": "default",
        "lists of names": "lists",
        "word vectors": "vectors",
        "entities of another model": "spans",
        "word vectors and entities": "vectors+spans",
        "a frozen encoder": "minilm",
        "a frozen encoder and word vectors": "vectors+minilm",
    }
    [(_, gains)] = [table for table in tables(DOCS / "knowledge.md") if table[0][0] == "told"]
    [(_, results)] = [
        table for table in tables(PROJECTS / "knowledge" / "results.md") if "MB saved" in table[0]
    ]
    printed = {row[0]: row[1:] for row in results}
    assert [row[1:] for row in gains] == [printed[names[row[0]]] for row in gains]
    assert len(gains) == len(names)


def test_what_trained_encoders_give_is_what_their_script_has_printed():
    """`python scripts/encoders.py`; docs/encoder.md has means over the seeds."""
    folder = PROJECTS / "knowledge"
    [encoders] = tables(folder / "encoders.md")
    header, rows = encoders
    assert [t for t in tables(folder / "README.md") if t[0] == header] == [encoders]
    measured = {(task, name): cells for task, _, _, name, *cells in rows}
    [ours] = [rows for header, rows in tables(DOCS / "encoder.md") if header[0] == "400 texts"]
    assert [row[1:] for row in ours] == [
        [text for task in ("wnut17", "tweets") for text in means_of(measured[task, name])]
        for name in ("none", "joint, 5 epochs", "joint, 20 epochs")
    ]


def test_what_a_frozen_encoder_gives_is_what_was_measured():
    """`spacy project run run-frozen`; docs/encoder.md has the table without differences."""
    name = ["task", "texts", "default", "vectors", "minilm"]
    [whole] = [
        rows
        for header, rows in tables(PROJECTS / "knowledge" / "README.md")
        if [*header[:5]] == name
    ]
    [ours] = [rows for header, rows in tables(DOCS / "encoder.md") if [*header[:5]] == name]
    assert [[*row] for row in ours] == [[*row[:9]] for row in whole]


def means_of(cells):
    """Of loss, ECE and F1, each a number for each seed, as docs/encoder.md has them."""
    columns = [list(map(float, cell.split())) for cell in cells[:4]]
    loss, ece, _, f1 = map(mean, columns)
    return [f"{loss:.3f}", f"{ece:.3f}", f"{f1:.2f}"]


COPIES = [  # in docs/, how a header begins; in the project, how its header begins, and what a row of ours has
    ("records", ("", "texts"), ("task", "texts", "fields"), "{1}|{2}|{3}|{4}|{5}"),
    ("records", ("", "default", "its"), ("task", "texts", "fields"), "{8}|{9}|{10}|{11}"),
    ("records", ("", "default", "corrected"), ("task", "fields", "by"), "{1}|{3}|{8}|{10}|{9}"),
    ("records", ("", "accepted"), ("task", "accepted"), "{1} %|{2} %|{5}, {6} %|{9}, {10} %"),
    ("records", ("", "none"), ("task", "grammar", "right"), "{2}|{3}|{4}|{5}|{6}|{9}"),
]
TASKS = {
    "US addresses": "addresses",
    "references, AnyStyle": "anystyle",
    "references, Cora": "cora",
    "news, CoNLL04": "conll04",
    "tweets": "tweets",
    "four genres, GUM": "gum",
}
"""Names of tasks in docs/, and in the projects."""


@pytest.mark.parametrize("page, ours, theirs, cells", COPIES)
def test_tables_of_whole_records_are_what_their_project_has_printed(page, ours, theirs, cells):
    [copied] = begins_with(DOCS / f"{page}.md", ours)
    measured = begins_with(PROJECTS / page / "README.md", theirs)[0]
    first = {row[0]: row for row in reversed(measured)}  # of two grammars, the proposed one
    for name, *row in copied:
        expected = cells.format(*first[TASKS[name]]).split("|")
        assert row[: len(expected)] == expected, name


def test_what_a_new_label_costs_is_what_its_project_has_printed():
    [copied] = begins_with(DOCS / "training.md", ("", "new label"))
    project = PROJECTS / "more_labels" / "README.md"
    [learnt] = begins_with(project, ("task", "new texts", "labels"))
    [others] = begins_with(project, ("task", "new texts", "before"))
    new = {(row[0], row[1]): row[5] for row in learnt}
    old = {(row[0], row[1]): (row[3], row[2]) for row in others}
    for name, *row in copied:
        keys = [(TASKS[name], texts) for texts in ("20", "50")]
        changes, before = zip(*map(old.get, keys))
        assert row == [*map(new.get, keys), *changes, *before], name


def test_what_teachers_give_is_what_their_project_has_printed():
    [copied] = begins_with(DOCS / "teachers.md", ("texts", "spans wrong"))
    measured = begins_with(PROJECTS / "teachers" / "README.md", ("task", "wrong", "teacher"))[0]
    printed = {(row[0], row[1]): [cell.split(" ±")[0] for cell in row] for row in measured}
    for texts, wrong, *row in copied:
        task = "all-tweets" if "tweets" in texts else "conll04"
        cells = printed[task, wrong.replace(" ", "")]
        assert row == [cells[i] for i in (2, 4, 5, 6, 8)], (texts, wrong)


def test_scores_of_cora_are_the_same_in_every_comparison():
    """`spacy hocrf compare` with the model of `cora` as A in docs/compare.md, as B in the README, and what
    `cora` itself prints.
    """
    references = text(PROJECTS / "references" / "README.md")
    here, there = compared(text(DOCS / "compare.md")), compared(references)
    assert len(here) == 15 and here.pop("texts")[0] == there.pop("texts")[1]  # which have F1 alone
    assert {label: cells[:3] for label, cells in here.items()} == {
        label: cells[3:6] for label, cells in there.items()
    }
    [*_, every] = [
        row for row in table_rows(references) if row[0] == "**micro average**" and len(row) == 5
    ]
    assert [f"{float(cell):.1f}" for cell in here["all"][:2]] == every[1:3]


def test_differences_of_the_ablation_follow_from_its_scores():
    """`spacy hocrf ablate` in docs/compare.md: F1, differences and Holm's correction."""
    _, _, shown = text(DOCS / "compare.md").partition("fold cross-validation")
    cells = [re.split(" {2,}", line) for line in shown.partition("\n\n95 %")[0].splitlines()]
    [whole] = [row for row in cells if row[0] == "all features"]
    rows = [row for row in cells if len(row) == 10 and "-" not in row[0] and row[0] != "without"]
    assert len(rows) == 10
    _, _, _, f, _, _, differences, p, corrected, _ = zip(*rows)
    expected = [float(each) - float(whole[3]) for each in f]
    assert [*map(float, differences)] == pytest.approx(expected, abs=0.011)
    assert [*map(float, corrected)] == pytest.approx(holm([*map(float, p)]).tolist(), abs=0.001)


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.stem)
def test_figures_beside_a_link_to_a_project_are_in_its_tables(path):
    """Those with a decimal point, in paragraphs, items and rows, as a rounded figure of the project."""
    prose = re.sub("```.*?```", "", text(path), flags=re.DOTALL)
    for paragraph in re.split(r"\n\s*\n|\n(?=[|-] )", prose):
        names = {*re.findall(r"\.\./project/(\w+)", paragraph)} & {*NAMES}
        if names:
            files = [each for name in names for each in (PROJECTS / name).glob("*.md")]
            found = re.findall(r"\d[\d,]*(?:\.\d+)?", "".join(map(text, files)))
            measured = [float(number.replace(",", "")) for number in found]
            words = re.sub(r"\]\(.*?\)|`.*?`", "", paragraph)
            for told in re.findall(r"(?<![\w.])\d+\.\d+", words):
                half = 0.5 / 10 ** len(told.partition(".")[2]) + 1e-9
                assert any(abs(number - float(told)) <= half for number in measured), told


def tables(path):
    """[(header, rows)] of the Markdown tables in a file, their rules left out."""
    blocks = re.findall(r"(?:^\|.*\n)+", text(path) + "\n", flags=re.MULTILINE)
    found = [table_rows(block) for block in blocks]
    return [(rows[0], rows[2:]) for rows in found if rows]


def begins_with(path, names):
    """The rows of each table in a file whose columns begin with names that begin like this."""
    return [
        rows
        for header, rows in tables(path)
        if all(cell.startswith(name) if name else not cell for cell, name in zip(header, names))
    ]


def compared(readme):
    """The rows of what `compare` prints, by label."""
    _, _, table = readme.partition("P (A)")
    lines = [line.split() for line in table.partition("\n\n")[0].splitlines()[2:]]
    return {cells[0]: cells[1:] for cells in lines if len(cells) > 6}


def section_of(readme, line):
    """The section that has a line of the text, and what those that it is part of say before their own."""
    level, parts = 0, {}
    for number, each in enumerate(readme.split("\n")):
        if each.startswith("##"):
            if number > line:
                break
            level = each.index(" ")
            parts = {key: part for key, part in parts.items() if key < level}
        parts.setdefault(level, []).append(each)
    return "\n".join(each for key, part in parts.items() if key for each in part)


def text(path):
    return path.read_text(encoding="utf8")


KINDS = ("established: ", "cited: ", "unexplained")
"""What a reason for a difference from a paper may be: an experiment that is named, a source, or none."""


@pytest.mark.parametrize("name", NAMES)
def test_a_reason_why_our_figures_differ_is_established_or_cited_or_said_to_be_missing(name):
    for header, rows in tables(PROJECTS / name / "README.md"):
        if header[-1] == "why" and {"ours", "here"} & {*header}:
            for row in rows:
                assert not row[-1] or row[-1].startswith(KINDS), row
