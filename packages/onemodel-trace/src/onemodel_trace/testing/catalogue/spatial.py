"""Convolutions, pools, resampling and rearranging of images."""

from __future__ import annotations

from onemodel_tensors import functional as F
from onemodel_trace.testing.case import Case, cases, real, weights

CONV = weights(6, 4, 3, 3)
BIAS = weights(6, seed=101)
GROUPED = weights(8, 2, 3, 3)
DEPTHWISE = weights(4, 1, 3, 3)
TRANSPOSED = weights(4, 6, 4, 4)
PER_CHANNEL = weights(4, seed=102)
PLACES = weights(1, 3, 4, 2, seed=103)

CASES: list[Case] = [
    *cases(
        {
            "conv2d": lambda x: F.conv2d(x, CONV, BIAS),
            "conv2d: stride": lambda x: F.conv2d(x, CONV, BIAS, stride=2, padding=1),
            "conv2d: dilation": lambda x: F.conv2d(x, CONV, None, dilation=2),
            "conv2d: groups": lambda x: F.conv2d(x, GROUPED, None, groups=2, padding=1),
            "conv2d: depthwise": lambda x: F.conv2d(x, DEPTHWISE, PER_CHANNEL, groups=4),
            "conv2d: same": lambda x: F.conv2d(x, CONV, BIAS, padding="same"),
            "conv1d": lambda x: F.conv1d(x[:, :, 0], weights(6, 4, 3), padding=1),
            "conv3d": lambda x: F.conv3d(x.unsqueeze(2), weights(3, 4, 1, 3, 3), padding=(0, 1, 1)),
            "conv_transpose2d": lambda x: F.conv_transpose2d(x, TRANSPOSED, stride=2, padding=1),
            "conv_transpose2d: output padding": lambda x: F.conv_transpose2d(
                x, TRANSPOSED, BIAS, stride=3, output_padding=1
            ),
            "conv_transpose1d": lambda x: F.conv_transpose1d(
                x[:, :, 0], weights(4, 3, 2), stride=2
            ),
            "conv_transpose3d": lambda x: F.conv_transpose3d(
                x.unsqueeze(2), weights(4, 3, 1, 2, 2), stride=(1, 2, 2)
            ),
            "max_pool2d": lambda x: F.max_pool2d(x, 2),
            "max_pool2d: overlapping": lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
            "max_pool2d: ceil": lambda x: F.max_pool2d(x, 2, ceil_mode=True),
            "max_pool2d: dilation": lambda x: F.max_pool2d(x, 2, stride=1, dilation=2),
            "max_pool2d: behind zeros": lambda x: F.max_pool2d(F.pad(x - 3.0, (0, 1, 0, 1)), 2, 2),
            "max_pool2d: far behind zeros": lambda x: F.max_pool2d(
                F.pad(x.transpose(2, 3) - 3.0, (0, 3)).transpose(2, 3), 2, 1
            ),
            "avg_pool2d: behind zeros": lambda x: F.avg_pool2d(F.pad(x, (0, 3, 0, 3)), 2, 1),
            "max_pool1d": lambda x: F.max_pool1d(x[:, :, 0], 3, 2),
            "max_pool3d": lambda x: F.max_pool3d(x.unsqueeze(2), (1, 2, 2)),
            "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
            "avg_pool2d: padded": lambda x: F.avg_pool2d(x, 3, stride=2, padding=1),
            "avg_pool2d: ceil": lambda x: F.avg_pool2d(x, 2, ceil_mode=True),
            "avg_pool2d: pads not counted": lambda x: F.avg_pool2d(
                x, 3, stride=2, padding=1, count_include_pad=False
            ),
            "avg_pool2d: divisor": lambda x: F.avg_pool2d(x, 2, divisor_override=3),
            "avg_pool1d": lambda x: F.avg_pool1d(x[:, :, 0], 2),
            "avg_pool3d": lambda x: F.avg_pool3d(x.unsqueeze(2), (1, 2, 2)),
            "lp_pool2d": lambda x: F.lp_pool2d(x.abs(), 2, 2),
            "lp_pool1d": lambda x: F.lp_pool1d(x.abs()[:, :, 0], 2, 2),
            "grid_sample": lambda x: F.grid_sample(x, PLACES.expand(x.shape[0], -1, -1, -1)),
            "grid_sample: nearest": lambda x: F.grid_sample(
                x, PLACES.expand(x.shape[0], -1, -1, -1), "nearest", "border", True
            ),
            "affine_grid": lambda x: F.affine_grid(x[:, 0, :2, :3], (x.shape[0], 1, 4, 5)),
            "adaptive_avg_pool2d: 1": lambda x: F.adaptive_avg_pool2d(x, 1),
            "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (3, 4)),
            "adaptive_avg_pool2d: kept axis": lambda x: F.adaptive_avg_pool2d(x, (1, None)),
            "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x[:, :, 0], 1),
            "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x.unsqueeze(2), 1),
            "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x[:, :, 0], 1),
            "adaptive_max_pool3d": lambda x: F.adaptive_max_pool3d(x.unsqueeze(2), 1),
            "adaptive_max_pool2d: 1": lambda x: F.adaptive_max_pool2d(x, 1),
            "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, (3, 4)),
            "interpolate": lambda x: F.interpolate(x, scale_factor=2),
            "interpolate: nearest size": lambda x: F.interpolate(x, size=(5, 13)),
            "interpolate: nearest-exact": lambda x: F.interpolate(
                x, size=(5, 13), mode="nearest-exact"
            ),
            "interpolate: bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
            "interpolate: bilinear size": lambda x: F.interpolate(x, size=(5, 7), mode="bilinear"),
            "interpolate: corners": lambda x: F.interpolate(
                x, size=(13, 8), mode="bilinear", align_corners=True
            ),
            "interpolate: bicubic": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
            "interpolate: bicubic size": lambda x: F.interpolate(x, size=(5, 13), mode="bicubic"),
            "interpolate: bicubic corners": lambda x: F.interpolate(
                x, size=(13, 8), mode="bicubic", align_corners=True
            ),
            "interpolate: bicubic to one": lambda x: F.interpolate(x, size=1, mode="bicubic"),
            "interpolate: bicubic half": lambda x: F.interpolate(
                x, scale_factor=0.5, mode="bicubic"
            ),
            "interpolate: bilinear to one": lambda x: F.interpolate(x, size=1, mode="bilinear"),
            "interpolate: 1.5": lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
            "interpolate: recomputed": lambda x: F.interpolate(
                x, scale_factor=1.5, mode="bilinear", recompute_scale_factor=True
            ),
            "interpolate: linear": lambda x: F.interpolate(
                x[:, :, 0], scale_factor=2, mode="linear"
            ),
            "interpolate: trilinear": lambda x: F.interpolate(
                x.unsqueeze(2), scale_factor=(2, 2, 1), mode="trilinear"
            ),
            "interpolate: nearest volume": lambda x: F.interpolate(
                x.unsqueeze(2), scale_factor=(2, 1, 2)
            ),
            "interpolate: doubled size": lambda x: F.interpolate(
                x, size=(x.shape[2] * 2, x.shape[3] * 2), mode="bicubic"
            ),
            "interpolate: half": lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear"),
            "interpolate: area": lambda x: F.interpolate(x, size=(3, 5), mode="area"),
            "upsample": lambda x: F.upsample(x, scale_factor=3),
            "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
            "pixel_unshuffle": lambda x: F.pixel_unshuffle(x[:, :, :8, :10], 2),
            "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
            "dropout1d: evaluation": lambda x: F.dropout1d(x[:, :, 0], training=False) * 2,
            "dropout3d: evaluation": lambda x: F.dropout3d(x.unsqueeze(2), training=False) * 2,
            "unfold: patches": lambda x: F.unfold(x, 3, padding=1, stride=2),
            "fold": lambda x: F.fold(F.unfold(x, 3), (9, 11), 3),
            "prelu: channels": lambda x: F.prelu(x, PER_CHANNEL),
            "glu: channels": lambda x: F.glu(x, 1),
            "flatten: channels": lambda x: x.flatten(1),
            "permute: and join": lambda x: x.permute(3, 0, 1, 2).flatten(2),
            "mean: space": lambda x: x.mean((2, 3)),
            "softmax: space": lambda x: x.flatten(2).softmax(-1).view(*x.shape),
            "view: shuffle": lambda x: (
                x.view(x.shape[0], 2, 2, *x.shape[2:]).transpose(1, 2).reshape(x.shape)
            ),
        },
        real(2, 4, 9, 11),
    ),
]
