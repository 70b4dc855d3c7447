"""Tests dvc.yaml against the code and the parameters, without running it."""

import re
from typing import get_args

import parameter_files
import pytest
from imports import ROOT, closure, floors, packages, units
from ruamel.yaml import YAML

from pipelines import methods
from pipelines.config.dp import DP_BASELINES
from pipelines.config.generators import GENERATORS, JOINT
from pipelines.config.places import SETTINGS, SHARED, settings_file
from pipelines.config.training import BASELINES, OneModel

PLUMBING = {  # checks, names, book-keeping: a change there makes no output another
    *(str(file.relative_to(ROOT)) for file in (ROOT / "pipelines/config").glob("*.py")),
    *(str(file.relative_to(ROOT)) for file in (ROOT / "pipelines/privacy/ledger").glob("*.py")),
    "pipelines/datasets/salting.py",
    "pipelines/errors.py",
    "pipelines/files.py",
    "pipelines/paths.py",
    "pipelines/privacy/ledger_folder.py",
    "pipelines/release_store.py",
    "pipelines/release_totals.py",
    "pipelines/releases.py",
    "pipelines/scratch.py",
    "pipelines/seeds.py",
    "pipelines/words.py",
    "stages/cli.py",
}
STAGES = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text())["stages"]
CONTENT = {
    file: YAML(typ="safe").load((ROOT / file).read_text()) for file in ("params.yaml", *SETTINGS)
}
CELLS = [stage for stage in STAGES if stage not in ("partition", "report")]  # with a profile
ITEMS = ("generator", "algorithm")
# what reads parameters for a stage, and for `pipelines.plan` beside it
READERS = {
    "prepare": ["pipelines/datasets/preparation.py"],
    "partition": ["pipelines/datasets/dealing.py"],
    "train_generator": ["pipelines/synthesis/client_release.py"],
}


def tracked(stage: str) -> dict[str, set[str]]:
    """{file: the keys of it that a stage declares}; a plain entry is of params.yaml."""
    found = {}
    for entry in STAGES[stage]["params"]:
        files = entry if isinstance(entry, dict) else {"params.yaml": [entry]}
        for file, keys in files.items():
            found.setdefault(file, set()).update(keys)
    return found


def declared(stage: str) -> set[str]:
    """The dotted keys that a stage declares, whatever their file; a profile's begin with `profiles`."""
    dotted = set()
    for file, keys in tracked(stage).items():
        before = f"{file.removesuffix('.yaml').replace('/', '.')}." if "profiles" in file else ""
        dotted |= {f"{before}{key}" for key in keys}
    return dotted


def text_of(stage: str) -> str:
    """Returns the code by which a stage reads parameters."""
    files = [f"stages/{stage}.py", *READERS.get(stage, [])]
    return "\n".join((ROOT / file).read_text() for file in files)


def is_code(dep: str) -> bool:
    return (
        dep.startswith(("stages/", "pipelines", "models/"))
        and "private" not in dep
        and "initial" not in dep
    )


def code_deps(stage: str) -> set[str]:
    """Returns the stage's code dependencies as files. A package stands for the files in it."""
    found = set()
    for dep in filter(is_code, STAGES[stage]["deps"]):
        path = ROOT / dep
        assert path.exists(), f"{stage} depends on {dep}, which does not exist"
        found |= {
            str(file.relative_to(ROOT))
            for file in (path.rglob("*.py") if path.is_dir() else [path])
        }
    return found


def code_used(stage: str, generator: str) -> set[str]:
    files = closure(ROOT / f"stages/{stage}.py")
    by_name = stage in ("train_generator", "export_synthetic")
    # the generator is imported by its name
    if by_name or (stage == "joint_release" and generator in JOINT):
        module = ROOT / "pipelines/synthesis" / generator
        files |= closure(module / "__init__.py" if module.is_dir() else module.with_suffix(".py"))
    if stage in ("train_baseline", "new_clients"):  # as the task does each algorithm
        files = files.union(*map(closure, (ROOT / "pipelines/federation/algorithms").glob("*.py")))
    return {str(file.relative_to(ROOT)) for file in files} - PLUMBING


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("stage", STAGES)
def test_deps_name_all_the_code_a_stage_uses(stage, generator):
    assert code_used(stage, generator) <= code_deps(stage)


