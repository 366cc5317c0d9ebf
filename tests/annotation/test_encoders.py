"""srsly finds the same encoders as ever, without looking for them each time."""

import catalogue
import pytest
import srsly
from srsly.msgpack import msgpack_decoders, msgpack_encoders

from spacy_hocrf.annotation.encoders import remember_encoders


@pytest.fixture
def registries(monkeypatch):
    """As they are in a new process."""
    for registry in (msgpack_encoders, msgpack_decoders):
        monkeypatch.delitem(vars(registry), "get_all", raising=False)
    remember_encoders.cache_clear()
    yield msgpack_encoders, msgpack_decoders
    for registry in (msgpack_encoders, msgpack_decoders):
        vars(registry).pop("get_all", None)
    remember_encoders.cache_clear()
    remember_encoders()


def encode(made, chain=None):
    """One in which a set is a list."""
    return sorted(made) if isinstance(made, set) else chain(made) if chain else made


def test_what_is_found_is_the_same_and_looked_for_once(registries, monkeypatch):
    before = [registry.get_all() for registry in registries]
    looked, look = [], catalogue.Registry.get_entry_points
    monkeypatch.setattr(
        catalogue.Registry, "get_entry_points", lambda self: (looked.append(self), look(self))[1]
    )
    remember_encoders()
    for _ in range(3):
        assert [registry.get_all() for registry in registries] == before
        assert srsly.msgpack_loads(srsly.msgpack_dumps({"a": 1})) == {"a": 1}
    assert looked == [*registries]


def test_what_is_registered_later_is_found(registries, monkeypatch):
    monkeypatch.setattr(catalogue, "REGISTRY", catalogue.REGISTRY.copy())
    remember_encoders()
    with pytest.raises(TypeError):
        srsly.msgpack_dumps({2, 1})
    msgpack_encoders.register("sets", func=encode)
    assert srsly.msgpack_loads(srsly.msgpack_dumps({2, 1})) == [1, 2]
    msgpack_encoders.register("sets", func=lambda made, chain=None: "a set")
    assert srsly.msgpack_loads(srsly.msgpack_dumps({2, 1})) == "a set"


def test_entry_points_of_other_packages_are_found(registries, monkeypatch):
    own = {"sets": encode}
    look = catalogue.Registry.get_entry_points
    monkeypatch.setattr(
        catalogue.Registry,
        "get_entry_points",
        lambda self: own if self is msgpack_encoders else look(self),
    )
    remember_encoders()
    assert srsly.msgpack_loads(srsly.msgpack_dumps({2, 1})) == [1, 2]


def test_registries_that_are_no_longer_as_they_were_are_left_alone(registries, monkeypatch):
    class Mended(catalogue.Registry):
        pass

    mended = Mended(("srsly", "mended"))
    monkeypatch.setattr(srsly, "msgpack_encoders", mended)
    remember_encoders()
    assert "get_all" not in vars(mended) and "get_all" in vars(msgpack_decoders)
