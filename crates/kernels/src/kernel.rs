//! The [`Kernel`] trait: an operator prepared with its attributes, and the checks around its calls.

use crate::array::{Array, Meta, Write};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::kernels::epilogue::{Before, ChannelAxis, Epilogue, Step};
use crate::kernels::fusion::Fused;
use smallvec::SmallVec;
use std::sync::Arc;

pub use crate::bound::bind;
pub use crate::kernels::fusion::fuse;

pub type Metas = SmallVec<[Meta; 2]>;
pub type Outputs = SmallVec<[Array; 2]>;

/// An operator with its attributes read. Kernels are immutable and shared between threads.
pub trait Kernel: Send + Sync {
    /// The operator's name, for messages.
    fn name(&self) -> &'static str;

    /// Dtypes and shapes of the outputs. All checks of inputs happen here: `run` may rely on them.
    ///
    /// # Errors
    /// What does not fit, naming this operator.
    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas>;

    /// Computes the outputs, which are contiguous arrays of the inferred dtype and shape. Inputs may
    /// be strided. An input may be the same memory as an output only for the pairs of `in_place`.
    ///
    /// # Errors
    /// Only what depends on values (an index out of range) or on memory for scratch space.
    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()>;

    /// For operators whose output shapes depend on values: checks, computes and allocates the
    /// outputs. `None` for all others; then `infer` reports that shapes are not known beforehand.
    fn run_dynamic(&self, _inputs: &[Option<&Array>]) -> Option<Result<Outputs>> {
        None
    }

    /// A kernel with these constant inputs prepared (packed) once, independent of the other
    /// inputs' shapes; called with the same inputs as this one. `None` when nothing is gained.
    ///
    /// # Errors
    /// When a constant does not fit.
    fn bind(&self, _constants: &[Option<&Array>]) -> Result<Option<Arc<dyn Kernel>>> {
        Ok(None)
    }

    /// Pairs (input, output) that may share memory exactly.
    fn in_place(&self) -> &[(usize, usize)] {
        &[]
    }

    /// Whether `infer` always declares a single output, so that a call returns it bare.
    fn single_output(&self) -> bool {
        true
    }

    /// The axis of the channels of a kernel whose output other kernels can follow in its tiles.
    fn channel_axis(&self) -> Option<ChannelAxis> {
        None
    }

    /// This kernel as a step on the output of another one; `None` when it is not elementwise.
    fn as_step(&self, _before: &Before<'_>) -> Option<Step> {
        None
    }

    /// As `run`, with the epilogue's steps on every output; `None`, and nothing computed, where the
    /// output is not computed in tiles.
    fn run_with(
        &self,
        _inputs: &[Option<&Array>],
        _output: &Array,
        _epilogue: &Epilogue<'_>,
    ) -> Option<Result<()>> {
        None
    }

    /// This kernel, when others follow it already.
    fn as_fused(&self) -> Option<&Fused> {
        None
    }

    /// Number of outputs, if it depends on the attributes alone (used for listing and checks).
    fn is_random(&self) -> bool {
        false
    }
}

/// A row of the registry: how to prepare the operator `name`.
pub struct Entry {
    pub name: &'static str,
    pub build: fn(&mut Attributes) -> Result<Arc<dyn Kernel>>,
}

/// Checks and infers, allocates the outputs and runs: the whole of an eager call.
///
/// # Errors
/// Whatever `infer` or `run` reports, or `Memory`.
pub fn call(kernel: &dyn Kernel, inputs: &[Option<&Array>]) -> Result<Outputs> {
    if let Some(outputs) = kernel.run_dynamic(inputs) {
        return outputs;
    }
    let mut outputs = Outputs::new();
    for meta in infer_for(kernel, inputs)? {
        outputs.push(Array::for_meta(kernel.name(), meta)?);
    }
    kernel.run(inputs, &outputs)?;
    Ok(outputs)
}

