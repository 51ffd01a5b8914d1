//! The one error type of the crate: every variant names the operator, what was expected and what came.

use std::fmt;

/// What kind of complaint an [`Error`] is; each kind becomes one Python exception class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Shapes, ranks, strides or element counts do not fit.
    Shape,
    /// An element type is not accepted, or two differ that must agree.
    Dtype,
    /// An attribute is missing, unknown, or has a value outside its domain.
    Attribute,
    /// An index or a range lies outside its axis.
    Bounds,
    /// The element count or byte size overflows or the allocation failed.
    Memory,
    /// The operation exists but not in this combination.
    Unsupported,
    /// The call itself is wrong: number of inputs, overlapping outputs, a read-only target.
    Usage,
    /// A kernel from outside the crate failed; the binding raises the exception that it raised.
    Foreign,
}

/// An error of one operator: `operator: expected …, got …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    pub kind: ErrorKind,
    pub operator: String,
    pub expected: String,
    pub got: String,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(
        kind: ErrorKind,
        operator: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Self {
        Self { kind, operator: operator.into(), expected: expected.into(), got: got.into() }
    }

    pub fn shape(op: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::new(ErrorKind::Shape, op, expected, got)
    }

    pub fn dtype(op: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::new(ErrorKind::Dtype, op, expected, got)
    }

    pub fn attribute(op: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::new(ErrorKind::Attribute, op, expected, got)
    }

    pub fn bounds(op: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bounds, op, expected, got)
    }

    pub fn memory(op: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::new(ErrorKind::Memory, op, expected, got)
    }

    pub fn unsupported(op: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, op, expected, got)
    }

    pub fn usage(op: &str, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, op, expected, got)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.operator, self.expected, self.got)
    }
}

impl std::error::Error for Error {}
