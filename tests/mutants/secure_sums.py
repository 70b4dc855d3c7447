"""Lists bugs in secure sums: masks, shares, thresholds, the journal, and noise in shares."""

from mutants.mutant import TESTS, Mutant

SUMS = "pipelines/privacy/secure_sums"
TESTS_OF_SUMS = f"{TESTS}/privacy/secure_sums"
JOINT = "pipelines/joint"
TESTS_OF_JOINT = f"{TESTS}/joint"

MUTANTS = [
    Mutant(
        "a client that adds no noise to a joint sum",
        f"{SUMS}/noise_shares.py",
        "return total + noise.discrete_gaussian(total.shape, plan.share_steps(number))",
        "return total",
        f"{TESTS_OF_SUMS}/test_noise_shares.py::test_each_client_draws_another_share",
    ),
    Mutant(
        "one of the clients adds no noise to a joint sum",
        f"{SUMS}/noise_shares.py",
        "return total + noise.discrete_gaussian(total.shape, plan.share_steps(number))",
        'vars(noise_made := noisy).setdefault("calls", []).append(1)\n'
        "    silent = len(noise_made.calls) % 3 == 0\n"
        "    share = noise.discrete_gaussian(total.shape, plan.share_steps(number))\n"
        "    return total if silent else total + share",
        f"{TESTS_OF_SUMS}/test_noise_shares.py::"
        "test_the_shares_that_nobody_knows_have_the_planned_deviation_together",
    ),
    Mutant(
        "a share of noise too small by the root of 2",
        f"{SUMS}/noise_shares.py",
        "return self.sigmas[number] / math.sqrt(self.least_honest)",
        "return self.sigmas[number] / math.sqrt(2 * self.least_honest)",
        f"{TESTS_OF_SUMS}/test_noise_shares.py::"
        "test_the_shares_that_nobody_knows_have_the_planned_deviation_together",
    ),
    Mutant(
        "noise shared among clients that collude, too",
        f"{SUMS}/noise_shares.py",
        "return self.threshold - self.colluding",
        "return self.threshold",
        f"{TESTS_OF_SUMS}/test_trust.py::test_the_planned_case_has_the_budgets_epsilon",
    ),
    Mutant(
        "an epsilon that counts shares which colluding clients know",
        f"{SUMS}/trust.py",
        "return plan.threshold - colluding",
        "return plan.threshold",
        f"{TESTS_OF_SUMS}/test_trust.py::"
        "test_beyond_the_thresholds_reach_a_dishonest_server_meets_ones_own_share_alone",
    ),
    Mutant(
        "masks of two rounds from one key",
        f"{SUMS}/keys.py",
        "HKDF(algorithm=hashes.SHA256(), length=KEY, salt=terms, info=info)",
        "HKDF(algorithm=hashes.SHA256(), length=KEY, salt=None, info=info)",
        f"{TESTS_OF_SUMS}/test_masks.py::"
        "test_masks_of_the_same_keys_in_two_rounds_have_nothing_in_common",
    ),
    Mutant(
        "masks that are reused between rounds",
        f"{SUMS}/masks.py",
        'return stream(shared(private, public, terms=terms, purpose="pair mask"), length)',
        "return stream(bytes(32), length)",
        f"{TESTS_OF_SUMS}/test_transcript.py::test_two_rounds_have_no_mask_in_common",
    ),
    Mutant(
        "a mask's key from a seeded source",
        f"{SUMS}/keys.py",
        "return X25519PrivateKey.generate().private_bytes_raw()",
        "return __import__('random').randbytes(32)",
        f"{TESTS_OF_SUMS}/test_keys.py::test_no_seed_of_a_program_reaches_a_key",
    ),
    Mutant(
        "a vector without its self mask",
        f"{SUMS}/masks.py",
        'return stream(derived(seed, terms=terms, purpose="self mask"), length)',
        "return np.zeros(length, np.uint64)",
        f"{TESTS_OF_SUMS}/test_masks.py::test_self_masks_differ_by_seed_and_by_round",
    ),
    Mutant(
        "a subset that is answered twice",
        f"{SUMS}/client.py",
        "        done = self._memory.step\n",
        "        done = min(self._memory.step, step - 1)\n",
        f"{TESTS_OF_SUMS}/test_client.py::"
        "test_a_second_subset_is_refused_at_both_steps_that_name_one",
    ),
    Mutant(
        "a subset that is answered again after a kill",
        f"{SUMS}/journal.py",
        "        self._write(_round_name(terms), terms.digest + memory.as_bytes())",
        "        if memory.step < 4:\n"
        "            self._write(_round_name(terms), terms.digest + memory.as_bytes())",
        f"{TESTS_OF_SUMS}/test_journal.py::test_a_killed_client_does_not_answer_a_second_subset",
    ),
    Mutant(
        "an answer that leaves before it is in the journal",
        f"{SUMS}/client.py",
        "        self._journal.save(terms, memory)\n        self._memory = memory\n        return",
        "        self._memory = memory\n        return",
        f"{TESTS_OF_SUMS}/test_journal.py::test_a_client_that_was_killed_sends_the_same_bytes_again",
    ),
    Mutant(
        "one release's vector masked in two rounds",
        f"{SUMS}/client_steps.py",
        "    claim(terms)\n",
        "",
        f"{TESTS_OF_SUMS}/test_client.py::test_one_vector_is_masked_for_a_release_ever",
    ),
    Mutant(
        "the share of the seed handed out of a client that dropped out",
        f"{SUMS}/client_steps.py",
        "seed_share if place in memory.survivors else key_share",
        "seed_share",
        f"{TESTS_OF_SUMS}/test_client.py::"
        "test_a_client_hands_out_one_share_of_each_other_never_both",
    ),
    Mutant(
        "survivors that need not have signed",
        f"{SUMS}/client_steps.py",
        "if not terms.roster.has_signed(name, content, signatures[place].tobytes()):",
        "if not signatures[place].any():",
        f"{TESTS_OF_SUMS}/test_client.py::test_two_subsets_for_two_halves_open_nothing",
    ),
    Mutant(
        "a threshold that a lying server reaches twice",
        f"{SUMS}/terms.py",
        "return (clients + colluding) // 2 + 1",
        "return (clients + colluding) // 2",
        f"{TESTS_OF_SUMS}/test_terms.py::"
        "test_the_threshold_is_the_least_that_stops_a_server_that_shows_two_sets",
    ),
    Mutant(
        "keys that need not be signed",
        f"{SUMS}/announced.py",
        "        if not announced.is_signed(place, terms):",
        "        if False:",
        f"{TESTS_OF_SUMS}/test_client.py::test_swapped_keys_are_refused",
    ),
    Mutant(
        "shares that open in another round",
        f"{SUMS}/encoding.py",
        "return hashlib.sha256(encoded(*fields)).digest()",
        'return hashlib.sha256("".join(map(str, fields)).encode()).digest()',
        f"{TESTS_OF_SUMS}/test_encoding.py::test_where_one_field_ends_and_the_next_begins_counts",
    ),
    Mutant(
        "shares of a secret by a polynomial that is a constant",
        f"{SUMS}/shamir.py",
        "coefficients.append(secrets.randbelow(PRIME))",
        "coefficients.append(0)",
        f"{TESTS_OF_SUMS}/test_shamir.py::test_one_share_of_a_known_secret_is_uniform",
    ),
    Mutant(
        "keys that stay on the disk after a round",
        f"{SUMS}/client_steps.py",
        'return {"shares": shares}, Memory(step=memory.step)',
        'return {"shares": shares}, memory',
        f"{TESTS_OF_SUMS}/test_journal.py::"
        "test_a_finished_round_leaves_no_secret_and_is_never_begun_again",
    ),
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
]
