"""Checks on how the tree hangs together: include direction, file sizes, orphans."""

import posixpath
import re

from .tree import Problem

CPP = (".cpp", ".h")
SIZED = (".cpp", ".h", ".wgsl", ".rs", ".py", ".sh")
SIZE_NOTE, SIZE_LIMIT = 500, 900

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)')
# Headers that slow every includer down or belong to one layer: pattern, where allowed, rule.
RESTRICTED = (
    (re.compile(r"^(nlohmann/(?!json_fwd)|CLI/|hwy/|gtest/)"), lambda path: not is_library_header(path),
     "is included in .cpp files only"),
    (re.compile(r"(^|/)(webgpu|wgpu)\.h$"), lambda path: "/gpu/" in f"/{path}",
     "is included in the gpu layer only"),
)


def is_library_header(path):
    return path.startswith("src/") and path.endswith(".h") and not path.endswith("-inl.h")


def includes(tree, path):
    """(line, name, quoted) of each include."""
    for number, line in tree.lines(path):
        if found := INCLUDE.match(line):
            yield number, found.group(1) or found.group(2), found.group(1) is not None


def resolve(tree, path, name):
    """The tree's file that a quoted include names, or None."""
    places = ["src/" + name, posixpath.normpath(posixpath.join(posixpath.dirname(path), name))]
    if not path.startswith("src/"):
        places.append(f"{path.split('/')[0]}/{name}")
    return next((place for place in places if place in tree.file_set), None)


def layer_of(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 and parts[0] == "src" else None


def check_includes(tree):
    """A layer includes itself and lower ones; quoted includes name files of the project."""
    layers = tree.layers()
    if not layers:
        return [Problem("CMakeLists.txt", 1, "set(WISP_LAYERS ...) not found")]
    problems = []
    for path in tree.under(("src", "tests", "bench"), CPP):
        layer = layer_of(path)
        if layer is not None and layer not in layers:
            problems.append(Problem(path, 1, f"folder src/{layer} is not in WISP_LAYERS"))
            continue
        for number, name, quoted in includes(tree, path):
            target = resolve(tree, path, name) if quoted else None
            if quoted and target is None:
                problems.append(Problem(path, number, f'"{name}" is not a file of the project; '
                                                      "others are included with <>"))
            elif layer and target and layer_of(target) in layers:
                other = layer_of(target)
                if layers.index(other) > layers.index(layer):
                    problems.append(Problem(path, number, f"{layer} must not include {other}"))
            for pattern, allowed, rule in RESTRICTED:
                if pattern.search(name) and not allowed(path):
                    problems.append(Problem(path, number, f"<{name}> {rule}"))
    return problems + check_links(tree, layers)


def check_links(tree, layers):
    """The DEPS of a wisp_layer() are lower layers too."""
    problems = []
    for path in tree.under(("src",), ("CMakeLists.txt",)):
        layer = layer_of(path)
        text = strip_comments(tree.text(path))
        for call in re.finditer(r"wisp_layer\(([^)]*)\)", text):
            for dep in re.findall(r"\bwisp_(\w+)", call.group(1)):
                if dep in layers and layer in layers and layers.index(dep) >= layers.index(layer):
                    line = text[:call.start()].count("\n") + 1
                    problems.append(Problem(path, line, f"{layer} must not link {dep}"))
    return problems


def check_sizes(tree):
    """Files aim under 500 lines (noted) and fail above 900."""
    problems = []
    for path in tree.under(("",), SIZED):
        count = len(tree.text(path).splitlines())
        if count > SIZE_LIMIT:
            problems.append(Problem(path, SIZE_LIMIT + 1, f"{count} lines, limit {SIZE_LIMIT}"))
        elif count > SIZE_NOTE:
            problems.append(Problem(path, SIZE_NOTE + 1, f"{count} lines, aim {SIZE_NOTE}", False))
    return problems


def strip_comments(cmake):
    return re.sub(r"#[^\n]*", "", cmake)


def cmake_words(tree, folder):
    """The words of the CMakeLists.txt in `folder`, or None where there is none."""
    path = posixpath.join(folder, "CMakeLists.txt")
    if path not in tree.file_set:
        return None
    return set(re.split(r'[\s()"]+', strip_comments(tree.text(path))))


def named_in_cmake(tree, path):
    """Whether a CMakeLists.txt in the file's folder or above names it."""
    folder = posixpath.dirname(path)
    while True:
        words = cmake_words(tree, folder)
        relative = posixpath.relpath(path, folder or ".")
        if words and any(w == relative or w.endswith("}/" + relative) for w in words):
            return True
        if not folder:
            return False
        folder = posixpath.dirname(folder)


def is_test(path):
    return path.startswith("tests/") and path.endswith(("_test.cpp", "_test.py"))


def check_orphans(tree):
    """Sources, tests, headers and kernels are all used by something."""
    problems = []
    for path in tree.under(("src", "bench", "tests"), (".cpp", "_test.py")):
        if not named_in_cmake(tree, path):
            kind = "test" if is_test(path) else "source"
            problems.append(Problem(path, 1, f"orphan {kind}: no CMakeLists.txt names it"))
    included = set()
    for path in tree.under(("src", "tests", "bench"), CPP):
        included.update((resolve(tree, path, name), path)
                        for _, name, quoted in includes(tree, path) if quoted)
    users = {target for target, user in included if target != user}
    for path in tree.under(("src",), (".h",)):
        if path not in users:
            problems.append(Problem(path, 1, "orphan header: nothing includes it"))
    return problems + orphan_kernels(tree)


def orphan_kernels(tree):
    """A kernel is named by a string literal or by another kernel's include line.

    The host may also build the name: by formatting ("kv/{}.wgsl"), or from a literal that starts
    with "folder/" and the literal "stem".
    """
    literals, names = set(), set()
    for path in tree.under(("src", "tests", "bench"), CPP):
        literals.update(re.findall(r'"((?:[^"\\\n]|\\.)*)"', tree.text(path)))
    for path in tree.under(("kernels",), (".wgsl",)):
        names.update(name for name in re.findall(r"^//! include (\S+)", tree.text(path), re.M)
                     if "kernels/" + name != path)
    names |= literals
    formats = [re.compile(re.sub(r"\\\{[^}]*\}", "[^/]+", re.escape(literal)))
               for literal in literals if "/" in literal and "{" in literal]
    problems = []
    for kernel in tree.under(("kernels",), (".wgsl",)):
        name = kernel.removeprefix("kernels/")
        folder, file = posixpath.split(name)
        stem = file.removesuffix(".wgsl")
        spelled = {name, name.removesuffix(".wgsl")} & names
        formatted = any(pattern.fullmatch(name) for pattern in formats)
        joined = folder and {stem, file} & literals and any(
            literal.startswith(folder + "/") for literal in literals)
        if not (spelled or formatted or joined):
            problems.append(Problem(kernel, 1, "orphan kernel: nothing names it"))
    return problems
