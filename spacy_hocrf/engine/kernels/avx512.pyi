# An `EngineKernels`, for a number of sequences side by side: see protocol.py, which types the calls.
from typing import Any

__all__: list[str]
WIDTH: int

def __getattr__(name: str) -> Any: ...
