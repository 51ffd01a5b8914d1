//! Weights rearranged for the tiles of a convolution.

use super::geometry::Class;
use crate::array::Array;
use crate::error::Result;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::packing::RowPanels;
use crate::kernels::gemm::real::Real;
use crate::parallel;
use crate::simd::Isa;

/// Where a weight is: element (group, destination channel, source channel, tap) of the tensor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WeightStrides {
    pub(crate) group: isize,
    pub(crate) destination: isize,
    pub(crate) source: isize,
    pub(crate) taps: [isize; 3],
}

/// Weights of all groups and classes in the order the tiles read them: for each group, class and row
/// panel, steps (source channel, taps) of the panel's rows.
#[derive(Clone)]
pub(crate) struct PackedWeights {
    data: Array,
    /// Elements of one group, and where each class begins inside it.
    group: usize,
    classes: Vec<usize>,
}

/// Elements from which on packing is worth a region.
const SPLIT_FROM: usize = 1 << 16;

impl PackedWeights {
    /// Packs `groups` of `destinations` by `sources` channels.
    ///
    /// # Errors
    /// `Memory` when there is no room.
    pub(crate) fn new<E: Real>(
        operator: &str,
        isa: Isa,
        w: &Array,
        strides: WeightStrides,
        (groups, destinations, sources): (usize, usize, usize),
        classes: &[Class],
    ) -> Result<Self> {
        let panels = RowPanels::new::<E>(isa, destinations);
        let mut begins = Vec::with_capacity(classes.len());
        let mut group = 0;
        for class in classes {
            begins.push(group);
            group += destinations * sources * class.tap_count();
        }
        let data = Array::uninit(operator, E::DTYPE, &[groups, group])?;
        let job = Shared::new((w.as_ptr::<E>(), data.as_mut_ptr::<E>()));
        let items = groups * classes.len() * panels.count;
        let each = (SPLIT_FROM * items / (groups * group).max(1)).max(1);
        parallel::for_ranges(items, each, |range| {
            let (from, to) = job.get();
            for item in range {
                let panel = item % panels.count;
                let class_index = item / panels.count % classes.len();
                let g = item / panels.count / classes.len();
                let class = &classes[class_index];
                let steps = sources * class.tap_count();
                let (start, rows) = (panels.start(panel), panels.rows(panel));
                // SAFETY: each item is its own part of `data`, and the weights exist.
                unsafe {
                    let to = to.add(g * group + begins[class_index] + start * steps);
                    let at = g as isize * strides.group + start as isize * strides.destination;
                    pack(to, from.offset(at), strides, rows, sources, class);
                }
            }
        });
        Ok(Self { data, group, classes: begins })
    }

    pub(crate) fn ptr<E: Real>(&self, group: usize, class: usize) -> *const E {
        self.data.as_ptr::<E>().wrapping_add(group * self.group + self.classes[class])
    }
}

unsafe fn pack<E: Real>(
    mut to: *mut E,
    from: *const E,
    strides: WeightStrides,
    rows: usize,
    sources: usize,
    class: &Class,
) {
    let [td, th, tw] = strides.taps;
    for c in 0..sources as isize {
        for &(kd, _) in &class.taps[0] {
            for &(kh, _) in &class.taps[1] {
                for &(kw, _) in &class.taps[2] {
                    let at =
                        c * strides.source + kd as isize * td + kh as isize * th + kw as isize * tw;
                    for r in 0..rows {
                        // SAFETY: the caller's panel and weights.
                        unsafe {
                            *to = *from.offset(at + r as isize * strides.destination);
                            to = to.add(1);
                        }
                    }
                }
            }
        }
    }
}
