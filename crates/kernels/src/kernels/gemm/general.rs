//! Gemm: a product that starts from C.

use super::integer::{Integer, multiply, relu_all};
use super::microkernel::Start;
use super::product::{Product, Right};
use super::real::relu as relu_one;
use super::typed::{Operands, Packed, Typed, matrix_of};
use super::{Bound, numeric, relu_attribute};
use crate::array::{Array, Dims, Meta, StridedLoop, broadcast, broadcast_strides};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::epilogue::Tail;
use crate::simd::Isa;
use smallvec::smallvec;
use std::sync::Arc;

/// Prepares Gemm.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(Gemm {
        alpha: attributes.float("alpha", 1.0)?,
        beta: attributes.float("beta", 1.0)?,
        trans_a: attributes.int("transA", 0)? != 0,
        trans_b: attributes.int("transB", 0)? != 0,
        relu: relu_attribute(attributes)?,
        bound: None,
    }))
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

impl Gemm {
    fn extents(&self, a: &[usize], b: &[usize]) -> (usize, usize, usize, usize) {
        let (m, k) = if self.trans_a { (a[1], a[0]) } else { (a[0], a[1]) };
        let (inner, n) = if self.trans_b { (b[1], b[0]) } else { (b[0], b[1]) };
        (m, n, k, inner)
    }
}

impl Typed for Gemm {
    const NAME: &'static str = "Gemm";

    fn bound(&self) -> Option<&Bound> {
        self.bound.as_deref()
    }

    fn transposed(&self) -> bool {
        self.trans_b
    }

    fn with_bound(&self, bound: Arc<Bound>) -> Self {
        Self { bound: Some(bound), ..self.clone() }
    }

    fn types(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(Self::NAME, inputs, 2, 3)?;
        let dtype = inputs.same_dtype(&[0, 1, 2][..if inputs.opt(2).is_some() { 3 } else { 2 }])?;
        numeric(Self::NAME, dtype)?;
        let whole = self.alpha.fract() == 0.0 && self.beta.fract() == 0.0;
        if dtype.is_int() && !whole {
            return Err(Error::attribute(
                Self::NAME,
                "whole alpha and beta for integers",
                format!("{} and {}", self.alpha, self.beta),
            ));
        }
        let (a, b) = (&inputs.get(0).shape, &inputs.get(1).shape);
        if a.len() != 2 || b.len() != 2 {
            let got = format!("{a:?} and {b:?}");
            return Err(Error::shape(Self::NAME, "A and B of 2 axes", got));
        }
        let (m, n, k, inner) = self.extents(a, b);
        if k != inner {
            return Err(Error::shape(
                Self::NAME,
                "the inner extents of A and B to agree",
                format!("{a:?} and {b:?} with transA {} and transB {}", self.trans_a, self.trans_b),
            ));
        }
        let shape: Dims = smallvec![m, n];
        if let Some(c) = inputs.opt(2)
            && broadcast(Self::NAME, &c.shape, &shape)? != shape
        {
            let expected = format!("C to broadcast to {:?}", &shape[..]);
            return Err(Error::shape(Self::NAME, expected, format!("{:?}", &c.shape[..])));
        }
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn takes_steps(&self, _: &Array) -> bool {
        !self.relu && self.alpha == 1.0
    }

    fn real<E: Packed>(
        &self,
        isa: Isa,
        operands: &Operands<'_>,
        epilogue: Option<Tail<'_, E>>,
    ) -> Result<()> {
        let Operands { left: a, right: b, start: c, out } = *operands;
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
                    for_each_of(c, out, |from: E, to| *to = E::mul(beta, from));
                    Start::Load { ptr: y, stride: n as isize }
                }
            };
        }
        let product = Product {
            m,
            n,
            k,
            a: matrix_of(a, self.trans_a),
            b: match self.bound().and_then(E::of) {
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
        unsafe { product.run(Self::NAME, isa)? };
        if alpha != one {
            // SAFETY: the output of the running kernel.
            let values = unsafe { out.as_mut_slice::<E>() };
            for value in values.iter_mut() {
                *value = E::mul(alpha, *value);
            }
            if let Some(c) = c {
                for_each_of(c, out, |from: E, to| {
                    let term = if beta == one { from } else { E::mul(beta, from) };
                    *to = E::add(*to, term);
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

    fn integers<T: Integer + PartialOrd>(&self, operands: &Operands<'_>) -> Result<()> {
        let Operands { left: a, right: b, start: c, out } = *operands;
        let (m, n, k, _) = self.extents(a.shape(), b.shape());
        // SAFETY: the output of the running kernel, disjoint from the inputs.
        unsafe {
            out.as_mut_slice::<T>().fill(T::default());
            let y = out.as_mut_ptr::<T>();
            multiply(m, n, k, matrix_of(a, self.trans_a), matrix_of(b, self.trans_b), y);
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
            relu_all(unsafe { out.as_mut_slice::<T>() });
        }
        Ok(())
    }
}

/// Calls `f` with each element of `x`, broadcast, and the output element it belongs to.
pub(super) fn for_each_of<T: crate::dtype::Element>(
    x: &Array,
    out: &Array,
    mut f: impl FnMut(T, &mut T),
) {
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
