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
    ($($t:ty),*) => {$(
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
        }
    )*};
}
float!(f32, f64);

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
