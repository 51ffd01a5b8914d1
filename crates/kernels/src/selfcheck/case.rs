//! One line of the table: a kernel, its attributes and its inputs.
//!
//! `Name attribute=value … : input …`, a value being an integer, a number with a point, a string in
//! single quotes or a list `(…)` of one kind, and an input `dtype[extents]` followed by nothing (normal
//! numbers, or integers from -10 to 9, or booleans), `(low,high)` (evenly from low to below high),
//! `=(…)` (these values), `any` (any bits) or `edges` (special values among normal ones); `-` is an
//! absent input. An input behind `!` is a constant that the kernel is bound with.

use crate::array::Meta;
use crate::attributes::{Attribute, Number};
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

const OP: &str = "selfcheck";

/// What an input is filled with.
#[derive(Debug, Clone, PartialEq)]
pub enum Fill {
    Default,
    Between(Number, Number),
    Values(Vec<Number>),
    AnyBits,
    Edges,
}

/// A kernel with its attributes and inputs.
#[derive(Debug, Clone)]
pub struct Case {
    pub kernel: String,
    pub attributes: BTreeMap<String, Attribute>,
    pub inputs: Vec<Option<(Meta, Fill)>>,
    /// Places of the inputs that the kernel is bound with.
    pub constants: Vec<usize>,
}

fn malformed(expected: &str, got: &str) -> Error {
    Error::usage(OP, expected, format!("'{got}'"))
}

fn number(text: &str) -> Result<Number> {
    if let Ok(value) = text.parse() {
        return Ok(Number::Int(value));
    }
    text.parse().map(Number::Float).map_err(|_| malformed("a number", text))
}

/// The text between the parentheses of `(…)`.
fn list(text: &str) -> Option<&str> {
    text.strip_prefix('(')?.strip_suffix(')')
}

fn numbers(text: &str) -> Result<Vec<Number>> {
    let inner = list(text).ok_or_else(|| malformed("a list in parentheses", text))?;
    inner.split(',').filter(|part| !part.is_empty()).map(number).collect()
}

fn quoted(text: &str) -> Option<String> {
    text.strip_prefix('\'')?.strip_suffix('\'').map(str::to_string)
}

fn attribute(text: &str) -> Result<Attribute> {
    if let Some(value) = quoted(text) {
        return Ok(Attribute::Str(value));
    }
    let Some(inner) = list(text) else {
        return Ok(match number(text)? {
            Number::Int(value) => Attribute::Int(value),
            Number::Float(value) => Attribute::Float(value),
        });
    };
    if inner.starts_with('\'') {
        let strings = inner.split(',').map(quoted).collect::<Option<Vec<_>>>();
        return strings.map(Attribute::Strs).ok_or_else(|| malformed("strings in quotes", text));
    }
    let values = numbers(text)?;
    let whole = values.iter().map(|v| match v {
        Number::Int(v) => Some(*v),
        Number::Float(_) => None,
    });
    Ok(match whole.collect::<Option<Vec<_>>>() {
        Some(whole) => Attribute::Ints(whole),
        None => Attribute::Floats(
            values
                .into_iter()
                .map(|v| match v {
                    Number::Int(v) => v as f64,
                    Number::Float(v) => v,
                })
                .collect(),
        ),
    })
}

fn input(text: &str) -> Result<Option<(Meta, Fill)>> {
    if text == "-" {
        return Ok(None);
    }
    let parts = text.split_once('[').and_then(|(dtype, rest)| Some((dtype, rest.split_once(']')?)));
    let (dtype, (shape, fill)) = parts.ok_or_else(|| malformed("dtype[extents]", text))?;
    let dtype = DType::from_name(OP, dtype)?;
    let extents = shape.split(',').filter(|part| !part.is_empty()).map(str::parse);
    let shape: Vec<usize> =
        extents.collect::<std::result::Result<_, _>>().map_err(|_| malformed("extents", text))?;
    let fill = match fill {
        "" => Fill::Default,
        "any" => Fill::AnyBits,
        "edges" => Fill::Edges,
        _ if fill.starts_with('=') => Fill::Values(numbers(&fill[1..])?),
        _ => match numbers(fill)?[..] {
            [low, high] => Fill::Between(low, high),
            _ => return Err(malformed("(low,high)", fill)),
        },
    };
    Ok(Some((Meta::new(dtype, &shape), fill)))
}

impl Case {
    /// Reads a line, without its hash.
    ///
    /// # Errors
    /// `Usage` for a line that is not of the form above, `Dtype` for an unknown element type.
    pub fn parse(line: &str) -> Result<Self> {
        let (call, inputs) =
            line.split_once(':').ok_or_else(|| malformed("Name attributes : inputs", line))?;
        let mut words = call.split_whitespace();
        let kernel = words.next().ok_or_else(|| malformed("the name of a kernel", line))?;
        let mut attributes = BTreeMap::new();
        for word in words {
            let (name, value) =
                word.split_once('=').ok_or_else(|| malformed("attribute=value", word))?;
            attributes.insert(name.to_string(), attribute(value)?);
        }
        let mut constants = Vec::new();
        let mut read = Vec::new();
        for (place, word) in inputs.split_whitespace().enumerate() {
            let constant = word.strip_prefix('!');
            constants.extend(constant.map(|_| place));
            read.push(input(constant.unwrap_or(word))?);
        }
        Ok(Self { kernel: kernel.to_string(), attributes, inputs: read, constants })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_written() {
        let case = Case::parse(
            "Conv a=(1,2) b=0.5 c='x' d=3 e=('u','v') f=() g=(1,0.5) : \
             float32[2,3] - int64[2]=(4,-5) !uint8[](0,9) float64[7]edges",
        )
        .unwrap();
        assert_eq!(case.kernel, "Conv");
        assert_eq!(case.attributes["a"], Attribute::Ints(vec![1, 2]));
        assert_eq!(case.attributes["b"], Attribute::Float(0.5));
        assert_eq!(case.attributes["c"], Attribute::Str("x".into()));
        assert_eq!(case.attributes["d"], Attribute::Int(3));
        assert_eq!(case.attributes["e"], Attribute::Strs(vec!["u".into(), "v".into()]));
        assert_eq!(case.attributes["f"], Attribute::Ints(vec![]));
        assert_eq!(case.attributes["g"], Attribute::Floats(vec![1.0, 0.5]));
        assert_eq!(case.inputs[0], Some((Meta::new(DType::F32, &[2, 3]), Fill::Default)));
        assert_eq!(case.inputs[1], None);
        let values = Fill::Values(vec![Number::Int(4), Number::Int(-5)]);
        assert_eq!(case.inputs[2], Some((Meta::new(DType::I64, &[2]), values)));
        let range = Fill::Between(Number::Int(0), Number::Int(9));
        assert_eq!(case.inputs[3], Some((Meta::new(DType::U8, &[]), range)));
        assert_eq!(case.inputs[4], Some((Meta::new(DType::F64, &[7]), Fill::Edges)));
        assert_eq!(case.constants, [3]);
    }

    #[test]
    fn a_malformed_line_is_an_error() {
        for line in [
            "",
            "Add",
            " : float32[2]",
            "Add x : -",
            "Add x=y : -",
            "Add : float32",
            "Add : f[2]",
            "Add : float32[a]",
            "Add : float32[2](1)",
            "Add : float32[2]=1",
            "Add : float32[2]!",
            "Add : !",
            "Add x=('a',1) : -",
        ] {
            assert!(Case::parse(line).is_err(), "{line}");
        }
    }
}
