"""What can go wrong, each with a code to search for: what was found, what was expected, which setting to change."""

__all__ = ["Errors"]


class _Coded(type):
    """Puts the attribute's name in front of its text, so that a code is written once."""

    def __getattribute__(cls, name: str) -> str:
        text = super().__getattribute__(name)
        return text if name.startswith("_") else f"[{name}] {text}"


class Errors(metaclass=_Coded):
    H001 = "Label pattern {pattern} has the label {label}, but there are only the labels 0 to {last}."
    H002 = "A label pattern must not be empty."
    H003 = "Limit {limit} of label {label} is negative. A limit is a number of tokens, or 0 for none."
    H004 = "Potentials do not fit the automaton: '{name}' has the extents {found}, expected {expected}."
    H005 = (
        "Pattern {pattern} has an observation on the {part} of its segment, but the automaton was compiled without it. "
        "Compile it with `carried` true for this pattern."
    )
    H006 = "Log potentials must be finite, but '{name}' holds {found} at {where}."
    H007 = (
        "No allowed segmentation covers sequence {index} ({tokens} tokens): its constraints, the length limits and the "
        "forbidden successions exclude all of them. Raise [components.*.model] max_length or set repeats = true."
    )


    H008 = "The first {expected} patterns must be the single labels (0,), (1,), … in order, but are {found}."
    H009 = "Spans must lie inside one sequence, have at least one token, and be sorted by their first token."
    H010 = "Inference in space '{found}' is unknown. Choose one of {expected}."
