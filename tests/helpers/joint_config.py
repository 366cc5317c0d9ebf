"""The block `[components.*.joint]` of the tests."""

PHRASES = {"@misc": "spacy-hocrf.IdenticalPhrases.v1", "max_length": 2, "weight": 1.0}


def joint(features=None, **settings):
    """Joint features, by default identical phrases, with other settings."""
    features = {"phrases": PHRASES} if features is None else features
    return {"@misc": "spacy-hocrf.Joint.v1", "features": features, **settings}
