//! LSTMLayerGrad, GRULayerGrad and RNNLayerGrad.

use super::activation::Gate;
use super::backward::{Backward, Gradients};
use super::layer::{Layer, address, contiguous};
use super::sequence::{Cell, GRU_TORCH, LSTM_TORCH, read_lengths};
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use std::sync::Arc;

/// The gradients of a layer. Inputs are the gradients of y, h_n and c_n (LSTM only), of which absent
/// ones are 0, then the layer's inputs, then all its outputs (of which h_n and c_n are not read).
/// Outputs are dx, dh0, dc0 (LSTM only) and the gradient of each parameter in the layer's order.
///
/// `dh` before a step is the chain `fma(dgate[j], w_hh[j, k], acc)` over gate rows j ascending (a
/// GRU's starts from `e * z`), dx the same over w_ih, direction by direction; the weights'
/// gradients are chains over (t, b) ascending, the biases' are sums in that order, all from +0.0.
struct LayerGrad {
    layer: Layer,
}

fn build(
    operator: &'static str,
    cell: Cell,
    attributes: &mut Attributes,
) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(LayerGrad { layer: Layer::read(operator, cell, attributes)? }))
}

pub(super) fn build_lstm(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    build("LSTMLayerGrad", LSTM_TORCH, attributes)
}

pub(super) fn build_gru(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    build("GRULayerGrad", GRU_TORCH, attributes)
}

pub(super) fn build_rnn(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    build("RNNLayerGrad", Cell::Rnn, attributes)
}

impl LayerGrad {
    /// States, which is also how many outputs of the layer follow y.
    fn states(&self) -> usize {
        if self.layer.cell.has_cell_state() { 2 } else { 1 }
    }

    /// Where the layer's inputs stand: after the gradients.
    fn x_at(&self) -> usize {
        1 + self.states()
    }

    /// Where the layer's outputs stand.
    fn y_at(&self) -> usize {
        self.x_at() + self.layer.inputs()
    }

    fn saved_at(&self) -> usize {
        self.y_at() + 1 + self.states()
    }

    fn typed<E: Gate>(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let layer = &self.layer;
        let arrays = contiguous(inputs)?;
        let get = |i: usize| arrays.get(i).and_then(Option::as_deref);
        let x_at = self.x_at();
        let (Some(x), Some(y), Some(saved)) = (get(x_at), get(self.y_at()), get(self.saved_at()))
        else {
            return Ok(());
        };
        let sizes = layer.sizes_of(x);
        let lengths = read_lengths(layer.operator, get(x_at + layer.lengths_at()), sizes.steps)?;
        let lstm = layer.cell.has_cell_state();
        let per = layer.weights_per_direction();
        let weights_at = x_at + layer.weights_at();
        let of = |k: usize| -> Vec<*const E> {
            (0..layer.directions.len()).map(|d| address(get(weights_at + d * per + k))).collect()
        };
        let first = 1 + self.states();
        let gradients: Vec<Gradients<E>> = (0..layer.directions.len())
            .map(|d| {
                let out = |k: usize| outputs[first + d * per + k].as_mut_ptr::<E>();
                let bias = |k| if layer.has_bias { out(k) } else { std::ptr::null_mut() };
                Gradients { ih: out(0), hh: out(1), b_ih: bias(2), b_hh: bias(3) }
            })
            .collect();
        let null = std::ptr::null();
        Backward {
            operator: layer.operator,
            cell: layer.cell,
            relu: layer.relu,
            sizes,
            directions: &layer.directions,
            x: x.as_ptr::<E>(),
            h0: address(get(x_at + 1)),
            c0: if lstm { address(get(x_at + 2)) } else { null },
            lengths: lengths.as_deref(),
            y: y.as_ptr::<E>(),
            saved: saved.as_ptr::<E>(),
            dy: address(get(0)),
            dh_n: address(get(1)),
            dc_n: if lstm { address(get(2)) } else { null },
            ih: &of(0),
            hh: &of(1),
            dx: outputs[0].as_mut_ptr::<E>(),
            dh0: outputs[1].as_mut_ptr::<E>(),
            dc0: if lstm { outputs[2].as_mut_ptr::<E>() } else { std::ptr::null_mut() },
            gradients: &gradients,
        }
        .run()
    }
}

impl Kernel for LayerGrad {
    fn name(&self) -> &'static str {
        self.layer.operator
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let layer = &self.layer;
        let (x_at, y_at, states) = (self.x_at(), self.y_at(), self.states());
        let count = self.saved_at() + 1;
        Inputs::new(self.name(), inputs, 0, count)?;
        let own = inputs.get(x_at..y_at).unwrap_or_default();
        let (dtype, sizes) = layer.check(own, layer.weights_at())?;
        let d = layer.directions.len();
        let state = Meta::new(dtype, &[d, sizes.batch, sizes.hidden]);
        let y = Meta::new(dtype, &[sizes.steps, sizes.batch, d * sizes.hidden]);
        let saved = Meta::new(dtype, &layer.saved_shape(sizes));
        let given = |i: usize| inputs.get(i).copied().flatten();
        let mut wanted = vec![
            (0, "dy", &y, false),
            (1, "dh_n", &state, false),
            (y_at, "y", &y, true),
            (self.saved_at(), "saved", &saved, true),
        ];
        if layer.cell.has_cell_state() {
            wanted.push((2, "dc_n", &state, false));
        }
        for (i, what, want, required) in wanted {
            let got = match given(i) {
                None if !required => continue,
                None => "none".to_string(),
                Some(meta) if meta == want => continue,
                Some(meta) => format!("{} {:?}", meta.dtype.name(), meta.shape),
            };
            let expected = format!("{what} {} {:?}", want.dtype.name(), want.shape);
            return Err(Error::shape(self.name(), expected, got));
        }
        let x = Meta::new(dtype, &[sizes.steps, sizes.batch, sizes.input]);
        let mut metas: Metas =
            std::iter::once(x).chain(std::iter::repeat_n(state, states)).collect();
        for i in x_at + layer.weights_at()..y_at {
            metas.extend(given(i).cloned());
        }
        Ok(metas)
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        match outputs[0].dtype() {
            DType::F32 => self.typed::<f32>(inputs, outputs),
            _ => self.typed::<f64>(inputs, outputs),
        }
    }

    fn single_output(&self) -> bool {
        false
    }
}
