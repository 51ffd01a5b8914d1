//! Gemm and Linear: products that start from C or from the bias.

use super::integer::{Integer, multiply};
use super::matmul::bind_right;
use super::matrix::Matrix;
use super::microkernel::Start;
use super::packing::PackedB;
use super::product::{Product, Right, is_narrow};
use super::real::{Real, relu as relu_one};
use super::{Bound, for_integer, half_precision, numeric, relu_attribute};
use crate::array::{Array, Dims, Meta, StridedLoop, broadcast, broadcast_strides};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::epilogue::{ChannelAxis, Epilogue, Tail};
use crate::simd::{Isa, isa};
use smallvec::smallvec;
use std::sync::Arc;

/// Prepares Gemm.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build_gemm(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(Gemm {
        alpha: attributes.float("alpha", 1.0)?,
        beta: attributes.float("beta", 1.0)?,
        trans_a: attributes.int("transA", 0)? != 0,
        trans_b: attributes.int("transB", 0)? != 0,
        relu: relu_attribute(attributes)?,
        bound: None,
    }))
}

/// Prepares Linear.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build_linear(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(Linear { relu: relu_attribute(attributes)?, bound: None }))
}

/// `y = alpha op(A) op(B) + beta C`.
///
/// With alpha = 1 the chain starts from `beta * C` (from C itself when beta is 1). Otherwise it starts
/// from +0.0 and `alpha * acc`, `beta * C` and their sum are each rounded.
#[derive(Clone)]
struct Gemm {
    alpha: f64,
    beta: f64,
    trans_a: bool,
    trans_b: bool,
    relu: bool,
    bound: Option<Arc<Bound>>,
}

/// `y[…, j] = b[j] + Σ x[…, k] w[j, k]`: a chain from the bias (or +0.0) over k ascending.
struct Linear {
    relu: bool,
    bound: Option<Arc<Bound>>,
}

fn matrix_of<E: Real>(x: &Array, transposed: bool) -> Matrix<E> {
    let matrix = Matrix::new(x.as_ptr::<E>(), x.strides()[0], x.strides()[1]);
    if transposed { matrix.transposed() } else { matrix }
}

impl Gemm {
    fn extents(&self, a: &[usize], b: &[usize]) -> (usize, usize, usize, usize) {
        let (m, k) = if self.trans_a { (a[1], a[0]) } else { (a[0], a[1]) };
        let (inner, n) = if self.trans_b { (b[1], b[0]) } else { (b[0], b[1]) };
        (m, n, k, inner)
    }

    fn real<E: Real>(
        &self,
        isa: Isa,
        a: &Array,
        b: &Array,
        c: Option<&Array>,
        out: &Array,
        packed: Option<&PackedB<E>>,
        epilogue: Option<Tail<'_, E>>,
    ) -> Result<()> {
        let (m, n, k, _) = self.extents(a.shape(), b.shape());
        let (alpha, beta) = (E::from_f64(self.alpha), E::from_f64(self.beta));
        let one = E::from_f64(1.0);
        let y = out.as_mut_ptr::<E>();
        let c = c.filter(|_| self.beta != 0.0);
        let mut start = Start::Zero;
        if let (Some(c), true) = (c, alpha == one) {
            let strides = broadcast_strides(c, out.shape());
            let ptr = c.as_ptr::<E>();
            start = match (strides[0], strides[1]) {
                (stride, 0) if beta == one => Start::Rows { ptr, stride },
                (stride, 1) if beta == one => Start::Load { ptr, stride },
                _ => {
                    for_each_of(c, out, |from: E, to| *to = E::scaled(beta, from));
                    Start::Load { ptr: y, stride: n as isize }
                }
            };
        }
        let product = Product {
            m,
            n,
            k,
            a: matrix_of(a, self.trans_a),
            b: match packed {
                Some(packed) => Right::Packed(packed),
                None => Right::Matrix(matrix_of(b, self.trans_b)),
            },
            start,
            c: y,
            c_rows: n as isize,
            c_columns: 1,
            relu: self.relu && alpha == one,
            epilogue,
        };
        // SAFETY: the arrays' own extents and strides; only the loaded start may be the output.
        unsafe { product.run("Gemm", isa)? };
        if alpha != one {
            // SAFETY: the output of the running kernel.
            let values = unsafe { out.as_mut_slice::<E>() };
            for value in values.iter_mut() {
                *value = E::scaled(alpha, *value);
            }
            if let Some(c) = c {
                for_each_of(c, out, |from: E, to| {
                    let term = if beta == one { from } else { E::scaled(beta, from) };
                    *to = E::plus(*to, term);
                });
            }
            if self.relu {
                // SAFETY: as above, and the earlier slice is no longer used.
                let values = unsafe { out.as_mut_slice::<E>() };
                values.iter_mut().for_each(|value| *value = relu_one(*value));
            }
        }
        Ok(())
    }

