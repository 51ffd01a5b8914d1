//! Operands rearranged so that a tile reads them in order.

use super::matrix::Matrix;
use super::real::Real;
use super::transpose::gather_columns;
use crate::array::Array;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernels::short_copy::copy_short;
use crate::simd::{Isa, LANES};

/// The heights of the row panels of `m` rows: as equal as can be, none above the tile's rows.
/// Panel i covers rows `start(i)..start(i + 1)`.
#[derive(Clone, Copy)]
pub(crate) struct RowPanels {
    pub(crate) count: usize,
    height: usize,
    taller: usize,
}

impl RowPanels {
    pub(crate) fn new<E: Real>(isa: Isa, m: usize) -> Self {
        let count = m.div_ceil(E::rows(isa)).max(1);
        Self { count, height: m / count, taller: m % count }
    }

    #[inline(always)]
    pub(crate) fn start(&self, panel: usize) -> usize {
        panel * self.height + panel.min(self.taller)
    }

    #[inline(always)]
    pub(crate) fn rows(&self, panel: usize) -> usize {
        self.height + usize::from(panel < self.taller)
    }
}

/// Writes a panel of `width` columns: `dst[step * width + j] = src[step, j]`, zeros from `valid` on.
///
/// # Safety
/// `src` holds `steps` by `valid` elements, `dst` has room for `steps * width`.
pub(crate) unsafe fn pack_panel<E: Real>(
    dst: *mut E,
    width: usize,
    valid: usize,
    steps: usize,
    src: *const E,
    step_stride: isize,
    column_stride: isize,
) {
    const BLOCK: usize = 16;
    // SAFETY: all indices stay below the sizes that the caller promises.
    unsafe {
        if column_stride == 1 {
            for k in 0..steps {
                let (from, to) = (src.offset(k as isize * step_stride), dst.add(k * width));
                copy_short(from, to, valid);
                for j in valid..width {
                    *to.add(j) = E::default();
                }
            }
            return;
        }
        if valid < width {
            for k in 0..steps {
                std::slice::from_raw_parts_mut(dst.add(k * width + valid), width - valid)
                    .fill(E::default());
            }
        }
        if step_stride == 1 {
            let column = |j: usize| src.offset(j as isize * column_stride);
            gather_columns(dst, width, valid, steps, false, column);
            return;
        }
        let mut k0 = 0;
        while k0 < steps {
            let k1 = (k0 + BLOCK).min(steps);
            for j in 0..valid {
                let column = src.offset(j as isize * column_stride);
                for k in k0..k1 {
                    *dst.add(k * width + j) = *column.offset(k as isize * step_stride);
                }
            }
            k0 = k1;
        }
    }
}

/// The right operand of products, packed once: panels of `16 * vectors` columns, each step's columns
/// together, the last panel filled with zeros.
pub(crate) struct PackedB<E> {
    data: Array,
    pub(crate) k: usize,
    pub(crate) n: usize,
    marker: std::marker::PhantomData<E>,
}

/// Columns of a packed panel.
pub(crate) fn panel_width<E: Real>(isa: Isa) -> usize {
    E::vectors(isa) * LANES
}

impl<E: Real> PackedB<E> {
    /// Packs a `k` by `n` matrix.
    ///
    /// # Errors
    /// `Memory` when there is no room.
    ///
    /// # Safety
    /// The matrix's elements exist.
    pub(crate) unsafe fn new(
        operator: &str,
        isa: Isa,
        b: Matrix<E>,
        k: usize,
        n: usize,
    ) -> Result<Self> {
        let width = panel_width::<E>(isa);
        let panels = n.div_ceil(width);
        let data = Array::uninit(operator, dtype::<E>(), &[panels, k, width])?;
        let dst = data.as_mut_ptr::<E>();
        for panel in 0..panels {
            // SAFETY: the panel lies inside `data`, its columns inside the matrix.
            unsafe { pack_right(dst.add(panel * k * width), isa, b, k, n, panel) };
        }
        Ok(Self { data, k, n, marker: std::marker::PhantomData })
    }

    pub(crate) fn ptr(&self) -> *const E {
        self.data.as_ptr()
    }
}

fn dtype<E: Real>() -> DType {
    E::DTYPE
}

/// Packs one column panel of the right operand to `dst`.
///
/// # Safety
/// The matrix has `k` by `n` elements and `dst` room for `k` steps of the panel's width.
pub(crate) unsafe fn pack_right<E: Real>(
    dst: *mut E,
    isa: Isa,
    b: Matrix<E>,
    k: usize,
    n: usize,
    panel: usize,
) {
    let width = panel_width::<E>(isa);
    let from = panel * width;
    let valid = width.min(n - from);
    // SAFETY: columns `from..from + valid` exist.
    unsafe {
        pack_panel(
            dst,
            width,
            valid,
            k,
            b.ptr.offset(from as isize * b.columns),
            b.rows,
            b.columns,
        );
    }
}

/// Packs one row panel of the left operand, all `k` steps, to `dst`.
///
/// # Safety
/// The matrix has the panel's rows by `k` elements and `dst` room for them.
pub(crate) unsafe fn pack_left<E: Real>(
    dst: *mut E,
    a: Matrix<E>,
    k: usize,
    panels: &RowPanels,
    panel: usize,
) {
    let (start, rows) = (panels.start(panel), panels.rows(panel));
    // SAFETY: rows `start..start + rows` exist.
    unsafe {
        pack_panel(dst, rows, rows, k, a.ptr.offset(start as isize * a.rows), a.columns, a.rows);
    }
}
