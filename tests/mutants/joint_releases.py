"""Lists bugs in joint releases: their plans, their ledgers, and what clients sign together."""

from mutants.mutant import TESTS, Mutant

JOINT = "pipelines/joint"
TESTS_OF_JOINT = f"{TESTS}/joint"

MUTANTS = [
    Mutant(
        "a joint release planned as if nobody colluded",
        "pipelines/synthesis/joint_plan.py",
        "colluding=group.colluding,",
        "colluding=0,",
        f"{TESTS}/synthesis/test_joint_moments.py::test_every_client_adds_its_share_to_both_sums",
    ),
    Mutant(
        "a vote that weighs more than its share of a joint sum's unit",
        "pipelines/synthesis/joint_datalens.py",
        'math.floor(course.shares.scale / details["sensitivity"])',
        'math.floor(course.shares.scale / math.sqrt(details["sensitivity"]))',
        f"{TESTS}/synthesis/test_joint_datalens.py::test_all_steps_cost_the_budget_whole",
    ),
    Mutant(
        "joint votes with the noise of a single step",
        "pipelines/synthesis/joint_datalens.py",
        "(math.sqrt(steps) * budget.sigma(1.0),) * steps,",
        "(budget.sigma(1.0),) * steps,",
        f"{TESTS}/synthesis/test_joint_datalens.py::test_all_steps_cost_the_budget_whole",
    ),
    Mutant(
        "steps of a joint head with too little noise",
        "pipelines/synthesis/joint_head.py",
        "all_sigmas = (*sigmas, *[sigma] * int(steps))",
        "all_sigmas = (*sigmas, *[0.9 * sigma] * int(steps))",
        f"{TESTS}/synthesis/test_joint_head.py::test_every_course_costs_the_budget_whole",
    ),
    Mutant(
        "gradients of a joint head that weigh twice the unit of their sum",
        "pipelines/synthesis/joint_head.py",
        "scale=plan.scale,",
        "scale=2 * plan.scale,",
        f"{TESTS}/synthesis/test_joint_head.py::test_one_record_more_moves_each_sum_by_one_at_most",
    ),
    Mutant(
        "a joint release at the budget of its most generous client",
        "pipelines/synthesis/joint_release.py",
        "by_budget.setdefault(params.budget(client), [])",
        "by_budget.setdefault((0.0, 0.0), [])",
        f"{TESTS}/synthesis/test_joint_release.py::"
        "test_clients_of_one_budget_release_together_from_three_on",
    ),
    Mutant(
        "a joint release that one ledger alone is charged for",
        "pipelines/synthesis/joint_release.py",
        "return cls(planned, train, ledgers, entries)",
        "first = planned.clients[:1]\n"
        "        one = {client: ledgers[client] for client in first}\n"
        "        return cls(planned, train, one, {client: entries[client] for client in first})",
        "tests/stages/test_joint_release.py::"
        "test_dvc_makes_one_release_and_every_client_s_set_is_sampled_from_it",
    ),
    Mutant(
        "one noise for all clients of a joint release",
        "pipelines/synthesis/joint_release.py",
        'seeds.derive(self.params.seed, "test noise", *self._names, client)',
        'seeds.derive(self.params.seed, "test noise", *self._names)',
        f"{TESTS}/synthesis/test_joint_release.py::test_each_client_has_noise_of_its_own",
    ),
    Mutant(
        "a joint release between machines that no ledger enters",
        f"{JOINT}/member.py",
        "            releases.enter_as_made(self.ledger, self.entry)\n",
        "",
        f"{TESTS_OF_JOINT}/test_coordinator.py::test_each_client_is_charged_once_and_samples_its_own_set_of_one_generator",
    ),
    Mutant(
        "a second attempt between machines under the charge of the first",
        f"{JOINT}/member.py",
        "self.attempt = secrets.token_hex(16)",
        'self.attempt = "0" * 32',
        f"{TESTS_OF_JOINT}/test_stored.py::test_another_attempt_is_charged_and_the_last_one_counts",
    ),
    Mutant(
        "ledgers that are charged before all were asked",
        f"{JOINT}/member.py",
        "            self.ledger.check(self.entry)\n",
        "            pass\n",
        f"{TESTS_OF_JOINT}/test_coordinator.py::"
        "test_a_ledger_that_refuses_stops_the_release_before_any_ledger_is_charged",
    ),
    Mutant(
        "a joint release without a guarantee that leaves its client",
        f"{JOINT}/member.py",
        'self.planned.statement.guarantee != "formal"',
        "False",
        f"{TESTS_OF_JOINT}/test_member.py::test_a_release_without_a_guarantee_is_made_with_nobody",
    ),
    Mutant(
        "a roster that is not held against the client's own key",
        f"{JOINT}/member.py",
        "self.roster.keys[place] != self.identity.public",
        "False",
        f"{TESTS_OF_JOINT}/test_member.py::test_a_key_that_is_not_the_rosters_is_refused",
    ),
    Mutant(
        "an export whose own ledger nobody need have",
        "pipelines/guard/provenance.py",
        "is_partner = is_export and client != Path(path).parts[3]",
        "is_partner = is_export",
        f"{TESTS_OF_JOINT}/test_stored.py::"
        "test_the_guard_knows_no_export_of_a_client_whose_ledger_is_elsewhere",
    ),
    Mutant(
        "a total of a sum to which the client gave nothing",
        f"{JOINT}/member.py",
        "has_ended = self._round is not None and self._round.done",
        "has_ended = self._round is not None",
        f"{TESTS_OF_JOINT}/test_member.py::"
        "test_no_total_is_taken_of_a_sum_to_which_a_client_gave_nothing",
    ),
    Mutant(
        "noise in shares that forgets who may drop out",
        "pipelines/synthesis/joint_plan.py",
        "threshold=group.threshold,",
        "threshold=group.clients,",
        f"{TESTS}/synthesis/test_joint_moments.py::test_every_client_adds_its_share_to_both_sums",
    ),
    Mutant(
        "clients that sum on after they were told different totals",
        f"{JOINT}/member.py",
        "self.roster, length, self._totals),",
        "self.roster, length),",
        f"{TESTS_OF_JOINT}/test_member.py::"
        "test_a_server_that_tells_a_client_another_total_gets_no_further_sum",
    ),
    Mutant(
        "a release that is stored though a partner has signed another",
        f"{JOINT}/member.py",
        "if not self._seal.is_signed(self.roster, partner, signature):",
        "if not signature:",
        f"{TESTS_OF_JOINT}/test_member.py::"
        "test_a_server_that_tells_a_client_another_last_total_is_found_out_by_all",
    ),
    Mutant(
        "a first sum that says nothing of the settings",
        f"{JOINT}/member.py",
        "self._totals = run.opening(params)",
        'self._totals = b""',
        f"{TESTS_OF_JOINT}/test_coordinator.py::"
        "test_each_client_is_charged_once_and_samples_its_own_set_of_one_generator",
    ),
    Mutant(
        "settings that the opening of a joint release leaves out",
        f"{JOINT}/joint_run.py",
        "for name, value in sorted(self.terms(params).items()):",
        "for name, value in sorted({}.items()):",
        f"{TESTS_OF_JOINT}/test_coordinator.py::"
        "test_clients_of_other_settings_make_no_sum_though_the_server_compares_nothing",
    ),
    Mutant(
        "an export whose partners need not have signed",
        "pipelines/guard/provenance.py",
        "if len(signers) < fewest:",
        "if len(signers) < 0:",
        f"{TESTS_OF_JOINT}/test_stored.py::"
        "test_the_guard_asks_for_the_signatures_of_those_whose_ledgers_are_elsewhere",
    ),
    Mutant(
        "a seal of another release on a card",
        "pipelines/seal.py",
        "if not is_of_card:",
        "if False:",
        f"{TESTS}/test_seal.py::test_a_seal_of_another_release_signs_nothing",
    ),
    Mutant(
        "more drop-outs than the trust of the clients allows",
        "pipelines/synthesis/joint_release.py",
        "if group.may_drop > group.most_drops:",
        "if False:",
        f"{TESTS_OF_JOINT}/test_drop_outs.py::test_more_than_the_trust_allows_may_not_drop_out",
    ),
    Mutant(
        "clients that trust nobody and get the noise of those who do",
        "pipelines/synthesis/joint_release.py",
        'if self.params.privacy.trust == "none":',
        "if False:",
        f"{TESTS}/synthesis/test_joint_release.py::test_trust_says_how_many_may_collude",
    ),
    Mutant(
        "a refusal that names those who did not lie",
        f"{JOINT}/coordinator.py",
        "            if client in members.lost:",
        "            if False:",
        f"{TESTS_OF_JOINT}/test_drop_outs.py::"
        "test_a_client_that_seals_garbage_is_named_though_the_others_refuse",
    ),
]
