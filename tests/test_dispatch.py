"""Which builds of the kernels there are, and which one runs."""

import pytest

from spacy_hocrf import dispatch

FOLDERS = ("engine", "model")


@pytest.fixture(autouse=True)
def _another_process():
    """The environment variable is read once."""
    dispatch._asked.cache_clear()
    yield
    dispatch._asked.cache_clear()


def test_the_builds_of_this_machine_come_in_order_and_the_widest_runs(monkeypatch):
    monkeypatch.delenv(dispatch.VARIABLE, raising=False)
    builds = dispatch.instruction_sets()
    assert builds[0] == "single"
    assert builds == tuple(path for path in dispatch.PATHS if path in builds)
    assert dispatch.active() == builds[-1]
    widths = [dispatch.kernels(path).WIDTH for path in builds]
    assert widths == sorted(set(widths))
    assert widths[0] == 1


@pytest.mark.parametrize("folder", FOLDERS)
def test_all_builds_have_the_same_functions(folder):
    names = {
        path: set(dispatch.kernels(path, folder).__all__) for path in dispatch.instruction_sets()
    }
    assert all(found == names["single"] for found in names.values())


@pytest.mark.parametrize("path", dispatch.instruction_sets())
def test_the_environment_variable_forces_a_build(path, monkeypatch):
    monkeypatch.setenv(dispatch.VARIABLE, path)
    assert dispatch.active() == path


@pytest.mark.parametrize("path", dispatch.instruction_sets())
def test_a_block_forces_a_build_and_gives_way_at_its_end(path, monkeypatch):
    monkeypatch.setenv(dispatch.VARIABLE, "single")
    with dispatch.use_instructions(path):
        assert dispatch.active() == path
        with dispatch.use_instructions("single"):
            assert dispatch.active() == "single"
        assert dispatch.active() == path
    assert dispatch.active() == "single"


def test_what_cannot_run_here_is_refused(monkeypatch):
    monkeypatch.setenv(dispatch.VARIABLE, "abacus")
    with pytest.raises(ValueError, match=r"\[H059\].*abacus.*single.*HOCRF_INSTRUCTIONS"):
        dispatch.active()
    with pytest.raises(ValueError, match="H059"), dispatch.use_instructions("abacus"):
        pass
