"""Published models in this library's layers, with the key names of their weight files."""

from __future__ import annotations

import onemodel_tensors as om
from onemodel_tensors import functional as F
from onemodel_training import (
    LSTM,
    BatchNorm2d,
    Conv2d,
    Embedding,
    LayerNorm,
    Linear,
    MaxPool2d,
    ModuleList,
    NnModule,
    Parameter,
    PReLU,
)


class PNet(NnModule):
    """The proposal net of MTCNN. Source: Zhang et al. 2016."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = Conv2d(3, 10, 3)
        self.prelu1 = PReLU(10)
        self.pool1 = MaxPool2d(2, 2, ceil_mode=True)
        self.conv2 = Conv2d(10, 16, 3)
        self.prelu2 = PReLU(16)
        self.conv3 = Conv2d(16, 32, 3)
        self.prelu3 = PReLU(32)
        self.conv4_1 = Conv2d(32, 2, 1)
        self.conv4_2 = Conv2d(32, 4, 1)

    def forward(self, image: om.Tensor) -> tuple[om.Tensor, om.Tensor]:
        """(N, 3, H, W) to boxes (N, 4, h, w) and face probabilities (N, 2, h, w)."""
        x = self.pool1(self.prelu1(self.conv1(image)))
        x = self.prelu3(self.conv3(self.prelu2(self.conv2(x))))
        return self.conv4_2(x), self.conv4_1(x).softmax(1)


class Crepe(NnModule):
    """The pitch estimator CREPE in its tiny size. Source: Kim et al. 2018."""

    def __init__(self) -> None:
        super().__init__()
        widths = [1, 128, 16, 16, 16, 32, 64]
        for i in range(1, 7):
            first = i == 1
            window, stride = ((512, 1), (4, 1)) if first else ((64, 1), (1, 1))
            setattr(self, f"conv{i}", Conv2d(widths[i - 1], widths[i], window, stride))
            setattr(self, f"conv{i}_BN", BatchNorm2d(widths[i], eps=0.001, momentum=0.0))
        self.classifier = Linear(256, 360)

    def forward(self, frames: om.Tensor) -> om.Tensor:
        """Normalised frames (N, 1024) at 16 kHz to the 360 pitch activations (N, 360)."""
        x = frames.unsqueeze(1).unsqueeze(-1)
        for i in range(1, 7):
            x = F.pad(x, (0, 0, 254, 254) if i == 1 else (0, 0, 31, 32))
            x = getattr(self, f"conv{i}_BN")(F.relu(getattr(self, f"conv{i}")(x)))
            x = F.max_pool2d(x, (2, 1), (2, 1))
        return self.classifier(x.permute(0, 2, 1, 3).flatten(1)).sigmoid()


class VoiceEncoder(NnModule):
    """The speaker encoder of resemblyzer. Source: Wan et al. 2017."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = LSTM(40, 256, 3, batch_first=True)
        self.linear = Linear(256, 256)

    def forward(self, mels: om.Tensor) -> om.Tensor:
        """Mel frames (N, T, 40) to unit vectors (N, 256)."""
        _, (hidden, _) = self.lstm(mels)
        return F.normalize(F.relu(self.linear(hidden[-1])), dim=1)


class BertSelfAttention(NnModule):
    """The three projections and the attention of BERT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = Linear(width, width)
        self.key = Linear(width, width)
        self.value = Linear(width, width)

    def forward(self, x: om.Tensor, mask: om.Tensor) -> om.Tensor:
        """(N, T, width) and a mask (N, 1, 1, T) to (N, T, width)."""
        batch, length, width = x.shape

        def split(y: om.Tensor) -> om.Tensor:
            return y.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return mixed.transpose(1, 2).reshape(batch, length, width)


class BertOutput(NnModule):
    """A linear layer, the residual and a norm."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.dense = Linear(inputs, width)
        self.LayerNorm = LayerNorm(width, eps=1e-12)

    def forward(self, x: om.Tensor, residual: om.Tensor) -> om.Tensor:
        """(N, T, inputs) and (N, T, width) to (N, T, width)."""
        return self.LayerNorm(self.dense(x) + residual)


