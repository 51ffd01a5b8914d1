//! Convolution by tiles whose right operand is read from the source through a table of offsets.
//!
//! Order: `acc = bias` (or +0.0), then `acc = fma(x, w, acc)` over (channel in group, kernel depth,
//! kernel row, kernel column) ascending, padded taps included with x = +0.0.

use super::channels::{CHUNK, ChannelTiles, chunk_elements};
use super::depthwise::{self, Depthwise};
use super::geometry::{AXES, Class};
use super::outputs::Tiles;
use super::runs::Runs;
use super::source::{Form, Layout};
use super::weights::{Packed, Side, Weights};
use crate::error::Result;
use crate::kernels::epilogue::Tail;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::microkernel::{Start, TABLE_TAIL, span};
use crate::kernels::gemm::packing::RowPanels;
use crate::kernels::gemm::product::{parts_of, try_for_each};
use crate::kernels::gemm::real::Real;
use crate::parallel::{self, num_threads};
use crate::scratch::Scratch;
use crate::simd::{Isa, LANES, dispatch_on};

/// Elements that a tile may read past the last one it needs.
const SLACK: usize = 8 * LANES;
/// Units (images times groups) from which on a part takes whole units.
const MANY_UNITS: usize = 8;
/// How many times longer an operation of a depthwise convolution takes than one of a large product.
const DEPTHWISE_WEIGHT: usize = 6;
/// Elements of the copy that one band of rows reads, for the second-level cache.
const BAND: usize = 1 << 17;
/// Rows of a band, so that its neighbours copy little twice.
const FEWEST_ROWS: usize = 4;
/// Source elements from which on copying is worth a region.
const COPY_SPLIT_FROM: usize = 1 << 14;

/// What is convolved: extents, layouts and addresses.
pub(crate) struct Convolution<'a, E> {
    pub(crate) operator: &'static str,
    pub(crate) images: usize,
    pub(crate) groups: usize,
    /// Channels of one group.
    pub(crate) sources: usize,
    pub(crate) destinations: usize,
    pub(crate) source_step: [usize; AXES],
    pub(crate) source_sizes: [usize; AXES],
    pub(crate) destination_sizes: [usize; AXES],
    pub(crate) classes: &'a [Class],
    pub(crate) weights: &'a Weights,
    pub(crate) bias: Option<*const E>,
    pub(crate) relu: bool,
    /// Steps on finished outputs; only where there is one class of step 1.
    pub(crate) epilogue: Option<Tail<'a, E>>,
    pub(crate) source: *const E,
    pub(crate) destination: *mut E,
}

/// Working memory of one part.
struct Room {
    columns: Scratch,
    table: Scratch,
    accumulators: Scratch,
}

/// Its addresses.
#[derive(Clone, Copy)]
struct Addresses<E> {
    columns: *mut E,
    table: *mut u32,
    accumulators: *mut E,
}

impl Room {
    fn addresses<E: Real>(&mut self) -> Addresses<E> {
        Addresses {
            columns: self.columns.as_mut().as_mut_ptr(),
            table: self.table.as_mut().as_mut_ptr(),
            accumulators: self.accumulators.as_mut().as_mut_ptr(),
        }
    }
}

/// What all units share.
struct Plan<'p> {
    isa: Isa,
    layout: &'p Layout,
    weights: &'p Packed,
    side: Side,
    tables: *const u32,
}

/// The instruction set, the side of the vectors and the weights packed for both.
type How<'p> = (Isa, Side, &'p Packed);

