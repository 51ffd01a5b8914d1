//! Operator attributes as they arrive from outside, read once by typed getters.

use crate::dtype::DType;
use crate::error::{Error, Result};
use std::collections::BTreeMap;

/// One attribute value.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    Int(i64),
    Float(f64),
    Str(String),
    Ints(Vec<i64>),
    Floats(Vec<f64>),
    Strs(Vec<String>),
}

impl Attribute {
    fn describe(&self) -> String {
        match self {
            Self::Int(v) => format!("{v}"),
            Self::Float(v) => format!("{v:?}"),
            Self::Str(v) => format!("'{v}'"),
            Self::Ints(v) => format!("{v:?}"),
            Self::Floats(v) => format!("{v:?}"),
            Self::Strs(v) => format!("{v:?}"),
        }
    }
}

/// A number that keeps the exactness of an integer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    /// The number as one element of `dtype`, as the low bytes of the result: integers wrap, floats
    /// are rounded once (towards zero for integer dtypes), bool is 1 for anything but 0.
    #[must_use]
    pub fn bits(self, dtype: DType) -> u64 {
        let float = match self {
            Self::Int(v) => v as f64,
            Self::Float(v) => v,
        };
        match dtype {
            DType::Bool => u64::from(float != 0.0),
            DType::F16 => u64::from(half::f16::from_f64(float).to_bits()),
            DType::BF16 => u64::from(half::bf16::from_f64(float).to_bits()),
            DType::F32 => u64::from((float as f32).to_bits()),
            DType::F64 => float.to_bits(),
            DType::U64 if float >= 9.223_372_036_854_776e18 => float as u64,
            _ => match self {
                Self::Int(v) => v.cast_unsigned(),
                Self::Float(v) => (v as i64).cast_unsigned(),
            },
        }
    }
}

/// The attributes of one operator; every getter takes its entry out, so that [`Attributes::finish`]
/// can name what nobody asked for.
pub struct Attributes {
    operator: &'static str,
    values: BTreeMap<String, Attribute>,
    known: Vec<&'static str>,
}

impl Attributes {
    #[must_use]
    pub fn new(operator: &'static str, values: BTreeMap<String, Attribute>) -> Self {
        Self { operator, values, known: Vec::new() }
    }

