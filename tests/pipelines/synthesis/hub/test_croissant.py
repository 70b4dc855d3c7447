import json

import exported

from pipelines.files import sha256
from pipelines.synthesis import hub


def test_it_names_the_table_by_its_sum_and_says_what_was_promised(tmp_path):
    folder = exported.written(tmp_path / "own", exported.images()) / hub.FOLDER
    found = json.loads((folder / hub.CROISSANT).read_text())
    (table,) = found["distribution"]
    assert table["contentUrl"] == hub.TABLE
    assert table["sha256"] == sha256(folder / hub.TABLE)
    assert found["description"].startswith("**Promised to each single record** that client `c0`")
    assert found["name"] == "digits-c0-dp_moments"


def test_it_holds_no_date(tmp_path):
    folder = exported.written(tmp_path / "own", exported.images()) / hub.FOLDER
    assert "date" not in (folder / hub.CROISSANT).read_text().lower().replace("update", "")
