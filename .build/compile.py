"""Compiles the leaves when a wheel is built; where that fails, the wheel has the sources alone.

    python .build/compile.py [FOLDER]    compiles beside the sources, or those of a copy of the checkout

An editable install compiles beside the sources. Who edits one of them runs the sources until all are compiled
again: see ``kdissect/leaves.py``.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import multiprocessing
import os
import re
import runpy
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any, NamedTuple

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run by hand
    BuildHookInterface = object

TOP = Path(__file__).resolve().parents[1]
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,
    "always_allow_keywords": False,
    "binding": False,
    "emit_code_comments": False,
}
"""Annotations are for people and mypy; C types stand in the ``.pxd`` files. Nobody calls a function by the
name of its only argument: Python then hands it over without a tuple of names to look through. Where users
may, a comment at the top of the module says so. Nobody asks a compiled function for its signature or its
code: without them less sets a module up. Nobody reads the C: without the lines of the sources in it, it is a
sixth shorter."""
NOT_SHARED = ["MemoryView"]
"""What no leaf needs of what Cython can share: three fifths of that library."""


def compile_leaves(
    top: Path, work: Path, tell: Callable[[str], None] = lambda _: None
) -> list[tuple[Path, str]]:
    """Compile the leaves below ``top``: each library, and the path that it has in the package.

    What all leaves need of Cython is compiled once, as a library of its own: that is a sixth of all C.
    Whatever goes wrong raises.

    :param tell: is told how far it is.
    """
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    table = runpy.run_path(str(top / "kdissect" / "leaves.py"))
    here = Path.cwd()
    os.chdir(top)
    try:
        # The longest first: no processor then has nothing to do while another compiles the last one.
        leaves = sorted(table["LEAVES"], key=lambda name: _source(name).stat().st_size, reverse=True)
        extensions = [
            Extension(name, [str(_source(name))], **_compiled(_level(table, name))) for name in leaves
        ]
        shared = Extension(table["SHARED"], [], **_compiled("-Og"))
        begin = time.monotonic()
        with _uncollected(), _as_declared():
            made = cythonize(
                [shared, *extensions],
                build_dir=str(work / "c"),
                compiler_directives=DIRECTIVES,
                shared_utility_qualified_name=table["SHARED"],
                shared_utility_features_disabled=NOT_SHARED,
                nthreads=_processes(),
                quiet=True,
            )
        cheaper = runpy.run_path(str(TOP / ".build" / "cheaper.py"))["cheaper"]
        texts = {
            each.name: cheaper(
                Path(each.sources[0]).read_text(encoding="utf-8"), each.name in table["CALLED"]
            )
            for each in made
        }
        _write(made, texts)
        tell(f"wrote {len(made)} modules in C in {time.monotonic() - begin:.0f} s")
        count = itertools.count(1)

        class Told(build_ext):
            """Tells of each module that it compiled."""

            def build_extensions(self) -> None:
                with ThreadPoolExecutor(self.parallel or 1) as pool:
                    headers = _headers(self, work, pool)
                    apart = _apart(self, texts, work, headers)
                if apart:
                    _write(made, apart.texts)
                    for ext in self.extensions:
                        ext.extra_objects += apart.objects
                        ext.extra_link_args += ["-Wl,--gc-sections"]
                for ext in self.extensions:
                    ext.extra_compile_args += headers(ext.extra_compile_args)
                super().build_extensions()

            def build_extension(self, ext: Any) -> None:
                super().build_extension(ext)
                tell(f"compiled {next(count)} of {len(made)}: {ext.name}")

        command = Told(Distribution({"name": "kdissect", "ext_modules": made}))
        command.build_lib, command.build_temp = str(work / "lib"), str(work / "temp")
        command.parallel = os.cpu_count()
        command.ensure_finalized()
        command.run()
        return [
            (Path(command.get_ext_fullpath(each.name)), command.get_ext_filename(each.name)) for each in made
        ]
    finally:
        os.chdir(here)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """In here Python does not look for cycles of objects, also in processes that are forked. To look through
    Cython's trees again and again took a third of its time. Memory grows from 300 to 450 MB."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _processes() -> int:
    """In how many processes Cython works: what is changed in this one holds only in forked ones."""
    return os.cpu_count() or 1 if multiprocessing.get_start_method() == "fork" else 0


_OF_CLASSES = ("freelist", "no_gc")


