"""Tests the Makefile.

Set-up fetches and runs only what a lock names, with its version and its hash.
"""

import itertools
import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import pytest
from project import ROOT

LOCKS = {
    "requirements.lock",
    "requirements-setup.lock",
    "requirements-build.lock",
    "requirements-readers.lock",
}
SOURCE_ONLY = {
    "requirements.lock": {"learn2learn", "gym", "pyhocon", "antlr4-python3-runtime"},
    "requirements-readers.lock": {"jsonpath-rw"},
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# split, so that this file holds none either
REGISTRIES = [
    *(
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("pytorch", "org/whl"),
        ("anaconda", "org"),
        ("conda", "io"),
    ),
    *(
        ("npmjs", "org"),
        ("crates", "io"),
        ("docker", "io"),
        ("ghcr", "io"),
        ("pkg", "dev"),
        ("jfrog", "io"),
    ),
]


def locked(name: str) -> dict[str, tuple[str, list[str]]]:
    """Returns {package: (version, hashes)} of a lock. Everything else in it must be a comment."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        requirement, *options = line.partition("#")[0].split(" --")
        if requirement.strip():
            package, version = re.fullmatch(
                r"([a-z0-9.-]+)==([^ ;]+)(?: *;.*)?", requirement.strip()
            ).groups()
            assert all(
                re.fullmatch(r"hash=sha256:[0-9a-f]{64}", option.strip()) for option in options
            ), line
            found[package] = version, [option.strip() for option in options]
    return found


def installs() -> list[list[str]]:
    """Returns the words of each command of the Makefile that installs packages, with its variables
    in place.
    """
    database = subprocess.run(
        ["make", "-n", "-B", ".venv/readers/installed"], cwd=ROOT, text=True, capture_output=True
    ).stdout
    commands = [
        shlex.split(line, comments=True) for line in database.replace("\\\n", " ").splitlines()
    ]
    return [
        words
        for words in commands
        if "install" in words and Path(words[0]).name in ("pip", "uv", "python")
    ]


def values(words: list[str], *options: str) -> list[str]:
    return [value for option, value in itertools.pairwise(words) if option in options]


@pytest.mark.parametrize("lock", sorted(LOCKS))
def test_every_package_of_a_lock_has_a_version_and_hashes(lock):
    packages = locked(lock)
    assert packages and all(hashes for _, hashes in packages.values())


def test_setup_installs_what_the_locks_name_and_nothing_else():
    files = [value for words in installs() for value in values(words, "-r", "--requirement")]
    assert files == ["requirements-setup.lock", "requirements.lock", "requirements-readers.lock"]
    for words in installs():
        assert "--require-hashes" in words
        given = values(
            words, "-r", "--build-constraints", "--python", "--preview-features", "--only-binary"
        )
        rest = words[words.index("install") + 1 :]
        assert not [word for word in rest if not word.startswith("-") and word not in given], words


def test_what_is_built_from_source_is_built_with_what_a_lock_names():
    pip, *both = installs()
    assert values(pip, "--only-binary") == [":all:"]
    assert len(both) == 2
    for uv in both:
        assert values(uv, "--build-constraints") == ["requirements-build.lock"]
        assert "--require-build-hashes" in uv
    for lock, packages in SOURCE_ONLY.items():
        assert set(locked(lock)) >= packages
    assert set(locked("requirements-build.lock")) >= {"setuptools", "wheel", "cython", "numpy"}


def test_what_pyproject_pins_is_in_a_lock_with_that_version():
    own = PROJECT["project"]
    groups = PROJECT["dependency-groups"]
    pinned = {
        "requirements.lock": [
            *own["dependencies"],
            *itertools.chain(*own["optional-dependencies"].values()),
        ],
        "requirements-setup.lock": groups["setup"],
        "requirements-build.lock": groups["build"],
        "requirements-readers.lock": groups["readers"],
    }
    assert set(pinned) == LOCKS
    for lock, requirements in pinned.items():
        versions = {package: version for package, (version, _) in locked(lock).items()}
        for requirement in requirements:
            package, _, version = requirement.partition("==")
            assert versions[package.replace(".", "-")] == version, requirement


def test_what_reads_an_export_is_apart_from_what_reads_private_images():
    """pandas and dill would be imported by scikit-learn and torch wherever they are installed."""
    product = locked("requirements.lock")
    readers = locked("requirements-readers.lock")
    assert {"datasets", "huggingface-hub", "mlcroissant", "pandas", "dill"} <= set(readers)
    assert not {"datasets", "huggingface-hub", "mlcroissant", "pandas", "dill"} & set(product)
    both = set(readers) & set(product)
    assert {"numpy", "pyarrow", "pillow"} <= both
    assert {name: readers[name] for name in both} == {name: product[name] for name in both}


def test_a_package_is_built_with_the_numpy_that_it_runs_with():
    built = locked("requirements-build.lock")
    run = locked("requirements.lock")
    assert built["numpy"] == run["numpy"]


def test_no_file_names_an_address_of_a_registry():
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    for name in [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]:
        content = (ROOT / name).read_bytes().lower()
        assert not [host for host in REGISTRIES if ".".join(host).encode() in content], name
        if name in {"Makefile", "pyproject.toml", *LOCKS}:
            assert (
                b"://" not in content
                and b"index-url" not in content
                and b"find-links" not in content
            ), name


def test_a_run_ends_with_the_command_that_asks_the_guard():
    """DVC's own last line advises a bare `dvc push`."""
    command = ["make", "--no-print-directory", "-n", "-o", "setup", "repro"]
    said = subprocess.run(command, cwd=ROOT, text=True, capture_output=True).stdout
    assert said.split() == ["python", "-m", "pipelines.reproduction"]
