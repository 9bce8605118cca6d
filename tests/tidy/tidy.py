"""Checks of the source tree that no compiler makes.  Usage: tidy.py CHECK --root DIR [--compiler CXX]

Prints one line a fault and exits with 1; 77 says that a check could not be made here.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

SKIPPED = 77

# Who may include whom (docs/architecture.md).  Everything may also include base and include/fathom, and what
# the folders named here reach.
MAY_INCLUDE = {
    "base": [],
    "core": [],
    "net": [],
    "grammar": [],
    "codec": ["core", "grammar"],
    "image": ["codec"],
    "fetch": ["codec"],
    "kvcache": ["core"],
    "scheduler": ["kvcache", "core"],
    "engine": ["scheduler", "core"],
    "server": ["codec", "net", "core"],
    "cluster": ["net", "core"],
    "router": ["cluster", "codec", "net"],
    "tensor": [],
    "device": ["tensor"],
    "kernels": ["device"],
    "comm": ["device"],
    "weights": ["device"],
    "model": ["kernels", "comm", "weights"],
    "draft": ["model", "sampler", "core"],
    "sampler": ["kernels", "core", "grammar"],
    "kvtier": ["device", "core"],
    "transfer": ["kvtier", "net"],
    "runner": ["model", "draft", "sampler", "transfer", "core"],
    "assembly": ["engine", "runner", "codec"],
}

SOURCE_ROOTS = ["include", "src", "apps", "python", "tests", "fuzz", "bench", "tools"]
CPP_SUFFIXES = {".h", ".cc", ".cuh", ".cu", ".inc"}
SOURCE_SUFFIXES = CPP_SUFFIXES | {".py"}

LINES_WANTED = 400
LINES_MAX = 800
# Files of more than LINES_WANTED lines, with the reason.
LONG_FILES = {
    "tools/tiny_oracle.py": "one self-contained program that shares nothing with ours",
}

FORBIDDEN_NAME = re.compile(r"(utils?|helpers?|common2|_impl_v\d+)$", re.IGNORECASE)
FORBIDDEN_TYPE = re.compile(
    r"^\s*(?:class|struct|namespace|enum class|enum)\s+(\w*(?:utils|helper)\w*)", re.IGNORECASE)

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror"]
ISA_FLAGS = {
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
    "avx512": ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512vnni",
               "-mavx512vbmi", "-mavx512vbmi2", "-mfma", "-mf16c"],
}


def source_files(root, suffixes, folders=SOURCE_ROOTS):
    """Files below the given folders, relative to root, in order."""
    found = []
    for folder in folders:
        for path in (root / folder).rglob("*"):
            parts = path.relative_to(root).parts
            if path.suffix in suffixes and path.is_file() and "__pycache__" not in parts:
                found.append(path.relative_to(root))
    return sorted(found)


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def reach(folder, edges):
    """All folders that can be reached from one, without itself."""
    seen, todo = set(), [folder]
    while todo:
        for following in edges.get(todo.pop(), []):
            if following not in seen:
                seen.add(following)
                todo.append(following)
    return seen


def declared_libraries(root):
    """{folder: DEPS} of each fathom_library() below src, and faults in how they are declared."""
    deps, faults = {}, []
    for path in sorted((root / "src").glob("*/CMakeLists.txt")):
        folder = path.parent.name
        text = re.sub(r"#.*", "", read(path))
        calls = re.findall(r"fathom_library\s*\(([^)]*)\)", text)
        where = path.relative_to(root)
        if len(calls) != 1:
            faults.append(f"{where}: {len(calls)} fathom_library() calls instead of one")
            continue
        values, key = {}, None
        for word in calls[0].split():
            if word in ("NAME", "DEPS", "LIBS"):
                key = word
                values[key] = []
            elif key:
                values[key].append(word)
        if values.get("NAME") != [folder]:
            faults.append(f"{where}: NAME is {values.get('NAME')}, the folder is {folder}")
        deps[folder] = values.get("DEPS", [])
    return deps, faults


def check_include_graph(root, _):
    deps, faults = declared_libraries(root)
    folders = sorted(p.name for p in (root / "src").iterdir() if p.is_dir())
    for folder in folders:
        has_sources = any(p.suffix in CPP_SUFFIXES for p in (root / "src" / folder).rglob("*"))
        if has_sources and folder not in MAY_INCLUDE:
            faults.append(f"src/{folder}: not in the table of folders (tests/tidy/tidy.py)")
        if has_sources and folder not in deps:
            faults.append(f"src/{folder}: has no CMakeLists.txt with a fathom_library()")
    for folder, declared in deps.items():
        allowed = reach(folder, MAY_INCLUDE) | {"base"}
        for name in declared:
            if name not in allowed:
                faults.append(f"src/{folder}/CMakeLists.txt: DEPS {name} is not allowed; "
                              f"allowed: {' '.join(sorted(allowed))}")
    for path in source_files(root, CPP_SUFFIXES, ["src", "include"]):
        inside_src = path.parts[0] == "src"
        folder = path.parts[1] if inside_src else None
        usable = reach(folder, deps) | {folder} if inside_src else set()
        for number, line in enumerate(read(root / path).splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not match:
                continue
            target = match.group(1).split("/")[0]
            if target == "fathom" or target in usable:
                continue
            if target not in MAY_INCLUDE:
                faults.append(f"{path}:{number}: include paths begin at src/ or include/: {line.strip()}")
            elif not inside_src:
                faults.append(f"{path}:{number}: the public contract includes nothing of src/{target}")
            else:
                faults.append(f"{path}:{number}: src/{folder} does not depend on {target} "
                              "(see DEPS in its CMakeLists.txt and docs/architecture.md)")
    return faults


def isa_flags(path):
    for isa, flags in ISA_FLAGS.items():
        if re.search(rf"{isa}(?![0-9])", path.name):
            return flags
    return []


def headers_included_first(root):
    """Headers that begin some source file, so that the build itself has compiled them alone."""
    found = set()
    for path in source_files(root, {".cc"}):
        first = re.search(r'^\s*#\s*include\s*(.*)$', read(root / path), re.MULTILINE)
        if first:
            found.add(first.group(1).strip().strip('"'))
    return found


def check_headers(root, compiler):
    """Each header compiles alone, with warnings as errors, and begins with #pragma once."""
    faults = []
    proven = headers_included_first(root)
    headers = source_files(root, {".h"}, ["include", "src"])
    for path in headers:
        if "#pragma once" not in read(root / path).splitlines():
            faults.append(f"{path}: no #pragma once")
    headers = [path for path in headers if str(path.relative_to(path.parts[0])) not in proven]

    def compile_alone(path):
        command = [compiler, "-std=c++20", "-fsyntax-only", *WARNINGS, *isa_flags(path),
                   "-I", "include", "-I", "src", "-I", ".", "-x", "c++", "-"]
        done = subprocess.run(command, input=f'#include "{path}"\n', text=True, cwd=root,
                              capture_output=True, check=False)
        if done.returncode == 0:
            return None
        first = next((l for l in done.stderr.splitlines() if "error" in l), done.stderr[:200])
        return f"{path}: does not compile alone: {first}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        faults += [fault for fault in pool.map(compile_alone, headers) if fault]
    return faults


