//! LSTM, GRU and RNN by ONNX's signature.

use super::activation::{Activation, Gate};
use super::forward::Forward;
use super::layer::{address, contiguous};
use super::sequence::{Cell, Direction, LSTM_ONNX, Sizes, read_lengths};
use super::weights::{Parameters, Weights};
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

/// Inputs X (T, B, I), W (D, gates * H, I), R (D, gates * H, H), B? (D, 2 * gates * H) holding the
/// biases of W, then of R, sequence_lens? (B), initial_h? (D, B, H) and, for an LSTM, initial_c? and
/// P? (D, 3H); outputs Y (T, D, B, H), Y_h and, for an LSTM, Y_c. Gates come in ONNX's order
/// (i, o, f, c; z, r, h). The arithmetic is that of the layers, so an LSTM and an LSTMLayer agree
/// bit for bit. `clip` bounds the gates before their functions, not c before its own, as ONNX Runtime
/// has it. Functions other than sigmoid, tanh and relu are computed in f64 and rounded once.
struct Recurrent {
    operator: &'static str,
    cell: Cell,
    hidden: Option<usize>,
    directions: Vec<Direction>,
    clip: Option<f64>,
    bound: Option<Bound>,
}

/// Weights packed once.
#[derive(Clone)]
enum Bound {
    F32(Arc<Vec<Weights<f32>>>),
    F64(Arc<Vec<Weights<f64>>>),
}

trait Kept: Gate {
    fn kept(bound: &Bound) -> Option<&Vec<Weights<Self>>>;
}

impl Kept for f32 {
    fn kept(bound: &Bound) -> Option<&Vec<Weights<Self>>> {
        if let Bound::F32(weights) = bound { Some(weights) } else { None }
    }
}

impl Kept for f64 {
    fn kept(bound: &Bound) -> Option<&Vec<Weights<Self>>> {
        if let Bound::F64(weights) = bound { Some(weights) } else { None }
    }
}

const W: usize = 1;
const R: usize = 2;
const B: usize = 3;
const LENGTHS: usize = 4;
const H0: usize = 5;
const C0: usize = 6;
const PEEPHOLE: usize = 7;

/// Functions in ONNX's order for one direction, as the steps name them.
fn functions(cell: Cell, f: &[Activation]) -> [Activation; 3] {
    match cell {
        Cell::Lstm(_) => [f[0], f[1], f[2]],
        Cell::Gru { .. } => [f[0], f[1], f[1]],
        Cell::Rnn => [f[0]; 3],
    }
}

fn read_functions(
    operator: &str,
    per_direction: usize,
    count: usize,
    attributes: &mut Attributes,
    defaults: &[Activation],
) -> Result<Vec<Activation>> {
    let names = attributes.strs_opt("activations")?;
    let alphas = attributes.floats_opt("activation_alpha")?.unwrap_or_default();
    let betas = attributes.floats_opt("activation_beta")?.unwrap_or_default();
    let Some(names) = names.filter(|n| !n.is_empty()) else {
        return Ok(defaults.iter().copied().cycle().take(per_direction * count).collect());
    };
    if names.len() != per_direction * count {
        return Err(Error::attribute(
            operator,
            format!("{per_direction} activations for each of {count} directions"),
            format!("{names:?}"),
        ));
    }
    names
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let found = Activation::named(name, alphas.get(i).copied(), betas.get(i).copied());
            found.ok_or_else(|| {
                Error::attribute(operator, "activations that ONNX names", format!("'{name}'"))
            })
        })
        .collect()
}

