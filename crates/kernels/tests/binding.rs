//! Kernels with packed constants: the bits of kernels without, and an error for other constants.

mod calling;

use calling::{array, bits, int, ints, prepare, singles};
use onemodel_kernels::array::Array;
use onemodel_kernels::attributes::Attribute;
use onemodel_kernels::dtype::DType;
use onemodel_kernels::kernel::{bind, call};

fn random(shape: &[usize], seed: u64) -> Array {
    array(shape, &singles(shape.iter().product(), seed, 1.0))
}

/// An operator, its attributes, the shapes of its inputs, and which of them is constant.
type Case = (&'static str, Vec<(&'static str, Attribute)>, Vec<Vec<usize>>, usize);

fn cases() -> Vec<Case> {
    let pads = || ("pads", ints(&[1; 4]));
    vec![
        ("MatMul", vec![], vec![vec![3, 20], vec![20, 40]], 1),
        ("Gemm", vec![("transB", int(1))], vec![vec![3, 20], vec![40, 20]], 1),
        ("Linear", vec![], vec![vec![2, 3, 20], vec![40, 20], vec![40]], 1),
        ("Conv", vec![pads()], vec![vec![1, 16, 18, 18], vec![20, 16, 3, 3]], 1),
        ("Conv", vec![pads(), ("fast", int(1))], vec![vec![1, 16, 18, 18], vec![20, 16, 3, 3]], 1),
        ("ConvTranspose", vec![pads()], vec![vec![1, 20, 18, 18], vec![20, 16, 3, 3]], 1),
    ]
}

#[test]
fn other_constants_than_the_packed_ones_are_refused() {
    for (name, attributes, shapes, at) in cases() {
        let kernel = prepare(name, &attributes).unwrap();
        let inputs: Vec<Array> =
            shapes.iter().zip(1..).map(|(shape, seed)| random(shape, seed)).collect();
        let mut given: Vec<Option<&Array>> = inputs.iter().map(Some).collect();
        let mut constants = vec![None; inputs.len()];
        constants[at] = given[at];
        let bound = bind(&kernel, &constants).unwrap();
        let packed = call(&*bound, &given).unwrap().remove(0);
        if !attributes.iter().any(|(name, _)| *name == "fast") {
            assert_eq!(bits(&packed), bits(&call(&*kernel, &given).unwrap()[0]), "{name}");
        }
        let mut taller = shapes[at].clone();
        taller[0] *= 100;
        let double = Array::zeros("test", DType::F64, &shapes[at]).unwrap();
        let taller = random(&taller, 9);
        for other in [&taller, &double] {
            given[at] = Some(other);
            let error = call(&*bound, &given).err().expect("an error").to_string();
            let expected = format!("{name}: expected input {at} to be the constant of bind");
            assert!(error.starts_with(&expected), "{error}");
        }
        given[at] = None;
        assert!(call(&*bound, &given).is_err(), "{name}");
    }
}