impl<E: Real> Convolution<'_, E> {
    /// Computes all outputs on the pool.
    ///
    /// # Errors
    /// `Memory` when there is no room for the copied source.
    ///
    /// # Safety
    /// The addresses cover contiguous tensors of the named extents; the destination overlaps nothing.
    pub(crate) unsafe fn run(&self, isa: Isa) -> Result<()> {
        let units = self.images * self.groups;
        let plane: usize = self.destination_sizes.iter().product();
        if units == 0 || plane == 0 || self.destinations == 0 {
            return Ok(());
        }
        let by_channel = self.sources == 1
            && self.destinations == 1
            && self.classes.len() == 1
            && self.classes[0].count == self.destination_sizes;
        let form = if by_channel { depthwise::form(self.source_step) } else { Form::NEIGHBOURS };
        let layout = self.layout(form)?;
        let side = if self.by_channels(isa, &layout) { Side::Columns } else { Side::Rows };
        let weights = self.weights.side::<E>(self.operator, isa, side, self.classes)?;
        let outputs: usize =
            self.classes.iter().map(|c| c.tap_count() * c.count.iter().product::<usize>()).sum();
        let operations = 2 * self.destinations * self.sources * outputs;
        let bands = if by_channel { Vec::new() } else { self.bands(&layout) };
        if !bands.is_empty() {
            let parts = parts_of(operations.saturating_mul(units)).min(units * bands.len());
            return self.run_bands((isa, side, weights), &bands, parts);
        }
        let mut tables = Scratch::new(self.operator, self.table_entries() * size_of::<u32>())?;
        let tables = self.fill_tables(tables.as_mut::<u32>(), &layout).as_ptr();
        let plan = Plan { isa, layout: &layout, weights, side, tables };
        let unit_parts = parts_of(operations);
        let job = Shared::new((self, &plan));
        if unit_parts == 1 || units >= MANY_UNITS {
            let weight = if by_channel { DEPTHWISE_WEIGHT } else { 1 };
            let parts = parts_of(operations.saturating_mul(weight * units)).min(units);
            return try_for_each(parts, |part| {
                let (this, plan) = job.get();
                let mut copy = Scratch::new(this.operator, this.copy_bytes(plan.layout))?;
                let copy = copy.as_mut::<E>().as_mut_ptr();
                let range = (units * part / parts, units * (part + 1) / parts);
                if by_channel {
                    let (layout, table) = (plan.layout, plan.tables);
                    let weights = plan.weights.ptr::<E>(0, 0);
                    let units = range;
                    let part = Depthwise { convolution: this, layout, weights, table, copy, units };
                    dispatch_on(plan.isa, part);
                    return Ok(());
                }
                let mut room = this.room(plan)?;
                let room = room.addresses();
                for unit in range.0..range.1 {
                    // SAFETY: units are disjoint outputs; the scratch memory has the named sizes.
                    unsafe {
                        this.copy_source(plan.layout, unit, copy, 0, this.sources);
                        this.compute(plan, unit, copy, room, None);
                    }
                }
                Ok(())
            });
        }
        let mut copy = Scratch::new(self.operator, self.copy_bytes(&layout))?;
        let copy = Shared::new(copy.as_mut::<E>().as_mut_ptr());
        for unit in 0..units {
            if !layout.in_place {
                let each = (COPY_SPLIT_FROM / layout.channel.max(1)).max(1);
                parallel::for_ranges(self.sources, each, |range| {
                    let (this, plan) = job.get();
                    // SAFETY: channels are disjoint parts of the copy.
                    unsafe {
                        this.copy_source(plan.layout, unit, copy.get(), range.start, range.end);
                    }
                });
            }
            try_for_each(unit_parts, |part| {
                let (this, plan) = job.get();
                let mut room = this.room(plan)?;
                let room = room.addresses();
                // SAFETY: parts are disjoint outputs.
                unsafe { this.compute(plan, unit, copy.get(), room, Some((part, unit_parts))) };
                Ok(())
            })?;
        }
        Ok(())
    }

    fn layout(&self, form: Form) -> Result<Layout> {
        Layout::new(
            self.operator,
            self.classes,
            self.source_sizes,
            self.source_step,
            self.sources,
            form,
        )
    }

    /// The rows of outputs that one copy of about [`BAND`] elements serves, as classes of their own; none
    /// where one copy serves all of them.
    fn bands(&self, layout: &Layout) -> Vec<Class> {
        let [class] = self.classes else { return Vec::new() };
        let [depth, height, _] = class.count;
        let copied = layout.channel * self.sources;
        let rows = (BAND / (copied / height.max(1)).max(1)).max(FEWEST_ROWS);
        if layout.in_place || depth != 1 || layout.extents[0] != 1 || 2 * rows > height {
            return Vec::new();
        }
        // As many for each thread: a band is a chain's outputs whole, so no bit depends on them.
        let count = height.div_ceil(rows).next_multiple_of(num_threads().min(height / FEWEST_ROWS));
        (0..count)
            .map(|i| {
                let (from, until) = (height * i / count, height * (i + 1) / count);
                let mut band = class.clone();
                band.first[1] += from * class.step[1];
                band.count[1] = until - from;
                for (_, shift) in &mut band.taps[1] {
                    *shift += (from * self.source_step[1]) as isize;
                }
                band
            })
            .collect()
    }

    /// Computes some rows of outputs after the other, each from a copy of the rows that it reads, so
    /// that the copy stays in a cache.
    fn run_bands(&self, how: How<'_>, bands: &[Class], parts: usize) -> Result<()> {
        let items = self.images * self.groups * bands.len();
        let job = Shared::new((std::ptr::from_ref(self), std::ptr::from_ref(bands), how));
        try_for_each(parts, |part| {
            let (this, bands, how) = job.get();
            // SAFETY: both outlive the region.
            let (this, bands) = unsafe { (&*this, &*bands) };
            for item in items * part / parts..items * (part + 1) / parts {
                let (unit, band) = (item / bands.len(), item % bands.len());
                let classes = std::slice::from_ref(&bands[band]);
                Convolution { classes, ..*this }.run_band(how, unit)?;
            }
            Ok(())
        })
    }

    /// Computes one unit of a convolution whose class names some rows of the outputs.
    fn run_band(&self, (isa, side, weights): How<'_>, unit: usize) -> Result<()> {
        let layout = self.layout(Form { in_place: false, ..Form::NEIGHBOURS })?;
        let mut tables = Scratch::new(self.operator, self.table_entries() * size_of::<u32>())?;
        let tables = self.fill_tables(tables.as_mut::<u32>(), &layout).as_ptr();
        let plan = Plan { isa, layout: &layout, weights, side, tables };
        let mut copy = Scratch::new(self.operator, self.copy_bytes(&layout))?;
        let copy = copy.as_mut::<E>().as_mut_ptr();
        let mut room = self.room(&plan)?;
        let room = room.addresses();
        // SAFETY: bands are disjoint outputs; the scratch memory has the named sizes.
        unsafe {
            self.copy_source(&layout, unit, copy, 0, self.sources);
            self.compute(&plan, unit, copy, room, None);
        }
        Ok(())
    }

    /// Whether tiles with vectors of channels waste fewer lanes than tiles with vectors of outputs.
    fn by_channels(&self, isa: Isa, layout: &Layout) -> bool {
        const FEWEST_STEPS: usize = 64;
        let used = self.classes.iter().find(|c| c.tap_count() > 0 && !c.count.contains(&0));
        let Some(class) = used else { return false };
        if self.destinations < LANES || self.steps(class) < FEWEST_STEPS {
            return false;
        }
        // Few rows leave the multipliers waiting for loads.
        let busy = |rows: usize| rows.min(6) as f64 / 6.0;
        let outputs: usize = class.count.iter().product();
        let rows = RowPanels::new::<E>(isa, self.destinations).rows(0);
        let tile = (rows, span(E::accumulators(isa), rows));
        let vectors = Runs::vectors(class, layout.extents, self.destination_sizes, tile);
        let computed = vectors.count * vectors.length.next_multiple_of(LANES);
        let by_outputs = outputs as f64 / computed.max(1) as f64 * busy(rows);
        let runs = Runs::rows(class, layout.extents, self.destination_sizes);
        let rows = RowPanels::new::<E>(isa, runs.length).rows(0);
        let lanes = self.destinations.next_multiple_of(LANES);
        let by_channels = self.destinations as f64 / lanes as f64 * busy(rows);
        by_channels > 1.03 * by_outputs
    }

    fn steps(&self, class: &Class) -> usize {
        self.sources * class.tap_count()
    }

    fn table_entries(&self) -> usize {
        self.classes.iter().map(|c| self.steps(c) + TABLE_TAIL).sum()
    }

    /// Room for one tile's columns and their table, where the source is read in place in vectors of
    /// outputs, and for accumulators of tiles with vectors of channels.
    fn room(&self, plan: &Plan) -> Result<Room> {
        let steps = self.classes.iter().map(|c| self.steps(c)).max().unwrap_or(0);
        let channels = plan.side == Side::Columns;
        let (columns, entries) = if plan.layout.in_place && !channels {
            (steps * SLACK, steps + TABLE_TAIL)
        } else {
            (0, 0)
        };
        let accumulators = if channels { chunk_elements::<E>(plan.isa) } else { 0 };
        Ok(Room {
            columns: Scratch::new(self.operator, columns * size_of::<E>())?,
            table: Scratch::new(self.operator, entries * size_of::<u32>())?,
            accumulators: Scratch::new(self.operator, accumulators * size_of::<E>())?,
        })
    }

    fn copy_bytes(&self, layout: &Layout) -> usize {
        let slack = SLACK.max(depthwise::slack(layout));
        if layout.in_place { 0 } else { (layout.channel * self.sources + slack) * size_of::<E>() }
    }

    fn fill_tables<'t>(&self, table: &'t mut [u32], layout: &Layout) -> &'t [u32] {
        let mut at = 0;
        for class in self.classes {
            let begin = at;
            for c in 0..self.sources {
                for &(_, d) in &class.taps[0] {
                    for &(_, h) in &class.taps[1] {
                        for &(_, w) in &class.taps[2] {
                            table[at] = (c * layout.channel + layout.offset([d, h, w])) as u32;
                            at += 1;
                        }
                    }
                }
            }
            let last = if at > begin { table[at - 1] } else { 0 };
            table[at..at + TABLE_TAIL].fill(last);
            at += TABLE_TAIL;
        }
        table
    }

    /// Copies channels `from..until` of a unit with their padding, unless the source stays in place.
    ///
    /// # Safety
    /// The convolution's source, and a copy with room for the layout's channels and slack.
    pub(super) unsafe fn copy_source(
        &self,
        layout: &Layout,
        unit: usize,
        to: *mut E,
        from: usize,
        until: usize,
    ) {
        if layout.in_place {
            return;
        }
        let size: usize = self.source_sizes.iter().product();
        // SAFETY: the caller's promise about the source, and the copy's size.
        unsafe {
            for c in from..until {
                let source = self.source.add((unit * self.sources + c) * size);
                layout.copy(source, to.add(c * layout.channel));
            }
            if until == self.sources {
                let end = to.add(self.sources * layout.channel);
                std::slice::from_raw_parts_mut(end, SLACK).fill(E::default());
            }
        }
    }

    unsafe fn compute(
        &self,
        plan: &Plan,
        unit: usize,
        copy: *mut E,
        room: Addresses<E>,
        split: Option<(usize, usize)>,
    ) {
        let group = unit % self.groups;
        let plane: usize = self.destination_sizes.iter().product();
        let size: usize = self.source_sizes.iter().product();
        let channels = unit * self.sources;
        // SAFETY: the caller's promises.
        unsafe {
            let (source, readable) = if plan.layout.in_place {
                let all = self.images * self.groups * self.sources;
                (self.source.add(channels * size), (all - channels) * size)
            } else {
                (copy.cast_const(), plan.layout.channel * self.sources + SLACK)
            };
            let bias = self.bias.map(|bias| bias.add(group * self.destinations));
            let destination = self.destination.add(unit * self.destinations * plane);
            let mut table = plan.tables;
            for (index, class) in self.classes.iter().enumerate() {
                let steps = self.steps(class);
                // A residue that no output has: its runs would name outputs behind the last ones.
                if class.count.contains(&0) {
                    table = table.add(steps + TABLE_TAIL);
                    continue;
                }
                let weights = plan.weights.ptr::<E>(group, index);
                if plan.side == Side::Columns {
                    let runs = Runs::rows(class, plan.layout.extents, self.destination_sizes);
                    let panels = RowPanels::new::<E>(plan.isa, runs.length);
                    let width = E::vectors(plan.isa);
                    let vectors = self.destinations.div_ceil(LANES);
                    let tiles = if runs.length == 0 { 0 } else { runs.count * panels.count };
                    let pieces = (tiles.div_ceil(CHUNK / 2), vectors.div_ceil(width));
                    if let Some((t, v)) = portion(split, (tiles, vectors.div_ceil(width)), pieces) {
                        dispatch_on(
                            plan.isa,
                            ChannelTiles {
                                class,
                                runs,
                                panels,
                                steps,
                                weights,
                                table,
                                source,
                                bias,
                                channels: self.destinations,
                                relu: self.relu,
                                epilogue: self.epilogue,
                                first_channel: group * self.destinations,
                                destination,
                                plane,
                                sizes: self.destination_sizes,
                                accumulators: room.accumulators,
                                tiles: t,
                                vectors: (v.0 * width, (v.1 * width).min(vectors)),
                            },
                        );
                    }
                } else {
                    let panels = RowPanels::new::<E>(plan.isa, self.destinations);
                    let most = span(E::accumulators(plan.isa), panels.rows(0));
                    let (extents, sizes) = (plan.layout.extents, self.destination_sizes);
                    let runs = Runs::vectors(class, extents, sizes, (panels.rows(0), most));
                    let chunks = runs.count * runs.length.div_ceil(most * LANES);
                    let ranges = if plan.layout.in_place && self.destinations > self.sources {
                        // By channels, as the depthwise convolutions that often follow.
                        let all = (panels.count, chunks);
                        portion(split, all, all).map(|(rows, chunks)| (chunks, rows))
                    } else {
                        portion(split, (chunks, panels.count), (chunks, panels.count))
                    };
                    if let Some((chunks, rows)) = ranges {
                        dispatch_on(
                            plan.isa,
                            Tiles {
                                class,
                                runs,
                                panels,
                                steps,
                                weights,
                                table,
                                source,
                                readable,
                                reach: (0..steps)
                                    .map(|k| *table.add(k) as usize)
                                    .max()
                                    .unwrap_or(0),
                                tail: room.columns,
                                tail_table: room.table,
                                start: match bias {
                                    Some(ptr) => Start::Rows { ptr, stride: 1 },
                                    None => Start::Zero,
                                },
                                relu: self.relu,
                                epilogue: self.epilogue,
                                first_channel: group * self.destinations,
                                destination,
                                plane,
                                sizes: self.destination_sizes,
                                chunks,
                                rows,
                            },
                        );
                    }
                }
                table = table.add(steps + TABLE_TAIL);
            }
        }
    }
}

/// A range of each of two axes.
type Ranges = ((usize, usize), (usize, usize));

/// What one of several parts computes of a grid of `all`, of which at most `pieces` are worth a part:
/// the first axis is split before the second. `None` when nothing is left for the part.
fn portion(
    split: Option<(usize, usize)>,
    all: (usize, usize),
    pieces: (usize, usize),
) -> Option<Ranges> {
    let Some((part, parts)) = split else { return Some(((0, all.0), (0, all.1))) };
    let first = parts.min(pieces.0.max(1));
    let second = (parts / first).clamp(1, pieces.1.max(1));
    if part >= first * second {
        return None;
    }
    let (i, j) = (part / second, part % second);
    Some((
        (all.0 * i / first, all.0 * (i + 1) / first),
        (all.1 * j / second, all.1 * (j + 1) / second),
    ))
}
