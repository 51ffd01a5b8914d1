//! MatMul: numpy's `a @ b`.

use super::integer::{Integer, multiply, relu_all};
use super::matrix::{Matrix, Shared};
use super::microkernel::Start;
use super::packing::PackedB;
use super::product::{Product, Right, parts_of, try_for_each};
use super::real::Real;
use super::typed::{Operands, Packed, Typed};
use super::{Bound, numeric, relu_attribute};
use crate::array::{Array, Dims, Meta, Strides, broadcast};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernel::{Inputs, Kernel, Metas};
use crate::kernels::epilogue::Tail;
use crate::simd::Isa;
use smallvec::smallvec;
use std::sync::Arc;

const NAME: &str = "MatMul";

/// Prepares MatMul.
///
/// # Errors
/// As the attribute getters.
pub(super) fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
    Ok(Arc::new(MatMul { relu: relu_attribute(attributes)?, bound: None }))
}

/// `y[…, i, j] = Σ a[…, i, k] b[…, k, j]`: a chain from +0.0 over k ascending. Leading axes broadcast;
/// a vector counts as a row on the left and as a column on the right, and its axis is dropped.
#[derive(Clone)]
struct MatMul {
    relu: bool,
    bound: Option<Arc<Bound>>,
}

/// One operand as a stack of matrices.
struct Stack {
    rows: usize,
    columns: usize,
    row_stride: isize,
    column_stride: isize,
    /// Strides of the broadcast leading axes.
    batch: Strides,
}

impl Stack {
    fn new(x: &Array, left: bool, batch: &[usize]) -> Self {
        let (shape, strides) = (x.shape(), x.strides());
        let rank = shape.len();
        if rank == 1 {
            let batch = smallvec![0; batch.len()];
            let (n, s) = (shape[0], strides[0]);
            return if left {
                Self { rows: 1, columns: n, row_stride: 0, column_stride: s, batch }
            } else {
                Self { rows: n, columns: 1, row_stride: s, column_stride: 1, batch }
            };
        }
        let mut steps: Strides = smallvec![0; batch.len()];
        let lead = batch.len() - (rank - 2);
        for axis in 0..rank - 2 {
            steps[lead + axis] = if shape[axis] == 1 { 0 } else { strides[axis] };
        }
        Self {
            rows: shape[rank - 2],
            columns: shape[rank - 1],
            row_stride: strides[rank - 2],
            column_stride: strides[rank - 1],
            batch: steps,
        }
    }

    fn at<E>(&self, ptr: *const E, batch: &[usize], index: usize) -> Matrix<E> {
        let mut rest = index;
        let mut offset = 0;
        for axis in (0..batch.len()).rev() {
            offset += (rest % batch[axis]) as isize * self.batch[axis];
            rest /= batch[axis];
        }
        Matrix::new(ptr.wrapping_offset(offset), self.row_stride, self.column_stride)
    }
}

fn leading(shape: &[usize]) -> &[usize] {
    &shape[..shape.len().saturating_sub(2)]
}

impl Typed for MatMul {
    const NAME: &'static str = NAME;

    fn bound(&self) -> Option<&Bound> {
        self.bound.as_deref()
    }

    fn transposed(&self) -> bool {
        false
    }

    fn with_bound(&self, bound: Arc<Bound>) -> Self {
        Self { bound: Some(bound), ..self.clone() }
    }

    fn types(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(NAME, inputs, 2, 2)?;
        let dtype = inputs.same_dtype(&[0, 1])?;
        numeric(NAME, dtype)?;
        let (a, b) = (&inputs.get(0).shape, &inputs.get(1).shape);
        if a.is_empty() || b.is_empty() {
            return Err(Error::shape(
                NAME,
                "inputs of at least 1 axis",
                format!("{a:?} and {b:?}"),
            ));
        }
        let inner = if b.len() == 1 { b[0] } else { b[b.len() - 2] };
        if a[a.len() - 1] != inner {
            return Err(Error::shape(
                NAME,
                "the last extent of a to be the last but one of b",
                format!("{a:?} and {b:?}"),
            ));
        }
        let mut shape: Dims = broadcast(NAME, leading(a), leading(b))?;
        if a.len() > 1 {
            shape.push(a[a.len() - 2]);
        }
        if b.len() > 1 {
            shape.push(b[b.len() - 1]);
        }
        Ok(smallvec![Meta { dtype, shape }])
    }

