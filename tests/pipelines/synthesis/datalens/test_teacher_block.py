"""Tests stacked teachers: equal to a plain loop, and isolated from each other's records bit for
bit.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from models import stacked
from models.teachers import TEACHERS
from pipelines.datasets.labelled_images import Images
from pipelines.synthesis.base import Space
from pipelines.synthesis.datalens import teacher_block, votes

SPACE = Space(height=6, width=5, channels=1, classes=3)
COUNT = 7  # teacher 6 has no record


def network(name: str = "mlp"):
    return TEACHERS[name](SPACE.shape, SPACE.classes, 8)


def build(
    data: Images,
    owner: np.ndarray,
    *,
    count: int = COUNT,
    learning_rate: float = 1e-2,
    name: str = "mlp",
    wrong_labels: bool = True,
) -> teacher_block.Block:
    return teacher_block.Block(
        network(name),
        data,
        owner,
        count=count,
        learning_rate=learning_rate,
        seed=5,
        wrong_labels=wrong_labels,
    )


def fakes(step: int, batch: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(100 + step)
    images = torch.rand(batch, 1, 6, 5, generator=generator)
    return images, torch.randint(3, (batch,), generator=generator)


@pytest.fixture
def data(records):
    return records(20, SPACE)


@pytest.fixture
def owner():
    """Returns each record's teacher.

    Teacher 5 has one record only, the first of the shard, and teacher 6 has none.
    """
    return np.array([5, *(np.arange(19) % 5)])


def ballots_of(crowd: teacher_block.Block, step: int) -> torch.Tensor:
    return votes.vote(
        crowd.image_gradients(*fakes(step)),
        top_k=6,
        clip=1e-5,
        stochastic=True,
        generator=torch.Generator().manual_seed(step),
    )


@pytest.mark.parametrize("wrong_labels", [True, False])
@pytest.mark.parametrize("name", TEACHERS)
def test_stacked_teachers_equal_a_plain_loop_over_modules(data, owner, name, wrong_labels):
    """The oracle has one nn.Module and one torch.optim.Adam per teacher, fed the same batches, for
    several steps.
    """
    crowd = build(data, owner, name=name, learning_rate=1e-3, wrong_labels=wrong_labels)
    modules = [network(name) for _ in range(COUNT)]
    for teacher, module in enumerate(modules):
        module.load_state_dict(
            {name: tensor[teacher].detach() for name, tensor in crowd.weights.items()}
        )
    optimisers = [
        torch.optim.Adam(module.parameters(), lr=1e-3, betas=(0.5, 0.999)) for module in modules
    ]
    drawn = []
    real_batch = crowd.real_batch
    crowd.real_batch = lambda batch: drawn.append(real_batch(batch)) or drawn[-1]
    others, other = [], crowd._other
    crowd._other = lambda labels: others.append(other(labels)) or others[-1]
    for step in range(6):
        x, y = fakes(step)
        crowd.train_step(x, y)
        images, labels = drawn[-1]
        for teacher, (module, optimiser) in enumerate(zip(modules, optimisers)):
            loss = F.binary_cross_entropy_with_logits(module(x, y), torch.zeros(len(x)))
            if teacher != 6:
                real = module(images[teacher], labels[teacher])
                loss = loss + F.binary_cross_entropy_with_logits(real, torch.ones(len(x)))
                if wrong_labels:
                    wrong = module(images[teacher], others[-1][teacher])
                    loss = loss + F.binary_cross_entropy_with_logits(wrong, torch.zeros(len(x)))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    for teacher, module in enumerate(modules):
        for parameter, tensor in module.named_parameters():
            assert (
                crowd.weights[parameter][teacher] - tensor
            ).abs().max() < 1e-4  # a tenth of one step: Adam divides by gradients near zero
    x, y = fakes(50)
    stacked = crowd.image_gradients(x, y)
    for teacher, module in enumerate(modules):
        leaf = x.clone().requires_grad_()
        F.binary_cross_entropy_with_logits(module(leaf, y), torch.ones(len(x))).backward()
        torch.testing.assert_close(stacked[teacher], -leaf.grad.flatten(1), atol=1e-6, rtol=1e-4)


def test_other_labels_are_all_others_equally_often(data, owner):
    labels = torch.arange(3).repeat(10_000)
    table = torch.zeros(3, 3)
    table.index_put_((labels, build(data, owner)._other(labels)), torch.ones(()), accumulate=True)
    np.testing.assert_allclose(
        table / 10_000, [[0, 0.5, 0.5], [0.5, 0, 0.5], [0.5, 0.5, 0]], atol=0.025
    )


def test_one_class_has_no_other_label(records):
    space = Space(height=6, width=5, channels=1, classes=1)
    data = records(4, space, labels=[0] * 4)
    teacher = TEACHERS["mlp"](space.shape, 1, 8)
    crowd = teacher_block.Block(
        teacher, data, np.zeros(4, int), count=1, learning_rate=1e-3, seed=0, wrong_labels=True
    )
    crowd.train_step(torch.rand(2, 1, 6, 5), torch.zeros(2, dtype=torch.int64))


def test_teachers_that_reject_wrong_labels_tell_classes_apart(data, owner):
    """A record under its own label scores above the same record under the others; without the term it need not."""
    margins = []
    for wrong_labels in (True, False):
        crowd = build(data, owner, wrong_labels=wrong_labels)
        for _ in range(150):
            crowd.train_step(*fakes(0))
        x, y = crowd.real_batch(30)
        own, wrong = (
            stacked.logits(crowd.teacher, crowd.weights, (x, labels)) for labels in (y, (y + 1) % 3)
        )
        margins.append((own - wrong)[crowd.sizes > 0].mean().item())
    assert margins[0] > margins[1] + 1


@pytest.mark.parametrize("name", TEACHERS)
def test_teachers_start_apart_and_learn(data, owner, name):
    crowd = build(data, owner, name=name)
    for parameter, tensor in crowd.weights.items():
        assert parameter.startswith("norms") or not torch.equal(tensor[0], tensor[1])
    before = {name: tensor.detach().clone() for name, tensor in crowd.weights.items()}
    crowd.train_step(*fakes(0))
    for name, tensor in crowd.weights.items():
        assert torch.all(
            (tensor - before[name]).flatten(1).abs().amax(1) > 0
        )  # the empty teacher included


@pytest.mark.parametrize("name", TEACHERS)
@pytest.mark.parametrize("record", [0, 1, 7, 19])
def test_removing_a_record_changes_its_own_teacher_and_no_other_bit(data, owner, record, name):
    """Record 0 is its teacher's only one: without it the teacher is empty, and still only it may change."""
    rest = np.delete(np.arange(len(data)), record)
    with_it, without = build(data, owner, name=name), build(data[rest], owner[rest], name=name)
    others = np.arange(COUNT) != owner[record]
    for step in range(8):
        with_it.train_step(*fakes(step))
        without.train_step(*fakes(step))
        one, two = ballots_of(with_it, step), ballots_of(without, step)
        assert torch.equal(one[others], two[others])
        difference = votes.tally(one) - votes.tally(two)
        assert np.linalg.norm(difference) <= votes.sensitivity(top_k=6, batch=4)
    for tensor, same in zip(with_it.weights.values(), without.weights.values()):
        assert torch.equal(tensor[others], same[others])
        assert not torch.equal(tensor[~others], same[~others])


