"""Lists bugs in generators: sensitivities, teachers and votes."""

from mutants.mutant import TESTS, Mutant

MUTANTS = [
    Mutant(
        "sum the votes of more steps than the statement has",
        "pipelines/synthesis/joint_datalens.py",
        "steps = of_one.settings.steps",
        "steps = settings.steps",
        f"{TESTS}/synthesis/test_joint_datalens.py::"
        "test_the_sums_are_those_that_the_statement_has_however_much_noise_there_is",
    ),
    Mutant(
        "halve the sensitivity of votes",
        "pipelines/synthesis/datalens/votes.py",
        "return 2 * math.sqrt(top_k * batch)",
        "return math.sqrt(top_k * batch)",
        f"{TESTS}/synthesis/datalens/test_votes.py::test_the_sum_over_teachers_moves_by_two_root_k_b_when_one_teacher_changes",
    ),
    Mutant(
        "halve the sensitivity of dp_moments",
        "pipelines/synthesis/dp_moments_sums.py",
        "norm = math.hypot(1.0, settings.count_weight)",
        "norm = math.hypot(1.0, settings.count_weight) / 2",
        f"{TESTS}/synthesis/test_dp_moments_sums.py::test_no_record_moves_the_first_release_by_more_than_one",
    ),
    Mutant(
        "forget the count in the sensitivity of dp_merf",
        "pipelines/synthesis/dp_merf.py",
        "sensitivity = math.hypot(1.0, settings.count_weight)",
        "sensitivity = 1.0",
        f"{TESTS}/synthesis/test_dp_merf.py::test_adding_a_record_moves_the_sum_by_the_claimed_sensitivity",
    ),
    Mutant(
        "charge the steps of dp_teacher once",
        "pipelines/synthesis/dp_teacher.py",
        "multiplier = math.sqrt(settings.steps) / share.mu",
        "multiplier = 1 / share.mu",
        f"{TESTS}/synthesis/test_dp_teacher.py::test_the_parts_spend_exactly_the_budget",
    ),
    Mutant(
        "give dp_moments the whole budget beside dp_teacher's steps",
        "pipelines/synthesis/dp_teacher.py",
        "budget.share * (1 - settings.teacher_share)",
        "budget.share",
        f"{TESTS}/synthesis/test_dp_teacher.py::test_the_parts_spend_exactly_the_budget",
    ),
    Mutant(
        "drop the noise of dp_teacher's steps",
        "pipelines/synthesis/dp_teacher.py",
        "deviation=deviation, noise=noise)",
        "deviation=0.0, noise=noise)",
        f"{TESTS}/synthesis/test_dp_teacher.py::test_each_step_sums_all_records_and_noises_a_zero_sum_at_the_planned_level",
    ),
    Mutant(
        "charge the steps of dp_head once",
        "pipelines/synthesis/dp_head.py",
        "math.sqrt(count) * head_budget.sigma(share_of_steps)",
        "head_budget.sigma(share_of_steps)",
        f"{TESTS}/synthesis/test_dp_head.py::test_the_parts_spend_exactly_the_budget",
    ),
    Mutant(
        "give dp_moments the whole budget beside dp_head's steps",
        "pipelines/synthesis/dp_head.py",
        "share = budget.share * (1 - settings.head_share)",
        "share = budget.share",
        f"{TESTS}/synthesis/test_dp_head.py::test_the_parts_spend_exactly_the_budget",
    ),
    Mutant(
        "give each lattice of dp_head the whole slack",
        "pipelines/privacy/discrete_gaussian.py",
        "budget.delta / budget.lattices / slack",
        "budget.delta / slack",
        f"{TESTS}/privacy/test_discrete_gaussian.py::test_several_lattices_share_the_slack",
    ),
    Mutant(
        "divide by the true number of records",
        "pipelines/synthesis/dp_head.py",
        "count = linear_head.released_count(len(shard), sigma=sigma, scale=scale, noise=noise)",
        "count = max(float(len(shard)), linear_head.LEAST_COUNT)",
        f"{TESTS}/synthesis/test_dp_head.py::test_the_head_is_that_of_a_loop_record_by_record",
    ),
    Mutant(
        "drop the noise of dp_head's steps",
        "pipelines/synthesis/dp_head.py",
        "noisy = release(total, sigma=sigma, scale=scale, noise=noise)",
        "noisy = release(total, sigma=0.0, scale=scale, noise=noise)",
        f"{TESTS}/synthesis/test_dp_head.py::test_the_head_is_that_of_a_loop_record_by_record",
    ),
    Mutant(
        "charge a batch of fakes once",
        "pipelines/synthesis/datalens/plan.py",
        "votes.sensitivity(top_k=settings.top_k, batch=settings.batch)",
        "votes.sensitivity(top_k=settings.top_k, batch=1)",
        f"{TESTS}/synthesis/datalens/test_plan.py::test_the_planned_steps_spend_exactly_the_budget",
    ),
    Mutant(
        "put one record into two teachers",
        "pipelines/synthesis/datalens/teacher_block.py",
        "rows = np.flatnonzero(owner == teacher)",
        "rows = np.flatnonzero((owner == teacher) | (owner == (teacher + 1) % count))[: sizes[teacher]]",
        f"{TESTS}/synthesis/datalens/test_teacher_block.py::test_removing_a_record_changes_its_own_teacher_and_no_other_bit",
    ),
    Mutant(
        "share an optimiser between teachers",
        "pipelines/synthesis/datalens/teacher_block.py",
        "        losses.sum().backward()\n",
        "        losses.sum().backward()\n"
        "        for weight in self.weights.values():\n"
        "            weight.grad = weight.grad.mean(0, keepdim=True).expand_as(weight.grad).clone()\n",
        f"{TESTS}/synthesis/datalens/test_teacher_block.py::test_stacked_teachers_equal_a_plain_loop_over_modules",
    ),
    Mutant(
        "let a teacher vote in two blocks",
        "pipelines/synthesis/datalens/ensemble.py",
        "rows = np.flatnonzero((owner >= start) & (owner < start + count))",
        "rows = np.flatnonzero((owner >= start - 1) & (owner < start + count))\n    owner = np.maximum(owner, start)",
        f"{TESTS}/synthesis/datalens/test_ensemble.py::test_each_record_lies_with_its_own_teacher_in_one_block",
    ),
    Mutant(
        "draw a killed run's votes anew",
        "pipelines/synthesis/datalens/journal.py",
        "        if step < len(self.released):\n            return self.released[step]\n",
        "",
        f"{TESTS}/synthesis/datalens/test_generator_resumed.py::test_a_killed_run_never_releases_a_step_twice",
    ),
    Mutant(
        "use votes before they are written",
        "pipelines/synthesis/datalens/journal.py",
        "                file.write(_record(step, votes))\n",
        "",
        f"{TESTS}/synthesis/datalens/test_journal.py::test_released_votes_come_back_bit_for_bit_and_are_not_drawn_again",
    ),
    Mutant(
        "let the record-to-teacher map look at labels",
        "pipelines/synthesis/datalens/generator.py",
        "owner = votes.assign(shard.ids,",
        "owner = votes.assign(shard.ids + shard.labels,",
        f"{TESTS}/synthesis/datalens/test_generator.py::test_the_map_to_teachers_reads_ids_and_nothing_else",
    ),
]
