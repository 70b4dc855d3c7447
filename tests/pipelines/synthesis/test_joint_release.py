"""Tests what each client's ledger enters of a release that all clients make together."""

import math
from dataclasses import replace

import numpy as np
import pytest
from project import ROOT

from pipelines import config, releases
from pipelines.config.data import Client
from pipelines.datasets.labelled_images import Images
from pipelines.privacy.discrete_gaussian import Budget
from pipelines.privacy.noise import OsEntropy
from pipelines.synthesis import dp_moments, joint_release
from pipelines.synthesis.joint_plan import Group
from pipelines.synthesis.joint_release import JointRelease

PARAMS = config.load(ROOT / "params.yaml")
TRAIN = {
    f"c{place}": Images(
        np.full((6, 8, 8, 1), place, np.uint8), np.arange(6), np.arange(6) + 10 * place
    )
    for place in range(5)
}


def planned(epsilon: float = 3.0, **changes) -> JointRelease:
    """Returns a release of five clients, with some settings of `privacy` changed."""
    clients = dict.fromkeys(TRAIN, Client(epsilon=epsilon))
    privacy = PARAMS.privacy.model_copy(update=changes)
    params = PARAMS.model_copy(update={"clients": clients, "privacy": privacy})
    return JointRelease(params, "digits", "joint_moments", tuple(TRAIN))


def with_epsilons(*epsilons: float) -> config.Params:
    clients = {f"c{place}": Client(epsilon=epsilon) for place, epsilon in enumerate(epsilons)}
    return PARAMS.model_copy(update={"clients": clients})


def fingerprints(release: JointRelease, train: dict[str, Images] = TRAIN) -> dict[str, str]:
    return {name: entry.fingerprint for name, entry in release.entries(train).items()}


@pytest.mark.parametrize(
    ("epsilons", "expected"),
    [
        ((3.0, 3.0, 3.0), [("c0", "c1", "c2")]),
        ((3.0, 3.0), [("c0",), ("c1",)]),
        ((10.0, 3.0, 10.0, 5.0, 10.0), [("c0", "c2", "c4"), ("c1",), ("c3",)]),
        ((1.0, 9.0, 1.0, 9.0, 1.0, 9.0), [("c0", "c2", "c4"), ("c1", "c3", "c5")]),
    ],
)
def test_clients_of_one_budget_release_together_from_three_on(epsilons, expected):
    assert joint_release.groups(with_epsilons(*epsilons)) == expected


def test_another_delta_is_another_budget():
    params = with_epsilons(3.0, 3.0, 3.0)
    clients = {**params.clients, "c2": Client(epsilon=3.0, delta=1e-6)}
    apart = params.model_copy(update={"clients": clients})
    assert joint_release.groups(apart) == [("c0",), ("c1",), ("c2",)]


def test_each_client_is_charged_what_it_asked_for():
    release = planned(epsilon=5.0)
    for entry in release.entries(TRAIN).values():
        assert entry.cost == {"kind": "gaussian", "mu": Budget(5.0, PARAMS.privacy.delta).mu}
        assert entry.statement["epsilon"] == 5.0


def test_one_client_alone_releases_what_dp_moments_would_and_trusts_nobody():
    alone = replace(planned(), clients=("c1",))
    details = alone.plan.statement.details
    assert details["sigma_of_share"] == details["sigma"]
    assert alone.statement.trust is None
    assert "know together" not in " ".join(alone.statement.not_covered)
    assert list(alone.entries(TRAIN)) == ["c1"]
    assert alone.fit(TRAIN)["count"] > 0


def test_a_release_alone_is_of_its_own_records_to_the_last_bit():
    alone = replace(planned(epsilon=math.inf), clients=("c1",))
    own = dp_moments.plan(alone.plan.settings, Budget(math.inf, 1e-5), alone.plan.space)
    state = alone.fit(TRAIN)
    for name, value in dp_moments.fit(TRAIN["c1"], own, OsEntropy(), seed=0).items():
        np.testing.assert_array_equal(state[name], value)


def test_each_ledger_enters_a_part_of_its_own_about_the_same_records():
    entries = planned().entries(TRAIN)
    assert list(entries) == list(TRAIN)
    assert len({entry.fingerprint for entry in entries.values()}) == 5
    assert len({entry.data for entry in entries.values()}) == 1
    assert [entry.parameters["client"] for entry in entries.values()] == list(TRAIN)


def test_another_record_budget_trust_or_seed_of_anyone_is_a_release_of_all_anew():
    release = planned()
    first = fingerprints(release)
    assert fingerprints(planned()) == first
    changed = [
        fingerprints(release, {**TRAIN, "c3": TRAIN["c3"][:5]}),
        fingerprints(planned(epsilon=2.0)),
        fingerprints(planned(trust="none")),
        fingerprints(planned(noise="seeded_for_tests")),
        fingerprints(replace(release, params=release.params.model_copy(update={"seed": 8}))),
    ]
    for names in changed:
        assert all(names[client] != first[client] for client in TRAIN)


def test_trust_says_how_many_may_collude():
    assert planned().group == Group(clients=5, colluding=2)
    assert planned(trust="none").group == Group(clients=5, colluding=4)


def test_noise_for_tests_costs_what_no_ledger_can_bound():
    for entry in planned(noise="seeded_for_tests").entries(TRAIN).values():
        assert entry.cost == {"kind": "none"}
        assert entry.statement["guarantee"] == "none"
        assert "trust" not in entry.statement and "trust" not in entry.statement["details"]


def test_noise_for_tests_gives_the_same_state_again():
    release = planned(noise="seeded_for_tests")
    states = [replace(release).fit(TRAIN) for _ in range(2)]
    for name, value in states[0].items():
        np.testing.assert_array_equal(states[1][name], value)


def test_each_client_has_noise_of_its_own():
    sources = planned(noise="seeded_for_tests").sources
    assert len({source.seed for source in sources.values()}) == 5


def test_a_ledger_names_the_facts_of_several_clients_in_their_order():
    assert releases.digest_of_all(["a", "b"]) != releases.digest_of_all(["b", "a"])
