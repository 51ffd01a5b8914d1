//! Linear: a product with rows of weights that starts from the bias.

use super::general::for_each_of;
use super::integer::{Integer, multiply, relu_all};
use super::matrix::Matrix;
use super::microkernel::Start;
use super::product::{Product, Right};
use super::typed::{Operands, Packed, Typed, matrix_of};
use super::{Bound, numeric, relu_attribute};
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::epilogue::Tail;
use crate::simd::Isa;
use smallvec::smallvec;
use std::sync::Arc;

/// Prepares Linear.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(Linear { relu: relu_attribute(attributes)?, bound: None }))
}

/// `y[…, j] = b[j] + Σ x[…, k] w[j, k]`: a chain from the bias (or +0.0) over k ascending.
#[derive(Clone)]
struct Linear {
    relu: bool,
    bound: Option<Arc<Bound>>,
}

impl Typed for Linear {
    const NAME: &'static str = "Linear";

    fn bound(&self) -> Option<&Bound> {
        self.bound.as_deref()
    }

    fn transposed(&self) -> bool {
        true
    }

    fn with_bound(&self, bound: Arc<Bound>) -> Self {
        Self { bound: Some(bound), ..self.clone() }
    }

    fn types(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(Self::NAME, inputs, 2, 3)?;
        let dtype = inputs.same_dtype(&[0, 1, 2][..if inputs.opt(2).is_some() { 3 } else { 2 }])?;
        numeric(Self::NAME, dtype)?;
        let (x, w) = (&inputs.get(0).shape, &inputs.get(1).shape);
        if x.is_empty() || w.len() != 2 || x[x.len() - 1] != w[1] {
            return Err(Error::shape(
                Self::NAME,
                "x (…, K) and w (N, K)",
                format!("{:?} and {:?}", &x[..], &w[..]),
            ));
        }
        if let Some(b) = inputs.opt(2)
            && b.shape[..] != [w[0]]
        {
            let expected = format!("a bias of shape [{}]", w[0]);
            return Err(Error::shape(Self::NAME, expected, format!("{:?}", &b.shape[..])));
        }
        let mut shape = x.clone();
        let last = shape.len() - 1;
        shape[last] = w[0];
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn takes_steps(&self, _: &Array) -> bool {
        !self.relu
    }

    fn real<E: Packed>(
        &self,
        isa: Isa,
        operands: &Operands<'_>,
        epilogue: Option<Tail<'_, E>>,
    ) -> Result<()> {
        let Operands { left: x, right: w, start: bias, out } = *operands;
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
            b: match self.bound().and_then(E::of) {
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
        unsafe { product.run(Self::NAME, isa) }
    }

    fn integers<T: Integer + PartialOrd>(&self, operands: &Operands<'_>) -> Result<()> {
        let Operands { left: x, right: w, start: bias, out } = *operands;
        let x = x.to_contiguous()?;
        let (n, k) = (w.shape()[0], w.shape()[1]);
        let m = x.shape()[..x.rank() - 1].iter().product();
        // SAFETY: the output of the running kernel, disjoint from the inputs.
        unsafe {
            out.as_mut_slice::<T>().fill(T::default());
            let x = Matrix::new(x.as_ptr::<T>(), k as isize, 1);
            multiply(m, n, k, x, matrix_of(w, true), out.as_mut_ptr::<T>());
        }
        if let Some(b) = bias {
            for_each_of(b, out, |from: T, to| *to = to.wrapping_plus(from));
        }
        if self.relu {
            // SAFETY: as above.
            relu_all(unsafe { out.as_mut_slice::<T>() });
        }
        Ok(())
    }
}
