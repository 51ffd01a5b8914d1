//! Window geometry: attributes, output extents, and which source positions each output reads.

use crate::array::Dims;
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use smallvec::SmallVec;

/// Spatial axes that convolutions and pools handle; fewer are extended by axes of extent 1 in front.
pub(crate) const AXES: usize = 3;

/// Strides, pads and dilations as given; empty lists stand for the defaults.
#[derive(Debug, Clone)]
pub(crate) struct WindowAttributes {
    strides: Vec<usize>,
    pads: Vec<usize>,
    dilations: Vec<usize>,
}

/// One window over three axes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) kernel: [usize; AXES],
    pub(crate) strides: [usize; AXES],
    pub(crate) begins: [usize; AXES],
    pub(crate) ends: [usize; AXES],
    pub(crate) dilations: [usize; AXES],
    /// Real spatial axes.
    pub(crate) axes: usize,
}

/// Three extents, ones in front.
pub(crate) fn extended(values: &[usize]) -> [usize; AXES] {
    let mut out = [1; AXES];
    let lead = AXES - values.len();
    out[lead..].copy_from_slice(values);
    out
}

impl WindowAttributes {
    #[cfg(test)]
    pub(crate) fn of(strides: &[usize], pads: &[usize], dilations: &[usize]) -> Self {
        let [strides, pads, dilations] = [strides, pads, dilations].map(<[usize]>::to_vec);
        Self { strides, pads, dilations }
    }

    /// Reads `strides`, `pads` and, when `dilated`, `dilations`.
    ///
    /// # Errors
    /// `Attribute` for negative values and for strides or dilations of 0.
    pub(crate) fn read(attributes: &mut Attributes) -> Result<Self> {
        let operator = attributes.operator();
        let window = Self {
            strides: attributes.sizes_opt("strides")?.unwrap_or_default(),
            pads: attributes.sizes_opt("pads")?.unwrap_or_default(),
            dilations: attributes.sizes_opt("dilations")?.unwrap_or_default(),
        };
        for (name, list) in [("strides", &window.strides), ("dilations", &window.dilations)] {
            if list.contains(&0) {
                let got = format!("{list:?}");
                return Err(Error::attribute(operator, format!("{name} of at least 1"), got));
            }
        }
        Ok(window)
    }

    /// The window of a kernel of these extents.
    ///
    /// # Errors
    /// `Attribute` when the lists do not fit the number of axes, `Shape` for more than three axes or
    /// none, or a kernel extent of 0.
    pub(crate) fn window(&self, operator: &str, kernel: &[usize]) -> Result<Window> {
        let axes = kernel.len();
        if axes == 0 || axes > AXES {
            let expected = format!("1 to {AXES} spatial axes");
            return Err(Error::shape(operator, expected, format!("{axes}")));
        }
        if kernel.contains(&0) {
            let got = format!("{kernel:?}");
            return Err(Error::shape(operator, "kernel extents of at least 1", got));
        }
        let fits = |list: &[usize], n: usize| list.is_empty() || list.len() == n;
        if !fits(&self.strides, axes) || !fits(&self.dilations, axes) || !fits(&self.pads, 2 * axes)
        {
            return Err(Error::attribute(
                operator,
                format!("strides, dilations and pads for {axes} spatial axes"),
                format!("{:?}, {:?} and {:?}", self.strides, self.dilations, self.pads),
            ));
        }
        let filled = |list: &[usize]| if list.is_empty() { [1; AXES] } else { extended(list) };
        let mut begins = [0; AXES];
        let mut ends = [0; AXES];
        if !self.pads.is_empty() {
            begins[AXES - axes..].copy_from_slice(&self.pads[..axes]);
            ends[AXES - axes..].copy_from_slice(&self.pads[axes..]);
        }
        Ok(Window {
            kernel: extended(kernel),
            strides: filled(&self.strides),
            begins,
            ends,
            dilations: filled(&self.dilations),
            axes,
        })
    }
}

fn overflow(operator: &str) -> Error {
    Error::memory(operator, "window extents that fit the address space", "larger ones")
}

impl Window {
    /// Taps of one window.
    pub(crate) fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Positions from the first to the last tap of a window along an axis.
    pub(crate) fn reach(&self, operator: &str, axis: usize) -> Result<usize> {
        let steps = self.dilations[axis].checked_mul(self.kernel[axis] - 1);
        steps.and_then(|s| s.checked_add(1)).ok_or_else(|| overflow(operator))
    }

