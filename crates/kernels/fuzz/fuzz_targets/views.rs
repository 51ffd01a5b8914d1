#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = onemodel_kernels_fuzz::views::run(data);
});