    fn integers<T: Integer + PartialOrd>(
        &self,
        a: &Array,
        b: &Array,
        c: Option<&Array>,
        out: &Array,
    ) {
        let (m, n, k, _) = self.extents(a.shape(), b.shape());
        let matrix = |x: &Array, transposed: bool| {
            let matrix = Matrix::new(x.as_ptr::<T>(), x.strides()[0], x.strides()[1]);
            if transposed { matrix.transposed() } else { matrix }
        };
        // SAFETY: the output of the running kernel, disjoint from the inputs.
        unsafe {
            out.as_mut_slice::<T>().fill(T::default());
            let y = out.as_mut_ptr::<T>();
            multiply(m, n, k, matrix(a, self.trans_a), matrix(b, self.trans_b), y);
        }
        let (alpha, beta) = (T::from_i64(self.alpha as i64), T::from_i64(self.beta as i64));
        // SAFETY: as above.
        let values = unsafe { out.as_mut_slice::<T>() };
        values.iter_mut().for_each(|y| *y = y.wrapping_times(alpha));
        if let Some(c) = c {
            for_each_of(c, out, |from: T, to| *to = to.wrapping_plus(from.wrapping_times(beta)));
        }
        if self.relu {
            // SAFETY: as above, and the earlier slice is no longer used.
            let values = unsafe { out.as_mut_slice::<T>() };
            values.iter_mut().filter(|y| **y < T::default()).for_each(|y| *y = T::default());
        }
    }
}

/// Calls `f` with each element of `x`, broadcast, and the output element it belongs to.
fn for_each_of<T: crate::dtype::Element>(x: &Array, out: &Array, mut f: impl FnMut(T, &mut T)) {
    let from = broadcast_strides(x, out.shape());
    let walk = StridedLoop::new(out.shape(), [&from, out.strides()]);
    let (p, q) = (x.as_ptr::<T>(), out.as_mut_ptr::<T>());
    let [sp, sq] = walk.inner_strides;
    walk.for_each(0, walk.runs(), |[i, j]| {
        for t in 0..walk.inner as isize {
            // SAFETY: the walk stays inside both arrays.
            unsafe { f(*p.offset(i + t * sp), &mut *q.offset(j + t * sq)) };
        }
    });
}

