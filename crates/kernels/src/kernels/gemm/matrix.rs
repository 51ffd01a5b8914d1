//! Addresses of matrices, as kernels pass them between threads.

/// A matrix in memory: element (i, j) at `ptr + i * rows + j * columns`.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<E> {
    pub(crate) ptr: *const E,
    pub(crate) rows: isize,
    pub(crate) columns: isize,
}

impl<E> Matrix<E> {
    pub(crate) fn new(ptr: *const E, rows: isize, columns: isize) -> Self {
        Self { ptr, rows, columns }
    }

    pub(crate) fn transposed(self) -> Self {
        Self { ptr: self.ptr, rows: self.columns, columns: self.rows }
    }
}

/// A value that holds addresses and is handed to the threads of one region.
///
/// The region's parts read shared inputs and write disjoint outputs, and the region ends before the
/// memory does.
#[derive(Clone, Copy)]
pub(crate) struct Shared<T>(T);

// SAFETY: see the type's contract, which every kernel that wraps addresses upholds.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(value)
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> T {
        self.0
    }
}