@pytest.mark.parametrize("stage", STAGES)
def test_deps_name_no_package_that_a_stage_does_not_use(stage):
    used = set().union(*(code_used(stage, generator) for generator in GENERATORS))
    for dep in STAGES[stage]["deps"]:
        if is_code(dep):
            assert any(file == dep or file.startswith(f"{dep}/") for file in used), dep


def test_no_parameter_has_a_name_that_dvc_takes_for_a_fact_about_files():
    def names(node):
        if isinstance(node, dict):
            for name, value in node.items():
                yield name
                yield from names(value)

    assert not {"size", "nfiles"} & set(names(parameter_files.read(ROOT)))


def test_every_profile_has_what_the_stages_declare():
    """DVC stops at a parameter that is not there, also at one that has a default."""
    named = set().union(*(tracked(stage)["profiles/${item.dataset}.yaml"] for stage in CELLS))
    for path in sorted((ROOT / "profiles").glob("*.yaml")):
        assert named <= set(YAML(typ="safe").load(path.read_text())), path


def test_every_file_has_what_the_stages_declare_of_it():
    """Each of an algorithm's or a generator's blocks, too, in whose place there is a template."""
    names = {"item.generator": GENERATORS, "item.client": CONTENT["params.yaml"]["clients"]}
    for stage in STAGES:
        algorithms = DP_BASELINES if stage == "train_dp_baseline" else BASELINES
        for file, keys in tracked(stage).items():
            for key in keys if "profiles" not in file else ():
                block, _, name = key.partition(".")
                for template, known in {**names, "item.algorithm": algorithms}.items():
                    if name == f"${{{template}}}":
                        assert set(known) <= set(CONTENT[file][block]), (stage, file, key)
                        break
                else:
                    held = CONTENT[file][block]
                    assert not name or name in held, (stage, file, key)


def test_a_block_that_stands_in_two_files_is_declared_in_both():
    """But for `federation`, of which the settings have only how long to wait."""
    for stage in STAGES:
        for block in set(SHARED) - {"federation"}:
            places = {file for file, keys in tracked(stage).items() if block in keys}
            assert places in (set(), {"params.yaml", settings_file(block)}), (stage, block)
            assert block in CONTENT["params.yaml"]
    assert set(CONTENT["settings/training.yaml"]["federation"]) == {
        "start_timeout",
        "reply_timeout",
        "ping_timeout",
    }


def test_the_base_of_a_block_is_declared_where_the_block_is():
    """DVC sees the name of a base, and not what stands there."""
    found = set()
    for file, content in CONTENT.items():
        for group, blocks in content.items():
            for name, block in blocks.items() if isinstance(blocks, dict) else ():
                if not isinstance(block, dict) or "base" not in block:
                    continue
                base = block["base"] if block["base"] in content else f"{group}.{block['base']}"
                for stage in STAGES:
                    keys = tracked(stage).get(file, set())
                    templates = {f"{group}.{name}", *(f"{group}.${{item.{one}}}" for one in ITEMS)}
                    if keys & templates:
                        assert {base, group} & keys, (stage, file, name)
                        found.add((stage, base))
    assert len(found) == 9, found


def test_nothing_of_a_data_set_is_declared_but_by_its_own_cells():
    for stage in STAGES:
        profiles = {file for file in tracked(stage) if file.startswith("profiles")}
        assert profiles == ({"profiles/${item.dataset}.yaml"} if stage in CELLS else set()), stage


def test_a_stage_reads_only_the_parameter_blocks_it_declares():
    """`params.BLOCK` in a stage's file must be one of its `params`.

    `device` is excepted, because it says where, not what.
    """
    for stage in STAGES:
        blocks = set(re.findall(r"params\.([a-z_]+)", text_of(stage)))
        # `device`, and what merges a profile's overrides, for which there are tests of their own
        blocks -= {"device", "generator", "training", "public_fraction", "public_knob", "left_out"}
        blocks -= {"public_records"}
        blocks = {"clients" if block == "budget" else block for block in blocks}
        assert blocks <= {param.split(".")[0] for param in declared(stage)}, stage


def test_a_stage_declares_the_training_settings_it_asks_for():
    """`params.training(dataset, NAME)` reads the block, and the profile's overrides of it."""
    for stage in STAGES:
        asked = re.findall(
            r"params\.training\(dataset, (\w+|\"\w+\")\)", (ROOT / f"stages/{stage}.py").read_text()
        )
        names = {"${item.algorithm}" if name == "algorithm" else name.strip('"') for name in asked}
        if "block" in names:  # of each algorithm that may be named
            names = names - {"block"} | {
                methods.block(algorithm) for algorithm in get_args(OneModel)
            }
        names -= (
            {"local"} if stage == "train_baseline" else set()
        )  # asked for when it is the algorithm itself
        keys = declared(stage)
        assert not names or {"profiles.${item.dataset}.training", "networks"} <= keys, stage
        for name in names:
            known = {name, f"baselines.{name}", f"dp_baselines.{name}"}
            known |= {"baselines"} if name in BASELINES else set()
            assert known & keys, (stage, name)


