#![no_main]

use onemodel_kernels_fuzz::{arguments, limited};

libfuzzer_sys::fuzz_target!(|data: &[u8]| limited(arguments::run, data));
