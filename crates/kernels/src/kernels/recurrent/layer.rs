//! LSTMLayer, GRULayer and RNNLayer: one layer with PyTorch's parameters, which keeps what the
//! gradient needs.

use super::activation::{Activation, Gate};
use super::forward::Forward;
use super::sequence::{Cell, Direction, GRU_TORCH, LSTM_TORCH, Sizes, read_lengths};
use super::weights::{Parameters, Weights};
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::borrow::Cow;
use std::sync::Arc;

/// What a layer and its gradient share: attributes and the order of inputs.
#[derive(Clone)]
pub(super) struct Layer {
    pub(super) operator: &'static str,
    pub(super) cell: Cell,
    pub(super) hidden: usize,
    pub(super) has_bias: bool,
    pub(super) directions: Vec<Direction>,
    pub(super) relu: bool,
}

impl Layer {
    pub(super) fn read(
        operator: &'static str,
        cell: Cell,
        attributes: &mut Attributes,
    ) -> Result<Self> {
        let hidden = attributes.int_required("hidden_size")?;
        let directions = attributes.int("directions", 1)?;
        let has_bias = attributes.flag("has_bias", true)?;
        let relu =
            cell == Cell::Rnn && attributes.choice("nonlinearity", &["tanh", "relu"], 0)? == 1;
        if hidden < 1 {
            let got = hidden.to_string();
            return Err(Error::attribute(operator, "hidden_size at least 1", got));
        }
        if !(1..=2).contains(&directions) {
            let got = directions.to_string();
            return Err(Error::attribute(operator, "directions 1 or 2", got));
        }
        let functions = match cell {
            Cell::Rnn if relu => [Activation::Relu; 3],
            Cell::Rnn => [Activation::Tanh; 3],
            _ => [Activation::Sigmoid, Activation::Tanh, Activation::Tanh],
        };
        let directions =
            (0..directions).map(|d| Direction { reverse: d == 1, functions }).collect();
        Ok(Self { operator, cell, hidden: hidden as usize, has_bias, directions, relu })
    }

    /// Where the lengths stand: after x, h0 and, for an LSTM, c0.
    pub(super) fn lengths_at(&self) -> usize {
        if self.cell.has_cell_state() { 3 } else { 2 }
    }

    pub(super) fn weights_at(&self) -> usize {
        self.lengths_at() + 1
    }

    pub(super) fn weights_per_direction(&self) -> usize {
        if self.has_bias { 4 } else { 2 }
    }

    pub(super) fn inputs(&self) -> usize {
        self.weights_at() + self.weights_per_direction() * self.directions.len()
    }

    /// The shapes of one direction's parameters.
    fn parameter_shapes(&self, input: usize) -> [Vec<usize>; 4] {
        let rows = self.cell.gates() * self.hidden;
        [vec![rows, input], vec![rows, self.hidden], vec![rows], vec![rows]]
    }

    pub(super) fn saved_shape(&self, sizes: Sizes) -> [usize; 4] {
        let row = self.cell.saved() * self.hidden;
        [self.directions.len(), sizes.steps, sizes.batch, row]
    }

    fn expect(&self, meta: Option<&Meta>, what: &str, dtype: DType, shape: &[usize]) -> Result<()> {
        let Some(meta) = meta else { return Ok(()) };
        if meta.dtype != dtype || meta.shape.as_slice() != shape {
            return Err(Error::shape(
                self.operator,
                format!("{what} {} {shape:?}", dtype.name()),
                format!("{} {:?}", meta.dtype.name(), meta.shape),
            ));
        }
        Ok(())
    }

    /// Checks x, the states, the lengths and the parameters, which start at input `weights`.
    pub(super) fn check(&self, inputs: &[Option<&Meta>], weights: usize) -> Result<(DType, Sizes)> {
        let get = |i: usize| inputs.get(i).copied().flatten();
        let missing = |what: &str| Error::usage(self.operator, what, "none");
        let x = get(0).ok_or_else(|| missing("x (T, B, I)"))?;
        if !matches!(x.dtype, DType::F32 | DType::F64) {
            return Err(Error::dtype(self.operator, "float32 or float64", x.dtype.name()));
        }
        let [steps, batch, input] = x.shape[..] else {
            return Err(Error::shape(self.operator, "x (T, B, I)", format!("{:?}", x.shape)));
        };
        let state = [self.directions.len(), batch, self.hidden];
        self.expect(get(1), "h0", x.dtype, &state)?;
        if self.cell.has_cell_state() {
            self.expect(get(2), "c0", x.dtype, &state)?;
        }
        if let Some(lengths) = get(self.lengths_at()) {
            let fits = matches!(lengths.dtype, DType::I32 | DType::I64);
            if !fits || lengths.shape.as_slice() != [batch] {
                return Err(Error::shape(
                    self.operator,
                    format!("lengths of int32 or int64 [{batch}]"),
                    format!("{} {:?}", lengths.dtype.name(), lengths.shape),
                ));
            }
        }
        let shapes = self.parameter_shapes(input);
        let names = ["w_ih", "w_hh", "b_ih", "b_hh"];
        let per = self.weights_per_direction();
        for d in 0..self.directions.len() {
            for k in 0..per {
                let meta = get(weights + d * per + k);
                let what = format!("{} of direction {d}", names[k]);
                if meta.is_none() {
                    return Err(missing(&what));
                }
                self.expect(meta, &what, x.dtype, &shapes[k])?;
            }
        }
        Ok((x.dtype, Sizes { steps, batch, input, hidden: self.hidden }))
    }

