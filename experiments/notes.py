"""What each page says above its tables: how the figures were made, and why the paper's beside them do not compare."""

_UNIT = (
    "A cell is one client in one run (seed); every figure is a mean over cells, on the client's whole private test "
    "part after fine-tuning at home, last round, nothing selected, unless its column says otherwise. Macro-F1 is over "
    "the classes that the test part holds. {against} Intervals are bootstrap intervals over cells of paired "
    "differences; cells of one seed share its partition and noise, so with few seeds they are somewhat narrow: what a "
    "difference is in each seed says whether another seed could turn it."
)
_LOCAL = "Differences are to `local`, each client alone, for up to five times the epochs of the others' fine-tuning{}."
_ALONE = _LOCAL.format(
    ", and to `random_init`, each client alone with the same fine-tuning as they"
)
_ACCOUNTED = (
    "Epsilon is the largest that one client's release costs: unit one record, add or remove one record, delta as "
    "`privacy.delta` says; {how}. Two generators on the same records cost a client both. What trains on real records "
    "without privacy says so. These pages hold accuracies on private test parts of public benchmark data sets: the "
    "experimenter's view, which no client could publish."
)
_PRIVACY = _ACCOUNTED.format(how="no sampling, exact Gaussian DP")
_PAPER = (
    "Not like for like: the paper's figures are one run without intervals, its best round by test accuracy (BMTA), and "
    "its code takes that accuracy, for PPPFL and FedMeta, from the last mini-batch of a shuffled loader (about 150 "
    "test images in all), for the others from whole test sets. Its partition, the sizes and labels of its synthetic "
    "sets, its generators' settings, the rivals' settings and their fine-tuning are not published; its generators' "
    "accounting does not hold as stated. Here all methods have the same partition, images, network, fine-tuning and "
    "whole test sets, but `local`, which may train for longer. Compare our rows with each other, and the paper's with "
    "each other."
)


def _joined(*paragraphs: str, against: str = _ALONE) -> str:
    return "\n\n".join((_UNIT.format(against=against), *paragraphs))


TABLE2 = _joined(
    "Clients and rounds of params.yaml, five and 30 as shipped; Dirichlet 0.5, epsilons 1, 3, 5, 8 and 10 in turn. "
    "On shards, quantity skew and equal parts, which `partition.scheme` has, too, nothing was measured. `pppfl` has "
    "this project's outer step, `pppfl_paper` the paper's, which moves no weight by more than 0.01 in 30 rounds; "
    "`pppfl` less a rival is on the same images. Seconds are of the shared training and of the final fine-tuning of "
    "all clients, on the machine that measured, often beside other work: they tell orders of magnitude. Bytes are over "
    "all clients and rounds, and down goes the last model, too. Where only the last round's model was fine-tuned, as "
    "on 28x28 images, for it takes longer than the rounds, the columns that select a round are empty; Figure 2 has "
    "some. Generators may have other numbers of cells: compare their differences, which are within cells, and not "
    "their accuracies.",
    _PRIVACY,
    _PAPER,
)
TABLE3 = _joined(
    "As Table II, on images of a conditional GAN **without any privacy**. The paper does not name its GAN.",
    _PRIVACY,
    _PAPER,
)
TABLE4 = _joined(
    "Where the data flows, from the runs of Table II: what the shared or own model is trained on; it is tested on "
    "private test parts. The paper's collaborative rows equal its FedAvg, but for CIFAR-10 in one row.",
    _PRIVACY,
    _PAPER,
    against=_LOCAL.format(""),
)
TABLE5 = _joined(
    "PPPFL with all clients' epsilons from one group: 1 to 5, 6 to 10, one value each, dealt by the seed, or infinite, "
    "which is **no privacy**. The partition of a seed is the same in each group. The picture is the paper's Fig. 3.",
    "The inception score is taken under the data set's own network, trained on the real training images, and is a mean "
    "over the clients' synthetic sets: a client with few classes has few to show. FID is of fixed random convolutions "
    "(`quality.extractor`) against the client's own records, with its floor, real images against real ones. Neither "
    "compares with Inception's, nor with the paper's, which names neither data set nor extractor.",
    _PRIVACY,
    _PAPER,
    against="Differences are to infinite epsilon.",
)
ROADS = _joined(
    "Clients of params.yaml, five as shipped; Dirichlet 0.5, epsilons 1, 3, 5, 8 and 10 in turn: each client has the "
    "same budget on every road, the same records and the same test images. `pppfl` and what stands with its generator "
    "spend it on images, once, and train as often as they like; `dpsgd` and the others spend it on gradients or "
    "weights, round by round, for one model. One image in twenty was kept from all clients for the noisy algorithms "
    "that look at public ones. Seconds do not hold the making of images, seconds of CPU a client by `dp_moments`, and "
    "are of the machine that measured.",
    "No paper compares these roads: no figure stands beside ours.",
    _ACCOUNTED.format(
        how="images and `nbafl`: no sampling, exact Gaussian DP; `dpsgd`, `dpsgd_warm` and `ali`: Poisson lots, RDP; "
        "`adap` and `agn`: Poisson lots, the whole budget by a Renyi filter"
    ),
)
NEWCOMERS = (
    "Five clients, Dirichlet 0.5, epsilons 1, 3, 5, 8 and 10. Each of `new_clients.held_out` in turn: every method "
    "trains on the images of the other clients alone; the newcomer labels a few records of its train part, drawn anew "
    "in each repetition, takes a fixed number of Adam steps on all of them from the model that it is handed, and is "
    "tested on its own test part, and on the global test set. Nothing is selected. `random_init` "
    "hands out an untrained model: those few labels and nothing else.\n\n"
    "Rounds are those of the shared training of PPPFL, FedMeta and FedAvg, the paper's thirty or ten times as many. A "
    "run has one number of rounds, and images of its own, the same for all of its methods.\n\n"
    "A cell is one newcomer in one draw of one run (seed). Cells of one newcomer share its test part and the models, "
    "so the intervals, bootstrap ones over cells of paired differences, say which labels could have moved a figure, "
    "and little of other clients; the last column counts with how many newcomers PPPFL is ahead. No paper has this "
    "table: no figure stands beside ours.\n\n" + _PRIVACY
)
FIGURE2 = _joined(
    "PPPFL with its moving average and its cosine cycles each on and off; Dirichlet 0.5, epsilons 1, 3, 5, 8 and 10. "
    "The paper prints curves alone, so no figure stands beside ours. Its code has neither. In the picture a band "
    "reaches from the least to the most of the seeds.",
    _PRIVACY,
    against="Differences are to neither of the two.",
)
FIGURE4 = (
    "From the runs of Table II: the gain of PPPFL over a client alone against what that client has alone, a point per "
    "client and seed. As in the paper alone is `local`; here it may train five times as long as PPPFL's model is "
    "fine-tuned, which a client with a poor start can make most of. `random_init` has the same fine-tuning.\n\n"
    "**The gain is b - a, and it is held against a**: such a correlation is negative by construction, though a and b "
    "have nothing to do with each other. Beside Spearman's correlation and its usual p stands what remains when each "
    "client's b is dealt to another cell (mean of 10,000 permutations), and the share of these that are as negative: "
    "that p asks whether clients with a poor start gain more than chance makes them.\n\n"
    "Not like for like: the paper's correlation is of five clients in one run, where p is about 0.04 against no "
    "correlation at all; ours has as many cells as clients and seeds together, and cells of one seed are not "
    "independent.\n\n" + _PRIVACY
)
