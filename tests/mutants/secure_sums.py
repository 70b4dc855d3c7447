"""Lists bugs in secure sums: masks, shares, thresholds, the journal, and noise in shares."""

from mutants.mutant import TESTS, Mutant

SUMS = "pipelines/privacy/secure_sums"
TESTS_OF_SUMS = f"{TESTS}/privacy/secure_sums"

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
        "return stream(key, length)",
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
        "a mask key that a client copies from another",
        f"{SUMS}/announced.py",
        "            if key in owners:",
        "            if False:",
        f"{TESTS_OF_SUMS}/test_client.py::"
        "test_a_client_that_announces_another_s_mask_key_is_refused",
    ),
    Mutant(
        "pair masks that do not say whose they are",
        f"{SUMS}/masks.py",
        "key = shared(private, public, *sorted(places), terms=terms",
        "key = shared(private, public, terms=terms",
        f"{TESTS_OF_SUMS}/test_masks.py::test_a_key_that_two_clients_announce_gives_two_masks",
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
        "survivors that sign nothing of what they saw before",
        f"{SUMS}/announced.py",
        'return encoded("survivors", terms.digest, view, *survivors)',
        'return encoded("survivors", terms.digest, *survivors)',
        f"{TESTS_OF_SUMS}/test_client.py::"
        "test_clients_that_were_shown_other_senders_of_shares_open_nothing",
    ),
    Mutant(
        "a client that answers though it is said to have dropped out",
        f"{SUMS}/client_steps.py",
        "    if own not in places:",
        "    if False:",
        f"{TESTS_OF_SUMS}/test_client.py::"
        "test_a_client_that_is_said_to_have_dropped_out_answers_nothing",
    ),
    Mutant(
        "a self mask from any seed that the shares give",
        f"{SUMS}/unmasking.py",
        "if masks.commitment(seed, terms=terms.digest) != announced.commitments[place].tobytes():",
        "if False:",
        f"{TESTS_OF_SUMS}/test_server.py::"
        "test_a_client_that_shares_another_secret_than_it_announced_is_named",
    ),
    Mutant(
        "masks of a client that is gone from any key that the shares give",
        f"{SUMS}/unmasking.py",
        "if keys.public_of(key) != announced.mask_keys[place].tobytes():",
        "if False:",
        f"{TESTS_OF_SUMS}/test_server.py::"
        "test_a_client_that_shares_another_secret_than_it_announced_is_named",
    ),
    Mutant(
        "a sum of any size",
        f"{SUMS}/unmasking.py",
        "if signed.max() > largest or signed.min() < -largest:",
        "if False:",
        f"{TESTS_OF_SUMS}/test_server.py::test_a_garbage_vector_ends_in_a_refusal",
    ),
    Mutant(
        "a public key that agrees on no secret",
        f"{SUMS}/server.py",
        "if not all(gives_secret",
        "if not any(gives_secret",
        f"{TESTS_OF_SUMS}/test_server.py::test_a_client_whose_key_gives_no_secret_is_left_behind",
    ),
]
