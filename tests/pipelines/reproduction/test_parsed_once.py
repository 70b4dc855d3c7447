"""DVC parses each text once in a run: the same contents, a copy for each caller, nothing kept after it."""

import pytest
from dvc.utils import strictyaml
from dvc.utils.serialize import YAMLFileCorruptedError, _yaml

from pipelines.reproduction.parsed_once import parsed_once

TEXT = "a: 1e-06\nb: [1, {c: x}]\n"


@pytest.fixture
def parsed(monkeypatch):
    """Returns the texts that DVC's own parser was given."""
    texts = []
    parse = _yaml.parse_yaml

    def noting(text, path, typ="safe"):
        texts.append(text)
        return parse(text, path, typ=typ)

    monkeypatch.setattr(_yaml, "parse_yaml", noting)
    return texts


def test_the_same_text_is_parsed_once_and_has_the_same_content(parsed):
    plain = _yaml.parse_yaml(TEXT, "params.yaml")
    with parsed_once():
        contents = [module.parse_yaml(TEXT, "params.yaml") for module in (_yaml, strictyaml)]
        other = strictyaml.parse_yaml("a: 2", "dvc.lock")
    assert contents == [plain, plain] and other == {"a": 2}
    assert parsed == [TEXT, TEXT, "a: 2"]


def test_a_file_read_by_name_is_parsed_once(parsed, tmp_path):
    (tmp_path / "params.yaml").write_text(TEXT)
    with parsed_once():
        contents = [_yaml.load_yaml(str(tmp_path / "params.yaml")) for _ in range(3)]
    assert contents[0] == contents[2] and parsed == [TEXT]


def test_what_a_caller_changes_is_its_own():
    with parsed_once():
        _yaml.parse_yaml(TEXT, "params.yaml")["b"].append(2)
        assert _yaml.parse_yaml(TEXT, "params.yaml")["b"] == [1, {"c": "x"}]


def test_an_error_comes_each_time_with_its_own_file():
    with parsed_once():
        for path in ("one.yaml", "two.yaml"):
            with pytest.raises(YAMLFileCorruptedError, match=path):
                _yaml.parse_yaml("a: [", path)


def test_what_keeps_comments_is_never_kept(parsed):
    with parsed_once():
        first = _yaml.parse_yaml(TEXT, "params.yaml", typ="rt")
        second = _yaml.parse_yaml(TEXT, "params.yaml", typ="rt")
    assert first is not second and len(parsed) == 2


def test_after_it_dvc_parses_as_before():
    before = (_yaml.parse_yaml, strictyaml.parse_yaml)
    with pytest.raises(RuntimeError), parsed_once():
        raise RuntimeError
    assert (_yaml.parse_yaml, strictyaml.parse_yaml) == before
