"""Lists bugs in noise, clipping and accounting."""

from mutants.mutant import TESTS, Mutant

MUTANTS = [
    Mutant(
        "draw noise that is wider than 64 bits",
        "pipelines/privacy/noise.py",
        "if not sigma <= WIDEST:",
        "if False:",
        f"{TESTS}/privacy/test_noise.py::test_noise_that_64_bits_do_not_hold_is_not_drawn",
    ),
    Mutant(
        "plan noise that is wider than 64 bits",
        "pipelines/lattice.py",
        "if max(sigmas) * scale > WIDEST:",
        "if False:",
        f"{TESTS}/test_lattice.py::test_a_head_is_refused_before_its_noise_outgrows_64_bits",
    ),
    Mutant(
        "let a number of records outgrow 64 bits",
        "pipelines/privacy/discrete_gaussian.py",
        "return np.array([records], np.int64) * np.int64(scale)",
        "return np.array([records * scale])",
        f"{TESTS}/privacy/test_discrete_gaussian.py::"
        "test_a_number_of_records_wraps_and_stays_an_int64",
    ),
    Mutant(
        "clip by the inputs of a record alone",
        "pipelines/privacy/lattice_gradients.py",
        "lengths = np.sqrt(np.square(errors).sum(1)) * records.norms",
        "lengths = records.norms",
        f"{TESTS}/privacy/test_lattice_gradients.py::test_no_record_adds_a_norm_above_one",
    ),
    Mutant(
        "let long inputs pass",
        "pipelines/privacy/lattice_gradients.py",
        "values *= np.minimum(1.0, LARGEST_INPUT / np.maximum(lengths, LARGEST_INPUT))",
        "pass",
        f"{TESTS}/privacy/test_lattice_gradients.py::test_inputs_without_end_are_cut_or_dropped",
    ),
    Mutant(
        "add gradients as floats",
        "pipelines/privacy/lattice_gradients.py",
        "return np.trunc(errors * shares[:, None] * (scale / INPUT_STEPS))",
        "return errors * shares[:, None] * (scale / INPUT_STEPS)",
        f"{TESTS}/privacy/test_lattice_gradients.py::test_the_sum_over_parts_is_the_sum_to_the_last_bit",
    ),
    Mutant(
        "let sums of logits outgrow 53 bits",
        "pipelines/privacy/lattice_gradients.py",
        "grid = 2.0 ** np.floor(room - np.log2(longest) - 1)",
        "grid = 2.0 ** np.floor(room - np.log2(longest) + 3)",
        f"{TESTS}/privacy/test_lattice_gradients.py::test_weights_on_their_grid_leave_each_sum_with_inputs_exact",
    ),
    Mutant(
        "count each copy of a record as a record",
        "pipelines/privacy/lattice_gradients.py",
        "clipping_norm, scale // inputs.copies)",
        "clipping_norm, scale)",
        f"{TESTS}/privacy/test_lattice_gradients.py::test_all_copies_of_a_record_together_count_as_one",
    ),
    Mutant(
        "warp a record by its place among others",
        "pipelines/training/record_warps.py",
        "[KEY, number, _digest(image)]",
        "[KEY, number, row]",
        f"{TESTS}/training/test_record_warps.py::test_order_and_company_change_no_pixel",
    ),
    Mutant(
        "release the number of copies in place of records",
        "pipelines/federation/algorithms/dpsgd_head.py",
        "self.inputs.records,",
        "len(self.inputs.labels),",
        f"{TESTS}/federation/algorithms/test_dpsgd_head.py::test_copies_count_as_one_record_each",
    ),
    Mutant(
        "halve the sensitivity of dpsgd",
        "pipelines/privacy/per_sample.py",
        "return (clipping_norm / norms",
        "return (2 * clipping_norm / norms",
        f"{TESTS}/privacy/test_per_sample.py::test_adding_a_record_moves_the_sum_by_at_most_the_clipping_norm",
    ),
    Mutant(
        "drop the noise of a release",
        "pipelines/privacy/discrete_gaussian.py",
        "    if sigma > 0:\n        total = total +",
        "    if sigma < 0:\n        total = total +",
        f"{TESTS}/test_noise_matrix.py::test_a_release_without_a_signal_is_noise_of_the_planned_law",
    ),
    Mutant(
        "float noise without its grid",
        "pipelines/privacy/float_gaussian.py",
        "return np.round((total + deviation * noise.normal(total.shape)) / step) * step",
        "return total + deviation * noise.normal(total.shape)",
        f"{TESTS}/privacy/test_float_gaussian.py::test_which_floats_come_out_tells_nothing_of_the_sum",
    ),
    Mutant(
        "sum another client's records where lots share a pass",
        "pipelines/privacy/per_sample.py",
        "slice(size, size + len(labels))",
        "slice(0, len(labels))",
        f"{TESTS}/privacy/test_per_sample.py::test_lots_in_one_call_are_each_the_sum_over_their_own_records",
    ),
    Mutant(
        "let another client's infinite gradient through where lots share a pass",
        "pipelines/privacy/per_sample.py",
        "keep = part_norms <= LARGEST",
        "keep = pass_norms[: len(part_norms)] <= LARGEST",
        f"{TESTS}/privacy/test_per_sample.py::test_a_record_without_a_finite_gradient_reaches_no_other_lot",
    ),
    Mutant(
        "reuse one client's noise in another",
        "pipelines/privacy/noise.py",
        "    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:\n"
        '        """Returns int64 draws of OpenDP',
        "    @__import__('functools').cache\n"
        "    def discrete_gaussian(self, shape: tuple[int, ...], sigma: float) -> np.ndarray:\n"
        '        """Returns int64 draws of OpenDP',
        f"{TESTS}/test_noise_matrix.py::test_another_client_gets_other_noise",
    ),
    Mutant(
        "use one class's noise in every class",
        "pipelines/privacy/noise.py",
        "([0] * int(np.prod(shape)))\n        return np.array(draws, dtype=np.int64).reshape(shape)",
        "([0] * int(shape[-1]))\n        return np.broadcast_to(np.array(draws, dtype=np.int64), shape)",
        f"{TESTS}/test_noise_matrix.py::test_no_noise_is_used_twice_within_a_release",
    ),
    Mutant(
        "seed noise from `seed`",
        "pipelines/privacy/noise.py",
        '{"os_entropy": OsEntropy,',
        '{"os_entropy": lambda: SeededForTests(test_seed),',
        f"{TESTS}/privacy/test_noise.py::test_the_seed_reaches_only_the_test_source",
    ),
    Mutant(
        "round the privacy loss down",
        "pipelines/privacy/accounting/loss_distributions.py",
        "    lowest = math.floor(bounds.epsilon_lower / interval)\n"
        "    highest = math.ceil(bounds.epsilon_upper / interval)\n"
        "    epsilons = np.arange(lowest, highest + 1) * interval\n",
        "    lowest = math.floor(bounds.epsilon_lower / interval) - 1\n"
        "    highest = math.ceil(bounds.epsilon_upper / interval) - 1\n"
        "    epsilons = np.arange(lowest + 1, highest + 2) * interval\n",
        f"{TESTS}/privacy/accounting/test_loss_distributions.py::test_no_direction_s_delta_is_below_the_exact_one",
    ),
    Mutant(
        "join the curve's points from below",
        "pipelines/privacy/accounting/loss_distributions.py",
        "probabilities[1:-1] = inner / growth",
        "probabilities[1:-1] = differences[1:] - differences[:-1]",
        f"{TESTS}/privacy/accounting/test_loss_distributions.py::test_no_direction_s_delta_is_below_the_exact_one",
    ),
    Mutant(
        "lose the mass that a composition cuts off",
        "pipelines/privacy/accounting/loss_distributions.py",
        "infinity_mass = TAIL_MASS - math.expm1(",
        "infinity_mass = -math.expm1(",
        f"{TESTS}/privacy/accounting/test_loss_distributions.py::test_steps_together_are_dp_accounting_s",
    ),
    Mutant(
        "stages that are forks of a process which has loaded the source of noise",
        "pipelines/reproduction/warm.py",
        "    if NOISE in sys.modules:",
        "    if False:",
        f"{TESTS}/reproduction/test_warm.py::test_a_process_that_loaded_the_source_of_noise_does_not_fork",
    ),
    Mutant(
        "releases of one ledger in whichever order they end, so that a cap refuses another one",
        "pipelines/reproduction/run.py",
        "    if kind not in CHARGING:",
        "    if True:",
        f"{TESTS}/reproduction/test_run.py::test_releases_of_one_ledger_keep_the_order_of_the_plan_and_others_overlap",
    ),
    Mutant(
        "an encoder whose features of a record see the others of its batch",
        "models/fixed_features.py",
        "return super().train(False)",
        "return super().train(mode)",
        "tests/models/test_fixed_features.py::test_training_the_network_leaves_the_features_in_evaluation_mode",
    ),
    Mutant(
        "a statement that is silent on what an encoder was trained on",
        "pipelines/synthesis/dp_head.py",
        "not_covered=(*NOT_COVERED, *OF_NETWORK.get(settings.network, ())),",
        "not_covered=NOT_COVERED,",
        f"{TESTS}/synthesis/test_dp_head.py::"
        "test_a_head_on_an_encoder_does_not_cover_its_pretraining",
    ),
    Mutant(
        "a noisy run that is silent on what an encoder was trained on",
        "pipelines/federation/noisy_run.py",
        "(*statement.not_covered, *OF_NETWORK.get(self.network, ()))",
        "statement.not_covered",
        "tests/stages/test_train_dp_baseline.py::"
        "test_a_run_on_an_encoder_does_not_cover_its_pretraining",
    ),
]
