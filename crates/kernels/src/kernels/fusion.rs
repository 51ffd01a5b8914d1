//! A product or a convolution together with the elementwise kernels that follow it.

use crate::array::{Array, Dims, Meta};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Metas};
use crate::kernels::epilogue::{Before, ChannelAxis, Epilogue, Step};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// A following kernel as it stands by itself, for what is not computed in tiles.
#[derive(Clone)]
struct Separate {
    kernel: Arc<dyn Kernel>,
    at: usize,
    constants: Vec<Option<Array>>,
    /// The additional input that it reads.
    input: Option<usize>,
}

/// The kernel `first` and then others on its output. Inputs are those of the first, then one for each
/// other kernel that reads another value. Bits are those of the kernels one after the other.
#[derive(Clone)]
pub struct Fused {
    first: Arc<dyn Kernel>,
    own: usize,
    separate: Vec<Separate>,
    steps: Vec<Step>,
    inputs: usize,
    own_shape: Dims,
    shape: Dims,
}

/// `next` on the output of `first`, as one kernel; `None` where they are not computed together.
///
/// `next` reads the output at position `at`; `constants` holds its other inputs where they are known.
/// `own` is the number of inputs of `first` and `own_shape` the shape of its output; `next` sees the
/// same elements in the same order as `shape`.
#[must_use]
pub fn fuse(
    first: &Arc<dyn Kernel>,
    own: usize,
    own_shape: &[usize],
    next: &Arc<dyn Kernel>,
    at: usize,
    constants: &[Option<&Array>],
    shape: &[usize],
) -> Option<Arc<dyn Kernel>> {
    let open = (0..constants.len()).filter(|&i| i != at && constants[i].is_none()).count();
    if open > 1 || at >= constants.len() || shape.is_empty() {
        return None;
    }
    let mut fused = match first.as_fused() {
        Some(fused) => fused.clone(),
        None => Fused {
            first: first.clone(),
            own,
            separate: Vec::new(),
            steps: Vec::new(),
            inputs: 0,
            own_shape: Dims::from_slice(own_shape),
            shape: Dims::new(),
        },
    };
    let axis = fused.first.channel_axis()?.seen_in(shape, &fused.own_shape);
    if fused.own_shape.iter().product::<usize>() != shape.iter().product::<usize>() {
        return None;
    }
    let before = Before { at, constants, input: fused.inputs, shape, axis };
    let step = next.as_step(&before)?;
    fused.steps.push(step);
    fused.separate.push(Separate {
        kernel: next.clone(),
        at,
        constants: constants.iter().map(|c| c.cloned()).collect(),
        input: (open == 1).then_some(fused.inputs),
    });
    fused.inputs += open;
    fused.shape = Dims::from_slice(shape);
    Some(Arc::new(fused))
}

impl Fused {
    /// One kernel after the other, on the output's memory.
    fn run_apart(&self, inputs: &[Option<&Array>], out: &Array) -> Result<()> {
        let whole = out.reshape(&self.own_shape)?;
        self.first.run(&inputs[..self.own], std::slice::from_ref(&whole))?;
        let source = out.clone();
        for step in &self.separate {
            let mut arguments: SmallVec<[Option<&Array>; 8]> =
                step.constants.iter().map(Option::as_ref).collect();
            if let Some(input) = step.input {
                let free = (0..arguments.len()).find(|&i| i != step.at && arguments[i].is_none());
                if let Some(free) = free {
                    arguments[free] = inputs[self.own + input];
                }
            }
            arguments[step.at] = Some(&source);
            step.kernel.run(&arguments, std::slice::from_ref(out))?;
        }
        Ok(())
    }
}

impl Kernel for Fused {
    fn name(&self) -> &'static str {
        self.first.name()
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let name = self.name();
        if inputs.len() != self.own + self.inputs {
            let (want, got) = (self.own + self.inputs, inputs.len());
            return Err(Error::usage(name, format!("{want} inputs"), format!("{got}")));
        }
        let first = self.first.infer(&inputs[..self.own])?;
        let [meta] = first.as_slice() else {
            return Err(Error::usage(name, "a kernel of one output", format!("{}", first.len())));
        };
        if meta.shape != self.own_shape {
            let (want, got) = (&self.own_shape[..], &meta.shape[..]);
            return Err(Error::shape(name, format!("an output of {want:?}"), format!("{got:?}")));
        }
        for input in &inputs[self.own..] {
            let fits = input.is_some_and(|m| m.dtype == meta.dtype && m.shape == self.shape);
            if !fits {
                let want = format!("{} {:?} beside the output", meta.dtype.name(), &self.shape[..]);
                return Err(Error::shape(name, want, "another dtype or shape"));
            }
        }
        Ok(smallvec![Meta { dtype: meta.dtype, shape: self.shape.clone() }])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let out = &outputs[0];
        let mut dense: SmallVec<[Array; 2]> = SmallVec::new();
        for input in inputs[self.own..].iter().flatten() {
            dense.push(input.to_contiguous()?.into_owned());
        }
        if out.dtype() == DType::F32 && out.size() > 0 {
            let by_columns = self.first.channel_axis() == Some(ChannelAxis::Last);
            let epilogue = Epilogue {
                steps: &self.steps,
                inputs: dense.iter().map(Array::as_ptr::<f32>).collect(),
                destination: out.as_ptr(),
                by_columns,
            };
            let whole = out.reshape(&self.own_shape)?;
            if let Some(done) = self.first.run_with(&inputs[..self.own], &whole, &epilogue) {
                return done;
            }
        }
        self.run_apart(inputs, out)
    }

    fn as_fused(&self) -> Option<&Fused> {
        Some(self)
    }
}
