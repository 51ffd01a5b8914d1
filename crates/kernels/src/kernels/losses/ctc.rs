//! CTCLoss with its gradient.

use super::ctc_lattice::Lattice;
use crate::array::{Array, Meta};
use crate::attributes::Attributes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::{Entry, Inputs, Kernel, Metas};
use crate::kernels::gemm::matrix::Shared;
use crate::parallel;
use crate::scratch::Scratch;
use smallvec::smallvec;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const KERNELS: &[Entry] = &[Entry { name: "CTCLoss", build: CtcLoss::build }];

const OP: &str = "CTCLoss";

/// Connectionist temporal classification (Graves et al. 2006): inputs are log-probabilities
/// (T, B, C), targets (B, S) or all targets one after the other (sum of lengths), the lengths of
/// the inputs (B) and of the targets (B). Outputs are the loss of each sample (B) and the gradient
/// of the loss wrt the log-probabilities (T, B, C), which is minus the probability, given the
/// targets, that a path is in the class at that time; rows past a length get 0.
///
/// All sums are in f64 and in log space, over states ascending (stay, then from one below, then
/// from two below) and times ascending, by the crate's own exp and ln; results are rounded once.
/// A sample whose targets do not fit its input has the loss inf and a gradient of NaN in the rows
/// of its length, or 0 and 0 with `zero_infinity`.
struct CtcLoss {
    blank: i64,
    zero_infinity: bool,
}

/// The samples of one call, read and checked.
struct Samples {
    steps: Vec<usize>,
    labels: Vec<Vec<usize>>,
}

fn integers(array: &Array) -> Result<Vec<i64>> {
    let array = array.to_contiguous()?;
    Ok(match array.dtype() {
        DType::I32 => array.as_slice::<i32>().iter().map(|&v| i64::from(v)).collect(),
        _ => array.as_slice::<i64>().to_vec(),
    })
}

fn lengths(array: &Array, what: &str, limit: usize) -> Result<Vec<usize>> {
    integers(array)?
        .into_iter()
        .enumerate()
        .map(|(b, v)| {
            if (0..=limit as i64).contains(&v) {
                return Ok(v as usize);
            }
            Err(Error::bounds(
                OP,
                format!("{what} lengths in [0, {limit}]"),
                format!("{v} for sample {b}"),
            ))
        })
        .collect()
}

impl CtcLoss {
    fn build(attributes: &mut Attributes) -> Result<Arc<dyn Kernel>> {
        let blank = attributes.int("blank", 0)?;
        Ok(Arc::new(Self { blank, zero_infinity: attributes.flag("zero_infinity", false)? }))
    }

    fn read(&self, inputs: &[Option<&Array>]) -> Result<Option<Samples>> {
        let (Some(logp), Some(targets), Some(input_lengths), Some(target_lengths)) =
            (inputs[0], inputs[1], inputs[2], inputs[3])
        else {
            return Ok(None);
        };
        let classes = logp.shape()[2] as i64;
        let flat = targets.rank() == 1;
        let limit = targets.shape()[targets.rank() - 1];
        let steps = lengths(input_lengths, "input", logp.shape()[0])?;
        let counts = lengths(target_lengths, "target", limit)?;
        let values = integers(targets)?;
        let total = counts.iter().sum::<usize>();
        if flat && total != values.len() {
            return Err(Error::shape(
                OP,
                format!("{total} targets, the sum of the target lengths"),
                format!("{}", values.len()),
            ));
        }
        let mut start = 0;
        let mut labels = Vec::with_capacity(counts.len());
        for (b, &count) in counts.iter().enumerate() {
            let from = if flat { start } else { b * limit };
            start += count;
            let row: Result<Vec<usize>> = values[from..from + count]
                .iter()
                .map(|&v| {
                    if (0..classes).contains(&v) && v != self.blank {
                        return Ok(v as usize);
                    }
                    Err(Error::bounds(
                        OP,
                        format!("targets in [0, {classes}) other than the blank {}", self.blank),
                        format!("{v} for sample {b}"),
                    ))
                })
                .collect();
            labels.push(row?);
        }
        Ok(Some(Samples { steps, labels }))
    }

