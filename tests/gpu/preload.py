"""Libraries of one file of this folder that tests run the program with."""
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent


def build(source, library, *options):
    """Compiles HERE / source to the shared library `library`.  Returns its path."""
    subprocess.run(["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *options, HERE / source, "-o", library, "-ldl", "-pthread"],
                   check=True)
    return str(library)


def build_driver(source, folder):
    """The same as a libcuda.so.1 in `folder`, which LD_LIBRARY_PATH then has to name."""
    build(source, pathlib.Path(folder) / "libcuda.so.1", "-Wl,-soname,libcuda.so.1")
