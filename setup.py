"""Builds the Cython kernels and the long description; everything else is in setup.cfg.

A folder `kernels` has one module, `single`, whose C is compiled once more for each instruction set, by
plain compiler flags and under another name; `spacy_hocrf.dispatch` chooses one when it runs: a wheel
works on every processor of its platform. x86-64 processors without AVX2 (before 2013, and some small ones
since) work on one sequence at a time, and so does whatever MSVC compiles, which has no vector types.

What Cython would put into every module that has typed memoryviews is in one, `_cyutility`, and nothing is
pickled: these two were half of the compiling.

Without a compiler that is the first thing said, before anything is translated.
"""

import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

KERNELS = [
    "engine.kernels.checks",
    "engine.kernels.lattice",
    "engine.kernels.schedule",
    "engine.kernels.trees",
    "engine.kernels.violations",
    "features.columns",
    "features.ngrams",
    "features.plan",
    "features.rows",
    "features.spelling",
    "features.table",
    "graph.cells",
    "graph.cut",
    "graph.factors",
    "graph.forest",
    "graph.search",
    "model.scores",
    "sequences.chain",
    "sequences.items",
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
SHARED = "spacy_hocrf._cyutility"


MISSING = """\
spacy-hocrf is compiled when it is installed from its sources. Missing here: {missing}.

  Debian, Ubuntu   apt-get install gcc libc6-dev python3-dev
  Fedora           dnf install gcc python3-devel
  Alpine           apk add gcc musl-dev python3-dev
  macOS            xcode-select --install

A wheel needs no compiler: `pip wheel --no-deps .` builds one, on another machine of the same
platform with the same Python (this is {version}). examples/Dockerfile does so for an image.
"""


class BuildKernels(build_ext):
    """Leaves out the builds that the compiler cannot make."""

    def build_extensions(self) -> None:
        if self.compiler.compiler_type == "msvc":
            wide = {*PATHS} - {"single"}
            self.extensions = [e for e in self.extensions if e.name.split(".")[-1] not in wide]
            for extension in self.extensions:
                extension.extra_compile_args = ["/O2"]
        super().build_extensions()


def _module(name: str, source: str, flags: Sequence[str] = (), width: int = 1) -> Extension:
    folder = "spacy_hocrf/engine/kernels"
    return Extension(
        f"spacy_hocrf.{name}",
        [source],
        include_dirs=[folder],
        depends=[f"{folder}/lanes.h", f"{folder}/processor.h", "spacy_hocrf/model/kernels/rows.h"],
        define_macros=[("HOCRF_LANES", str(width))],
        extra_compile_args=["-O3", "-g0", *flags],
    )


def _build(layer: str, path: str) -> Extension:
    """The kernels of a folder for one instruction set; their C is that of `single`, included."""
    width, flags = PATHS[path]
    single = Path(f"spacy_hocrf/{layer}/kernels/single.pyx")
    source = single if path == "single" else single.with_name(f"{path}.c")
    if source != single:
        source.write_text(f'#define PyInit_single PyInit_{path}\n#include "single.c"\n')
    extension = _module(f"{layer}.kernels.{path}", source.as_posix(), flags, width)
    extension.depends.append(single.with_suffix(".c").as_posix())
    return extension


def _described() -> str:
    """README.md for a package index, where no files lie beside it: links to them are plain text."""
    text = Path("README.md").read_text(encoding="utf8")
    text = re.sub(r"<picture>.*?</picture>\n*", "", text, flags=re.DOTALL)
    return re.sub(r"\[([^\]]*)\]\((?!https?:|#)[^)]*\)", r"\1", text)


def _check_compiler() -> None:
    """Say what a build lacks, where that can be seen; MSVC is found by setuptools alone."""
    if os.name == "nt" or not {"bdist_wheel", "build_ext", "editable_wheel"} & {*sys.argv}:
        return
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    header = Path(sysconfig.get_path("include"), "Python.h")
    lacking = [f"a C compiler ({compiler})"] * (shutil.which(compiler) is None)
    lacking += [f"Python's header ({header})"] * (not header.is_file())
    if lacking:
        version = sysconfig.get_python_version()
        sys.exit(MISSING.format(missing=" and ".join(lacking), version=version))


_check_compiler()
is_x86 = re.search(r"x86_64|amd64", sysconfig.get_platform()) is not None
paths = [path for path in PATHS if path == "single" or is_x86 == bool(PATHS[path][1])]
extensions = [_module(name, f"spacy_hocrf/{name.replace('.', '/')}.pyx") for name in KERNELS]
extensions += [_build(layer, path) for layer in ("engine", "model") for path in paths]
extensions.append(
    Extension(SHARED, [f"{SHARED.replace('.', '/')}.c"], extra_compile_args=["-g0", "-O1"])
)

setup(
    long_description=_described(),
    long_description_content_type="text/markdown",
    ext_modules=cythonize(
        extensions,
        shared_utility_qualified_name=SHARED,
        compiler_directives={"auto_pickle": False, "emit_code_comments": False},
    ),
    cmdclass={"build_ext": BuildKernels},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