impl Kernel for Gemm {
    fn name(&self) -> &'static str {
        "Gemm"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("Gemm", inputs, 2, 3)?;
        let dtype = inputs.same_dtype(&[0, 1, 2][..if inputs.opt(2).is_some() { 3 } else { 2 }])?;
        numeric("Gemm", dtype)?;
        let whole = self.alpha.fract() == 0.0 && self.beta.fract() == 0.0;
        if dtype.is_int() && !whole {
            return Err(Error::attribute(
                "Gemm",
                "whole alpha and beta for integers",
                format!("{} and {}", self.alpha, self.beta),
            ));
        }
        let (a, b) = (&inputs.get(0).shape, &inputs.get(1).shape);
        if a.len() != 2 || b.len() != 2 {
            let got = format!("{a:?} and {b:?}");
            return Err(Error::shape("Gemm", "A and B of 2 axes", got));
        }
        let (m, n, k, inner) = self.extents(a, b);
        if k != inner {
            return Err(Error::shape(
                "Gemm",
                "the inner extents of A and B to agree",
                format!("{a:?} and {b:?} with transA {} and transB {}", self.trans_a, self.trans_b),
            ));
        }
        let shape: Dims = smallvec![m, n];
        if let Some(c) = inputs.opt(2)
            && broadcast("Gemm", &c.shape, &shape)? != shape
        {
            let expected = format!("C to broadcast to {:?}", &shape[..]);
            return Err(Error::shape("Gemm", expected, format!("{:?}", &c.shape[..])));
        }
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(a), Some(b)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let c = inputs.get(2).copied().flatten();
        let out = &outputs[0];
        if out.size() == 0 {
            return Ok(());
        }
        match (out.dtype(), self.bound.as_deref()) {
            (DType::F32, Some(Bound::F32(packed))) => {
                self.real(isa(), a, b, c, out, Some(packed), None)
            }
            (DType::F64, Some(Bound::F64(packed))) => {
                self.real(isa(), a, b, c, out, Some(packed), None)
            }
            (DType::F32, _) => self.real::<f32>(isa(), a, b, c, out, None, None),
            (DType::F64, _) => self.real::<f64>(isa(), a, b, c, out, None, None),
            (dtype, _) if half_precision::is_half(dtype) => {
                half_precision::through_f32("Gemm", inputs, out, |i, o| self.run(i, o))
            }
            (dtype, _) => {
                for_integer!(dtype, T => self.integers::<T>(a, b, c, out));
                Ok(())
            }
        }
    }

    fn channel_axis(&self) -> Option<ChannelAxis> {
        Some(ChannelAxis::Last)
    }

    fn run_with(
        &self,
        inputs: &[Option<&Array>],
        out: &Array,
        epilogue: &Epilogue<'_>,
    ) -> Option<Result<()>> {
        let (a, b) = (inputs[0]?, inputs[1]?);
        let n = out.shape()[out.rank() - 1];
        if self.relu || self.alpha != 1.0 || is_narrow(out.size() / n.max(1), n) {
            return None;
        }
        let packed = self.bound.as_deref().and_then(Bound::single);
        let last = inputs.get(2).copied().flatten();
        Some(self.real::<f32>(isa(), a, b, last, out, packed, Some(epilogue.split().tail())))
    }

    fn bind(&self, constants: &[Option<&Array>]) -> Result<Option<Arc<dyn Kernel>>> {
        let Some(Some(b)) = constants.get(1) else { return Ok(None) };
        if b.rank() != 2 {
            return Ok(None);
        }
        let bound = bind_right("Gemm", b, self.trans_b)?;
        Ok(bound.map(|b| Arc::new(Self { bound: Some(b), ..self.clone() }) as Arc<dyn Kernel>))
    }
}

impl Linear {
    fn real<E: Real>(
        &self,
        isa: Isa,
        x: &Array,
        w: &Array,
        bias: Option<&Array>,
        out: &Array,
        packed: Option<&PackedB<E>>,
        epilogue: Option<Tail<'_, E>>,
    ) -> Result<()> {
        let (n, k) = (w.shape()[0], w.shape()[1]);
        let contiguous;
        let x = if x.rank() > 2 && !x.is_contiguous() {
            contiguous = x.copy()?;
            &contiguous
        } else {
            x
        };
        let rank = x.rank();
        let m = x.shape()[..rank - 1].iter().product();
        let rows = if rank == 2 { x.strides()[0] } else { k as isize };
        let bias_copy;
        let start = match bias {
            None => Start::Zero,
            Some(b) if b.strides()[0] == 1 => Start::Load { ptr: b.as_ptr::<E>(), stride: 0 },
            Some(b) => {
                bias_copy = b.copy()?;
                Start::Load { ptr: bias_copy.as_ptr::<E>(), stride: 0 }
            }
        };
        let product = Product {
            m,
            n,
            k,
            a: Matrix::new(x.as_ptr::<E>(), rows, x.strides()[rank - 1]),
            b: match packed {
                Some(packed) => Right::Packed(packed),
                None => Right::Matrix(matrix_of(w, true)),
            },
            start,
            c: out.as_mut_ptr::<E>(),
            c_rows: n as isize,
            c_columns: 1,
            relu: self.relu,
            epilogue,
        };
        // SAFETY: the arrays' own extents and strides; the output is disjoint from them.
        unsafe { product.run("Linear", isa) }
    }

