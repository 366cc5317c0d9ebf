# An `EngineKernels` of protocol.py, which has the types; builds differ in the number of lanes.
from typing import Any

__all__: list[str]
WIDTH: int

def __getattr__(name: str) -> Any: ...
def runs(path: str) -> bool: ...
