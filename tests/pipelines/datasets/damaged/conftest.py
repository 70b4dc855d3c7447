"""Runs prepare on an own data set, as its command does."""

import pytest
from damage import ended
from parameter_files import shipped_content
from project import tiny

from pipelines.config import Params
from pipelines.datasets.labelled_images import load
from stages import prepare


@pytest.fixture(scope="module")
def params() -> dict:
    content = shipped_content()
    tiny(content)
    content["prepare"]["public_fraction"] = 0.0
    return content


@pytest.fixture
def raw(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "raw").mkdir()
    return tmp_path / "raw"


@pytest.fixture
def prepared(params, tmp_path, capfd):
    """Runs prepare as its command does.

    It returns the error's text, or the number of records it wrote.
    """

    def run(source: str, **changes) -> str | int:
        content = {**params, "prepare": {**params["prepare"], **changes}}
        content["profiles"] = {
            **params["profiles"],
            "own": {**params["profiles"]["own"], "source": source},
        }
        said = ended(lambda: prepare.run(Params.model_validate(content), "own"))
        partial = tmp_path / ".scratch/partial"
        assert not partial.exists() or not list(partial.iterdir())
        out, err = capfd.readouterr()
        assert (
            "Warning" not in err
            and "\x1b" not in out
            and all(line.isprintable() for line in out.splitlines())
        )
        made = tmp_path / "data/private/own/prepared"
        if said is not None:
            assert not made.exists()
            return said
        return sum(len(load(made / f"{part}.npz")) for part in ("pool", "test", "public"))

    return run
