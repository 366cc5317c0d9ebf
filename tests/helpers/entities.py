"""Entities that segments stand for, read off label by label: shares nothing with the package."""


def entities(scheme, segments):
    """Start, end and label of the entities in segments that cover one sequence.

    Prefixes are those of the encoding: "I-" and "E-" go on with an entity of their label, "B-" and
    "S-" begin one; "io" has none, and a label goes on where the token before has it, too.
    """
    found, before = [], "O"
    for start, end, label in segments:
        name = scheme.names[label]
        if name != "O":
            prefix, kind = (
                (name[:2], name[2:]) if scheme.encoding in ("bio", "bieso") else ("", name)
            )
            goes_on = {
                "io": before == name,
                "bio": prefix == "I-" and before[2:] == kind,
                "bieso": prefix in ("I-", "E-") and before[2:] == kind,
            }.get(scheme.encoding, False)
            if goes_on:
                found[-1] = (found[-1][0], end, kind)
            else:
                found.append((start, end, kind))
        before = name
    return found
