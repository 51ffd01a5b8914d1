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