/// Infers the outputs for arrays.
///
/// # Errors
/// As [`Kernel::infer`].
pub fn infer_for(kernel: &dyn Kernel, inputs: &[Option<&Array>]) -> Result<Metas> {
    let mut metas: SmallVec<[Option<&Meta>; 8]> = SmallVec::new();
    for input in inputs {
        metas.push(input.map(Array::as_meta));
    }
    kernel.infer(&metas)
}

/// Runs into existing arrays after checking that they fit and overlap nothing they must not, and
/// bumps the versions of what was written.
///
/// # Errors
/// `Usage` for outputs that are read-only, strided, of the wrong shape or dtype, or overlapping.
pub fn run_into(kernel: &dyn Kernel, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
    let name = kernel.name();
    let metas = infer_for(kernel, inputs)?;
    if metas.len() != outputs.len() {
        let (want, got) = (metas.len(), outputs.len());
        return Err(Error::usage(name, format!("{want} outputs"), format!("{got}")));
    }
    for (i, (meta, out)) in metas.iter().zip(outputs).enumerate() {
        if out.dtype() != meta.dtype || out.shape() != meta.shape.as_slice() {
            return Err(Error::usage(
                name,
                format!("output {i} to be {} {:?}", meta.dtype.name(), meta.shape),
                format!("{} {:?}", out.dtype().name(), out.shape()),
            ));
        }
        if !out.is_contiguous() || out.storage().read_only() {
            return Err(Error::usage(
                name,
                format!("output {i} to be contiguous and writable"),
                "an array that is not",
            ));
        }
        for (j, input) in inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            let same = kernel.in_place().contains(&(j, i))
                && input.is_contiguous()
                && input.size() == out.size()
                && input.dtype() == out.dtype()
                && input.byte_range() == out.byte_range();
            if out.overlaps(input) && !same {
                return Err(Error::usage(
                    name,
                    format!("output {i} not to overlap input {j}"),
                    "arrays that share elements",
                ));
            }
        }
        if outputs[..i].iter().any(|other| other.overlaps(out)) {
            return Err(Error::usage(name, "outputs that do not overlap", "two that do"));
        }
    }
    let _writes: SmallVec<[Write<'_>; 4]> =
        outputs.iter().map(|out| out.storage().write()).collect();
    kernel.run(inputs, outputs)
}

/// The inputs of one kernel call with the checks that every operator repeats.
pub struct Inputs<'a> {
    operator: &'static str,
    metas: &'a [Option<&'a Meta>],
}

impl<'a> Inputs<'a> {
    /// Between `min` and `max` inputs, the first `min` of them present.
    ///
    /// # Errors
    /// `Usage` with the counts.
    pub fn new(
        operator: &'static str,
        metas: &'a [Option<&'a Meta>],
        min: usize,
        max: usize,
    ) -> Result<Self> {
        if metas.len() < min || metas.len() > max {
            let range = if min == max { format!("{min}") } else { format!("{min} to {max}") };
            let got = format!("{}", metas.len());
            return Err(Error::usage(operator, format!("{range} inputs"), got));
        }
        if let Some(missing) = metas[..min].iter().position(Option::is_none) {
            return Err(Error::usage(operator, format!("input {missing}"), "none"));
        }
        Ok(Self { operator, metas })
    }

    /// A required input.
    ///
    /// # Panics
    /// When `index` is not below the `min` of construction: a mistake of the kernel.
    #[must_use]
    pub fn get(&self, index: usize) -> &'a Meta {
        self.metas[index].expect("index below the required number of inputs")
    }

    #[must_use]
    pub fn opt(&self, index: usize) -> Option<&'a Meta> {
        self.metas.get(index).copied().flatten()
    }

    /// All present inputs among `indices` share a dtype, which is returned.
    ///
    /// # Errors
    /// `Dtype` naming the two that differ.
    pub fn same_dtype(&self, indices: &[usize]) -> Result<crate::dtype::DType> {
        let first = self.get(indices[0]).dtype;
        for &i in &indices[1..] {
            if let Some(meta) = self.opt(i)
                && meta.dtype != first
            {
                return Err(Error::dtype(
                    self.operator,
                    format!("input {i} of dtype {}", first.name()),
                    meta.dtype.name(),
                ));
            }
        }
        Ok(first)
    }
}
