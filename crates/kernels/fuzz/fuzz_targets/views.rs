#![no_main]

use onemodel_kernels_fuzz::{limited, views};

libfuzzer_sys::fuzz_target!(|data: &[u8]| limited(views::run, data));
