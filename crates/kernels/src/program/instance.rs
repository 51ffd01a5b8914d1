//! One arena with every value resolved to an array: what a single run works on.

use super::{OP, Place, Program};
use crate::array::{Array, Storage};
use crate::error::{Error, Result};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) struct Instance {
    /// One array for each value; `None` where it depends on this run's inputs or outputs.
    arrays: Vec<Option<Array>>,
    /// Values to resolve at each run, in order.
    per_run: Vec<usize>,
    /// Whether a value is the base of a view, whose strides mean a contiguous one.
    viewed: Vec<bool>,
    _arena: Arc<Storage>,
}

impl Instance {
    pub(super) fn new(program: &Program) -> Result<Self> {
        let arena = Arc::new(Storage::uninit(program.arena_bytes)?);
        let mut arrays: Vec<Option<Array>> = Vec::with_capacity(program.values.len());
        let mut per_run = Vec::new();
        let mut viewed = vec![false; program.values.len()];
        for place in &program.values {
            if let Place::View { base, .. } = place {
                viewed[*base] = true;
            }
        }
        for (i, place) in program.values.iter().enumerate() {
            let array = match place {
                Place::Constant(a) if viewed[i] => Some(a.to_contiguous()?.into_owned()),
                Place::Constant(a) => Some(a.clone()),
                Place::Arena(meta, at) => Some(Array::from_parts(
                    arena.clone(),
                    meta.dtype,
                    &meta.shape,
                    &crate::array::contiguous_strides(&meta.shape),
                    at / meta.dtype.size(),
                )?),
                Place::View { base, .. } => match &arrays[*base] {
                    Some(b) => Some(view(b, place)?),
                    None => None,
                },
                Place::Input(_) | Place::Output(_) => None,
            };
            if array.is_none() {
                per_run.push(i);
            }
            arrays.push(array);
        }
        Ok(Self { arrays, per_run, viewed, _arena: arena })
    }

    fn resolve(&mut self, program: &Program, inputs: &[Array]) -> Result<()> {
        let mut next = inputs.iter();
        for &i in &self.per_run {
            let array = match &program.values[i] {
                Place::Input(_) => match next.next() {
                    Some(a) if self.viewed[i] => Some(a.to_contiguous()?.into_owned()),
                    given => given.cloned(),
                },
                Place::Output(meta) => Some(Array::uninit(OP, meta.dtype, &meta.shape)?),
                place @ Place::View { base, .. } => match &self.arrays[*base] {
                    Some(b) => Some(view(b, place)?),
                    None => None,
                },
                Place::Constant(_) | Place::Arena(..) => None,
            };
            self.arrays[i] = array;
        }
        Ok(())
    }

    pub(super) fn resolved(mut self, program: &Program, inputs: &[Array]) -> Result<Vec<Array>> {
        self.resolve(program, inputs)?;
        Ok(self.arrays.into_iter().flatten().collect())
    }

    pub(super) fn run(
        &mut self,
        program: &Program,
        inputs: &[Array],
        around: impl Fn(usize, &dyn Fn() -> Result<()>) -> Result<()>,
    ) -> Result<Vec<Array>> {
        self.resolve(program, inputs)?;
        let arrays = &self.arrays;
        for (n, call) in program.calls.iter().enumerate() {
            let ins: SmallVec<[Option<&Array>; 8]> =
                call.inputs.iter().map(|i| i.and_then(|i| arrays[i].as_ref())).collect();
            let outs: SmallVec<[Array; 2]> =
                call.outputs.iter().filter_map(|&o| arrays[o].clone()).collect();
            around(n, &|| call.kernel.run(&ins, &outs))?;
        }
        program
            .outputs
            .iter()
            .map(|&o| {
                let array = arrays[o].as_ref().expect("resolved above");
                match program.values[root(program, o)] {
                    Place::Output(_) => Ok(array.clone()),
                    // Anything else would alias the arena, a constant or the caller's input.
                    _ => array.copy(),
                }
            })
            .collect()
    }

    /// Drops what belongs to one run, so that an idle instance keeps no caller's memory alive.
    pub(super) fn release(&mut self) {
        for &i in &self.per_run {
            self.arrays[i] = None;
        }
    }
}

fn view(base: &Array, place: &Place) -> Result<Array> {
    let Place::View { shape, strides, offset, .. } = place else {
        return Ok(base.clone());
    };
    let offset = base.offset().checked_add(*offset).ok_or_else(|| {
        Error::bounds(OP, "the offset of a view inside its base", offset.to_string())
    })?;
    Array::from_parts(base.storage().clone(), base.dtype(), shape, strides, offset)
}

/// The value that a chain of views starts from.
pub(super) fn root(program: &Program, mut index: usize) -> usize {
    while let Place::View { base, .. } = program.values[index] {
        index = base;
    }
    index
}
