//! Vectors of 16 logical lanes. Kernels are written once over [`Simd`]; every instruction set holds
//! the same 16 lanes in as many registers as it needs, so the arithmetic is the same by
//! construction. Each operation is one IEEE-754 operation per lane.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

use crate::once::SetOnce;

/// Lanes of one vector.
pub const LANES: usize = 16;

/// The instruction sets a kernel may be compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isa {
    Scalar,
    Neon,
    Avx2,
    Avx512,
}

impl Isa {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// Whether the CPU has fused multiply-add, so that the scalar bodies may use the instruction.
#[cfg(target_arch = "x86_64")]
fn has_fma() -> bool {
    std::arch::is_x86_feature_detected!("fma") && std::arch::is_x86_feature_detected!("avx2")
}

/// The instruction sets that this CPU has, the best one last.
#[must_use]
pub fn available() -> Vec<Isa> {
    let all = [Isa::Scalar, Isa::Neon, Isa::Avx2, Isa::Avx512];
    all.into_iter().filter(|&isa| has(isa)).collect()
}

#[cfg(target_arch = "x86_64")]
fn has(isa: Isa) -> bool {
    match isa {
        Isa::Scalar => true,
        Isa::Neon => false,
        Isa::Avx2 => has_fma(),
        Isa::Avx512 => {
            has_fma()
                && std::arch::is_x86_feature_detected!("avx512f")
                && std::arch::is_x86_feature_detected!("avx512vl")
                && std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512dq")
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn has(isa: Isa) -> bool {
    isa == Isa::Scalar || isa == Isa::Neon && cfg!(target_arch = "aarch64")
}

/// The instruction set in use: the best the CPU has, or the one that `ONEMODEL_KERNELS_ISA` names
/// if the CPU has it.
#[must_use]
pub fn isa() -> Isa {
    static ISA: SetOnce<Isa> = SetOnce::new();
    *ISA.get_or_make(|| {
        let wanted = std::env::var("ONEMODEL_KERNELS_ISA").unwrap_or_default();
        let available = available();
        let named = available.iter().find(|isa| isa.name() == wanted);
        *named.or(available.last()).unwrap_or(&Isa::Scalar)
    })
}

/// A computation written over any instruction set.
pub trait WithSimd {
    type Output;
    /// Must be `#[inline(always)]`, so that the body is compiled with the caller's instructions.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `op` with the instruction set in use.
#[inline]
pub fn dispatch<O: WithSimd>(op: O) -> O::Output {
    dispatch_on(isa(), op)
}

/// Runs `op` with the given instruction set, or the best one below it that the CPU has.
#[inline]
pub fn dispatch_on<O: WithSimd>(wanted: Isa, op: O) -> O::Output {
    #[cfg(target_arch = "x86_64")]
    match (wanted, best()) {
        // SAFETY: `best` has probed the CPU.
        (Isa::Avx512, Isa::Avx512) => return unsafe { avx512::run(op) },
        // SAFETY: every CPU that `has` AVX-512 has AVX2 and FMA too.
        (Isa::Avx512 | Isa::Avx2, Isa::Avx512 | Isa::Avx2) => return unsafe { avx2::run(op) },
        _ => {}
    }
    #[cfg(target_arch = "aarch64")]
    if wanted == Isa::Neon {
        return op.run(neon::Neon);
    }
    let _ = wanted;
    op.run(scalar::Scalar)
}

#[cfg(target_arch = "x86_64")]
fn best() -> Isa {
    static BEST: SetOnce<Isa> = SetOnce::new();
    *BEST.get_or_make(|| available().last().copied().unwrap_or(Isa::Scalar))
}

/// A loop of plain Rust arithmetic that the compiler vectorises by itself: the bits do not depend on
/// how it does.
pub trait PlainLoop {
    type Output;
    /// Must be `#[inline(always)]`, so that the body is compiled with the caller's instructions.
    fn run(self) -> Self::Output;
}

/// Runs a plain loop with 256-bit instructions where the CPU has them. It is compiled twice only,
/// where a body over [`Simd`] is compiled for every instruction set.
#[inline]
pub fn vectorized<L: PlainLoop>(body: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if isa() != Isa::Scalar {
        // SAFETY: both other instruction sets have AVX2 and FMA.
        return unsafe { avx2::run_plain(body) };
    }
    body.run()
}

/// Runs a plain loop with 512-bit instructions where the CPU has them: for the few that are bound by
/// nothing but loads and stores in the nearer caches.
#[inline]
pub fn vectorized_wide<L: PlainLoop>(body: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    if isa() == Isa::Avx512 {
        // SAFETY: just checked.
        return unsafe { avx512::run_plain(body) };
    }
    vectorized(body)
}

/// Fused multiply-add of one f32 without the instruction: exact product in f64, the sum rounded to
/// odd in f64, then rounded once to f32 (Boldo and Melquiond, "Emulation of FMA and correctly
/// rounded sums", 2008; 53 >= 2 * 24 + 2 bits make the last step innocuous).
#[must_use]
pub fn fma_f32_software(a: f32, b: f32, c: f32) -> f32 {
    let p = f64::from(a) * f64::from(b);
    let c = f64::from(c);
    let s = p + c;
    let t = s - p;
    let err = (p - (s - t)) + (c - t);
    let bits = s.to_bits();
    if err != 0.0 && bits & 1 == 0 && s.is_finite() && err.is_finite() {
        let toward_larger = (err > 0.0) == (s > 0.0);
        let odd = if toward_larger { bits + 1 } else { bits - 1 };
        return f64::from_bits(odd) as f32;
    }
    s as f32
}

/// One instruction set: 16 lanes of f32 (`F`), i32 (`I`) or f64 (`D`), and lane masks (`M`).
///
/// # Safety of the pointer methods
/// The caller guarantees that the addressed elements exist: 16 of them, or the first `n`.
#[allow(clippy::missing_safety_doc, clippy::wrong_self_convention)]
pub trait Simd: Copy + Send + Sync + 'static {
    const ISA: Isa;
    /// Registers that a matrix kernel may fill with accumulators, counted in vectors of 16 f32.
    const GEMM_ROWS: usize;
    const GEMM_VECTORS: usize;
    type F: Copy;
    type I: Copy;
    type D: Copy;
    type M: Copy;

    // f32
    fn splat(self, x: f32) -> Self::F;
    unsafe fn load(self, p: *const f32) -> Self::F;
    unsafe fn store(self, p: *mut f32, v: Self::F);
    /// Loads the first `n` (at most 16) elements; the other lanes are +0.0.
    unsafe fn load_n(self, p: *const f32, n: usize) -> Self::F;
    unsafe fn store_n(self, p: *mut f32, n: usize, v: Self::F);
    /// The elements at `p`, `p + 2`, … to `p + 30`.
    ///
    /// # Safety
    /// 31 elements from `p` on exist.
    #[inline(always)]
    unsafe fn load_even(self, p: *const f32) -> Self::F {
        let mut lanes = [0.0; LANES];
        // SAFETY: the caller's promise, and an array of 16.
        unsafe {
            for i in 0..LANES {
                lanes[i] = *p.add(2 * i);
            }
            self.load(lanes.as_ptr())
        }
    }
    fn to_array(self, v: Self::F) -> [f32; LANES];
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c` with one rounding.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    fn sqrt(self, a: Self::F) -> Self::F;
    fn abs(self, a: Self::F) -> Self::F;
    fn neg(self, a: Self::F) -> Self::F;
    fn floor(self, a: Self::F) -> Self::F;
    fn ceil(self, a: Self::F) -> Self::F;
    fn trunc(self, a: Self::F) -> Self::F;
    /// Rounds half to even.
    fn round(self, a: Self::F) -> Self::F;
    /// Magnitude of `a`, sign of `b`.
    fn copysign(self, a: Self::F, b: Self::F) -> Self::F;

    // comparisons (false on NaN, but `ne` is true) and selection
    fn lt(self, a: Self::F, b: Self::F) -> Self::M;
    fn le(self, a: Self::F, b: Self::F) -> Self::M;
    fn eq(self, a: Self::F, b: Self::F) -> Self::M;
    fn is_nan(self, a: Self::F) -> Self::M;
    /// `m ? a : b` lane by lane.
    fn select(self, m: Self::M, a: Self::F, b: Self::F) -> Self::F;
    fn mask_and(self, a: Self::M, b: Self::M) -> Self::M;
    fn mask_or(self, a: Self::M, b: Self::M) -> Self::M;
    fn mask_not(self, a: Self::M) -> Self::M;
    /// Bit l is lane l.
    fn mask_bits(self, m: Self::M) -> u16;
    fn any(self, m: Self::M) -> bool {
        self.mask_bits(m) != 0
    }
    /// The first `n` lanes.
    fn mask_first(self, n: usize) -> Self::M;
    /// Lane l is bit l.
    #[inline(always)]
    fn mask_of(self, bits: u16) -> Self::M {
        const LANE: [i32; LANES] = {
            let mut lane = [1; LANES];
            let mut l = 0;
            while l < LANES {
                lane[l] = 1 << l;
                l += 1;
            }
            lane
        };
        // SAFETY: an array of 16.
        let lane = unsafe { self.load_i(LANE.as_ptr()) };
        self.eq_i(self.and_i(self.splat_i(i32::from(bits)), lane), lane)
    }

    // i32
    fn splat_i(self, x: i32) -> Self::I;
    unsafe fn load_i(self, p: *const i32) -> Self::I;
    unsafe fn store_i(self, p: *mut i32, v: Self::I);
    /// Stores the low halves of the first `n` lanes.
    ///
    /// # Safety
    /// `p` has room for them.
    #[inline(always)]
    unsafe fn store_low(self, p: *mut u16, n: usize, v: Self::I) {
        let mut lanes = [0; LANES];
        // SAFETY: an array of 16, and the caller's promise.
        unsafe {
            self.store_i(lanes.as_mut_ptr(), v);
            for l in 0..n.min(LANES) {
                *p.add(l) = lanes[l] as u16;
            }
        }
    }
    /// Wrapping.
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn sub_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// Wrapping, low 32 bits.
    fn mul_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I;
    fn shl_i<const N: i32>(self, a: Self::I) -> Self::I;
    /// Arithmetic shift right.
    fn shr_i<const N: i32>(self, a: Self::I) -> Self::I;
    fn shr_u<const N: i32>(self, a: Self::I) -> Self::I;
    fn lt_i(self, a: Self::I, b: Self::I) -> Self::M;
    fn eq_i(self, a: Self::I, b: Self::I) -> Self::M;
    fn select_i(self, m: Self::M, a: Self::I, b: Self::I) -> Self::I;
    fn bits(self, a: Self::F) -> Self::I;
    fn from_bits(self, a: Self::I) -> Self::F;
    /// Rounds half to even; values outside i32 give i32::MIN.
    fn to_int(self, a: Self::F) -> Self::I;
    fn from_int(self, a: Self::I) -> Self::F;
    /// `a * 2^n` rounded once, for 1 <= |a| <= 2 and -252 <= n <= 254: two steps of which the first
    /// is exact. `whole` is n as a float.
    #[inline(always)]
    fn scale_by_power(self, a: Self::F, n: Self::I, whole: Self::F) -> Self::F {
        let _ = whole;
        let bias = self.splat_i(127);
        let half = self.shr_i::<1>(n);
        let rest = self.sub_i(n, half);
        let power = |n| self.from_bits(self.shl_i::<23>(self.add_i(n, bias)));
        self.mul(self.mul(a, power(half)), power(rest))
    }

    // f64
    fn splat_d(self, x: f64) -> Self::D;
    unsafe fn load_d(self, p: *const f64) -> Self::D;
    unsafe fn store_d(self, p: *mut f64, v: Self::D);
    fn to_array_d(self, v: Self::D) -> [f64; LANES];
    fn add_d(self, a: Self::D, b: Self::D) -> Self::D;
    fn sub_d(self, a: Self::D, b: Self::D) -> Self::D;
    fn mul_d(self, a: Self::D, b: Self::D) -> Self::D;
    fn div_d(self, a: Self::D, b: Self::D) -> Self::D;
    fn fma_d(self, a: Self::D, b: Self::D, c: Self::D) -> Self::D;
    /// Exact.
    fn widen(self, a: Self::F) -> Self::D;
    /// Rounds to nearest even.
    fn narrow(self, a: Self::D) -> Self::F;

    /// `x < bound ? bound : x`, so that NaN stays.
    #[inline(always)]
    fn at_least(self, x: Self::F, bound: Self::F) -> Self::F {
        self.select(self.lt(x, bound), bound, x)
    }

    /// `bound < x ? bound : x`, so that NaN stays.
    #[inline(always)]
    fn at_most(self, x: Self::F, bound: Self::F) -> Self::F {
        self.select(self.lt(bound, x), bound, x)
    }

    /// NaN if either is NaN; of zeros of both signs, `b`.
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        let larger = self.select(self.lt(b, a), a, b);
        self.select(self.is_nan(a), a, larger)
    }

    /// NaN if either is NaN; of zeros of both signs, `b`.
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        let smaller = self.select(self.lt(a, b), a, b);
        self.select(self.is_nan(a), a, smaller)
    }

    /// `x < 0 ? 0 : x`: NaN stays NaN and -0.0 stays -0.0.
    #[inline(always)]
    fn relu(self, x: Self::F) -> Self::F {
        self.at_least(x, self.splat(0.0))
    }

    /// The maximum of lanes without NaN; of zeros of both signs either.
    #[inline(always)]
    fn tree_max_of_numbers(self, v: Self::F) -> f32 {
        self.tree_max(v)
    }

    /// The fixed tree: lanes l and l + 8, then + 4, + 2, + 1.
    #[inline(always)]
    fn tree_add(self, v: Self::F) -> f32 {
        let mut a = self.to_array(v);
        let mut width = LANES / 2;
        while width > 0 {
            for l in 0..width {
                a[l] += a[l + width];
            }
            width /= 2;
        }
        a[0]
    }

    /// The same tree in f64.
    #[inline(always)]
    fn tree_add_d(self, v: Self::D) -> f64 {
        let mut a = self.to_array_d(v);
        let mut width = LANES / 2;
        while width > 0 {
            for l in 0..width {
                a[l] += a[l + width];
            }
            width /= 2;
        }
        a[0]
    }

    /// The maximum of the lanes by the same tree, NaN if any lane is NaN.
    #[inline(always)]
    fn tree_max(self, v: Self::F) -> f32 {
        let mut a = self.to_array(v);
        let mut width = LANES / 2;
        while width > 0 {
            for l in 0..width {
                let (x, y) = (a[l], a[l + width]);
                a[l] = if x.is_nan() || x > y { x } else { y };
            }
            width /= 2;
        }
        a[0]
    }
}
