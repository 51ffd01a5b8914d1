//! Every instruction set computes each lane operation as the scalar reference does, bit for bit.

use onemodel_kernels::simd::{
    Isa, LANES, Simd, WithSimd, available, dispatch_on, fma_f32_software,
};
use proptest::prelude::*;

fn floats() -> impl Strategy<Value = [f32; LANES]> {
    let any = prop_oneof![
        4 => any::<u32>().prop_map(f32::from_bits),
        4 => -100.0f32..100.0,
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY,
            f32::MIN_POSITIVE, 1e-45, f32::MAX, 2_147_483_648.0, -2_147_483_648.0,
        ]),
    ];
    prop::collection::vec(any, LANES).prop_map(|v| v.try_into().unwrap())
}

/// All results as bits, NaN as one value since payloads are not promised.
struct AllOps([f32; LANES], [f32; LANES], [f32; LANES]);

impl WithSimd for AllOps {
    type Output = Vec<Vec<u64>>;
    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Self::Output {
        let canonical = |x: f32| {
            if x.is_nan() { u64::from(f32::NAN.to_bits()) } else { u64::from(x.to_bits()) }
        };
        // SAFETY: the arrays hold 16 elements.
        let (a, b, c) =
            unsafe { (s.load(self.0.as_ptr()), s.load(self.1.as_ptr()), s.load(self.2.as_ptr())) };
        let mut out = Vec::new();
        for v in [
            s.add(a, b),
            s.sub(a, b),
            s.mul(a, b),
            s.div(a, b),
            s.fma(a, b, c),
            s.sqrt(a),
            s.abs(a),
            s.neg(a),
            s.floor(a),
            s.ceil(a),
            s.trunc(a),
            s.round(a),
            s.copysign(a, b),
            s.max(a, b),
            s.min(a, b),
            s.relu(a),
            s.from_int(s.to_int(a)),
            s.from_bits(s.bits(a)),
            s.from_int(s.add_i(s.bits(a), s.bits(b))),
            s.from_int(s.sub_i(s.bits(a), s.bits(b))),
            s.from_int(s.mul_i(s.bits(a), s.bits(b))),
            s.from_int(s.shl_i::<3>(s.bits(a))),
            s.from_int(s.shr_i::<5>(s.bits(a))),
            s.from_int(s.shr_u::<5>(s.bits(a))),
            s.from_int(s.and_i(s.bits(a), s.bits(b))),
            s.from_int(s.or_i(s.bits(a), s.bits(b))),
            s.from_int(s.xor_i(s.bits(a), s.bits(b))),
            s.narrow(s.widen(a)),
            s.narrow(s.add_d(s.widen(a), s.widen(b))),
            s.narrow(s.sub_d(s.widen(a), s.widen(b))),
            s.narrow(s.mul_d(s.widen(a), s.widen(b))),
            s.narrow(s.div_d(s.widen(a), s.widen(b))),
            s.narrow(s.fma_d(s.widen(a), s.widen(b), s.widen(c))),
            s.select(s.lt(a, b), a, c),
            s.select(s.le(a, b), a, c),
            s.select(s.eq(a, b), a, c),
            s.select(s.mask_and(s.lt(a, b), s.lt(b, c)), a, c),
            s.select(s.mask_or(s.lt(a, b), s.is_nan(c)), a, c),
            s.select(s.mask_not(s.lt(a, b)), a, c),
            s.select(s.mask_first(5), a, b),
            s.select(s.mask_of(s.mask_bits(s.lt(a, b))), a, b),
            s.from_bits(s.select_i(s.lt_i(s.bits(a), s.bits(b)), s.bits(a), s.bits(c))),
            s.from_bits(s.select_i(s.eq_i(s.bits(a), s.bits(b)), s.bits(a), s.bits(c))),
        ] {
            out.push(s.to_array(v).iter().map(|&x| canonical(x)).collect());
        }
        out.push(vec![
            canonical(s.tree_add(a)),
            canonical(s.tree_max(a)),
            s.tree_add_d(s.widen(a)).to_bits(),
            u64::from(s.mask_bits(s.lt(a, b))),
            u64::from(s.any(s.is_nan(a))),
        ]);
        if s.tree_add_d(s.widen(a)).is_nan() {
            out.last_mut().unwrap()[2] = 0;
        }
        for n in 0..=LANES {
            let mut part = [7.0f32; LANES];
            // SAFETY: n is at most 16.
            unsafe { s.store_n(part.as_mut_ptr(), n, s.load_n(self.0.as_ptr(), n)) };
            out.push(part.iter().map(|&x| canonical(x)).collect());
        }
        for n in [0, 5, LANES] {
            let mut part = [7u16; LANES];
            // SAFETY: n is at most 16.
            unsafe { s.store_low(part.as_mut_ptr(), n, s.bits(a)) };
            out.push(part.map(u64::from).to_vec());
        }
        let both = [self.0, self.1].concat();
        // SAFETY: 31 elements from each of the two places.
        let even = unsafe { [s.load_even(both.as_ptr()), s.load_even(both.as_ptr().add(1))] };
        out.extend(even.map(|v| s.to_array(v).iter().map(|&x| canonical(x)).collect()));
        out
    }
}

proptest! {
    #[test]
    fn all_instruction_sets_agree(a in floats(), b in floats(), c in floats()) {
        let want = dispatch_on(Isa::Scalar, AllOps(a, b, c));
        for isa in available() {
            let got = dispatch_on(isa, AllOps(a, b, c));
            for (k, (w, g)) in want.iter().zip(&got).enumerate() {
                prop_assert_eq!(w, g, "operation {} on {}", k, isa.name());
            }
        }
    }

    #[test]
    fn software_fma_is_the_fused_one(a in any::<u32>(), b in any::<u32>(), c in any::<u32>()) {
        let [a, b, c] = [a, b, c].map(f32::from_bits);
        let (want, got) = (a.mul_add(b, c), fma_f32_software(a, b, c));
        prop_assert!(want.to_bits() == got.to_bits() || want.is_nan() && got.is_nan(),
            "{a:e} * {b:e} + {c:e}: {want:e} but {got:e}");
    }

    #[test]
    fn software_fma_near_cancellation(a in 1.0f32..2.0, b in 1.0f32..2.0, k in -4i32..5) {
        let c = -f32::from_bits((a * b).to_bits().wrapping_add_signed(k));
        prop_assert_eq!(a.mul_add(b, c).to_bits(), fma_f32_software(a, b, c).to_bits());
    }

    #[test]
    fn software_fma_of_tiny_numbers(a in 0u32..0x0180_0000, b in 0x3000_0000u32..0x4000_0000, c in 0u32..0x0180_0000) {
        let [a, b, c] = [a, b, c].map(f32::from_bits);
        prop_assert_eq!(a.mul_add(b, c).to_bits(), fma_f32_software(a, b, c).to_bits());
    }
}