    pub(super) fn sizes_of(&self, x: &Array) -> Sizes {
        let shape = x.shape();
        Sizes { steps: shape[0], batch: shape[1], input: shape[2], hidden: self.hidden }
    }
}

/// The address of an optional array's elements, or null.
pub(super) fn address<E: Gate>(array: Option<&Array>) -> *const E {
    array.map_or(std::ptr::null(), Array::as_ptr::<E>)
}

/// All inputs as contiguous arrays.
pub(super) fn contiguous<'a>(inputs: &[Option<&'a Array>]) -> Result<Vec<Option<Cow<'a, Array>>>> {
    inputs.iter().map(|a| a.map(Array::to_contiguous).transpose()).collect()
}

/// One recurrent layer over x (T, B, I): inputs x, h0?, c0? (LSTM only), lengths?, then w_ih, w_hh
/// and, with biases, b_ih and b_hh of each direction (gates i, f, g, o or r, z, n); outputs
/// y (T, B, D * H), h_n, c_n (LSTM only) and what the gradient needs (empty with `save=0`).
struct LayerKernel {
    layer: Layer,
    save: bool,
}

fn build(
    operator: &'static str,
    cell: Cell,
    attributes: &mut Attributes,
) -> Result<Arc<dyn Kernel>> {
    let layer = Layer::read(operator, cell, attributes)?;
    Ok(Arc::new(LayerKernel { layer, save: attributes.flag("save", true)? }))
}

pub(super) fn build_lstm(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    build("LSTMLayer", LSTM_TORCH, attributes)
}

pub(super) fn build_gru(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    build("GRULayer", GRU_TORCH, attributes)
}

pub(super) fn build_rnn(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    build("RNNLayer", Cell::Rnn, attributes)
}

impl LayerKernel {
    fn typed<E: Gate>(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let layer = &self.layer;
        let arrays = contiguous(inputs)?;
        let get = |i: usize| arrays.get(i).and_then(Option::as_deref);
        let Some(x) = get(0) else { return Ok(()) };
        let sizes = layer.sizes_of(x);
        let lengths = read_lengths(layer.operator, get(layer.lengths_at()), sizes.steps)?;
        let per = layer.weights_per_direction();
        let mut weights = Vec::new();
        for d in 0..layer.directions.len() {
            let at = layer.weights_at() + d * per;
            let (Some(ih), Some(hh)) = (get(at), get(at + 1)) else { return Ok(()) };
            let bias = if layer.has_bias { get(at + 2).zip(get(at + 3)) } else { None };
            let parameters = Parameters { ih, hh, bias };
            let widths = (sizes.input, sizes.hidden);
            weights.push(Weights::<E>::new(layer.operator, layer.cell, widths, &parameters)?);
        }
        let lstm = layer.cell.has_cell_state();
        let width = layer.directions.len() * layer.hidden;
        let last = outputs.len() - 1;
        Forward {
            operator: layer.operator,
            cell: layer.cell,
            sizes,
            directions: &layer.directions,
            clip: None,
            x: x.as_ptr::<E>(),
            h0: address(get(1)),
            c0: if lstm { address(get(2)) } else { std::ptr::null() },
            lengths: lengths.as_deref(),
            peephole: std::ptr::null(),
            y: outputs[0].as_mut_ptr::<E>(),
            y_step: sizes.batch * width,
            y_row: width,
            y_direction: layer.hidden,
            h_n: outputs[1].as_mut_ptr::<E>(),
            c_n: if lstm { outputs[2].as_mut_ptr::<E>() } else { std::ptr::null_mut() },
            saved: if self.save { outputs[last].as_mut_ptr::<E>() } else { std::ptr::null_mut() },
        }
        .run(&weights)
    }
}

impl Kernel for LayerKernel {
    fn name(&self) -> &'static str {
        self.layer.operator
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let count = self.layer.inputs();
        Inputs::new(self.name(), inputs, 1, count)?;
        let (dtype, sizes) = self.layer.check(inputs, self.layer.weights_at())?;
        let d = self.layer.directions.len();
        let state = Meta::new(dtype, &[d, sizes.batch, sizes.hidden]);
        let y = Meta::new(dtype, &[sizes.steps, sizes.batch, d * sizes.hidden]);
        let saved = if self.save {
            Meta::new(dtype, &self.layer.saved_shape(sizes))
        } else {
            Meta::new(dtype, &[0])
        };
        Ok(if self.layer.cell.has_cell_state() {
            smallvec![y, state.clone(), state, saved]
        } else {
            smallvec![y, state, saved]
        })
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
