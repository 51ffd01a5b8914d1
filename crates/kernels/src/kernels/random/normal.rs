//! RandomNormal.

use super::draws::{Stream, shape_and_dtype, unit64, wide};
use crate::array::{Array, Dims, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::math::log_f64;
use half::{bf16, f16};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "RandomNormal", build: RandomNormal::build }];

/// Normally distributed numbers by Box and Muller's transformation, in f64, rounded once:
/// from u in (0, 1] and v in [0, 1) come `r cos(2πv)` and `r sin(2πv)` with `r = sqrt(-2 ln u)`,
/// then `mean + std * z`. For f32 (and f16 and bf16) a block of four words gives u = (w0 + 1) /
/// 2^32, v = w1 / 2^32 and the same of w2 and w3: four elements. For f64 it gives u and v of 53
/// bits: two elements.
struct RandomNormal {
    stream: Stream,
    mean: f64,
    std: f64,
    shape: Dims,
    dtype: DType,
}

/// (cos 2πv, sin 2πv) for v in [0, 1): v = q / 4 + d with |d| <= 1/8, exactly; then fdlibm's
/// kernel polynomials of x = 2πd, exchanged and signed by q.
fn turn(v: f64) -> (f64, f64) {
    let q = (4.0 * v).round_ties_even();
    let x = (v - q * 0.25) * std::f64::consts::TAU;
    let z = x * x;
    let mut s = 1.589_690_995_211_55e-10;
    for c in [
        -2.505_076_025_340_686_3e-8,
        2.755_731_370_707_007e-6,
        -1.984_126_982_985_795e-4,
        8.333_333_333_322_49e-3,
        -1.666_666_666_666_663_2e-1,
    ] {
        s = s * z + c;
    }
    let sin = x + x * z * s;
    let mut t = -1.135_964_755_778_819_5e-11;
    for c in [
        2.087_572_321_298_175e-9,
        -2.755_731_435_139_066_3e-7,
        2.480_158_728_947_673e-5,
        -1.388_888_888_887_411e-3,
        4.166_666_666_666_66e-2,
    ] {
        t = t * z + c;
    }
    let cos = 1.0 - (0.5 * z - z * z * t);
    match q as i64 % 4 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    }
}

impl RandomNormal {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        const OP: &str = "RandomNormal";
        let (shape, dtype) = shape_and_dtype(attributes, DType::F32)?;
        let (mean, std) = (attributes.float("mean", 0.0)?, attributes.float("std", 1.0)?);
        if !dtype.is_float() {
            return Err(Error::dtype(OP, "a float dtype", dtype.name()));
        }
        if !(mean.is_finite() && std.is_finite() && std >= 0.0) {
            let got = format!("mean {mean}, std {std}");
            return Err(Error::attribute(OP, "a finite mean and a std not negative", got));
        }
        Ok(Arc::new(Self { stream: Stream::read(attributes)?, mean, std, shape, dtype }))
    }

    fn pair(&self, u: f64, v: f64) -> [f64; 2] {
        let r = (-2.0 * log_f64(u)).sqrt();
        let (cos, sin) = turn(v);
        [self.mean + self.std * (r * cos), self.mean + self.std * (r * sin)]
    }

    fn four(&self, words: [u32; 4]) -> [f64; 4] {
        const UNIT: f64 = 1.0 / 4_294_967_296.0;
        let pair = |a: u32, b: u32| self.pair((f64::from(a) + 1.0) * UNIT, f64::from(b) * UNIT);
        let ([a, b], [c, d]) = (pair(words[0], words[1]), pair(words[2], words[3]));
        [a, b, c, d]
    }
}

impl Kernel for RandomNormal {
    fn name(&self) -> &'static str {
        "RandomNormal"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        Inputs::new(self.name(), inputs, 0, 0)?;
        Ok(smallvec![Meta { dtype: self.dtype, shape: self.shape.clone() }])
    }

    fn run(&self, _inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let out = &outputs[0];
        match self.dtype {
            DType::F16 => self.stream.fill(out, |w| self.four(w).map(f16::from_f64)),
            DType::BF16 => self.stream.fill(out, |w| self.four(w).map(bf16::from_f64)),
            DType::F32 => self.stream.fill(out, |w| self.four(w).map(|x| x as f32)),
            _ => self.stream.fill(out, |words| {
                let u = 1.0 - unit64(wide(words, 0));
                self.pair(u, unit64(wide(words, 1)))
            }),
        }
        Ok(())
    }

    fn is_random(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::turn;

    #[test]
    fn a_turn_is_close_to_the_trigonometric_functions() {
        for i in 0..10_000 {
            let v = f64::from(i) / 10_000.0;
            let (cos, sin) = turn(v);
            let x = v * std::f64::consts::TAU;
            // The reference rounds 2πv before it starts, which is off by up to 4e-16.
            assert!((cos - x.cos()).abs() < 1e-15 && (sin - x.sin()).abs() < 1e-15, "{v}");
        }
        assert_eq!((turn(0.0), turn(0.25)), ((1.0, 0.0), (0.0, 1.0)));
        assert_eq!((turn(0.5), turn(0.75)), ((-1.0, 0.0), (0.0, -1.0)));
    }
}
