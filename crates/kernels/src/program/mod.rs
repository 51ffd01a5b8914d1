//! The executor: a planned list of kernel calls over one arena, run without interpretation.

mod idle;
mod instance;

use crate::array::{Array, Dims, Meta, Strides, element_count};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use idle::Idle;
use instance::{Instance, root};
use std::sync::Arc;

const OP: &str = "Program";
/// Up to so many calls on values of so many elements a run takes about a microsecond.
const SHORT_CALLS: usize = 2;
const SHORT_ELEMENTS: usize = 1024;

/// Where a value of the program lives.
pub enum Place {
    /// Given at each run, in order of appearance.
    Input(Meta),
    Constant(Array),
    /// At a byte offset of the arena, contiguous.
    Arena(Meta, usize),
    /// Freshly allocated at each run.
    Output(Meta),
    /// Other shape and strides over an earlier value, which counts as contiguous; the offset is
    /// relative to the base's first element.
    View {
        base: usize,
        shape: Dims,
        strides: Strides,
        offset: usize,
    },
}

/// One kernel call on value indices.
pub struct Call {
    pub kernel: Arc<dyn Kernel>,
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<usize>,
}

/// A checked plan. Runs from several threads at once use separate arenas.
pub struct Program {
    values: Vec<Place>,
    calls: Vec<Call>,
    outputs: Vec<usize>,
    inputs: Vec<usize>,
    arena_bytes: usize,
    idle: Idle,
    short: bool,
}

impl Program {
    /// Checks the whole plan once: indices, dtypes, shapes against each kernel's `infer`, arena
    /// bounds, and that no call's output overlaps an input it must not.
    ///
    /// # Errors
    /// `Usage` or `Shape`, naming the value or the call.
    pub fn new(
        values: Vec<Place>,
        calls: Vec<Call>,
        outputs: Vec<usize>,
        arena_bytes: usize,
    ) -> Result<Self> {
        let inputs = values
            .iter()
            .enumerate()
            .filter(|(_, v)| matches!(v, Place::Input(_)))
            .map(|(i, _)| i)
            .collect();
        let idle = Idle::default();
        let mut program = Self { values, calls, outputs, inputs, arena_bytes, idle, short: false };
        program.check()?;
        program.short = program.calls.len() <= SHORT_CALLS
            && program.values.iter().all(|place| match place {
                Place::Input(meta) | Place::Output(meta) | Place::Arena(meta, _) => {
                    meta.shape.iter().product::<usize>() <= SHORT_ELEMENTS
                }
                Place::Constant(array) => array.size() <= SHORT_ELEMENTS,
                Place::View { .. } => true,
            });
        Ok(program)
    }

    #[must_use]
    pub fn values(&self) -> &[Place] {
        &self.values
    }

    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Dtype and shape of each input, in order.
    pub fn input_metas(&self) -> impl Iterator<Item = &Meta> {
        self.inputs.iter().filter_map(|&i| match &self.values[i] {
            Place::Input(meta) => Some(meta),
            _ => None,
        })
    }

    #[must_use]
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Whether a run is so short that giving up the interpreter lock around it costs more.
    #[must_use]
    pub fn is_short(&self) -> bool {
        self.short
    }

    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    fn index(&self, i: usize, what: &str) -> Result<()> {
        if i < self.values.len() {
            return Ok(());
        }
        Err(Error::usage(OP, format!("{what} below {}", self.values.len()), format!("{i}")))
    }

    fn check(&self) -> Result<()> {
        for (i, place) in self.values.iter().enumerate() {
            match place {
                Place::Arena(meta, at) => {
                    let bytes = element_count(OP, &meta.shape, meta.dtype)? * meta.dtype.size();
                    let end = at.checked_add(bytes);
                    if at % 64 != 0 || end.is_none_or(|e| e > self.arena_bytes) {
                        return Err(Error::usage(
                            OP,
                            format!("value {i} inside {} bytes, aligned to 64", self.arena_bytes),
                            format!("{bytes} bytes at {at}"),
                        ));
                    }
                }
                Place::Input(meta) | Place::Output(meta) => {
                    element_count(OP, &meta.shape, meta.dtype)?;
                }
                Place::View { base, .. } if *base >= i => {
                    return Err(Error::usage(
                        OP,
                        format!("the base of view {i} to come before it"),
                        format!("{base}"),
                    ));
                }
                Place::View { .. } | Place::Constant(_) => {}
            }
        }
        for &o in &self.outputs {
            self.index(o, "an output's value index")?;
        }
        // A dry instance resolves every value to an array, views included, so that shapes and
        // overlaps are checked on what the kernels will really see.
        let probe = Instance::new(self)?;
        let inputs = self
            .inputs
            .iter()
            .map(|&i| match &self.values[i] {
                Place::Input(meta) => Array::uninit(OP, meta.dtype, &meta.shape),
                _ => unreachable!("the list holds inputs only"),
            })
            .collect::<Result<Vec<_>>>()?;
        let probe = probe.resolved(self, &inputs)?;
        for (n, call) in self.calls.iter().enumerate() {
            self.check_call(n, call, &probe)?;
        }
        Ok(())
    }

