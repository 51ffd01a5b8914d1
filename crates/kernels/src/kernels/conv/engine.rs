//! Convolution by tiles whose right operand is read from the source through a table of offsets.
//!
//! Order: `acc = bias` (or +0.0), then `acc = fma(x, w, acc)` over (channel in group, kernel depth,
//! kernel row, kernel column) ascending, padded taps included with x = +0.0.

use super::geometry::{AXES, Class};
use super::source::Layout;
use super::weights::PackedWeights;
use crate::error::Result;
use crate::kernels::gemm::matrix::Shared;
use crate::kernels::gemm::microkernel::{Start, TABLE_TAIL, Tile, span, tile};
use crate::kernels::gemm::packing::RowPanels;
use crate::kernels::gemm::product::{parts_of, try_for_each};
use crate::kernels::gemm::real::Real;
use crate::parallel;
use crate::scratch::Scratch;
use crate::simd::{Isa, LANES, Simd, WithSimd, dispatch_on};
use std::mem::MaybeUninit;

/// Elements that a tile may read past the last one it needs.
const SLACK: usize = 8 * LANES;
/// Units (images times groups) from which on a part takes whole units.
const MANY_UNITS: usize = 8;
/// Bytes of packed weights up to which all of them pass over one tile of outputs before the next.
const WEIGHTS_IN_CACHE: usize = 384 << 10;
/// Source elements from which on copying is worth a region.
const COPY_SPLIT_FROM: usize = 1 << 17;

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
    pub(crate) weights: &'a PackedWeights,
    pub(crate) bias: Option<*const E>,
    pub(crate) relu: bool,
    pub(crate) source: *const E,
    pub(crate) destination: *mut E,
}

/// Outputs of one class as runs of consecutive plane positions.
#[derive(Clone, Copy)]
struct Runs {
    count: usize,
    length: usize,
    /// Plane position of run r: `r / per_depth * depth + r % per_depth * row`.
    per_depth: usize,
    depth: usize,
    row: usize,
    /// Positions of one output row inside a run, and how many of them are outputs.
    pitch: usize,
    valid: usize,
}

impl Runs {
    fn new(class: &Class, extents: [usize; AXES], destination: [usize; AXES]) -> Self {
        let [depth, height, width] = class.count;
        let plane = extents[1] * extents[2];
        let packed = class.step == [1; AXES] && class.count == destination;
        if packed && extents[2] == width {
            // Rows follow each other on both sides: each depth is a single row.
            let length = height * width;
            return Self {
                count: depth,
                length,
                per_depth: 1,
                depth: plane,
                row: 0,
                pitch: length.max(1),
                valid: length,
            };
        }
        let flat = ((height.max(1) - 1) * extents[2] + width).div_ceil(LANES);
        let by_row = height * width.div_ceil(LANES);
        // Outputs without taps read nothing, so the source's plane says nothing about them.
        if class.tap_count() == 0 || by_row <= flat + flat / 8 {
            return Self {
                count: depth * height,
                length: width,
                per_depth: height.max(1),
                depth: plane,
                row: extents[2],
                pitch: width.max(1),
                valid: width,
            };
        }
        Self {
            count: depth,
            length: (height.max(1) - 1) * extents[2] + width,
            per_depth: 1,
            depth: plane,
            row: 0,
            pitch: extents[2],
            valid: width,
        }
    }
}

/// The tiles of one class of one unit that one part computes.
#[derive(Clone, Copy)]
struct Tiles<'a, E> {
    class: &'a Class,
    runs: Runs,
    panels: RowPanels,
    steps: usize,
    weights: *const E,
    table: *const u32,
    source: *const E,
    /// Elements of the source from which whole vectors may be read.
    readable: usize,
    reach: usize,
    /// Room for the columns of one tile and their table.
    tail: *mut E,
    tail_table: *mut u32,
    start: Start<E>,
    relu: bool,
    destination: *mut E,
    plane: usize,
    sizes: [usize; AXES],
    /// Chunks of the runs, and row panels.
    chunks: (usize, usize),
    rows: (usize, usize),
}