def check_layout(root, _):
    """File sizes and names."""
    faults = []
    for path in source_files(root, SOURCE_SUFFIXES):
        lines = read(root / path).splitlines()
        if len(lines) > LINES_MAX and str(path) not in LONG_FILES:
            faults.append(f"{path}: {len(lines)} lines; the most is {LINES_MAX}")
        elif len(lines) > LINES_WANTED and str(path) not in LONG_FILES:
            faults.append(f"{path}: {len(lines)} lines; split it at {LINES_WANTED}, or give a reason in "
                          "LONG_FILES of tests/tidy/tidy.py")
        for part in (*path.parts[:-1], path.stem):
            if FORBIDDEN_NAME.search(part):
                faults.append(f"{path}: the name {part} says nothing about what is in it")
        if path.suffix in CPP_SUFFIXES:
            for number, line in enumerate(lines, 1):
                match = FORBIDDEN_TYPE.match(line)
                if match:
                    faults.append(f"{path}:{number}: the name {match.group(1)} says nothing")
    for name in LONG_FILES:
        path = root / name
        if path.exists() and len(read(path).splitlines()) <= LINES_WANTED:
            faults.append(f"{name}: is short by now; take it off LONG_FILES")
    return faults


def find_clang_format():
    """clang-format 14: other versions lay some lines out differently."""
    for name in ("clang-format-14", "clang-format"):
        program = shutil.which(name)
        if program:
            version = subprocess.run([program, "--version"], text=True, capture_output=True, check=False)
            if "version 14." in version.stdout:
                return program
    return None


def check_format(root, _):
    program = find_clang_format()
    if program is None:
        print("skipped: no clang-format 14")
        sys.exit(SKIPPED)
    # An .inc may be data or a part of a file, which clang-format cannot lay out.
    files = [str(path) for path in source_files(root, CPP_SUFFIXES - {".inc"})]
    if not files:
        return []
    done = subprocess.run([program, "--dry-run", "--style=file", *files], text=True, cwd=root,
                          capture_output=True, check=False)
    unformatted = sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: ", done.stderr, re.MULTILINE)))
    if done.returncode != 0 and not unformatted:
        return [f"clang-format failed: {done.stderr.strip()[:300]}"]
    return [f"{path}: run clang-format -i on it" for path in unformatted]


CHECKS = {
    "include_graph": check_include_graph,
    "headers": check_headers,
    "layout": check_layout,
    "format": check_format,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", default="c++")
    arguments = parser.parse_args()
    faults = CHECKS[arguments.check](arguments.root.resolve(), arguments.compiler)
    for fault in faults:
        print(fault)
    print(f"{arguments.check}: {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