    fn integers<T: Integer + PartialOrd>(
        &self,
        x: &Array,
        w: &Array,
        bias: Option<&Array>,
        out: &Array,
    ) -> Result<()> {
        let x = x.to_contiguous()?;
        let (n, k) = (w.shape()[0], w.shape()[1]);
        let m = x.shape()[..x.rank() - 1].iter().product();
        let w = Matrix::new(w.as_ptr::<T>(), w.strides()[1], w.strides()[0]);
        // SAFETY: the output of the running kernel, disjoint from the inputs.
        unsafe {
            out.as_mut_slice::<T>().fill(T::default());
            let x = Matrix::new(x.as_ptr::<T>(), k as isize, 1);
            multiply(m, n, k, x, w, out.as_mut_ptr::<T>());
        }
        if let Some(b) = bias {
            for_each_of(b, out, |from: T, to| *to = to.wrapping_plus(from));
        }
        if self.relu {
            // SAFETY: as above.
            let values = unsafe { out.as_mut_slice::<T>() };
            values.iter_mut().filter(|y| **y < T::default()).for_each(|y| *y = T::default());
        }
        Ok(())
    }
}

impl Kernel for Linear {
    fn name(&self) -> &'static str {
        "Linear"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("Linear", inputs, 2, 3)?;
        let dtype = inputs.same_dtype(&[0, 1, 2][..if inputs.opt(2).is_some() { 3 } else { 2 }])?;
        numeric("Linear", dtype)?;
        let (x, w) = (&inputs.get(0).shape, &inputs.get(1).shape);
        if x.is_empty() || w.len() != 2 || x[x.len() - 1] != w[1] {
            return Err(Error::shape(
                "Linear",
                "x (…, K) and w (N, K)",
                format!("{:?} and {:?}", &x[..], &w[..]),
            ));
        }
        if let Some(b) = inputs.opt(2)
            && b.shape[..] != [w[0]]
        {
            let expected = format!("a bias of shape [{}]", w[0]);
            return Err(Error::shape("Linear", expected, format!("{:?}", &b.shape[..])));
        }
        let mut shape = x.clone();
        let last = shape.len() - 1;
        shape[last] = w[0];
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(x), Some(w)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let b = inputs.get(2).copied().flatten();
        let out = &outputs[0];
        if out.size() == 0 {
            return Ok(());
        }
        match (out.dtype(), self.bound.as_deref()) {
            (DType::F32, Some(Bound::F32(packed))) => {
                self.real(isa(), x, w, b, out, Some(packed), None)
            }
            (DType::F64, Some(Bound::F64(packed))) => {
                self.real(isa(), x, w, b, out, Some(packed), None)
            }
            (DType::F32, _) => self.real::<f32>(isa(), x, w, b, out, None, None),
            (DType::F64, _) => self.real::<f64>(isa(), x, w, b, out, None, None),
            (dtype, _) if half_precision::is_half(dtype) => {
                half_precision::through_f32("Linear", inputs, out, |i, o| self.run(i, o))
            }
            (dtype, _) => for_integer!(dtype, T => self.integers::<T>(x, w, b, out)),
        }
    }

    fn channel_axis(&self) -> Option<ChannelAxis> {
        Some(ChannelAxis::Last)
    }

    fn run_with(
        &self,
        inputs: &[Option<&Array>],
        out: &Array,
        epilogue: &Epilogue<'_>,
    ) -> Option<Result<()>> {
        let (a, b) = (inputs[0]?, inputs[1]?);
        let n = out.shape()[out.rank() - 1];
        if self.relu || is_narrow(out.size() / n.max(1), n) {
            return None;
        }
        let packed = self.bound.as_deref().and_then(Bound::single);
        let last = inputs.get(2).copied().flatten();
        Some(self.real::<f32>(isa(), a, b, last, out, packed, Some(epilogue.split().tail())))
    }

    fn bind(&self, constants: &[Option<&Array>]) -> Result<Option<Arc<dyn Kernel>>> {
        let Some(Some(w)) = constants.get(1) else { return Ok(None) };
        if w.rank() != 2 {
            return Ok(None);
        }
        let bound = bind_right("Linear", w, true)?;
        Ok(bound.map(|b| Arc::new(Self { relu: self.relu, bound: Some(b) }) as Arc<dyn Kernel>))
    }
}
