cd /work/wt/lead/crates/kernels && CARGO_TARGET_DIR=/work/wt/lead/target cargo "$@"
