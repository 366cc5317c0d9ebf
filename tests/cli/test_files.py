"""What commands write is there as a whole, or as it was before."""

import os
import threading

import pytest
from typer.testing import CliRunner

from spacy_hocrf.cli import hocrf_cli
from spacy_hocrf.cli.files import write_whole


@pytest.fixture
def full_disk(monkeypatch):
    def fsync(_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("before", [None, "old"])
def test_a_full_disk_leaves_what_was_there(before, tmp_path, full_disk):
    path = tmp_path / "file"
    if before is not None:
        path.write_text(before)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "new")
    left = {each.name: each.read_text() for each in tmp_path.iterdir()}
    assert left == ({} if before is None else {"file": before})


def test_a_config_is_not_half_written(tmp_path, full_disk):
    path = tmp_path / "config.cfg"
    path.write_text("old")
    done = CliRunner().invoke(hocrf_cli, ["config", str(path), "--force"])
    assert str(done.exception) == "disk full"
    assert [(each.name, each.read_text()) for each in tmp_path.iterdir()] == [("config.cfg", "old")]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", "new: é")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text(encoding="utf8") == "new: é"


def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(
        target=lambda: read.append((tmp_path / "pipe").read_bytes()), daemon=True
    )
    reader.start()
    write_whole(tmp_path / "pipe", b"content")
    reader.join(10)
    assert read == [b"content"]
    assert (tmp_path / "pipe").is_fifo()
