"""Python calls into the package: work counted without a clock."""

import sys
from collections import Counter
from pathlib import Path

import spacy_hocrf

PACKAGE = str(Path(spacy_hocrf.__file__).parent)


def calls_of_ours(function):
    """How often a call enters each of the package's functions, by file and name."""
    entered = Counter()

    def count(frame, event, _):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(PACKAGE):
            entered[path[len(PACKAGE) + 1 :].replace("\\", "/"), frame.f_code.co_name] += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return entered


def instructions_of_ours(function):
    """How many instructions of bytecode a call runs in the package's Python."""
    run = 0

    def trace(frame, event, _):
        nonlocal run
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        run += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return run


def depth_of_ours(function):
    """The most frames of the package that are on the stack at once."""
    deepest = 0

    def measure(frame, event, _):
        nonlocal deepest
        depth = 0
        while frame is not None:
            depth += frame.f_code.co_filename.startswith(PACKAGE)
            frame = frame.f_back
        deepest = max(deepest, depth)

    before = sys.getprofile()
    sys.setprofile(measure)
    try:
        function()
    finally:
        sys.setprofile(before)
    return deepest
