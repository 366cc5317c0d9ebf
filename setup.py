"""Builds the Cython kernels; everything else about the package is in setup.cfg."""

import os

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = [
    "engine.recursion",
    "engine.forward_backward",
    "engine.vectors",
    "engine.viterbi",
    "features.columns",
    "features.ngrams",
    "features.rows",
    "features.table",
    "model.scores",
]

setup(
    ext_modules=cythonize(
        [
            Extension(f"spacy_hocrf.{name}", [f"spacy_hocrf/{name.replace('.', '/')}.pyx"], extra_compile_args=["-O3"])
            for name in KERNELS
        ],
    ),
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