def test_a_stage_declares_what_decides_which_images_are_public():
    for stage in STAGES:
        if re.search(r"params\.(public_fraction|left_out)", text_of(stage)):
            own = {"profiles.${item.dataset}.public_fraction", "profiles.${item.dataset}.source"}
            assert own <= declared(stage), stage
    assert "prepare" in declared("prepare")  # its own fraction, of public data sets


def test_a_stage_declares_what_decides_how_many_records_are_said_to_be():
    for stage in STAGES:
        if "params.public_records" in text_of(stage):
            said = {"partition", "clients.${item.client}", "profiles.${item.dataset}.records"}
            assert said <= declared(stage), stage


def test_scores_alone_are_named_for_dvc_to_add_to_an_experiments_commit():
    """It adds the files of metrics and plots, ignored by Git or not. `scores` leaves them empty for
    a user's own images; elsewhere they would be private scores.
    """
    content = YAML(typ="safe").load((ROOT / "dvc.yaml").read_text())
    assert set(content) <= {"stages", "vars"}
    naming = [name for name, stage in STAGES.items() if {"metrics", "plots"} & set(stage)]
    assert naming == ["scores"]


def test_the_floors():
    """Imports go one way: models import none of ours; privacy imports nothing else of ours but
    privacy; federation and synthesis do not know each other; nothing in pipelines imports
    stages.
    """
    for file in (ROOT / "models").glob("*.py"):
        assert {p.parts[-2] for p in closure(file)} == {"models"}
    for file in (ROOT / "pipelines/privacy").rglob("*.py"):
        assert all(p.is_relative_to(ROOT / "pipelines/privacy") for p in closure(file)), file
    for floor, other in (("federation", "synthesis"), ("synthesis", "federation")):
        for file in (ROOT / "pipelines" / floor).rglob("*.py"):
            assert not [p for p in closure(file) if other in p.parts], file
    for file in (ROOT / "pipelines").rglob("*.py"):
        assert not [p for p in closure(file) if "stages" in p.parts], file


@pytest.mark.parametrize("package", packages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_package_has_a_circle_of_imports(package):
    floors(units(package))


# From the lowest floor up: a part imports from lower floors alone.
FEDERATION = (
    {"core", "health", "noisy_release"},
    {"dp", "run_spec"},
    {"algorithms"},
    {"inprocess"},
    {"baselines", "engine"},
    {"home"},
    {"noisy_training"},
    {"noisy_run"},
    {"network"},
)
PIPELINES = (
    {"errors", "methods", "privacy", "seeds", "words"},
    {"paths", "release_store", "release_totals"},
    {"config", "scratch"},
    {"files", "lattice", "seal"},
    {"datasets", "recover"},
    {"releases", "training"},
    {"evaluation", "guard", "synthesis"},
    {"federation", "reporting"},
    {"joint", "plan"},
    {"reproduction"},
)


@pytest.mark.parametrize(
    ("folder", "declared"), [("pipelines", PIPELINES), ("pipelines/federation", FEDERATION)]
)
def test_a_part_imports_from_lower_floors_alone(folder, declared):
    """A new part has a place of its own; one that slips to another floor shows here."""
    arrows = units(ROOT / folder)
    number = {part: floor for floor, parts in enumerate(declared) for part in parts}
    assert set(arrows) - {"__init__"} == set(number)
    for part, others in arrows.items():
        for other in others:
            assert number[other] < number[part], f"{part} imports {other}"


def test_a_circle_of_imports_is_found():
    with pytest.raises(AssertionError, match="a circle of imports among \\['b', 'c'\\]"):
        floors({"a": set(), "b": {"a", "c"}, "c": {"b"}})


def test_stages_that_need_no_torch_do_not_import_it():
    import subprocess
    import sys

    for module in (
        "stages.prepare",
        "stages.partition",
        "stages.report",
        "pipelines.synthesis.dp_moments",
    ):
        code = f"import sys, {module}; sys.exit('torch' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0, module
