"""Builds the Cython kernels; everything else about the package is in setup.cfg.

Those in a folder `kernels` are built once for each instruction set, by plain compiler flags, and
`spacy_hocrf.dispatch` chooses one when it runs: a wheel works on every processor of its platform.
MSVC, which has no vector types, gets the first build only.
"""

import os
import re
import sysconfig

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = [
    "engine.kernels.schedule",
    "engine.kernels.trees",
    "features.columns",
    "features.ngrams",
    "features.plan",
    "features.rows",
    "features.table",
    "graph.cells",
    "graph.cut",
    "graph.factors",
    "graph.forest",
    "graph.search",
    "model.scores",
]
PATHS = {  # sequences side by side, and what the processor must have beyond the platform's least
    "single": (1, []),
    "baseline": (2, []),
    "avx2": (4, ["-mavx2", "-mfma"]),
    "avx512": (
        8,
        ["-mavx2", "-mfma", "-mavx512f", "-mavx512dq", "-mavx512vl", "-mprefer-vector-width=512"],
    ),
}


class BuildKernels(build_ext):
    """Leaves out the builds that the compiler cannot make."""

    def build_extensions(self) -> None:
        if self.compiler.compiler_type == "msvc":
            self.extensions = [
                e
                for e in self.extensions
                if e.name.split(".")[-1] in {"single", *map(_last, KERNELS)}
            ]
            for extension in self.extensions:
                extension.extra_compile_args = ["/O2"]
        super().build_extensions()


def _last(name: str) -> str:
    return name.split(".")[-1]


def _extension(name: str, flags: list[str], macros: list[tuple[str, str]]) -> Extension:
    source = f"spacy_hocrf/{name.replace('.', '/')}.pyx"
    return Extension(
        f"spacy_hocrf.{name}",
        [source],
        include_dirs=["spacy_hocrf/engine/kernels"],
        depends=["spacy_hocrf/engine/kernels/lanes.h", "spacy_hocrf/engine/kernels/processor.h"],
        define_macros=macros,
        extra_compile_args=["-O3", "-g0", *flags],
    )


is_x86 = re.search(r"x86_64|amd64", sysconfig.get_platform()) is not None
extensions = [_extension(name, [], []) for name in KERNELS]
for path, (width, flags) in PATHS.items():
    if is_x86 or not flags:
        macros = [("HOCRF_LANES", str(width))]
        extensions += [
            _extension(f"{layer}.kernels.{path}", flags, macros) for layer in ("engine", "model")
        ]

setup(
    ext_modules=cythonize(extensions),
    cmdclass={"build_ext": BuildKernels},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