    /// Loss and gradient of sample `b`; `read` and `write` convert elements.
    fn sample(
        &self,
        samples: &Samples,
        b: usize,
        (batch, classes): (usize, usize),
        read: impl Fn(usize) -> f64,
        mut write: impl FnMut(usize, f64),
    ) -> Result<f64> {
        let steps = samples.steps[b];
        let labels = &samples.labels[b];
        let at = |t: usize, c: usize| (t * batch + b) * classes + c;
        let lattice =
            Lattice { log_prob: |t, c| read(at(t, c)), steps, labels, blank: self.blank as usize };
        let n = lattice.row();
        let room = steps * n + 2 * n + steps * classes;
        let mut scratch = Scratch::new(OP, room * size_of::<f64>())?;
        let (alpha, rest) = scratch.as_mut::<f64>().split_at_mut(steps * n);
        let (beta, rest) = rest.split_at_mut(2 * n);
        let occupancy = &mut rest[..steps * classes];
        let loss = lattice.loss(alpha);
        let impossible = loss == f64::INFINITY;
        occupancy.fill(0.0);
        if !impossible {
            lattice.occupancy(alpha, loss, beta, classes, occupancy);
        } else if !self.zero_infinity {
            occupancy.fill(f64::NAN);
        }
        for t in 0..steps {
            for c in 0..classes {
                let share = occupancy[t * classes + c];
                write(at(t, c), if share == 0.0 { 0.0 } else { -share });
            }
        }
        Ok(if impossible && self.zero_infinity { 0.0 } else { loss })
    }
}

impl Kernel for CtcLoss {
    fn name(&self) -> &'static str {
        OP
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        let inputs = Inputs::new(OP, inputs, 4, 4)?;
        let (logp, targets) = (inputs.get(0), inputs.get(1));
        if !matches!(logp.dtype, DType::F32 | DType::F64) {
            return Err(Error::dtype(OP, "float32 or float64", logp.dtype.name()));
        }
        for i in 1..4 {
            let dtype = inputs.get(i).dtype;
            if !matches!(dtype, DType::I32 | DType::I64) {
                let expected = format!("input {i} of int32 or int64");
                return Err(Error::dtype(OP, expected, dtype.name()));
            }
        }
        let [_, batch, classes] = logp.shape[..] else {
            let got = format!("{:?}", logp.shape);
            return Err(Error::shape(OP, "log-probabilities (T, B, C)", got));
        };
        if !(0..classes as i64).contains(&self.blank) {
            let expected = format!("a blank in [0, {classes})");
            return Err(Error::bounds(OP, expected, self.blank.to_string()));
        }
        let fits = match targets.shape[..] {
            [_] => true,
            [rows, _] => rows == batch,
            _ => false,
        };
        let lengths = [&inputs.get(2).shape[..], &inputs.get(3).shape[..]];
        if !fits || lengths.iter().any(|l| *l != [batch]) {
            return Err(Error::shape(
                OP,
                format!("targets ({batch}, S) or (sum of lengths) and lengths ({batch})"),
                format!("{:?}, {:?}, {:?}", targets.shape, lengths[0], lengths[1]),
            ));
        }
        Ok(smallvec![Meta::new(logp.dtype, &[batch]), logp.clone()])
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        let (Some(samples), Some(logp)) = (self.read(inputs)?, inputs[0]) else { return Ok(()) };
        let logp = logp.to_contiguous()?;
        let (batch, classes) = (logp.shape()[1], logp.shape()[2]);
        let failed = Mutex::new(None);
        let report = |e| *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
        macro_rules! run {
            ($T:ty) => {{
                let data = logp.as_slice::<$T>();
                // SAFETY: the kernel's own outputs, contiguous.
                unsafe { outputs[1].as_mut_slice::<$T>() }.fill(0.0);
                let loss = Shared::new(outputs[0].as_mut_ptr::<$T>());
                let grad = Shared::new(outputs[1].as_mut_ptr::<$T>());
                parallel::for_each(batch, |b| {
                    let read = |i: usize| f64::from(data[i]);
                    // SAFETY: element of sample b.
                    let write = |i: usize, v: f64| unsafe { *grad.get().add(i) = v as $T };
                    match self.sample(&samples, b, (batch, classes), read, write) {
                        // SAFETY: element of sample b.
                        Ok(value) => unsafe { *loss.get().add(b) = value as $T },
                        Err(e) => report(e),
                    }
                });
            }};
        }
        match outputs[0].dtype() {
            DType::F32 => run!(f32),
            _ => run!(f64),
        }
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn single_output(&self) -> bool {
        false
    }
}
