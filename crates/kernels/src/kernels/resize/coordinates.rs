//! Where an output place lies on an input axis, and the weights of the elements around it.

/// ONNX's coordinate transformation modes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Transformation {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    CropAndResize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Nearest {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    Nearest(Nearest),
    Linear,
    Cubic,
}

/// One axis: extents, and the scale where one was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) input: usize,
    pub(super) output: usize,
    /// `None`: the quotient of the extents.
    pub(super) scale: Option<f64>,
    /// The region of interest, for crop and resize.
    pub(super) roi: (f64, f64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) mode: Mode,
    pub(super) transformation: Transformation,
    pub(super) cubic: f64,
    pub(super) exclude_outside: bool,
    pub(super) antialias: bool,
}

/// The elements that make up each output place of an axis: `taps` indices and weights each.
pub(super) struct Taps {
    pub(super) taps: usize,
    pub(super) index: Vec<usize>,
    pub(super) weight: Vec<f64>,
    /// Whether the place lies outside the input (crop and resize only).
    pub(super) outside: Vec<bool>,
}

impl Axis {
    /// `v` output steps in input steps.
    fn shrink(&self, v: f64) -> f64 {
        match self.scale {
            // In f32, which is what a scale is in ONNX: 1.5 / 0.6 is then 2.5.
            Some(scale) => f64::from(v as f32 / scale as f32),
            // One exact product and one rounded quotient, so that whole results stay whole.
            None => v * self.input as f64 / self.output as f64,
        }
    }

    /// The coordinate of the middle of an output step.
    fn centre(&self, x: f64) -> f64 {
        let x = self.shrink(x + 0.5);
        if self.scale.is_some() { f64::from(x as f32 - 0.5) } else { x - 0.5 }
    }

    fn scale(&self) -> f64 {
        self.scale.unwrap_or(self.output as f64 / self.input as f64)
    }

    /// The input coordinate of an output place.
    fn source(&self, place: usize, transformation: Transformation) -> f64 {
        let x = place as f64;
        let (n, m) = (self.input as f64, self.output as f64);
        match transformation {
            Transformation::HalfPixel => self.centre(x),
            Transformation::PytorchHalfPixel if self.output > 1 => self.centre(x),
            Transformation::PytorchHalfPixel => 0.0,
            Transformation::HalfPixelSymmetric => match self.scale {
                Some(scale) => {
                    let (n, m, scale) = (n as f32, m as f32, scale as f32);
                    let offset = n / 2.0 * (1.0 - m / (scale * n));
                    f64::from(offset + (x as f32 + 0.5) / scale - 0.5)
                }
                None => self.centre(x),
            },
            Transformation::AlignCorners if self.output > 1 => x * (n - 1.0) / (m - 1.0),
            Transformation::AlignCorners => 0.0,
            Transformation::Asymmetric => self.shrink(x),
            Transformation::CropAndResize => {
                let (start, end) = self.roi;
                if self.output > 1 {
                    start * (n - 1.0) + x * (end - start) * (n - 1.0) / (m - 1.0)
                } else {
                    0.5 * (start + end) * (n - 1.0)
                }
            }
        }
    }

    pub(super) fn taps(&self, options: &Options) -> Taps {
        let mut taps = Taps { taps: 0, index: vec![], weight: vec![], outside: vec![] };
        for place in 0..self.output {
            let x = self.source(place, options.transformation);
            let last = (self.input - 1) as f64;
            let is_crop = options.transformation == Transformation::CropAndResize;
            taps.outside.push(is_crop && !(0.0..=last).contains(&x));
            let (first, weights) = around(x, self.scale(), options, last);
            taps.taps = weights.len();
            let mut kept = weights;
            if options.exclude_outside {
                for (k, w) in kept.iter_mut().enumerate() {
                    let at = first + k as i64;
                    if at < 0 || at >= self.input as i64 {
                        *w = 0.0;
                    }
                }
            }
            let total: f64 = kept.iter().sum();
            for (k, w) in kept.iter().enumerate() {
                let at = (first + k as i64).clamp(0, self.input as i64 - 1);
                taps.index.push(at as usize);
                taps.weight.push(if total == 1.0 || total == 0.0 { *w } else { *w / total });
            }
        }
        taps
    }
}

/// The first element and the weights around coordinate `x`.
fn around(x: f64, scale: f64, options: &Options, last: f64) -> (i64, Vec<f64>) {
    match options.mode {
        Mode::Nearest(rule) => {
            let at = match rule {
                Nearest::RoundPreferFloor => (x - 0.5).ceil(),
                Nearest::RoundPreferCeil => (x + 0.5).floor(),
                Nearest::Floor => x.floor(),
                Nearest::Ceil => x.ceil(),
            };
            (at.clamp(0.0, last) as i64, vec![1.0])
        }
        Mode::Linear if options.antialias && scale < 1.0 => {
            stretched(x, scale, 1.0, |d| (1.0 - d.abs()).max(0.0))
        }
        Mode::Linear => {
            // At the border the nearest element alone.
            let x = if options.antialias { x } else { x.clamp(0.0, last) };
            let ratio = x - x.floor();
            (x.floor() as i64, vec![1.0 - ratio, ratio])
        }
        Mode::Cubic if options.antialias && scale < 1.0 => {
            stretched(x, scale, 2.0, |d| cubic(d, options.cubic))
        }
        Mode::Cubic => {
            let ratio = x - x.floor();
            let weights = [1.0 + ratio, ratio, 1.0 - ratio, 2.0 - ratio];
            (x.floor() as i64 - 1, weights.map(|d| cubic(d, options.cubic)).to_vec())
        }
    }
}

/// A filter of half-width `support`, widened by the shrinking, over all elements it reaches.
fn stretched(x: f64, scale: f64, support: f64, filter: impl Fn(f64) -> f64) -> (i64, Vec<f64>) {
    let base = x.floor();
    let ratio = x - base;
    let start = (-support / scale).floor() as i64 + 1;
    let weights = (start..2 - start).map(|i| filter((i as f64 - ratio) * scale)).collect();
    (base as i64 + start, weights)
}

/// Keys' cubic convolution with parameter `a`.
fn cubic(d: f64, a: f64) -> f64 {
    let d = d.abs();
    if d <= 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    } else {
        0.0
    }
}
