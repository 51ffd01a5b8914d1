import numpy as np
import onnxruntime as ort
import pytest
from models import model, node

import onemodel_graph as og
from onemodel_kernels.errors import OneModelError


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize(
    ("boxes", "limit", "floor"), [(300, 10, 0.3), (2000, 50, 0.5), (40, 9, 2.0)]
)
def test_non_max_suppression_chooses_as_onnx_runtime_does(boxes, limit, floor, centred):
    rng = np.random.default_rng(boxes + centred)
    corner, size = rng.uniform(0, 100, (2, boxes, 2)), rng.uniform(5, 30, (2, boxes, 2))
    given = {
        "boxes": np.concatenate([corner, size if centred else corner + size], -1),
        "scores": rng.uniform(0, 1, (2, 3, boxes)),
    }
    feeds = {name: array.astype(np.float32) for name, array in given.items()}
    suppress = node(
        "NonMaxSuppression", ["boxes", "scores", "limit", "iou", "floor"], ["chosen"],
        center_point_box=centred,
    )  # fmt: skip
    data = model(
        [suppress],
        {"boxes": (np.float32, (2, boxes, 4)), "scores": (np.float32, (2, 3, boxes))},
        ["chosen"],
        {
            "limit": np.array(limit),
            "iou": np.array(0.5, np.float32),
            "floor": np.array(floor, np.float32),
        },
    ).SerializeToString()
    theirs = ort.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, feeds)
    np.testing.assert_array_equal(og.Session(data).run(feeds)[0], theirs[0])


@pytest.mark.parametrize(
    "attributes",
    [{"output_height": 2**31}, {"sampling_ratio": 2**40}, {"spatial_scale": 1e30}],
)
def test_samples_without_end_are_refused(attributes):
    align = node("RoiAlign", ["x", "rois", "of"], ["y"], name="crops", **attributes)
    data = model(
        [align],
        {"x": (np.float32, (1, 1, 8, 8))},
        ["y"],
        {"rois": np.array([[0, 0, 4, 4]], np.float32), "of": np.array([0])},
    ).SerializeToString()
    with pytest.raises(OneModelError, match="'crops'"):
        og.Session(data).run(np.ones((1, 1, 8, 8), np.float32))


@pytest.mark.parametrize(
    "change",
    [
        {"ngram_counts": [0, 2**62]},
        {"ngram_counts": [-(2**62), 1]},
        {"ngram_indexes": [0, 2**40]},
        {"ngram_indexes": [0, -1]},
    ],
)
def test_tables_of_grams_that_do_not_fit_are_refused(change):
    attributes = {
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 2**62,
        "max_skip_count": 2**62,
        "ngram_counts": [0, 1],
        "ngram_indexes": [0, 1],
        "pool_int64s": [3, 4, 5],
    }
    x = np.array([3, 4, 5, 3], np.int64)

    def run(given):
        table = node("TfIdfVectorizer", ["x"], ["y"], name="grams", **given)
        data = model([table], {"x": (np.int64, (4,))}, ["y"]).SerializeToString()
        return og.Session(data).run(x)[0]

    np.testing.assert_array_equal(run(attributes), [2, 1])
    with pytest.raises(OneModelError, match="'grams'"):
        run({**attributes, **change})


def region_model(**attributes):
    pool = node("MaxRoiPool", ["x", "rois"], ["y"], name="it", **attributes)
    inputs = {"x": (np.float32, ("N", "C", "H", "W")), "rois": (np.float32, ("n", 5))}
    return model([pool], inputs, ["y"]).SerializeToString()


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_region_pooling_as_onnx_runtime_does(scale):
    """Boxes inside, across the border, outside, and of one sample; halves of both signs."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 3, 9, 7)).astype(np.float32)
    corners = rng.integers(-4, 24, (40, 4)) / 2
    corners[:, 2:] += corners[:, :2]
    edges = [[0, 0, 0, 0, 0], [1, 30, 30, 40, 40], [1, 6, 8, 2, 1], [0, -9, -9, -5, -5]]
    rois = np.concatenate([np.c_[rng.integers(0, 2, 40), corners], edges]).astype(np.float32)
    data = region_model(pooled_shape=[3, 2], spatial_scale=scale)
    (want,) = ort.InferenceSession(data).run(None, {"x": x, "rois": rois})
    for optimise in (True, False):
        (got,) = og.Session(data, "exact", optimise=optimise).run(x, rois)
        np.testing.assert_array_equal(got, want)
    assert og.Session(data).run(x, rois[:0])[0].shape == (0, 3, 3, 2)


@pytest.mark.parametrize("box", [[2, 0, 0, 1, 1], [0, np.nan, 0, 1, 1], [0, 0, 0, np.inf, 1]])
def test_regions_of_no_image_are_refused(box):
    x = np.zeros((2, 1, 4, 4), np.float32)
    with pytest.raises(OneModelError, match=r"MaxRoiPool \(node 'it'\): expected a box of finite"):
        og.Session(region_model(pooled_shape=[2, 2])).run(x, np.array([box], np.float32))
    with pytest.raises(OneModelError, match=r"'it'.*at most 65536 bins"):
        og.Session(region_model(pooled_shape=[1000, 1000])).run(x, np.zeros((1, 5), np.float32))
    with pytest.raises(OneModelError, match=r"'it'.*two numbers from 1 on"):
        og.Session(region_model(pooled_shape=[0, 2])).run(x, np.zeros((1, 5), np.float32))
