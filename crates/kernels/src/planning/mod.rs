//! From a list of calls on values to a [`Program`]: what is needed, what is computed together, and
//! where every value lives.

mod arena;
mod joining;
mod placing;

use crate::array::{Array, Dims, Meta};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::program::Program;
use smallvec::SmallVec;
use std::sync::Arc;

const OP: &str = "Draft";

/// Where the elements of a value come from.
enum Source {
    /// Given at each run.
    Input,
    Constant(Array),
    /// Written by a call.
    Made,
    /// Contiguous elements of an earlier value, from an offset on, which counts its elements.
    View {
        root: usize,
        offset: usize,
    },
}

struct Value {
    meta: Meta,
    source: Source,
}

/// One call, or several that are computed together.
struct Work {
    kernel: Arc<dyn Kernel>,
    inputs: Vec<Option<usize>>,
    outputs: SmallVec<[usize; 2]>,
    label: String,
}

/// Values and calls in order. A value is known by its index.
#[derive(Default)]
pub struct Draft {
    values: Vec<Value>,
    calls: Vec<Work>,
}

impl Draft {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn add(&mut self, meta: Meta, source: Source) -> usize {
        self.values.push(Value { meta, source });
        self.values.len() - 1
    }

    /// A value that each run gets; inputs are taken in the order in which they are added.
    pub fn input(&mut self, meta: Meta) -> usize {
        self.add(meta, Source::Input)
    }

    /// A value that is known.
    pub fn constant(&mut self, array: Array) -> usize {
        self.add(array.meta(), Source::Constant(array))
    }

    /// The elements of a value from `offset` on, in another shape.
    ///
    /// # Errors
    /// `Bounds` when they are not inside the value.
    pub fn view(&mut self, base: usize, shape: &[usize], offset: usize) -> Result<usize> {
        let given = self.value(base)?;
        let dtype = given.meta.dtype;
        let count = crate::array::element_count(OP, shape, dtype)?;
        let have = given.meta.size();
        if offset.checked_add(count).is_none_or(|end| end > have) {
            return Err(Error::bounds(
                OP,
                format!("a view inside {have} elements"),
                format!("{count} from {offset}"),
            ));
        }
        let (root, before) = match given.source {
            Source::View { root, offset } => (root, offset),
            _ => (base, 0),
        };
        let source = Source::View { root, offset: before + offset };
        Ok(self.add(Meta { dtype, shape: Dims::from_slice(shape) }, source))
    }

    /// The outputs of a kernel on values, as new values.
    ///
    /// # Errors
    /// What [`Kernel::infer`] reports.
    pub fn call(
        &mut self,
        kernel: &Arc<dyn Kernel>,
        inputs: &[Option<usize>],
        label: &str,
    ) -> Result<SmallVec<[usize; 2]>> {
        let made = {
            let metas: Result<SmallVec<[Option<&Meta>; 8]>> =
                inputs.iter().map(|input| input.map(|i| self.meta(i)).transpose()).collect();
            kernel.infer(&metas?)?
        };
        let outputs: SmallVec<[usize; 2]> =
            made.into_iter().map(|meta| self.add(meta, Source::Made)).collect();
        self.calls.push(Work {
            kernel: kernel.clone(),
            inputs: inputs.to_vec(),
            outputs: outputs.clone(),
            label: label.to_owned(),
        });
        Ok(outputs)
    }

    /// The dtype and shape of a value.
    ///
    /// # Errors
    /// `Usage` for an index of no value.
    pub fn meta(&self, index: usize) -> Result<&Meta> {
        Ok(&self.value(index)?.meta)
    }

    fn value(&self, index: usize) -> Result<&Value> {
        let count = self.values.len();
        self.values.get(index).ok_or_else(|| {
            Error::usage(OP, format!("the index of one of {count} values"), format!("{index}"))
        })
    }

    /// The value that owns the memory of a value.
    fn root(&self, index: usize) -> usize {
        match self.values[index].source {
            Source::View { root, .. } => root,
            _ => index,
        }
    }

    fn shape(&self, index: usize) -> &[usize] {
        &self.values[index].meta.shape
    }

    fn known(&self, index: usize) -> Option<&Array> {
        match &self.values[index].source {
            Source::Constant(array) => Some(array),
            _ => None,
        }
    }

    fn bytes(&self, index: usize) -> usize {
        let meta = &self.values[index].meta;
        meta.size() * meta.dtype.size()
    }

    /// The program that computes `results`, and the label of each of its calls.
    ///
    /// # Errors
    /// `Usage` for results that are no values, `Memory` for a plan that needs more memory than a
    /// machine can have.
    pub fn finish(mut self, results: &[usize]) -> Result<(Program, Vec<String>)> {
        for &result in results {
            self.value(result)?;
        }
        self.keep_reachable(results);
        self.join(results);
        let calls = std::mem::take(&mut self.calls);
        placing::program(&self, calls, results)
    }

    /// Drops the calls that no result depends on.
    fn keep_reachable(&mut self, results: &[usize]) {
        let mut wanted = vec![false; self.values.len()];
        for &result in results {
            wanted[self.root(result)] = true;
        }
        let mut keep = vec![false; self.calls.len()];
        for (n, call) in self.calls.iter().enumerate().rev() {
            if call.outputs.iter().any(|&output| wanted[output]) {
                keep[n] = true;
                for &input in call.inputs.iter().flatten() {
                    wanted[self.root(input)] = true;
                }
            }
        }
        let mut keep = keep.into_iter();
        self.calls.retain(|_| keep.next().unwrap_or(true));
    }
}
