"""Privacy bugs planted one at a time in a copy of the project: each must make its named test fail.

make mutants         # mutant, test, caught or not; exit 1 when one survives or a test fails without it
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from project import ENV, ROOT

T = "tests/pipelines"


@dataclass(frozen=True)
class Mutant:
    """`old` becomes `new` in `file`; `test` (a pytest id) must fail then, and pass without it."""

    name: str
    file: str
    old: str
    new: str
    test: str


MUTANTS = [
    Mutant(
        "know a joint run without its records",
        "pipelines/federation/noisy_release.py",
        'data=hashlib.sha256("".join(data).encode()).hexdigest()',
        'data="x"',
        "tests/stages/test_train_dp_baseline.py",
    ),
    Mutant(
        "resume a dead run under the entry of another cost",
        "pipelines/privacy/ledger/__init__.py",
        'if entry["fingerprint"] in made or canonical(entry["cost"]) == cost:',
        "if True:",
        f"{T}/privacy/test_identity.py",
    ),
    Mutant(
        "take a release with test noise for one with a guarantee",
        "pipelines/privacy/ledger/identity.py",
        'found = {"guarantee": guarantee}',
        "found = {}",
        f"{T}/privacy/test_identity.py",
    ),
    Mutant(
        "halve the sensitivity of votes",
        "pipelines/synthesis/datalens/votes.py",
        "return 2 * math.sqrt(top_k * batch)",
        "return math.sqrt(top_k * batch)",
        f"{T}/synthesis/datalens/test_votes.py::test_the_sum_over_teachers_moves_by_two_root_k_b_when_one_teacher_changes",
    ),
    Mutant(
        "halve the sensitivity of dp_moments",
        "pipelines/synthesis/dp_moments.py",
        "norm = math.hypot(1.0, settings.count_weight)",
        "norm = math.hypot(1.0, settings.count_weight) / 2",
        f"{T}/synthesis/test_dp_moments.py",
    ),
    Mutant(
        "halve the sensitivity of dpsgd",
        "pipelines/privacy/per_sample.py",
        "return (clipping_norm / norms",
        "return (2 * clipping_norm / norms",
        f"{T}/privacy/test_per_sample.py::test_adding_a_record_moves_the_sum_by_at_most_the_clipping_norm",
    ),
    Mutant(
        "forget the count in the sensitivity of dp_merf",
        "pipelines/synthesis/dp_merf.py",
        "sensitivity = math.hypot(1.0, settings.count_weight)",
        "sensitivity = 1.0",
        f"{T}/synthesis/test_dp_merf.py::test_adding_a_record_moves_the_sum_by_the_claimed_sensitivity",
    ),
    Mutant(
        "charge the steps of dp_teacher once",
        "pipelines/synthesis/dp_teacher.py",
        "multiplier = math.sqrt(settings.steps) / share.mu",
        "multiplier = 1 / share.mu",
        f"{T}/synthesis/test_dp_teacher.py::test_the_parts_spend_exactly_the_budget",
    ),
    Mutant(
        "give dp_moments the whole budget beside dp_teacher's steps",
        "pipelines/synthesis/dp_teacher.py",
        "budget.share * (1 - settings.teacher_share)",
        "budget.share",
        f"{T}/synthesis/test_dp_teacher.py::test_the_parts_spend_exactly_the_budget",
    ),
    Mutant(
        "drop the noise of dp_teacher's steps",
        "pipelines/synthesis/dp_teacher.py",
        "deviation=deviation, noise=noise)",
        "deviation=0.0, noise=noise)",
        f"{T}/synthesis/test_dp_teacher.py::test_each_step_sums_all_records_and_noises_a_zero_sum_at_the_planned_level",
    ),
    Mutant(
        "charge a batch of fakes once",
        "pipelines/synthesis/datalens/plan.py",
        "votes.sensitivity(top_k=settings.top_k, batch=settings.batch)",
        "votes.sensitivity(top_k=settings.top_k, batch=1)",
        f"{T}/synthesis/datalens/test_plan.py::test_the_planned_steps_spend_exactly_the_budget",
    ),
    Mutant(
        "drop the noise of a release",
        "pipelines/privacy/discrete_gaussian.py",
        "    if sigma > 0:\n        total = total +",
        "    if sigma < 0:\n        total = total +",
        f"{T}/test_noise_matrix.py::test_a_release_without_a_signal_is_noise_of_the_planned_law",
    ),
    Mutant(
        "drop the noise of DP-SGD",
        "pipelines/federation/algorithms/dpsgd.py",
        "deviation = self.clip.deviation(multiplier)",
        "deviation = 0.0",
        f"{T}/federation/algorithms/test_dpsgd.py::test_an_empty_lot_is_noised_and_counted",
    ),
    Mutant(
        "noise x 2/3 in DP-SGD",
        "pipelines/federation/algorithms/dpsgd.py",
        "deviation = self.clip.deviation(multiplier)",
        "deviation = self.clip.deviation(multiplier) * 2 / 3",
        f"{T}/test_noise_matrix.py::test_a_release_without_a_signal_is_noise_of_the_planned_law",
    ),
    Mutant(
        "NbAFL's update as if a record moved it by C",
        "pipelines/federation/dp/nbafl_account.py",
        "return 2 * self.settings.clipping_norm * self.noise_multiplier",
        "return self.settings.clipping_norm * self.noise_multiplier",
        f"{T}/federation/algorithms/test_nbafl.py::test_the_noise_is_twice_the_clipping_norm_times_the_multiplier",
    ),
    Mutant(
        "a warm start that costs nothing",
        "pipelines/federation/dp/account.py",
        "return [*self.before, *self.scheduled(self.first, count)]",
        "return [*self.scheduled(self.first, count)]",
        f"{T}/federation/dp/test_account.py::test_what_came_before_is_part_of_the_budget",
    ),
    Mutant(
        "the second sum of a clip mode for free",
        "pipelines/federation/dp/clipping.py",
        "return noise_multiplier * math.hypot(1.0, self.extra.sensitivity / self.settings.clipping_noise)",
        "return noise_multiplier",
        f"{T}/federation/dp/test_clipping.py::test_the_printed_scalar_rule_charges_its_second_sum",
    ),
    Mutant(
        "planned noise that the server may lower",
        "pipelines/federation/dp/noise_schedule.py",
        "self.noise_multiplier = self.first * fallen(self.settings, self.steps)",
        "self.noise_multiplier = self.first * fallen(self.settings, self.steps) * factor",
        f"{T}/federation/dp/test_noise_schedule.py::test_the_noise_of_a_step_follows_from_how_many_came_before_whatever_is_asked",
    ),
    Mutant(
        "float noise without its grid",
        "pipelines/privacy/float_gaussian.py",
        "return np.round((total + deviation * noise.normal(total.shape)) / step) * step",
        "return total + deviation * noise.normal(total.shape)",
        f"{T}/privacy/test_float_gaussian.py::test_which_floats_come_out_tells_nothing_of_the_sum",
    ),
    Mutant(
        "put one record into two teachers",
        "pipelines/synthesis/datalens/teacher_block.py",
        "rows = np.flatnonzero(owner == teacher)",
        "rows = np.flatnonzero((owner == teacher) | (owner == (teacher + 1) % count))[: sizes[teacher]]",
        f"{T}/synthesis/datalens/test_teacher_block.py::test_removing_a_record_changes_its_own_teacher_and_no_other_bit",
    ),
    Mutant(
        "share an optimiser between teachers",
        "pipelines/synthesis/datalens/teacher_block.py",
        "        losses.sum().backward()\n",
        "        losses.sum().backward()\n"
        "        for weight in self.weights.values():\n"
        "            weight.grad = weight.grad.mean(0, keepdim=True).expand_as(weight.grad).clone()\n",
        f"{T}/synthesis/datalens/test_teacher_block.py::test_stacked_teachers_equal_a_plain_loop_over_modules",
    ),
    Mutant(
        "let a teacher vote in two blocks",
        "pipelines/synthesis/datalens/ensemble.py",
        "rows = np.flatnonzero((owner >= start) & (owner < start + count))",
        "rows = np.flatnonzero((owner >= start - 1) & (owner < start + count))\n    owner = np.maximum(owner, start)",
        f"{T}/synthesis/datalens/test_ensemble.py::test_each_record_lies_with_its_own_teacher_in_one_block",
    ),
    Mutant(
        "draw a killed run's votes anew",
        "pipelines/synthesis/datalens/journal.py",
        "        if step < len(self.released):\n            return self.released[step]\n",
        "",
        f"{T}/synthesis/datalens/test_generator_resumed.py::test_a_killed_run_never_releases_a_step_twice",
    ),
    Mutant(
        "use votes before they are written",
        "pipelines/synthesis/datalens/journal.py",
        "                file.write(_record(step, votes))\n",
        "",
        f"{T}/synthesis/datalens/test_journal.py::test_released_votes_come_back_bit_for_bit_and_are_not_drawn_again",
    ),
    Mutant(
        "skip the empty lot",
        "pipelines/federation/algorithms/dpsgd.py",
        "return self.release(scaled_sum(self.model, self.lot(drawn)))",
        "return self.release(scaled_sum(self.model, self.lot(drawn))) if drawn.any() else 0.0",
        f"{T}/federation/algorithms/test_dpsgd.py::test_an_empty_lot_is_noised_and_counted",
    ),
    Mutant(
        "sum another client's records where lots share a pass",
        "pipelines/privacy/per_sample.py",
        "slice(size, size + len(labels))",
        "slice(0, len(labels))",
        f"{T}/privacy/test_per_sample.py::test_lots_in_one_call_are_each_the_sum_over_their_own_records",
    ),
    Mutant(
        "let another client's infinite gradient through where lots share a pass",
        "pipelines/privacy/per_sample.py",
        "keep = own <= LARGEST  # nan is not",
        "keep = lengths[: len(own)] <= LARGEST",
        f"{T}/privacy/test_per_sample.py::test_a_record_without_a_finite_gradient_reaches_no_other_lot",
    ),
    Mutant(
        "take more steps than were charged",
        "pipelines/federation/dp/together.py",
        "own.end(steps[client], first)",
        "own.end(max(steps.values()), first)",
        f"{T}/federation/dp/test_together.py::test_who_has_left_is_not_drawn_for_and_no_one_else_notices",
    ),
    Mutant(
        "take the steps of a client whose budget has gone",
        "pipelines/federation/dp/together.py",
        "for client in steps if steps[client]}",
        "for client in steps}",
        f"{T}/federation/dp/test_together.py::test_who_has_left_is_not_drawn_for_and_no_one_else_notices",
    ),
    Mutant(
        "reuse one client's noise in another",
        "pipelines/privacy/noise.py",
        "    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:\n        import opendp",
        "    @__import__('functools').cache\n"
        "    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:\n        import opendp",
        f"{T}/test_noise_matrix.py::test_another_client_gets_other_noise",
    ),
    Mutant(
        "use one class's noise in every class",
        "pipelines/privacy/noise.py",
        "([0] * int(np.prod(shape)))\n        return np.array(draws, dtype=np.int64).reshape(shape)",
        "([0] * int(shape[-1]))\n        return np.broadcast_to(np.array(draws, dtype=np.int64), shape)",
        f"{T}/test_noise_matrix.py::test_no_noise_is_used_twice_within_a_release",
    ),
    Mutant(
        "seed noise from `seed`",
        "pipelines/privacy/noise.py",
        '{"os_entropy": OsEntropy,',
        '{"os_entropy": lambda: SeededForTests(test_seed),',
        f"{T}/privacy/test_noise.py::test_the_seed_reaches_only_the_test_source",
    ),
    Mutant(
        "let the record-to-teacher map look at labels",
        "pipelines/synthesis/datalens/generator.py",
        "owner = votes.assign(shard.ids,",
        "owner = votes.assign(shard.ids + shard.labels,",
        f"{T}/synthesis/datalens/test_generator.py::test_the_map_to_teachers_reads_ids_and_nothing_else",
    ),
    Mutant(
        "spend before checking the lifetime cap",
        "pipelines/privacy/ledger/__init__.py",
        "            self._check_lifetime(release)\n",
        "",
        f"{T}/privacy/test_ledger.py::test_a_lifetime_cap_refuses_before_anything_is_entered",
    ),
    Mutant(
        "spend before checking the steps left",
        "pipelines/federation/dp/account.py",
        "taken = max(0, min(asked, self.left))",
        "taken = asked",
        f"{T}/federation/algorithms/test_dpsgd.py::test_the_budget_is_checked_before_it_is_spent",
    ),
    Mutant(
        "forget the count beside quantile clipping's gradients",
        "pipelines/federation/dp/clipping.py",
        "max(share, 1 - share)),",
        "0.0),",
        f"{T}/federation/dp/test_clipping.py::test_sum_and_count_together_cost_what_the_account_says",
    ),
    Mutant(
        "noisy rounds that go on and forget what was spent",
        "pipelines/federation/algorithms/dpsgd.py",
        "            self.account.take(asked, factor)\n        self.optimiser.load",
        "            pass\n        self.optimiser.load",
        f"{T}/federation/core/test_checkpoints.py::test_a_killed_noisy_run_ends_in_the_same_bytes_and_has_spent_the_same",
    ),
    Mutant(
        "a start that is drawn again after a kill",
        "pipelines/federation/core/checkpoints.py",
        'self._write("first", found := make())',
        "found = make()",
        f"{T}/federation/core/test_checkpoints.py::test_what_a_noisy_run_starts_from_is_drawn_once",
    ),
    Mutant(
        "a ledger's head that falls further behind",
        "pipelines/privacy/ledger/chain.py",
        "if entries and self._read_head(entries).lines < len(entries):",
        "if False:",
        f"{T}/privacy/test_ledger_failures.py::test_two_failures_in_a_row_at_any_point_leave_a_sound_ledger",
    ),
    Mutant(
        "a line of a ledger that a power cut may take",
        "pipelines/privacy/ledger/durable.py",
        "        content = content[os.write(file, content) :]\n    os.fsync(file)",
        "        content = content[os.write(file, content) :]",
        f"{T}/privacy/test_ledger_failures.py::test_every_step_from_the_line_to_the_head_is_one_at_which_a_failure_was_tried",
    ),
    Mutant(
        "a torn line that stays in a ledger",
        "pipelines/privacy/ledger/chain.py",
        'os.truncate(self.path, content.rfind(b"\\n") + 1)',
        "pass",
        f"{T}/privacy/test_ledger_failures.py::test_a_torn_last_line_of_a_dead_writer_is_dropped",
    ),
    Mutant(
        "a cut ledger that passes for whole",
        "pipelines/privacy/ledger/chain.py",
        "if head.lines > len(entries):",
        "if head.lines > len(entries) + 1:",
        f"{T}/privacy/test_ledger_damage.py::test_tampering_shows",
    ),
    Mutant(
        "a ledger ahead of its head by any number of lines",
        "pipelines/privacy/ledger/chain.py",
        "if len(entries) > head.lines + 1:",
        "if False:",
        f"{T}/privacy/test_ledger_failures.py::test_a_head_two_lines_behind_is_named_and_says_what_to_do",
    ),
    Mutant(
        "an empty head of a ledger passes for none",
        "pipelines/privacy/ledger/head.py",
        '        raise ValueError("is empty, as a power cut may leave a file that was being written")',
        "        return NONE",
        f"{T}/privacy/test_ledger_damage.py::test_a_damaged_head_is_named_and_its_owner_can_vouch_for_the_lines",
    ),
    Mutant(
        "lift a lifetime cap by a larger delta",
        "pipelines/privacy/ledger/__init__.py",
        "return self.lifetime_delta or min([self.delta, *stated])",
        "return self.delta",
        f"{T}/privacy/test_ledger_lifetime.py::test_a_larger_delta_does_not_lift_the_cap",
    ),
    Mutant(
        "charge a run apart to a folder that DVC deletes",
        "pipelines/privacy/ledger_folder.py",
        "if not folder.is_absolute() and _is_temporary(Path.cwd()):",
        "if not named and _is_temporary(Path.cwd()):",
        f"{T}/privacy/test_ledger_folder.py::test_a_run_apart_needs_an_absolute_path",
    ),
    Mutant(
        "ledgers behind a link to a folder that DVC deletes",
        "pipelines/privacy/ledger_folder.py",
        "if _is_temporary(folder.resolve()):",
        "if _is_temporary(folder.absolute()):",
        f"{T}/privacy/test_ledger_folder.py::test_a_link_to_such_a_folder_is_refused",
    ),
    Mutant(
        "a guard that lets private outputs go without a cache",
        "pipelines/guard.py",
        "if not out.use_cache:",
        "if False:",
        f"{T}/test_guard.py::test_a_private_output_without_a_cache_is_named",
    ),
    Mutant(
        "a guard that lets private outputs be pushed",
        "pipelines/guard.py",
        "if out.can_push:",
        "if False:",
        f"{T}/test_guard.py::test_a_private_output_that_would_be_pushed_is_named",
    ),
    Mutant(
        "a guard that reads no file for keys",
        "pipelines/keys.py",
        "if HEADER.search(text):",
        "if False:",
        f"{T}/test_guard.py::test_a_private_key_that_git_would_add_is_named",
    ),
    Mutant(
        "a guard that holds no export against its sums",
        "pipelines/uploads.py",
        "elif sha256(upload.files[name]) != named[name]:",
        "elif False:",
        f"{T}/test_uploads.py::test_a_file_that_was_changed_is_named",
    ),
    Mutant(
        "a guard that lets a file too many leave",
        "pipelines/uploads.py",
        "if expected and name not in expected:",
        "if False:",
        f"{T}/test_uploads.py::test_a_file_too_many_is_named",
    ),
    Mutant(
        "kits whose keys others can read",
        "pipelines/federation/network/flare/kits.py",
        "    _keep_to_owner(folder)\n",
        "",
        f"{T}/federation/network/flare/test_kits.py::test_no_other_user_of_the_machine_reads_a_kit_whatever_the_umask",
    ),
    Mutant(
        "a client that may bear the server's name",
        "pipelines/federation/network/flare/origins.py",
        "return sender == owner != SERVERS_CELL",
        "return True",
        f"{T}/federation/network/flare/test_origins.py::test_the_certificate_of_a_connection_says_who_sends",
    ),
    Mutant(
        "a client that weighs itself",
        "pipelines/federation/network/flare/engine.py",
        "check_all_told(reply.payload.scalars, self.told)",
        "pass",
        f"{T}/federation/network/flare/test_engine.py::test_no_client_weighs_itself_and_none_drives_out_the_others",
    ),
    Mutant(
        "a job that brings a folder of its own",
        "pipelines/federation/network/flare/deployer.py",
        " or set(names) - {CLIENT_FILE, *SIGNATURES, *FOLDERS}",
        "",
        f"{T}/federation/network/flare/test_hardening.py::test_an_odd_archive_is_refused_in_a_sentence",
    ),
]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "fedlens"
        names = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True
        )
        for name in names.stdout.splitlines():
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, copy / name)
        survivors = [mutant.name for mutant in MUTANTS if not caught(mutant, copy)]
    print(f"{len(MUTANTS) - len(survivors)} of {len(MUTANTS)} caught")
    sys.exit(bool(survivors))


def caught(mutant: Mutant, copy: Path) -> bool:
    """Whether the named test passes on the whole code and fails on the mutant."""
    file = copy / mutant.file
    whole = file.read_text()
    if whole.count(mutant.old) != 1:
        sys.exit(f"The mutant '{mutant.name}' does not fit {mutant.file} any more: write it anew.")
    sound = passes(mutant.test, copy)
    file.write_text(whole.replace(mutant.old, mutant.new))
    found = not passes(mutant.test, copy)
    file.write_text(whole)
    verdict = "caught" if sound and found else "SURVIVED" if sound else "THE TEST FAILS WITHOUT IT"
    print(f"{mutant.name:<46} {mutant.test.removeprefix('tests/pipelines/'):<120} {verdict}", flush=True)
    return sound and found


def passes(test: str, copy: Path) -> bool:
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    return subprocess.run(command, cwd=copy, env=ENV, capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
