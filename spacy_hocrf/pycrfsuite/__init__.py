"""The interface of python-crfsuite, with this package's exact inference: `import spacy_hocrf.pycrfsuite as
pycrfsuite`. Programs that import `pycrfsuite` run on it unchanged after

    sys.modules["pycrfsuite"] = spacy_hocrf.pycrfsuite

It reads and writes the model files of CRFsuite, and with the parameter `feature.order` it learns
label patterns of any length.
"""

from spacy_hocrf.pycrfsuite.items import ItemSequence
from spacy_hocrf.pycrfsuite.tagger import ParsedDump, Tagger
from spacy_hocrf.pycrfsuite.trainer import BaseTrainer, CRFSuiteError, Trainer

__all__ = [
    "CRFSUITE_VERSION",
    "BaseTrainer",
    "CRFSuiteError",
    "ItemSequence",
    "ParsedDump",
    "Tagger",
    "Trainer",
]

CRFSUITE_VERSION = "0.12.2"
"""Version of CRFsuite whose files and messages these are."""
