"""Tests who owns a record: the table of an image folder, and dealing by owner."""

import numpy as np
import pytest
from blocks import PARTITION
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.config.data import Partition
from pipelines.datasets import owners, partitions
from pipelines.datasets.labelled_images import Images, load
from pipelines.errors import UserError

FILES = ["a/1.png", "a/2.png", "b/deep/3.png"]
TABLE = "file,client\na/1.png,north\na/2.png,south\nb/deep/3.png,north\n"


def block(**changes) -> Partition:
    return Partition.model_validate({**PARTITION, "scheme": "natural", **changes})


def records(sites: list[str], classes: int = 2) -> Images:
    count = len(sites)
    images = np.arange(count * 4, dtype=np.uint8).reshape(count, 2, 2, 1)
    return Images(images, np.arange(count) % classes, np.arange(count), np.array(sites))


@settings(deadline=None, max_examples=60)
@given(
    # which of six sites each client holds
    holders=st.lists(st.integers(0, 2), min_size=6, max_size=6).filter(
        lambda h: set(h) == {0, 1, 2}
    ),
    more=st.lists(st.integers(0, 5), max_size=60),
    seed=st.integers(0, 2**31),
)
def test_every_record_goes_to_the_client_of_its_site_and_to_no_other(holders, more, seed):
    names = [f"site {number}" for number in range(6)]
    sites = {client: [] for client in "abc"}
    for name, holder in zip(names, holders, strict=True):
        sites["abc"[holder]].append(name)
    record_owners = np.array([names[number] for number in [*range(6), *more]])
    rng = np.random.default_rng(seed)
    rng.shuffle(record_owners)
    labels = rng.integers(0, 3, len(record_owners))
    parts = partitions.deal(labels, block(sites=sites), rng, record_owners)
    assert list(parts) == ["a", "b", "c"]
    for client, positions in parts.items():
        # exactly those of its sites: complete, and so disjoint
        assert positions.tolist() == np.flatnonzero(np.isin(record_owners, sites[client])).tolist()


def test_without_a_mapping_each_site_is_the_client_of_its_name():
    owned = np.array(["c", "a", "b", "a"])
    parts = partitions.deal(np.zeros(4, int), block(), np.random.default_rng(), owned)
    assert {client: part.tolist() for client, part in parts.items()} == {
        "a": [1, 3],
        "b": [2],
        "c": [0],
    }


def test_a_shard_holds_its_own_sites_records_whole():
    pool = records(["x", "y", "z", "x"] * 40)
    cut = partitions.cut(
        pool,
        block(clients=["p", "q"], sites={"p": ["y"], "q": ["x", "z"]}),
        np.random.default_rng(),
    )
    for client, expected in {"p": ["y"], "q": ["x", "z"]}.items():
        parts = (cut[client].train, cut[client].validation, cut[client].test)
        ids = np.sort(np.concatenate([part.ids for part in parts]))
        assert ids.tolist() == np.flatnonzero(np.isin(pool.owners, expected)).tolist()


def test_fewer_records_per_client_are_drawn_and_stay_with_their_owners():
    pool = records(["a", "b", "c", "a"] * 60)
    cut = partitions.cut(pool, block(records_per_client=40), np.random.default_rng(3))
    total = 0
    for client, shard in cut.items():
        for part in (shard.train, shard.validation, shard.test):
            assert set(part.owners) <= {client}
            total += len(part)
    assert total == 120


def refused(pool_owners, **changes) -> str:
    owned = None if pool_owners is None else np.array(pool_owners)
    with pytest.raises(UserError) as error:
        partitions.deal(np.zeros(60, int), block(**changes), np.random.default_rng(), owned)
    assert str(error.value).endswith("instead. (params.yaml)")
    return str(error.value)


def test_records_that_name_no_owner_are_refused():
    said = refused(None)
    assert said.startswith("The 'scheme' parameter of partition must be dirichlet, shards, ")
    assert "Got 'natural' instead." in said


def test_sites_of_other_names_than_the_clients_are_listed_with_these():
    said = refused(["north", "a"])
    assert said.startswith("The 'sites' parameter of partition must be a mapping")
    assert "The records' sites are a, north; the clients are a, b, c." in said


def test_a_client_without_any_site_is_named_where_there_is_no_mapping():
    assert "sites are a, b; the clients are a, b, c" in refused(["a", "b", "a"])


def test_a_site_that_no_client_has_is_named():
    sites = {"a": ["n"], "b": ["s"], "c": ["w"]}
    said = refused(["n", "s", "w", "e", "e"], sites=sites)
    assert (
        "gives every site a client. The records' sites are e, n, s, w; without a client are e."
        in said
    )


def test_a_client_whose_sites_own_nothing_is_named():
    sites = {"a": ["n"], "b": ["s"], "c": ["w", "gone"]}
    said = refused(["n", "s"], sites=sites)
    assert (
        "gives every client a site with records. The records' sites are n, s; without one are c."
        in said
    )


