//! DynamicQuantizeLSTM of the domain com.microsoft.

use super::matmul::number;
use super::product::{Byte, Product, Zeros};
use super::range::centred;
use super::rational::{logistic, tanh};
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::scratch::Scratch;
use crate::simd::{LANES, Simd, WithSimd, dispatch};
use smallvec::smallvec;
use std::borrow::Cow;
use std::sync::Arc;

const NAME: &str = "DynamicQuantizeLSTM";
const OPTIONAL: [(usize, &str); 9] = [
    (3, "B"),
    (5, "initial_h"),
    (6, "initial_c"),
    (8, "W_scale"),
    (9, "W_zero_point"),
    (10, "R_scale"),
    (11, "R_zero_point"),
    (4, "sequence_lens"),
    (7, "P"),
];

/// Inputs X (T, B, I), W (D, I, 4H) and R (D, H, 4H) of int8 or uint8, B? (D, 8H), no sequence_lens,
/// initial_h? and initial_c? (D, B, H), no P, and for W and R a scale (D or D, 4H) and a zero point
/// (the same); outputs Y (T, D, B, H), Y_h and Y_c (D, B, H).
///
/// X is quantised as a whole, h as a whole at each step ([`centred`]). With exact integer sums S and
/// f = (scale of x or h) * (scale of W or R), a gate is `(f32(S_x) * f_w + f32(S_h) * f_r) + (b_w +
/// b_r)`, `c' = c * f + i * g` and `h = tanh(c') * o`, every operation rounded by itself, with the
/// functions of [`super::rational`].
struct QuantizedLstm {
    reverse: Vec<bool>,
}

pub(super) fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    let directions = &[&[false][..], &[true], &[false, true]]
        [attributes.choice("direction", &["forward", "reverse", "bidirectional"], 0)?];
    Ok(Arc::new(QuantizedLstm { reverse: directions.to_vec() }))
}

struct Sizes {
    steps: usize,
    batch: usize,
    input: usize,
    hidden: usize,
}

impl QuantizedLstm {
    fn sizes(&self, inputs: &Inputs<'_>) -> Result<Sizes> {
        let (x, w, r) = (inputs.get(0), inputs.get(1), inputs.get(2));
        let directions = self.reverse.len();
        let fits = match (&x.shape[..], &w.shape[..], &r.shape[..]) {
            ([steps, batch, input], [_, width, _], [_, hidden, _]) if input == width => {
                Some(Sizes { steps: *steps, batch: *batch, input: *input, hidden: *hidden })
            }
            _ => None,
        };
        fits.filter(|s| w.shape[..] == [directions, s.input, 4 * s.hidden])
            .filter(|s| r.shape[..] == [directions, s.hidden, 4 * s.hidden])
            .ok_or_else(|| {
                Error::shape(
                    NAME,
                    format!("X (T, B, I), W ({directions}, I, 4H) and R ({directions}, H, 4H)"),
                    format!("{:?}, {:?} and {:?}", x.shape, w.shape, r.shape),
                )
            })
    }

    fn check(&self, inputs: &Inputs<'_>, sizes: &Sizes) -> Result<()> {
        let (directions, gates) = (self.reverse.len(), 4 * sizes.hidden);
        for (index, name) in OPTIONAL {
            let Some(meta) = inputs.opt(index) else {
                if (8..12).contains(&index) {
                    return Err(Error::usage(NAME, name, "none"));
                }
                continue;
            };
            let shape = &meta.shape[..];
            let fits = match index {
                3 => meta.dtype == DType::F32 && shape == [directions, 2 * gates],
                5 | 6 => {
                    meta.dtype == DType::F32 && shape == [directions, sizes.batch, sizes.hidden]
                }
                8..12 => {
                    let side = inputs.get(if index < 10 { 1 } else { 2 });
                    let dtype = if index % 2 == 0 { DType::F32 } else { side.dtype };
                    meta.dtype == dtype && (shape == [directions] || shape == [directions, gates])
                }
                _ => false,
            };
            if !fits {
                let expected = match index {
                    4 | 7 => format!("no {name}"),
                    3 => format!("{name} of float32 [{directions}, {}]", 2 * gates),
                    5 | 6 => format!("{name} of float32, a state of {directions} direction(s)"),
                    _ => format!("{name} of [{directions}] or [{directions}, {gates}]"),
                };
                let got = format!("{} {:?}", meta.dtype.name(), meta.shape);
                return Err(Error::shape(NAME, expected, got));
            }
        }
        Ok(())
    }
}

