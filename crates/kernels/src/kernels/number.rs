//! The arithmetic of one element, for every dtype that bodies compute with.

use crate::dtype::Element;

/// Integers wrap; floats round once.
pub(crate) trait Number: Element + PartialOrd {
    const ZERO: Self;
    const ONE: Self;
    /// No element is below / above it.
    const LOWEST: Self;
    const HIGHEST: Self;
    const FLOAT: bool;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Integers truncate towards zero, and 0 is the quotient by 0 (kernels refuse it before).
    fn div(self, other: Self) -> Self;
    /// The quotient rounded down.
    fn floor_div(self, other: Self) -> Self;
    /// The remainder with the sign of `self`, as C's fmod.
    fn rem(self, other: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    /// -1, 0 or 1; zeros and NaN stay.
    fn sign(self) -> Self;
    fn is_nan(self) -> bool;
    /// Saturating, NaN to 0 for integers; correctly rounded for floats.
    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    /// Exact for integers.
    fn to_i128(self) -> i128;

    /// Integers in the order of the numbers, -0.0 below +0.0.
    type Key: Copy + Ord + Send + Sync;
    /// Every NaN is above all numbers.
    fn upper_key(self) -> Self::Key;
    fn from_upper_key(key: Self::Key) -> Self;
    /// Every NaN is below all numbers.
    fn lower_key(self) -> Self::Key;
    fn from_lower_key(key: Self::Key) -> Self;

    /// NaN if either is NaN; of equal ones, `self`.
    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        if self < other || other.is_nan() { other } else { self }
    }

    /// NaN if either is NaN; of equal ones, `self`.
    #[inline(always)]
    fn minimum(self, other: Self) -> Self {
        if other < self || other.is_nan() { other } else { self }
    }
}

macro_rules! float {
    ($($t:ty: $key:ty),*) => {$(
        impl Number for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$t>::NEG_INFINITY;
            const HIGHEST: Self = <$t>::INFINITY;
            const FLOAT: bool = true;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            #[inline(always)]
            fn div(self, other: Self) -> Self { self / other }
            #[inline(always)]
            fn floor_div(self, other: Self) -> Self { (self / other).floor() }
            #[inline(always)]
            fn rem(self, other: Self) -> Self { self % other }
            #[inline(always)]
            fn neg(self) -> Self { -self }
            #[inline(always)]
            fn abs(self) -> Self { <$t>::abs(self) }
            #[inline(always)]
            fn sign(self) -> Self {
                if self > 0.0 { 1.0 } else if self < 0.0 { -1.0 } else { self }
            }
            #[inline(always)]
            fn is_nan(self) -> bool { <$t>::is_nan(self) }
            #[inline(always)]
            fn from_f64(x: f64) -> Self { x as $t }
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from(self) }
            #[inline(always)]
            fn to_i128(self) -> i128 {
                self as i128
            }
            type Key = $key;
            // The bits, those of negative numbers reversed, are in order, with negative NaNs at the
            // bottom and positive ones at the top; moving all by the count of either wraps it over.
            #[inline(always)]
            fn upper_key(self) -> $key {
                in_order(self.to_bits().cast_signed()).wrapping_sub(<$t>::NANS)
            }
            #[inline(always)]
            fn from_upper_key(key: $key) -> Self {
                let x = Self::from_bits(in_order(key.wrapping_add(<$t>::NANS)).cast_unsigned());
                if x.is_nan() { Self::NAN } else { x }
            }
            #[inline(always)]
            fn lower_key(self) -> $key {
                in_order(self.to_bits().cast_signed()).wrapping_add(<$t>::NANS)
            }
            #[inline(always)]
            fn from_lower_key(key: $key) -> Self {
                let x = Self::from_bits(in_order(key.wrapping_sub(<$t>::NANS)).cast_unsigned());
                if x.is_nan() { Self::NAN } else { x }
            }
        }
    )*};
}
float!(f32: i32, f64: i64);

/// The number of NaNs of one sign.
trait Nans {
    type Key;
    const NANS: Self::Key;
}

impl Nans for f32 {
    type Key = i32;
    const NANS: i32 = (1 << 23) - 1;
}

impl Nans for f64 {
    type Key = i64;
    const NANS: i64 = (1 << 52) - 1;
}

/// Reverses the order of negative bits; its own inverse.
#[inline(always)]
fn in_order<K>(bits: K) -> K
where
    K: Copy + std::ops::BitXor<Output = K> + SignMask,
{
    bits ^ bits.sign_mask()
}

trait SignMask {
    /// All bits but the sign for a negative number, else 0.
    fn sign_mask(self) -> Self;
}

impl SignMask for i32 {
    #[inline(always)]
    fn sign_mask(self) -> Self {
        (self >> 31) & Self::MAX
    }
}

impl SignMask for i64 {
    #[inline(always)]
    fn sign_mask(self) -> Self {
        (self >> 63) & Self::MAX
    }
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$t>::MIN;
            const HIGHEST: Self = <$t>::MAX;
            const FLOAT: bool = false;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn floor_div(self, other: Self) -> Self {
                let (q, r) = (Number::div(self, other), Number::rem(self, other));
                #[allow(unused_comparisons)]
                if r != 0 && (r < 0) != (other < 0) { q.wrapping_sub(1) } else { q }
            }
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn abs(self) -> Self {
                #[allow(unused_comparisons)]
                if self < 0 { self.wrapping_neg() } else { self }
            }
            #[inline(always)]
            fn sign(self) -> Self {
                #[allow(unused_comparisons)]
                if self < 0 { (0 as $t).wrapping_sub(1) } else { <$t>::from(self != 0) }
            }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
            #[inline(always)]
            #[allow(clippy::cast_possible_truncation)]
            fn from_f64(x: f64) -> Self { x as $t }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i128(self) -> i128 {
                i128::from(self)
            }
            type Key = $t;
            #[inline(always)]
            fn upper_key(self) -> $t { self }
            #[inline(always)]
            fn from_upper_key(key: $t) -> Self { key }
            #[inline(always)]
            fn lower_key(self) -> $t { self }
            #[inline(always)]
            fn from_lower_key(key: $t) -> Self { key }
        }
    )*};
}
integer!(i8, i16, i32, i64, u8, u16, u32, u64);

/// Runs `$body` with `$T` bound to the type that bodies compute with, for numeric dtypes (halves as
/// f32); Bool does nothing.
macro_rules! for_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $crate::kernels::blocks::computed($dtype) {
            $crate::dtype::DType::U8 => {
                type $T = u8;
                $body
            }
            $crate::dtype::DType::U16 => {
                type $T = u16;
                $body
            }
            $crate::dtype::DType::U32 => {
                type $T = u32;
                $body
            }
            $crate::dtype::DType::U64 => {
                type $T = u64;
                $body
            }
            $crate::dtype::DType::I8 => {
                type $T = i8;
                $body
            }
            $crate::dtype::DType::I16 => {
                type $T = i16;
                $body
            }
            $crate::dtype::DType::I32 => {
                type $T = i32;
                $body
            }
            $crate::dtype::DType::I64 => {
                type $T = i64;
                $body
            }
            $crate::dtype::DType::F64 => {
                type $T = f64;
                $body
            }
            $crate::dtype::DType::F32 => {
                type $T = f32;
                $body
            }
            _ => {}
        }
    };
}
pub(crate) use for_number;
