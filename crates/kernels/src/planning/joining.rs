//! Products and convolutions together with the elementwise calls that follow them.
//!
//! The kernel decides what it computes in its tiles; its bits are those of the calls one after the
//! other, so both arithmetic modes join.

use super::{Draft, Source, Work};
use crate::array::Array;
use crate::dtype::DType;
use crate::kernel::fuse;
use smallvec::SmallVec;

const NONE: usize = usize::MAX;

impl Draft {
    /// Makes calls that only follow another one part of it.
    pub(super) fn join(&mut self, results: &[usize]) {
        let mut uses = vec![0usize; self.values.len()];
        let read = self.calls.iter().flat_map(|call| call.inputs.iter().flatten());
        for &value in results.iter().chain(read) {
            uses[self.root(value)] += 1;
        }
        let mut kept: Vec<Option<Work>> = Vec::with_capacity(self.calls.len());
        let mut makers = vec![NONE; self.values.len()];
        for call in std::mem::take(&mut self.calls) {
            let work = match self.joined(&call, &kept, &makers, &uses) {
                Some((maker, joined)) => {
                    kept[maker] = None;
                    joined
                }
                None => call,
            };
            for &output in &work.outputs {
                makers[output] = kept.len();
            }
            kept.push(Some(work));
        }
        self.calls = kept.into_iter().flatten().collect();
    }

    /// The call as part of the one that made an input of it, and where that one stands.
    fn joined(
        &self,
        call: &Work,
        kept: &[Option<Work>],
        makers: &[usize],
        uses: &[usize],
    ) -> Option<(usize, Work)> {
        let [output] = call.outputs[..] else { return None };
        if self.values[output].meta.dtype != DType::F32 {
            return None;
        }
        let shape = self.shape(output);
        let mut candidates: SmallVec<[(usize, usize); 4]> = SmallVec::new();
        for (position, input) in call.inputs.iter().enumerate() {
            let Some(input) = *input else { continue };
            let root = self.root(input);
            if makers[root] != NONE
                && uses[root] == 1
                && self.whole(input)
                && self.shape(input) == shape
            {
                candidates.push((makers[root], position));
            }
        }
        // What was made last is joined, so that the other inputs are there before it runs.
        candidates.sort_unstable();
        for &(maker, position) in candidates.iter().rev() {
            let Some(before) = &kept[maker] else { continue };
            let [own] = before.outputs[..] else { continue };
            let free = call.inputs.iter().enumerate().filter(|&(i, _)| i != position);
            let others: SmallVec<[usize; 2]> =
                free.filter_map(|(_, &i)| i).filter(|&i| self.known(i).is_none()).collect();
            if others.iter().any(|&other| self.shape(other) != shape) {
                continue;
            }
            let constants: SmallVec<[Option<&Array>; 4]> =
                call.inputs.iter().map(|i| i.and_then(|i| self.known(i))).collect();
            let count = before.inputs.len();
            let own = self.shape(own);
            let kernel =
                fuse(&before.kernel, count, own, &call.kernel, position, &constants, shape);
            if let Some(kernel) = kernel {
                let mut inputs = before.inputs.clone();
                inputs.extend(others.into_iter().map(Some));
                let operator = call.label.split(' ').next().unwrap_or_default();
                let label = format!("{} + {operator}", before.label);
                return Some((
                    maker,
                    Work { kernel, inputs, outputs: call.outputs.clone(), label },
                ));
            }
        }
        None
    }

    /// Whether a value shows all elements of its memory in order.
    fn whole(&self, index: usize) -> bool {
        match self.values[index].source {
            Source::View { root, offset } => offset == 0 && self.bytes(index) == self.bytes(root),
            _ => true,
        }
    }
}