impl Kernel for QuantizedLstm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let checked = Inputs::new(NAME, inputs, 3, 12)?;
        if checked.get(0).dtype != DType::F32 {
            return Err(Error::dtype(NAME, "X of float32", checked.get(0).dtype.name()));
        }
        for index in [1, 2] {
            let dtype = checked.get(index).dtype;
            if !matches!(dtype, DType::I8 | DType::U8) {
                return Err(Error::dtype(NAME, "W and R of int8 or uint8", dtype.name()));
            }
        }
        let sizes = self.sizes(&checked)?;
        self.check(&checked, &sizes)?;
        let directions = self.reverse.len();
        let every = [sizes.steps, directions, sizes.batch, sizes.hidden];
        let state = Meta::new(DType::F32, &every[1..]);
        Ok(smallvec![Meta::new(DType::F32, &every), state.clone(), state])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let get = |i: usize| inputs.get(i).copied().flatten();
        let contiguous: Vec<Option<Cow<'_, Array>>> =
            (0..12).map(|i| get(i).map(Array::to_contiguous).transpose()).collect::<Result<_>>()?;
        let at = |i: usize| contiguous[i].as_deref();
        let (Some(x), Some(r)) = (at(0), at(2)) else { return Ok(()) };
        let sizes = Sizes {
            steps: x.shape()[0],
            batch: x.shape()[1],
            input: x.shape()[2],
            hidden: r.shape()[1],
        };
        for (direction, &reverse) in self.reverse.iter().enumerate() {
            run_direction(&at, outputs, &sizes, (direction, self.reverse.len()), reverse)?;
        }
        Ok(())
    }

    fn single_output(&self) -> bool {
        false
    }
}

/// Weights of one direction: (k, 4H) stored integers with their scale and zero points.
struct Side<'a> {
    weights: Array,
    scale: &'a [f32],
    zeros: Option<Array>,
}

impl<'a> Side<'a> {
    fn new(weights: &Array, scale: &'a Array, zeros: Option<&Array>, at: i64) -> Result<Self> {
        let per = scale.size() / scale.shape()[0];
        Ok(Self {
            weights: weights.select(0, at)?,
            scale: &scale.as_slice::<f32>()[at as usize * per..(at as usize + 1) * per],
            zeros: zeros.map(|z| z.select(0, at)).transpose()?,
        })
    }

    /// The sums of `rows` rows of centred numbers, and the factor of each column.
    fn product(&self, rows: usize, x: &[i32], out: &mut [i32]) {
        match self.weights.dtype() {
            DType::I8 => self.typed::<i8>(rows, x, out),
            _ => self.typed::<u8>(rows, x, out),
        }
    }

    fn typed<T: Byte>(&self, rows: usize, x: &[i32], out: &mut [i32]) {
        let (k, n) = (self.weights.shape()[0], self.weights.shape()[1]);
        let zeros = match &self.zeros {
            Some(zeros) if zeros.size() > 1 => Zeros::Each(zeros.as_slice::<T>()),
            other => Zeros::One(number(other.as_ref())),
        };
        Product { rows, k, n, x, w: self.weights.as_slice::<T>(), zeros }.run(out);
    }

    fn factors(&self, scale: f32, out: &mut [f32]) {
        for (j, out) in out.iter_mut().enumerate() {
            *out = scale * if self.scale.len() == 1 { self.scale[0] } else { self.scale[j] };
        }
    }
}

