"""The project dependencies: logs become windows, windows become grids whose scores are those of their features."""

import importlib.util
import io
import tarfile
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import srsly
from numpy.testing import assert_array_equal

PROJECT = Path(__file__).parents[2] / "project" / "dependencies"
LOADS = ("dependencies",)

pytestmark = pytest.mark.skipif(not PROJECT.exists(), reason="project/dependencies is not in this distribution")
needs_matplotlib = pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason='the plot needs matplotlib: pip install "spacy-hocrf[benchmark]"'
)

LOG = """[23:58] <ada> hello
=== max [max@example.org]  has joined #ubuntu
[23:58] <max> anyone here who knows grub?
[23:59] <ada> max: yes, what about grub?
[00:01]  * eve waves
[00:01] <max> it hangs, ada
[00:03] <bo> !paste
"""
LINKS = "0 0 -\n1 1 -\n2 2 -\n2 3 -\n4 4 -\n5 3 -\n5 2 -\n6 1 -\n"


@pytest.fixture(scope="module")
def logs(load):
    return load("logs")


@pytest.fixture(scope="module")
def grid(load):
    return load("grid")


@pytest.fixture(scope="module")
def features(load):
    return load("features")


@pytest.fixture
def windows(logs, tmp_path):
    (tmp_path / "one.ascii.txt").write_text(LOG, encoding="utf8")
    (tmp_path / "one.annotation.txt").write_text(LINKS, encoding="utf8")
    return logs.read_windows(tmp_path, 4)["one"]


def test_messages_know_who_wrote_them_and_whom_they_name(logs):
    messages = logs.read_messages(LOG.split("\n"))
    assert [message.line for message in messages] == [0, 2, 3, 4, 5, 6]
    assert [message.author for message in messages] == [0, 1, 0, 2, 1, 3]
    assert [set(message.mentions) for message in messages] == [set(), set(), {1}, set(), set(), set()], (
        '"ada" is short, and not first'
    )
    assert [message.silence for message in messages] == [10_000, 10_000, 2, 10_000, 3, 10_000]
    assert [message.kind.name for message in messages] == ["GREETING", "QUESTION", "QUESTION", "STATEMENT", "STATEMENT", "COMMAND"]
    assert "grub" in messages[1].words & messages[2].words and "hello" in messages[0].words
    assert logs.minutes_between(messages[1], messages[4]) == 3, "past midnight"


def test_windows_have_the_links_among_their_messages(windows):
    assert [len(window.messages) for window in windows] == [4, 2]
    first, second = windows
    assert np.argwhere(first.links).tolist() == [[0, 0], [1, 1], [2, 1], [3, 3]]
    assert not second.links.any(), "what they reply to is before the window, or a note of the server"


def test_windows_keep_to_the_annotated_part(logs):
    messages = logs.read_messages(LOG.split("\n"))
    (window,) = logs.cut("", messages, np.array([[3, 2], [5, 3]]), 15)
    assert [message.line for message in window.messages] == [3, 4, 5]
    assert np.argwhere(window.links).tolist() == [[2, 0]], "message 3 replies to one before the annotated part"


def test_links_have_the_later_message_first(logs, tmp_path):
    path = tmp_path / "links.txt"
    path.write_text("2 3 -\n5 4 -\n", encoding="utf8")
    assert logs.read_links(path).tolist() == [[3, 2], [5, 4]]


def test_the_grid_has_a_vertex_for_each_earlier_message_and_the_message_itself(grid):
    found = grid.make_grid(3)
    assert list(zip(found.source.tolist(), found.target.tolist())) == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    assert found.edges.tolist() == [[0, 1], [1, 2], [1, 3], [2, 4], [3, 4], [4, 5]]
    assert found.vertical.tolist() == [True, False, True, True, False, False]
    assert found.row_edges.tolist() == [[1, 2], [3, 4], [4, 5]]


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_triples_are_all_pairs_of_edges_that_share_a_vertex(grid, size):
    found = grid.make_grid(size)
    edges = [set(edge) for edge in found.edges.tolist()]
    pairs = [one | other for k, one in enumerate(edges) for other in edges[:k] if one & other]
    assert sorted(map(sorted, pairs)) == sorted(sorted(triple) for triple in found.triples.tolist())
    for triple, shape in zip(found.triples, found.shapes):
        for end, step in zip(triple[1:], grid.SHAPES[shape]):
            down, right = grid.STEPS[step]
            assert (found.source[end], found.target[end]) == (found.source[triple[0]] + down, found.target[triple[0]] + right)


