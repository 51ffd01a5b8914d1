use super::*;
use crate::parallel::set_num_threads;
use crate::registry::names;

#[test]
fn the_committed_table_holds_with_one_and_two_threads() {
    for threads in [1, 2] {
        set_num_threads(threads);
        let outcomes = check(TABLE).unwrap();
        let differ: Vec<_> = outcomes.iter().filter(|outcome| !outcome.ok()).collect();
        assert!(differ.is_empty(), "{} differ: {differ:#?}", differ.len());
    }
}

#[test]
fn every_kernel_is_in_the_table() {
    let cases = cases();
    let missing: Vec<_> =
        names().into_iter().filter(|name| !cases.iter().any(|c| c.kernel == *name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_planted_change_is_noticed() {
    let line = TABLE.lines().find(|line| line.contains(" Exp : float32[")).unwrap();
    assert!(check(line).unwrap()[0].ok());
    let other_kernel = line.replace(" Exp :", " Expm1 :");
    let other_input = line.replace("float32[", "float64[");
    let other_hash = format!("0000000000000000{}", &line[DIGITS..]);
    for planted in [other_kernel, other_input, other_hash] {
        assert!(!check(&planted).unwrap()[0].ok(), "{planted}");
    }
}

#[test]
fn one_bit_changes_the_hash_and_the_payload_of_a_nan_does_not() {
    let hash = |bits: u32| {
        let mut digest = Sha256::new();
        absorb(&mut digest, &Array::from_slice(&[2], &[1.0, f32::from_bits(bits)]).unwrap());
        digest.finalize()
    };
    assert_ne!(hash(2.0f32.to_bits()), hash(2.0f32.to_bits() + 1));
    assert_ne!(hash(0), hash(1 << 31));
    assert_eq!(hash(0x7FC0_0000), hash(0xFFC0_1234));
    assert_ne!(hash(0x7F80_0000), hash(0x7FC0_0000));
}

#[test]
fn a_regenerated_table_is_the_committed_one() {
    assert_eq!(regenerated(TABLE).unwrap(), TABLE);
}

/// Only another order of operations may show that constants were packed.
#[test]
fn constants_change_bits_in_fast_mode_alone() {
    let with_constants = cases().into_iter().filter(|case| !case.constants.is_empty());
    let (fast, exact): (Vec<Case>, Vec<Case>) =
        with_constants.partition(|case| case.attributes.contains_key("fast"));
    assert!(!fast.is_empty() && !exact.is_empty());
    for (cases, same) in [(exact, true), (fast, false)] {
        for case in cases {
            let unbound = Case { constants: Vec::new(), ..case.clone() };
            assert_eq!(case.hash().unwrap() == unbound.hash().unwrap(), same, "{case:?}");
        }
    }
}