    /// Output extents of a convolution or pool over an input of spatial extents `sizes`. With `ceil`
    /// the last window may start inside the input and reach past the padding.
    ///
    /// # Errors
    /// `Shape` when a window does not fit.
    pub(crate) fn output(&self, operator: &str, sizes: &[usize], ceil: bool) -> Result<Dims> {
        let lead = AXES - self.axes;
        let mut out = Dims::new();
        for (i, &size) in sizes.iter().enumerate() {
            let axis = lead + i;
            let reach = self.reach(operator, axis)?;
            let padded = size
                .checked_add(self.begins[axis])
                .and_then(|s| s.checked_add(self.ends[axis]))
                .ok_or_else(|| overflow(operator))?;
            if padded < reach {
                return Err(Error::shape(
                    operator,
                    format!("an extent of at least {reach} with its pads on spatial axis {i}"),
                    format!("{size} with pads {} and {}", self.begins[axis], self.ends[axis]),
                ));
            }
            let (room, stride) = (padded - reach, self.strides[axis]);
            let mut count = room / stride + 1;
            if ceil && room % stride != 0 && count * stride < size + self.begins[axis] {
                count += 1;
            }
            out.push(count);
        }
        Ok(out)
    }

    /// Output extents of the transposed convolution of an input of spatial extents `sizes`.
    ///
    /// # Errors
    /// `Shape` when an extent would be negative.
    pub(crate) fn transposed_output(
        &self,
        operator: &str,
        sizes: &[usize],
        extra: &[usize],
    ) -> Result<Dims> {
        let lead = AXES - self.axes;
        let mut out = Dims::new();
        for (i, &size) in sizes.iter().enumerate() {
            let axis = lead + i;
            let full = size
                .saturating_sub(1)
                .checked_mul(self.strides[axis])
                .and_then(|s| s.checked_add(extra.get(i).copied().unwrap_or(0)))
                .and_then(|s| s.checked_add(self.reach(operator, axis).ok()?))
                .ok_or_else(|| overflow(operator))?;
            let cut = self.begins[axis] + self.ends[axis];
            if size == 0 || full < cut {
                return Err(Error::shape(
                    operator,
                    format!("pads of at most {full} together on spatial axis {i}"),
                    format!("{} and {}", self.begins[axis], self.ends[axis]),
                ));
            }
            out.push(full - cut);
        }
        Ok(out)
    }
}

/// Taps of a class along one axis: the kernel index and the source position that output 0 reads.
pub(crate) type AxisTaps = SmallVec<[(usize, isize); 8]>;

/// Outputs that read the same taps: along each axis `count` of them, `step` apart from `first`. Output
/// u reads source position `u * source_step + shift` for each tap.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    pub(crate) first: [usize; AXES],
    pub(crate) step: [usize; AXES],
    pub(crate) count: [usize; AXES],
    pub(crate) taps: [AxisTaps; AXES],
}

impl Class {
    /// Taps of one output.
    pub(crate) fn tap_count(&self) -> usize {
        self.taps.iter().map(SmallVec::len).product()
    }
}

/// The one class of a convolution.
pub(crate) fn forward_class(window: &Window, output: [usize; AXES]) -> Class {
    let taps = std::array::from_fn(|axis| {
        (0..window.kernel[axis])
            .map(|k| (k, (k * window.dilations[axis]) as isize - window.begins[axis] as isize))
            .collect()
    });
    Class { first: [0; AXES], step: [1; AXES], count: output, taps }
}

/// The classes of a transposed convolution: one for each residue of the padded position by the stride.
/// Only taps whose source position is a whole number belong to a class.
pub(crate) fn transposed_classes(window: &Window, output: [usize; AXES]) -> Vec<Class> {
    let axis_classes = |axis: usize| -> Vec<(usize, usize, AxisTaps)> {
        let (stride, pad) = (window.strides[axis], window.begins[axis]);
        // First outputs only: a stride may be far greater than the output, and then most have none.
        (0..stride.min(output[axis]))
            .map(|first| {
                let at = (first + pad) as isize;
                let taps = (0..window.kernel[axis])
                    .filter_map(|k| {
                        let distance = at - (k * window.dilations[axis]) as isize;
                        let stride = stride as isize;
                        (distance % stride == 0).then_some((k, distance / stride))
                    })
                    .collect();
                let count = (output[axis] - first).div_ceil(stride);
                (first, count, taps)
            })
            .collect()
    };
    let [d, h, w] = std::array::from_fn(axis_classes);
    let mut classes = Vec::with_capacity(d.len() * h.len() * w.len());
    for a in &d {
        for b in &h {
            for c in &w {
                classes.push(Class {
                    first: [a.0, b.0, c.0],
                    step: window.strides,
                    count: [a.1, b.1, c.1],
                    taps: [a.2.clone(), b.2.clone(), c.2.clone()],
                });
            }
        }
    }
    classes
}
