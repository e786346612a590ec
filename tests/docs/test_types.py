"""The Python of the documentation and the examples passes a type checker, as it would in a reader's editor."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exhaustive import exhaustive

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FENCE = re.compile(r"^```(python)?")
ERROR = re.compile(r"^(?P<file>[^:]+):(?P<line>\d+): error: (?P<message>.*)$", re.MULTILINE)
# The library is checked with the options of `make lint`, so that its cache is used.
AS_USERS_DO = """
[[tool.mypy.overrides]]
module = "pages.*"
check_untyped_defs = true
ignore_missing_imports = true
warn_unreachable = false
disallow_any_generics = false
disallow_subclassing_any = false
disallow_untyped_calls = false
disallow_untyped_decorators = false
disallow_untyped_defs = false
disallow_incomplete_defs = false
no_implicit_reexport = false
strict_equality = false
warn_return_any = false
warn_unused_ignores = false
extra_checks = false
"""


def code_of(page):
    """The Python of a page as one module, in which each line has the number that it has on the page."""
    lines, in_code = [], False
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = FENCE.match(line)
        if fence is not None:
            in_code = fence[1] is not None and not in_code
        lines.append(line if in_code and fence is None else "")
    return "\n".join(lines)


def name_of(path):
    return str(path.relative_to(ROOT))


WITH_CODE = [*(page for page in PAGES if code_of(page).strip()), *EXAMPLES]


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """What one run of mypy finds in all of them, by page; with the options of a user who wants functions checked."""
    folder = tmp_path_factory.mktemp("code")
    (folder / "pages").mkdir()
    (folder / "pages" / "__init__.py").touch()
    modules = {f"page_{number}.py": name_of(page) for number, page in enumerate(WITH_CODE)}
    for module, page in zip(modules, WITH_CODE, strict=True):
        text = page.read_text(encoding="utf-8") if page.suffix == ".py" else code_of(page)
        (folder / "pages" / module).write_text(text, encoding="utf-8")
    (folder / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text("utf-8") + AS_USERS_DO, "utf-8")
    ran = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--config-file", str(folder / "pyproject.toml"), "--no-error-summary", "--no-color-output",
            "--no-pretty", "--cache-dir", ".mypy_cache", *(str(folder / "pages" / module) for module in modules),
        ],
        cwd=ROOT, capture_output=True, text=True, timeout=1_200, check=False,
    )  # fmt: skip
    assert "" == ran.stderr
    assert ran.returncode in (0, 1), ran.stdout
    found = {}
    for match in ERROR.finditer(ran.stdout):
        page = modules[Path(match["file"]).name]
        found.setdefault(page, []).append(f"{page}:{match['line']}: {match['message']}")
    assert (ran.returncode == 1) == bool(found), ran.stdout
    return found


@exhaustive
def test_the_code_of_the_pages_passes_mypy(errors):
    """No error on any page. The checker needs half a minute where `make lint` has left no cache."""
    assert {} == errors


@pytest.mark.parametrize("page", WITH_CODE, ids=name_of)
def test_the_code_of_a_page_hides_nothing_from_mypy(page):
    """No `# type: ignore` in what people copy."""
    assert "type: ignore" not in page.read_text(encoding="utf-8")
