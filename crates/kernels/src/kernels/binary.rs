//! Arithmetic of two arrays with broadcasting: one rounding per element.

use crate::array::{Array, Meta, StridedLoop, broadcast, broadcast_strides};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "Add", build: |_| Ok(Arc::new(Binary { op: Op::Add })) },
    Entry { name: "Sub", build: |_| Ok(Arc::new(Binary { op: Op::Sub })) },
    Entry { name: "Mul", build: |_| Ok(Arc::new(Binary { op: Op::Mul })) },
];

#[derive(Clone, Copy)]
enum Op {
    Add,
    Sub,
    Mul,
}

struct Binary {
    op: Op,
}

impl Kernel for Binary {
    fn name(&self) -> &'static str {
        match self.op {
            Op::Add => "Add",
            Op::Sub => "Sub",
            Op::Mul => "Mul",
        }
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 2, 2)?;
        let dtype = inputs.same_dtype(&[0, 1])?;
        if dtype == DType::Bool || dtype.size() == 2 && dtype.is_float() {
            return Err(Error::dtype(self.name(), "a number of 32 or 64 bits", dtype.name()));
        }
        let shape = broadcast(self.name(), &inputs.get(0).shape, &inputs.get(1).shape)?;
        Ok(smallvec![Meta { dtype, shape }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(a), Some(b)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let out = &outputs[0];
        match out.dtype() {
            DType::F32 => apply::<f32>(self.op, a, b, out),
            DType::F64 => apply::<f64>(self.op, a, b, out),
            _ => {}
        }
        Ok(())
    }

    fn in_place(&self) -> &[(usize, usize)] {
        &[(0, 0), (1, 0)]
    }
}

fn apply<
    T: Element + std::ops::Add<Output = T> + std::ops::Sub<Output = T> + std::ops::Mul<Output = T>,
>(
    op: Op,
    a: &Array,
    b: &Array,
    out: &Array,
) {
    let (sa, sb) = (broadcast_strides(a, out.shape()), broadcast_strides(b, out.shape()));
    let walk = StridedLoop::new(out.shape(), [&sa, &sb, out.strides()]);
    let (pa, pb, po) = (a.as_ptr::<T>(), b.as_ptr::<T>(), out.as_mut_ptr::<T>());
    let [ia, ib, io] = walk.inner_strides;
    walk.for_each(0, walk.runs(), |[x, y, z]| {
        for i in 0..walk.inner as isize {
            // SAFETY: the walk stays inside the three arrays.
            unsafe {
                let (x, y) = (*pa.offset(x + i * ia), *pb.offset(y + i * ib));
                *po.offset(z + i * io) = match op {
                    Op::Add => x + y,
                    Op::Sub => x - y,
                    Op::Mul => x * y,
                };
            }
        }
    });
}