def test_the_instance_scores_every_assignment_by_its_tables(grid):
    found = grid.make_grid(3)
    random = np.random.default_rng(0)
    scores, edges, triples = random.normal(size=6), random.normal(size=(6, 4)), random.normal(size=(len(found.triples), 8))
    instance = found.instance(scores, (edges, triples))
    for assignment in product((0, 1), repeat=6):
        y = np.array(assignment, dtype=np.int32)
        expected = scores @ y
        expected += sum(table[2 * y[a] + y[b]] for table, (a, b) in zip(edges, found.edges))
        expected += sum(table[4 * y[a] + 2 * y[b] + y[c]] for table, (a, b, c) in zip(triples, found.triples))
        assert instance.score(y) == pytest.approx(expected, abs=1e-12)


def test_without_tables_the_vertices_are_independent(grid):
    instance = grid.make_grid(2).instance(np.array([1.0, -1.0, 2.0]), ())
    assert instance.unary.tolist() == [0, 1, 0, -1, 0, 2] and len(instance.weights) == 0


def test_links_are_the_vertices_in_state_1(grid):
    links = grid.make_grid(3).links(np.array([1, 0, 0, 1, 0, 1], dtype=np.int32))
    assert np.argwhere(links).tolist() == [[0, 0], [2, 0], [2, 2]]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_value_belongs_to_its_section(features, windows, order):
    layout = features.sections(order)
    assert [section.first for section in layout] == [0, *(section.end for section in layout[:-1])]
    for window in windows:
        observed = features.observe(window, order)
        assert len(observed.values) == len(layout) == order
        factors = (observed.grid.source, *observed.grid.factors)
        for section, values, members in zip(layout, observed.values, factors):
            assert len(values) == len(members) and (values >= 0).all() and (values < section.n_values).all()
        assert_array_equal(observed.grid.links(observed.gold), window.links)


def test_sections_of_a_smaller_grid_begin_those_of_a_larger(features):
    assert features.sections(3)[:2] == features.sections(2) and features.sections(2)[:1] == features.sections(1)


def test_combinations_tell_all_values_apart(features):
    values, size = features.together((np.array([0, 0, 1, 1]), 2), (np.array([0, 2, 0, 2]), 3), (np.array([1, 1, 1, 0]), 2))
    assert size == 12 and values.tolist() == [1, 5, 7, 10]


def test_latest_is_the_last_message_of_its_author_before_another(features, windows):
    pairs = features.Pairs.of(windows[0])  # ada, max, ada, eve
    assert pairs.latest[3].tolist() == [0, 1, 1, 1]
    assert pairs.latest[2].tolist()[:2] == [1, 1]
    assert pairs.mentions.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert pairs.named.tolist() == [0, 0, 1, 0]


def archive(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def test_logs_are_taken_out_of_either_archive_and_checked(load, tmp_path, monkeypatch):
    fetch = load("fetch_irc")
    files = {"data/dev/a.ascii.txt": b"x", "data/train/b.annotation.txt": b"y"}
    others = {"data/dev/a.raw.txt": b"z", "data/test/c.ascii.txt": b"z", "README.md": b"z"}
    whole = {f"irc-{name}/{path}": content for name in ("1",) for path, content in {**files, **others}.items()}
    expected = {"dev/a.ascii.txt": b"x", "train/b.annotation.txt": b"y"}
    assert fetch.unpack(archive(files)) == fetch.unpack(archive(whole)) == expected
    monkeypatch.delenv("HOCRF_DATA", raising=False)
    (tmp_path / "irc.tar.gz").write_bytes(archive(whole))
    with pytest.raises(SystemExit):
        fetch.main(tmp_path / "irc", (tmp_path / "irc.tar.gz").as_uri())
    assert not (tmp_path / "irc").exists(), "not the expected corpus"
    monkeypatch.setattr(fetch, "DIGEST", fetch.digest(expected))
    fetch.main(tmp_path / "irc", (tmp_path / "irc.tar.gz").as_uri())
    assert (tmp_path / "irc" / "dev" / "a.ascii.txt").read_bytes() == b"x"
    (tmp_path / "copies" / "irc").mkdir(parents=True)
    (tmp_path / "copies" / fetch.COPY).write_bytes(archive(files))
    monkeypatch.setenv("HOCRF_DATA", str(tmp_path / "copies"))
    fetch.main(tmp_path / "again", "file:///nowhere")
    assert (tmp_path / "again" / "train" / "b.annotation.txt").read_bytes() == b"y"


def test_project_declares_what_it_uses():
    project = srsly.read_yaml(PROJECT / "project.yml")
    commands = {command["name"]: command for command in project["commands"]}
    assert all(step in commands for steps in project["workflows"].values() for step in steps)
    produced = {output for command in commands.values() for output in command.get("outputs", [])}
    for command in commands.values():
        for path in command.get("deps", []):
            assert path in produced or (PROJECT / path).exists(), path