fn run_direction<'a>(
    at: &impl Fn(usize) -> Option<&'a Array>,
    outputs: &[Array],
    sizes: &Sizes,
    (direction, directions): (usize, usize),
    reverse: bool,
) -> Result<()> {
    let &Sizes { steps, batch, input, hidden } = sizes;
    let (gates, state) = (4 * hidden, batch * hidden);
    let (Some(x), Some(w), Some(r)) = (at(0), at(1), at(2)) else { return Ok(()) };
    let (Some(w_scale), Some(r_scale)) = (at(8), at(10)) else { return Ok(()) };
    let of = direction as i64;
    let w = Side::new(w, w_scale, at(9), of)?;
    let r = Side::new(r, r_scale, at(11), of)?;

    let whole = steps * batch * input.max(1);
    let (mut ints, mut floats) = (
        Scratch::new(NAME, 4 * (whole.max(state) + steps * batch * gates + batch * gates))?,
        Scratch::new(NAME, 4 * (3 * gates + 2 * state))?,
    );
    let (small, sums) = ints.as_mut::<i32>().split_at_mut(whole.max(state));
    let (of_x, of_h) = sums.split_at_mut(steps * batch * gates);
    let of_h = &mut of_h[..batch * gates];
    let (factors, states) = floats.as_mut::<f32>().split_at_mut(3 * gates);
    let (w_factors, rest) = factors.split_at_mut(gates);
    let (r_factors, bias) = rest.split_at_mut(gates);
    let (h, c) = states[..2 * state].split_at_mut(state);

    let scale = centred(x.as_slice(), &mut small[..x.size()]);
    w.product(steps * batch, &small[..x.size()], of_x);
    w.factors(scale, w_factors);
    bias.fill(0.0);
    if let Some(b) = at(3) {
        let b = &b.as_slice::<f32>()[direction * 2 * gates..(direction + 1) * 2 * gates];
        for (j, bias) in bias.iter_mut().enumerate() {
            *bias = b[j] + b[gates + j];
        }
    }
    for (to, from) in [(&mut *h, at(5)), (&mut *c, at(6))] {
        match from {
            Some(from) => {
                to.copy_from_slice(&from.as_slice()[direction * state..(direction + 1) * state]);
            }
            None => to.fill(0.0),
        }
    }
    // SAFETY: the outputs are this call's own, and no other slice of them is in use.
    let (y, y_h, y_c) = unsafe {
        (outputs[0].as_mut_slice(), outputs[1].as_mut_slice(), outputs[2].as_mut_slice())
    };
    for step in 0..steps {
        let time = if reverse { steps - 1 - step } else { step };
        let scale = centred(h, &mut small[..state]);
        r.product(batch, &small[..state], of_h);
        r.factors(scale, r_factors);
        for row in 0..batch {
            dispatch(Step {
                hidden,
                of_x: &of_x[(time * batch + row) * gates..][..gates],
                of_h: &of_h[row * gates..][..gates],
                factors: (w_factors, r_factors, at(3).is_some().then_some(&*bias)),
                h: &mut h[row * hidden..][..hidden],
                c: &mut c[row * hidden..][..hidden],
            });
        }
        let from = (time * directions + direction) * state;
        y[from..from + state].copy_from_slice(h);
    }
    y_h[direction * state..(direction + 1) * state].copy_from_slice(h);
    y_c[direction * state..(direction + 1) * state].copy_from_slice(c);
    Ok(())
}

/// One step of one row.
struct Step<'a> {
    hidden: usize,
    of_x: &'a [i32],
    of_h: &'a [i32],
    /// The factor of each column for x and for h, and the bias.
    factors: (&'a [f32], &'a [f32], Option<&'a [f32]>),
    h: &'a mut [f32],
    c: &'a mut [f32],
}

/// Up to 16 elements, the rest 0.
#[inline(always)]
fn part<T: Copy + Default>(from: &[T], n: usize) -> [T; LANES] {
    let mut lanes = [T::default(); LANES];
    lanes[..n].copy_from_slice(&from[..n]);
    lanes
}

impl WithSimd for Step<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { hidden, of_x, of_h, factors: (w, r, bias), h, c } = self;
        for first in (0..hidden).step_by(LANES) {
            let n = LANES.min(hidden - first);
            let gate = |which: usize| {
                let from = which * hidden + first;
                // SAFETY: the arrays hold 16 elements.
                unsafe {
                    let float = |x: &[f32]| s.load(part(&x[from..], n).as_ptr());
                    let int = |x: &[i32]| s.from_int(s.load_i(part(&x[from..], n).as_ptr()));
                    let of_x = s.mul(int(of_x), float(w));
                    let sum = s.add(of_x, s.mul(int(of_h), float(r)));
                    match bias {
                        Some(bias) => s.add(sum, float(bias)),
                        None => sum,
                    }
                }
            };
            let (i, o) = (logistic(s, gate(0)), logistic(s, gate(1)));
            let (f, g) = (logistic(s, gate(2)), tanh(s, gate(3)));
            // SAFETY: as above; `n` elements of both states exist.
            unsafe {
                let old = s.load(part(&c[first..], n).as_ptr());
                let new = s.add(s.mul(old, f), s.mul(i, g));
                s.store_n(c[first..].as_mut_ptr(), n, new);
                s.store_n(h[first..].as_mut_ptr(), n, s.mul(tanh(s, new), o));
            }
        }
    }
}