    #[must_use]
    pub fn operator(&self) -> &'static str {
        self.operator
    }

    fn take(&mut self, name: &'static str) -> Option<Attribute> {
        self.known.push(name);
        self.values.remove(name)
    }

    fn wrong(&self, name: &str, expected: &str, got: &Attribute) -> Error {
        Error::attribute(self.operator, format!("{name} to be {expected}"), got.describe())
    }

    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        value.ok_or_else(|| Error::attribute(self.operator, format!("attribute {name}"), "none"))
    }

    /// An integer, or `None` when absent.
    ///
    /// # Errors
    /// `Attribute` when the value is of another kind. The same holds for every getter below.
    pub fn int_opt(&mut self, name: &'static str) -> Result<Option<i64>> {
        match self.take(name) {
            None => Ok(None),
            Some(Attribute::Int(v)) => Ok(Some(v)),
            Some(other) => Err(self.wrong(name, "an integer", &other)),
        }
    }

    pub fn int(&mut self, name: &'static str, default: i64) -> Result<i64> {
        Ok(self.int_opt(name)?.unwrap_or(default))
    }

    pub fn int_required(&mut self, name: &'static str) -> Result<i64> {
        let v = self.int_opt(name)?;
        self.required(name, v)
    }

    /// A flag: 0 or 1.
    pub fn flag(&mut self, name: &'static str, default: bool) -> Result<bool> {
        match self.int(name, i64::from(default))? {
            0 => Ok(false),
            1 => Ok(true),
            v => {
                Err(Error::attribute(self.operator, format!("{name} to be 0 or 1"), v.to_string()))
            }
        }
    }

    /// A number; integers are accepted.
    pub fn float_opt(&mut self, name: &'static str) -> Result<Option<f64>> {
        match self.take(name) {
            None => Ok(None),
            Some(Attribute::Float(v)) => Ok(Some(v)),
            Some(Attribute::Int(v)) => Ok(Some(v as f64)),
            Some(other) => Err(self.wrong(name, "a number", &other)),
        }
    }

    pub fn float(&mut self, name: &'static str, default: f64) -> Result<f64> {
        Ok(self.float_opt(name)?.unwrap_or(default))
    }

    pub fn float_required(&mut self, name: &'static str) -> Result<f64> {
        let v = self.float_opt(name)?;
        self.required(name, v)
    }

    /// A number that may be an integer beyond the exact range of floats.
    pub fn number_opt(&mut self, name: &'static str) -> Result<Option<Number>> {
        match self.take(name) {
            None => Ok(None),
            Some(Attribute::Int(v)) => Ok(Some(Number::Int(v))),
            Some(Attribute::Float(v)) => Ok(Some(Number::Float(v))),
            Some(other) => Err(self.wrong(name, "a number", &other)),
        }
    }

    pub fn str_opt(&mut self, name: &'static str) -> Result<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Attribute::Str(v)) => Ok(Some(v)),
            Some(other) => Err(self.wrong(name, "a string", &other)),
        }
    }

    /// One of the named choices; returns its position.
    pub fn choice(
        &mut self,
        name: &'static str,
        choices: &[&str],
        default: usize,
    ) -> Result<usize> {
        let Some(value) = self.str_opt(name)? else { return Ok(default) };
        choices.iter().position(|c| *c == value).ok_or_else(|| {
            Error::attribute(
                self.operator,
                format!("{name} to be one of {}", choices.join(", ")),
                format!("'{value}'"),
            )
        })
    }

    pub fn dtype_opt(&mut self, name: &'static str) -> Result<Option<DType>> {
        let operator = self.operator;
        self.str_opt(name)?.map(|v| DType::from_name(operator, &v)).transpose()
    }

    pub fn dtype_required(&mut self, name: &'static str) -> Result<DType> {
        let v = self.dtype_opt(name)?;
        self.required(name, v)
    }

    /// A list of integers; a single integer counts as a list of one.
    pub fn ints_opt(&mut self, name: &'static str) -> Result<Option<Vec<i64>>> {
        match self.take(name) {
            None => Ok(None),
            Some(Attribute::Ints(v)) => Ok(Some(v)),
            Some(Attribute::Int(v)) => Ok(Some(vec![v])),
            Some(Attribute::Floats(v)) if v.is_empty() => Ok(Some(Vec::new())),
            Some(other) => Err(self.wrong(name, "a list of integers", &other)),
        }
    }

    pub fn ints_required(&mut self, name: &'static str) -> Result<Vec<i64>> {
        let v = self.ints_opt(name)?;
        self.required(name, v)
    }

    /// A list of non-negative integers.
    pub fn sizes_opt(&mut self, name: &'static str) -> Result<Option<Vec<usize>>> {
        let Some(values) = self.ints_opt(name)? else { return Ok(None) };
        if values.iter().any(|&v| v < 0) {
            let text = format!("{values:?}");
            return Err(Error::attribute(self.operator, format!("{name} not negative"), text));
        }
        Ok(Some(values.into_iter().map(|v| v as usize).collect()))
    }

    pub fn sizes_required(&mut self, name: &'static str) -> Result<Vec<usize>> {
        let v = self.sizes_opt(name)?;
        self.required(name, v)
    }

    pub fn floats_opt(&mut self, name: &'static str) -> Result<Option<Vec<f64>>> {
        match self.take(name) {
            None => Ok(None),
            Some(Attribute::Floats(v)) => Ok(Some(v)),
            Some(Attribute::Float(v)) => Ok(Some(vec![v])),
            Some(Attribute::Ints(v)) => Ok(Some(v.into_iter().map(|i| i as f64).collect())),
            Some(Attribute::Int(v)) => Ok(Some(vec![v as f64])),
            Some(other) => Err(self.wrong(name, "a list of numbers", &other)),
        }
    }

    pub fn strs_opt(&mut self, name: &'static str) -> Result<Option<Vec<String>>> {
        match self.take(name) {
            None => Ok(None),
            Some(Attribute::Strs(v)) => Ok(Some(v)),
            Some(Attribute::Ints(v)) if v.is_empty() => Ok(Some(Vec::new())),
            Some(other) => Err(self.wrong(name, "a list of strings", &other)),
        }
    }

    /// Rejects attributes that no getter asked for.
    ///
    /// # Errors
    /// `Attribute`, naming the unknown one and the known ones.
    pub fn finish(self) -> Result<()> {
        match self.values.keys().next() {
            None => Ok(()),
            Some(name) => Err(Error::attribute(
                self.operator,
                if self.known.is_empty() {
                    "no attributes".to_string()
                } else {
                    format!("attributes among {}", self.known.join(", "))
                },
                format!("'{name}'"),
            )),
        }
    }
}
