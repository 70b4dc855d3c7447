"""Which road: images once, or noisy training round by round, from the same budgets, records and test images."""

MODEL, IMAGES, NOTHING = "a model, every round", "images, once", "nothing"


def rows(summary: dict, generators: list[str], noisy: list[str]) -> list[dict]:
    """[{"method", "hands_out", "entry": the method's}]: PPPFL and one model on all images for each generator, then the
    noisy algorithms, then each client alone; as far as they ran."""
    methods = summary["methods"]
    named = [
        (f"{name}/{generator}", IMAGES) for generator in generators for name in ("pppfl", "pooled")
    ]
    named += [(name, MODEL) for name in noisy] + [("local", NOTHING)]
    return [
        {"method": name, "hands_out": what, "entry": methods[name]}
        for name, what in named
        if name in methods
    ]
