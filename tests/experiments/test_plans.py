"""Tests the plans against params.yaml and dvc.yaml.

DVC makes of each what was planned, and its stages exist.
"""

import itertools
import math
import re
from dataclasses import replace

import parameter_files
import pytest
from dvc.utils.cli_parse import to_path_overrides
from dvc.utils.hydra import apply_overrides
from project import ROOT
from ruamel.yaml import YAML

from experiments import parameters
from experiments.plans import (
    BOUNDS,
    FEDERATED,
    GROUPS,
    HANDED_OUT,
    MEASURED,
    OTHERS,
    PRIVATE,
    STORES,
    Request,
    Run,
    of_images,
)
from pipelines import config
from pipelines.reporting import collect

STAGES = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text())["stages"]


def produced(params: config.Params) -> set[str]:
    """Returns the names of all stages of dvc.yaml under these parameters."""
    content, names = params.model_dump(), set()
    for stage, entry in STAGES.items():
        lists = []
        for template in entry.get("matrix", {}).values():
            node = content
            for part in template[2:-1].split("."):
                node = node[part]
            lists.append(list(node))
        names |= {
            f"{stage}@{'-'.join(cell)}" if cell else stage for cell in itertools.product(*lists)
        }
    return names


def first_of_each_variant(store: str, asked: Request) -> list[Run]:
    return [
        run for run in STORES[store](asked) if run.seed == 0 and run.dataset == asked.datasets[0]
    ]


@pytest.mark.parametrize("store", STORES)
def test_every_target_is_a_stage_and_every_method_has_results(store, asked, params):
    for run in STORES[store](asked):
        own = parameters.resolved(params, run.overrides)
        assert own.seed == run.seed and own.datasets == [run.dataset]
        assert run.targets and set(run.targets) <= produced(own)
        assert (run.methods or run.newcomers) and set(run.methods) <= set(
            collect.method_folders(own, run.dataset)
        )
        assert len(set(run.targets)) == len(run.targets) and len(set(run.methods)) == len(
            run.methods
        )


@pytest.mark.parametrize("store", STORES)
def test_dvc_makes_of_the_arguments_what_was_planned(store, asked, params, tmp_path):
    """The arguments follow Hydra's grammar and DVC's merging into each file.

    All that the run's figures depend on is as planned.
    """
    for run in first_of_each_variant(store, asked):
        parameter_files.copy_files(ROOT, tmp_path)
        written = parameters.arguments(run.overrides)
        assert written[::2] == ["-S"] * len(run.overrides)
        for file, overrides in to_path_overrides(written[1::2]).items():
            apply_overrides(tmp_path / file, overrides)
        of_files = config.load(tmp_path / "params.yaml")
        planned = parameters.resolved(params, run.overrides)
        plain = replace(run, overrides={})
        assert parameters.settings(of_files, plain) == parameters.settings(planned, plain)
        shared = {"baselines", "meta"}  # another method may have one of them as its base
        assert of_files.model_dump(exclude=shared) == planned.model_dump(exclude=shared)


@pytest.mark.parametrize("store", ["table2", "table3"])
def test_the_papers_setting(store, asked, params):
    for run in STORES[store](asked):
        own = parameters.resolved(params, run.overrides)
        assert (own.partition.scheme, own.partition.alpha, own.partition.small) == (
            "dirichlet",
            0.5,
            None,
        )
        assert sorted(client.epsilon for client in own.clients.values()) == [1, 3, 5, 8, 10]
        assert own.prepare.root == "../archives"
        for name in (
            "meta",
            "pppfl_paper",
            "fedavg",
            "fednova",
            "fedprox",
            "scaffold",
            "fedmeta",
            "reptile",
            "sda_fl",
        ):
            assert own.training(run.dataset, name).rounds == 30, name


@pytest.mark.parametrize("store", ["table2", "table3", "roads"])
def test_a_run_lists_the_baseline_that_it_trains_and_no_other(store, asked):
    for run in STORES[store](asked):
        for stage, key in (("train_baseline", "baselines"), ("train_dp_baseline", "dp_baselines")):
            trained = [
                target.partition(f"@{run.dataset}-")[2]
                for target in run.targets
                if target.startswith(f"{stage}@")
            ]
            if trained:
                assert run.overrides[f"{key}.algorithms"] == trained
        read = {method.partition("/")[0] for method in run.methods}
        assert read == {"own_synthetic", "best_single"} or len(read) == 1


