//! Weights rearranged for the tiles of a convolution.

use super::geometry::Class;
use crate::array::Array;
use crate::error::Result;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::packing::{RowPanels, panel_width};
use crate::kernels::gemm::real::Real;
use crate::kernels::gemm::transpose::gather_columns;
use crate::once::SetOnce;
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

/// Channels of one group, and groups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Channels {
    pub(crate) groups: usize,
    pub(crate) destinations: usize,
    pub(crate) sources: usize,
}

/// Whether destination channels are the rows of the tiles or their columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Panels of a tile's rows.
    Rows,
    /// Panels of whole vectors, the last one filled with zeros.
    Columns,
}

/// Weights in the order the tiles read them: for each group, class and panel of destination channels,
/// the steps (source channel, taps). Each side is packed when it is first asked for.
pub(crate) struct Weights {
    w: Array,
    strides: WeightStrides,
    channels: Channels,
    rows: SetOnce<Packed>,
    columns: SetOnce<Packed>,
}

/// One side of the weights.
pub(crate) struct Packed {
    data: Array,
    /// Elements of one group, and where each class begins inside it.
    group: usize,
    classes: Vec<usize>,
}

impl Packed {
    pub(crate) fn ptr<E: Real>(&self, group: usize, class: usize) -> *const E {
        self.data.as_ptr::<E>().wrapping_add(group * self.group + self.classes[class])
    }
}

/// Elements from which on packing is worth a region.
const SPLIT_FROM: usize = 1 << 16;

impl Weights {
    pub(crate) fn new(w: &Array, strides: WeightStrides, channels: Channels) -> Self {
        let (rows, columns) = (SetOnce::new(), SetOnce::new());
        Self { w: w.clone(), strides, channels, rows, columns }
    }

    /// One side of the weights for these classes, which are the same at every call.
    ///
    /// # Errors
    /// `Memory` when there is no room.
    pub(crate) fn side<E: Real>(
        &self,
        operator: &str,
        isa: Isa,
        side: Side,
        classes: &[Class],
    ) -> Result<&Packed> {
        let slot = if side == Side::Rows { &self.rows } else { &self.columns };
        if let Some(packed) = slot.get() {
            return Ok(packed);
        }
        let packed = self.pack::<E>(operator, isa, side, classes)?;
        Ok(slot.set(packed))
    }

    fn pack<E: Real>(
        &self,
        operator: &str,
        isa: Isa,
        side: Side,
        classes: &[Class],
    ) -> Result<Packed> {
        let Channels { groups, destinations, sources } = self.channels;
        let width = panel_width::<E>(isa);
        let panels = RowPanels::new::<E>(isa, destinations);
        let (count, padded) = match side {
            Side::Rows => (panels.count, destinations),
            Side::Columns => (destinations.div_ceil(width), destinations.next_multiple_of(width)),
        };
        let mut begins = Vec::with_capacity(classes.len());
        let mut group = 0;
        for class in classes {
            begins.push(group);
            group += padded * sources * class.tap_count();
        }
        let data = Array::uninit(operator, E::DTYPE, &[groups, group])?;
        let job = Shared::new((self.w.as_ptr::<E>(), data.as_mut_ptr::<E>()));
        let strides = self.strides;
        let items = groups * classes.len() * count;
        let each = (SPLIT_FROM * items / (groups * group).max(1)).max(1);
        parallel::for_ranges(items, each, |range| {
            let (from, to) = job.get();
            for item in range {
                let panel = item % count;
                let class_index = item / count % classes.len();
                let g = item / count / classes.len();
                let class = &classes[class_index];
                let steps = sources * class.tap_count();
                let (start, valid, width) = match side {
                    Side::Rows => (panels.start(panel), panels.rows(panel), panels.rows(panel)),
                    Side::Columns => {
                        (panel * width, width.min(destinations - panel * width), width)
                    }
                };
                // SAFETY: each item is its own part of `data`, and the weights exist.
                unsafe {
                    let to = to.add(g * group + begins[class_index] + start * steps);
                    let at = g as isize * strides.group + start as isize * strides.destination;
                    pack(to, width, valid, from.offset(at), strides, sources, class);
                }
            }
        });
        Ok(Packed { data, group, classes: begins })
    }
}

/// `to[step * width + j] = w[j, step]` for `valid` columns, zeros behind them.
unsafe fn pack<E: Real>(
    to: *mut E,
    width: usize,
    valid: usize,
    from: *const E,
    strides: WeightStrides,
    sources: usize,
    class: &Class,
) {
    let taps = class.tap_count();
    let [td, th, tw] = strides.taps;
    let [d, h, w] = &class.taps;
    let column = |j: usize| from.wrapping_offset(j as isize * strides.destination);
    let ascending = [d, h, w].iter().all(|axis| axis.windows(2).all(|p| p[0].0 + 1 == p[1].0));
    let (sd, sh, sw) = ((h.len() * w.len()) as isize, w.len() as isize, 1);
    let along = ascending
        && (d.len() < 2 || td == sd)
        && (h.len() < 2 || th == sh)
        && (w.len() < 2 || tw == sw);
    // SAFETY: the caller's panel and weights.
    unsafe {
        if valid < width {
            for step in 0..sources * taps {
                std::slice::from_raw_parts_mut(to.add(step * width + valid), width - valid)
                    .fill(E::default());
            }
        }
        if along && taps > 0 {
            let first = d[0].0 as isize * td + h[0].0 as isize * th + w[0].0 as isize * tw;
            let whole = strides.source == taps as isize;
            let (runs, steps) = if whole { (1, sources * taps) } else { (sources, taps) };
            for run in 0..runs {
                let at = first + run as isize * strides.source;
                let to = to.add(run * steps * width);
                gather_columns(to, width, valid, steps, false, |j| column(j).offset(at));
            }
            return;
        }
        let mut to = to;
        for c in 0..sources as isize {
            for &(kd, _) in d {
                for &(kh, _) in h {
                    for &(kw, _) in w {
                        let at = c * strides.source
                            + kd as isize * td
                            + kh as isize * th
                            + kw as isize * tw;
                        for j in 0..valid {
                            *to.add(j) = *column(j).offset(at);
                        }
                        to = to.add(width);
                    }
                }
            }
        }
    }
}
