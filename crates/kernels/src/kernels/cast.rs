//! Cast and Identity.

use crate::array::{Array, Meta};
use crate::dtype::{Bool, DType, Element};
use crate::error::Result;
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::elementwise::{self, CHEAP, Halves, Span};
use crate::kernels::halves;
use crate::kernels::movement::copy_into;
use crate::kernels::select::Bits;
use crate::simd::{PlainLoop, vectorized, vectorized_wide};
use crate::{for_dtype, for_size};
use half::{bf16, f16};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "Cast", build: |a| Ok(Arc::new(Cast { to: a.dtype_required("to")? })) },
    Entry { name: "Identity", build: |_| Ok(Arc::new(Identity)) },
];

/// A copy.
struct Identity;

impl Kernel for Identity {
    fn name(&self) -> &'static str {
        "Identity"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        Ok(smallvec![Inputs::new("Identity", inputs, 1, 1)?.get(0).clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        if let Some(x) = inputs[0] {
            copy_into(x, &outputs[0]);
        }
        Ok(())
    }
}

/// The value in another dtype: to a float rounded once to nearest even, from a float to an integer
/// truncated and saturated (NaN gives 0), between integers wrapped, to bool whether it is not 0.
struct Cast {
    to: DType,
}

impl Kernel for Cast {
    fn name(&self) -> &'static str {
        "Cast"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new("Cast", inputs, 1, 1)?;
        Ok(smallvec![Meta { dtype: self.to, shape: inputs.get(0).shape.clone() }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let Some(x) = inputs[0] else { return Ok(()) };
        let (from, to) = (x.dtype(), self.to);
        let single = |d: DType| matches!(d, DType::F32 | DType::F16 | DType::BF16);
        if from == to {
            copy_into(x, &outputs[0]);
        } else if (from, to) == (DType::F16, DType::F32) {
            elementwise::map(&[x], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                halves::widen(span.input(0), span.output(0));
            });
        } else if (from, to) == (DType::F32, DType::F16) {
            elementwise::map(&[x], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                halves::narrow(span.input(0), span.output(0));
            });
        } else if single(from) && single(to) {
            // The walk itself widens exactly and rounds once.
            elementwise::map(&[x], outputs, CHEAP, Halves::Widened, &|span: &Span<'_>| {
                span.output::<f32>(0).copy_from_slice(span.input(0));
            });
        } else if from == DType::Bool {
            // Zero is all bits clear in every dtype.
            let mut one = 0u64;
            for_dtype!(to, U => {
                // SAFETY: 8 bytes hold any element.
                unsafe { (&raw mut one).cast::<U>().write(U::of(Value::Small(1))) };
            });
            for_size!(to, B => {
                // SAFETY: the element lies at the start of the 8 bytes.
                let yes = unsafe { (&raw const one).cast::<B>().read() };
                elementwise::map(&[x], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                    vectorized(Choose { x: span.input(0), y: span.output::<B>(0), yes });
                });
            });
        } else if from == DType::F32 {
            for_dtype!(to, U => {
                elementwise::map(&[x], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                    let (x, y) = (span.input(0), span.output::<U>(0));
                    vectorized_wide(OfSingles { x, y });
                });
            });
        } else {
            for_dtype!(from, T => for_dtype!(to, U => {
                elementwise::map(&[x], outputs, CHEAP, Halves::Raw, &|span: &Span<'_>| {
                    for (x, y) in span.input::<T>(0).iter().zip(span.output::<U>(0)) {
                        *y = U::of(x.value());
                    }
                });
            }));
        }
        Ok(())
    }
}

/// A value where true, else 0.
struct Choose<'a, B> {
    x: &'a [Bool],
    y: &'a mut [B],
    yes: B,
}

impl<B: Bits + Default> PlainLoop for Choose<'_, B> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, y) in self.x.iter().zip(self.y) {
            *y = B::choose(*x, self.yes, B::default());
        }
    }
}

/// f32 in another dtype.
struct OfSingles<'a, U> {
    x: &'a [f32],
    y: &'a mut [U],
}

impl<U: Convert> PlainLoop for OfSingles<'_, U> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, y) in self.x.iter().zip(self.y) {
            *y = U::of_single(*x);
        }
    }
}

