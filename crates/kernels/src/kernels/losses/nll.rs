//! NllLoss and its gradient.

use crate::array::{Array, Dims, Meta};
use crate::attributes::Attributes;
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use smallvec::smallvec;
use std::borrow::Cow;
use std::sync::Arc;

pub(crate) const KERNELS: &[Entry] = &[
    Entry { name: "NllLoss", build: NllLoss::build },
    Entry { name: "NllLossGrad", build: NllLossGrad::build },
];

fn check(
    operator: &str,
    dtype: DType,
    scores: &[usize],
    target: &Meta,
    weight: Option<&Meta>,
) -> Result<()> {
    if !matches!(dtype, DType::F32 | DType::F64) {
        return Err(Error::dtype(operator, "float32 or float64", dtype.name()));
    }
    if !matches!(target.dtype, DType::I32 | DType::I64) {
        return Err(Error::dtype(operator, "targets of int32 or int64", target.dtype.name()));
    }
    let mut want = Dims::from_slice(scores);
    if scores.len() < 2 {
        return Err(Error::shape(operator, "scores (N, C, …)", format!("{scores:?}")));
    }
    want.remove(1);
    if want != target.shape {
        return Err(Error::shape(
            operator,
            format!("targets {want:?} for scores {scores:?}"),
            format!("{:?}", target.shape),
        ));
    }
    if let Some(weight) = weight
        && (weight.dtype != dtype || weight.shape.as_slice() != &scores[1..2])
    {
        return Err(Error::shape(
            operator,
            format!("a weight of {} for each of {} classes", dtype.name(), scores[1]),
            format!("{} {:?}", weight.dtype.name(), weight.shape),
        ));
    }
    Ok(())
}

/// The class of each place in row-major order; `None` where it is ignored.
fn classes(
    operator: &str,
    target: &Array,
    count: usize,
    ignored: Option<i64>,
) -> Result<Vec<Option<usize>>> {
    let target = target.to_contiguous()?;
    let read = |i: usize| match target.dtype() {
        DType::I32 => i64::from(target.as_slice::<i32>()[i]),
        _ => target.as_slice::<i64>()[i],
    };
    (0..target.size())
        .map(|i| {
            let class = read(i);
            if ignored == Some(class) {
                return Ok(None);
            }
            if (0..count as i64).contains(&class) {
                return Ok(Some(class as usize));
            }
            let expected = match ignored {
                Some(v) => format!("targets in [0, {count}) or ignore_index {v}"),
                None => format!("targets in [0, {count})"),
            };
            Err(Error::bounds(operator, expected, format!("{class} at position {i}")))
        })
        .collect()
}

/// `losses[n, …] = -weight[t] * logp[n, t, …]` and `weights[n, …] = weight[t]` with
/// `t = target[n, …]` and a weight of 1 where none is given; both are 0 where the target is
/// `ignore_index`. The mean is the quotient of the sums of the two.
struct NllLoss {
    ignored: Option<i64>,
}

impl NllLoss {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        Ok(Arc::new(Self { ignored: attributes.int_opt("ignore_index")? }))
    }

    fn typed<T: Element + std::ops::Mul<Output = T> + std::ops::Neg<Output = T>>(
        &self,
        one: T,
        inputs: &[Option<&Array>],
        outputs: &[Array],
    ) -> Result<()> {
        let (Some(logp), Some(target)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let weight = inputs.get(2).copied().flatten().map(Array::to_contiguous).transpose()?;
        let weight = weight.as_ref().map(|w| w.as_slice::<T>());
        let logp = logp.to_contiguous()?;
        let count = logp.shape()[1];
        let inner: usize = logp.shape()[2..].iter().product();
        let classes = classes(self.name(), target, count, self.ignored)?;
        let logp = logp.as_slice::<T>();
        // SAFETY: the kernel's own outputs, contiguous and apart.
        let (losses, weights) =
            unsafe { (outputs[0].as_mut_slice::<T>(), outputs[1].as_mut_slice::<T>()) };
        for (n, classes) in classes.chunks(inner.max(1)).enumerate() {
            for (j, class) in classes.iter().enumerate() {
                let i = n * inner + j;
                (losses[i], weights[i]) = match *class {
                    None => (T::default(), T::default()),
                    Some(c) => {
                        let w = weight.map_or(one, |w| w[c]);
                        (-(w * logp[(n * count + c) * inner + j]), w)
                    }
                };
            }
        }
        Ok(())
    }
}

impl Kernel for NllLoss {
    fn name(&self) -> &'static str {
        "NllLoss"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 2, 3)?;
        let (logp, target) = (inputs.get(0), inputs.get(1));
        check(self.name(), logp.dtype, &logp.shape, target, inputs.opt(2))?;
        let out = Meta { dtype: logp.dtype, shape: target.shape.clone() };
        Ok(smallvec![out.clone(), out])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        match outputs[0].dtype() {
            DType::F32 => self.typed(1f32, inputs, outputs),
            _ => self.typed(1f64, inputs, outputs),
        }
    }

    fn single_output(&self) -> bool {
        false
    }
}

/// The gradient of [`NllLoss`]'s losses wrt scores of shape `input_shape`: inputs are the gradient
/// of the losses, the targets and the weight; `-(weight[t] * g)` at the target, +0 elsewhere.
struct NllLossGrad {
    ignored: Option<i64>,
    input_shape: Vec<usize>,
}

impl NllLossGrad {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let ignored = attributes.int_opt("ignore_index")?;
        let input_shape = attributes.sizes_required("input_shape")?;
        Ok(Arc::new(Self { ignored, input_shape }))
    }

    fn typed<T: Element + std::ops::Mul<Output = T> + std::ops::Neg<Output = T>>(
        &self,
        one: T,
        inputs: &[Option<&Array>],
        outputs: &[Array],
    ) -> Result<()> {
        let (Some(g), Some(target)) = (inputs[0], inputs[1]) else { return Ok(()) };
        let weight = inputs.get(2).copied().flatten().map(Array::to_contiguous).transpose()?;
        let weight = weight.as_ref().map(|w| w.as_slice::<T>());
        let g: Cow<'_, Array> = g.to_contiguous()?;
        let count = self.input_shape[1];
        let inner: usize = self.input_shape[2..].iter().product();
        let classes = classes(self.name(), target, count, self.ignored)?;
        // SAFETY: the kernel's own output, contiguous.
        let out = unsafe { outputs[0].as_mut_slice::<T>() };
        out.fill(T::default());
        let g = g.as_slice::<T>();
        for (n, classes) in classes.chunks(inner.max(1)).enumerate() {
            for (j, class) in classes.iter().enumerate() {
                if let Some(c) = *class {
                    let w = weight.map_or(one, |w| w[c]);
                    out[(n * count + c) * inner + j] = -(w * g[n * inner + j]);
                }
            }
        }
        Ok(())
    }
}

impl Kernel for NllLossGrad {
    fn name(&self) -> &'static str {
        "NllLossGrad"
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(self.name(), inputs, 2, 3)?;
        let (g, target) = (inputs.get(0), inputs.get(1));
        check(self.name(), g.dtype, &self.input_shape, target, inputs.opt(2))?;
        if g.shape != target.shape {
            return Err(Error::shape(
                self.name(),
                format!("a gradient of the targets' shape {:?}", target.shape),
                format!("{:?}", g.shape),
            ));
        }
        Ok(smallvec![Meta::new(g.dtype, &self.input_shape)])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        match outputs[0].dtype() {
            DType::F32 => self.typed(1f32, inputs, outputs),
            _ => self.typed(1f64, inputs, outputs),
        }
    }
}
