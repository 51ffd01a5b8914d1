#![no_main]

use onemodel_kernels_fuzz::{limited, programs};

libfuzzer_sys::fuzz_target!(|data: &[u8]| limited(programs::run, data));
