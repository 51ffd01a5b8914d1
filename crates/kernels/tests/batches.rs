//! A sample of a batch has the bits it has alone, whatever the batch is worked off by; and rows have
//! the bits of columns.

mod calling;

use calling::{array, bits, int, ints, run, singles, text};
use onemodel_kernels::array::Array;
use onemodel_kernels::attributes::Attribute;

const BATCH: usize = 70;

type Attributes = Vec<(&'static str, Attribute)>;

/// An operator, its attributes, the shape of one sample and those of the inputs that are not samples.
type Case = (&'static str, Attributes, &'static [usize], &'static [&'static [usize]]);

fn window(kernel: i64, stride: i64, pad: i64) -> Attributes {
    vec![
        ("kernel_shape", ints(&[kernel; 2])),
        ("strides", ints(&[stride; 2])),
        ("pads", ints(&[pad; 4])),
    ]
}

fn alone(mut attributes: Attributes) -> Attributes {
    attributes.push(("with_indices", int(0)));
    attributes
}

fn cases() -> Vec<Case> {
    let channels: &[&[usize]] = &[&[6], &[6], &[6], &[6]];
    vec![
        ("Softmax", vec![("axis", int(-1))], &[10], &[]),
        ("Softmax", vec![("axis", int(-1))], &[100], &[]),
        ("Softmax", vec![("axis", int(1))], &[7, 33], &[]),
        ("LogSoftmax", vec![("axis", int(-1))], &[10], &[]),
        ("LogSoftmax", vec![("axis", int(-1))], &[100], &[]),
        ("LogSoftmax", vec![("axis", int(1))], &[40, 5], &[]),
        ("ReduceSum", vec![("axes", ints(&[-1]))], &[20], &[]),
        ("ReduceSum", vec![("axes", ints(&[1]))], &[70, 40], &[]),
        ("ReduceMax", vec![("axes", ints(&[-1]))], &[20], &[]),
        ("ReduceMin", vec![("axes", ints(&[1]))], &[70, 40], &[]),
        ("ArgMax", vec![("axis", int(-1))], &[20], &[]),
        ("CumSum", vec![("axis", int(-1))], &[20], &[]),
        ("TopK", vec![("axis", int(-1)), ("k", int(3))], &[200], &[]),
        ("LayerNormalization", vec![("axis", int(-1))], &[50], &[&[50], &[50]]),
        ("RMSNormalization", vec![("axis", int(-1))], &[50], &[&[50]]),
        ("GroupNormalization", vec![("num_groups", int(3))], &[6, 5, 7], &[&[6], &[6]]),
        ("InstanceNormalization", vec![], &[6, 5, 7], &[&[6], &[6]]),
        ("BatchNormalization", vec![], &[6, 5, 7], channels),
        ("BatchNormalization", vec![], &[6, 3, 3], channels),
        ("AveragePool", window(3, 2, 1), &[3, 9, 21], &[]),
        ("AveragePool", window(2, 1, 0), &[3, 9, 21], &[]),
        ("MaxPool", alone(window(3, 2, 1)), &[3, 9, 21], &[]),
        ("GlobalAveragePool", vec![], &[3, 7, 7], &[]),
        ("GlobalMaxPool", vec![], &[3, 7, 7], &[]),
        (
            "Resize",
            vec![("sizes", ints(&[9, 31])), ("axes", ints(&[2, 3])), ("mode", text("linear"))],
            &[3, 5, 17],
            &[],
        ),
        ("Add", vec![], &[6, 5, 7], &[&[6, 1, 1]]),
    ]
}

fn shape(batch: usize, sample: &[usize]) -> Vec<usize> {
    [&[batch], sample].concat()
}

fn result(case: &Case, x: &Array) -> Array {
    let (name, attributes, _, others) = case;
    let positive = |n: usize, seed: u64| -> Vec<f32> {
        singles(n, seed, 1.0).into_iter().map(|v| v.abs() + 0.5).collect()
    };
    let others: Vec<Array> = others
        .iter()
        .enumerate()
        .map(|(i, s)| array(s, &positive(s.iter().product(), 2 + i as u64)))
        .collect();
    let inputs: Vec<&Array> = std::iter::once(x).chain(&others).collect();
    run(name, attributes, &inputs).swap_remove(0)
}

/// Bits of f32, or indices.
fn content(a: &Array) -> Vec<u64> {
    if a.dtype() == onemodel_kernels::dtype::DType::I64 {
        return a.as_slice::<i64>().iter().map(|&i| i as u64).collect();
    }
    bits(a).into_iter().map(u64::from).collect()
}

#[test]
fn a_sample_alone_has_the_bits_of_the_batch() {
    for case in cases() {
        let size: usize = case.2.iter().product();
        let data = singles(BATCH * size, 1, 4.0);
        let whole = content(&result(&case, &array(&shape(BATCH, case.2), &data)));
        let each = whole.len() / BATCH;
        for sample in [0, 1, 37, BATCH - 1] {
            let x = array(&shape(1, case.2), &data[sample * size..(sample + 1) * size]);
            let found = content(&result(&case, &x));
            let wanted = &whole[sample * each..(sample + 1) * each];
            assert_eq!(found, wanted, "{} {:?}, sample {sample}", case.0, case.2);
        }
    }
}

#[test]
fn rows_have_the_bits_of_columns() {
    let along: [(&str, &str, bool); 8] = [
        ("Softmax", "axis", false),
        ("LogSoftmax", "axis", false),
        ("ReduceSum", "axes", true),
        ("ReduceMean", "axes", true),
        ("ReduceMax", "axes", true),
        ("ReduceProd", "axes", true),
        ("ArgMin", "axis", false),
        ("CumSum", "axis", false),
    ];
    for (rows, length) in [(70, 9), (37, 32), (300, 50), (20, 700), (1100, 20)] {
        let x = array(&[rows, length], &singles(rows * length, 3, 2.0));
        let turned = run("Transpose", &[("perm", ints(&[1, 0]))], &[&x]).swap_remove(0);
        for (name, attribute, listed) in along {
            let given = |axis: i64| [(attribute, if listed { ints(&[axis]) } else { int(axis) })];
            let by_rows = run(name, &given(1), &[&x]).swap_remove(0);
            let by_columns = run(name, &given(0), &[&turned]).swap_remove(0);
            let back = run("Transpose", &[("perm", ints(&[1, 0]))], &[&by_columns]).swap_remove(0);
            assert_eq!(content(&by_rows), content(&back), "{name} of {rows} x {length}");
        }
    }
}

#[test]
fn an_operand_may_be_the_output() {
    let one = singles(6 * 5 * 49, 1, 2.0);
    let other = singles(6, 2, 2.0);
    let (a, b) = (array(&[5, 6, 49], &one), array(&[6, 1], &other));
    for name in ["Add", "Sub", "Mul", "Div"] {
        let wanted = run(name, &[], &[&a, &b]).swap_remove(0);
        let place = a.copy().unwrap();
        calling::into(name, &[], std::slice::from_ref(&place), &[Some(&place), Some(&b)]).unwrap();
        assert_eq!(bits(&place), bits(&wanted), "{name}");
    }
}