/// Any element, exactly.
#[derive(Clone, Copy)]
enum Value {
    Small(i32),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

trait Convert: Element {
    fn value(self) -> Value;
    fn of(value: Value) -> Self;
    #[inline(always)]
    fn of_single(x: f32) -> Self {
        Self::of(Value::Float(f64::from(x)))
    }
}

/// Truncates and saturates an f32, without a condition for the narrower integers.
macro_rules! saturated {
    (Small, $x:expr, $t:ty) => {{
        let x: f32 = $x;
        let (low, high) = (<$t>::MIN as f32, <$t>::MAX as f32);
        // The largest f32 below 2^31.
        let room = if high > 2_147_483_520.0 { 2_147_483_520.0 } else { high };
        let clamped = if x < low { low } else { x };
        let clamped = if room < clamped { room } else { clamped };
        let clamped = if x.is_nan() { 0.0 } else { clamped };
        // SAFETY: not NaN, and between the least and the greatest i32.
        let whole: i32 = unsafe { clamped.to_int_unchecked() };
        if x >= high { <$t>::MAX } else { whole as $t }
    }};
    ($kind:ident, $x:expr, $t:ty) => {
        $x as $t
    };
}

macro_rules! integers {
    ($kind:ident, $wide:ty; $($t:ty),*) => {$(
        impl Convert for $t {
            #[inline(always)]
            fn value(self) -> Value { Value::$kind(<$wide>::from(self)) }
            #[inline(always)]
            fn of_single(x: f32) -> Self { saturated!($kind, x, $t) }
            #[inline(always)]
            fn of(value: Value) -> Self {
                match value {
                    Value::Small(v) => v as $t,
                    Value::Signed(v) => v as $t,
                    Value::Unsigned(v) => v as $t,
                    Value::Float(v) => v as $t,
                }
            }
        }
    )*};
}
integers!(Small, i32; i8, i16, i32, u8, u16);
integers!(Signed, i64; i64);
integers!(Unsigned, u64; u32, u64);

macro_rules! floats {
    ($($t:ty),*) => {$(
        impl Convert for $t {
            #[inline(always)]
            fn value(self) -> Value { Value::Float(f64::from(self)) }
            #[inline(always)]
            fn of(value: Value) -> Self {
                match value {
                    Value::Small(v) => v as $t,
                    Value::Signed(v) => v as $t,
                    Value::Unsigned(v) => v as $t,
                    Value::Float(v) => v as $t,
                }
            }
        }
    )*};
}
floats!(f32, f64);

macro_rules! halves {
    ($($t:ty),*) => {$(
        impl Convert for $t {
            #[inline(always)]
            fn value(self) -> Value { Value::Float(f64::from(self)) }
            #[inline(always)]
            fn of(value: Value) -> Self {
                <$t>::from_f32(match value {
                    Value::Small(v) => to_odd_f32(f64::from(v)),
                    Value::Signed(v) => to_odd_f32(to_odd_f64(v.unsigned_abs()).copysign(v as f64)),
                    Value::Unsigned(v) => to_odd_f32(to_odd_f64(v)),
                    Value::Float(v) => to_odd_f32(v),
                })
            }
        }
    )*};
}
halves!(f16, bf16);

impl Convert for Bool {
    #[inline(always)]
    fn value(self) -> Value {
        Value::Small(i32::from(self.get()))
    }
    #[inline(always)]
    fn of_single(x: f32) -> Self {
        Self::from(x != 0.0)
    }
    #[inline(always)]
    fn of(value: Value) -> Self {
        Self::from(match value {
            Value::Small(v) => v != 0,
            Value::Signed(v) => v != 0,
            Value::Unsigned(v) => v != 0,
            Value::Float(v) => v != 0.0,
        })
    }
}

/// Rounds to f32 with the last bit as a sign of inexactness, so that a second rounding to a half is
/// as good as one (Boldo and Melquiond 2008).
#[inline(always)]
pub(crate) fn to_odd_f32(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) == x || near.is_nan() {
        return near;
    }
    let away = f64::from(near).abs() > x.abs();
    f32::from_bits((near.to_bits() - u32::from(away)) | 1)
}

/// The same from an integer to f64.
#[inline(always)]
fn to_odd_f64(x: u64) -> f64 {
    if x < 1 << 53 { x as f64 } else { ((x & !0xfff) | (u64::from(x & 0xfff != 0) << 12)) as f64 }
}