fn build(
    operator: &'static str,
    cell: Cell,
    attributes: &mut Attributes,
) -> Result<Arc<dyn Kernel>> {
    let hidden = attributes.int_opt("hidden_size")?;
    let directions: &[bool] = [&[false][..], &[true], &[false, true]]
        [attributes.choice("direction", &["forward", "reverse", "bidirectional"], 0)?];
    let (sigmoid, tanh) = (Activation::Sigmoid, Activation::Tanh);
    let defaults: &[Activation] = match cell {
        Cell::Lstm(_) => &[sigmoid, tanh, tanh],
        Cell::Gru { .. } => &[sigmoid, tanh],
        Cell::Rnn => &[tanh],
    };
    let per = defaults.len();
    let all = read_functions(operator, per, directions.len(), attributes, defaults)?;
    let directions = directions
        .iter()
        .zip(all.chunks(per))
        .map(|(&reverse, f)| Direction { reverse, functions: functions(cell, f) })
        .collect();
    let clip = attributes.float_opt("clip")?.filter(|&c| c != 0.0);
    if clip.is_some_and(|c| c.is_nan() || c < 0.0) {
        return Err(Error::attribute(operator, "a clip above 0", format!("{clip:?}")));
    }
    let hidden = match hidden {
        None => None,
        Some(h) if h >= 1 => Some(h as usize),
        Some(h) => {
            return Err(Error::attribute(operator, "hidden_size at least 1", h.to_string()));
        }
    };
    Ok(Arc::new(Recurrent { operator, cell, hidden, directions, clip, bound: None }))
}

pub(super) fn build_lstm(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    build("LSTM", LSTM_ONNX, attributes)
}

pub(super) fn build_gru(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    let reset_after = attributes.flag("linear_before_reset", false)?;
    build("GRU", Cell::Gru { order: [1, 0], reset_after }, attributes)
}

pub(super) fn build_rnn(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    build("RNN", Cell::Rnn, attributes)
}

impl Recurrent {
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

    /// Checks W, R and B; returns the input and the hidden size.
    fn check_weights(&self, inputs: &[Option<&Meta>]) -> Result<(usize, usize)> {
        let get = |i: usize| inputs.get(i).copied().flatten();
        let (Some(w), Some(r)) = (get(W), get(R)) else {
            return Err(Error::usage(self.operator, "W and R", "none"));
        };
        let (d, gates) = (self.directions.len(), self.cell.gates());
        let ([_, _, input], [_, _, hidden]) = (&w.shape[..], &r.shape[..]) else {
            let got = format!("{:?} and {:?}", w.shape, r.shape);
            return Err(Error::shape(self.operator, "W and R of 3 axes", got));
        };
        let (input, hidden) = (*input, *hidden);
        if let Some(want) = self.hidden.filter(|&h| h != hidden) {
            let got = format!("{:?}", r.shape);
            return Err(Error::shape(self.operator, format!("R for hidden_size {want}"), got));
        }
        let rows = gates * hidden;
        self.expect(Some(w), "W", w.dtype, &[d, rows, input])?;
        self.expect(Some(r), "R", w.dtype, &[d, rows, hidden])?;
        self.expect(get(B), "B", w.dtype, &[d, 2 * rows])?;
        Ok((input, hidden))
    }

    fn weights<E: Gate>(&self, w: &Array, r: &Array, b: Option<&Array>) -> Result<Vec<Weights<E>>> {
        let (w, r) = (w.to_contiguous()?, r.to_contiguous()?);
        let rows = w.shape()[1] as i64;
        let (input, hidden) = (w.shape()[2], r.shape()[2]);
        (0..self.directions.len() as i64)
            .map(|d| {
                let biases = b
                    .map(|b| {
                        let row = b.select(0, d)?;
                        let half = |from: i64| row.slice(0, from, from + rows, 1)?.copy();
                        Ok((half(0)?, half(rows)?))
                    })
                    .transpose()?;
                let (ih, hh) = (w.select(0, d)?, r.select(0, d)?);
                let bias = biases.as_ref().map(|(a, b)| (a, b));
                let parameters = Parameters { ih: &ih, hh: &hh, bias };
                Weights::new(self.operator, self.cell, (input, hidden), &parameters)
            })
            .collect()
    }

