"""Errors about missing packages name the command that installs them."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from w2v import errors
from w2v.errors import W2VError, import_optional, install_command

ROOT = Path(errors.__file__).parents[1]


def test_errors_name_the_packages_of_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert install_command("plot") == "pip install matplotlib textalloc"
    assert install_command("sklearn") == "pip install scikit-learn"
    with pytest.raises(W2VError, match=r"^more is needed: pip install openTSNE umap-learn$"):
        import_optional("more is needed", "maps", "w2v.nosuch")
    monkeypatch.setattr(errors, "IS_ON_PYPI", True)
    assert install_command("plot") == "pip install 'w2v[plot]'"


def test_every_extra_in_the_code_exists_and_has_packages() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    code = "".join(path.read_text("utf-8") for path in (ROOT / "w2v").rglob("*.py"))
    named = {
        *re.findall(r"\binstall_command\('(\w+)'\)", code),
        *re.findall(r"\bimport_optional\(\s*\S.*?, \"(\w+)\"", code),
    }
    assert {"plot", "maps", "numba", "parquet", "tokenize", "zstd"} <= named <= {*extras}
    for extra in named:
        packages = [re.split("[>=<]", package)[0] for package in extras[extra]]
        assert install_command(extra) == f"pip install {' '.join(packages)}"


def test_command_installs_an_extra_from_uninstalled_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    assert install_command("plot") == "pip install '.[plot]' in the folder of w2v's sources"
