//! What MatMul, Gemm and Linear have in common: the choice by dtype, the packed right operand, and
//! steps in the tiles of the output.

use super::half_precision::{is_half, through_f32};
use super::integer::Integer;
use super::matrix::Matrix;
use super::packing::PackedB;
use super::product::is_narrow;
use super::real::Real;
use super::{Bound, for_integer};
use crate::array::{Array, Meta};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{Kernel, Metas};
use crate::kernels::epilogue::{ChannelAxis, Epilogue, Tail};
use crate::simd::{Isa, isa};
use std::sync::Arc;

/// A dtype whose right operands are packed.
pub(super) trait Packed: Real {
    /// The operand when it is of this dtype.
    fn of(bound: &Bound) -> Option<&PackedB<Self>>;
}

impl Packed for f32 {
    fn of(bound: &Bound) -> Option<&PackedB<Self>> {
        if let Bound::F32(packed) = bound { Some(packed) } else { None }
    }
}

impl Packed for f64 {
    fn of(bound: &Bound) -> Option<&PackedB<Self>> {
        if let Bound::F64(packed) = bound { Some(packed) } else { None }
    }
}

/// The arrays of one call; `start` is C or the bias.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub(super) left: &'a Array,
    pub(super) right: &'a Array,
    pub(super) start: Option<&'a Array>,
    pub(super) out: &'a Array,
}

impl<'a> Operands<'a> {
    fn new(inputs: &[Option<&'a Array>], out: &'a Array) -> Option<Self> {
        let start = inputs.get(2).copied().flatten();
        Some(Self { left: inputs[0]?, right: inputs[1]?, start, out })
    }
}

/// An operator that is a matrix product.
pub(super) trait Typed: Sized {
    const NAME: &'static str;

    /// The right operand, packed.
    fn bound(&self) -> Option<&Bound>;

    /// Whether the right operand is read by columns.
    fn transposed(&self) -> bool;

    /// The same with its right operand packed.
    fn with_bound(&self, bound: Arc<Bound>) -> Self;

    /// The output's type.
    ///
    /// # Errors
    /// As [`Kernel::infer`].
    fn types(&self, inputs: &[Option<&Meta>]) -> Result<Metas>;

    /// Whether steps may follow in the tiles of a product with this right operand.
    fn takes_steps(&self, right: &Array) -> bool;

    /// # Errors
    /// `Memory` when there is no room.
    fn real<E: Packed>(
        &self,
        isa: Isa,
        operands: &Operands<'_>,
        epilogue: Option<Tail<'_, E>>,
    ) -> Result<()>;

    /// # Errors
    /// `Memory` when there is no room.
    fn integers<T: Integer + PartialOrd>(&self, operands: &Operands<'_>) -> Result<()>;

    /// The operator on arrays of any dtype.
    fn of_any_dtype(&self, inputs: &[Option<&Array>], out: &Array) -> Result<()> {
        let Some(operands) = Operands::new(inputs, out).filter(|_| out.size() > 0) else {
            return Ok(());
        };
        match out.dtype() {
            DType::F32 => self.real::<f32>(isa(), &operands, None),
            DType::F64 => self.real::<f64>(isa(), &operands, None),
            dtype if is_half(dtype) => {
                through_f32(Self::NAME, inputs, out, |i, o| self.of_any_dtype(i, &o[0]))
            }
            dtype => for_integer!(dtype, T => self.integers::<T>(&operands)),
        }
    }

    /// The operator on f32 with the epilogue's steps in its tiles, where it has such tiles.
    fn with_steps(
        &self,
        inputs: &[Option<&Array>],
        out: &Array,
        epilogue: &Epilogue<'_>,
    ) -> Option<Result<()>> {
        let operands = Operands::new(inputs, out)?;
        let n = out.shape().last().copied().unwrap_or(1);
        if !self.takes_steps(operands.right) || is_narrow(out.size() / n.max(1), n) {
            return None;
        }
        Some(self.real::<f32>(isa(), &operands, Some(epilogue.split().tail())))
    }
}

impl<T: Typed + Send + Sync + 'static> Kernel for T {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        self.types(inputs)
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        self.of_any_dtype(inputs, &outputs[0])
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
        self.with_steps(inputs, out, epilogue)
    }

    fn bind(&self, constants: &[Option<&Array>]) -> Result<Option<Arc<dyn Kernel>>> {
        let bound = bind_right(T::NAME, constants, self.transposed())?;
        Ok(bound.map(|bound| Arc::new(self.with_bound(bound)) as Arc<dyn Kernel>))
    }
}

/// A matrix of an array, transposed where asked.
pub(super) fn matrix_of<E>(x: &Array, transposed: bool) -> Matrix<E>
where
    E: crate::dtype::Element,
{
    let matrix = Matrix::new(x.as_ptr::<E>(), x.strides()[0], x.strides()[1]);
    if transposed { matrix.transposed() } else { matrix }
}

/// Packs a constant matrix (transposed first when asked) as a right operand; `None` for no matrix and
/// for other dtypes.
///
/// # Errors
/// `Memory` when there is no room.
fn bind_right(
    operator: &str,
    constants: &[Option<&Array>],
    transposed: bool,
) -> Result<Option<Arc<Bound>>> {
    fn pack<E: Real>(operator: &str, b: &Array, transposed: bool) -> Result<PackedB<E>> {
        let (k, n) = (b.shape()[usize::from(transposed)], b.shape()[usize::from(!transposed)]);
        // SAFETY: the array's own extents.
        unsafe { PackedB::new(operator, isa(), matrix_of(b, transposed), k, n) }
    }
    let Some(b) = constants.get(1).copied().flatten().filter(|b| b.rank() == 2) else {
        return Ok(None);
    };
    Ok(match b.dtype() {
        DType::F32 => Some(Arc::new(Bound::F32(pack(operator, b, transposed)?))),
        DType::F64 => Some(Arc::new(Bound::F64(pack(operator, b, transposed)?))),
        _ => None,
    })
}
