"""High-order semi-Markov conditional random fields for spaCy: `nlp.add_pipe("hocrf")`.

spaCy finds the factories, the architecture, templates and trainers by their entry points (setup.cfg);
nothing is imported here, so that `spacy.blank` stays fast. But a folder of sources whose kernels are not
compiled for this Python, such as a clone in which Python is started, says at once what is missing.
"""

from importlib.machinery import PathFinder

__all__ = ["__version__"]

# in this very folder: the finder of an editable installation would find those of another one
if PathFinder.find_spec("spacy_hocrf._cyutility", __path__) is None:
    from spacy_hocrf.errors import Errors

    raise ImportError(Errors.H480.format(folder=__path__[0]))

__version__: str


def __getattr__(name: str) -> str:
    """`__version__` is looked up when somebody asks."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("spacy-hocrf")