def test_a_site_without_records_is_no_mistake_where_its_client_has_others():
    chosen = block(sites={"a": ["n", "gone"], "b": ["s"], "c": ["w"]})
    owned = np.array(["n", "s", "w"])
    parts = partitions.deal(np.zeros(3, int), chosen, np.random.default_rng(), owned)
    assert [len(part) for part in parts.values()] == [1, 1, 1]
    assert owners.absent_sites(owned, chosen) == ["gone"]
    assert owners.absent_sites(owned, block()) == []


def test_a_client_of_too_few_records_is_named_with_the_value_that_works():
    owned = ["a"] * 9 + ["b"] * 5 + ["c"] * 7
    said = refused(owned, min_records=6)
    assert said.startswith("The 'min_records' parameter of partition must be at most 5, the number")
    assert "of b, for scheme 'natural'" in said and "Got 6 instead." in said
    partitions.deal(
        np.zeros(21, int), block(min_records=5), np.random.default_rng(), np.array(owned)
    )


def test_a_client_too_small_to_be_scored_is_named_with_what_would_help():
    pool = records(["a"] * 40 + ["b"] * 5 + ["c"] * 40)
    with pytest.raises(UserError, match=r"b got \d.* give the client more sites, name fewer"):
        partitions.cut(pool, block(), np.random.default_rng())


def test_owners_travel_with_their_records_and_stand_in_a_file_only_where_it_is_meant(tmp_path):
    pool = records(["x", "y", "z"])[np.array([2, 0])]
    assert pool.owners.tolist() == ["z", "x"]
    pool.save(tmp_path / "with.npz", b"salt", with_owners=True)
    pool.save(tmp_path / "without.npz", b"salt")
    assert load(tmp_path / "with.npz", with_owners=True).owners.tolist() == ["z", "x"]
    assert load(tmp_path / "with.npz").owners is None
    assert load(tmp_path / "without.npz", with_owners=True).owners is None
    with np.load(tmp_path / "without.npz") as arrays:
        assert "owners" not in arrays


def test_records_without_owners_have_the_bytes_that_they_had(tmp_path):
    plain = Images(np.zeros((2, 2, 2, 1), np.uint8), np.array([0, 1]), np.arange(2))
    plain.save(tmp_path / "a.npz", b"salt")
    plain.save(tmp_path / "b.npz", b"salt", with_owners=True)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def table(tmp_path, text: str | bytes):
    content = text if isinstance(text, bytes) else text.encode()
    (tmp_path / owners.TABLE).write_bytes(content)
    return tmp_path


def test_a_table_names_the_owner_of_each_image(tmp_path):
    assert owners.from_table(tmp_path, FILES) is None
    expected = ["north", "south", "north"]
    assert owners.from_table(table(tmp_path, TABLE), FILES) == expected
    # of a spreadsheet: a mark at the start, other ends of lines, more columns, empty lines
    spreadsheet = "\ufeffnote,client,file\r\n,north,a/1.png\r\n\r\nx, south ,./a/2.png\r\n"
    spreadsheet += ',north,"b/deep/3.png"\r\n'
    assert owners.from_table(table(tmp_path, spreadsheet), FILES) == expected


MISTAKES = {
    "a row that names no file": (TABLE + "a/9.png,north\n", r"Got 1 that are none: a/9\.png\."),
    "a file outside": (TABLE + "../x.png,north\n", r"Got 1 that are none: \.\./x\.png\."),
    "a file without a client": (
        "file,client\na/1.png,n\nb/deep/3.png,n\n",
        r"1 of 3 have none: a/2\.png\.",
    ),
    "an empty client": (
        TABLE.replace("south", " "),
        r"Line 3 of .* must name a file and its client.* Got 'a/2\.png' and ''",
    ),
    "an endless client": (TABLE.replace("south", "s" * 300), r"Line 3 of .* of 1 to 255 char"),
    "a duplicate row": (TABLE + "a/1.png,north\n", r"each file once\. Got 1 more .*: a/1\.png\."),
    "the same file in other words": (TABLE + "./a/1.png,south\n", r"Got 1 more than once"),
    "another separator": (TABLE.replace(",", ";"), r"'file,client'\. Got 'file;client' instead"),
    "no header": (TABLE.partition("\n")[2], r"'file,client'\. Got 'a/1\.png, north' instead"),
    "nothing": ("", r"Got '' instead"),
    "too many cells": (TABLE + "a/1.png,north,x\n", r"Line 5 of .* 2 columns\. Got 3 instead"),
    "no UTF-8": (b"file,client\na/1.png,\xff\n", r"must be a text in UTF-8"),
    "an open quote": ('file,client\n"a/1.png,north\n', r"must be a text in UTF-8 with commas"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_table_with_a_mistake_is_refused_in_a_sentence(tmp_path, case):
    text, said = MISTAKES[case]
    with pytest.raises(UserError, match=said) as error:
        owners.from_table(table(tmp_path, text), FILES)
    assert "clients.csv" in str(error.value) and "\n" not in str(error.value)