impl<E: Real> WithSimd for Tiles<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let most = span(E::accumulators(S::ISA), self.panels.rows(0));
        let per_run = self.runs.length.div_ceil(most * LANES);
        let weights = self.panels.start(self.panels.count) * self.steps * size_of::<E>();
        let outer_rows = weights > WEIGHTS_IN_CACHE;
        let (chunks, rows) = (self.chunks, self.rows);
        let (outer, inner) = if outer_rows { (rows, chunks) } else { (chunks, rows) };
        for o in outer.0..outer.1 {
            for i in inner.0..inner.1 {
                let (chunk, panel) = if outer_rows { (i, o) } else { (o, i) };
                let (run, at) = (chunk / per_run, chunk % per_run * most * LANES);
                let mut at = at;
                let end = (at + most * LANES).min(self.runs.length);
                while at < end {
                    let left = (end - at).div_ceil(LANES);
                    let wide = (1usize << left.ilog2()).min(most);
                    // SAFETY: the chunk and the panel belong to this part.
                    unsafe { self.tile(s, run, at, (end - at).min(wide * LANES), wide, panel) };
                    at += wide * LANES;
                }
            }
        }
    }
}

impl<E: Real> Tiles<'_, E> {
    #[inline(always)]
    unsafe fn tile<S: Simd>(
        &self,
        s: S,
        run: usize,
        at: usize,
        n: usize,
        wide: usize,
        panel: usize,
    ) {
        const LARGEST: usize = 28 * LANES;
        let r = &self.runs;
        let (row, rows) = (self.panels.start(panel), self.panels.rows(panel));
        let position = run / r.per_depth * r.depth + run % r.per_depth * r.row + at;
        // SAFETY: offsets stay inside the source (or its copy with slack) and the destination.
        unsafe {
            let mut t = Tile {
                k: self.steps,
                a: self.weights.add(row * self.steps),
                b: self.source.add(position),
                step: 0,
                table: self.table,
                panel: 0,
                start: self.start.at(row, 0),
                c: self.destination,
                c_stride: self.plane as isize,
                n,
                relu: self.relu,
            };
            let mut table = self.table;
            if position + self.reach + wide * LANES > self.readable {
                self.gather(position, n, wide * LANES);
                t.b = self.tail;
                table = self.tail_table;
            }
            t.table = table;
            let mut part = MaybeUninit::<[E; LARGEST]>::uninit();
            let direct = self.direct(run, at, n);
            if let Some(direct) = direct {
                t.c = self.destination.add(row * self.plane + direct);
            } else {
                t.c = part.as_mut_ptr().cast::<E>();
                t.c_stride = (wide * LANES) as isize;
                t.n = wide * LANES;
            }
            tile::<S, E, true>(s, rows, wide, &t);
            if direct.is_none() {
                self.scatter(s, t.c, wide * LANES, row, rows, run, at, n);
            }
        }
    }

    /// Columns near the end of memory, which cannot be read in whole vectors, copied with a table of
    /// their own.
    #[inline(always)]
    unsafe fn gather(&self, position: usize, n: usize, width: usize) {
        // SAFETY: `tail` has room for the steps of one tile; only the n needed columns are read.
        unsafe {
            for k in 0..self.steps + TABLE_TAIL {
                let step = k.min(self.steps.saturating_sub(1));
                *self.tail_table.add(k) = (step * width) as u32;
            }
            for k in 0..self.steps {
                let from = self.source.add(position + *self.table.add(k) as usize);
                let to = std::slice::from_raw_parts_mut(self.tail.add(k * width), width);
                to.fill(E::default());
                std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), n);
            }
        }
    }

    /// The destination offset of a tile whose outputs follow each other.
    #[inline(always)]
    fn direct(&self, run: usize, at: usize, n: usize) -> Option<usize> {
        let column = at % self.runs.pitch;
        let whole = column + n <= self.runs.valid && self.class.step[2] == 1;
        whole.then(|| self.offset(run, at))
    }

    /// The destination offset of the output at a position of a run.
    #[inline(always)]
    fn offset(&self, run: usize, at: usize) -> usize {
        let r = &self.runs;
        let (depth, mut height) = if r.per_depth > 1 || r.row > 0 {
            (run / r.per_depth, run % r.per_depth)
        } else {
            (run, 0)
        };
        height += at / r.pitch;
        let c = self.class;
        let d = c.first[0] + depth * c.step[0];
        let h = c.first[1] + height * c.step[1];
        let w = c.first[2] + at % r.pitch * c.step[2];
        (d * self.sizes[1] + h) * self.sizes[2] + w
    }

    #[inline(always)]
    unsafe fn scatter<S: Simd>(
        &self,
        s: S,
        part: *const E,
        part_stride: usize,
        row: usize,
        rows: usize,
        run: usize,
        at: usize,
        n: usize,
    ) {
        let r = &self.runs;
        let (mut q, end) = (at, at + n);
        while q < end {
            let column = q % r.pitch;
            if column >= r.valid {
                q += r.pitch - column;
                continue;
            }
            let count = (r.valid - column).min(end - q);
            let step = self.class.step[2];
            // SAFETY: `count` outputs from here on exist in each of the rows.
            unsafe {
                let to = self.destination.add(row * self.plane + self.offset(run, q));
                let from = part.add(q - at);
                for i in 0..rows {
                    let (to, from) = (to.add(i * self.plane), from.add(i * part_stride));
                    if step == 1 {
                        let mut j = 0;
                        while j < count {
                            let left = (count - j).min(LANES);
                            let v = E::load_n(s, from.add(j), left);
                            E::store_n(s, to.add(j), left, v);
                            j += LANES;
                        }
                    } else {
                        for j in 0..count {
                            *to.add(j * step) = *from.add(j);
                        }
                    }
                }
            }
            q += count;
        }
    }
}

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
        let layout = Layout::new(
            self.operator,
            self.classes,
            self.source_sizes,
            self.source_step,
            self.sources,
        )?;
        let mut tables = Scratch::new(self.operator, self.table_entries() * size_of::<u32>())?;
        let tables = self.fill_tables(tables.as_mut::<u32>(), &layout);
        let tables = Shared::new(tables.as_ptr());
        let outputs: usize =
            self.classes.iter().map(|c| c.tap_count() * c.count.iter().product::<usize>()).sum();
        let operations = 2 * self.destinations * self.sources * outputs;
        let unit_parts = parts_of(operations);
        let job = Shared::new(self);
        if unit_parts == 1 || units >= MANY_UNITS {
            let parts = parts_of(operations.saturating_mul(units)).min(units);
            return try_for_each(parts, |part| {
                let this = job.get();
                let mut copy = Scratch::new(this.operator, this.copy_bytes(&layout))?;
                let copy = copy.as_mut::<E>().as_mut_ptr();
                let mut tail = this.tail(&layout)?;
                let tail = (tail.0.as_mut().as_mut_ptr(), tail.1.as_mut().as_mut_ptr());
                for unit in units * part / parts..units * (part + 1) / parts {
                    // SAFETY: units are disjoint outputs; the scratch memory has the named sizes.
                    unsafe {
                        this.copy_source(&layout, unit, copy, 0, this.sources);
                        this.compute(isa, &layout, unit, copy, tail, tables.get(), None);
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
                    // SAFETY: channels are disjoint parts of the copy.
                    unsafe {
                        job.get().copy_source(&layout, unit, copy.get(), range.start, range.end);
                    }
                });
            }
            try_for_each(unit_parts, |part| {
                let this = job.get();
                let mut tail = this.tail(&layout)?;
                let tail = (tail.0.as_mut().as_mut_ptr(), tail.1.as_mut().as_mut_ptr());
                // SAFETY: parts are disjoint outputs.
                unsafe {
                    let split = Some((part, unit_parts));
                    this.compute(isa, &layout, unit, copy.get(), tail, tables.get(), split);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn steps(&self, class: &Class) -> usize {
        self.sources * class.tap_count()
    }

    fn table_entries(&self) -> usize {
        self.classes.iter().map(|c| self.steps(c) + TABLE_TAIL).sum()
    }

    /// Room for one tile's columns and their table, where the source is read in place.
    fn tail(&self, layout: &Layout) -> Result<(Scratch, Scratch)> {
        let steps = self.classes.iter().map(|c| self.steps(c)).max().unwrap_or(0);
        let (columns, entries) =
            if layout.in_place { (steps * SLACK, steps + TABLE_TAIL) } else { (0, 0) };
        Ok((
            Scratch::new(self.operator, columns * size_of::<E>())?,
            Scratch::new(self.operator, entries * size_of::<u32>())?,
        ))
    }

    fn copy_bytes(&self, layout: &Layout) -> usize {
        if layout.in_place { 0 } else { (layout.channel * self.sources + SLACK) * size_of::<E>() }
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

    unsafe fn copy_source(
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
        isa: Isa,
        layout: &Layout,
        unit: usize,
        copy: *mut E,
        tail: (*mut E, *mut u32),
        tables: *const u32,
        split: Option<(usize, usize)>,
    ) {
        let group = unit % self.groups;
        let panels = RowPanels::new::<E>(isa, self.destinations);
        let most = span(E::accumulators(isa), panels.rows(0));
        let plane: usize = self.destination_sizes.iter().product();
        let size: usize = self.source_sizes.iter().product();
        let channels = unit * self.sources;
        // SAFETY: the caller's promises.
        unsafe {
            let (source, readable) = if layout.in_place {
                let all = self.images * self.groups * self.sources;
                (self.source.add(channels * size), (all - channels) * size)
            } else {
                (copy.cast_const(), layout.channel * self.sources + SLACK)
            };
            let mut table = tables;
            for (index, class) in self.classes.iter().enumerate() {
                let steps = self.steps(class);
                let runs = Runs::new(class, layout.extents, self.destination_sizes);
                let chunks = runs.count * runs.length.div_ceil(most * LANES);
                let (mut chunk_range, mut row_range) = ((0, chunks), (0, panels.count));
                if let Some((part, parts)) = split {
                    let by_chunks = parts.min(chunks.max(1));
                    let by_rows = (parts / by_chunks).clamp(1, panels.count);
                    let used = by_chunks * by_rows;
                    if part >= used {
                        table = table.add(steps + TABLE_TAIL);
                        continue;
                    }
                    let (i, j) = (part / by_chunks, part % by_chunks);
                    chunk_range = (chunks * j / by_chunks, chunks * (j + 1) / by_chunks);
                    row_range = (panels.count * i / by_rows, panels.count * (i + 1) / by_rows);
                }
                let tiles = Tiles {
                    class,
                    runs,
                    panels,
                    steps,
                    weights: self.weights.ptr::<E>(group, index),
                    table,
                    source,
                    readable,
                    reach: (0..steps).map(|k| *table.add(k) as usize).max().unwrap_or(0),
                    tail: tail.0,
                    tail_table: tail.1,
                    start: match self.bias {
                        Some(bias) => {
                            Start::Rows { ptr: bias.add(group * self.destinations), stride: 1 }
                        }
                        None => Start::Zero,
                    },
                    relu: self.relu,
                    destination: self.destination.add(unit * self.destinations * plane),
                    plane,
                    sizes: self.destination_sizes,
                    chunks: chunk_range,
                    rows: row_range,
                };
                dispatch_on(isa, tiles);
                table = table.add(steps + TABLE_TAIL);
            }
        }
    }
}