    fn check_call(&self, n: usize, call: &Call, arrays: &[Array]) -> Result<()> {
        let at = format!("{} (call {n})", call.kernel.name());
        for &i in call.inputs.iter().flatten().chain(&call.outputs) {
            self.index(i, &format!("a value index of {at}"))?;
        }
        let inputs: Vec<_> = call.inputs.iter().map(|i| i.map(|i| &arrays[i])).collect();
        let metas = crate::kernel::infer_for(&*call.kernel, &inputs)?;
        if metas.len() != call.outputs.len() {
            let got = format!("{}", call.outputs.len());
            return Err(Error::usage(&at, format!("{} outputs", metas.len()), got));
        }
        for (k, (meta, &o)) in metas.iter().zip(&call.outputs).enumerate() {
            let out = &arrays[o];
            if matches!(self.values[root(self, o)], Place::Input(_) | Place::Constant(_)) {
                return Err(Error::usage(&at, "an output in the arena", "an input or a constant"));
            }
            if *meta != out.meta() || !out.is_contiguous() {
                return Err(Error::usage(
                    &at,
                    format!("output {k} contiguous, {} {:?}", meta.dtype.name(), meta.shape),
                    format!("{} {:?}", out.dtype().name(), out.shape()),
                ));
            }
            for (j, input) in inputs.iter().enumerate() {
                let Some(input) = input else { continue };
                let same = call.kernel.in_place().contains(&(j, k))
                    && input.is_contiguous()
                    && input.dtype() == out.dtype()
                    && input.byte_range() == out.byte_range();
                if out.overlaps(input) && !same {
                    return Err(Error::usage(
                        &at,
                        format!("output {k} not to overlap input {j}"),
                        "a plan in which they share memory",
                    ));
                }
            }
            if call.outputs[..k].iter().any(|&p| arrays[p].overlaps(out)) {
                return Err(Error::usage(&at, "outputs that do not overlap", "two that do"));
            }
        }
        Ok(())
    }

    fn check_inputs(&self, inputs: &[Array]) -> Result<()> {
        if inputs.len() != self.inputs.len() {
            let (want, got) = (self.inputs.len(), inputs.len());
            return Err(Error::usage(OP, format!("{want} inputs"), format!("{got}")));
        }
        for (k, (&i, array)) in self.inputs.iter().zip(inputs).enumerate() {
            if let Place::Input(meta) = &self.values[i]
                && (array.dtype() != meta.dtype || array.shape() != meta.shape.as_slice())
            {
                return Err(Error::shape(
                    OP,
                    format!("input {k} to be {} {:?}", meta.dtype.name(), meta.shape),
                    format!("{} {:?}", array.dtype().name(), array.shape()),
                ));
            }
        }
        Ok(())
    }

    /// Runs the plan; the outputs are freshly allocated.
    ///
    /// # Errors
    /// `Shape` for inputs other than planned, or what a kernel reports about values.
    pub fn run(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        self.run_with(inputs, |_, run| run())
    }

    /// Runs the plan and asks `watch` before each call; its error ends the run.
    ///
    /// # Errors
    /// As [`Program::run`], and what `watch` returns.
    pub fn run_watched(
        &self,
        inputs: &[Array],
        watch: impl Fn() -> Result<()>,
    ) -> Result<Vec<Array>> {
        self.run_with(inputs, |_, run| {
            watch()?;
            run()
        })
    }

    /// Runs the plan and measures each call; returns nanoseconds per call beside the outputs.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_profiled(&self, inputs: &[Array]) -> Result<(Vec<Array>, Vec<u64>)> {
        let times = std::cell::RefCell::new(vec![0u64; self.calls.len()]);
        let outputs = self.run_with(inputs, |n, run| {
            let start = std::time::Instant::now();
            let result = run();
            times.borrow_mut()[n] = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            result
        })?;
        Ok((outputs, times.into_inner()))
    }

    fn run_with(
        &self,
        inputs: &[Array],
        around: impl Fn(usize, &dyn Fn() -> Result<()>) -> Result<()>,
    ) -> Result<Vec<Array>> {
        self.check_inputs(inputs)?;
        let mut run = Run { program: self, instance: self.idle.begin() };
        let instance = match &mut run.instance {
            Some(instance) => instance,
            none => none.insert(Instance::new(self)?),
        };
        instance.run(self, inputs, around)
    }

    /// Gives back the arenas that no run uses. The next run takes one of the kept blocks of memory,
    /// which another program may have used meanwhile.
    pub fn release(&self) {
        self.idle.release();
    }
}

/// A run under way, which ends when it is dropped.
struct Run<'a> {
    program: &'a Program,
    instance: Option<Instance>,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let instance = self.instance.take().map(|mut instance| {
            instance.release();
            instance
        });
        self.program.idle.end(instance);
    }
}