    fn typed<E: Kept>(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let given = |i: usize| inputs.get(i).copied().flatten();
        let (Some(x), Some(w), Some(r)) = (given(0), given(W), given(R)) else { return Ok(()) };
        let arrays = contiguous(&[Some(x), given(H0), given(C0), given(PEEPHOLE)])?;
        let get = |i: usize| arrays.get(i).and_then(Option::as_deref);
        let own;
        // A bias that is no constant is not among the packed weights.
        let complete =
            |kept: &&Vec<Weights<E>>| kept.iter().all(|w| w.has_bias() == given(B).is_some());
        let weights = match self.bound.as_ref().and_then(E::kept).filter(complete) {
            Some(weights) => weights,
            None => {
                own = self.weights::<E>(w, r, given(B))?;
                &own
            }
        };
        let shape = x.shape();
        let hidden = r.shape()[2];
        let sizes = Sizes { steps: shape[0], batch: shape[1], input: shape[2], hidden };
        let lengths = read_lengths(self.operator, given(LENGTHS), sizes.steps)?;
        let lstm = self.cell.has_cell_state();
        let null = std::ptr::null();
        Forward {
            operator: self.operator,
            cell: self.cell,
            sizes,
            directions: &self.directions,
            clip: self.clip,
            x: address(get(0)),
            h0: address(get(1)),
            c0: if lstm { address(get(2)) } else { null },
            lengths: lengths.as_deref(),
            peephole: if lstm { address(get(3)) } else { null },
            y: outputs[0].as_mut_ptr::<E>(),
            y_step: self.directions.len() * sizes.batch * hidden,
            y_row: hidden,
            y_direction: sizes.batch * hidden,
            h_n: outputs[1].as_mut_ptr::<E>(),
            c_n: if lstm { outputs[2].as_mut_ptr::<E>() } else { std::ptr::null_mut() },
            saved: std::ptr::null_mut(),
        }
        .run(weights)
    }
}

impl Kernel for Recurrent {
    fn name(&self) -> &'static str {
        self.operator
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let lstm = self.cell.has_cell_state();
        let checked = Inputs::new(self.operator, inputs, 3, if lstm { 8 } else { 6 })?;
        let x = checked.get(0);
        if !matches!(x.dtype, DType::F32 | DType::F64) {
            return Err(Error::dtype(self.operator, "float32 or float64", x.dtype.name()));
        }
        checked.same_dtype(&[0, W, R])?;
        let (input, hidden) = self.check_weights(inputs)?;
        let [steps, batch, width] = x.shape[..] else {
            return Err(Error::shape(self.operator, "X (T, B, I)", format!("{:?}", x.shape)));
        };
        if width != input {
            let expected = format!("X of {input} inputs, as W has");
            return Err(Error::shape(self.operator, expected, format!("{:?}", x.shape)));
        }
        let d = self.directions.len();
        if let Some(lengths) = checked.opt(LENGTHS) {
            let fits = matches!(lengths.dtype, DType::I32 | DType::I64);
            if !fits || lengths.shape.as_slice() != [batch] {
                return Err(Error::shape(
                    self.operator,
                    format!("sequence_lens of int32 [{batch}]"),
                    format!("{} {:?}", lengths.dtype.name(), lengths.shape),
                ));
            }
        }
        let state = Meta::new(x.dtype, &[d, batch, hidden]);
        self.expect(checked.opt(H0), "initial_h", x.dtype, &state.shape)?;
        if lstm {
            self.expect(checked.opt(C0), "initial_c", x.dtype, &state.shape)?;
            self.expect(checked.opt(PEEPHOLE), "P", x.dtype, &[d, 3 * hidden])?;
        }
        let y = Meta::new(x.dtype, &[steps, d, batch, hidden]);
        Ok(if lstm { smallvec![y, state.clone(), state] } else { smallvec![y, state] })
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        match outputs[0].dtype() {
            DType::F32 => self.typed::<f32>(inputs, outputs),
            _ => self.typed::<f64>(inputs, outputs),
        }
    }

    fn bind(&self, constants: &[Option<&Array>]) -> Result<Option<Arc<dyn Kernel>>> {
        let get = |i: usize| constants.get(i).copied().flatten();
        let (Some(w), Some(r)) = (get(W), get(R)) else { return Ok(None) };
        let metas: Vec<Option<Meta>> = constants.iter().map(|a| a.map(Array::meta)).collect();
        let refs: Vec<Option<&Meta>> = metas.iter().map(Option::as_ref).collect();
        self.check_weights(&refs)?;
        let bound = match w.dtype() {
            DType::F32 => Bound::F32(Arc::new(self.weights(w, r, get(B))?)),
            DType::F64 => Bound::F64(Arc::new(self.weights(w, r, get(B))?)),
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Self {
            operator: self.operator,
            cell: self.cell,
            hidden: self.hidden,
            directions: self.directions.clone(),
            clip: self.clip,
            bound: Some(bound),
        })))
    }

    fn single_output(&self) -> bool {
        false
    }
}
