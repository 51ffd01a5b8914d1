//! A total order of elements as unsigned keys, and reading elements as keys.

use crate::array::{Array, StridedLoop};
use crate::dtype::{Bool, DType};
use half::{bf16, f16};

/// Keys order as the numbers do: zeros of both signs are equal, NaN is above everything and equal to
/// itself.
pub(super) trait Key: Copy {
    fn key(self) -> u64;
}

macro_rules! unsigned {
    ($($t:ty),*) => {$(impl Key for $t {
        #[inline(always)]
        fn key(self) -> u64 { u64::from(self) }
    })*};
}
unsigned!(u8, u16, u32, u64);

macro_rules! signed {
    ($($t:ty),*) => {$(impl Key for $t {
        #[inline(always)]
        fn key(self) -> u64 { i64::from(self).cast_unsigned() ^ (1 << 63) }
    })*};
}
signed!(i8, i16, i32, i64);

impl Key for Bool {
    #[inline(always)]
    fn key(self) -> u64 {
        u64::from(self.get())
    }
}

impl Key for f64 {
    #[inline(always)]
    fn key(self) -> u64 {
        if self.is_nan() {
            return u64::MAX;
        }
        // Adding +0 makes -0 positive.
        let bits = (self + 0.0).to_bits();
        if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
    }
}

impl Key for f32 {
    #[inline(always)]
    fn key(self) -> u64 {
        f64::from(self).key()
    }
}

impl Key for f16 {
    #[inline(always)]
    fn key(self) -> u64 {
        self.to_f64().key()
    }
}

impl Key for bf16 {
    #[inline(always)]
    fn key(self) -> u64 {
        self.to_f64().key()
    }
}

/// The keys of all elements in row-major order.
pub(super) fn keys(array: &Array) -> Vec<u64> {
    let mut out = Vec::with_capacity(array.size());
    if array.size() == 0 {
        return out;
    }
    let walk = StridedLoop::new(array.shape(), [array.strides()]);
    let step = walk.inner_strides[0];
    crate::for_dtype!(array.dtype(), T => {
        let from = array.as_ptr::<T>();
        walk.for_each(0, walk.runs(), |[at]| {
            for i in 0..walk.inner as isize {
                // SAFETY: elements of the array.
                out.push(unsafe { *from.offset(at + i * step) }.key());
            }
        });
    });
    out
}

/// The key of zero, which tells elements that count as false.
pub(super) fn zero_key(dtype: DType) -> u64 {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => 0f64.key(),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => 0i64.key(),
        _ => 0,
    }
}
