//! The operands of a head and the memory that its blocks work in.

use super::block::{Block, FEW, KEYS, MOST, ROWS};
use crate::error::Result;
use crate::kernels::gemm::matrix::Matrix;
use crate::kernels::gemm::packing::pack_panel;
use crate::scratch::Scratch;
use crate::simd::{Isa, LANES, dispatch_on};

/// What all heads share.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) features: usize,
    pub(super) values: usize,
    pub(super) scale: f32,
    pub(super) causal: bool,
}

impl Sizes {
    /// Values of one key in whole vectors.
    pub(super) fn width(&self) -> usize {
        self.values.next_multiple_of(LANES)
    }
}

/// The operands of one head; rows of the output follow each other.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) q: Matrix<f32>,
    pub(super) k: Matrix<f32>,
    pub(super) v: Matrix<f32>,
    pub(super) mask: Option<Matrix<f32>>,
    pub(super) out: *mut f32,
}

/// Working memory of one thread.
pub(super) struct Workspace {
    isa: Isa,
    sizes: Sizes,
    memory: Scratch,
    k: Rows,
    v: Rows,
    turned: Option<Scratch>,
}

impl Workspace {
    pub(super) fn new(operator: &str, isa: Isa, sizes: Sizes) -> Result<Self> {
        let floats = ROWS * (sizes.features + 2 * (KEYS + MOST) + sizes.width());
        let memory = Scratch::new(operator, floats * size_of::<f32>())?;
        // Only the last block may have few queries.
        let few = (1..=FEW).contains(&(sizes.queries % ROWS));
        let bytes = KEYS * sizes.features * size_of::<f32>();
        let turned = few.then(|| Scratch::new(operator, bytes)).transpose()?;
        Ok(Self { isa, sizes, memory, k: Rows::default(), v: Rows::default(), turned })
    }

    /// Lets the features of keys, and the values in whole vectors, follow each other.
    ///
    /// # Errors
    /// `Memory` when there is no room.
    ///
    /// # Safety
    /// The operands have the elements that the sizes say. With `again` they are those of the call
    /// before.
    pub(super) unsafe fn arrange(
        &mut self,
        operator: &str,
        head: &mut Head,
        again: bool,
    ) -> Result<()> {
        let Sizes { keys, features, values, .. } = self.sizes;
        let width = self.sizes.width();
        // SAFETY: the caller's promise.
        unsafe {
            let Self { k, v, .. } = self;
            head.k = k.arranged(operator, head.k, [keys, features], features, again)?;
            head.v = v.arranged(operator, head.v, [keys, values], width, again)?;
        }
        Ok(())
    }

    /// Computes the queries from `first` on, up to [`ROWS`] of them.
    ///
    /// # Safety
    /// The operands have the elements that the sizes say, arranged.
    pub(super) unsafe fn block(&mut self, head: Head, first: usize) {
        let Sizes { queries, features, .. } = self.sizes;
        let rows = (queries - first).min(ROWS);
        let q = self.memory.as_mut::<f32>().as_mut_ptr();
        let scores = q.wrapping_add(ROWS * features);
        let mask = scores.wrapping_add(ROWS * (KEYS + MOST));
        let sums = mask.wrapping_add(ROWS * (KEYS + MOST));
        // SAFETY: the queries exist; the memory has room for each part.
        unsafe {
            let from = head.q.ptr.offset(first as isize * head.q.rows);
            pack_panel(q, ROWS, rows, features, from, head.q.columns, head.q.rows);
        }
        let turned = self
            .turned
            .as_mut()
            .map_or(std::ptr::null_mut(), |turned| turned.as_mut::<f32>().as_mut_ptr());
        let block = Block { sizes: self.sizes, head, first, rows, q, scores, mask, sums, turned };
        dispatch_on(self.isa, block);
    }
}

/// A copy of a matrix, made where its rows do not lie as they are read.
#[derive(Default)]
struct Rows(Option<Scratch>);

impl Rows {
    /// The matrix, or its copy, with rows of `width` elements one after the other, zeros behind its
    /// own.
    ///
    /// # Safety
    /// The matrix has these rows and columns. With `again` it is that of the call before.
    unsafe fn arranged(
        &mut self,
        operator: &str,
        from: Matrix<f32>,
        [rows, columns]: [usize; 2],
        width: usize,
        again: bool,
    ) -> Result<Matrix<f32>> {
        if width == columns && (from.columns == 1 || columns <= 1) {
            return Ok(from);
        }
        let memory = match &mut self.0 {
            Some(memory) => memory,
            none => none.insert(Scratch::new(operator, rows * width * size_of::<f32>())?),
        };
        let to = memory.as_mut::<f32>().as_mut_ptr();
        if !again {
            // SAFETY: the caller's promise, and memory for the copy.
            unsafe { pack_panel(to, width, columns, rows, from.ptr, from.rows, from.columns) };
        }
        Ok(Matrix::new(to, width as isize, 1))
    }
}
