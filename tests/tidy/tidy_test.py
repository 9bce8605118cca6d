"""Plants one fault of each kind in a small tree and expects the check to name it.  Usage: tidy_test.py CXX"""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import tidy  # noqa: E402

COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "c++"


class TidyTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)
        self.write("include/fathom/status.h", "#pragma once\nnamespace fathom {}\n")
        self.write("src/base/CMakeLists.txt", "fathom_library(NAME base DEPS LIBS)\n")
        self.write("src/base/check.h", '#pragma once\n#include "fathom/status.h"\n')
        self.write("src/tensor/CMakeLists.txt", "fathom_library(NAME tensor DEPS base)\n")
        self.write("src/tensor/view.h", '#pragma once\n#include "base/check.h"\n')
        self.write("src/device/CMakeLists.txt", "fathom_library(NAME device DEPS tensor LIBS x)\n")
        self.write("src/device/cpu.h", '#pragma once\n#include "base/check.h"\n#include "tensor/view.h"\n')
        self.write("src/codec/CMakeLists.txt", "fathom_library(NAME codec DEPS base)\n")
        self.write("src/codec/text.h", "#pragma once\n")
        self.write(".clang-format", "BasedOnStyle: Google\n")

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def faults(self, check):
        return tidy.CHECKS[check](self.root, COMPILER)

    def expect(self, check, *parts):
        """Exactly one fault, with all of the parts in it."""
        faults = self.faults(check)
        self.assertEqual(len(faults), 1, faults)
        for part in parts:
            self.assertIn(part, faults[0])

    def test_a_clean_tree_has_no_faults(self):
        for check in ("include_graph", "headers", "layout"):
            self.assertEqual(self.faults(check), [])

    def test_the_table_of_folders_has_no_cycle(self):
        for folder in tidy.MAY_INCLUDE:
            self.assertNotIn(folder, tidy.reach(folder, tidy.MAY_INCLUDE))

    def test_include_against_the_graph(self):
        self.write("src/tensor/bad.cc", '#include "tensor/view.h"\n#include "device/cpu.h"\n')
        self.expect("include_graph", "src/tensor/bad.cc:2", "does not depend on device")

    def test_control_plane_includes_no_data_plane(self):
        self.write("src/codec/bad.cc", '#include "device/cpu.h"\n')
        self.expect("include_graph", "src/codec does not depend on device")

    def test_include_that_cmake_does_not_declare(self):
        self.write("src/device/CMakeLists.txt", "fathom_library(NAME device DEPS base)\n")
        self.expect("include_graph", "src/device/cpu.h:3", "tensor")

    def test_dependency_that_the_table_forbids(self):
        self.write("src/codec/CMakeLists.txt", "fathom_library(NAME codec DEPS base tensor)\n")
        self.expect("include_graph", "src/codec/CMakeLists.txt", "DEPS tensor is not allowed")

    def test_public_header_that_includes_src(self):
        self.write("include/fathom/bad.h", '#pragma once\n#include "base/check.h"\n')
        self.expect("include_graph", "include/fathom/bad.h:2", "public contract")

    def test_include_that_is_relative(self):
        self.write("src/tensor/bad.cc", '#include "view.h"\n')
        self.expect("include_graph", "src/tensor/bad.cc:1", "begin at src/")

    def test_folder_that_nobody_knows(self):
        self.write("src/misc/CMakeLists.txt", "fathom_library(NAME misc DEPS)\n")
        self.write("src/misc/a.cc", "")
        self.expect("include_graph", "src/misc", "not in the table")

    def test_header_that_needs_another_one_first(self):
        self.write("src/base/bad.h", "#pragma once\ninline std::string f() { return {}; }\n")
        self.expect("headers", "src/base/bad.h", "does not compile alone")

    def test_header_without_pragma_once(self):
        self.write("src/base/bad.h", "inline int f() { return 1; }\n")
        self.expect("headers", "src/base/bad.h", "#pragma once")

    def test_long_files(self):
        self.write("src/base/long.cc", "\n" * 401)
        self.expect("layout", "src/base/long.cc", "401 lines", "LONG_FILES")
        self.write("src/base/long.cc", "\n" * 801)
        self.expect("layout", "src/base/long.cc", "801 lines", "the most is 800")

    def test_names_that_say_nothing(self):
        self.write("src/base/string_utils.h", "#pragma once\n")
        self.expect("layout", "string_utils")
        (self.root / "src/base/string_utils.h").unlink()
        self.write("src/base/a.h", "#pragma once\nclass ParseHelper {};\n")
        self.expect("layout", "src/base/a.h:2", "ParseHelper")

    def test_layout_of_lines(self):
        if tidy.find_clang_format() is None:
            self.skipTest("no clang-format 14")
        self.write("src/base/bad.cc", "int  f( ) {return 1;}\n")
        self.expect("format", "src/base/bad.cc")


if __name__ == "__main__":
    unittest.main()
