//! All kernels by name.

use crate::attributes::{Attribute, Attributes};
use crate::error::{Error, Result};
use crate::kernel::{Entry, Kernel};
use crate::kernels;
use crate::once::SetOnce;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

fn table() -> &'static HashMap<&'static str, &'static Entry> {
    static TABLE: SetOnce<HashMap<&'static str, &'static Entry>> = SetOnce::new();
    TABLE.get_or_make(|| {
        let mut map = HashMap::new();
        for entry in kernels::FAMILIES.iter().copied().flatten() {
            let earlier = map.insert(entry.name, entry);
            debug_assert!(earlier.is_none(), "kernel {} registered twice", entry.name);
        }
        map
    })
}

/// The names of all kernels, sorted.
#[must_use]
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = table().keys().copied().collect();
    names.sort_unstable();
    names
}

/// Prepares the operator `name` with its attributes.
///
/// # Errors
/// `Unsupported` for an unknown name (with the nearest known ones), `Attribute` for a missing,
/// unknown or wrong attribute.
pub fn build(name: &str, values: BTreeMap<String, Attribute>) -> Result<Arc<dyn Kernel>> {
    let entry = table().get(name).ok_or_else(|| {
        let close: Vec<_> = names()
            .into_iter()
            .filter(|k| k.eq_ignore_ascii_case(name) || k.starts_with(name) || name.starts_with(k))
            .collect();
        let hint =
            if close.is_empty() { String::new() } else { format!(" ({}?)", close.join(", ")) };
        Error::unsupported("Kernel", format!("the name of a kernel{hint}"), format!("'{name}'"))
    })?;
    let mut attributes = Attributes::new(entry.name, values);
    let kernel = (entry.build)(&mut attributes)?;
    attributes.finish()?;
    Ok(kernel)
}
