//! Where the values of a plan live: arena offsets from lifetimes, in place where kernels allow it.

use super::arena::{Regions, padded};
use super::{Draft, Source, Value, Work};
use crate::array::contiguous_strides;
use crate::error::{Error, Result};
use crate::program::{Call, Place, Program};
use smallvec::SmallVec;

const NONE: usize = usize::MAX;

/// Lifetimes and offsets of what the calls write into the arena.
struct Placing<'a> {
    draft: &'a Draft,
    /// The last call that reads or writes a value's memory.
    last: Vec<usize>,
    /// Arena offsets; `NONE` for what lives elsewhere.
    offsets: Vec<usize>,
    regions: Regions,
}

/// The program of joined calls, and the label of each.
pub(super) fn program(
    draft: &Draft,
    calls: Vec<Work>,
    results: &[usize],
) -> Result<(Program, Vec<String>)> {
    let count = draft.values.len();
    let mut shown = vec![0usize; count];
    let mut roots: Vec<usize> = Vec::with_capacity(results.len());
    for &result in results {
        let root = draft.root(result);
        if shown[root] == 0 {
            roots.push(root);
        }
        shown[root] += 1;
    }
    let mut placing = Placing {
        draft,
        last: vec![NONE; count],
        offsets: vec![NONE; count],
        regions: Regions::default(),
    };
    let is_result: Vec<bool> = shown.iter().map(|&n| n > 0).collect();
    placing.assign(&calls, &is_result)?;
    let mut arena = placing.regions.size();
    // A value that several results show stays in the arena: the program then copies each result.
    for root in roots {
        let made = matches!(draft.values[root].source, Source::Made);
        if made && shown[root] > 1 {
            placing.offsets[root] = arena;
            arena = arena.checked_add(padded(draft.bytes(root))).ok_or_else(|| {
                Error::memory("Program", "working memory that an address space holds", "more")
            })?;
        }
    }
    placing.finish(calls, results, arena)
}

impl Placing<'_> {
    fn assign(&mut self, calls: &[Work], is_result: &[bool]) -> Result<()> {
        let draft = self.draft;
        for (n, call) in calls.iter().enumerate() {
            for &input in call.inputs.iter().flatten() {
                self.last[draft.root(input)] = n;
            }
            for &output in &call.outputs {
                if self.last[output] == NONE {
                    self.last[output] = n;
                }
            }
        }
        let mut ended: SmallVec<[usize; 8]> = SmallVec::new();
        for (n, call) in calls.iter().enumerate() {
            let mut taken: SmallVec<[usize; 2]> = SmallVec::new();
            for (position, &output) in call.outputs.iter().enumerate() {
                if is_result[output] {
                    continue;
                }
                let source = self.in_place(call, position, n).filter(|s| !taken.contains(s));
                self.offsets[output] = match source {
                    Some(source) => {
                        taken.push(source);
                        self.offsets[source]
                    }
                    None => self.regions.take(padded(draft.bytes(output)))?,
                };
            }
            ended.clear();
            let read = call.inputs.iter().flatten().map(|&input| draft.root(input));
            for value in read.chain(call.outputs.iter().copied()) {
                let over = self.offsets[value] != NONE && self.last[value] == n;
                if over && !taken.contains(&value) && !ended.contains(&value) {
                    ended.push(value);
                }
            }
            ended.sort_unstable_by_key(|&value| self.offsets[value]);
            for &value in &ended {
                self.regions.give(self.offsets[value], padded(draft.bytes(value)));
            }
        }
        Ok(())
    }

    /// The input whose memory an output may take over: read here for the last time, and only so.
    fn in_place(&self, call: &Work, position: usize, n: usize) -> Option<usize> {
        let draft = self.draft;
        let pairs = call.kernel.in_place();
        let target = call.outputs[position];
        for &(source, _) in pairs.iter().filter(|pair| pair.1 == position) {
            let Some(value) = call.inputs.get(source).copied().flatten() else { continue };
            let root = draft.root(value);
            if self.offsets[root] == NONE || self.last[root] != n {
                continue;
            }
            let dtype = |index: usize| draft.values[index].meta.dtype;
            let size = |index: usize| draft.values[index].meta.size();
            if dtype(value) != dtype(target)
                || size(value) != size(target)
                || size(root) != size(value)
            {
                continue;
            }
            let mut readers =
                call.inputs.iter().enumerate().filter_map(|(i, &input)| Some((i, input?)));
            if readers.all(|(i, input)| {
                draft.root(input) != root
                    || (pairs.contains(&(i, position)) && draft.shape(input) == draft.shape(value))
            }) {
                return Some(root);
            }
        }
        None
    }

    fn finish(
        self,
        calls: Vec<Work>,
        results: &[usize],
        arena: usize,
    ) -> Result<(Program, Vec<String>)> {
        let draft = self.draft;
        let mut places = Vec::with_capacity(draft.values.len());
        let mut index = vec![NONE; draft.values.len()];
        for (value, _) in
            draft.values.iter().enumerate().filter(|(_, v)| matches!(v.source, Source::Input))
        {
            index[value] = places.len();
            places.push(Place::Input(draft.values[value].meta.clone()));
        }
        let mut place = |value: usize| {
            for needed in [draft.root(value), value] {
                if index[needed] == NONE {
                    index[needed] = places.len();
                    places.push(self.place(needed, &index));
                }
            }
            index[value]
        };
        let mut labels = Vec::with_capacity(calls.len());
        let mut listed = Vec::with_capacity(calls.len());
        for call in calls {
            labels.push(call.label);
            listed.push(Call {
                inputs: call.inputs.iter().map(|input| input.map(&mut place)).collect(),
                outputs: call.outputs.iter().map(|&output| place(output)).collect(),
                kernel: call.kernel,
            });
        }
        let outputs = results.iter().map(|&result| place(result)).collect();
        Ok((Program::new(places, listed, outputs, arena)?, labels))
    }

    fn place(&self, value: usize, index: &[usize]) -> Place {
        let Value { meta, source } = &self.draft.values[value];
        match source {
            Source::Input => Place::Input(meta.clone()),
            Source::Constant(array) => Place::Constant(array.clone()),
            Source::Made if self.offsets[value] == NONE => Place::Output(meta.clone()),
            Source::Made => Place::Arena(meta.clone(), self.offsets[value]),
            &Source::View { root, offset } => Place::View {
                base: index[root],
                shape: meta.shape.clone(),
                strides: contiguous_strides(&meta.shape),
                offset,
            },
        }
    }
}