@contextlib.contextmanager
def _as_declared() -> Iterator[None]:
    """In here the directives that a ``.pxd`` gives a class hold. Cython 3 forgets those that say how memory
    is had for its objects, where the body of the class stands in a ``.py``. Then the collector looks at
    objects that cannot be in cycles, and each is made and let go in more time."""
    from Cython.Compiler.Nodes import CClassDefNode

    analyse = CClassDefNode.analyse_declarations

    def analysed(self: Any, env: Any) -> Any:
        known = env.lookup_here(self.class_name)
        scope = getattr(getattr(known, "type", None), "scope", None)
        before = getattr(scope, "directives", None) or {}
        found = analyse(self, env)
        kept = {name: before[name] for name in _OF_CLASSES if before.get(name)}
        if kept and self.scope is not None:
            self.scope.directives = {**self.scope.directives, **kept}
        return found

    CClassDefNode.analyse_declarations = analysed
    try:
        yield
    finally:
        CClassDefNode.analyse_declarations = analyse


def _source(name: str) -> Path:
    path = name.replace(".", "/")
    typed = Path(path + ".pyx")
    return typed if typed.exists() else Path(path + ".py")


Headers = Callable[[list[str]], list[str]]
"""Gives for flags the options with which GCC reads Python's headers once for all modules with these flags,
not once for each: a fourteenth of its time. Gives none where GCC cannot."""


def _headers(command: Any, work: Path, pool: ThreadPoolExecutor) -> Headers:
    """Begin to make the headers for the flags of all modules: GCC does so beside what is done next."""
    known = {tuple(each.extra_compile_args) for each in command.extensions} if _is_gcc() else set()
    made = {
        flags: pool.submit(_with_headers, command, flags, work / "-".join(("headers", *flags[:1])))
        for flags in known
    }
    return lambda flags: made[tuple(flags)].result() if tuple(flags) in made else []


def _with_headers(command: Any, flags: tuple[str, ...], folder: Path) -> list[str]:
    """Make the headers for these flags."""
    folder.mkdir(parents=True)
    header = folder / "headers.h"
    header.write_text('#define PY_SSIZE_T_CLEAN\n#include "Python.h"\n#include "structmember.h"\n')
    places = [f"-I{each}" for each in command.include_dirs]
    made = [*command.compiler.compiler_so, *places, *flags, "-x", "c-header", str(header)]
    subprocess.run([*made, "-o", f"{header}.gch"], check=False, capture_output=True)
    return ["-include", str(header)] if Path(f"{header}.gch").exists() else []


class _Apart(NamedTuple):
    """The C of the modules without the functions that they share, and the objects that have these."""

    texts: dict[str, str]
    objects: list[str]


def _apart(command: Any, texts: dict[str, str], work: Path, headers: Headers) -> _Apart | None:
    """What the modules share, compiled; None where this does not work: each module then has all it needs."""
    if not _is_gcc():
        return None
    folder = work / "shared"
    folder.mkdir()
    try:
        left, files = runpy.run_path(str(TOP / ".build" / "utilities.py"))["apart"](texts)
    except ValueError:  # another Cython writes other C
        return None
    usual = _compiled("-O1")["extra_compile_args"]
    flags = [
        *(each for each in usual if each != "-w"),
        *headers(usual),
        "-ffunction-sections",
        _DEFINED,
    ]
    places = [f"-I{each}" for each in command.include_dirs] + [f"-D{name}={value}" for name, value in MACROS]

    def compiled(number: int) -> str | None:
        source = folder / f"{number}.c"
        source.write_text(files[number], encoding="utf-8")
        made = [*command.compiler.compiler_so, *places, *flags, "-c", str(source), "-o", f"{source}.o"]
        done = subprocess.run(made, check=False, capture_output=True)
        return None if done.returncode else f"{source}.o"

    with ThreadPoolExecutor(_processes() or 1) as pool:
        objects = [each for each in pool.map(compiled, range(len(files))) if each]
    if len(objects) < len(files):
        return None
    linked = [*command.compiler.linker_so, *objects, *_MISSED, "-o", str(folder / "linked")]
    english = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(linked, check=False, capture_output=True, text=True, env=english)
    is_whole = not done.returncode and not _IS_MISSED.search(done.stderr)
    return _Apart(left, objects) if is_whole else None


_DEFINED = "-Werror=implicit-function-declaration"
_MISSED = ("-Wl,-z,defs", "-Wl,--warn-unresolved-symbols")
"""The linker names all functions that no file has. These are Python's. Without one of Cython's no module can
be imported."""
_IS_MISSED = re.compile(r"undefined (?:reference to .|symbol: )__[Pp]yx")
"""The words of GNU's linkers, and those of lld and mold."""


