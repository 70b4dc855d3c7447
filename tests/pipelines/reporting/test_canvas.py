from pipelines.reporting import canvas


def test_the_same_numbers_give_the_same_bytes(tmp_path):
    for name in ("one.png", "two.png"):
        drawn = canvas.figure(2.0)
        axes = drawn.subplots()
        axes.plot([1, 2, 3])
        canvas.label(axes, "title", "x", "y")
        canvas.save(drawn, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