@pytest.mark.parametrize("record", [0, 7])
@pytest.mark.parametrize("learning_rate", [1e-2, 10**18.8])
def test_editing_a_record_changes_its_own_teacher_and_no_other_bit(
    data, owner, record, learning_rate
):
    """This holds even if training diverges.

    At the second rate a black image stays finite and a white one does not. 0 x NaN would carry the
    difference into a teacher that only masks its loss.
    """
    worlds = []
    for level in (0, 255):
        images, labels = data.images.copy(), data.labels.copy()
        images[record], labels[record] = level, level % 3
        worlds.append(build(Images(images, labels, data.ids), owner, learning_rate=learning_rate))
    one, two = worlds
    others = np.arange(COUNT) != owner[record]
    for step in range(4):
        one.train_step(*fakes(step))
        two.train_step(*fakes(step))
    for name, tensor in one.weights.items():
        left, right = (
            side.detach()[others].view(torch.int32) for side in (tensor, two.weights[name])
        )
        assert torch.equal(left, right)


def test_an_empty_teacher_votes_like_the_rest(data, owner):
    crowd = build(data, owner)
    crowd.train_step(*fakes(0))
    assert torch.all((ballots_of(crowd, 0)[6] != 0).sum(-1) == 6)


def test_a_shard_without_records_trains_too(data):
    crowd = build(data[:0], np.empty(0, np.int64))
    crowd.train_step(*fakes(0))
    assert torch.isfinite(crowd.image_gradients(*fakes(0))).all()