def _write(made: list[Any], texts: dict[str, str]) -> None:
    """Write the C of each module."""
    for each in made:
        Path(each.sources[0]).write_text(texts[each.name], encoding="utf-8")


def _level(table: dict[str, Any], name: str) -> str:
    """How far the compiler optimises a leaf."""
    levels = {"-O2": "LOOPS", "-O1": "BUSY", "-O0": "SELDOM"}
    return next((level for level, names in levels.items() if name in table[names]), "-Og")


def _compiled(level: str) -> dict[str, Any]:
    """How an extension is compiled at this level."""
    flags: list[str] = []
    if sys.platform != "win32":
        flags = [level, "-g0", "-w", "-fwrapv", *([*_WITHOUT.get(level, ()), *_CHEAPER] if _is_gcc() else ())]
    return {"extra_compile_args": flags, "define_macros": MACROS}


MACROS = [("CYTHON_CLINE_IN_TRACEBACK", "0"), ("CYTHON_COMPRESS_STRINGS", "0")]
"""Tracebacks name lines of the sources, not of the C that Cython made of them. Names and texts of a module
stand there as they are: what unpacks them takes more than they do."""

_CHEAPER = (
    '-DCYTHON_SMALL_CODE=__attribute__((cold,optimize("O0")))',
    "-fno-asynchronous-unwind-tables",
)
"""GCC does not optimise what sets a module up: that runs once, and is a quarter of the code. Nor does it
optimise what ``cheaper.py`` marks. Tables to unwind the stack are for debuggers and C++."""

_WITHOUT = {
    "-Og": ("-fno-forward-propagate", "-fno-ipa-profile", "-fno-ipa-pure-const"),
    "-O1": ("-fno-tree-dominator-opts", "-fno-tree-fre", "-fno-tree-pta"),
    "-O2": (
        *("-fno-tree-dominator-opts", "-fno-tree-pre", "-fno-tree-vrp", "-fno-tree-tail-merge"),
        "-fno-gcse",
    ),
}
"""Passes of GCC that take a fifth of its time and gain nothing here: 0.4 % more instructions without them."""


@functools.cache
def _is_gcc() -> bool:
    """Whether the compiler is GCC. Clang stops at these options."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    try:
        told = subprocess.run(
            [*shlex.split(compiler), "--version"], check=False, capture_output=True, text=True
        ).stdout
    except OSError:
        return False
    return "Free Software Foundation" in told


class CustomBuildHook(BuildHookInterface):  # type: ignore[misc]
    """What hatchling calls."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the compiled leaves to a wheel."""
        if os.environ.get("KDISSECT_PURE", "0") not in ("", "0"):
            return
        self._work = tempfile.TemporaryDirectory(prefix="kdissect-build-")
        self.app.display_info(
            f"compiling hot modules on {os.cpu_count()} processors, in one to three minutes"
        )
        begin = time.monotonic()
        try:
            made = compile_leaves(Path(self.root), Path(self._work.name), self.app.display_info)
        except (Exception, SystemExit) as error:  # whatever it is: the sources alone are enough
            self.app.display_warning(f"the hot modules stay pure Python: {type(error).__name__}: {error}")
            return
        self.app.display_info(f"compiled {len(made)} modules in {time.monotonic() - begin:.0f} s")
        if version == "editable":
            _put_in_place(made, Path(self.root))
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["force_include"].update({str(library): name for library, name in made})

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave nothing behind."""
        if work := getattr(self, "_work", None):
            work.cleanup()


def main(folder: str = str(TOP)) -> None:
    """Compile in place."""
    top = Path(folder).resolve()
    with tempfile.TemporaryDirectory(prefix="kdissect-build-") as work:
        _put_in_place(compile_leaves(top, Path(work), print), top)


def _put_in_place(made: list[tuple[Path, str]], top: Path) -> None:
    """Put each library beside its source, and take away those of modules that are no leaves any more.

    A library is replaced at once: a process may run the old one, and nothing may stop in the middle.
    """
    for library, name in made:
        new = (top / name).with_suffix(".new")
        new.write_bytes(library.read_bytes())
        new.replace(top / name)
    kept = {top / name for _, name in made}
    for suffix in EXTENSION_SUFFIXES:
        for leftover in {*(top / "kdissect").rglob(f"*{suffix}")} - kept:
            leftover.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