    /// The last axis of a product with a vector holds its rows.
    fn takes_steps(&self, right: &Array) -> bool {
        !self.relu && right.rank() != 1
    }

    fn real<E: Packed>(
        &self,
        isa: Isa,
        operands: &Operands<'_>,
        epilogue: Option<Tail<'_, E>>,
    ) -> Result<()> {
        let Operands { left, right, out, .. } = *operands;
        let packed = self.bound().and_then(E::of);
        multiply_real(isa, left, right, out, packed, self.relu, epilogue)
    }

    fn integers<T: Integer + PartialOrd>(&self, operands: &Operands<'_>) -> Result<()> {
        let Operands { left, right, out, .. } = *operands;
        multiply_integers::<T>(left, right, out, self.relu);
        Ok(())
    }
}

/// The product of two arrays of floats into a contiguous one.
pub(super) fn multiply_real<E: Real>(
    isa: Isa,
    a: &Array,
    b: &Array,
    out: &Array,
    packed: Option<&PackedB<E>>,
    relu: bool,
    epilogue: Option<Tail<'_, E>>,
) -> Result<()> {
    if out.size() == 0 {
        return Ok(());
    }
    let batch = broadcast(NAME, leading(a.shape()), leading(b.shape()))?;
    let (left, right) = (Stack::new(a, true, &batch), Stack::new(b, false, &batch));
    let (mut m, n, k) = (left.rows, right.columns, left.columns);
    let mut count: usize = batch.iter().product();
    // A contiguous a against one matrix is a single taller product.
    if count > 1
        && right.batch.iter().all(|&s| s == 0)
        && a.is_contiguous()
        && a.size() == count * m * k
    {
        m *= count;
        count = 1;
    }
    let operands = Shared::new((a.as_ptr::<E>(), b.as_ptr::<E>(), out.as_mut_ptr::<E>()));
    let one = |index: usize| {
        let (pa, pb, pc) = operands.get();
        let product = Product {
            m,
            n,
            k,
            a: left.at(pa, &batch, index),
            b: match packed {
                Some(packed) => Right::Packed(packed),
                None => Right::Matrix(right.at(pb, &batch, index)),
            },
            start: Start::Zero,
            c: pc.wrapping_add(index * m * n),
            c_rows: n as isize,
            c_columns: 1,
            relu,
            epilogue,
        };
        // SAFETY: the arrays' own extents and strides; the output is disjoint from the inputs.
        unsafe { product.run(NAME, isa) }
    };
    let each = 2 * m * n * k;
    if count == 1 || parts_of(each) > 1 {
        return (0..count).try_for_each(one);
    }
    let parts = parts_of(each * count).min(count);
    try_for_each(parts, |part| (count * part / parts..count * (part + 1) / parts).try_for_each(one))
}

fn multiply_integers<T: Integer + PartialOrd>(a: &Array, b: &Array, out: &Array, relu: bool) {
    // SAFETY: an output of the running kernel.
    let c = unsafe { out.as_mut_slice::<T>() };
    c.fill(T::default());
    let lead = &leading(a.shape());
    let Ok(batch) = broadcast(NAME, lead, leading(b.shape())) else { return };
    let (left, right) = (Stack::new(a, true, &batch), Stack::new(b, false, &batch));
    let (m, n, k) = (left.rows, right.columns, left.columns);
    if out.size() == 0 {
        return;
    }
    for index in 0..batch.iter().product() {
        // SAFETY: the arrays' own extents and strides; the output is disjoint from the inputs.
        unsafe {
            multiply(
                m,
                n,
                k,
                left.at(a.as_ptr::<T>(), &batch, index),
                right.at(b.as_ptr::<T>(), &batch, index),
                c.as_mut_ptr().add(index * m * n),
            );
        }
    }
    if relu {
        relu_all(c);
    }
}
