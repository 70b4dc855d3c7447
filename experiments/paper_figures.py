"""Holds the PPPFL paper's Tables II to V, as printed: (BMT-F1, BMTA) unless said otherwise.

BMTA is the largest over rounds of the clients' mean test accuracy. The paper's own code takes that
accuracy from the last mini-batch of a shuffled loader. 12 of the 14 BMTA figures of PPPFL and
FedMeta are multiples of 1/150, as five last batches of 30 images would give. Of the 51 other
figures 2 are.
"""

_DATASETS = ("mnist", "fashion_mnist", "cifar10", "cifar100")


def _table(rows: dict[str, tuple]) -> dict[str, dict[str, tuple]]:
    """Returns {row: {data set: figures}} from figures in the order of the data sets."""
    return {name: dict(zip(_DATASETS, figures)) for name, figures in rows.items()}


TABLE2 = _table(
    {
        "fedavg": ((0.9223, 0.9051), (0.7267, 0.7938), (0.4898, 0.6562), (0.2142, 0.3028)),
        "fednova": ((0.8773, 0.8996), (0.6303, 0.7607), (0.3847, 0.6627), (0.2855, 0.3374)),
        "fedprox": ((0.9006, 0.9040), (0.6994, 0.7721), (0.4856, 0.6718), (0.3014, 0.3404)),
        "scaffold": ((0.8906, 0.9024), (0.6698, 0.8061), (0.3732, 0.6614), (0.2096, 0.3333)),
        "fedmeta": ((0.9399, 0.9616), (0.8367, 0.8800), (0.6897, 0.7466), (0.2737, 0.4133)),
        "pppfl": ((0.9420, 0.9640), (0.8622, 0.9199), (0.7163, 0.8000), (0.3526, 0.4800)),
    }
)
# The paper prints BMTA alone here, and has no CIFAR-100.
TABLE3 = _table(
    {
        "fedavg": ((None, 0.9400), (None, 0.7893), (None, 0.5521)),
        "fednova": ((None, 0.8386), (None, 0.7782), (None, 0.5724)),
        "fedprox": ((None, 0.9373), (None, 0.7981), (None, 0.5737)),
        "scaffold": ((None, 0.9279), (None, 0.8061), (None, 0.5608)),
        "sda_fl": ((None, 0.9826), (None, 0.8687), (None, 0.6789)),
        "pppfl": ((None, 0.9466), (None, 0.8666), (None, 0.7133)),
    }
)
TABLE4 = _table(
    {
        "local, secret / secret": (
            (0.8292, 0.8412),
            (0.6896, 0.7136),
            (0.5959, 0.6130),
            (0.2721, 0.2998),
        ),
        "local, synthetic / secret": (
            (0.3021, 0.3371),
            (0.0716, 0.0838),
            (0.1450, 0.1578),
            (0.0067, 0.0100),
        ),
        "collaborative, synthetic / secret": (
            (0.2689, 0.3157),
            (0.0476, 0.1231),
            (0.0500, 0.1417),
            (0.0089, 0.0100),
        ),
        "collaborative, synthetic + fine-tuning / secret": (
            (0.9223, 0.9051),
            (0.7267, 0.7938),
            (0.5510, 0.7124),
            (0.2142, 0.3028),
        ),
        "collaborative, secret / secret": (
            (0.9360, 0.9645),
            (0.8730, 0.8972),
            (0.7427, 0.8083),
            (0.4520, 0.5416),
        ),
    }
)
# {epsilons: (BMT-F1, BMTA, inception score, FID)}. The paper does not name the data set.
TABLE5 = {
    "1-5": (0.7454, 0.8133, 1.2242, 407.55),
    "6-10": (0.7940, 0.8400, 1.8100, 249.05),
    "inf": (0.8199, 0.8533, 2.9442, 49.96),
}
# Rank correlation of gain and local accuracy in one run.
FIGURE4 = {"spearman": -0.90, "clients": 5}


def beside(figures: tuple | None) -> dict:
    """Returns (BMT-F1, BMTA) as columns, which are None if the paper has no figures.

    Example:
        >>> beside(TABLE3["pppfl"]["mnist"])
        {'published_bmta': 0.9466, 'published_bmt_f1': None}
    """
    bmt_f1, bmta = figures or (None, None)
    return {"published_bmta": bmta, "published_bmt_f1": bmt_f1}
