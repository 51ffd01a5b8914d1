//! Recurrent layers: LSTM, GRU and plain RNN, by ONNX's signatures and by PyTorch's parameters.
//!
//! One body serves both. A gate's pre-activation is one chain: it starts from `b_ih + b_hh` (one
//! addition; +0.0 without biases), then takes `fma(x[i], w_ih[j, i], acc)` for i ascending, then
//! `fma(h[k], w_hh[j, k], acc)` for k ascending. The first part is one product over all steps, which
//! the steps then continue. Steps run in time order; each row of the batch is computed by itself, so
//! its bits do not depend on the others.
//!
//! With lengths, row b takes part in the steps before `lengths[b]` only: afterwards its output is 0
//! and its state stays; a reversed direction starts at its own last step.

mod activation;
mod backward;
mod forward;
mod gradient;
mod gru;
mod layer;
mod lstm;
mod onnx;
mod rnn;
mod sequence;
mod step;
mod weights;

use crate::kernel::Entry;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "LSTM", build: onnx::build_lstm },
    Entry { name: "GRU", build: onnx::build_gru },
    Entry { name: "RNN", build: onnx::build_rnn },
    Entry { name: "LSTMLayer", build: layer::build_lstm },
    Entry { name: "GRULayer", build: layer::build_gru },
    Entry { name: "RNNLayer", build: layer::build_rnn },
    Entry { name: "LSTMLayerGrad", build: gradient::build_lstm },
    Entry { name: "GRULayerGrad", build: gradient::build_gru },
    Entry { name: "RNNLayerGrad", build: gradient::build_rnn },
];
