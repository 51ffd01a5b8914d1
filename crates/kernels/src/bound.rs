//! A kernel with constants packed beforehand, which checks that it is called with constants of their
//! types: packed memory of another size would be read beyond its end.

use crate::array::{Array, Meta};
use crate::error::{Error, Result};
use crate::kernel::{Kernel, Metas, Outputs};
use crate::kernels::epilogue::{Before, ChannelAxis, Epilogue, Step};
use crate::kernels::fusion::Fused;
use std::sync::Arc;

struct Bound {
    kernel: Arc<dyn Kernel>,
    constants: Vec<Option<Meta>>,
}

/// `kernel` with these constant inputs packed once where something is gained, else itself.
///
/// # Errors
/// As [`Kernel::bind`].
pub fn bind(kernel: &Arc<dyn Kernel>, constants: &[Option<&Array>]) -> Result<Arc<dyn Kernel>> {
    let Some(bound) = kernel.bind(constants)? else { return Ok(kernel.clone()) };
    let constants = constants.iter().map(|c| c.map(Array::meta)).collect();
    Ok(Arc::new(Bound { kernel: bound, constants }))
}

impl Kernel for Bound {
    fn name(&self) -> &'static str {
        self.kernel.name()
    }

    fn infer(&self, inputs: &[Option<&Meta>]) -> Result<Metas> {
        for (i, constant) in self.constants.iter().enumerate() {
            let Some(constant) = constant else { continue };
            let given = inputs.get(i).copied().flatten();
            if given != Some(constant) {
                let shown = |meta: &Meta| format!("{} {:?}", meta.dtype.name(), &meta.shape[..]);
                return Err(Error::usage(
                    self.name(),
                    format!("input {i} to be the constant of bind, {}", shown(constant)),
                    given.map_or("none".to_string(), shown),
                ));
            }
        }
        self.kernel.infer(inputs)
    }

    fn run(&self, inputs: &[Option<&Array>], outputs: &[Array]) -> Result<()> {
        self.kernel.run(inputs, outputs)
    }

    fn run_dynamic(&self, inputs: &[Option<&Array>]) -> Option<Result<Outputs>> {
        self.kernel.run_dynamic(inputs)
    }

    fn bind(&self, constants: &[Option<&Array>]) -> Result<Option<Arc<dyn Kernel>>> {
        self.kernel.bind(constants)
    }

    fn in_place(&self) -> &[(usize, usize)] {
        self.kernel.in_place()
    }

    fn single_output(&self) -> bool {
        self.kernel.single_output()
    }

    fn channel_axis(&self) -> Option<ChannelAxis> {
        self.kernel.channel_axis()
    }

    fn as_step(&self, before: &Before<'_>) -> Option<Step> {
        self.kernel.as_step(before)
    }

    fn run_with(
        &self,
        inputs: &[Option<&Array>],
        output: &Array,
        epilogue: &Epilogue<'_>,
    ) -> Option<Result<()>> {
        self.kernel.run_with(inputs, output, epilogue)
    }

    fn as_fused(&self) -> Option<&Fused> {
        self.kernel.as_fused()
    }

    fn is_random(&self) -> bool {
        self.kernel.is_random()
    }
}
