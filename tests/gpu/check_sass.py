#!/usr/bin/env python3
"""Are the tensor-core and copy instructions really in the machine code of the CUDA kernels?

    check_sass.py BUILD_DIR     reads the objects of src/kernels below it

Uses cuobjdump of the toolkit, or of PyPI (pinned in sass-requirements.txt, kept in BUILD_DIR/sass).
Ends with 0, with 1 and a line for each instruction that is missing, or with 77 if there is no
disassembler to be had.
"""

import os
import pathlib
import re
import subprocess
import sys

# Object -> what each architecture must have in it.
EXPECTED = {
    "linear/cuda_wide.cu.o": {"sm_90a": [r"HGMMA\.64x128x16\.F32\.BF16", r"UBLKCP", r"SYNCS"]},
    "moe/cuda_experts_wide.cu.o": {"sm_90a": [r"HGMMA\.64x128x16\.F32\.BF16", r"UBLKCP"]},
    "sparse_attention/cuda_wgmma.cu.o": {
        "sm_90a": [r"HGMMA\.64x64x16\.F32\.BF16", r"HGMMA\.64x256x16\.F32\.BF16"]
    },
    "linear/cuda_split.cu.o": {
        arch: [r"HMMA\.16816\.F32\.BF16", r"LDGSTS", r"LDG\.E\S*\.128", r"UCGABAR"]
        for arch in ("sm_90a", "sm_100a")
    },
    "moe/cuda_experts_split.cu.o": {
        arch: [r"HMMA\.16816\.F32\.BF16", r"LDGSTS"] for arch in ("sm_90a", "sm_100a")
    },
    "index_select/cuda_scan.cu.o": {
        arch: [r"HMMA\.16816\.F32\.BF16"] for arch in ("sm_90a", "sm_100a")
    },
}


def find_tools(build):
    """The folder of cuobjdump and nvdisasm, or None."""
    cuda = pathlib.Path("/usr/local/cuda/bin")
    for folder in [*map(pathlib.Path, os.environ["PATH"].split(":")), cuda]:
        if (folder / "cuobjdump").exists() and (folder / "nvdisasm").exists():
            return folder
    folder = build / "sass" / "nvidia" / "cu13" / "bin"
    if not (folder / "cuobjdump").exists():
        requirements = pathlib.Path(__file__).with_name("sass-requirements.txt")
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
             "--no-deps", "--require-hashes", "--target", str(build / "sass"),
             "-r", str(requirements)],
            timeout=300, check=False)
    return folder if (folder / "cuobjdump").exists() else None


def disassemble(tools, arch, path):
    environment = dict(os.environ, PATH=f"{tools}:{os.environ['PATH']}")
    return subprocess.run([str(tools / "cuobjdump"), "-arch", arch, "-sass", str(path)],
                          env=environment, capture_output=True, text=True, check=True).stdout


def main():
    build = pathlib.Path(sys.argv[1])
    tools = find_tools(build)
    if tools is None:
        print("skipped: no cuobjdump")
        return 77
    faults = 0
    for name, by_arch in EXPECTED.items():
        found = list((build / "src" / "kernels").rglob(name))
        if len(found) != 1:
            print(f"{name}: {len(found)} objects below {build}")
            faults += 1
            continue
        for arch, patterns in by_arch.items():
            code = disassemble(tools, arch, found[0])
            for pattern in patterns:
                if not re.search(pattern, code):
                    print(f"{name}, {arch}: no {pattern}")
                    faults += 1
    print(f"SASS: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
