"""High-order semi-Markov conditional random fields for spaCy: `nlp.add_pipe("hocrf")`.

spaCy finds the factories, architectures, templates and trainers by their entry points (setup.cfg);
nothing is imported here, so that `spacy.blank` stays fast.
"""

__all__ = ["__version__"]

__version__: str


def __getattr__(name: str) -> str:
    """`__version__` is looked up when somebody asks."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("spacy-hocrf")
