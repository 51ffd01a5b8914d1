//! Hashes of every kernel's outputs for seeded inputs, as committed: a machine that computes other bits
//! finds out which kernels differ.

mod case;
mod inputs;

pub use case::{Case, Fill};
pub use inputs::filled;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::for_size;
use crate::kernel::{bind, call};
use crate::registry::build;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The committed table: a hash and a case in each line, and comments.
pub const TABLE: &str = include_str!("table.txt");

/// Hexadecimal digits of a hash.
const DIGITS: usize = 16;

/// One line of a table after its computation.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub case: String,
    pub expected: String,
    /// The hash, or the text of an error.
    pub found: String,
}

impl Outcome {
    #[must_use]
    pub fn ok(&self) -> bool {
        self.expected == self.found
    }
}

/// The hash and the case of each line that is not a comment.
fn entries(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(' ').unwrap_or((line, "")))
}

/// The cases of the committed table.
///
/// # Panics
/// When the committed table is malformed, which its test excludes.
#[must_use]
pub fn cases() -> Vec<Case> {
    entries(TABLE).map(|(_, line)| Case::parse(line).expect("a line of the table")).collect()
}

impl Case {
    /// The inputs, drawn.
    ///
    /// # Errors
    /// What the random kernels report, or `Shape` for a wrong number of values.
    pub fn draw(&self) -> Result<Vec<Option<Array>>> {
        let place = self.inputs.iter().zip(1..);
        place
            .map(|(input, seed)| {
                input.as_ref().map(|(meta, fill)| filled(meta, fill, seed)).transpose()
            })
            .collect()
    }

    /// The hash of the outputs: the first 64 bits of SHA-256 over dtype, shape and elements of each,
    /// in little-endian order and with every NaN as one.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn hash(&self) -> Result<String> {
        let inputs = self.draw()?;
        let inputs: Vec<Option<&Array>> = inputs.iter().map(Option::as_ref).collect();
        let mut kernel = build(&self.kernel, self.attributes.clone())?;
        if !self.constants.is_empty() {
            let mut constants = vec![None; inputs.len()];
            for &place in &self.constants {
                constants[place] = inputs[place];
            }
            kernel = bind(&kernel, &constants)?;
        }
        let mut digest = Sha256::new();
        for output in call(&*kernel, &inputs)? {
            absorb(&mut digest, &output);
        }
        let mut text = String::with_capacity(DIGITS);
        for byte in &digest.finalize()[..DIGITS / 2] {
            let _ = write!(text, "{byte:02x}");
        }
        Ok(text)
    }
}

// One of the types of elements is u64 itself.
#[allow(clippy::useless_conversion)]
fn absorb(digest: &mut Sha256, output: &Array) {
    let dtype = output.dtype();
    digest.update(format!("{}{:?}", dtype.name(), output.shape()));
    let sign = 1u64 << (8 * dtype.size() - 1);
    let nan_above = inputs::mantissa_bits(dtype).map(|m| (sign - 1) >> m << m);
    for_size!(dtype, T => {
        for &element in output.as_slice::<T>() {
            let canonical = match nan_above {
                Some(infinity) if u64::from(element) & (sign - 1) > infinity => {
                    (sign - 1) as T
                }
                _ => element,
            };
            digest.update(canonical.to_le_bytes());
        }
    });
}

/// Computes every case of a table.
///
/// # Errors
/// `Usage` for a line without a case.
pub fn check(table: &str) -> Result<Vec<Outcome>> {
    entries(table)
        .map(|(expected, line)| {
            let case = Case::parse(line)?;
            let found = case.hash().unwrap_or_else(|error| error.to_string());
            Ok(Outcome { case: line.to_string(), expected: expected.to_string(), found })
        })
        .collect()
}

/// The table with the hashes that this machine computes. A line without a hash may begin with `-`.
///
/// # Errors
/// As [`check`], and the error of a case that fails.
pub fn regenerated(table: &str) -> Result<String> {
    let mut text = String::new();
    for line in table.lines() {
        let known = !line.is_empty() && !line.starts_with('#');
        match line.split_once(' ').filter(|_| known) {
            Some((_, line)) => {
                let hash = Case::parse(line)?.hash().map_err(|error| {
                    Error::usage("selfcheck", format!("'{line}' to compute"), error.to_string())
                })?;
                let _ = writeln!(text, "{hash} {line}");
            }
            None => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
