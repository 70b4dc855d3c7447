"""Lists bugs in the ledger and in what is made under it."""

from mutants.mutant import TESTS, Mutant

MUTANTS = [
    Mutant(
        "resume a dead run under the entry of another cost",
        "pipelines/privacy/ledger/__init__.py",
        'if entry["fingerprint"] in made or canonical(entry["cost"]) == cost:',
        "if True:",
        f"{TESTS}/privacy/test_identity.py::test_a_better_accountant_charges_nobody_for_what_was_made_and_anew_for_what_died",
    ),
    Mutant(
        "take a release with test noise for one with a guarantee",
        "pipelines/privacy/ledger/identity.py",
        'facts = {"guarantee": guarantee}',
        "facts = {}",
        f"{TESTS}/privacy/test_identity.py::test_one_changed_fact_of_any_mechanism_makes_another_release",
    ),
    Mutant(
        "spend before checking the lifetime cap",
        "pipelines/privacy/ledger/__init__.py",
        "            self._check_lifetime(release)\n",
        "",
        f"{TESTS}/privacy/test_ledger.py::test_a_lifetime_cap_refuses_before_anything_is_entered",
    ),
    Mutant(
        "a ledger's head that falls further behind",
        "pipelines/privacy/ledger/chain.py",
        "if entries and self._read_head(entries).lines < len(entries):",
        "if False:",
        f"{TESTS}/privacy/test_ledger_failures.py::test_two_failures_in_a_row_at_any_point_leave_a_sound_ledger",
    ),
    Mutant(
        "a line of a ledger that a power cut may take",
        "pipelines/privacy/ledger/durable.py",
        "        content = content[os.write(file, content) :]\n    os.fsync(file)",
        "        content = content[os.write(file, content) :]",
        f"{TESTS}/privacy/test_ledger_failures.py::test_every_step_from_the_line_to_the_head_is_one_at_which_a_failure_was_tried",
    ),
    Mutant(
        "a torn line that stays in a ledger",
        "pipelines/privacy/ledger/chain.py",
        'os.truncate(self.path, content.rfind(b"\\n") + 1)',
        "pass",
        f"{TESTS}/privacy/test_ledger_failures.py::test_a_torn_last_line_of_a_dead_writer_is_dropped",
    ),
    Mutant(
        "a cut ledger that passes for whole",
        "pipelines/privacy/ledger/chain.py",
        "if head.lines > len(entries):",
        "if head.lines > len(entries) + 1:",
        f"{TESTS}/privacy/test_ledger_damage.py::test_tampering_shows",
    ),
    Mutant(
        "a ledger ahead of its head by any number of lines",
        "pipelines/privacy/ledger/chain.py",
        "if len(entries) > head.lines + 1:",
        "if False:",
        f"{TESTS}/privacy/test_ledger_failures.py::test_a_head_two_lines_behind_is_named_and_says_what_to_do",
    ),
    Mutant(
        "an empty head of a ledger passes for none",
        "pipelines/privacy/ledger/head.py",
        '        raise ValueError("is empty, as a power cut may leave a file that was being written")',
        "        return NONE",
        f"{TESTS}/privacy/test_ledger_damage.py::test_a_damaged_head_is_named_and_its_owner_can_vouch_for_the_lines",
    ),
    Mutant(
        "lift a lifetime cap by a larger delta",
        "pipelines/privacy/ledger/__init__.py",
        "return self.lifetime_delta or min([self.delta, *stated])",
        "return self.delta",
        f"{TESTS}/privacy/test_ledger_lifetime.py::test_a_larger_delta_does_not_lift_the_cap",
    ),
    Mutant(
        "charge a run apart to a folder that DVC deletes",
        "pipelines/privacy/ledger_folder.py",
        "if not folder.is_absolute() and _is_temporary(Path.cwd()):",
        "if not named and _is_temporary(Path.cwd()):",
        f"{TESTS}/privacy/test_ledger_folder.py::test_a_run_apart_needs_an_absolute_path",
    ),
    Mutant(
        "ledgers behind a link to a folder that DVC deletes",
        "pipelines/privacy/ledger_folder.py",
        "if _is_temporary(folder.resolve()):",
        "if _is_temporary(folder.absolute()):",
        f"{TESTS}/privacy/test_ledger_folder.py::test_a_link_to_such_a_folder_is_refused",
    ),
]
