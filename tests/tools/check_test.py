"""Each check of tools/check.py finds what it is for, and leaves a good tree alone."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from checks import clang, structure, wording  # noqa: E402
from checks.tree import Tree  # noqa: E402

GOOD = {
    "CMakeLists.txt": "set(WISP_LAYERS base gpu model)\n",
    ".clang-format": "BasedOnStyle: Google\nColumnLimit: 100\n",
    ".clang-tidy": "Checks: '-*,bugprone-*'\nWarningsAsErrors: '*'\n",
    "src/base/CMakeLists.txt": "wisp_layer(base SOURCES a.cpp)\n",
    "src/base/a.h": "// What a is.\n#pragma once\n\nint a();\n",
    "src/base/a.cpp": '#include "base/a.h"\n\nint a() { return 1; }\n',
    "src/gpu/CMakeLists.txt": "wisp_layer(gpu SOURCES\n  g.cpp # why\n  DEPS wisp_base)\n",
    "src/gpu/g.cpp": '#include "base/a.h"\n\nconst char* g() { return "codec/q8.wgsl"; }\n',
    "kernels/codec/q8.wgsl": "fn decode() {}\n",
    "tests/base/CMakeLists.txt": "wisp_test(base_test SOURCES a_test.cpp DEPS wisp_base)\n",
    "tests/base/a_test.cpp": '#include "base/a.h"\n',
}


# bugprone-sizeof-expression on line 2.
BAD = '#include "base/a.h"\nint a() { return static_cast<int>(sizeof(sizeof(int))); }\n'


def tree_of(folder, files):
    for path, text in files.items():
        full = pathlib.Path(folder) / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_text(text)
    return Tree(folder)


class CheckTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def find(self, check, changes):
        """The problems of the good tree with `changes`, as strings."""
        return [str(problem) for problem in check(tree_of(self.folder, GOOD | changes))]

    def test_good_tree_has_no_problem(self):
        for check in (clang.check_format, structure.check_includes, structure.check_sizes,
                      structure.check_orphans, wording.check_wgsl, wording.check_environment,
                      wording.check_words, wording.check_headers, wording.check_scripts):
            self.assertEqual(self.find(check, {}), [], check.__name__)

    def test_include_of_a_higher_layer(self):
        found = self.find(structure.check_includes,
                          {"src/gpu/g.h": "// g\n", "src/base/a.cpp": '#include "gpu/g.h"\n'})
        self.assertEqual(found, ["src/base/a.cpp:1: base must not include gpu"])

    def test_include_that_resolves_to_nothing(self):
        found = self.find(structure.check_includes, {"src/base/a.cpp": '\n#include "base/b.h"\n'})
        self.assertEqual(len(found), 1)
        self.assertIn("src/base/a.cpp:2:", found[0])

    def test_include_of_restricted_headers(self):
        found = self.find(structure.check_includes,
                          {"src/base/a.h": "#include <nlohmann/json.hpp>\n",
                           "src/base/a.cpp": "#include <webgpu/webgpu.h>\n",
                           "src/gpu/g.cpp": "#include <webgpu/webgpu.h>\n"})
        self.assertEqual([line.split(": <")[0] for line in found],
                         ["src/base/a.cpp:1", "src/base/a.h:1"])

    def test_link_to_a_higher_layer(self):
        found = self.find(structure.check_includes, {
            "src/base/CMakeLists.txt": "# base\nwisp_layer(base SOURCES a.cpp DEPS wisp_gpu)\n"})
        self.assertEqual(found, ["src/base/CMakeLists.txt:2: base must not link gpu"])

    def test_folder_that_is_no_layer(self):
        found = self.find(structure.check_includes, {"src/util/u.h": "// u\n"})
        self.assertEqual(found, ["src/util/u.h:1: folder src/util is not in WISP_LAYERS"])

    def test_sizes(self):
        found = self.find(structure.check_sizes, {"src/base/a.cpp": "\n" * 501,
                                                  "kernels/codec/q8.wgsl": "\n" * 901,
                                                  "src/base/a.h": "\n" * 500})
        self.assertEqual(found, ["kernels/codec/q8.wgsl:901: 901 lines, limit 900",
                                 "src/base/a.cpp:501: note: 501 lines, aim 500"])

    def test_orphans(self):
        found = self.find(structure.check_orphans,
                          {"src/base/b.cpp": "", "tests/base/b_test.cpp": "",
                           "src/base/b.h": '#include "base/b.h"\n', "kernels/add.wgsl": "",
                           "tests/base/CMakeLists.txt": "# b_test.cpp\nwisp_test(x a_test.cpp)\n"})
        self.assertEqual([line.split(":")[0] for line in found],
                         ["src/base/b.cpp", "tests/base/b_test.cpp", "src/base/b.h",
                          "kernels/add.wgsl"])

    def test_kernels_that_are_named_are_no_orphans(self):
        found = self.find(structure.check_orphans, {
            "src/gpu/g.cpp": '#include "base/a.h"\n"codec/" + "q8"; "kv/{}_{}.wgsl"; '
                             '"", "add.wgsl"\n',
            "kernels/kv/read_f16.wgsl": "//! include lib/step.wgsl\n", "kernels/lib/step.wgsl": "",
            "kernels/add.wgsl": "", "kernels/kv/own.wgsl": "//! include kv/own.wgsl\n"})
        self.assertEqual(found, ["kernels/kv/own.wgsl:1: orphan kernel: nothing names it"])

    def test_preprocessor_in_wgsl(self):
        found = self.find(wording.check_wgsl, {"kernels/codec/q8.wgsl": "\n  #ifdef F16\n"})
        self.assertEqual(len(found), 1)
        self.assertIn("kernels/codec/q8.wgsl:2: #ifdef", found[0])

    def test_environment(self):
        found = self.find(wording.check_environment,
                          {"src/base/a.cpp": 'std::getenv("X");\n',
                           "src/base/log.cpp": 'std::getenv("X");\n',
                           "text_rs/src/lib.rs": 'std::env::var("X")\n'})
        self.assertEqual([line.split(":")[0] for line in found],
                         ["src/base/a.cpp", "text_rs/src/lib.rs"])

    def test_words(self):
        bad = ["see /wor" + "k/x", "/ho" + "me/me/x", "from pypi" + ".org", "files.pythonhos" + "ted.org/x",
               "issue" + " #12", "Issues" + "/3", "static.crates" + ".io"]
        good = ["a session of work/life", "$W/root/x", "an issue # of style", "the PyPI wheel",
                "registry+github.com/rust-lang/crates" + ".io-index"]
        found = self.find(wording.check_words, {"docs/a.md": "\n".join(bad + good)})
        self.assertEqual(sorted(int(line.split(":")[1]) for line in found),
                         list(range(1, len(bad) + 1)))

    def test_unfinished_work(self):
        found = self.find(wording.check_words,
                          {"src/base/a.cpp": "// TO" + "DO\n",
                           "tests/base/a_test.cpp": "TEST(A, DISA" + "BLED_B)\n"
                                                    "GTEST_" + "SKIP();\n"})
        self.assertEqual(len(found), 3)

    def test_headers(self):
        found = self.find(wording.check_headers, {"src/base/a.h": "#pragma once\n",
                                                  "src/gpu/g.h": "// g\n"})
        self.assertEqual([line.split(":")[0] for line in found], ["src/base/a.h", "src/gpu/g.h"])

    def test_scripts(self):
        found = self.find(wording.check_scripts, {"tools/a.sh": "if true\n", "tools/a.py": "\nx =\n",
                                                  "tools/b.sh": "true\n"})
        self.assertEqual([line.split(":")[0] for line in found], ["tools/a.sh", "tools/a.py"])

    def test_format(self):
        found = self.find(clang.check_format, {"src/base/a.cpp": "int a();\nint  b();\nint  c();\n"})
        self.assertEqual(found, ["src/base/a.cpp:2: clang-format changes 2 lines (make format)"])

    def tidy(self, text, **options):
        """The problems of clang-tidy with `text` as src/base/a.cpp."""
        tree = tree_of(self.folder, GOOD | {"src/base/a.cpp": text, "build/x": ""})
        entry = {"directory": str(tree.root / "build"), "file": str(tree.root / "src/base/a.cpp"),
                 "command": f"c++ -std=c++20 -I{tree.root}/src -c {tree.root}/src/base/a.cpp"}
        (tree.root / "build/compile_commands.json").write_text(json.dumps([entry]))
        return [str(p) for p in clang.check_tidy(tree, build="build", **options)]

    def test_tidy(self):
        found = self.tidy(BAD)
        self.assertTrue(found and found[0].startswith("src/base/a.cpp:2: "), found)
        self.assertEqual(self.tidy(BAD), found)  # a failure is not remembered as clean
        self.assertEqual(self.tidy(GOOD["src/base/a.cpp"]), [])

    def test_tidy_of_a_source_that_does_not_compile(self):
        self.assertTrue(self.tidy("int a( { return }\n"))

    def test_tidy_without_a_build(self):
        found = self.find(clang.check_tidy, {})
        self.assertEqual(found, ["build/release/compile_commands.json:1: missing: run make first"])

    def test_tidy_from_a_base(self):
        def git(*command):
            subprocess.run(["git", "-C", self.folder, "-c", "user.name=x", "-c", "user.email=x@x",
                            *command], check=True, capture_output=True)
        tree_of(self.folder, GOOD | {".gitignore": "/build/\n"})
        git("init", "-q")
        git("add", "-A")
        (pathlib.Path(self.folder) / "src/base/a.cpp").write_text(BAD)
        git("commit", "-qm", "x", "-a")
        self.assertEqual(self.tidy(BAD, base="HEAD"), [])
        (pathlib.Path(self.folder) / "src/base/a.h").write_text("// New.\n#pragma once\nint a();\n")
        tree = Tree(self.folder)
        self.assertTrue(clang.check_tidy(tree, build="build", base="HEAD"))

    def test_command_line(self):
        def run(*arguments):
            return subprocess.run([sys.executable, "-B", str(TOOLS / "check.py"), "--root",
                                   self.folder, *arguments], capture_output=True, text=True)
        tree_of(self.folder, GOOD)
        done = run("--fast")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (0, "9 passed, 0 failed"))
        tree_of(self.folder, {"src/base/a.h": ""})
        done = run("headers", "sizes")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "1 passed, 1 failed"))
        self.assertEqual(run("nothing").returncode, 2)


if __name__ == "__main__":
    unittest.main()