@settings(deadline=None, max_examples=40)
@given(owner=st.lists(st.integers(0, 8), max_size=40))
def test_tables_are_disjoint_complete_and_padded_with_nobody(owner):
    owner = np.array(owner, np.int64)
    sizes, table = teacher_block._rows_by_teacher(owner, 9)
    rows = [table[teacher, : sizes[teacher]].tolist() for teacher in range(9)]
    assert sorted(row for own in rows for row in own) == list(range(len(owner)))
    for teacher, own in enumerate(rows):
        assert all(owner[row] == teacher for row in own)
        assert all(row == len(owner) for row in table[teacher, sizes[teacher] :].tolist())


@pytest.mark.parametrize("draw", [0.0, 0.5, 1 - 2**-24])
def test_every_draw_falls_on_a_teacher_s_own_record(monkeypatch, draw):
    """The largest float32 below one times the size must not round up to the size, which is the padding."""
    sizes = [*range(60), 127, 128, 129, 255, 0]
    owner = np.repeat(np.arange(len(sizes)), sizes)
    pixels = np.broadcast_to(
        (1 + owner).astype(np.uint8)[:, None, None, None], (len(owner), *SPACE.shape)
    )
    shard = Images(np.ascontiguousarray(pixels), owner % 3, np.arange(len(owner)))
    crowd = build(shard, owner, count=len(sizes))
    monkeypatch.setattr(torch, "rand", lambda *shape, generator, device: torch.full(shape, draw))
    images, labels = crowd.real_batch(2)
    for teacher, size in enumerate(sizes):
        expected = (1 + teacher) / 255 if size else 0.0
        assert torch.all((images[teacher] - expected).abs() < 1e-6)
        assert torch.all(labels[teacher] == (teacher % 3 if size else 0))


def test_batches_are_drawn_evenly_from_a_teacher_s_records(records):
    shard = records(4, SPACE, labels=[0, 1, 2, 2])
    crowd = build(shard, np.array([0, 0, 0, 1]), count=2)
    labels = crowd.real_batch(30_000)[1][0]
    np.testing.assert_allclose(np.bincount(labels) / 30_000, [1 / 3] * 3, atol=0.02)


@pytest.mark.parametrize("name", TEACHERS)
def test_image_gradients_point_to_what_looks_more_real(data, owner, name):
    crowd = build(data, owner, name=name)
    for step in range(5):
        crowd.train_step(*fakes(step))
    x, y = fakes(9)
    direction = crowd.image_gradients(x, y)
    assert direction.shape == (COUNT, 4, 30)
    for teacher in range(COUNT):
        module = network(name)
        module.load_state_dict(
            {name: tensor[teacher].detach() for name, tensor in crowd.weights.items()}
        )
        unit = direction[teacher] / direction[teacher].norm(dim=1, keepdim=True)
        assert torch.all(module(x + 0.01 * unit.reshape(x.shape), y) > module(x, y))
