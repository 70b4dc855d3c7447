"""Tests a client's secret: drawn once, private to its user, and never empty."""

import pytest

from pipelines.datasets import salting


@pytest.fixture(autouse=True)
def ledgers(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDLENS_LEDGERS", str(tmp_path))
    return tmp_path


def test_a_salt_comes_back_and_hangs_on_data_set_owner_and_part(ledgers):
    names = [("own", "c0", "a"), ("own", "c0", "b"), ("own", "c1", "a"), ("other", "c0", "a")]
    salts = [salting.salt(*name) for name in names]
    assert salts == [salting.salt(*name) for name in names] and len(set(salts)) == 4
    assert {len(salt) for salt in salts} == {32}
    assert (ledgers / "own/c0.secret").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("torn", [b"", b"\0" * 31])
def test_a_secret_whose_writer_was_killed_is_drawn_anew(ledgers, torn):
    salts = set()
    for owner in ("c0", "c1"):
        (ledgers / "own").mkdir(exist_ok=True)
        (ledgers / f"own/{owner}.secret").write_bytes(torn)
        salts |= {salting.salt("own", owner, "a"), salting.salt("own", owner, "a")}
        assert len((ledgers / f"own/{owner}.secret").read_bytes()) == 32
    assert len(salts) == 2


def test_a_folder_made_again_is_salted_alike_and_padded_to_a_power_of_two(tmp_path):
    contents = []
    for name, size in [("first", 10), ("again", 10), ("larger", 1 << 16)]:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "records").write_bytes(bytes(size))
        salting.add_salt_file(folder, "own", "c0")
        contents.append((folder / "salt").read_bytes())
        total = sum(file.stat().st_size for file in folder.iterdir())
        assert total & (total - 1) == 0
    assert contents[0] == contents[1]
    assert contents[0][:32] == contents[2][:32] == salting.salt("own", "c0", "folders")


@pytest.mark.parametrize("room", [salting.SALT_BYTES, salting.SALT_BYTES + 9, 5000])
def test_a_salt_says_what_it_is_where_there_is_room_and_is_whole_where_there_is_none(
    tmp_path, room
):
    (tmp_path / "records").write_bytes(bytes((1 << 16) - room))
    salting.add_salt_file(tmp_path, "own", "c0")
    content = (tmp_path / "salt").read_bytes()
    assert len(content) == room and content[:32] == salting.salt("own", "c0", "folders")
    assert content[32:].rstrip(b"\0") == salting.WHY_SALT[: room - 32]
    assert b"It is private" in salting.WHY_SALT and b"dvc.lock" in salting.WHY_SALT


@pytest.mark.parametrize(
    "held, total", [(0, 64), (1, 64), (64, 64), (65, 128), (128, 128), (129, 256)]
)
def test_a_folder_holds_a_power_of_two_of_files_that_are_all_empty_but_its_own(
    tmp_path, held, total
):
    """This holds whatever the folder held before, because files come and go."""
    root = tmp_path / "root"
    for count in (held + 70, max(held - 3, 0), held):
        for file in (root / "own/class").rglob("*"):
            file.unlink()
        (root / "own/class").mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (root / f"own/class/{number}.png").write_text("x")
        salting.pad_file_count(root)
    files = [file for file in root.rglob("*") if file.is_file()]
    assert len(files) == total
    assert sum(file.stat().st_size for file in files) == held
    assert (root / salting.PADDING / salting.WHY_PADDING).exists() == (held < total)
