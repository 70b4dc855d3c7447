"""Lists bugs in what leaves the machine: outputs, keys and uploads."""

from mutants.mutant import TESTS, Mutant

MUTANTS = [
    Mutant(
        "a guard that lets private outputs go without a cache",
        "pipelines/guard/checks.py",
        "if not out.use_cache:",
        "if False:",
        f"{TESTS}/guard/test_checks.py::test_a_private_output_without_a_cache_is_named",
    ),
    Mutant(
        "a guard that lets private outputs be pushed",
        "pipelines/guard/checks.py",
        "if out.can_push:",
        "if False:",
        f"{TESTS}/guard/test_checks.py::test_a_private_output_that_would_be_pushed_is_named",
    ),
    Mutant(
        "a guard that reads no file for keys",
        "pipelines/guard/keys.py",
        "if HEADER.search(text):",
        "if False:",
        f"{TESTS}/guard/test_checks.py::test_a_private_key_that_git_would_add_is_named",
    ),
    Mutant(
        "a guard that holds no export against its sums",
        "pipelines/guard/uploads.py",
        "elif sha256(upload.files[name]) != named[name]:",
        "elif False:",
        f"{TESTS}/guard/test_uploads.py::test_a_file_that_was_changed_is_named",
    ),
    Mutant(
        "a guard that lets any image leave with a model",
        "pipelines/guard/pools.py",
        "strange = len(_images(pool) - exported)",
        "strange = 0",
        f"{TESTS}/guard/test_uploads.py::test_a_pool_with_any_other_image_may_not",
    ),
    Mutant(
        "a client that hands its set in whatever its settings say",
        "pipelines/federation/network/flare/client.py",
        "if not server_gathers_sets(params, run):",
        "if False:",
        f"{TESTS}/federation/network/flare/test_client.py::test_and_nowhere_else",
    ),
    Mutant(
        "a head without noise that is served to another machine",
        "pipelines/federation/network/client.py",
        "if not math.isfinite(epsilon):",
        "if False:",
        f"{TESTS}/federation/network/test_client.py::test_an_organisations_own_client_serves_no_head_without_noise",
    ),
    Mutant(
        "a record that fails after the ledger was charged, where a server sees it",
        "pipelines/federation/network/client.py",
        'shards.read(run.dataset, client, "train", params.profiles[run.dataset])',
        'shards.read(run.dataset, client, "train")',
        f"{TESTS}/federation/network/test_client.py::test_a_record_that_does_not_fit_is_told_before_the_ledger_and_no_server_learns_it",
    ),
    Mutant(
        "a setting that has sets gathered in a noisy run, too",
        "pipelines/federation/run_spec.py",
        "return params.federation.gather_sets and not self.noisy",
        "return params.federation.gather_sets",
        f"{TESTS}/federation/test_run_spec.py::test_no_setting_has_sets_gathered_in_a_noisy_run",
    ),
    Mutant(
        "a guard that looks at no model that a user made by hand",
        "pipelines/guard/uploads.py",
        "if folder.is_dir() and path not in known:",
        "if False:",
        f"{TESTS}/guard/test_uploads.py::test_and_no_other_image_whatever_its_cards_say",
    ),
    Mutant(
        "a guard that lets a file too many leave",
        "pipelines/guard/uploads.py",
        "if expected and name not in (*expected, *optional):",
        "if False:",
        f"{TESTS}/guard/test_uploads.py::test_a_file_too_many_is_named",
    ),
    Mutant(
        "a guard that lets a classifier leave with the images of any generator",
        "pipelines/guard/uploads.py",
        "if expected == EXPORT and Path(upload.path).name in WITH_CLASSIFIER:",
        "if expected == EXPORT and CLASSIFIER in upload.files:",
        f"{TESTS}/guard/test_uploads.py::"
        "test_a_classifier_may_not_go_out_with_images_of_another_generator",
    ),
    Mutant(
        "a recovery that drops results which a merge left open",
        "pipelines/recover/dvc_files.py",
        "if not begins_well or merged or _readable(lines):",
        "if _readable(lines):",
        f"{TESTS}/recover/test_recovery.py::test_marks_of_a_merge_are_left_to_whoever_merges",
    ),
    Mutant(
        "a guard that lets any file leave with a model of noisy messages",
        "pipelines/guard/uploads.py",
        "expected = OF_NOISE",
        "expected = ()",
        "tests/stages/test_train_noisy.py::test_the_guard_knows_the_folder_and_no_other_file_in_it",
    ),
]
