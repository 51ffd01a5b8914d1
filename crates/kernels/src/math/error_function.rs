//! The error function: x + x P(x²) near 0, 1 - e^(-t G(t)) with G(t) = -log(erfc t) / t beyond.

use super::exponential::{exp_f64, one_minus_exp};
use super::{polynomial, polynomial_f64};
use crate::simd::Simd;

const BOUND: f64 = 0.925;

const P: [f32; 7] = [
    0.128_379_17,
    -0.376_126_3,
    0.112_836_26,
    -0.026_855_728,
    0.005_192_381_3,
    -0.000_804_930_5,
    7.993_802e-5,
];
const G: [f32; 9] = [
    1.128_459_8,
    0.636_124_9,
    0.104_098_87,
    -0.021_157_693,
    0.001_722_140_9,
    0.000_552_501_3,
    -0.000_228_842_43,
    3.607_130_6e-5,
    -2.259_538_2e-6,
];

/// erf. Beyond the bound, t G(t) is taken in two parts and 1 - e^(-t G(t)) without rounding the power:
/// with either rounded once, the function falls by a last place between some neighbours.
#[inline(always)]
pub fn erf<S: Simd>(s: S, x: S::F) -> S::F {
    let a = s.abs(x);
    let is_small = s.lt(a, s.splat(BOUND as f32));
    let small = s.fma(x, polynomial(s, s.mul(x, x), P), x);
    // Beyond 4.05 the result is 1 to the last place.
    let t = s.at_most(a, s.splat(4.05));
    let [g0, rest @ ..] = G;
    let rest = polynomial(s, t, rest);
    let g = s.fma(t, rest, s.splat(g0));
    let g_low = s.fma(t, rest, s.sub(s.splat(g0), g));
    let u = s.mul(t, g);
    let u_low = s.fma(t, g_low, s.fma(t, g, s.neg(u)));
    let large = one_minus_exp(s, u, u_low);
    s.select(is_small, small, s.copysign(large, x))
}

const P_F64: [f64; 12] = [
    0.128_379_167_095_512_6,
    -0.376_126_389_031_837_1,
    0.112_837_916_709_528_02,
    -0.026_866_170_644_623_88,
    0.005_223_977_619_717_536,
    -0.000_854_832_664_201_863_2,
    0.000_120_553_168_472_547,
    -1.492_520_003_401_828_4e-5,
    1.645_369_681_490_950_2e-6,
    -1.626_118_504_004_221e-7,
    1.397_017_234_651_128_8e-8,
    -8.308_299_499_625_818e-10,
];
const G_F64: [f64; 19] = [
    1.128_379_203_328_752,
    0.636_619_343_150_969_9,
    0.102_774_995_925_825_66,
    -0.019_136_793_495_013_387,
    -0.000_188_757_802_084_013_7,
    0.001_658_873_099_051_929_1,
    -0.000_537_355_911_032_515_2,
    -3.315_153_454_187_895e-5,
    0.000_117_432_494_740_566_71,
    -6.796_113_664_979_587e-5,
    2.552_252_517_932_815_4e-5,
    -7.171_521_058_576_146e-6,
    1.565_884_096_710_747_5e-6,
    -2.668_755_601_156_831_6e-7,
    3.499_343_703_332_749e-8,
    -3.417_292_378_165_322e-9,
    2.342_868_253_820_059_6e-10,
    -1.006_268_711_135_965_3e-11,
    2.036_619_903_532_666_8e-13,
];

/// erf.
#[inline(always)]
#[must_use]
pub fn erf_f64(x: f64) -> f64 {
    let a = x.abs();
    let small = x.mul_add(polynomial_f64(x * x, P_F64), x);
    let t = if a > 6.0 { 6.0 } else { a };
    let large = (1.0 - exp_f64(-t * polynomial_f64(t, G_F64))).copysign(x);
    if a < BOUND { small } else { large }
}