def test_the_runs_of_a_cell_measure_every_method_once(asked):
    own = [run for run in STORES["table2"](asked) if (run.dataset, run.seed) == ("mnist", 1)]
    read = [method for run in own for method in run.methods]
    assert len(set(read)) == len(read)
    expected = set(BOUNDS)
    for name in ("pppfl", *FEDERATED, *set(OTHERS) - {"single"}, "own_synthetic", "best_single"):
        expected |= {f"{name}/{generator}" for generator in PRIVATE}
    assert set(read) == expected


def test_some_methods_runs_are_those_of_the_whole_plan(asked):
    for store in ("table2", "table3", "roads", "newcomers"):
        whole = list(STORES[store](asked))
        parts = [run for name in MEASURED for run in STORES[store](replace(asked, methods=(name,)))]
        assert sorted(parts, key=str) == sorted(whole, key=str)


def test_only_table3_has_the_gan_and_no_private_generator(asked):
    for store, plan in STORES.items():
        for run in plan(asked):
            assert (run.overrides["synthesis.generators"] == ["gan"]) == (store == "table3")


def test_table5_draws_all_epsilons_from_one_group_and_changes_nothing_else(asked):
    own = [run for run in STORES["table5"](asked) if run.dataset == "mnist" and run.seed == 1]
    assert [run.variant for run in own] == [
        of_images(generator, group) for generator in PRIVATE for group in GROUPS
    ]
    rest = []
    for group, run in zip(GROUPS, own):  # the first generator's
        drawn = [value for key, value in run.overrides.items() if key.endswith(".epsilon")]
        assert len(drawn) == 5 and set(drawn) <= set(GROUPS[group])
        assert group == "inf" or len(set(drawn)) == 5
        rest.append(
            {key: value for key, value in run.overrides.items() if not key.endswith(".epsilon")}
        )
    assert rest[0] == rest[1] == rest[2]
    assert all(
        math.isinf(value) for key, value in own[2].overrides.items() if key.endswith(".epsilon")
    )
    other = next(run for run in STORES["table5"](asked) if run.seed == 0)
    assert [*other.overrides.values()] != [*own[0].overrides.values()]


def test_figure2_switches_both_stabilisers_each_way(asked):
    own = [run.overrides for run in first_of_each_variant("figure2", asked)]
    assert {(run["meta.ema"], run["meta.cosine"]) for run in own} == set(
        itertools.product([True, False], repeat=2)
    )
    assert {run["fine_tune.every"] for run in own} == {None}


@pytest.mark.parametrize("store", ["table2", "table5", "figure2"])
def test_one_generators_runs_are_those_of_the_whole_plan(store, asked):
    """A run that was measured for one generator is then found again in the plan of all."""
    whole = {run.name: run for run in STORES[store](asked)}
    for generator in PRIVATE:
        own = list(STORES[store](replace(asked, generators=(generator,))))
        assert (
            own
            == [
                run
                for run in whole.values()
                if run.overrides["synthesis.generators"] == [generator]
            ]
            != []
        )


def test_three_newcomers_are_handed_every_model_in_a_run_each(asked, params):
    """Without a client that is held out, the stage would have nothing to do."""
    assert params.new_clients.held_out == []
    own = [run for run in STORES["newcomers"](asked) if (run.dataset, run.seed) == ("mnist", 0)]
    resolved = [parameters.resolved(params, run.overrides).new_clients for run in own]
    assert [study.algorithms for study in resolved] == [[name] for name in HANDED_OUT]
    assert {tuple(study.held_out) for study in resolved} == {("c0", "c1", "c2")}


@pytest.mark.parametrize("store", STORES)
def test_names_are_unique_and_fit_for_a_git_reference(store, asked):
    names = [run.name for run in STORES[store](asked)]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in names)


def test_every_data_set_once_before_any_seed_twice(asked):
    cells = [(run.seed, run.dataset) for run in STORES["table3"](asked)]
    assert list(dict.fromkeys(cells)) == [
        (seed, dataset) for seed in asked.seeds for dataset in asked.datasets
    ]


def test_what_reads_no_images_of_a_generator_runs_with_one_of_them(asked):
    own = [run for run in STORES["table2"](asked) if (run.dataset, run.seed) == ("mnist", 0)]
    first, second = (
        {
            method
            for run in own
            if run.overrides["synthesis.generators"] == [generator]
            for method in run.methods
        }
        for generator in PRIVATE
    )
    assert first - {method.replace(PRIVATE[1], PRIVATE[0]) for method in second} == set(BOUNDS)
    assert all(method.endswith(f"/{PRIVATE[1]}") for method in second)