class BertLayer(NnModule):
    """One layer of BERT, under its key names."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.attention = NnModule()
        self.attention.self = BertSelfAttention(width, heads)
        self.attention.output = BertOutput(width, width)
        self.intermediate = NnModule()
        self.intermediate.dense = Linear(width, inner)
        self.output = BertOutput(inner, width)

    def forward(self, x: om.Tensor, mask: om.Tensor) -> om.Tensor:
        """(N, T, width) to the same."""
        x = self.attention.output(self.attention.self(x, mask), x)
        return self.output(F.gelu(self.intermediate.dense(x)), x)


class MiniLM(NnModule):
    """The sentence encoder all-MiniLM-L6-v2. Source: Wang et al. 2020."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = NnModule()
        self.embeddings.word_embeddings = Embedding(30522, 384)
        self.embeddings.position_embeddings = Embedding(512, 384)
        self.embeddings.token_type_embeddings = Embedding(2, 384)
        self.embeddings.LayerNorm = LayerNorm(384, eps=1e-12)
        self.embeddings.register_buffer("position_ids", om.arange(512).unsqueeze(0))
        self.encoder = NnModule()
        self.encoder.layer = ModuleList([BertLayer(384, 12, 1536) for _ in range(6)])
        self.pooler = NnModule()
        self.pooler.dense = Linear(384, 384)

    def forward(self, ids: om.Tensor, attention_mask: om.Tensor) -> om.Tensor:
        """Ids and mask (N, T) to unit vectors (N, 384): the mean over the tokens that count."""
        table = self.embeddings
        places = table.position_embeddings(table.position_ids[:, : ids.shape[1]])
        x = table.word_embeddings(ids) + places + table.token_type_embeddings.weight[0]
        x = table.LayerNorm(x)
        mask = (attention_mask > 0).unsqueeze(1).unsqueeze(1)
        for layer in self.encoder.layer:
            x = layer(x, mask)
        counted = attention_mask.float().unsqueeze(-1)
        return F.normalize((x * counted).sum(1) / counted.sum(1).clamp(min=1e-9), dim=1)


class GraphemesToPhonemes(NnModule):
    """The GRU encoder and decoder of g2p-en. Source: Park & Kim 2019."""

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        for side, symbols in (("enc", 29), ("dec", 74)):
            setattr(self, f"{side}_emb", Parameter(om.zeros(symbols, width)))
            for part in ("ih", "hh"):
                setattr(self, f"{side}_w_{part}", Parameter(om.zeros(3 * width, width)))
                setattr(self, f"{side}_b_{part}", Parameter(om.zeros(3 * width)))
        self.fc_w = Parameter(om.zeros(74, width))
        self.fc_b = Parameter(om.zeros(74))

    def _run(self, side: str, x: om.Tensor, state: om.Tensor | None) -> om.Tensor:
        names = ("w_ih", "w_hh", "b_ih", "b_hh")
        weights = [getattr(self, f"{side}_{name}") for name in names]
        return F.gru(x, state, weights, True, 1, 0.0, False, False, True)[1]

    def encode(self, letters: om.Tensor) -> om.Tensor:
        """Letters (N, T) to the state (1, N, width)."""
        return self._run("enc", F.embedding(letters, self.enc_emb), None)

    def decode(self, phoneme: om.Tensor, state: om.Tensor) -> tuple[om.Tensor, om.Tensor]:
        """The last phoneme (N, 1) and the state to scores of the next (N, 74) and the state."""
        state = self._run("dec", F.embedding(phoneme, self.dec_emb), state)
        return F.linear(state[0], self.fc_w, self.fc_b), state

    def forward(self, letters: om.Tensor) -> tuple[om.Tensor, om.Tensor]:
        """Letters (N, T) to the scores of the first phoneme (N, 74) and the state after it."""
        start = om.full((letters.shape[0], 1), 2, dtype="int64")
        return self.decode(start, self.encode(letters))
